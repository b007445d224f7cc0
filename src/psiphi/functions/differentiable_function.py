"""A compiled function that can be called by itself, and has derivatives: each is such a function again.

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
from typing import Any, Generic, TypeVar

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import as_many, flag, is_foreign, is_lazy
from psiphi.compiler.autodiff.equation_derivatives import Derivative
from psiphi.compiler.passes import Traceable, is_large
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions import argument_checks, scalar_fast_path
from psiphi.functions.arrays.dask_arrays import refuse_lazy
from psiphi.functions.compiled_function import Function, QuantityRequest
from psiphi.functions.export import array_operations, casadi_export, sympy_export

Made = TypeVar("Made")
LONG = 60_000  # operations of a value, times columns of a Hessian by parameters, up to which it is written out


class HasDerivatives(Generic[Made]):
    """A function of named arguments that makes its derivatives by `derived`, each once; they are such functions again."""

    name: str
    inputs: Any

    def jacobian(self, *names: str) -> Made:
        """d result / d argument, (..., *shape, n) each: by result, then by name; of q n = nv, in its tangent space."""
        return self._derivative("jacobian", names)

    def jvp(self, *names: str) -> Made:
        """f(arguments, changes) -> (results, their changes): a directional derivative."""
        return self._derivative("jvp", names)

    def vjp(self, *names: str) -> Made:
        """f(arguments, weights) -> (results, gradients of the weighted sum of the results, one a name)."""
        return self._derivative("vjp", names)

    def hessian(self, *names: str) -> Made:
        """f(arguments, weights) -> (..., n, n): the derivative of the gradient that `vjp` gives, all names in a row."""
        return self._derivative("hessian", names)

    def pushforward(self, *names: str) -> Made:
        """f(arguments, changes) -> changes of the results: as `jvp`, but by the nq numbers of q, and without the values."""
        return self._derivative("pushforward", names)

    def pullback(self, *names: str) -> Made:
        """f(arguments, weights) -> gradients, one a name: as `vjp`, but by the nq numbers of q, and without the values."""
        return self._derivative("pullback", names)

    def derived(self, kind: str, names: tuple[str, ...]) -> Made:
        """A derivative by some arguments, made anew."""
        raise NotImplementedError

    def beside(self, kind: str) -> tuple[str, ...]:
        """What else a derivative may be taken by, that is no argument."""
        return ()

    def _derivative(self, kind: str, names: tuple[str, ...]) -> Made:
        made = self.__dict__.setdefault("_derivatives", {})
        with suppress(KeyError, TypeError):  # the first time, or what is no name
            return made[kind, names]
        inputs = [arg.name for arg in self.inputs]
        known = [*inputs, *self.beside(kind)]
        for name in names:
            if not isinstance(name, str) or name not in known:
                raise StateError(
                    f"{self.name}: {kind} by {shown(name)}, which is no argument",
                    nearest(name, known),
                )
        if len(set(names)) < len(names):
            raise StateError(
                f"{self.name}: {kind} by {shown(names)}, one of them twice",
                "name every argument once",
            )
        key = kind, names or tuple(dict.fromkeys(inputs))
        if key not in made:
            made[key] = self.derived(*key)
        return made[key]


class Exportable:
    """A function that other libraries may have in their own operations; `swept` is its compiled form, which has one tape."""

    @property
    def swept(self) -> DifferentiableFunction:
        raise NotImplementedError

    def symbolic(self, parameters: bool = False) -> Any:
        """This function as SymPy expressions: `Robot.symbolic`."""
        return sympy_export.symbolic(self.swept, flag("parameters", parameters))

    def to_casadi(self) -> Any:
        """This function as a `casadi.Function`: `Robot.to_casadi`."""
        return casadi_export.to_casadi(self.swept)

    def to_jax(self) -> Any:
        """This function in JAX's own operations: `Robot.to_jax`."""
        return array_operations.to_jax(self.swept)

    def to_torch(self) -> Any:
        """This function in torch's own operations: `Robot.to_torch`."""
        return array_operations.to_torch(self.swept)


