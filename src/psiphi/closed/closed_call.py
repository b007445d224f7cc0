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
from psiphi.functions.differentiable import HasDerivatives
from psiphi.sweeps.program import PARAMETERS, Argument

BY_PARAMETERS = ("jacobian", "jvp", "vjp", "hessian")


class ClosedCall(HasDerivatives["ClosedCall"]):
    """A function of arrays (..., *shape), batch axes broadcast: `answers` for NumPy's, `derived` for its derivatives."""

    system: Any

    def __init__(self, name: str, inputs: Sequence[Argument], outputs: Sequence[Argument]):
        self.name, self.inputs, self.outputs = name, tuple(inputs), tuple(outputs)
        self.number = numbered(self)

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

    @property
    def free(self) -> int:
        """How many numbers of its mechanisms are free: derivatives by "parameters" are taken at those of `system.at`."""
        freed = self.system.robot.freed
        return 0 if freed is None else freed.size

    def beside(self, kind: str) -> tuple[str, ...]:
        return (PARAMETERS,) if self.free and kind in BY_PARAMETERS else ()

    def derived(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        raise StateError(f"{self.name} has no {kind} of its own", "take vjp or jvp, which have derivatives of every order")
