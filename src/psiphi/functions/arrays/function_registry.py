"""Functions by number: what graphs of other libraries know them by, as long as they live; and what they share besides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from psiphi._util.errors import StateError

FUNCTIONS: WeakValueDictionary[int, Any] = WeakValueDictionary()
NUMBERS = count()


def numbered(function: Any) -> int:
    """A number for a function that is being made."""
    number = next(NUMBERS)
    FUNCTIONS[number] = function
    return number


def named(number: int) -> Any:
    """The function of a number."""
    try:
        return FUNCTIONS[number]
    except KeyError:
        raise StateError(
            f"function {number} of psiphi is gone with its robot",
            "keep the robot as long as its graphs",
        ) from None


def summed(gradient: Any, shape: Sequence[int]) -> Any:
    """A gradient summed over axes along which what has this shape was repeated."""
    lead = tuple(range(gradient.ndim - len(shape)))
    gradient = gradient.sum(lead) if lead else gradient  # of no axis torch takes all
    again = tuple(i for i, n in enumerate(shape) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(again, keepdims=True) if again else gradient


def with_axis(
    move: Callable, inputs: Sequence[Any], arrays: Sequence[Any], axes: Sequence[Any]
) -> list[Any]:
    """vmap: one more batch axis, in front of all others; `move(x, axis, 0)` is the library's. Axis None: one for all."""
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
