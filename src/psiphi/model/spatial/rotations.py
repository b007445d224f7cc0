"""Rotations as quaternions (x, y, z, w), written once for floats, arrays and tape expressions.

A quaternion is a list of four scalars. `scalar_arrays.on_arrays` runs these functions on arrays
(..., 4); `screws.Turn.from_quaternion` returns the rotation matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyScalar, Numbers
from psiphi.model.spatial.branch_free import arctangent_ratio, sign
from psiphi.model.spatial.scalar_arrays import choose, entries, less, stack_entries
from psiphi.model.spatial.screws import Turn, cosine, cross, dot, sine, square_root

SMALLEST_SQUARE = 1e-36  # keeps the logarithm of a zero quaternion finite, also in float32
# Below this t^2 functions of t are series in t^2, so that derivatives of any order are accurate.
SERIES_LIMIT = 0.05
SINC = 1.0, -6.0, 120.0, -5040.0, 362880.0, -39916800.0  # sin t / t
COS = 1.0, -2.0, 24.0, -720.0, 40320.0, -3628800.0, 479001600.0


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B for a 3x3 matrix A and a matrix or vector B, bit for bit the same on every processor.

    `A @ B` calls BLAS, whose order of summation depends on the processor. Two constants that
    differ in the last bit are two constants on the tape and may cost an operation.
    """
    columns = B if B.ndim > 1 else B[:, None]
    found = A[:, 0:1] * columns[0] + A[:, 1:2] * columns[1] + A[:, 2:3] * columns[2]
    return found if B.ndim > 1 else found[:, 0]


def multiply(a: list, b: list) -> list:
    """The quaternion product a b."""
    (ax, ay, az, aw), (bx, by, bz, bw) = a, b
    return [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]


def conjugate(p: list) -> list:
    """The inverse of a unit quaternion."""
    return [-p[0], -p[1], -p[2], p[3]]


def relative_quaternion(p: list, q: list) -> list:
    """p^-1 q of unit quaternions: the rotation from p to q."""
    return multiply(conjugate(p), q)


def unit(p: list) -> list:
    """p / |p|."""
    scale = 1.0 / square_root(dot(p, p))
    return [scale * x for x in p]


def quaternion_rate(p: list, w: list) -> list:
    """p (w, 0) / 2: the time derivative of p at the angular velocity w in body axes."""
    x, y, z, s = p
    a, b, c = (0.5 * rate for rate in w)
    return [
        s * a + y * c - z * b,
        s * b + z * a - x * c,
        s * c + x * b - y * a,
        -(x * a) - y * b - z * c,
    ]


def exponential(w: list) -> list:
    """The quaternion of the rotation by |w| about w."""
    quarter = 0.25 * dot(w, w)
    scale = 0.5 * _series_or_formula(quarter, _sinc, SINC)
    return [
        scale * w[0],
        scale * w[1],
        scale * w[2],
        _series_or_formula(quarter, lambda x: cosine(square_root(x)), COS),
    ]


def logarithm(p: list) -> tuple[list, Any]:
    """The rotation vector w, |w| <= pi, of a quaternion of any length; and h cot h, h = |w| / 2."""
    turn = sign(p[3])
    c = turn * p[3]
    ratio = arctangent_ratio(dot(p[:3], p[:3]) + SMALLEST_SQUARE, c)  # h / sin h, of unit length
    scale = 2.0 * ratio * turn
    return [scale * x for x in p[:3]], ratio * c


def left_jacobian_product(w: list, v: list) -> list:
    """V(w) v = v + (1 - cos t) / t^2 w x v + (t - sin t) / t^3 w x (w x v), t = |w|.

    V is the left Jacobian of SO(3). A body that moves for one second with the constant body twist
    [w; v] is displaced by V(w) v.
    """
    tt = dot(w, w)
    half = _series_or_formula(0.25 * tt, _sinc, SINC)
    first = cross(w, v)
    second = cross(w, first)
    a, b = (
        0.5 * (half * half),
        _series_or_formula(
            tt, lambda x: (1.0 - _sinc(x)) / x, (6.0, -120.0, 5040.0, -362880.0, 39916800.0)
        ),
    )
    return [x + a * y + b * z for x, y, z in zip(v, first, second, strict=True)]


