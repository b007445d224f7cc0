"""A compiled function with values for its free parameters: `light.at(p).function(name)`."""

from __future__ import annotations

from typing import Any

from psiphi._util.array_types import AnyArray, Numbers
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.functions.argument_checks import insert_parameters
from psiphi.functions.differentiable_function import DifferentiableFunction


class BoundFunction:
    """A function whose argument `parameters` has a value. Its derivatives have the same value.

    `parameters=` of a call replaces the value, and so does a full list of arguments. Other
    attributes (`ufunc`, `flops`, `explain`, ...) are those of the function that is bound, which
    takes the parameters as an argument.

    >>> import numpy as np, psiphi as pp
    >>> light = pp.load("ur5").free("mass")
    >>> heavy = light.at(2.0 * light.parameters())
    >>> q, v, tau = light.random(seed=0), np.zeros(6), np.zeros(6)
    >>> a = heavy.function("forward_dynamics")(q, v, tau)
    >>> bool(np.array_equal(a, heavy.forward_dynamics(q, v, tau)))
    True
    >>> heavy.function("forward_dynamics").jacobian("tau")(q, v, tau).shape
    (6, 6)
    """

    def __init__(self, function: DifferentiableFunction, parameters: Numbers | AnyArray):
        self.unbound, self.parameters = function, parameters

    def __call__(
        self, *values: Any, parameters: Numbers | AnyArray | None = None, **options: Any
    ) -> Any:
        if parameters is not None or len(values) < len(self.unbound.inputs):
            given = self.parameters if parameters is None else parameters
            values = insert_parameters(self.unbound.name, self.unbound.inputs, values, given)
        return self.unbound(*values, **options)

    def derivative_by(self, kind: str, names: tuple[str, ...]) -> BoundFunction:
        """The derivative of a kind with respect to `names`; with respect to all if ()."""
        if not names:
            names = tuple(arg.name for arg in self.unbound.inputs if arg.name != PARAMETERS)
        return BoundFunction(self.unbound.derivative_by(kind, names), self.parameters)

    def jacobian(self, *names: str) -> BoundFunction:
        """`DifferentiableFunction.jacobian`; without names, by all arguments but the parameters."""
        return self.derivative_by("jacobian", names)

    def jvp(self, *names: str) -> BoundFunction:
        """`DifferentiableFunction.jvp`, likewise."""
        return self.derivative_by("jvp", names)

    def vjp(self, *names: str) -> BoundFunction:
        """`DifferentiableFunction.vjp`, likewise."""
        return self.derivative_by("vjp", names)

    def hessian(self, *names: str) -> BoundFunction:
        """`DifferentiableFunction.hessian`, likewise."""
        return self.derivative_by("hessian", names)

    def pushforward(self, *names: str) -> BoundFunction:
        """`DifferentiableFunction.pushforward`, likewise."""
        return self.derivative_by("pushforward", names)

    def pullback(self, *names: str) -> BoundFunction:
        """`DifferentiableFunction.pullback`, likewise."""
        return self.derivative_by("pullback", names)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.unbound, self.parameters)

    def __repr__(self) -> str:
        return f"{self.unbound!r} with parameters"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "unbound":
            raise AttributeError(name)
        return getattr(self.unbound, name)
