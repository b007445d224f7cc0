"""`SimulationProblem`, what to simulate; and the base classes of the runs that do it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.errors import Error
from psiphi.model.components import joint_of_entry
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.compiled_rollout.contact_step import ContactStep
from psiphi.simulation.compiled_rollout.python_fallback import ConstraintSolveFailed
from psiphi.simulation.compiled_rollout.rollout_inputs import why_not_compiled
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.forces.damping_and_friction import DampingAndFriction
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.integration.integrators import ORDER
from psiphi.simulation.integration.state_derivative import StateDerivative
from psiphi.simulation.plant import Plant
from psiphi.simulation.simulate.contact_samples import contact_arrays, contact_events
from psiphi.simulation.simulate.events import EventMonitor
from psiphi.simulation.simulate.speed_limits import fastest_coordinate, speed_limits
from psiphi.simulation.simulate.stop_samples import stop_arrays
from psiphi.simulation.simulation_errors import (
    Interrupted,
    SimulationError,
    user_line,
    warn_of_rises,
)
from psiphi.simulation.trajectory.recorder import Recorder, make_trajectory
from psiphi.simulation.trajectory.trajectory import Event, Trajectory

REPORT_INTERVAL = 0.1  # seconds of real time between two reports of progress


@dataclass
class Progress:
    """Calls `report(t, q, v)` at most once in REPORT_INTERVAL, or `now`."""

    report: Callable | None
    last_report: float = field(default_factory=time.perf_counter)

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, now: bool = False) -> None:
        if self.report is None:
            return
        if now or time.perf_counter() - self.last_report > REPORT_INTERVAL:
            self.last_report = time.perf_counter()
            self.report(t, q, v)


@dataclass(frozen=True)
class SimulationProblem:
    """The system, its forces, the steps, the events, and where progress is reported."""

    plant: Plant
    field: StateDerivative
    batch: tuple[int, ...]
    dt: float
    steps: int
    every: int
    method: str
    limits: str
    events: dict[str, Callable]
    stop: set[str]
    progress: Callable | None = None
    contacts: GroundContact | None = None  # the contacts with the ground
    why_in_python: str = ""  # why the steps run in Python although a kernel could be faster

    def why_not_compiled(self, tau: object) -> str:
        """Why there is no kernel for this problem; "" if there is one."""
        why = why_not_compiled(self.plant.system, tau, self.method, self.limits == "block")
        given = self.contacts is not None and bool(self.contacts.given)
        why = why or ("contacts are found by Python" if given else "")
        return why or ("f_ext acts" if self.field.push else "")

    @cached_property
    def info(self) -> dict[str, Any]:
        """The `info` of the trajectory: the method, the step, and which forces act."""
        plant, field, table = self.plant, self.field, self.field.torque.table
        losses = field.losses
        info: dict[str, Any] = {
            "method": self.method,
            "dt": self.dt,
            "held": field.hold or table is not None or self.contacts is not None,
            "losses": not losses.is_empty or self.contacts is not None,
        }
        if self.contacts is not None:
            info |= {"contacts": list(self.contacts.names), "ground": self.contacts.ground.surface}
        info |= {"in Python": self.why_in_python} if self.why_in_python else {}
        info |= {"left out": parts} if (parts := _inactive_parts(plant, losses)) else {}
        if plant.unactuated_joints:
            slices = {name: plant.robot.joint(name).v_slice for name in plant.unactuated_joints}
            info["passive"] = {name: [rows.start, rows.stop] for name, rows in slices.items()}
        if field.push:
            info["f_ext"] = list(field.push.wrenches)
        if idle := _idle_motors(plant, field.effort):
            info["no effort"] = idle
        if losses.implicit:
            springs = losses.springs.implicit_joints(plant.robot)
            joints = losses.implicit_joints(plant.robot)
            info["implicit"] = {"joints": joints, "order": ORDER[self.method]}
            info["implicit"] |= {"springs": springs} if springs else {}
        return info


def _inactive_parts(plant: Plant, losses: DampingAndFriction) -> list[str]:
    """What the model has but this motion ignores, each with the option that includes it."""
    robot, active = plant.robot, {*losses.active, *losses.springs.active, *losses.from_model}
    couplings = robot.loops or robot.gears or robot.mimics
    parts = ["loops and couplings (pp.connect(robot, mimic=True))"]
    parts = parts if plant.is_robot and couplings else []
    options = {"damping": "damping", "friction": "friction", "springs": "stiffness"}
    for option, name in options.items():
        if name not in active and getattr(robot, name).any():
            parts.append(f"{option} ({option}=True)")
    return parts


def _idle_motors(plant: Plant, effort: np.ndarray | None) -> list[str]:
    """The joints with motors whose effort limits are 0."""
    if effort is None:
        return []
    motors = [joint for joint in plant.robot.joints if joint.name not in plant.unactuated_joints]
    return [x.name for x in motors if x.row.nv and not effort[..., x.v_slice].any()]


class SimulationRun:
    """A run of a problem: `_run` computes it, `motion` returns what has been computed so far."""

    def __init__(self, problem: SimulationProblem):
        self.problem, self.plant, self.field = problem, problem.plant, problem.field
        self.batch, self.dt, self.steps = problem.batch, problem.dt, problem.steps
        self.every, self.method = problem.every, problem.method
        self.progress = Progress(problem.progress)
        self.monitor = EventMonitor(
            problem.plant,
            problem.batch,
            problem.limits,
            problem.events,
            problem.stop,
            speed_limits(problem.plant, problem.method, problem.dt),
        )

    def run(self, q: np.ndarray, v: np.ndarray) -> Trajectory:
        """The motion from (q, v). An error or Control-C carries the motion computed so far."""
        try:
            self._run(q, v)
        except ConstraintSolveFailed:
            raise
        except KeyboardInterrupt:
            so_far = self.motion()
            if not len(so_far):
                raise
            raise Interrupted(so_far) from None
        except Exception as error:
            so_far = self.motion()
            if isinstance(error, Error) and not len(so_far):
                raise
            raise _simulation_error(error, so_far, fastest_joint(self.plant, so_far)) from error
        warn_of_rises(self.monitor.unseen_rises)
        return self.motion()

    def _run(self, q: np.ndarray, v: np.ndarray) -> None:
        raise NotImplementedError

    def motion(self) -> Trajectory:
        raise NotImplementedError

    @cached_property
    def contact_step(self) -> ContactStep | None:
        """One step with contacts with the ground, if there are any."""
        contacts = self.problem.contacts
        if contacts is None:
            return None
        return ContactStep(self.plant, self.field.losses, contacts)

    @cached_property
    def stops(self) -> JointStops | None:
        """The joints that stop at their limits, if limits act."""
        return JointStops(self.plant) if self.problem.limits == "block" else None

    def with_stops(self, rows: dict[str, np.ndarray], sums: np.ndarray) -> dict[str, np.ndarray]:
        """The samples `rows` with what joint stops do; `sums` (..., n, stops + 1) are their
        impulses and work since the start."""
        if self.stops is None or not len(rows["t"]):
            return rows
        return rows | stop_arrays(self.stops, self.plant, rows, sums)

    def with_contacts(self, rows: dict[str, np.ndarray], residual: np.ndarray) -> list[Event]:
        """Add what the contacts with the ground do to the samples `rows`; the events, with those of
        the contacts. `residual` is (..., n, contacts)."""
        step = self.contact_step
        if step is None:
            return self.monitor.events
        push, tau = self.field.push, rows["tau"]
        if push is not None:
            tau = tau + push.sampled_torque(rows["t"], rows["q"])
        arrays = contact_arrays(step, rows["q"], rows["v"], tau, self.dt)
        rows |= {**arrays, "contact_residual": residual.max(axis=-1)}
        return [*self.monitor.events, *contact_events(step, rows, residual)]


def fastest_joint(plant: Plant, motion: Trajectory) -> str:
    """For the error of a closed chain: the joint that moves fastest at the end of one motion."""
    is_closed = isinstance(plant.system, System)
    if not is_closed or motion.batch or not len(motion) or not motion.final.v.any():
        return ""
    k = fastest_coordinate(plant, motion.final.v)
    joint, speed = joint_of_entry(plant.robot.joints, k), abs(motion.final.v[k])
    unit = "m/s" if joint.row.slides[k - joint.v_slice.start] else "rad/s"
    return f"; the fastest joint then was {joint.name}, at {speed:.3g} {unit}"


SIGNATURES = (
    "tau, events and progress are functions of (t, q, v), and wrenches of f_ext of the time t"
)


def _simulation_error(error: Exception, so_far: Trajectory, fastest: str) -> SimulationError:
    """The error that `run` raises: the cause, the time, the joint, and the motion until then."""
    when = f"after t = {so_far.t[-1]:g} s" if len(so_far) else "at the first step"
    is_own = isinstance(error, Error)
    line = "" if is_own else user_line(error)
    hints = [] if is_own else [f"see {line}" if line else SIGNATURES]
    hints += ["error.trajectory has the motion until then"] if len(so_far) else []
    hint = "; ".join(hints)
    cause = error.cause if is_own else f"{type(error).__name__}: {error}"
    remedy = f"{error.remedy}; {hint}" if is_own and error.remedy else hint
    cause = f"the simulation failed {when}: {cause}{fastest if is_own else ''}"
    return SimulationError(cause, remedy, trajectory=so_far)


class RecordedRun(SimulationRun):
    """A run that records sample by sample."""

    def __init__(self, problem: SimulationProblem):
        super().__init__(problem)
        samples = problem.steps // problem.every + 2
        self.recorder = Recorder(problem.plant, problem.batch, samples, problem.info)
        self.last_sample = 0.0  # its time

    def motion(self) -> Trajectory:
        rows = self.with_stops(self.recorder.samples(), self.stop_samples())
        residual = self.residual_samples()
        return make_trajectory(
            self.plant, rows, self.with_contacts(rows, residual), self.problem.info
        )

    def stop_samples(self) -> np.ndarray:
        """(..., n, stops + 1): impulses and work of joint stops since the start."""
        return np.zeros((*self.batch, self.recorder.count, 0))

    def residual_samples(self) -> np.ndarray:
        """(..., n, contacts): the residuals of contacts with the ground."""
        return np.zeros((*self.batch, self.recorder.count, 0))

    def sample(self, t: float, q: np.ndarray, v: np.ndarray, sampled: np.ndarray) -> None:
        """Record this state, with a, tau and forces of `field`; NaN in elements not `sampled`. The
        forces include the impulses of impacts since the sample before, by the time since."""
        f, impulses = self.field, self.plant.impulses()
        forces = f.forces
        if impulses is not None and forces is not None and t > self.last_sample:
            forces = forces + impulses / (t - self.last_sample)
        self.last_sample = t
        self.recorder.add(sampled, t=t, q=q, v=v, a=f.a, tau=f.tau, forces=forces)
