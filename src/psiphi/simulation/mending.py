"""Some motions of a batch again, step by step in Python: those whose constraints a compiled rollout could not solve.

Where there is an answer (least-norm forces, the dense system) it is found; a motion without one is NaN from there on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from psiphi.simulation.drive import Drive
from psiphi.simulation.field import Field
from psiphi.simulation.machine import Plan
from psiphi.simulation.methods import METHODS
from psiphi.simulation.plant import Plant
from psiphi.simulation.torques import Batch, Torque


@dataclass(frozen=True)
class Careful:
    """A rollout as it was asked for."""

    plant: Plant
    drive: Drive
    plan: Plan
    dt: float
    batch: Batch

    def steps(self, which: np.ndarray, start: int, q: np.ndarray, v: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The states after each step from `start` on, of the motions `which` of the flattened batch."""
        field = Field(self.plant, self._torque(which), self.drive.losses, self.drive.effort, self.plan.hold)
        step = METHODS[self.plan.method]
        for number in count(start):
            t = number * self.dt
            with np.errstate(all="ignore"):
                q, v = step(self.plant.manifold, field, t, q, v, self.dt, field.begin(number, t, q, v))
                if self.plan.project:
                    q, v = self.plant.given.project(q, v)
            yield q, v

    def _torque(self, which: np.ndarray) -> Torque:
        """What drives these motions."""
        given, controller = replace(self.drive.torque, batch=(len(which),)), self.drive.controller

        def rows(x: np.ndarray, core: int) -> np.ndarray:
            """Their own part of what may have the batch's axes."""
            if x.ndim == core:
                return x
            whole = np.broadcast_to(x, (*self.batch, *x.shape[x.ndim - core :]))
            return whole.reshape(-1, *whole.shape[len(self.batch) :])[which]

        def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            return controller.law(q, v, *(rows(x, 1) for x in controller.reference(t)))

        if given.table is not None:
            return replace(given, table=rows(given.table, 2))
        return replace(given, function=law) if self.drive.law.follows else given
