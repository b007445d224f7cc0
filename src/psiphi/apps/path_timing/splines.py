"""Curves through points: piecewise polynomials, with any batch axes.

cubic     natural: q'' continuous, zero at the ends; least integral of |q''|^2
quintic   q'''' continuous, at rest at the ends; least integral of |q'''|^2 (minimum jerk, Flash and Hogan 1985)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Spline:
    """knots (..., K), coefficients (..., K - 1, degree + 1, n) of powers of s - knot."""

    knots: np.ndarray
    coefficients: np.ndarray

    def __call__(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, dq/ds, d2q/ds2 at s (..., N), each (..., N, n)."""
        pieces, powers, n = self.coefficients.shape[-3:]
        own = steps_of(self.knots, s)
        x = s - np.take_along_axis(self.knots, own, axis=-1)
        first = pieces * np.arange(math.prod(s.shape[:-1])).reshape(
            *s.shape[:-1], 1
        )  # where a curve's pieces begin
        rows = np.zeros((3, *x.shape, 1, powers))
        for order, out in enumerate(rows[..., 0, :]):
            _fill(out, x, order)
        q, slope, bend = (rows @ self.coefficients.reshape(-1, powers, n)[first + own])[..., 0, :]
        return q, slope, bend


def steps_of(knots: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Between which of its knots (..., K) each s (..., N) is: that of k and k + 1."""
    found = np.empty(s.shape, dtype=np.intp)
    for own in np.ndindex(s.shape[:-1]):
        found[own] = np.searchsorted(knots[own][1:-1], s[own], side="right")
    return found


def cubic(knots: np.ndarray, points: np.ndarray) -> Spline:
    """Natural, through points (..., K, n) at knots (..., K)."""
    h, count = np.diff(knots)[..., None], knots.shape[-1]
    slope = np.diff(points, axis=-2) / h
    bend = np.zeros(points.shape)  # q'' at the knots
    if count > 2:
        bend[..., 1:-1, :] = _three_diagonals(
            2.0 * (h[..., :-1, :] + h[..., 1:, :]), h[..., 1:-1, :], 6.0 * np.diff(slope, axis=-2)
        )
    first = slope - h * (2.0 * bend[..., :-1, :] + bend[..., 1:, :]) / 6.0
    parts = [
        points[..., :-1, :],
        first,
        0.5 * bend[..., :-1, :],
        np.diff(bend, axis=-2) / (6.0 * h),
    ]
    return Spline(knots, np.stack(parts, axis=-2))


def _three_diagonals(middle: np.ndarray, beside: np.ndarray, right: np.ndarray) -> np.ndarray:
    """A x = right (..., n, m), A of three diagonals, (..., n, 1) and twice (..., n - 1, 1): from the end back, and forth."""
    D, x = middle.copy(), right.copy()
    for i in range(D.shape[-2] - 2, -1, -1):
        share = beside[..., i, :] / D[..., i + 1, :]
        D[..., i, :] -= share * beside[..., i, :]
        x[..., i, :] -= share * x[..., i + 1, :]
    x[..., 0, :] /= D[..., 0, :]
    for i in range(1, D.shape[-2]):
        x[..., i, :] = (x[..., i, :] - beside[..., i - 1, :] * x[..., i - 1, :]) / D[..., i, :]
    return x


def quintic(knots: np.ndarray, points: np.ndarray) -> Spline:
    """At rest at both ends, through points (..., K, n) at knots (..., K): one linear system for all coordinates."""
    pieces, lead, n = knots.shape[-1] - 1, knots.shape[:-1], points.shape[-1]
    h = np.diff(knots)
    A, b = np.zeros((*lead, 6 * pieces, 6 * pieces)), np.zeros((*lead, 6 * pieces, n))
    row = 0
    for k in range(pieces):
        own = slice(6 * k, 6 * k + 6)
        A[..., row, 6 * k], b[..., row, :], b[..., row + 1, :] = (
            1.0,
            points[..., k, :],
            points[..., k + 1, :],
        )
        _fill(A[..., row + 1, own], h[..., k], 0)
        row += 2
        for order in (
            range(1, 5) if k + 1 < pieces else ()
        ):  # the next piece goes on as this one ends
            _fill(A[..., row, own], h[..., k], order)
            A[..., row, 6 * k + 6 + order] = -math.factorial(order)
            row += 1
    for order in (1, 2):
        A[..., row, order] = 1.0
        _fill(A[..., row + 1, -6:], h[..., -1], order)
        row += 2
    return Spline(knots, np.linalg.solve(A, b).reshape(*lead, pieces, 6, n))


def _fill(out: np.ndarray, x: np.ndarray, order: int) -> None:
    """d^order/dx^order of 1, x, x^2, ... into zeros (..., powers)."""
    out[..., order] = math.factorial(order)
    for power in range(order + 1, out.shape[-1]):
        np.multiply(out[..., power - 1], (power / (power - order)) * x, out=out[..., power])
