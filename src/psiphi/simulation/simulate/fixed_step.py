"""Fixed steps in Python, for any system and any torque, with checks after every step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.integration.integrators import advance
from psiphi.simulation.simulate.simulation_problem import RecordedRun, SimulationProblem


class FixedStepRun(RecordedRun):
    """Fixed steps. `corrections` change (q, v) after each step: joint stops, projection."""

    def __init__(self, problem: SimulationProblem):
        super().__init__(problem)
        self.corrections: tuple[Callable, ...] = ()
        if problem.limits == "block":
            self.corrections += (JointStops(problem.plant),)
        if problem.plant.project is not None:
            self.corrections += (problem.plant.project,)

    def _run(self, q: np.ndarray, v: np.ndarray) -> None:
        monitor = self.monitor
        first = self.field.start_step(0, 0.0, q, v)
        monitor.start(0.0, q, v)
        monitor.check_contacts(0.0, q, self.field.forces)
        self.sample(0.0, q, v, np.ones_like(monitor.alive))
        for step in range(self.steps):
            if monitor.all_stopped:
                break
            was_alive, t, end = monitor.alive.copy(), step * self.dt, (step + 1) * self.dt
            q1, v1 = self._step(t, q, v, first)
            stopped = monitor.check(t, end, q1, v1)
            q, v, sampled = self._merge(q, v, q1, v1, was_alive)
            if not sampled.any() and monitor.all_stopped:
                break
            first = self.field.start_step(step + 1, end, q, v)
            stopped = monitor.check_contacts(end, q, self.field.forces) or stopped
            if (step + 1) % self.every == 0 or stopped or step + 1 == self.steps:
                self.sample(end, q, v, sampled)
            self.progress(end, q, v)
        self.progress(self.steps * self.dt, q, v, now=True)

    def _step(
        self, t: float, q: np.ndarray, v: np.ndarray, first: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The state after one step; `first` is the state derivative at its start."""
        with np.errstate(all="ignore"):
            q, v = advance(self.method, self.plant.manifold, self.field, t, q, v, self.dt, first)
            for correct in self.corrections:
                q, v = correct(q, v)
        return q, v

    def _merge(
        self, q: np.ndarray, v: np.ndarray, q1: np.ndarray, v1: np.ndarray, was_alive: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q1, v1) where they are a sample of the motion, else (q, v); and where they are."""
        sampled = self.monitor.is_sampled(was_alive, q1, v1)
        if sampled.all():
            return q1, v1, sampled
        mask = sampled[..., None]
        return np.where(mask, q1, q), np.where(mask, v1, v), sampled
