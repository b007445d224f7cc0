"""Sine and cosine to fifty digits, with the standard library alone."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np

DIGITS = 50


@lru_cache(maxsize=4)
def half_pi(digits: int) -> Decimal:
    """pi / 2 = 8 atan(1/5) - 2 atan(1/239) (Machin), in whole numbers."""
    unit = 10 ** (digits + 10)

    def arctan(n: int) -> int:
        total = term = unit // n
        k = 1
        while term:
            term //= -n * n
            k += 2
            total += term // k
        return total

    with localcontext(prec=digits + 10):
        return Decimal(8 * arctan(5) - 2 * arctan(239)) / Decimal(unit)


def sine_and_cosine(x: float) -> tuple[Decimal, Decimal]:
    """(sin x, cos x) of the very number x."""
    exact = Decimal(float(x))
    size = max(0, exact.adjusted())
    with localcontext(prec=DIGITS + 40 + size):
        quarter = half_pi(DIGITS + 40 + size)
        k = int((exact / quarter).to_integral_value())
        r = exact - k * quarter
    with localcontext(prec=DIGITS + 20):
        s, c = _series(+r, 1), _series(+r, 0)
        return [(s, c), (c, -s), (-s, -c), (-c, s)][k % 4]


def _series(r: Decimal, first: int) -> Decimal:
    """sum of (-1)^n r^(2n + first) / (2n + first)!"""
    term = total = r if first else Decimal(1)
    n = first
    while term and abs(term) > abs(total) * Decimal(10) ** -(DIGITS + 15):
        term = -term * r * r / ((n + 1) * (n + 2))
        n += 2
        total += term
    return total


def ulps(found: np.ndarray, exact: list[Decimal]) -> float:
    """The largest distance, in units of the last place of the exact value in found's precision."""
    worst = 0.0
    for value, truth in zip(found, exact, strict=True):
        unit = Decimal(float(np.spacing(np.abs(found.dtype.type(truth)))))
        with localcontext(prec=DIGITS):
            worst = max(worst, float(abs(Decimal(float(value)) - truth) / unit))
    return worst
