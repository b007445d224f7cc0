"""A compiled function that checks its arguments and has derivatives, which are such functions, too.

>>> import numpy as np, psiphi as pp
>>> robot = pp.robots.puma560()
>>> f = robot.function("forward_dynamics")
>>> q, v, tau = robot.random(seed=0), np.ones(6), np.zeros(6)
>>> da_dq, da_dv = f.jacobian("q", "v")(q, v, tau)
>>> a, da = f.jvp("q")(q, v, tau, np.eye(6)[2])
>>> bool(np.allclose(da, da_dq[:, 2]) and np.allclose(a, robot.forward_dynamics(q, v, tau)))
True
>>> a, q_bar = f.vjp("q")(q, v, tau, np.ones(6))
>>> bool(np.allclose(q_bar, da_dq.sum(axis=0)))
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import numpy as np

from psiphi._util.array_types import AnyArray, DType, Numbers, Out
from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import check_count, flag, is_foreign, is_lazy
from psiphi.compiler.autodiff.equation_derivatives import Derivative
from psiphi.compiler.equations import CompileRequest
from psiphi.compiler.passes import is_large
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions import argument_checks, scalar_fast_path
from psiphi.functions.arrays.dask_arrays import refuse_lazy
from psiphi.functions.compiled_function import Function, QuantityRequest
from psiphi.functions.export import array_operations, casadi_export, sympy_export

F = TypeVar("F")
MAX_HESSIAN = 60_000  # flops of the value times columns: larger Hessians are computed by columns


class HasDerivatives(Generic[F]):
    """A function of named arguments with derivatives, which are functions of type F.

    `make_derivative` makes each once.
    """

    name: str
    inputs: Sequence[Argument]

    def jacobian(self, *names: str) -> F:
        """d result / d argument, (..., *shape, n): by result, then by name. For q, n = nv: the
        derivative is in its tangent space."""
        return self.derivative_by("jacobian", names)

    def jvp(self, *names: str) -> F:
        """f(arguments, changes) -> (results, their changes): a directional derivative."""
        return self.derivative_by("jvp", names)

    def vjp(self, *names: str) -> F:
        """f(arguments, weights) -> (results, gradients of their weighted sum, one per name)."""
        return self.derivative_by("vjp", names)

    def hessian(self, *names: str) -> F:
        """f(arguments, weights) -> (..., n, n): the derivative of the gradient of `vjp`, with all
        names in a row."""
        return self.derivative_by("hessian", names)

    def pushforward(self, *names: str) -> F:
        """f(arguments, changes) -> changes of the results: like `jvp` without the values, and with
        respect to the nq numbers of q."""
        return self.derivative_by("pushforward", names)

    def pullback(self, *names: str) -> F:
        """f(arguments, weights) -> gradients, one per name: like `vjp` without the values, and with
        respect to the nq numbers of q."""
        return self.derivative_by("pullback", names)

    def make_derivative(self, kind: str, names: tuple[str, ...]) -> F:
        """A new derivative with respect to some arguments."""
        raise NotImplementedError

    def extra_names(self, kind: str) -> tuple[str, ...]:
        """Names besides the arguments with respect to which a derivative can be taken."""
        return ()

    def derivative_by(self, kind: str, names: tuple[str, ...]) -> F:
        """The derivative of a kind ("jacobian", "jvp", ...) with respect to `names`; all if ()."""
        made = self.__dict__.setdefault("_derivatives", {})
        with suppress(KeyError, TypeError):  # new, or names that cannot be hashed
            return made[kind, names]
        inputs = [arg.name for arg in self.inputs]
        known = [*inputs, *self.extra_names(kind)]
        for name in names:
            if not isinstance(name, str) or name not in known:
                raise StateError(
                    f"{self.name}: {kind} with respect to {shown(name)}, which is not an argument",
                    nearest(name, known),
                )
        if len(set(names)) < len(names):
            raise StateError(
                f"{self.name}: {kind} with respect to {shown(names)}, with an argument twice",
                "name each argument once",
            )
        key = kind, names or tuple(dict.fromkeys(inputs))
        if key not in made:
            made[key] = self.make_derivative(*key)
        return made[key]


class Exportable:
    """A function that can be exported to other libraries, as their own operations."""

    @property
    def compiled_form(self) -> DifferentiableFunction:
        """The compiled function, whose tape is exported."""
        raise NotImplementedError

    def symbolic(self, parameters: bool = False) -> Any:
        """This function as SymPy expressions: `Robot.symbolic`."""
        return sympy_export.symbolic(self.compiled_form, flag("parameters", parameters))

    def to_casadi(self) -> Any:
        """This function as a `casadi.Function`: `Robot.to_casadi`."""
        return casadi_export.to_casadi(self.compiled_form)

    def to_jax(self) -> Any:
        """This function in JAX's own operations: `Robot.to_jax`."""
        return array_operations.to_jax(self.compiled_form)

    def to_torch(self) -> Any:
        """This function in torch's own operations: `Robot.to_torch`."""
        return array_operations.to_torch(self.compiled_form)


