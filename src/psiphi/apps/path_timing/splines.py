"""Interpolating splines: piecewise polynomials, with any batch axes.

cubic     natural: q'' continuous, zero at the ends; least integral of |q''|^2
quintic   q'''' continuous, at rest at the ends; least integral of |q'''|^2 (minimum jerk, Flash and
          Hogan 1985)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Spline:
    """Knots (..., K), and coefficients (..., K - 1, degree + 1, n) of the powers of s - knot."""

    knots: np.ndarray
    coefficients: np.ndarray

    def __call__(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, dq/ds, d2q/ds2 at s (..., N), each (..., N, n)."""
        pieces, powers, n = self.coefficients.shape[-3:]
        piece = interval_index(self.knots, s)
        x = s - np.take_along_axis(self.knots, piece, axis=-1)
        first = pieces * np.arange(math.prod(s.shape[:-1])).reshape(*s.shape[:-1], 1)  # of a curve
        rows = np.zeros((3, *x.shape, 1, powers))
        for order, out in enumerate(rows[..., 0, :]):
            _fill_powers(out, x, order)
        q, dq, ddq = (rows @ self.coefficients.reshape(-1, powers, n)[first + piece])[..., 0, :]
        return q, dq, ddq


def interval_index(knots: np.ndarray, s: np.ndarray) -> np.ndarray:
    """(..., N): k with knot k <= s < knot k + 1, for knots (..., K) and s (..., N)."""
    found = np.empty(s.shape, dtype=np.intp)
    for i in np.ndindex(s.shape[:-1]):
        found[i] = np.searchsorted(knots[i][1:-1], s[i], side="right")
    return found


def cubic(knots: np.ndarray, points: np.ndarray) -> Spline:
    """The natural cubic spline through points (..., K, n) at knots (..., K)."""
    h, count = np.diff(knots)[..., None], knots.shape[-1]
    slope = np.diff(points, axis=-2) / h
    second = np.zeros(points.shape)  # q'' at the knots
    if count > 2:
        middle, right = 2.0 * (h[..., :-1, :] + h[..., 1:, :]), 6.0 * np.diff(slope, axis=-2)
        second[..., 1:-1, :] = _solve_tridiagonal(middle, h[..., 1:-1, :], right)
    first = slope - h * (2.0 * second[..., :-1, :] + second[..., 1:, :]) / 6.0
    third = np.diff(second, axis=-2) / (6.0 * h)
    parts = [points[..., :-1, :], first, 0.5 * second[..., :-1, :], third]
    return Spline(knots, np.stack(parts, axis=-2))


def _solve_tridiagonal(diagonal: np.ndarray, beside: np.ndarray, right: np.ndarray) -> np.ndarray:
    """x with A x = right (..., n, m), A symmetric, `diagonal` (..., n, 1) and `beside`.

    Eliminates from the last row to the first, then substitutes.
    """
    D, x = diagonal.copy(), right.copy()
    for i in range(D.shape[-2] - 2, -1, -1):
        factor = beside[..., i, :] / D[..., i + 1, :]
        D[..., i, :] -= factor * beside[..., i, :]
        x[..., i, :] -= factor * x[..., i + 1, :]
    x[..., 0, :] /= D[..., 0, :]
    for i in range(1, D.shape[-2]):
        x[..., i, :] = (x[..., i, :] - beside[..., i - 1, :] * x[..., i - 1, :]) / D[..., i, :]
    return x


def quintic(knots: np.ndarray, points: np.ndarray) -> Spline:
    """The minimum-jerk spline through points (..., K, n) at knots (..., K), at rest at both ends.

    One dense linear system for all coordinates.
    """
    pieces, batch, n = knots.shape[-1] - 1, knots.shape[:-1], points.shape[-1]
    h = np.diff(knots)
    A, b = np.zeros((*batch, 6 * pieces, 6 * pieces)), np.zeros((*batch, 6 * pieces, n))
    row = 0
    for k in range(pieces):
        columns = slice(6 * k, 6 * k + 6)
        A[..., row, 6 * k] = 1.0
        b[..., row, :], b[..., row + 1, :] = points[..., k, :], points[..., k + 1, :]
        _fill_powers(A[..., row + 1, columns], h[..., k], 0)
        row += 2
        # derivatives 1 to 4 are continuous at the inner knots
        for order in range(1, 5) if k + 1 < pieces else ():
            _fill_powers(A[..., row, columns], h[..., k], order)
            A[..., row, 6 * k + 6 + order] = -math.factorial(order)
            row += 1
    for order in (1, 2):
        A[..., row, order] = 1.0
        _fill_powers(A[..., row + 1, -6:], h[..., -1], order)
        row += 2
    return Spline(knots, np.linalg.solve(A, b).reshape(*batch, pieces, 6, n))


def _fill_powers(out: np.ndarray, x: np.ndarray, order: int) -> None:
    """Write d^order/dx^order of 1, x, x^2, ... into zeros (..., powers)."""
    out[..., order] = math.factorial(order)
    for power in range(order + 1, out.shape[-1]):
        np.multiply(out[..., power - 1], (power / (power - order)) * x, out=out[..., power])
