"""Functions by number: a graph of another library refers to a function by its number. Also the
protocol of these functions, and rules that torch and JAX share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Protocol
from weakref import WeakValueDictionary

from psiphi._util.array_types import AnyArray, DType, Out
from psiphi._util.errors import StateError
from psiphi.compiler.sweeps.sweep_program import Argument

FUNCTIONS: WeakValueDictionary[int, Any] = WeakValueDictionary()
NUMBERS = count()


class ArrayFunction(Protocol):
    """A function that torch and JAX can call: it has `run`, `__call__`, or both.

    Compiled functions also have `source`. Others may have `run_on_gpu`; `unshared`, names of
    arguments that cannot be one row for a whole batch; `is_temporary`, if they exist for one call;
    and `needs_no_check`.
    """

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> Sequence[Argument]: ...
    @property
    def outputs(self) -> Sequence[Argument]: ...
    @property
    def number(self) -> int: ...


class RunnableFunction(ArrayFunction, Protocol):
    """A function of arrays of any library, without checks."""

    def run(self, values: Sequence[Any], out: Out = None, dtype: DType = None) -> Any: ...


class DifferentiableArrayFunction(RunnableFunction, Protocol):
    """A function that torch and JAX can differentiate, any number of times."""

    def __call__(self, *values: Any) -> Any: ...
    def run_on_gpu(self, values: Sequence[Any]) -> Any: ...
    def pushforward(self, *names: str) -> DifferentiableArrayFunction: ...
    def pullback(self, *names: str) -> DifferentiableArrayFunction: ...


def register(function: object) -> int:
    """A new number for a function."""
    number = next(NUMBERS)
    FUNCTIONS[number] = function
    return number


def function_of(number: int) -> Any:
    """The function with a number, if it still exists."""
    try:
        return FUNCTIONS[number]
    except KeyError:
        raise StateError(
            f"function {number} of psiphi no longer exists, nor does its robot",
            "keep a reference to the robot as long as its graphs are used",
        ) from None


def sum_repeated(gradient: AnyArray, shape: Sequence[int]) -> Any:
    """The gradient with respect to an array of this shape, which was broadcast: summed over the
    broadcast axes."""
    total: Any = gradient
    lead = tuple(range(total.ndim - len(shape)))
    total = total.sum(lead) if lead else total  # torch sums over all axes for ()
    repeated = tuple(i for i, n in enumerate(shape) if n == 1 and total.shape[i] != 1)
    return total.sum(repeated, keepdims=True) if repeated else total


def add_batch_axis(
    move: Callable,
    inputs: Sequence[Argument],
    arrays: Sequence[Any],
    axes: Sequence[int | None],
) -> list[Any]:
    """The arguments of vmap with the mapped axis in front of all batch axes. `move` is the
    library's moveaxis; axis None marks an argument that is not mapped."""
    rows = list(zip(arrays, inputs, axes, strict=True))
    most = max(x.ndim - len(arg.shape) - (axis is not None) for x, arg, axis in rows)
    moved = []
    for x, arg, axis in rows:
        if axis is not None:
            x = move(x, axis, 0)
            lead = x.ndim - len(arg.shape) - 1
            x = x.reshape(x.shape[0], *(1,) * (most - lead), *x.shape[1:])
        moved.append(x)
    return moved
