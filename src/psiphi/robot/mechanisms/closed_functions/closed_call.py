"""What every function of a closed system has: arrays of any library in, the same out; its derivatives are functions again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import check_count, is_foreign, on_gpu, read_array, real_array
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions import argument_checks
from psiphi.functions.arrays.array_dispatch import enter, is_traced
from psiphi.functions.arrays.function_registry import numbered
from psiphi.functions.differentiable_function import DifferentiableFunction, HasDerivatives

Steps = tuple[tuple[str, tuple[str, ...]], ...]
BY_PARAMETERS = ("jacobian", "jvp", "vjp", "hessian")


def shaped(arg: Argument, value: Any) -> np.ndarray:
    """An argument as an array (..., *shape), or words about it."""
    return real_array(
        arg.name, value, arg.shape, f"give it the shape (..., {', '.join(map(str, arg.shape))})"
    )


class ClosedCall(HasDerivatives["ClosedCall"]):
    """A function of arrays (..., *shape), batch axes broadcast: `answers` for NumPy's, `derived` for its derivatives."""

    system: Any

    def __init__(self, name: str, inputs: Sequence[Argument], outputs: Sequence[Argument]):
        self.name, self.inputs, self.outputs = name, tuple(inputs), tuple(outputs)
        self.number = numbered(self)

    def __repr__(self) -> str:
        return f"<{self.name} of {self.system.name!r}>"

    def __call__(self, *values: Any) -> Any:
        check_count(self.name, values, (arg.name for arg in self.inputs))
        if any(map(is_foreign, values)):
            if any(map(on_gpu, values)) and not any(map(is_traced, values)):
                return self.on_cards(values)
            return enter(
                self.taking(
                    getattr(values[2], "shape", None) or read_array(values[2], None)[0].shape
                ),
                values,
            )
        found = self.answers(values)
        if all(getattr(x, "dtype", None) == np.float32 for x in values):
            found = [np.asarray(x, np.float32) for x in found]
        return found[0] if len(found) == 1 else tuple(found)

    def taking(self, tau: tuple[int, ...]) -> ClosedCall:
        """This function for torques of this shape: of all coordinates, or of the motors alone."""
        raise NotImplementedError

    def on_cards(self, values: Sequence[Any]) -> Any:
        """The results for arrays of a graphics card, where this has a kernel: NaN where the host would look again."""
        argument_checks.on_host(self.name, *values)

    def answers(self, values: Sequence[Any]) -> Sequence[np.ndarray]:
        raise NotImplementedError

    def arrays(self, values: Sequence[Any]) -> tuple[list[np.ndarray], tuple[int, ...]]:
        """The arguments as arrays of the host, and their batch axes."""
        argument_checks.on_host(self.name, *values)
        read = [shaped(arg, value) for arg, value in zip(self.inputs, values, strict=True)]
        leads = [
            x.shape[: x.ndim - len(arg.shape)] for arg, x in zip(self.inputs, read, strict=True)
        ]
        named = {
            f"{arg.name} ({i})": lead
            for i, (arg, lead) in enumerate(zip(self.inputs, leads, strict=True))
        }
        return read, argument_checks.batch_axes(self.name, named)

    @property
    def free(self) -> int:
        """How many numbers of its mechanisms are free: derivatives by "parameters" are taken at those of `system.at`."""
        freed = self.system.robot.freed
        return 0 if freed is None else freed.size

    def beside(self, kind: str) -> tuple[str, ...]:
        return (PARAMETERS,) if self.free and kind in BY_PARAMETERS else ()

    def derived(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        raise StateError(
            f"{self.name} has no {kind} of its own",
            "take vjp or jvp, which have derivatives of every order",
        )


class TracedCall(ClosedCall):
    """A function as one piece of code, `traced()`, differentiated step by step: ((kind, names), ...)."""

    def __init__(self, name: str, system: Any, steps: Steps):
        self.system, self.steps = system, steps
        inputs = [arg for arg in self.code.inputs if arg.name != PARAMETERS]
        words = [f"{kind} by {' and '.join(names)}" for kind, names in steps]
        super().__init__(
            ": ".join([name, *([", ".join(words)] if words else [])]), inputs, self.code.outputs
        )

    def traced(self) -> DifferentiableFunction:
        raise NotImplementedError

    @cached_property
    def code(self) -> DifferentiableFunction:
        return self.differentiated(self.traced())

    def differentiated(self, made: DifferentiableFunction) -> DifferentiableFunction:
        for kind, names in self.steps:
            made = made._derivative(kind, names)
        return made
