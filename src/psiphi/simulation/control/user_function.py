"""Functions of (t, q, v) that users give, as torques and events, in a batch of motions.

A function gets one motion at a time: q (nq,) and v (nv,). So q[0], norm(q) or `if q[0] > 0` mean
the same in a batch as alone. A function that is marked with `pp.law(batched=True)` gets all motions
at once, q (..., nq); at the first call it is compared with calls for single motions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import name_of, shown
from psiphi.simulation.control.marked_law import is_batched, is_pure

COMPARED = 4  # single motions with which the first call of a batched function is compared
TOLERANCE = 1e-9  # relative: a batch may be summed in another order
SHARES_STATE = "would share its internal state between the motions of a batch"
ALONE = "simulate the motions one by one, or mark a function of the whole batch with "
MARK_STATEFUL = "pp.law(batched=True, pure=False)"


class UserFunction:
    """A user's function of (t, q, v) for motions with axes `batch`: results (*batch, *shape)."""

    def __init__(
        self,
        function: Callable[..., Any],
        batch: tuple[int, ...],
        what: str,
        shape: tuple[int, ...] = (),
        expand: Callable[[np.ndarray], np.ndarray] | None = None,
    ):
        self.function, self.batch, self.shape, self.expand = function, batch, shape, expand
        self.what = f"{what} {name_of(function)}"
        self.is_batched, self.is_pure = is_batched(function), is_pure(function)
        self.is_checked = not batch
        self.calls = 0  # for all motions

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> Any:
        q, v = read_only(q), read_only(v)
        if not self.batch:
            return self.function(t, q, v)
        if not self.is_batched:
            return self._one_by_one(t, q, v)
        result = self.function(t, q, v)
        if not self.is_checked:
            self.is_checked = True
            if self.is_pure:
                self._check_elements(result, t, q, v)
        return result

    def _one_by_one(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        places = list(np.ndindex(*self.batch))
        values = [self.function(t, q[i], v[i]) for i in places]
        for value in values:
            self._check_shape(value, q, v)
        results = [self._result(value, i) for value, i in zip(values, places, strict=True)]
        shapes = {result.shape for result in results}
        if len(shapes) > 1:
            cause = f"{self.what} returns shapes {' and '.join(map(str, sorted(shapes)))}"
            raise StateError(cause, "return the same shape in every state")
        self.calls += 1
        if places and self.calls & (self.calls - 1) == 0:  # at calls 1, 2, 4, 8, ...
            again = self._result(self.function(t, q[places[0]], v[places[0]]), places[0])
            if not _equal(again, results[0]):
                raise StateError(f"{self.what} {SHARES_STATE}", ALONE + MARK_STATEFUL)
        if not results:
            return np.zeros((*self.batch, *self.shape))
        return np.stack(results).reshape(*self.batch, *results[0].shape)

    def _result(self, value: Any, i: tuple[int, ...]) -> np.ndarray:
        """The result for motion i. A function that reads numbers of all motions, such as a robot
        with a batch of parameters, returns results for all of them."""
        array = np.asarray(value)
        if array.shape == (*self.batch, *self.shape):
            return array[i]
        if array.ndim or not self.shape:
            return array
        full = array if self.expand is None else self.expand(array)
        if not full.ndim:
            number = f"the number {shown(value)} for one motion, expected shape {self.shape}"
            raise StateError(
                f"{self.what} returns {number}", "return one number for each joint with a motor"
            )
        return full

    def _check_shape(self, result: Any, q: np.ndarray, v: np.ndarray) -> None:
        """Refuse results that may be those of one motion, of the wrong shape, or those of all."""
        shape = np.shape(result)
        if shape == (*self.batch, *self.shape) and shape[0] in (q.shape[-1], v.shape[-1]):
            raise StateError(
                f"{self.what} returns shape {shape} for one motion, expected {self.shape}; there "
                f"are as many motions as joint coordinates, {shape[0]}",
                f"if these are the results for all motions, mark the function with {MARK_STATEFUL}",
            )

    def _check_elements(self, result: Any, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Compare the results for the batch with those for some of its motions alone."""
        whole = np.asarray(result)
        for i in _some_places(self.batch):
            fault = "returns other values"
            try:
                alone = self._result(self.function(t, q[i], v[i]), i)
                if _agree(alone, np.broadcast_to(whole, (*self.batch, *alone.shape))[i]):
                    continue
            except Exception as error:
                fault = f"raises {type(error).__name__} ({error})"
            raise StateError(
                f"{self.what} is marked as batched, and {fault} for motion "
                f"{', '.join(map(str, i))} alone",
                "write q[..., 0], norm(q, axis=-1), ..., which mean the same for one motion "
                "and for many; or leave out batched=True",
            )


def read_only(x: np.ndarray) -> np.ndarray:
    """A view that user-defined functions cannot write to."""
    view = x.view()
    view.flags.writeable = False
    return view


def _some_places(batch: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """The first element, the last, and some between."""
    count = int(np.prod(batch))
    for k in np.unique(np.linspace(0, count - 1, COMPARED).round().astype(int)) if count else ():
        yield tuple(int(i) for i in np.unravel_index(k, batch))


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def _agree(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape:
        return False
    if a.dtype.kind not in "fiu" or b.dtype.kind not in "fiu":
        return bool(np.array_equal(a, b))
    size = 1.0 + np.abs(a[np.isfinite(a)]).max(initial=0.0)
    return np.allclose(a, b, rtol=0.0, atol=TOLERANCE * size, equal_nan=True)
