"""Rotations and displacements, generic over scalars: quaternions x y z w as lists of numbers, arrays or tape expressions.

The only place that knows quaternions; R of one is `screws.Turn.from_quaternion`. `entries.along` runs these on arrays (..., 4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psiphi.model.spatial.branch_free import opening, sign
from psiphi.model.spatial.scalar_arrays import choose, entries, less, stacked
from psiphi.model.spatial.screws import Turn, cosine, cross, dot, root, sine

LEAST = 1e-36  # of a quaternion of zeros, which has no rotation: its logarithm is a number all the same, in float32 too
NEAR = 0.05  # t^2 below which functions of t are their series in it, smooth at zero: derivatives of any order keep their digits
SINC = 1.0, -6.0, 120.0, -5040.0, 362880.0, -39916800.0  # sin t / t
COS = 1.0, -2.0, 24.0, -720.0, 40320.0, -3628800.0, 479001600.0


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B of a 3x3 matrix and a matrix or vector, with the same bits on every processor.

    `A @ B` calls BLAS, which fuses and orders the sums as the processor likes. A constant that
    differs in its last bit is another constant on the tape, and may cost an operation.
    """
    columns = B if B.ndim > 1 else B[:, None]
    found = A[:, 0:1] * columns[0] + A[:, 1:2] * columns[1] + A[:, 2:3] * columns[2]
    return found if B.ndim > 1 else found[:, 0]


def multiply(a: list, b: list) -> list:
    """The product of quaternions x, y, z, w."""
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


def between(p: list, q: list) -> list:
    """p^-1 q of unit quaternions: q as p sees it."""
    return multiply(conjugate(p), q)


def unit(p: list) -> list:
    """p / |p|."""
    scale = 1.0 / root(dot(p, p))
    return [scale * x for x in p]


def spin(p: list, w: list) -> list:
    """p (w, 0) / 2."""
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
    scale = 0.5 * _near(quarter, _sinc, SINC)
    return [
        scale * w[0],
        scale * w[1],
        scale * w[2],
        _near(quarter, lambda x: cosine(root(x)), COS),
    ]


def logarithm(p) -> tuple[list, Any]:
    """w, |w| <= pi, the rotation vector of a quaternion x y z w of any length; and h cot h, h = |w| / 2."""
    turn = sign(p[3])
    c = turn * p[3]
    ratio = opening(dot(p[:3], p[:3]) + LEAST, c)  # h / sin h, of unit length
    scale = 2.0 * ratio * turn
    return [scale * x for x in p[:3]], ratio * c


def swept(w: list, v: list) -> list:
    """V(w) v = v + (1 - cos t) / t^2 w x v + (t - sin t) / t^3 w x (w x v), t = |w|: where a body at v, turning at w, gets."""
    tt = dot(w, w)
    half = _near(0.25 * tt, _sinc, SINC)
    first = cross(w, v)
    second = cross(w, first)
    a, b = (
        0.5 * (half * half),
        _near(tt, lambda x: (1.0 - _sinc(x)) / x, (6.0, -120.0, 5040.0, -362880.0, 39916800.0)),
    )
    return [x + a * y + b * z for x, y, z in zip(v, first, second, strict=True)]


def unswept(w: list, spread, x: list) -> list:
    """V(w)^-1 x = x - w x x / 2 + (1 - h cot h) / |w|^2 w x (w x x), h = |w| / 2, spread = h cot h: undoes `swept`."""
    first = cross(w, x)
    k = _near(
        dot(w, w), lambda x: (1.0 - spread) / x, (12.0, 720.0, 30240.0, 1209600.0, 47900160.0)
    )
    return [a - 0.5 * b + k * c for a, b, c in zip(x, first, cross(w, first), strict=True)]


def _sinc(tt):
    """sin t / t, of t^2 that is not small."""
    t = root(tt)
    return sine(t) / t


def _near(x, far: Callable, denominators: tuple[float, ...]):
    """1 / d_0 + x / d_1 + x^2 / d_2 ... where x is small, else far(x); each is asked at 0 or 1 where it does not count, so that
    nothing overflows."""
    small, series = less(x, NEAR), 0.0
    near: Any = small * x
    for d in reversed(denominators):
        series = 1.0 / d + near * series
    return choose(small, series, far(choose(small, 1.0, x)))


def quaternion(R: list) -> list:
    """x y z w of a rotation matrix (rows), of some length: the row of 4 p p* with the largest diagonal (Shepperd 1978)."""
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


def quaternions(R: Any) -> np.ndarray:
    """Unit quaternions x y z w (..., 4) of rotations (..., 3, 3).

    >>> quaternions(np.eye(3)).tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    R = np.asarray(R, dtype=float)
    return stacked(unit(quaternion([[R[..., r, c] for c in range(3)] for r in range(3)])))


def rotation_matrices(p: Any) -> np.ndarray:
    """R (..., 3, 3) of quaternions x y z w (..., 4) of any length but zero.

    >>> rotation_matrices([0.0, 0.0, 2.0, 0.0]).tolist()
    [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return np.stack(
        [stacked(row) for row in Turn.from_quaternion(entries(np.asarray(p, dtype=float))).R],
        axis=-2,
    )


def rotation_about(w: Any) -> np.ndarray:
    """R (3, 3) of the rotation by |w| about w.

    >>> rotation_about([0.0, 0.0, np.pi / 2]).round(12).tolist()
    [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return rotation_matrices(exponential(list(w)))


def skew(x: Any) -> np.ndarray:
    """x~ with x~ y = x cross y, of arrays (..., 3)."""
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
