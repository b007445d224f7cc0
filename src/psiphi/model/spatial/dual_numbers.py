"""Dual numbers x + x' ε, ε² = 0: exact derivatives of functions over scalars.

    (x y)' = x' y + x y'      (1 / y)' = -y' / y²      (sin x)' = x' cos x      (√x)' = x' / (2 √x)

The value and the rate are numbers, arrays or tape expressions. A rate that is the float 0.0 needs
no operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from psiphi._util.array_types import AnyScalar
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.screws import cosine, is_zero_constant, sine, square_root


def _times(rate: AnyScalar, factor: AnyScalar) -> Any:
    return 0.0 if is_zero_constant(rate) or is_zero_constant(factor) else rate * factor


class Dual:
    """A value and its rate (its derivative along one direction)."""

    __array_priority__ = 1000.0
    __array_ufunc__ = None
    __slots__ = ("rate", "value")

    def __init__(self, value: AnyScalar, rate: AnyScalar = 0.0):
        self.value, self.rate = value, rate

    def __add__(self, other: AnyScalar) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.rate + other.rate)
        return Dual(self.value + other, self.rate)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.rate)

    def __sub__(self, other: AnyScalar) -> Dual:
        return self + (-other)

    def __rsub__(self, other: AnyScalar) -> Dual:
        return (-self) + other

    def __mul__(self, other: AnyScalar) -> Dual:
        if isinstance(other, Dual):
            return Dual(
                self.value * other.value,
                _times(self.rate, other.value) + _times(other.rate, self.value),
            )
        return Dual(self.value * other, _times(self.rate, other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Dual:
        if not isinstance(other, Dual):
            return self * (1.0 / other)
        value = self.value / other.value
        return Dual(value, (self.rate - _times(other.rate, value)) / other.value)

    def __rtruediv__(self, other: AnyScalar) -> Dual:
        return Dual(other) / self

    def less(self, other: AnyScalar) -> Any:
        """1 where the value is below `other`, else 0; the derivative is zero."""
        return less(self.value, other.value if isinstance(other, Dual) else other)

    def more(self, other: AnyScalar) -> Any:
        return less(other, self.value)

    def cos(self) -> Dual:
        return Dual(cosine(self.value), -_times(self.rate, sine(self.value)))

    def sin(self) -> Dual:
        return Dual(sine(self.value), _times(self.rate, cosine(self.value)))

    def sqrt(self) -> Dual:
        value = square_root(self.value)
        return Dual(value, 0.0 if is_zero_constant(self.rate) else 0.5 * self.rate / value)


def rate_of_change(rule: Callable[[list], list], x: Sequence[Any], dx: Sequence[Any]) -> list:
    """d/dt rule(x) where dx/dt = `dx`.

    >>> rate_of_change(lambda x: [x[0] * x[1]], [2.0, 3.0], [1.0, 10.0])
    [23.0]
    """
    return [rate(y) for y in rule([Dual(a, _as_dual(da, a)) for a, da in zip(x, dx, strict=True)])]


def _as_dual(dx: AnyScalar, x: AnyScalar) -> Any:
    """`dx` as a dual number if x is one (second derivatives)."""
    return Dual(dx) if isinstance(x, Dual) and not isinstance(dx, Dual | float) else dx


def rate(y: AnyScalar) -> Any:
    """dy/dt; zero for constants."""
    return y.rate if isinstance(y, Dual) else 0.0
