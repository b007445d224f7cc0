"""Steps that SciPy chooses for a tolerance: they need SciPy.

The state is y = (q, v) with dq/dt = rate(q, v). The dynamics depend only on the direction of a
quaternion, and its rate is proportional to its length. The integrator lets the length drift by its
tolerance, which changes nothing else; samples have unit quaternions. A whole batch is one ODE with
one step size. If the torque jumps (one row per step, `hold=True`) or states are projected onto
constraints, time is cut into intervals of dt, and the integrator restarts in each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.extras import import_optional
from psiphi._util.text import shown
from psiphi._util.validate import real_array
from psiphi.simulation.simulate.simulation_problem import RecordedRun, SimulationProblem

METHODS = ("DOP853", "RK45", "RK23", "LSODA", "Radau", "BDF")
MIN_RTOL = 2.3e-14  # below this SciPy warns


class AdaptiveRun(RecordedRun):
    """A run with an integrator of SciPy."""

    def __init__(self, problem: SimulationProblem, rtol: float, atol: float):
        super().__init__(problem)
        integrators = import_optional(
            "scipy.integrate", f'method="{problem.method}"', "psiphi[sim]"
        )
        self.solver_class = getattr(integrators, problem.method)
        # elements whose state derivative was not finite at the last evaluation
        self.diverging = np.zeros(problem.batch, dtype=bool)
        self.rtol, self.atol = _tolerance("rtol", rtol), _tolerance("atol", atol)

    @property
    def _has_jumps(self) -> bool:
        """Whether the torque or the state jumps between two intervals dt."""
        table = self.field.torque.table
        is_per_step = table is not None and table.shape[-2] > 1
        return self.field.hold or self.plant.project is not None or is_per_step

    def _run(self, q: np.ndarray, v: np.ndarray) -> None:
        self.monitor.start(0.0, q, v)
        self._sample(0, q, v)
        if not q.size:
            for step in range(1, self.steps + 1):
                self._check_sample(step, q, v)
            return
        if not self._has_jumps:
            self._solve(0, self.steps, q, v)
            return
        for step in range(self.steps):
            state = self._solve(step, step + 1, q, v)
            if state is None:
                return
            q, v = state

    def _solve(
        self, start: int, stop: int, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Integrate from step `start` to step `stop`; None if all elements have stopped."""
        if start == stop:
            return q, v
        self.field.step = step = start
        y, end = np.concatenate([q.reshape(-1), v.reshape(-1)]), stop * self.dt
        solver = self._solver(start * self.dt, y, end)
        while solver is not None and solver.status == "running":
            failed = self._step(solver)
            if failed:  # stop the elements that diverge; raises an error if there are none
                self._stop_diverging(solver.t, failed, solver.y)
                solver = self._solver(solver.t, solver.y, end)
                continue
            between = solver.dense_output()
            while step < stop and (step + 1) * self.dt <= solver.t * (1.0 + 1e-15) + 1e-300:
                step += 1
                t = step * self.dt
                q, v = self._state(solver.y if t >= solver.t else between(t))
                if self.plant.project is not None:
                    q, v = self.plant.project(q, v)
                if not self._check_sample(step, q, v):
                    return None
        return None if self.monitor.all_stopped else (q, v)

    def _solver(self, t: float, y: np.ndarray, end: float) -> Any:
        """An integrator from (t, y); None if all elements have stopped."""
        with np.errstate(all="ignore"):
            self._derivative(t, y)
            if self.diverging.any():
                self._stop_diverging(t, "", y)
            if self.monitor.all_stopped:
                return None
            return self.solver_class(
                self._derivative, t, y, end, rtol=max(self.rtol, MIN_RTOL), atol=self.atol
            )

    def _step(self, solver: Any) -> str:
        """Take one step; why it failed, or ""."""
        try:
            with np.errstate(all="ignore"):
                message = solver.step()
        except (ValueError, np.linalg.LinAlgError) as error:  # implicit methods factorise NaN
            if isinstance(error, Error) or not self.diverging.any():
                raise
            message, solver.status = str(error), "failed"
        return (message or "no step succeeded") if solver.status == "failed" else ""

    def _stop_diverging(self, t: float, why: str, y: np.ndarray) -> None:
        """Stop the elements whose state derivative is not finite; their state stays constant."""
        if not self.diverging.any():
            raise Error(
                f"{self.method} failed at t = {t:g} s: {why.rstrip('.')}", "increase rtol and atol"
            )
        self.monitor.diverge(self.diverging, t, self._split(y)[1])

    def _derivative(self, t: float, y: np.ndarray) -> np.ndarray:
        """dy/dt; zero in elements that have stopped."""
        q, v = self._split(y)
        u, a = self.field(t, q, v)
        rate, alive = self.plant.manifold.rate(q, u), self.monitor.alive
        if not alive.all():
            rate, a = np.where(alive[..., None], rate, 0.0), np.where(alive[..., None], a, 0.0)
        finite = np.isfinite(rate).all(axis=-1) & np.isfinite(a).all(axis=-1)
        self.diverging = np.asarray(~finite)
        return np.concatenate([rate.reshape(-1), a.reshape(-1)])

    def _split(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        batch = self.monitor.alive.shape
        size = int(np.prod(batch)) * self.plant.nq
        return y[:size].reshape(*batch, self.plant.nq), y[size:].reshape(*batch, self.plant.nv)

    def _state(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, v = self._split(y)
        return self.plant.manifold.unit(q.copy()), v.copy()

    def _check_sample(self, step: int, q: np.ndarray, v: np.ndarray) -> bool:
        """Check for events, record a sample, report progress; False if all have stopped."""
        t, was_alive = step * self.dt, self.monitor.alive.copy()
        stopped = self.monitor.check(t - self.dt, t, q, v)
        finite = np.isfinite(q).all(axis=-1) & np.isfinite(v).all(axis=-1)
        record = stopped or step % self.every == 0 or step == self.steps
        # a torque that is held is evaluated at every step
        if record or self.plant.contacts or self.field.hold:
            self._sample(step, q, v, was_alive & finite, record)
        self.progress(t, q, v, now=step == self.steps)
        return not self.monitor.all_stopped

    def _sample(
        self,
        step: int,
        q: np.ndarray,
        v: np.ndarray,
        sampled: np.ndarray | None = None,
        record: bool = True,
    ) -> None:
        f, t = self.field, step * self.dt
        if sampled is not None and sampled.size and not sampled.any():
            return
        with np.errstate(all="ignore"):
            f.start_step(step, t, q, v)
        record = self.monitor.check_contacts(t, q, f.forces) or record
        if record:
            self.sample(t, q, v, np.ones_like(self.monitor.alive) if sampled is None else sampled)


def _tolerance(name: str, value: float) -> float:
    number = real_array(name, value, (), "give a number like 1e-9")
    if number.ndim or not 0.0 < number < 1.0:
        raise StateError(f"{name} is {shown(value)}, expected a number between 0 and 1", "try 1e-9")
    return float(number)
