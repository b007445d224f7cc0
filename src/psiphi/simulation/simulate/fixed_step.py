"""Fixed steps in Python, for any system and any torque, with checks after every step."""

from __future__ import annotations

import numpy as np

from psiphi.simulation.integration.integrators import advance
from psiphi.simulation.simulate.simulation_problem import RecordedRun, SimulationProblem


class FixedStepRun(RecordedRun):
    """Fixed steps, after which joint stops and the projection onto constraints change (q, v)."""

    def __init__(self, problem: SimulationProblem):
        super().__init__(problem)
        # residuals of contacts with the ground: the sum of squares since the last sample, and the
        # samples
        self.squares: np.ndarray | float = 0.0
        self.residuals: list[np.ndarray] = []
        # of joint stops: impulses and work since the start, and those at the samples
        size = 0 if self.stops is None else self.stops.sum_size
        self.stop_sum = np.zeros((*self.batch, size))
        self.stop_sums: list[np.ndarray] = []

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
            if self.contact_step is not None:
                tau = self.field.pushed(t, q, self.field.tau)
                solved = self.contact_step(q, v, tau, np.array(self.dt))
                self.squares = self.squares + solved.residual**2
                if self.contact_step.contacts.stops is not None:
                    self.stop_sum = self.stop_sum + solved.stops
                return solved.q, solved.v
            before, m = v, self.plant.manifold
            q, v = advance(self.method, m, self.field, t, q, v, self.dt, first)
            if self.stops is not None:
                q, v, self.stop_sum = self.stops.collide(q, v, before, self.stop_sum)
            if self.plant.project is not None:
                q, v = self.plant.project(q, v)
        return q, v

    def sample(self, t: float, q: np.ndarray, v: np.ndarray, sampled: np.ndarray) -> None:
        super().sample(t, q, v, sampled)
        self.stop_sums.append(self.stop_sum)
        if self.contact_step is not None:
            shape = (*self.batch, self.contact_step.contacts.residual_count)
            self.residuals.append(np.broadcast_to(np.sqrt(self.squares), shape))
            self.squares = 0.0

    def stop_samples(self) -> np.ndarray:
        if not self.stop_sums:
            return super().stop_samples()
        return np.stack(self.stop_sums, axis=-2)

    def residual_samples(self) -> np.ndarray:
        if not self.residuals:
            return super().residual_samples()
        return np.stack(self.residuals, axis=-2)

    def _merge(
        self, q: np.ndarray, v: np.ndarray, q1: np.ndarray, v1: np.ndarray, was_alive: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q1, v1) where they are a sample of the motion, else (q, v); and where they are."""
        sampled = self.monitor.is_sampled(was_alive, q1, v1)
        if sampled.all():
            return q1, v1, sampled
        mask = sampled[..., None]
        return np.where(mask, q1, q), np.where(mask, v1, v), sampled
