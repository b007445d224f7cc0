"""Arrays (..., n) as lists of n scalars, and back: what is written on scalars runs on whole batches.

The same holds for arrays (n,) of tape expressions, whose dtype is object: a law written on either is one law.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def entries(x: np.ndarray) -> list[Any]:
    """The columns of an array (..., n): numbers or tape expressions of a single one, arrays of a batch.

    >>> entries(np.array([[1.0, 2.0], [3.0, 4.0]]))
    [array([1., 3.]), array([2., 4.])]
    """
    return [x[..., i][()] for i in range(x.shape[-1])]


def stacked(values: list[Any]) -> np.ndarray:
    """The array (..., n) with these columns."""
    return np.stack(np.broadcast_arrays(*values), axis=-1)


def along(rule: Callable[..., list[Any]], *arrays: Any) -> np.ndarray:
    """What a rule on lists of scalars makes of arrays (..., n).

    >>> along(lambda x, y: [x[0] * y[1] - x[1] * y[0]], [1.0, 0.0], [[0.0, 1.0], [2.0, 0.0]])
    array([[1.],
           [0.]])
    """
    return stacked(rule(*(entries(np.asarray(x)) for x in arrays)))


def largest(x: np.ndarray) -> np.ndarray:
    """The largest entry of vectors (..., n), by size; 0 of none.

    >>> largest(np.array([[1.0, -3.0], [0.5, 0.0]]))
    array([3. , 0.5])
    """
    return np.abs(x).max(axis=-1, initial=0.0)


# -- what is less, and a choice by it ------------------------------------------------------------------------------------------


def on_tape(*values) -> bool:
    """Whether any of these is a tape expression, or an array of such."""
    return any(hasattr(x, "more") or _holds_expressions(x) for x in values)


def _holds_expressions(x) -> bool:
    """An array of objects may hold anything: some are expressions, not None or text."""
    return getattr(getattr(x, "dtype", None), "kind", "") == "O" and any(
        hasattr(entry, "more") for entry in x.flat
    )


def is_numpys(*values) -> bool:
    """Whether NumPy reads these: arrays of other libraries know what is less by themselves."""
    return all(isinstance(x, np.ndarray | np.generic | float | int | list | tuple) for x in values)


def less(a, b):
    """1 where a < b, else 0."""
    if hasattr(a, "more"):
        return a.less(b)
    if hasattr(b, "more"):
        return b.more(a)
    if on_tape(a, b):
        return np.frompyfunc(less, 2, 1)(a, b)
    return (np.less(a, b) if is_numpys(a, b) else a < b) * 1.0


def choose(mask, x, y):
    """x where the mask is 1, y where it is 0."""
    return mask * x + (1.0 - mask) * y
