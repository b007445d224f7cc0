"""Numbers with a rate: x + x' ε, ε² = 0. What is written on scalars, run on these, is differentiated exactly.

    (x y)' = x' y + x y'      (1 / y)' = -y' / y²      (sin x)' = x' cos x      (√x)' = x' / (2 √x)

The parts are numbers, arrays or tape expressions; a rate that is the number zero costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.screws import cosine, root, sine, vanishes


def _scaled(rate: Any, by: Any) -> Any:
    return 0.0 if vanishes(rate) or vanishes(by) else rate * by


class Dual:
    """A value and its rate."""

    __array_priority__ = 1000.0
    __array_ufunc__ = None
    __slots__ = ("rate", "value")

    def __init__(self, value: Any, rate: Any = 0.0):
        self.value, self.rate = value, rate

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.rate + other.rate)
        return Dual(self.value + other, self.rate)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.rate)

    def __sub__(self, other: Any) -> Dual:
        return self + (-other)

    def __rsub__(self, other: Any) -> Dual:
        return (-self) + other

    def __mul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(
                self.value * other.value,
                _scaled(self.rate, other.value) + _scaled(other.rate, self.value),
            )
        return Dual(self.value * other, _scaled(self.rate, other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Dual:
        if not isinstance(other, Dual):
            return self * (1.0 / other)
        value = self.value / other.value
        return Dual(value, (self.rate - _scaled(other.rate, value)) / other.value)

    def __rtruediv__(self, other: Any) -> Dual:
        return Dual(other) / self

    def less(self, other: Any) -> Any:
        """1 where this is below `other`, else 0: a choice has no rate."""
        return less(self.value, other.value if isinstance(other, Dual) else other)

    def more(self, other: Any) -> Any:
        return less(other, self.value)

    def cos(self) -> Dual:
        return Dual(cosine(self.value), -_scaled(self.rate, sine(self.value)))

    def sin(self) -> Dual:
        return Dual(sine(self.value), _scaled(self.rate, cosine(self.value)))

    def sqrt(self) -> Dual:
        value = root(self.value)
        return Dual(value, 0.0 if vanishes(self.rate) else 0.5 * self.rate / value)


def rate_of_change(rule: Callable[[list], list], at: Sequence[Any], along: Sequence[Any]) -> list:
    """d/dt rule(x) where dx/dt = along.

    >>> rate_of_change(lambda x: [x[0] * x[1]], [2.0, 3.0], [1.0, 10.0])
    [23.0]
    """
    return [
        rate(y) for y in rule([Dual(x, _as_moving(dx, x)) for x, dx in zip(at, along, strict=True)])
    ]


def _as_moving(dx: Any, x: Any) -> Any:
    """A rate beside a number that moves itself (second derivatives): a number that moves, too, if only by nothing."""
    return Dual(dx) if isinstance(x, Dual) and not isinstance(dx, Dual | float) else dx


def rate(y: Any) -> Any:
    """dy/dt; constants have none."""
    return y.rate if isinstance(y, Dual) else 0.0