class DifferentiableFunction(HasDerivatives["DifferentiableFunction"], Exportable, Function):
    """A function of arrays (..., *shape), batch axes broadcast; changes of q are tangent vectors, as v is."""

    at_once: Any = staticmethod(
        scalar_fast_path.nothing
    )  # one state of plain vectors, after the first such call; None of all else

    def __call__(
        self, *values: Any, parameters: Any = None, out: Any = None, dtype: Any = None
    ) -> Any:
        if parameters is not None:
            values = argument_checks.with_parameters(self.name, self.inputs, values, parameters)
        result = self.at_once(*values) if out is None and dtype is None else None
        return self._careful(*values, out=out, dtype=dtype) if result is None else result

    def _careful(self, *values: Any, out: Any = None, dtype: Any = None) -> Any:
        """Whatever reads as arrays, or words about it."""
        source, name = self.source, self.source.request.name
        as_many(name, values, (arg.name for arg in source.inputs))
        arrays: Any = values
        if any(type(value) is not np.ndarray for value in values):
            if any(map(is_foreign, values)):
                return argument_checks.entered(self, values, out, dtype)
            arrays = argument_checks.plain(source.model, name, source.inputs, values)
        for arg, array in zip(source.inputs, arrays, strict=True):
            if arg.per_joint == "q" and arg.name != "q_dot":
                argument_checks.check_upright(source.model, name, array)
        argument_checks.check_dtype(name, dtype)
        if out is not None and not argument_checks.are_plain_rooms(out):
            out = argument_checks.fitting_out(source.model, name, source, arrays, out)
        try:
            result = self.run(
                arrays,
                out if out is not None or dtype is None else (None,) * len(source.outputs),
                dtype,
            )
            scalar_fast_path.quicken(self, values)
            return result
        except (ValueError, TypeError, NotImplementedError) as error:
            argument_checks.retell(source.model, name, source, arrays, out, dtype, error)

    @cached_property
    def needs_no_check(self) -> bool:
        """Whether arrays of the right kinds and shapes need no further look, as for quaternions of zeros."""
        return not self.source.model.quaternions

    @property
    def swept(self) -> DifferentiableFunction:
        return self

    def derived(self, kind: str, names: tuple[str, ...]) -> DifferentiableFunction:
        request = self.source.request
        named = QuantityRequest(
            f"{request.name}: {kind} by {', '.join(names)}", request.frames, request.axes
        )
        asked = Derivative(self.source.asked, kind, names)
        by = (
            BY_COLUMNS.get(kind, DifferentiableFunction)
            if is_large(self.source.model) or self._is_long(asked)
            else DifferentiableFunction
        )
        return by(named, asked, self.source.target)

    def _is_long(self, asked: Derivative) -> bool:
        """Whether a Hessian by many parameters is too long to be written out: LLVM takes a minute for 300 000 operations."""
        if asked.kind != "hessian" or PARAMETERS not in asked.names:
            return False
        return self.flops * asked.arguments()[1][0].shape[-1] > LONG


def ready(
    functions: dict[tuple, DifferentiableFunction],
    name: str,
    make: Callable[[], Traceable],
    *more: str,
) -> DifferentiableFunction:
    """A function that stands ready as code, made once, among those of a robot; `more` is what else names it in the cache."""
    key = name, more, ""
    if key not in functions:
        functions[key] = DifferentiableFunction(QuantityRequest(name, more), make())
    return functions[key]


