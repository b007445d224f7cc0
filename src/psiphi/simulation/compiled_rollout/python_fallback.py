"""Some motions of a batch again, step by step in Python: those whose constraints a compiled rollout could not solve.

Where there is an answer (least-norm forces, the dense system) it is found; a motion without one is NaN from there on.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from itertools import count, islice
from typing import Any

import numpy as np

from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions
from psiphi.simulation.compiled_rollout.rollout_runner import Arrays, Runner
from psiphi.simulation.control.torque_input import Batch, TorqueInput
from psiphi.simulation.integration.integrators import advance
from psiphi.simulation.integration.state_derivative import StateDerivative
from psiphi.simulation.plant import Plant

ASKED = 9  # times at which a reference is asked again

STRAINED = "a motion came to a singularity, diverged, or asks for a force no contact can give"


class ConstraintSolveFailed(Exception):
    """A compiled rollout of a closed chain came to a state that only the steps in Python can judge."""


class FallbackRunner(Runner):
    """A rollout as it was asked for, the motions that strain their constraints mended."""

    def __init__(
        self, plant: Plant, drive: RolloutInput, plan: RolloutOptions, dt: float, batch: Batch
    ):
        self.plant = plant
        super().__init__(plant, drive, plan, dt, batch)
        self.mended = np.zeros(self.count, dtype=bool)  # motions with steps in Python

    def advance(
        self, q: np.ndarray, v: np.ndarray, start: int, steps: int, every: int, out: Arrays
    ) -> None:
        lost = super().advance(q, v, start, steps, every, out)
        if lost is not None:
            self._mend((q, v), start, every, out, lost)

    def followed(self, steps: int) -> Arrays:
        """What the controller follows at some steps of a motion, where that changes in time."""
        if self.drive.controller is None or not self.drive.timed:
            return ()
        return self.drive.references(self.dt * np.unique(np.linspace(0, steps, ASKED).round()))

    def _mend(self, state: Arrays, start: int, every: int, out: Arrays, lost: np.ndarray) -> None:
        """Motions that strained their constraints, again in Python from their last sound sample on."""
        which = np.flatnonzero(lost.any(axis=-1))
        if not len(which):
            return
        if not self.batch:  # a single motion has an error of its own
            raise ConstraintSolveFailed
        self.mended[which] = True
        first = int(lost[which].argmax(axis=-1).min())
        q, v = (
            x[which, first - 1] if first else x0[which] for x, x0 in zip(out, state, strict=True)
        )
        steps = self.steps(which, start + first * every, q, v)
        for sample in range(first, lost.shape[-1]):
            for room, x in zip(out, next(islice(steps, every - 1, None)), strict=True):
                room[which, sample] = x

    def steps(
        self, which: np.ndarray, start: int, q: np.ndarray, v: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The states after each step from `start` on, of the motions `which` of the flattened batch."""
        plant, losses = (
            self.plant.some(self.batch, which),
            self.drive.losses.some(lambda x: self._rows(which, x, 1)),
        )
        field = StateDerivative(
            plant, self._torque(plant, which), losses, self.drive.effort, self.plan.hold
        )
        for number in count(start):
            t = number * self.dt
            with np.errstate(all="ignore"):
                q, v = advance(
                    self.plan.method,
                    plant.manifold,
                    field,
                    t,
                    q,
                    v,
                    self.dt,
                    field.begin(number, t, q, v),
                )
                if self.plan.project:
                    q, v = plant.given.project(q, v)
            yield q, v

    def _torque(self, plant: Plant, which: np.ndarray) -> TorqueInput:
        """What drives these motions."""
        given = replace(self.drive.torque, batch=(len(which),))
        if given.table is not None:
            return replace(given, table=self._rows(which, given.table, 2))
        return (
            given
            if self.drive.controller is None
            else replace(given, function=self._law(plant, which))
        )

    def _law(self, plant: Plant, which: np.ndarray) -> Any:
        """The controller of these motions alone."""
        controller: Any = copy(self.drive.controller)
        controller.robot = plant.given

        def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            followed = controller.reference(t) if self.drive.law.followed else ()
            return controller.torque(q, v, *(self._rows(which, x, 1) for x in followed))

        return law

    def _rows(self, which: np.ndarray, x: np.ndarray, core: int) -> np.ndarray:
        """The part that these motions have of what may have the batch's axes."""
        if x.ndim == core:
            return x
        whole = np.broadcast_to(x, (*self.batch, *x.shape[x.ndim - core :]))
        return whole.reshape(-1, *whole.shape[len(self.batch) :])[which]
