"""`LawArray`: the arrays q, v and t that a law gets while it is traced.

It is an object array of tape expressions on which NumPy's functions with decisions work too,
without branches: comparisons are masks of ones and zeros, and both sides of a selection are
computed.

    np.maximum(x, y) = (y < x) x + (1 - (y < x)) y        np.where(mask, x, y), clip, sign, max, ...
    np.exp, tanh, arctan2, ...                            sums and products (`branch_free.py`)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from psiphi.model.spatial.branch_free import (
    arctangent,
    choose,
    exponential,
    hyperbolic_tangent,
    less,
    maximum,
    minimum,
)
from psiphi.model.spatial.screws import square_root

BRANCH = "a branch depends on a number whose value is known only when the code runs"


def _tangent(x: Any) -> Any:
    return np.sin(x) / np.cos(x)


def _hyperbolic_sine(x: Any) -> Any:
    return 0.5 * (exponential(x) - exponential(-x))


def _hyperbolic_cosine(x: Any) -> Any:
    return 0.5 * (exponential(x) + exponential(-x))


VALUES: dict[np.ufunc, Callable[..., Any]] = {  # functions of numbers
    np.maximum: maximum,
    np.minimum: minimum,
    np.fmax: maximum,
    np.fmin: minimum,
    np.sign: lambda x: less(0.0, x) - less(x, 0.0),
    np.absolute: abs,
    np.exp: exponential,
    np.tanh: hyperbolic_tangent,
    np.sinh: _hyperbolic_sine,
    np.cosh: _hyperbolic_cosine,
    np.tan: _tangent,
    np.arctan2: arctangent,
    np.arctan: lambda x: arctangent(x, 1.0),
    np.arcsin: lambda x: arctangent(x, square_root((1.0 - x) * (1.0 + x))),
    np.arccos: lambda x: arctangent(square_root((1.0 - x) * (1.0 + x)), x),
    np.hypot: lambda x, y: square_root(x * x + y * y),
    np.deg2rad: lambda x: x * (np.pi / 180.0),
    np.rad2deg: lambda x: x * (180.0 / np.pi),
}
COMPARISONS: dict[np.ufunc, Callable[..., Any]] = {  # of numbers: masks
    np.less: less,
    np.greater: lambda x, y: less(y, x),
    np.less_equal: lambda x, y: 1.0 - less(y, x),
    np.greater_equal: lambda x, y: 1.0 - less(x, y),
}
LOGIC: dict[np.ufunc, Callable[..., Any]] = {  # of masks
    np.logical_and: operator.mul,
    np.logical_or: lambda x, y: x + y - x * y,
    np.logical_not: lambda x: 1.0 - x,
    np.logical_xor: lambda x, y: x + y - 2.0 * (x * y),
}
LOGIC |= {
    np.bitwise_and: LOGIC[np.logical_and],
    np.bitwise_or: LOGIC[np.logical_or],
    np.invert: LOGIC[np.logical_not],
    np.bitwise_xor: LOGIC[np.logical_xor],
    np.multiply: LOGIC[np.logical_and],  # as NumPy multiplies and adds booleans
    np.add: LOGIC[np.logical_or],
}


class LawArray(np.ndarray):
    """An object array of tape expressions. `is_mask`: of ones and zeros, for booleans."""

    is_mask = False

    @classmethod
    def of(cls, value: Any, is_mask: bool = False) -> LawArray:
        """A value or an array of them."""
        array = flat_entries(value).view(cls)
        array.is_mask = is_mask
        return array

    def __array_finalize__(self, source: Any) -> None:
        self.is_mask = getattr(source, "is_mask", False)

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        return value if isinstance(value, LawArray) else LawArray.of(value, self.is_mask)

    def __hash__(self) -> int:  # type: ignore[override]
        raise TypeError("a number whose value is known only when the code runs is hashed")

    def __bool__(self) -> bool:
        raise TypeError(BRANCH)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        masks = [is_mask(x) for x in inputs]
        plain = [_plain(x) for x in inputs]
        kind = {"__call__": _call, "reduce": _reduced}.get(method)
        (target,) = options.pop("out", None) or (None,)  # of x += y
        found = kind and ufunc.signature is None and kind(ufunc, plain, all(masks), options)
        if not found:
            found = getattr(ufunc, method)(*plain, **options), False
        if target is None:
            return LawArray.of(*found) if found[1] else _wrapped(found[0])
        np.asarray(target)[...] = found[0]
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where:
            return _where(*args, **kwargs)
        result = super().__array_function__(function, (), args, kwargs)
        return _wrapped(result)


def flat_entries(value: Any) -> np.ndarray:
    """A plain object array of numbers and tape expressions. np.array([q[0], 1.0]) has entries that
    are arrays themselves, without axes."""
    array = np.asarray(value, dtype=object).view(np.ndarray)
    entries = [x.item() if isinstance(x, np.ndarray) else x for x in array.flat]
    out = np.empty(len(entries), dtype=object)
    out[:] = entries
    return out.reshape(array.shape)


def is_mask(value: object) -> bool:
    """Whether a value stands for booleans."""
    if isinstance(value, LawArray):
        return value.is_mask
    return isinstance(value, bool | np.bool_) or getattr(value, "dtype", None) == np.dtype(bool)


def _plain(value: Any) -> Any:
    """The value as an array of numbers and tape expressions."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return flat_entries(value)
    return value * 1.0 if is_mask(value) else value


