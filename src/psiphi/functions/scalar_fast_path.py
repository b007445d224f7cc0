"""Calls for one state without NumPy's overhead.

A fast path is a callable that returns None to fall through to the general path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi.model.model import TINY, Model

if TYPE_CHECKING:
    from psiphi.functions.compiled_function import CompileJob
    from psiphi.functions.differentiable_function import DifferentiableFunction

FastPath = Callable[..., Any]


def no_fast_path(*_: object) -> None:
    """A fast path that always falls through to the general path."""


def checked_call(model: Model, call: FastPath, place: int = 0) -> FastPath:
    """The fast path `call`, which falls through if argument number `place` is not a plain q of one
    state, or may contain a zero quaternion."""
    if not model.quaternions:
        return call
    shape, w_places = (model.nq,), model.quaternions

    def checked(*values: Any) -> Any:
        q = values[place] if len(values) > place else None
        if type(q) is not np.ndarray or q.shape != shape or q.dtype.char != "d":
            return None
        for w in w_places:
            if -TINY < q[w] < TINY:
                return None
        return call(*values)

    return checked


def vector_call(shapes: Sequence[tuple[int, ...]], call: FastPath) -> FastPath:
    """The fast path `call`, which falls through unless all arguments are plain float64 arrays of
    these shapes."""
    array, double = np.ndarray, np.dtype(float)

    def checked(*values: Any) -> Any:
        for value, shape in zip(values, shapes, strict=True):
            if type(value) is not array or value.dtype is not double or value.shape != shape:
                return None
        return call(*values)

    return checked


def has_quaternions(source: CompileJob) -> bool:
    """Whether the first argument is a q with quaternions."""
    return bool(source.model.quaternions) and source.inputs[0].per_joint == "q"


def install_fast_path(function: DifferentiableFunction, values: Iterable[object]) -> None:
    """Give the function a fast path, once, after a call with plain arrays of one state."""
    if "fast_path" not in vars(function) and all(
        map(_is_plain_array, values, (len(arg.shape) for arg in function.source.inputs))
    ):
        call = function.scalar_call(no_fast_path)
        function.fast_path = (
            checked_call(function.source.model, call) if has_quaternions(function.source) else call
        )


def _is_plain_array(value: object, axes: int) -> bool:
    return type(value) is np.ndarray and value.ndim == axes and value.dtype == np.float64
