"""Steps of SciPy's choosing, for a tolerance: `pip install 'psiphi[sim]'`.

The state is y = (q, v) with dq/dt = rate(q, v). Dynamics depend on the direction of a quaternion only and its rate is
proportional to its length, so the length, which the integrator lets drift by its tolerance, changes nothing; samples have
unit quaternions. A whole batch is one system with one step size. Torques that jump (one row a step, `hold=True`) and
projection onto constraints cut the time into pieces of dt, and the integrator starts anew in each.
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


class AdaptiveRun(RecordedRun):
    """One simulation by an integrator of SciPy's."""

    def __init__(self, task: SimulationProblem, rtol: Any, atol: Any):
        super().__init__(task)
        self.solver_class = getattr(
            import_optional("scipy.integrate", f'method="{task.method}"', "psiphi[sim]"),
            task.method,
        )
        self.diverging = np.zeros(
            task.batch, dtype=bool
        )  # elements whose slope, when last asked, was not finite
        self.rtol, self.atol = _tolerance("rtol", rtol), _tolerance("atol", atol)

    @property
    def _has_jumps(self) -> bool:
        """Whether the torque or the state jumps from one dt to the next."""
        table = self.field.torque.table
        return (
            self.field.hold
            or self.plant.project is not None
            or (table is not None and table.shape[-2] > 1)
        )

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
        """From step `start` to step `stop`; the last state, or None when everything has stopped."""
        if start == stop:
            return q, v
        self.field.step = step = start
        solver = self._solver(
            start * self.dt, np.concatenate([q.reshape(-1), v.reshape(-1)]), stop * self.dt
        )
        while solver is not None and solver.status == "running":
            failed = self._step(solver)
            if failed:  # where it was not for NaN, there is nothing to go on with
                self._stop_diverging(solver.t, failed, solver.y)
                solver = self._solver(solver.t, solver.y, stop * self.dt)
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
        """An integrator from (t, y), once what has no finite slope there is stopped; None when nothing runs."""
        with np.errstate(all="ignore"):
            self._derivative(t, y)
            if self.diverging.any():
                self._stop_diverging(t, "", y)
            if self.monitor.all_stopped:
                return None
            return self.solver_class(
                self._derivative, t, y, end, rtol=max(self.rtol, 2.3e-14), atol=self.atol
            )

    def _step(self, solver: Any) -> str:
        """One step; why it failed, or nothing."""
        try:
            with np.errstate(all="ignore"):
                message = solver.step()
        except (
            ValueError,
            np.linalg.LinAlgError,
        ) as error:  # implicit methods refuse to factorise NaN
            if isinstance(error, Error) or not self.diverging.any():
                raise
            message, solver.status = str(error), "failed"
        return (message or "no step succeeded") if solver.status == "failed" else ""

    def _stop_diverging(self, t: float, why: str, y: np.ndarray) -> None:
        """Elements whose slope is not finite have diverged, and stand still from here on: no step can lead further."""
        if not self.diverging.any():
            raise Error(
                f"{self.method} gave up at t = {t:g} s: {why.rstrip('.')}", "loosen rtol and atol"
            )
        self.monitor.diverge(self.diverging, t, self._split(y)[1])

    def _derivative(self, t: float, y: np.ndarray) -> np.ndarray:
        q, v = self._split(y)
        u, a = self.field(t, q, v)
        rate, alive = self.plant.manifold.rate(q, u), self.monitor.alive
        if not alive.all():  # what has stopped stands still
            rate, a = np.where(alive[..., None], rate, 0.0), np.where(alive[..., None], a, 0.0)
        self.diverging = np.asarray(~(np.isfinite(rate).all(axis=-1) & np.isfinite(a).all(axis=-1)))
        return np.concatenate([rate.reshape(-1), a.reshape(-1)])

    def _split(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        batch = self.monitor.alive.shape
        size = int(np.prod(batch)) * self.plant.nq
        return y[:size].reshape(*batch, self.plant.nq), y[size:].reshape(*batch, self.plant.nv)

    def _state(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, v = self._split(y)
        return self.plant.manifold.unit(q.copy()), v.copy()

    def _check_sample(self, step: int, q: np.ndarray, v: np.ndarray) -> bool:
        """Watch, sample, report; False when nothing runs any more."""
        t, was = step * self.dt, self.monitor.alive.copy()
        stopped = self.monitor.check(t - self.dt, t, q, v)
        finite = np.isfinite(q).all(axis=-1) & np.isfinite(v).all(axis=-1)
        keep = stopped or step % self.every == 0 or step == self.steps
        if (
            keep or self.plant.contacts or self.field.hold
        ):  # a torque that is held is asked at every step
            self._sample(step, q, v, was & finite, keep)
        self.progress(t, q, v, now=step == self.steps)
        return not self.monitor.all_stopped

    def _sample(
        self,
        step: int,
        q: np.ndarray,
        v: np.ndarray,
        shown: np.ndarray | None = None,
        keep: bool = True,
    ) -> None:
        f, t = self.field, step * self.dt
        if shown is not None and shown.size and not shown.any():
            return
        with np.errstate(all="ignore"):
            f.start_step(step, t, q, v)
        keep = self.monitor.check_contacts(t, q, f.forces) or keep
        if keep:
            alive = np.ones_like(self.monitor.alive) if shown is None else shown
            self.sample(t, q, v, alive)


def _tolerance(name: str, given: Any) -> float:
    value = real_array(name, given, (), "give a number like 1e-9")
    if value.ndim or not 0.0 < value < 1.0:
        raise StateError(f"{name} is {shown(given)}, expected a number between 0 and 1", "try 1e-9")
    return float(value)