class DifferentiableFunction(HasDerivatives["DifferentiableFunction"], Exportable, Function):
    """A function of arrays (..., *shape); batch axes broadcast. Changes of q are tangent vectors,
    like v."""

    # for plain vectors of one state; installed by the first such call; None falls through
    fast_path: scalar_fast_path.FastPath = staticmethod(scalar_fast_path.no_fast_path)

    def __call__(
        self,
        *values: Any,
        parameters: Numbers | AnyArray | None = None,
        out: Out = None,
        dtype: DType = None,
    ) -> Any:
        if parameters is not None:
            values = argument_checks.insert_parameters(self.name, self.inputs, values, parameters)
        result = self.fast_path(*values) if out is None and dtype is None else None
        return self._checked_call(*values, out=out, dtype=dtype) if result is None else result

    def _checked_call(self, *values: Any, out: Out = None, dtype: DType = None) -> Any:
        """The general path: arguments are checked and converted to arrays."""
        source, name = self.source, self.source.quantity.name
        check_count(name, values, (arg.name for arg in source.inputs))
        arrays: Any = values
        if any(type(value) is not np.ndarray for value in values):
            if any(map(is_foreign, values)):
                return argument_checks.call_foreign(self, values, out, dtype)
            arrays = argument_checks.plain_arrays(source.model, name, source.inputs, values)
        for arg, array in zip(source.inputs, arrays, strict=True):
            if arg.per_joint == "q" and arg.name != "q_dot":
                argument_checks.check_single_configuration(source.model, name, array)
        argument_checks.check_dtype(name, dtype)
        if out is not None and not argument_checks.are_plain_outputs(out):
            out = argument_checks.matching_out(source.model, name, source, arrays, out)
        try:
            result = self.run(
                arrays,
                out if out is not None or dtype is None else (None,) * len(source.outputs),
                dtype,
            )
            scalar_fast_path.install_fast_path(self, values)
            return result
        except (ValueError, TypeError, NotImplementedError) as error:
            argument_checks.raise_state_error(source.model, name, source, arrays, out, dtype, error)

    @cached_property
    def needs_no_check(self) -> bool:
        """Whether arrays of the right dtype and shape need no further check (zero quaternions)."""
        return not self.source.model.quaternions

    @property
    def compiled_form(self) -> DifferentiableFunction:
        return self

    def make_derivative(self, kind: str, names: tuple[str, ...]) -> DifferentiableFunction:
        of = self.source.quantity
        quantity = QuantityRequest(f"{of.name}: {kind} by {', '.join(names)}", of.frames, of.axes)
        request = Derivative(self.source.request, kind, names)
        function_type = (
            COLUMN_CLASSES.get(kind, DifferentiableFunction)
            if is_large(self.source.model) or self._is_long(request)
            else DifferentiableFunction
        )
        return function_type(quantity, request, self.source.target)

    def _is_long(self, request: Derivative) -> bool:
        """Whether a Hessian by many parameters is too long for straight-line code: LLVM needs a
        minute for 300 000 operations."""
        if request.kind != "hessian" or PARAMETERS not in request.names:
            return False
        return self.flops * request.arguments()[1][0].shape[-1] > MAX_HESSIAN


def traced_function(
    functions: dict[tuple, DifferentiableFunction],
    name: str,
    make: Callable[[], CompileRequest],
    *more: str,
) -> DifferentiableFunction:
    """A function whose request `make()` makes its own code. It is made once, and stored in
    `functions`; `more` is a further part of its name in the cache."""
    key = name, more, ""
    if key not in functions:
        functions[key] = DifferentiableFunction(QuantityRequest(name, more), make())
    return functions[key]


