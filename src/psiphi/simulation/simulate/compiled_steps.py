"""Simulations by compiled rollouts: the kernel in pieces of about a third of a second, events looked for in between."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.compiler.passes import UNROLL_LIMIT
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.compiled_rollout.python_fallback import FallbackRunner
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.control.control_law import Controller, is_law_controller
from psiphi.simulation.control.law_trace import TracedLaw, as_law
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.plant import Plant
from psiphi.simulation.rollout.rollout_result import RolloutResult, TorqueArgument
from psiphi.simulation.rollout_derivatives.rollout_adjoint import RolloutAdjoint
from psiphi.simulation.simulate.simulation_problem import SimulationProblem, SimulationRun
from psiphi.simulation.trajectory.recorder import make_trajectory
from psiphi.simulation.trajectory.trajectory import Trajectory

State = tuple[np.ndarray, np.ndarray]
LOOP_COMPILE_STEPS = 5000  # steps in Python that take as long as compiling loops
MARK_REMEDY = "mark it with @pp.law if it is a pure function of t, q, v"
MAX_PIECE_NUMBERS = 1 << 23  # numbers a piece may hold where every step is looked at


def use_kernel(task: SimulationProblem, tau: Any, compiled: bool | None) -> bool:
    """Whether a kernel is to run the task; an error where it is insisted on and there is none."""
    if compiled is False:
        return False
    reason = task.why_not_compiled(tau)
    if compiled and reason:
        raise StateError(
            f"compiled=True, and {reason}", "leave it out: the same then runs in Python"
        )
    if reason or not task.steps:
        return False
    if compiled or (isinstance(tau, TracedLaw) and tau.needs_kernel):
        return True
    return pays_to_compile(task.plant, task.steps, math.prod(task.batch), tau)


def compiled_law(task: SimulationProblem, tau: Any, is_pure: bool) -> tuple[Any, str]:
    """What a kernel takes for a torque that is a function, and why the steps run in Python where
    it takes none. A marked function is traced for a short motion too: an error in it does not
    depend on the duration."""
    why = task.why_not_compiled(tau)
    if is_law_controller(tau) or task.why_not_compiled(None):
        return tau, why
    if not is_pure:
        return tau, f"{why}; {MARK_REMEDY}"
    return as_law(task.plant.system, tau, bool(task.batch)), ""


def pays_to_compile(plant: Plant, steps: int, count: int, tau: Any = None) -> bool:
    """Whether compiling takes less time than these steps in Python: about 0.1 ms an operation of
    the dynamics and of a traced law, or less than a second where these are loops, against 0.2 ms a
    step and a microsecond for each motion in it. It depends on nothing else, so that the same call
    gives the same bits."""
    closed = isinstance(plant.system, System)
    dynamics = (
        plant.system.dynamics_function("", (), "world")
        if closed
        else plant.robot.function("forward_dynamics")
    )
    dynamics.prepare()
    loops = not closed and len(plant.robot.joints) > UNROLL_LIMIT
    least = LOOP_COMPILE_STEPS if loops else (1.0 if closed else 0.5) * dynamics.count.flops
    least += 0.5 * tau.rule.code.count.flops if isinstance(tau, TracedLaw) else 0.0
    return steps * (1.0 + count / 200.0) >= least


class CompiledRun(SimulationRun):
    """One simulation by a compiled kernel."""

    def __init__(self, task: SimulationProblem, tau: Any):
        super().__init__(task)
        torque, effort, shape = (
            self.field.torque,
            self.field.effort,
            (self.plant.nv,) if tau is None else np.shape(tau),
        )
        self.torque_input = RolloutInput(
            torque, self.field.losses, tau if isinstance(tau, Controller) else None, effort
        )
        self.torque_argument = (
            None if callable(tau) else TorqueArgument(torque, shape, tau is not None, effort)
        )
        self.times: list[np.ndarray] = []
        self.parts: list[tuple[np.ndarray, ...]] = []
        self.sample_arrays: tuple[np.ndarray, ...] | None = (
            None  # room for all samples, while every part is a stretch of it
        )

    def _run(self, q: np.ndarray, v: np.ndarray) -> None:
        stops = JointStops(self.plant) if self.task.limits == "block" else None
        plan = self.torque_input.options(self.plant, self.method, self.field.hold, stops)
        self.runner = runner = FallbackRunner(
            self.plant, self.torque_input, plan, self.dt, self.batch
        )
        self.monitor.start(0.0, q, v)
        self.monitor.check_contacts(
            0.0, q, self._forces(np.zeros(1), q[..., None, :], v[..., None, :], 0)
        )
        if not self.monitor.needs_every_step:
            samples = 1 + -(-self.steps // self.every)
            self.sample_arrays = tuple(
                np.empty((runner.count, samples, x.shape[-1])) for x in (q, v)
            )
            for room, x in zip(self.sample_arrays, (q, v), strict=True):
                room[:, 0] = x.reshape(room[:, 0].shape)
        self._append(np.zeros(1), q[..., None, :], v[..., None, :])
        grain = 1 if self.monitor.needs_every_step else self.every
        size = runner.steps_per_piece(
            grain, MAX_PIECE_NUMBERS if self.monitor.needs_every_step else math.inf
        )
        done = 0
        while done < self.steps and not self.monitor.all_stopped:
            count = min(size, self.steps - done)
            whole = count - count % grain or count  # the last, short piece ends in one sample
            every = grain if whole % grain == 0 else whole
            q, v = self._run_piece(runner, q, v, done, whole, every)
            done += whole
            self.progress(done * self.dt, q, v, now=done == self.steps)

    def _run_piece(self, runner: FallbackRunner, q, v, start: int, steps: int, every: int) -> State:
        """Run some steps, look at them, keep their samples; the last state."""
        n, m = runner.count, steps // every
        out = tuple(np.empty((n, m, size)) for size in (self.plant.nq, self.plant.nv))
        if self.sample_arrays is not None:
            filled = sum(map(len, self.times))
            out = tuple(x[:, filled : filled + m] for x in self.sample_arrays)
        if n:
            runner.advance(q.reshape(n, -1), v.reshape(n, -1), start, steps, every, out)
        Q, V = (x.reshape(*self.batch, m, x.shape[-1]) for x in out)
        index = start + every * np.arange(1, m + 1)
        forces = self._forces(index * self.dt, Q, V)
        if self.monitor.is_event_free(Q, V) and not self.monitor.slips(
            float(index[-1]) * self.dt, Q, forces
        ):
            on = (index % self.every == 0) | (index == self.steps)
            self._append(
                index[on] * self.dt, *((Q, V) if on.all() else (Q[..., on, :], V[..., on, :]))
            )
        else:
            self.sample_arrays = None
            self._check_states(runner, (q, v), index, every, Q, V, forces)
        return Q[..., -1, :], V[..., -1, :]

    def _forces(
        self, t: np.ndarray, Q: np.ndarray, V: np.ndarray, at: int | None = None
    ) -> np.ndarray | None:
        """Forces of contacts that may slip, at all these states (or at one)."""
        if not self.plant.has_unilateral_contacts:
            return None
        tau = self.torque_input.torque_at_samples(self.plant.robot, t, self.dt, Q, V)
        with np.errstate(all="ignore"):
            _, forces = self.plant.with_sample_axis().forces(
                Q, V, self.field.net_torque(tau, Q, V, samples=True)
            )
        return forces if at is None or forces is None else forces[..., at, :, :]

    def _check_states(
        self,
        runner: FallbackRunner,
        last: State,
        index: np.ndarray,
        every: int,
        Q: np.ndarray,
        V: np.ndarray,
        forces,
    ) -> None:
        """State by state, behind the state `last`: something happened among them, or may have."""
        for k, step in enumerate(index.tolist()):
            if self.monitor.all_stopped:
                return
            q, v = Q[..., k, :], V[..., k, :]
            if every > 1 and self.monitor.diverged(q, v).any():
                self._rerun_every_step(runner, last, step - every, every)
            else:
                self._check_state(
                    step, every, q, v, None if forces is None else forces[..., k, :, :]
                )
            last = q, v

    def _check_state(
        self, step: int, every: int, q: np.ndarray, v: np.ndarray, forces: np.ndarray | None
    ) -> None:
        """One state, `every` steps behind the one looked at before."""
        watch, was, t = self.monitor, self.monitor.alive.copy(), step * self.dt
        stopped = watch.check(t - every * self.dt, t, q, v)
        stopped = watch.check_contacts(t, q, forces) or stopped
        shown = watch.is_sampled(was, q, v)
        if shown.any() and (step % self.every == 0 or stopped or step == self.steps):
            kept = (np.where(shown[..., None], x, np.nan)[..., None, :] for x in (q, v))
            self._append(np.array([t]), *kept)

    def _rerun_every_step(
        self, runner: FallbackRunner, last: State, start: int, steps: int
    ) -> None:
        """The steps between two samples again, each looked at: when did it happen?"""
        size = runner.steps_per_piece(1, MAX_PIECE_NUMBERS)
        for first in range(start, start + steps, size):
            last = self._run_piece(runner, *last, first, min(size, start + steps - first), 1)

    def _append(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        self.times.append(t)
        self.parts.append((q, v))

    def _states(self, count: int) -> tuple[np.ndarray, ...]:
        """q and v of all samples, copied only where they do not already lie side by side."""
        if not self.parts:
            return np.zeros((*self.batch, 0, self.plant.nq)), np.zeros(
                (*self.batch, 0, self.plant.nv)
            )
        if self.sample_arrays is not None:
            return tuple(
                x[:, :count].reshape(*self.batch, count, x.shape[-1]) for x in self.sample_arrays
            )
        return tuple(np.concatenate(x, axis=-2) for x in zip(*self.parts, strict=True))

    def motion(self) -> Trajectory:
        """What there is; torques and accelerations are computed for all samples at once."""
        t = np.concatenate(self.times) if self.times else np.zeros(0)
        q, v = self._states(len(t))
        rows = {"t": t, "q": q, "v": v}
        if self.parts:
            with np.errstate(all="ignore"):
                tau = self.torque_input.torque_at_samples(self.plant.robot, t, self.dt, q, v)
                gone = (
                    np.isnan(q).any(axis=-1, keepdims=True) & ~self.monitor.alive[..., None, None]
                )
                tau = np.where(gone, np.nan, tau)
                a, forces = self.plant.with_sample_axis().forces(
                    q, v, self.field.net_torque(tau, q, v, samples=True)
                )
                rows |= {"tau": tau, "a": a} | ({} if forces is None else {"forces": forces})
        made = make_trajectory(self.plant, rows, self.monitor.events, self.task.info)
        if len(t) != 1 + self.steps / self.every or not self.monitor.alive.all():
            return made
        states = tuple(x.reshape(self.runner.count, *x.shape[-2:]) for x in (made.q, made.v))
        followed = self.runner.reference_samples(self.every * (states[0].shape[1] - 1))
        ways = partial(RolloutAdjoint, self.runner, states, self.every, followed)
        return made._with_derivatives(
            RolloutResult.of((made.q, made.v), ways, self.torque_argument)
        )