def along_units(
    inputs: Sequence[Argument],
    arrays: Sequence[np.ndarray],
    by: Sequence[Argument],
    kind: Any = float,
) -> list:
    """The arrays with one more batch axis and, along it, the unit vectors of the changes `by`, all in a row."""
    n = sum(arg.size for arg in by)
    parts = np.split(np.eye(n, dtype=kind), np.cumsum([arg.size for arg in by])[:-1], axis=-1)
    spread = [
        np.expand_dims(x, x.ndim - len(arg.shape)) for x, arg in zip(arrays, inputs, strict=True)
    ]
    return [*spread, *(x.reshape(n, *arg.shape) for x, arg in zip(parts, by, strict=True))]


def in_rows(found: Sequence[np.ndarray], like: Sequence[Argument]) -> np.ndarray:
    """What came along n unit vectors, (..., n, *shape) each, as one matrix (..., all numbers, n)."""
    rows = [
        x.reshape(*x.shape[: x.ndim - len(arg.shape)], arg.size)
        for x, arg in zip(found, like, strict=True)
    ]
    return np.concatenate(rows, axis=-1).swapaxes(-1, -2)


class DerivativeByColumns(DifferentiableFunction):
    """Matrices too large to write out in code: what they multiply, along every unit vector in one batch. Of robots that are not
    large, those for Dask and graphics cards are written out all the same."""

    def _columns(self) -> list[DifferentiableFunction]:
        made = self.__dict__.setdefault("_along", [])
        if not made:
            made += [
                DifferentiableFunction(
                    QuantityRequest(f"{self.name}, along {', '.join(asked.names)}"),
                    asked,
                    self.source.target,
                )
                for asked in self._products()
            ]
        return made

    def _products(self) -> list[Derivative]:
        raise NotImplementedError

    def _gathered(self, columns: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
        """The results, of what every product gave along its unit vectors (..., n, *shape)."""
        raise NotImplementedError

    def prepare(self, char: str = "d") -> None:
        for along in self._columns():
            along.prepare(char)

    def single(self, otherwise: Any = None) -> Any:
        return otherwise

    def run(self, values: Any, out: Any = None, dtype: Any = None) -> Any:
        if not is_large(self.source.model) and any(
            type(value) is not np.ndarray for value in values
        ):
            return Function.run(self, values, out, dtype)
        argument_checks.on_host(self.name, *values)
        if any(map(is_lazy, values)):
            refuse_lazy(self.name, "matrices of large robots are made of columns", *values)
        arrays = [np.asarray(value) for value in values]
        given = out if isinstance(out, tuple) else (out,) * len(self.outputs)
        kind = np.dtype(dtype or np.result_type(np.float32, *(x.dtype for x in arrays)))
        columns = []
        for along in self._columns():
            taken = along_units(self.inputs, arrays, along.inputs[len(self.inputs) :], kind)
            columns.append(along.run(taken, (None,) * len(along.outputs), kind))
        found = list(map(argument_checks.into, given, self._gathered(columns)))
        return tuple(found) if len(found) > 1 else found[0]


class JacobianByColumns(DerivativeByColumns):
    """Of a Jacobian, argument by argument: its jvp."""

    def _products(self) -> list[Derivative]:
        asked = self.source.asked
        return [Derivative(asked.of, "jvp", (name,)) for name in asked.names]

    def _gathered(self, columns: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
        results = self.source.asked.of.arguments()[1]
        n = len(results)
        return [
            np.moveaxis(own[n + i], -1 - len(arg.shape), -1)
            for i, arg in enumerate(results)
            for own in columns
        ]


class HessianByColumns(DerivativeByColumns):
    """Of a Hessian: the change of the gradient."""

    def _products(self) -> list[Derivative]:
        asked = self.source.asked
        return [Derivative(Derivative(asked.of, "vjp", asked.names), "jvp", asked.names)]

    def _gathered(self, columns: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
        bars = self._columns()[0].outputs[-len(self.source.asked.names) :]
        return [in_rows(columns[0][-len(bars) :], bars)]


BY_COLUMNS = {"jacobian": JacobianByColumns, "hessian": HessianByColumns}
