"""Arrays (..., n) as lists of n scalars, and back: a law over scalars runs on whole batches.

An array (n,) of tape expressions has dtype object and is unpacked in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyArray, Numbers


def entries(x: np.ndarray) -> list[Any]:
    """The n columns of an array (..., n): scalars if it is one vector, arrays if it is a batch.

    >>> entries(np.array([[1.0, 2.0], [3.0, 4.0]]))
    [array([1., 3.]), array([2., 4.])]
    """
    return [x[..., i][()] for i in range(x.shape[-1])]


def stack_entries(values: list[Any]) -> np.ndarray:
    """The array (..., n) with these columns."""
    return np.stack(np.broadcast_arrays(*values), axis=-1)


def on_arrays(rule: Callable[..., list[Any]], *arrays: AnyArray | Numbers) -> np.ndarray:
    """Apply a rule on lists of scalars to arrays (..., n).

    >>> on_arrays(lambda x, y: [x[0] * y[1] - x[1] * y[0]], [1.0, 0.0], [[0.0, 1.0], [2.0, 0.0]])
    array([[1.],
           [0.]])
    """
    return stack_entries(rule(*(entries(np.asarray(x)) for x in arrays)))


def max_norm(x: np.ndarray) -> np.ndarray:
    """max |x_i| over the last axis; 0 if it is empty.

    >>> max_norm(np.array([[1.0, -3.0], [0.5, 0.0]]))
    array([3. , 0.5])
    """
    return np.abs(x).max(axis=-1, initial=0.0)


# -- comparison and selection ----------------------------------------------------------------------


def on_tape(*values: object) -> bool:
    """Whether any value is a tape expression or an array that contains one."""
    return any(hasattr(x, "more") or _holds_expressions(x) for x in values)


def _holds_expressions(x) -> bool:
    """Whether x is an object array with at least one tape expression (not only None or text)."""
    return getattr(getattr(x, "dtype", None), "kind", "") == "O" and any(
        hasattr(entry, "more") for entry in x.flat
    )


def are_numpy(*values: object) -> bool:
    """Whether NumPy compares these values; arrays of other libraries have their own operators."""
    return all(isinstance(x, np.ndarray | np.generic | float | int | list | tuple) for x in values)


def less(a, b):
    """1 where a < b, else 0."""
    if hasattr(a, "more"):
        return a.less(b)
    if hasattr(b, "more"):
        return b.more(a)
    if on_tape(a, b):
        return np.frompyfunc(less, 2, 1)(a, b)
    return (np.less(a, b) if are_numpy(a, b) else a < b) * 1.0


def choose(mask, x, y):
    """x where the mask is 1, y where it is 0."""
    return mask * x + (1.0 - mask) * y