def inverse_left_jacobian_product(w: list, h_cot_h: AnyScalar, x: list) -> list:
    """V(w)^-1 x = x - w x x / 2 + (1 - h cot h) / |w|^2 w x (w x x), h = |w| / 2."""
    first = cross(w, x)
    k = _series_or_formula(
        dot(w, w), lambda x: (1.0 - h_cot_h) / x, (12.0, 720.0, 30240.0, 1209600.0, 47900160.0)
    )
    return [a - 0.5 * b + k * c for a, b, c in zip(x, first, cross(w, first), strict=True)]


def _sinc(tt):
    """sin t / t as a function of t^2, which is not small."""
    t = square_root(tt)
    return sine(t) / t


def _series_or_formula(x, far: Callable, denominators: tuple[float, ...]):
    """1 / d_0 + x / d_1 + x^2 / d_2 + ... where x is small, else far(x).

    Both are evaluated everywhere; where one is not selected, its argument is 0 or 1, so that it
    does not overflow.
    """
    small, series = less(x, SERIES_LIMIT), 0.0
    near: Any = small * x
    for d in reversed(denominators):
        series = 1.0 / d + near * series
    return choose(small, series, far(choose(small, 1.0, x)))


def quaternion(R: list) -> list:
    """A quaternion, not normalized, of a rotation matrix given by rows.

    It is the row of 4 p p* with the largest diagonal entry (Shepperd 1978).
    """
    (a, b, c), (d, e, f), (g, h, i) = R
    rows = [
        [h - f, c - g, d - b, 1.0 + a + e + i],
        [1.0 + a - e - i, b + d, c + g, h - f],
        [b + d, 1.0 - a + e - i, f + h, c - g],
        [c + g, f + h, 1.0 - a - e + i, d - b],
    ]
    best, top = rows[0], rows[0][3]
    for k, row in enumerate(rows[1:]):
        better = less(top, row[k])
        best = [choose(better, x, y) for x, y in zip(row, best, strict=True)]
        top = choose(better, row[k], top)
    return best


def quaternions(R: Numbers) -> np.ndarray:
    """Unit quaternions (x, y, z, w), shape (..., 4), of rotation matrices (..., 3, 3).

    >>> quaternions(np.eye(3)).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    R = np.asarray(R, dtype=float)
    return stack_entries(unit(quaternion([[R[..., r, c] for c in range(3)] for r in range(3)])))


def rotation_matrices(p: Numbers) -> np.ndarray:
    """R (..., 3, 3) of quaternions (x, y, z, w), shape (..., 4), of any length but zero.

    >>> rotation_matrices([0.0, 0.0, 2.0, 0.0]).tolist()
    [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return np.stack(
        [stack_entries(row) for row in Turn.from_quaternion(entries(np.asarray(p, dtype=float))).R],
        axis=-2,
    )


def rotation_about(w: Sequence[float] | np.ndarray) -> np.ndarray:
    """R (3, 3) of the rotation by |w| about w.

    >>> rotation_about([0.0, 0.0, np.pi / 2]).round(12).tolist()
    [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return rotation_matrices(exponential(list(w)))


def skew(x: Numbers) -> np.ndarray:
    """x~ with x~ y = x cross y, shape (..., 3, 3), of vectors (..., 3)."""
    x0, x1, x2 = np.moveaxis(np.asarray(x, dtype=float), -1, 0)
    zero = np.zeros_like(x0)
    return np.stack(
        [
            np.stack([zero, -x2, x1], -1),
            np.stack([x2, zero, -x0], -1),
            np.stack([-x1, x0, zero], -1),
        ],
        -2,
    )