def with_unit_vectors(
    inputs: Sequence[Argument],
    arrays: Sequence[np.ndarray],
    by: Sequence[Argument],
    dtype: DType = float,
) -> list:
    """The arrays with one more batch axis, followed by unit vectors along that axis: those of the
    changes `by`, all in a row."""
    n = sum(arg.size for arg in by)
    parts = np.split(np.eye(n, dtype=dtype), np.cumsum([arg.size for arg in by])[:-1], axis=-1)
    repeated = [
        np.expand_dims(x, x.ndim - len(arg.shape)) for x, arg in zip(arrays, inputs, strict=True)
    ]
    return [*repeated, *(x.reshape(n, *arg.shape) for x, arg in zip(parts, by, strict=True))]


def stack_columns(results: Sequence[np.ndarray], like: Sequence[Argument]) -> np.ndarray:
    """The results along n unit vectors, (..., n, *shape) each, as one matrix (..., size, n)."""
    rows = [
        x.reshape(*x.shape[: x.ndim - len(arg.shape)], arg.size)
        for x, arg in zip(results, like, strict=True)
    ]
    return np.concatenate(rows, axis=-1).swapaxes(-1, -2)


class DerivativeByColumns(DifferentiableFunction):
    """A matrix that is too large for straight-line code: its products with all unit vectors, as one
    batch. If the robot is not large, Dask and the GPU use straight-line code nevertheless."""

    def _request(self) -> Derivative:
        return cast("Derivative", self.source.request)

    def _column_functions(self) -> list[DifferentiableFunction]:
        """The functions that compute products with vectors, made once."""
        made = self.__dict__.setdefault("_along", [])
        if not made:
            made += [
                DifferentiableFunction(
                    QuantityRequest(f"{self.name}, along {', '.join(request.names)}"),
                    request,
                    self.source.target,
                )
                for request in self._column_derivatives()
            ]
        return made

    def _column_derivatives(self) -> list[Derivative]:
        """The derivatives that compute products with vectors."""
        raise NotImplementedError

    def _gather_columns(self, columns: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
        """The results, from those of each product along its unit vectors, (..., n, *shape)."""
        raise NotImplementedError

    def prepare(self, char: str = "d", single: bool | None = None) -> None:
        for product in self._column_functions():
            product.prepare(char, single)

    def scalar_call(self, fallback: Callable | None = None) -> Any:
        return fallback

    def run(self, values: Sequence[Any], out: Out = None, dtype: DType = None) -> Any:
        if not is_large(self.source.model) and any(
            type(value) is not np.ndarray for value in values
        ):
            return Function.run(self, values, out, dtype)
        argument_checks.require_numpy(self.name, *values)
        if any(map(is_lazy, values)):
            refuse_lazy(self.name, "matrices of large robots are computed by columns", *values)
        arrays = [np.asarray(value) for value in values]
        targets = cast(
            "tuple[np.ndarray | None, ...]",
            out if isinstance(out, tuple) else (out,) * len(self.outputs),
        )
        kind = np.dtype(dtype or np.result_type(np.float32, *(x.dtype for x in arrays)))
        columns = []
        for product in self._column_functions():
            by = product.inputs[len(self.inputs) :]
            arguments = with_unit_vectors(self.inputs, arrays, by, kind)
            columns.append(product.run(arguments, (None,) * len(product.outputs), kind))
        results = list(map(argument_checks.copy_into, targets, self._gather_columns(columns)))
        return tuple(results) if len(results) > 1 else results[0]


class JacobianByColumns(DerivativeByColumns):
    """A Jacobian, argument by argument, from its jvp."""

    def _column_derivatives(self) -> list[Derivative]:
        of = self._request()
        return [Derivative(of.request, "jvp", (name,)) for name in of.names]

    def _gather_columns(self, columns: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
        results = self._request().request.arguments()[1]
        n = len(results)
        return [
            np.moveaxis(by_argument[n + i], -1 - len(arg.shape), -1)
            for i, arg in enumerate(results)
            for by_argument in columns
        ]


class HessianByColumns(DerivativeByColumns):
    """A Hessian, from the jvp of the gradient."""

    def _column_derivatives(self) -> list[Derivative]:
        of = self._request()
        return [Derivative(Derivative(of.request, "vjp", of.names), "jvp", of.names)]

    def _gather_columns(self, columns: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
        bars = self._column_functions()[0].outputs[-len(self._request().names) :]
        return [stack_columns(columns[0][-len(bars) :], bars)]


COLUMN_CLASSES = {"jacobian": JacobianByColumns, "hessian": HessianByColumns}
