"""The loop over steps, in Python: any system, any torque, everything watched."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.integration.integrators import advance
from psiphi.simulation.simulate.simulation_problem import RecordedRun, SimulationProblem


class FixedStepRun(RecordedRun):
    """One simulation by fixed steps. `after` changes (q, v) after each step: stops, projection."""

    def __init__(self, task: SimulationProblem):
        super().__init__(task)
        self.corrections: tuple[Callable, ...] = (
            (JointStops(task.plant),) if task.limits == "block" else ()
        )
        if task.plant.project is not None:
            self.corrections += (task.plant.project,)

    def _run(self, q: np.ndarray, v: np.ndarray) -> None:
        watch = self.monitor
        first = self.field.start_step(0, 0.0, q, v)
        watch.start(0.0, q, v)
        watch.check_contacts(0.0, q, self.field.forces)
        self.sample(0.0, q, v, np.ones_like(watch.alive))
        for step in range(self.steps):
            if watch.all_stopped:
                break
            was, t, end = watch.alive.copy(), step * self.dt, (step + 1) * self.dt
            q1, v1 = self._step(t, q, v, first)
            stopped = watch.check(t, end, q1, v1)
            q, v, shown = self._merge(q, v, q1, v1, was)
            if not shown.any() and watch.all_stopped:
                break
            first = self.field.start_step(step + 1, end, q, v)
            stopped = watch.check_contacts(end, q, self.field.forces) or stopped
            if (step + 1) % self.every == 0 or stopped or step + 1 == self.steps:
                self.sample(end, q, v, shown)
            self.progress(end, q, v)
        self.progress(self.steps * self.dt, q, v, now=True)

    def _step(self, t: float, q: np.ndarray, v: np.ndarray, first) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(all="ignore"):
            q, v = advance(self.method, self.plant.manifold, self.field, t, q, v, self.dt, first)
            for change in self.corrections:
                q, v = change(q, v)
        return q, v

    def _merge(self, q, v, q1, v1, was: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The new state where it is sound and was running, the old one elsewhere; and where it is to be shown."""
        shown = self.monitor.is_sampled(was, q1, v1)
        if shown.all():
            return q1, v1, shown
        return np.where(shown[..., None], q1, q), np.where(shown[..., None], v1, v), shown
