"""Simulations as compiled kernels, in pieces of about a third of a second of real time.

After each piece the states are checked for events.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi.compiler.passes import UNROLL_LIMIT
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.compiled_rollout.python_fallback import FallbackRunner
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.control.control_law import Controller, is_law_controller
from psiphi.simulation.control.law_trace import TracedLaw, as_law
from psiphi.simulation.plant import Plant
from psiphi.simulation.rollout.rollout_result import RolloutResult, TorqueArgument
from psiphi.simulation.rollout_derivatives.rollout_adjoint import RolloutAdjoint
from psiphi.simulation.simulate.simulation_problem import SimulationProblem, SimulationRun
from psiphi.simulation.trajectory.recorder import make_trajectory
from psiphi.simulation.trajectory.trajectory import Trajectory, attach_derivatives

State = tuple[np.ndarray, np.ndarray]
Torque = Numbers | Callable[..., object] | None
LOOP_COMPILE_STEPS = 5000  # steps in Python that take as long as compiling loops over links
MARK_REMEDY = "mark it with @pp.law if it is a pure function of t, q, v"
MAX_PIECE_NUMBERS = 1 << 23  # numbers in a piece if every step is checked


def use_kernel(problem: SimulationProblem, tau: Torque, compiled: bool | None) -> bool:
    """Whether a kernel runs the problem; an error if it is required and there is none."""
    if compiled is False:
        return False
    reason = problem.why_not_compiled(tau)
    if compiled and reason:
        raise StateError(
            f"compiled=True, but {reason}", "leave it out: the steps then run in Python"
        )
    if reason or not problem.steps:
        return False
    if compiled or problem.contacts is not None:
        return True
    return pays_to_compile(problem.plant, problem.steps, math.prod(problem.batch), tau)


def compiled_law(
    problem: SimulationProblem, tau: Callable[..., object], is_pure: bool
) -> tuple[Torque, str]:
    """The torque for a kernel if `tau` is a function, and why the steps run in Python, or "".

    A marked function is traced even for a short motion, so that an error in it does not depend on
    the duration.
    """
    why = problem.why_not_compiled(tau)
    if is_law_controller(tau) or problem.why_not_compiled(None):
        return tau, why
    if not is_pure:
        return tau, f"{why}; {MARK_REMEDY}"
    return as_law(problem.plant.system, tau), ""


def pays_to_compile(plant: Plant, steps: int, count: int, tau: Torque = None) -> bool:
    """Whether compiling takes less time than these steps of `count` motions in Python.

    Compiling takes about 0.1 ms per operation of the dynamics and of a traced law; under a second
    if these are loops over links. Python takes 0.2 ms per step and 1 us per motion in it. The
    decision depends on nothing else, so that the same call returns the same bits.
    """
    is_closed = isinstance(plant.system, System)
    dynamics = (
        plant.system.dynamics_function("", (), "world")
        if is_closed
        else plant.robot.unbound_function("forward_dynamics")
    )
    dynamics.prepare(single=count == 1)
    has_loops = not is_closed and len(plant.robot.joints) > UNROLL_LIMIT
    cost = LOOP_COMPILE_STEPS if has_loops else (1.0 if is_closed else 0.5) * dynamics.count.flops
    cost += 0.5 * tau.rule.code.count.flops if isinstance(tau, TracedLaw) else 0.0
    return steps * (1.0 + count / 200.0) >= cost


class CompiledRun(SimulationRun):
    """A run with a compiled kernel."""

    def __init__(self, problem: SimulationProblem, tau: Torque):
        super().__init__(problem)
        torque, effort = self.field.torque, self.field.effort
        controller = tau if isinstance(tau, Controller) else None
        self.torque_input = RolloutInput(
            torque, self.field.losses, controller, effort, problem.contacts
        )
        self.torque_argument: TorqueArgument | None = None
        if not callable(tau):
            shape = (self.plant.nv,) if tau is None else np.shape(cast("ArrayLike", tau))
            self.torque_argument = TorqueArgument(torque, shape, tau is not None, effort)
        self.times: list[np.ndarray] = []
        self.parts: list[State] = []
        # q and v of all samples, if every part is a slice of these arrays
        self.sample_arrays: State | None = None

    def _run(self, q: np.ndarray, v: np.ndarray) -> None:
        options = self.torque_input.options(self.plant, self.method, self.field.hold, self.stops)
        # the kernel of `contact_step`, if there is no law
        has_contacts, has_stops = options.contacts is not None, options.all_stops is not None
        options = replace(options, records_contacts=has_contacts, records_stops=has_stops)
        self.runner = runner = FallbackRunner(
            self.plant, self.torque_input, options, self.dt, self.batch
        )
        self.monitor.start(0.0, q, v)
        self.monitor.check_contacts(0.0, q, self._initial_forces(q, v))
        needs_every_step = self.monitor.needs_every_step
        if not needs_every_step:
            samples = 1 + -(-self.steps // self.every)
            arrays = [np.empty((runner.count, samples, x.shape[-1])) for x in (q, v)]
            for array, x in zip(arrays, (q, v), strict=True):
                array[:, 0] = x.reshape(array[:, 0].shape)
            self.sample_arrays = arrays[0], arrays[1]
        self._append(np.zeros(1), q[..., None, :], v[..., None, :])
        stride = 1 if needs_every_step else self.every
        size = runner.steps_per_piece(stride, MAX_PIECE_NUMBERS if needs_every_step else math.inf)
        done = 0
        while done < self.steps and not self.monitor.all_stopped:
            rest = min(size, self.steps - done)
            count = rest - rest % stride or rest  # a short last piece has one sample, at its end
            q, v = self._run_piece(
                runner, q, v, done, count, stride if count % stride == 0 else count
            )
            done += count
            self.progress(done * self.dt, q, v, now=done == self.steps)

    def _run_piece(
        self,
        runner: FallbackRunner,
        q: np.ndarray,
        v: np.ndarray,
        start: int,
        steps: int,
        every: int,
    ) -> State:
        """Run some steps, check them for events, record their samples; returns the last state."""
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
        end = float(index[-1]) * self.dt
        if self.monitor.is_event_free(Q, V) and not self.monitor.slips(end, Q, forces):
            at_sample = (index % self.every == 0) | (index == self.steps)
            q, v = (x if at_sample.all() else x[..., at_sample, :] for x in (Q, V))
            self._append(index[at_sample] * self.dt, q, v)
        else:
            self.sample_arrays = None
            self._check_states(runner, (q, v), index, every, Q, V, forces)
        return Q[..., -1, :], V[..., -1, :]

    def _initial_forces(self, q: np.ndarray, v: np.ndarray) -> np.ndarray | None:
        forces = self._forces(np.zeros(1), q[..., None, :], v[..., None, :])
        return None if forces is None else forces[..., 0, :, :]

    def _forces(self, t: np.ndarray, Q: np.ndarray, V: np.ndarray) -> np.ndarray | None:
        """The forces of contacts at states (..., m, n), if some contact can slip or separate."""
        if not self.plant.has_unilateral_contacts:
            return None
        tau = self.torque_input.torque_at_samples(self.plant.robot, t, self.dt, Q, V)
        with np.errstate(all="ignore"):
            torque = self.field.net_torque(tau, Q, V, samples=True)
            return self.plant.with_sample_axis().forces(Q, V, torque)[1]

    def _check_states(
        self,
        runner: FallbackRunner,
        last: State,
        index: np.ndarray,
        every: int,
        Q: np.ndarray,
        V: np.ndarray,
        forces: np.ndarray | None,
    ) -> None:
        """Check states one by one, because events may have happened among them; `last` is the
        state before them."""
        for k, step in enumerate(index.tolist()):
            if self.monitor.all_stopped:
                return
            q, v = Q[..., k, :], V[..., k, :]
            if every > 1 and self.monitor.diverged(q, v).any():
                self._rerun_every_step(runner, last, step - every, every)
            else:
                here = None if forces is None else forces[..., k, :, :]
                self._check_state(step, every, q, v, here)
            last = q, v

    def _check_state(
        self, step: int, every: int, q: np.ndarray, v: np.ndarray, forces: np.ndarray | None
    ) -> None:
        """Check one state, `every` steps after the one checked before, and record its sample."""
        monitor, was_alive, t = self.monitor, self.monitor.alive.copy(), step * self.dt
        stopped = monitor.check(t - every * self.dt, t, q, v)
        stopped = monitor.check_contacts(t, q, forces) or stopped
        sampled = monitor.is_sampled(was_alive, q, v)
        if sampled.any() and (step % self.every == 0 or stopped or step == self.steps):
            q, v = (np.where(sampled[..., None], x, np.nan)[..., None, :] for x in (q, v))
            self._append(np.array([t]), q, v)

    def _rerun_every_step(
        self, runner: FallbackRunner, last: State, start: int, steps: int
    ) -> None:
        """Run the steps between two samples again and check each, to find when motions diverged."""
        size = runner.steps_per_piece(1, MAX_PIECE_NUMBERS)
        for first in range(start, start + steps, size):
            last = self._run_piece(runner, *last, first, min(size, start + steps - first), 1)

    def _append(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        self.times.append(t)
        self.parts.append((q, v))

    def _states(self, count: int) -> tuple[np.ndarray, ...]:
        """q and v of all samples; copied only if they are not contiguous already."""
        if not self.parts:
            sizes = self.plant.nq, self.plant.nv
            return tuple(np.zeros((*self.batch, 0, size)) for size in sizes)
        if self.sample_arrays is not None:
            return tuple(
                x[:, :count].reshape(*self.batch, count, x.shape[-1]) for x in self.sample_arrays
            )
        return tuple(np.concatenate(x, axis=-2) for x in zip(*self.parts, strict=True))

    def motion(self) -> Trajectory:
        """The motion so far; torques and accelerations are computed for all samples at once."""
        t = np.concatenate(self.times) if self.times else np.zeros(0)
        q, v = self._states(len(t))
        rows = {"t": t, "q": q, "v": v}
        if self.parts:
            with np.errstate(all="ignore"):
                tau = self.torque_input.torque_at_samples(self.plant.robot, t, self.dt, q, v)
                has_ended = np.isnan(q).any(axis=-1, keepdims=True)
                has_ended &= ~self.monitor.alive[..., None, None]
                tau = np.where(has_ended, np.nan, tau)
                rows["tau"] = tau
                if self.contact_step is None:
                    torque = self.field.net_torque(tau, q, v, samples=True)
                    a, forces = self.plant.with_sample_axis().forces(q, v, torque)
                    rows |= {"a": a} | ({} if forces is None else {"forces": forces})
                if self.runner.options.records_stops:
                    sums = self.runner.stop_sums.at(np.rint(t / self.dt).astype(int))
                    rows = self.with_stops(rows, sums.reshape(*self.batch, *sums.shape[1:]))
        events = self.monitor.events
        if self.parts and self.contact_step is not None:
            residual = self.runner.residuals.between(np.rint(t / self.dt).astype(int))
            events = self.with_contacts(rows, residual.reshape(*self.batch, *residual.shape[1:]))
        motion = make_trajectory(self.plant, rows, events, self.problem.info)
        if len(t) != 1 + self.steps / self.every or not self.monitor.alive.all():
            return motion
        states = tuple(x.reshape(self.runner.count, *x.shape[-2:]) for x in (motion.q, motion.v))
        references = self.runner.reference_samples(self.every * (states[0].shape[1] - 1))
        adjoint = partial(RolloutAdjoint, self.runner, states, self.every, references)
        result = RolloutResult.of((motion.q, motion.v), adjoint, self.torque_argument)
        return attach_derivatives(motion, result)
