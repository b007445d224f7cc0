"""Choices without branches, and the arctangent: on numbers, arrays and tape expressions alike.

A choice is a product with 1 or 0, exact for finite values; what is not a number stays so.
"""

from __future__ import annotations

import numpy as np

from psiphi.model.spatial.scalar_arrays import choose, is_numpys, less, on_tape
from psiphi.model.spatial.screws import root

EDGE = 1e-9  # nearer to a bound is at it
ODD = [(-1.0) ** k / (2 * k + 1) for k in range(12)]  # the arctangent's series, to 1e-17 at 0.2


def least(x, y):
    """The smaller of the two."""
    return choose(less(x, y), x, y) if on_tape(x, y) or not is_numpys(x, y) else np.minimum(x, y)


def most(x, y):
    """The larger of the two."""
    return choose(less(y, x), x, y) if on_tape(x, y) or not is_numpys(x, y) else np.maximum(x, y)


def worst(row):
    """The largest of some numbers, by size; 0 of none."""
    found = 0.0
    for x in row:
        found = most(root(x * x), found)
    return found


def sign(x):
    """-1 below zero, else 1."""
    return 1.0 - 2.0 * less(x, 0.0)


def stays(x, slope, lower, upper):
    """0 where x stands at a bound and would leave it along the slope, else 1."""
    low, high = less(x, lower + EDGE) * less(slope, 0.0), less(upper - EDGE, x) * less(0.0, slope)
    return (1.0 - low) * (1.0 - high)


def angle(s, c):
    """The angle in [0, pi/2] of the point (c, s), both not negative, one positive.

    >>> round(float(angle(1.0, 1.0)) / np.pi, 15)
    0.25
    """
    return s * opening(s * s, c)


def opening(ss, c):
    """angle(s, c) / s of ss = s^2, smooth where s is zero: the angle is halved three times, then a series.

    >>> float(opening(0.0, 1.0))
    1.0
    """
    u = 1.0 / (root(ss + c * c) + c)  # tan of the half over s
    for _ in range(2):
        u = u / (1.0 + root(1.0 + u * u * ss))
    z, total = u * u * ss, ODD[-1]
    for c in reversed(ODD[:-1]):
        total = total * z + c
    return 8.0 * (u * total)