def _wrapped(result: Any) -> Any:
    """The result of a function of NumPy, as a `LawArray` if it has tape expressions."""
    if isinstance(result, tuple | list):
        return type(result)(map(_wrapped, result))
    if isinstance(result, np.ndarray):
        return result.view(LawArray) if result.dtype == object else result
    return LawArray.of(result) if hasattr(result, "more") else result


def _each(rule: Callable[..., Any], values: Sequence[Any]) -> Any:
    """The rule on each entry of arrays that are broadcast."""
    return np.frompyfunc(rule, len(values), 1)(*values)


def _call(
    ufunc: np.ufunc, values: Sequence[Any], are_masks: bool, options: dict[str, Any]
) -> tuple[Any, bool] | None:
    """(result, whether it is a mask); None if NumPy's own function on objects is right."""
    if ufunc in LOGIC and are_masks:
        return _each(LOGIC[ufunc], values), True
    if ufunc in LOGIC and ufunc not in (np.multiply, np.add):
        raise TypeError(f"{ufunc.__name__} of numbers, expected comparisons")
    if ufunc in COMPARISONS:
        return _each(COMPARISONS[ufunc], values), True
    if ufunc in VALUES:
        return _each(VALUES[ufunc], values), False
    if ufunc.__name__ == "clip":
        x, low, high = values
        return _each(minimum, [_each(maximum, [x, low]), high]), False
    return None


def _reduced(
    ufunc: np.ufunc, values: Sequence[Any], are_masks: bool, options: dict[str, Any]
) -> tuple[Any, bool] | None:
    """The largest or smallest entry along an axis, or whether all or any masks are 1."""
    rule = VALUES.get(ufunc) if ufunc in (np.maximum, np.minimum) else None
    if are_masks and ufunc in (np.logical_and, np.logical_or):
        rule = LOGIC[ufunc]
    if rule is None:
        return None
    axis, (x,) = options.get("axis", 0), values
    rows = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    found = np.asarray(reduce(lambda a, b: _each(rule, [a, b]), list(rows)), dtype=object)
    if options.get("keepdims"):
        found = found.reshape((1,) * x.ndim) if axis is None else np.expand_dims(found, axis)
    return found, are_masks


def _where(condition: Any, *choices: Any) -> LawArray:
    """np.where(condition, x, y). Both x and y are computed: a NaN in one of them is one in the
    result."""
    if len(choices) != 2:
        raise TypeError("np.where needs three arguments here: where(condition, x, y)")
    if not is_mask(condition):
        raise TypeError("np.where needs a comparison as its condition, such as x > 0")
    return LawArray.of(_each(choose, [_plain(x) for x in (condition, *choices)]))
