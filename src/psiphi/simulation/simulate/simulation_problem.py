"""One simulation as it was asked for, and what every way of running it shares."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psiphi._util.errors import Error
from psiphi.simulation.compiled_rollout.python_fallback import ConstraintSolveFailed
from psiphi.simulation.compiled_rollout.rollout_inputs import why_not_compiled
from psiphi.simulation.forces.damping_and_friction import DampingAndFriction
from psiphi.simulation.integration.integrators import ORDER
from psiphi.simulation.integration.state_derivative import StateDerivative
from psiphi.simulation.plant import Plant
from psiphi.simulation.simulate.events import EventMonitor
from psiphi.simulation.simulation_errors import Interrupted, SimulationError
from psiphi.simulation.trajectory.recorder import Recorder
from psiphi.simulation.trajectory.trajectory import Trajectory

REPORT_INTERVAL = 0.1  # seconds of real time between two reports of progress


@dataclass
class Progress:
    """Calls `report(t, q, v)` now and then."""

    report: Callable | None
    last_report: float = field(default_factory=time.perf_counter)

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, now: bool = False) -> None:
        if self.report is not None and (
            now or time.perf_counter() - self.last_report > REPORT_INTERVAL
        ):
            self.last_report = time.perf_counter()
            self.report(t, q, v)


@dataclass(frozen=True)
class SimulationProblem:
    """The system, what drives it, the steps, and what is watched for."""

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
    why_in_python: str = ""  # its steps run in Python, where a kernel might have run others

    def why_not_compiled(self, tau: Any) -> str:
        """Why no kernel runs it; empty where one does."""
        return why_not_compiled(self.plant.system, tau, self.method, self.limits == "block")

    @property
    def info(self) -> dict[str, Any]:
        field, table = self.field, self.field.torque.table
        lossy = not field.losses.is_empty or self.limits == "block"
        known = {
            "method": self.method,
            "dt": self.dt,
            "held": field.hold or table is not None,
            "losses": lossy,
        }
        known |= {"in Python": self.why_in_python} if self.why_in_python else {}
        known |= {"left out": left} if (left := _inactive_parts(self.plant, field.losses)) else {}
        if self.plant.unactuated_joints:
            slices = {
                name: self.plant.robot.joint(name).v_slice for name in self.plant.unactuated_joints
            }
            known["passive"] = {name: [own.start, own.stop] for name, own in slices.items()}
        if field.losses.implicit:
            springs = field.losses.springs.implicit_joints(self.plant.robot)
            known["implicit"] = {
                "joints": field.losses.implicit_joints(self.plant.robot),
                "order": ORDER[self.method],
            }
            known["implicit"] |= {"springs": springs} if springs else {}
        return known


def _inactive_parts(plant: Plant, losses: DampingAndFriction) -> list[str]:
    """What the robot's description has and this motion does not, each with the word that lets it act."""
    robot, acting = plant.robot, {*losses.active, *losses.springs.active, *losses.from_model}
    ties = robot.loops or robot.gears or robot.mimics
    left = (
        ["loops and couplings (pp.connect(robot, mimic=True))"] if plant.is_robot and ties else []
    )
    own = {"damping": "damping", "friction": "friction", "springs": "stiffness"}
    there = {name for name in own.values() for joint in robot.joints if getattr(joint, name).any()}
    idle = [word for word, name in own.items() if name in there and name not in acting]
    return [*left, *(f"{word} ({word}=True)" for word in idle)]


class SimulationRun:
    """A task under way: `_run` does it, `motion` is what there is so far."""

    def __init__(self, task: SimulationProblem):
        self.task, self.plant, self.field, self.batch = task, task.plant, task.field, task.batch
        self.dt, self.steps, self.every, self.method = task.dt, task.steps, task.every, task.method
        self.progress = Progress(task.progress)
        self.monitor = EventMonitor(task.plant, task.batch, task.limits, task.events, task.stop)

    def run(self, q: np.ndarray, v: np.ndarray) -> Trajectory:
        """The motion; whatever happens, nothing computed is lost: an error or Control-C carries what there is."""
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
            raise _simulation_error(error, so_far) from error
        return self.motion()

    def _run(self, q: np.ndarray, v: np.ndarray) -> None:
        raise NotImplementedError

    def motion(self) -> Trajectory:
        raise NotImplementedError


def _simulation_error(error: Exception, so_far: Trajectory) -> SimulationError:
    """What went wrong, when, and where the motion until then is."""
    when = f"after t = {so_far.t[-1]:g} s" if len(so_far) else "at the first step"
    kept = (
        "error.trajectory has the motion until then"
        if len(so_far)
        else "tau and events are functions of (t, q, v)"
    )
    own = isinstance(error, Error)
    what = error.cause if own else f"{type(error).__name__}: {error}"
    remedy = f"{error.remedy}; {kept}" if own and error.remedy else kept
    return SimulationError(f"the simulation failed {when}: {what}", remedy, trajectory=so_far)


class RecordedRun(SimulationRun):
    """A run that records sample by sample."""

    def __init__(self, task: SimulationProblem):
        super().__init__(task)
        self.recorder = Recorder(task.plant, task.batch, task.steps // task.every + 2, task.info)

    def motion(self) -> Trajectory:
        return self.recorder.trajectory(self.monitor.events)

    def sample(self, t: float, q: np.ndarray, v: np.ndarray, shown: np.ndarray) -> None:
        """What the field knows of this state, where `shown`."""
        f = self.field
        self.recorder.add(shown, t=t, q=q, v=v, a=f.a, tau=f.tau, forces=f.forces)
