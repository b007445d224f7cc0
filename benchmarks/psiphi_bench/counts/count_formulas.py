"""Counts as polynomials in the number of links N, with exact coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from psiphi._util.errors import StateError


@dataclass(frozen=True)
class Formula:
    """c0 + c1 N + c2 N^2 + ...

    >>> str(Formula(-587, 379)), Formula(-587, 379)(6)
    ('379N - 587', Fraction(1687, 1))
    """

    coefficients: tuple[Fraction, ...]

    def __init__(self, *coefficients: int | Fraction):
        object.__setattr__(self, "coefficients", tuple(Fraction(c) for c in coefficients))

    def __call__(self, n: int) -> Fraction:
        return sum((c * n**k for k, c in enumerate(self.coefficients)), Fraction(0))

    def __add__(self, other: Formula) -> Formula:
        size = max(len(self.coefficients), len(other.coefficients))
        each = [
            x.coefficients + (Fraction(0),) * (size - len(x.coefficients)) for x in (self, other)
        ]
        return Formula(*(a + b for a, b in zip(*each, strict=True)))

    def __bool__(self) -> bool:
        return any(self.coefficients)

    def __str__(self) -> str:
        text = ""
        for k, c in reversed(list(enumerate(self.coefficients))):
            if c:
                sign = ("-" if c < 0 else "") if not text else " - " if c < 0 else " + "
                power = "" if k == 0 else "N" if k == 1 else f"N^{k}"
                text += sign + ("" if power and abs(c) == 1 else _number(abs(c))) + power
        return text or "0"


def _number(c: Fraction) -> str:
    """A fraction as text; mixed numbers as (197+1/6)."""
    whole, rest = divmod(c, 1)
    if not rest:
        return str(whole)
    return f"{rest} " if not whole else f"({whole}+{rest})"


def sum_formulas(formulas: Iterable[Formula]) -> Formula:
    """The sum of the formulas."""
    return reduce(Formula.__add__, formulas, Formula(0))


def fit_line(counts: Mapping[int, int], what: str = "the count") -> Formula:
    """The line s N + c that fits all counts exactly."""
    (n0, first), (n1, second), *_ = sorted(counts.items())
    slope = Fraction(second - first, n1 - n0)
    line = Formula(first - slope * n0, slope)
    off = {n: count for n, count in counts.items() if line(n) != count}
    if off or slope.denominator != 1:
        raise StateError(
            f"{what} is not linear in N: {line} fails at {off}",
            "check which operations are folded for short arms",
        )
    return line
