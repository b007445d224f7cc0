"""Re-runs in Python the batch elements of a rollout whose constraints the kernel could not solve.

In Python a solution is found if there is one (least-norm forces, the dense system). A motion
without one is NaN from that step on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from itertools import count, islice

import numpy as np

from psiphi.backends.cpu.threads import check_cancelled
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions
from psiphi.simulation.compiled_rollout.rollout_runner import Arrays, Runner
from psiphi.simulation.control.torque_input import Batch, TorqueInput
from psiphi.simulation.integration.integrators import advance
from psiphi.simulation.integration.state_derivative import StateDerivative
from psiphi.simulation.plant import Plant

REFERENCE_SAMPLES = 9  # times at which a reference is compared with its values during the run

SOLVE_FAILED = "a motion came to a singularity, diverged, or needs a force no contact can give"


class ConstraintSolveFailed(Exception):
    """The kernel could not solve the constraints of a single motion: run its steps in Python."""


class FallbackRunner(Runner):
    """Re-runs in Python the batch elements that failed in the kernel."""

    def __init__(
        self,
        plant: Plant,
        rollout_input: RolloutInput,
        options: RolloutOptions,
        dt: float,
        batch: Batch,
    ):
        self.plant = plant
        super().__init__(plant, rollout_input, options, dt, batch)
        self.ran_in_python = np.zeros(self.count, dtype=bool)  # elements with steps in Python

    def advance(
        self, q: np.ndarray, v: np.ndarray, start: int, steps: int, every: int, out: Arrays
    ) -> None:
        failed = super().advance(q, v, start, steps, every, out)
        if failed is not None:
            self._rerun((q, v), start, every, out, failed)

    def reference_samples(self, steps: int) -> Arrays:
        """The reference of the controller at some steps of a motion, if it changes with time."""
        if self.rollout_input.controller is None or not self.rollout_input.time_varying:
            return ()
        numbers = np.unique(np.linspace(0, steps, REFERENCE_SAMPLES).round())
        return self.rollout_input.references(self.dt * numbers)

    def _rerun(
        self, state: Arrays, start: int, every: int, out: Arrays, failed: np.ndarray
    ) -> None:
        """Run the elements that failed again, from the last sample at which none had failed."""
        elements = np.flatnonzero(failed.any(axis=-1))
        if not len(elements):
            return
        if not self.batch:  # the caller decides what to do with a single motion
            raise ConstraintSolveFailed
        self.ran_in_python[elements] = True
        first = int(failed[elements].argmax(axis=-1).min())
        q, v = (
            x[elements, first - 1] if first else x0[elements]
            for x, x0 in zip(out, state, strict=True)
        )
        states = self._states(elements, start + first * every, q, v)
        for sample in range(first, failed.shape[-1]):
            for target, x in zip(out, next(islice(states, every - 1, None)), strict=True):
                target[elements, sample] = x

    def _states(
        self, elements: np.ndarray, start: int, q: np.ndarray, v: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The states after each step from `start` on, of these elements of the flattened batch."""
        plant = self.plant.elements(self.batch, elements)
        losses = self.rollout_input.losses.elements(lambda x: self._rows(elements, x, 1))
        torque, effort = self._torque(plant, elements), self.rollout_input.effort
        field = StateDerivative(plant, torque, losses, effort, self.options.hold)
        method = self.options.method
        for number in count(start):
            check_cancelled()
            t = number * self.dt
            with np.errstate(all="ignore"):
                first = field.start_step(number, t, q, v)
                q, v = advance(method, plant.manifold, field, t, q, v, self.dt, first)
                if self.options.project:
                    q, v = plant.system.project(q, v)
            yield q, v

    def _torque(self, plant: Plant, elements: np.ndarray) -> TorqueInput:
        """The torque input of these elements."""
        torque = replace(self.rollout_input.torque, batch=(len(elements),))
        if torque.table is not None:
            return replace(torque, table=self._rows(elements, torque.table, 2))
        if self.rollout_input.controller is None:
            return torque
        return replace(torque, function=self._law(plant, elements))

    def _law(
        self, plant: Plant, elements: np.ndarray
    ) -> Callable[[float, np.ndarray, np.ndarray], np.ndarray]:
        """The law of the controller for these elements."""
        controller = copy(self.rollout_input.controller)
        assert controller is not None
        controller.robot = plant.system

        def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            followed = controller.reference(t) if self.rollout_input.law.reference_places else ()
            return controller.torque(q, v, *(self._rows(elements, x, 1) for x in followed))

        return law

    def _rows(self, elements: np.ndarray, x: np.ndarray, core: int) -> np.ndarray:
        """The rows of these elements; an array without batch axes as it is."""
        if x.ndim == core:
            return x
        whole = np.broadcast_to(x, (*self.batch, *x.shape[x.ndim - core :]))
        return whole.reshape(-1, *whole.shape[len(self.batch) :])[elements]
