"""Curves through points: piecewise polynomials, with any batch axes.

cubic     natural: q'' continuous, zero at the ends; least integral of |q''|^2
quintic   q'''' continuous, at rest at the ends; least integral of |q'''|^2 (minimum jerk, Flash and Hogan 1985)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Spline:
    """knots (..., K), coefficients (..., K - 1, degree + 1, n) of powers of s - knot."""

    knots: np.ndarray
    coefficients: np.ndarray

    def __call__(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, dq/ds, d2q/ds2 at s (..., N), each (..., N, n)."""
        piece = np.clip((s[..., None] >= self.knots[..., None, 1:-1]).sum(axis=-1), 0, self.knots.shape[-1] - 2)
        x = (s - np.take_along_axis(self.knots, piece, axis=-1))[..., None]
        own = np.take_along_axis(self.coefficients, piece[..., None, None], axis=-3)
        last = own.shape[-2] - 1
        value, first, second = (np.zeros(own.shape[:-2] + own.shape[-1:]) for _ in range(3))
        for power in range(last, -1, -1):  # Horner's scheme of the value and of its derivatives
            second = second * x + 2.0 * first
            first = first * x + value
            value = value * x + own[..., power, :]
        return value, first, second

    def at(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same at one s for each curve, with more batch axes in front: s (more, ...) -> (more, ..., n)."""
        knots = np.broadcast_to(self.knots, (*s.shape, self.knots.shape[-1]))
        wide = Spline(knots, np.broadcast_to(self.coefficients, (*s.shape, *self.coefficients.shape[-3:])))
        q, first, second = (x[..., 0, :] for x in wide(s[..., None]))
        return q, first, second


def cubic(knots: np.ndarray, points: np.ndarray) -> Spline:
    """Natural, through points (..., K, n) at knots (..., K)."""
    h, count = np.diff(knots)[..., None], knots.shape[-1]
    slope = np.diff(points, axis=-2) / h
    bend = np.zeros(points.shape)  # q'' at the knots
    if count > 2:
        inner = np.arange(count - 2)
        A = np.zeros((*knots.shape[:-1], count - 2, count - 2))
        A[..., inner, inner] = 2.0 * (h[..., :-1, 0] + h[..., 1:, 0])
        A[..., inner[1:], inner[:-1]] = A[..., inner[:-1], inner[1:]] = h[..., 1:-1, 0]
        bend[..., 1:-1, :] = np.linalg.solve(A, 6.0 * np.diff(slope, axis=-2))
    first = slope - h * (2.0 * bend[..., :-1, :] + bend[..., 1:, :]) / 6.0
    parts = [points[..., :-1, :], first, 0.5 * bend[..., :-1, :], np.diff(bend, axis=-2) / (6.0 * h)]
    return Spline(knots, np.stack(parts, axis=-2))


def quintic(knots: np.ndarray, points: np.ndarray) -> Spline:
    """At rest at both ends, through points (..., K, n) at knots (..., K): one linear system for all coordinates."""
    pieces, lead, n = knots.shape[-1] - 1, knots.shape[:-1], points.shape[-1]
    h = np.diff(knots)
    A, b = np.zeros((*lead, 6 * pieces, 6 * pieces)), np.zeros((*lead, 6 * pieces, n))
    row = 0
    for k in range(pieces):
        own = slice(6 * k, 6 * k + 6)
        A[..., row, 6 * k], b[..., row, :] = 1.0, points[..., k, :]
        A[..., row + 1, own], b[..., row + 1, :] = _derivative(h[..., k], 0), points[..., k + 1, :]
        row += 2
        for order in range(1, 5) if k + 1 < pieces else ():  # the next piece goes on as this one ends
            A[..., row, own] = _derivative(h[..., k], order)
            A[..., row, 6 * k + 6 : 6 * k + 12] = -_derivative(np.zeros(lead), order)
            row += 1
    for order in (1, 2):
        A[..., row, :6] = _derivative(np.zeros(lead), order)
        A[..., row + 1, -6:] = _derivative(h[..., -1], order)
        row += 2
    return Spline(knots, np.linalg.solve(A, b).reshape(*lead, pieces, 6, n))


def _derivative(x: np.ndarray, order: int) -> np.ndarray:
    """(..., 6): d^order/dx^order of 1, x, ..., x^5."""
    out = np.zeros((*x.shape, 6))
    for power in range(order, 6):
        factor = np.prod(np.arange(power - order + 1, power + 1, dtype=float))
        out[..., power] = factor * x ** (power - order)
    return out
