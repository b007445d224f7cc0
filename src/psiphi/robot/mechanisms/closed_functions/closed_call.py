"""Base classes of the functions of a closed system.

They take and return arrays of any library; their derivatives are such functions again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from psiphi._util.array_types import AnyArray, Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import check_count, is_foreign, on_gpu, read_array, real_array
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions import argument_checks
from psiphi.functions.arrays.array_dispatch import dispatch, is_tracer
from psiphi.functions.arrays.function_registry import ArrayFunction, register
from psiphi.functions.differentiable_function import DifferentiableFunction, HasDerivatives

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.system import System

Steps = tuple[tuple[str, tuple[str, ...]], ...]
BY_PARAMETERS = ("jacobian", "jvp", "vjp", "hessian")


def read_argument(arg: Argument, value: Numbers) -> np.ndarray:
    """An argument as an array (..., *shape), checked."""
    return real_array(
        arg.name, value, arg.shape, f"give it the shape (..., {', '.join(map(str, arg.shape))})"
    )


class ClosedCall(HasDerivatives["ClosedCall"]):
    """A function of arrays (..., *shape); batch axes broadcast."""

    system: System

    def __init__(self, name: str, inputs: Sequence[Argument], outputs: Sequence[Argument]):
        self.name, self.inputs, self.outputs = name, tuple(inputs), tuple(outputs)
        self.number = register(self)

    def __repr__(self) -> str:
        return f"<{self.name} of {self.system.name!r}>"

    def __call__(self, *values: Numbers | AnyArray) -> Any:
        check_count(self.name, values, (arg.name for arg in self.inputs))
        if any(map(is_foreign, values)):
            if any(map(on_gpu, values)) and not any(map(is_tracer, values)):
                return self.run_on_gpu(values)
            shape = getattr(values[2], "shape", None) or read_array(values[2], None)[0].shape
            # `run` of the protocol is for GPU arrays, which do not come here
            return dispatch(cast("ArrayFunction", self.for_torque_shape(shape)), values)
        results = self.evaluate_host(values)
        if all(getattr(x, "dtype", None) == np.float32 for x in values):
            results = [np.asarray(x, np.float32) for x in results]
        return results[0] if len(results) == 1 else tuple(results)

    def for_torque_shape(self, shape: tuple[int, ...]) -> ClosedCall:
        """This function for tau of a shape: (..., nv), or (..., na) of the motors alone."""
        raise NotImplementedError

    def run_on_gpu(self, values: Sequence[Any]) -> Any:
        """The results for GPU arrays, if there is a kernel; NaN where the CPU needs a fallback."""
        argument_checks.require_numpy(self.name, *values)

    def evaluate_host(self, values: Sequence[Any]) -> Sequence[np.ndarray]:
        """The results for NumPy arrays."""
        raise NotImplementedError

    def read_arrays(self, values: Sequence[Any]) -> tuple[list[np.ndarray], tuple[int, ...]]:
        """The arguments as NumPy arrays, and their batch axes."""
        argument_checks.require_numpy(self.name, *values)
        arrays = [read_argument(arg, value) for arg, value in zip(self.inputs, values, strict=True)]
        batches = {
            f"{arg.name} ({i})": x.shape[: x.ndim - len(arg.shape)]
            for i, (arg, x) in enumerate(zip(self.inputs, arrays, strict=True))
        }
        return arrays, argument_checks.batch_axes(self.name, batches)

    @property
    def free_count(self) -> int:
        """The number of free parameters. Derivatives by "parameters" are taken at the values that
        `system.at` has bound."""
        freed = self.system.robot.freed
        return 0 if freed is None else freed.size

    def extra_names(self, kind: str) -> tuple[str, ...]:
        return (PARAMETERS,) if self.free_count and kind in BY_PARAMETERS else ()

    def make_derivative(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        raise StateError(
            f"{self.name} has no {kind}", "use vjp or jvp, which have derivatives of every order"
        )


class TracedCall(ClosedCall):
    """A function on one tape, `traced()`, and its derivatives by steps ((kind, names), ...)."""

    def __init__(self, name: str, system: System, steps: Steps):
        self.system, self.steps = system, steps
        inputs = [arg for arg in self.code.inputs if arg.name != PARAMETERS]
        texts = [f"{kind} by {' and '.join(names)}" for kind, names in steps]
        super().__init__(
            ": ".join([name, *([", ".join(texts)] if texts else [])]), inputs, self.code.outputs
        )

    def traced(self) -> DifferentiableFunction:
        """The function without derivatives."""
        raise NotImplementedError

    @cached_property
    def code(self) -> DifferentiableFunction:
        """The function after all steps."""
        return self.differentiated(self.traced())

    def differentiated(self, function: DifferentiableFunction) -> DifferentiableFunction:
        """`function` after all steps."""
        for kind, names in self.steps:
            function = function.derivative_by(kind, names)
        return function
