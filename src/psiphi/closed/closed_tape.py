"""Derivatives of derivatives of closed systems: of the traced code of forward dynamics.

Where no row follows from others the solve with Omega is a sum of products like any other, and has derivatives of every order.
Where rows follow in every posture, open or closed (a plane loop of hinges), accelerations are those of the rows that are left,
and the code that leaves the others out (`loose.py`) has their derivatives; so have the forces of least norm (`circuits.least`).
Where rows follow only because the mechanism is closed, the second derivative along a straight change depends on how both
continue off the constraints: it is refused. The same code, with no derivative or some, is what runs on graphics cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi.arguments import read
from psiphi.closed import circuits, implicit
from psiphi.closed.closed_call import ClosedCall, Steps, TracedCall, shaped
from psiphi.closed.singular import STRAIN
from psiphi.closed.wiring import Circuit
from psiphi.errors import SingularError, StateError
from psiphi.functions import guard
from psiphi.functions.differentiable import Differentiable, along_units, in_rows
from psiphi.runtime.launching import looked_at
from psiphi.sweeps.program import Argument

if TYPE_CHECKING:
    from psiphi.closed.closed_function import ClosedFunction


class TapeDerivative(TracedCall):
    """The function of a closed system, or a derivative of it."""

    def __init__(self, of: ClosedFunction, steps: Steps):
        self.of = of
        super().__init__(of.name, of.system, steps)

    def traced(self) -> Differentiable:
        system, of = self.system, self.of
        wanted, motors = of.outputs[0].name, system.actuated.tolist() if of.motors else None
        loose = self.rank > 0 or not (self.steps or of.is_forces)  # accelerations are unique where rows follow from others

        def made() -> Circuit:
            whole = system._chosen(of.frames, of.axes, loose).circuit
            return circuits.alone(circuits.least(whole, system.algebra) if loose and of.is_forces else whole, wanted, motors)

        return system._function(("alone", wanted, of.frames, of.axes, of.motors, loose), made, Differentiable)

    @property
    def rank(self) -> int:
        """How many rows there are to keep, where the others are left out; 0 where none may be."""
        return self.system._lasting_rank if self.steps or not self.of.is_forces else 0

    def taking(self, tau: tuple[int, ...]) -> ClosedCall:
        of = self.of.taking(tau)
        return self if of is self.of else TapeDerivative(of, self.steps)

    def derived(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        if kind in ("jacobian", "hessian"):
            return super().derived(kind, names)
        return TapeDerivative(self.of, (*self.steps, (kind, names)))

    def answers(self, values: Sequence[Any]) -> list[np.ndarray]:
        guard.on_host(self.name, *values)
        if (fitting := self.taking(read(values[2], None)[0].shape)) is not self:
            return list(fitting.answers(values))
        own, (arrays, lead) = len(self.of.inputs), self.arrays(values)
        if not self.system._batch(lead):
            self.check(arrays[:own])
        found = self.system._run(self.code, (*arrays[:own], *self.system.robot._more, *arrays[own:]))
        found = list(found) if isinstance(found, tuple) else [found]
        if not self.rank:
            return found
        good = implicit.ranks(self.system.constraint_jacobian(arrays[0])) == self.rank  # at a singularity the rank is less
        return [
            np.where(np.expand_dims(good, (*range(-len(arg.shape), 0),)), x, np.nan)
            for arg, x in zip(self.outputs, found, strict=True)
        ]

    def on_cards(self, values: Sequence[Any]) -> Any:
        if (fitting := self.taking(tuple(values[2].shape))) is not self:
            return fitting.on_cards(values)
        if self.steps or self.of.is_forces:
            self.check_rows()
        looked_at(self.name, self.inputs, values)
        own = len(self.of.inputs)
        return self.code(*values[:own], *self.system.robot._more, *values[own:])

    def check_rows(self) -> None:
        """Refuse constraints some of whose rows follow from others wherever one looks: every element would be NaN."""
        if self.system._has_spare_rows:
            cause = (
                f"{self.name}: rows of the constraints of {self.system.name} follow from others, and that is solved on the host"
            )
            raise StateError(cause, "give arrays of the host; accelerations are found on graphics cards, too")

    def check(self, values: list[np.ndarray]) -> None:
        """Refuse a single state where the solve with Omega does not have all its digits."""
        state, system = self.of.read(values, ())[0], self.system
        if self.rank:
            found = implicit.ranks(system.constraint_jacobian(state[0])) == self.rank
        else:
            found = system._call(system._dynamics("", self.of.frames, self.of.axes), state)[3] < STRAIN
        if not np.ndim(found) and not found and all(np.isfinite(x).all() for x in state):
            raise SingularError(
                f"{self.name}: no second derivative here: constraints follow from others, or the mechanism is singular",
                "use a kind of loop without rows to spare, or take differences of first derivatives along the constraints",
            )


class ClosedHessian(ClosedCall):
    """Second derivatives of the weighted sum of the results: the change of its gradient, along unit vectors in one batch."""

    def __init__(self, of: ClosedFunction, names: tuple[str, ...]):
        self.of, self.names, self.system = of, names, of.system
        self.change = TapeDerivative(of, (("vjp", names), ("jvp", names)))
        self.by = self.change.inputs[len(of.inputs) + 1 :]
        n = sum(arg.size for arg in self.by)
        inputs = self.change.inputs[: len(of.inputs) + 1]
        super().__init__(f"{of.name}: hessian by {', '.join(names)}", inputs, (Argument("hessian", (n, n)),))

    def taking(self, tau: tuple[int, ...]) -> ClosedCall:
        of = self.of.taking(tau)
        return self if of is self.of else of.hessian(*self.names)

    def answers(self, values: Sequence[Any]) -> list[np.ndarray]:
        guard.on_host(self.name, *values)
        if (fitting := self.taking(read(values[2], None)[0].shape)) is not self:
            return list(fitting.answers(values))
        self.change.check(list(values[: len(self.of.inputs)]))
        arrays = [shaped(arg, value) for arg, value in zip(self.inputs, values, strict=True)]
        return [in_rows(self._along().answers(along_units(self.inputs, arrays, self.by))[-len(self.names) :], self.by)]

    def _along(self) -> TapeDerivative:
        """`change` for arrays with one more batch axis, behind the others: parameters with batch axes get it, too."""
        of, system = self.of, self.of.system._over_samples()
        return self.change if system is of.system else TapeDerivative(of.again(system), self.change.steps)
