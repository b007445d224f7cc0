"""Minimum, maximum, sign, exponential, logarithm and arctangent without branches, on numbers,
arrays and tape expressions.

A selection is a product with a mask of ones and zeros: exact for finite values; NaN propagates.
"""

from __future__ import annotations

from math import factorial

import numpy as np

from psiphi.model.spatial.scalar_arrays import are_numpy, choose, less, on_tape
from psiphi.model.spatial.screws import square_root

BOUND_TOLERANCE = 1e-9  # a value this close to a bound counts as being at it
# ln 2 in two parts: products of the first one with powers of two are exact
LN2 = 0.6931471803691238, 1.9082149292705877e-10
EXPONENTIAL_SERIES = [1.0 / factorial(k) for k in range(19)]  # to 1e-17 for |x| <= ln 2
LOGARITHM_SERIES = [2.0 / (2 * k + 1) for k in range(12)]  # of atanh, to 1e-17 for |x| <= 0.1716
SMALLEST_EXPONENT, LARGEST_TANH = -709.0, 20.0  # e^x is 1e-308 below; tanh x is 1 above
ARCTANGENT_SERIES = [(-1.0) ** k / (2 * k + 1) for k in range(12)]  # to 1e-17 for |x| <= 0.2


def minimum(x, y):
    """The smaller of x and y."""
    return choose(less(x, y), x, y) if on_tape(x, y) or not are_numpy(x, y) else np.minimum(x, y)


def maximum(x, y):
    """The larger of x and y."""
    return choose(less(y, x), x, y) if on_tape(x, y) or not are_numpy(x, y) else np.maximum(x, y)


def max_magnitude(row):
    """max |x| over some scalars; 0 if there are none."""
    found = 0.0
    for x in row:
        found = maximum(square_root(x * x), found)
    return found


def sign(x):
    """-1 below zero, else 1."""
    return 1.0 - 2.0 * less(x, 0.0)


def away_from_bound(x, slope, lower, upper):
    """0 where x is at a bound and `slope` points out of the interval, else 1."""
    low, high = (
        less(x, lower + BOUND_TOLERANCE) * less(slope, 0.0),
        less(upper - BOUND_TOLERANCE, x) * less(0.0, slope),
    )
    return (1.0 - low) * (1.0 - high)


def angle(s, c):
    """atan2(s, c) in [0, pi/2], for s >= 0 and c >= 0 that are not both zero.

    >>> round(float(angle(1.0, 1.0)) / np.pi, 15)
    0.25
    """
    return s * arctangent_ratio(s * s, c)


def arctangent_ratio(ss, c):
    """atan2(s, c) / s as a function of ss = s^2 and c; smooth at s = 0.

    The angle is halved three times; the rest is a series.

    >>> float(arctangent_ratio(0.0, 1.0))
    1.0
    """
    u = 1.0 / (square_root(ss + c * c) + c)  # tan(half the angle) / s
    for _ in range(2):
        u = u / (1.0 + square_root(1.0 + u * u * ss))
    z, total = u * u * ss, ARCTANGENT_SERIES[-1]
    for c in reversed(ARCTANGENT_SERIES[:-1]):
        total = total * z + c
    return 8.0 * (u * total)


def arctangent(y, x):
    """atan2(y, x) in [-pi, pi]; 0 if both are zero.

    >>> [round(float(arctangent(*p)) / np.pi, 15) for p in ((0.0, 0.0), (1.0, -1.0), (-1.0, 0.0))]
    [0.0, 0.75, -0.5]
    """
    s, c = abs(y), abs(x)
    size = s + c
    size = size + (1.0 - less(0.0, size))  # 1 if both are zero
    first = angle(s / size, c / size + (1.0 - less(0.0, s + c)))
    return sign(y) * choose(less(x, 0.0), np.pi - first, first)


def exponential(x):
    """e^x = 2^k e^r with |r| < ln 2. Comparisons find the bits of k.

    >>> x = np.array([-700.0, -1.0, 0.3, 709.0])
    >>> bool((np.abs(exponential(x) / np.exp(x) - 1.0) < 2e-15).all())
    True
    """
    rest, bits, grown, shrunk = maximum(x, SMALLEST_EXPONENT), 0.0, 1.0, 1.0
    for bit in reversed(range(10)):
        k = 2**bit
        up, down = 1.0 - less(rest, k * LN2[0]), 1.0 - less(-k * LN2[0], rest)
        rest, bits = rest - (up - down) * (k * LN2[0]), bits + (up - down) * k
        # 2^k - 1 is 2^k to rounding if k > 53, and the sum is 2^k again
        grown, shrunk = grown * (1.0 + up * (2.0**k - 1.0)), shrunk * (1.0 + down * (2.0**k - 1.0))
    rest, total = rest - bits * LN2[1], EXPONENTIAL_SERIES[-1]
    for c in reversed(EXPONENTIAL_SERIES[:-1]):
        total = total * rest + c
    return total * grown / shrunk


def natural_logarithm(x):
    """log x = k log 2 + log m with m in [1/sqrt 2, sqrt 2), for positive normal numbers.

    Comparisons find the bits of k, and log m = 2 atanh((m - 1) / (m + 1)) is a series.

    >>> x = np.array([1e-300, 0.3, 1.0, 7.0, 1e300])
    >>> bool((np.abs(natural_logarithm(x) - np.log(x)) <= 2e-16 * np.abs(np.log(x))).all())
    True
    """
    m, k, root = x, 0.0, 0.5**0.5
    for bit in reversed(range(10)):
        n = 2**bit
        small, large = less(m, 2.0 ** (1 - n) * root), 1.0 - less(m, 2.0 ** (n - 1) / root)
        m = m * choose(small, 2.0**n, choose(large, 2.0**-n, 1.0))
        k = k + n * (large - small)
    s = (m - 1.0) / (m + 1.0)
    z, total = s * s, LOGARITHM_SERIES[-1]
    for c in reversed(LOGARITHM_SERIES[:-1]):
        total = total * z + c
    return k * LN2[0] + (s * total + k * LN2[1])


def hyperbolic_tangent(x):
    """tanh x = (e^2x - 1) / (e^2x + 1).

    >>> [round(float(hyperbolic_tangent(x)), 12) for x in (-1e9, 0.0, 1.0)]
    [-1.0, 0.0, 0.761594155956]
    """
    e = exponential(2.0 * minimum(maximum(x, -LARGEST_TANH), LARGEST_TANH))
    return (e - 1.0) / (e + 1.0)
