"""Calls for one state without NumPy's overhead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from psiphi.model.model import TINY, Model


def nothing(*_: Any) -> None:
    """What comes of arguments that are not for a door: the next one takes them."""


def upright(model: Model, call: Any, place: int = 0) -> Any:
    """`call(q, ...)` of one state, q at a place; None where a quaternion of it may be zero, or it is no such array."""
    if not model.quaternions:
        return call
    shape, lasts = (model.nq,), model.quaternions

    def checked(*values):
        q = values[place] if len(values) > place else None
        if type(q) is not np.ndarray or q.shape != shape or q.dtype.char != "d":
            return None
        for last in lasts:
            if -TINY < q[last] < TINY:
                return None
        return call(*values)

    return checked


def of_vectors(shapes: Sequence[tuple[int, ...]], call: Any) -> Any:
    """`call(...)` of plain vectors of these shapes; None of all else."""

    array, double = np.ndarray, np.dtype(float)

    def checked(*values):
        for value, shape in zip(values, shapes, strict=True):
            if type(value) is not array or value.dtype is not double or value.shape != shape:
                return None
        return call(*values)

    return checked


def turns(source: Any) -> bool:
    """Whether the first argument is a q with quaternions."""
    return bool(source.model.quaternions) and source.inputs[0].per_joint == "q"


def quicken(function: Any, values: Iterable[Any]) -> None:
    """After a call with these arguments: from now on such calls go at once, if they are one state of plain arrays."""
    if "at_once" not in vars(function) and all(
        map(_is_plain, values, (len(arg.shape) for arg in function.source.inputs))
    ):
        one = function.single(nothing)
        function.at_once = upright(function.source.model, one) if turns(function.source) else one


def _is_plain(value: Any, axes: int) -> bool:
    return type(value) is np.ndarray and value.ndim == axes and value.dtype == np.float64
