"""What every function of a closed system has: arrays of any library in, the same out; its derivatives are functions again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psiphi.arguments import is_foreign, on_card, read
from psiphi.errors import StateError
from psiphi.foreign.entering import enter
from psiphi.foreign.numbering import numbered
from psiphi.functions import guard
from psiphi.sweeps.program import PARAMETERS, Argument
from psiphi.wording import nearest, shown

BY_PARAMETERS = ("jacobian", "jvp", "vjp", "hessian")


class ClosedCall:
    """A function of arrays (..., *shape), batch axes broadcast: `answers` for NumPy's, `derived` for its derivatives."""

    system: Any

    def __init__(self, name: str, inputs: Sequence[Argument], outputs: Sequence[Argument]):
        self.name, self.inputs, self.outputs = name, tuple(inputs), tuple(outputs)
        self.number = numbered(self)
        self._made: dict[Any, ClosedCall] = {}

    def __call__(self, *values: Any) -> Any:
        if len(values) != len(self.inputs):
            names = ", ".join(arg.name for arg in self.inputs)
            raise StateError(f"{self.name}: {len(values)} arguments came, expected ({names})", "give them in this order")
        if any(map(is_foreign, values)):
            if any(map(on_card, values)):
                return self.on_cards(values)
            return enter(self.taking(getattr(values[2], "shape", None) or read(values[2], None)[0].shape), values)
        found = self.answers(values)
        if all(getattr(x, "dtype", None) == np.float32 for x in values):
            found = [np.asarray(x, np.float32) for x in found]
        return found[0] if len(found) == 1 else tuple(found)

    def taking(self, tau: tuple[int, ...]) -> ClosedCall:
        """This function for torques of this shape: of all coordinates, or of the motors alone."""
        raise NotImplementedError

    def on_cards(self, values: Sequence[Any]) -> Any:
        """The results for arrays of a graphics card, where this has a kernel: NaN where the host would look again."""
        guard.on_host(self.name, *values)

    def answers(self, values: Sequence[Any]) -> Sequence[np.ndarray]:
        raise NotImplementedError

    # -- its derivatives ---------------------------------------------------------------------------------------------------

    def jacobian(self, *names: str) -> ClosedCall:
        """f(arguments) -> d result / d argument, (..., *shape, n) each; of q n = nv, in its tangent space."""
        return self._derivative("jacobian", names)

    def jvp(self, *names: str) -> ClosedCall:
        """f(arguments, changes) -> (results, their changes)."""
        return self._derivative("jvp", names)

    def vjp(self, *names: str) -> ClosedCall:
        """f(arguments, weights) -> (results, gradients of their weighted sum, one a name)."""
        return self._derivative("vjp", names)

    def hessian(self, *names: str) -> ClosedCall:
        """f(arguments, weights) -> (..., n, n): the derivative of the gradient that `vjp` gives, all names in a row."""
        return self._derivative("hessian", names)

    def pushforward(self, *names: str) -> ClosedCall:
        """f(arguments, changes) -> changes of the results: as `jvp`, but by the nq numbers of q, and without the values."""
        return self._derivative("pushforward", names)

    def pullback(self, *names: str) -> ClosedCall:
        """f(arguments, weights) -> gradients, one a name: as `vjp`, but by the nq numbers of q, and without the values."""
        return self._derivative("pullback", names)

    @property
    def free(self) -> int:
        """How many numbers of its mechanisms are free: derivatives by "parameters" are taken at those of `system.at`."""
        freed = self.system.robot.freed
        return 0 if freed is None else freed.size

    def derived(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        raise StateError(f"{self.name} has no {kind} of its own", "take vjp or jvp, which have derivatives of every order")

    def _derivative(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        inputs = [arg.name for arg in self.inputs]
        known = [*inputs, *((PARAMETERS,) if self.free and kind in BY_PARAMETERS else ())]
        for name in names:
            if not isinstance(name, str) or name not in known:
                raise StateError(f"{self.name}: {kind} by {shown(name)}, which is no argument", nearest(name, known))
        if len(set(names)) < len(names):
            raise StateError(f"{self.name}: {kind} by {shown(names)}, one of them twice", "name every argument once")
        key = kind, names or tuple(dict.fromkeys(inputs))
        if key not in self._made:
            self._made[key] = self.derived(*key)
        return self._made[key]
