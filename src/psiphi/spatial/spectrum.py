"""Functions of symmetric matrices without branches: Jacobi's rotations, as many sweeps as any matrix of the size needs.

A = Q diag(w) Q*;    f(A) b = Q diag(f(w)) Q* b

On a tape Q stays a list of plane rotations: turning a vector by them costs less than a matrix would. Numbers and arrays take
NumPy's eigenvectors, which are faster there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from psiphi.spatial.choices import on_tape, sign
from psiphi.spatial.entries import entries, stacked
from psiphi.spatial.screws import root

TINY = 1e-300  # keeps what is divided by from being zero, in float64
SWEEPS = {1: 0, 2: 1, 3: 5, 6: 8}  # measured: one more than leaves 1e-16 off the diagonal


class Plane(NamedTuple):
    """A turn in the plane of coordinates p and q."""

    p: int
    q: int
    c: Any
    s: Any

    def turn(self, x: list) -> None:
        x[self.p], x[self.q] = self.c * x[self.p] - self.s * x[self.q], self.s * x[self.p] + self.c * x[self.q]

    def unturn(self, x: list) -> None:
        x[self.p], x[self.q] = self.c * x[self.p] + self.s * x[self.q], self.c * x[self.q] - self.s * x[self.p]


def spectrum(A: list) -> tuple[list, list[Plane]]:
    """The eigenvalues of a symmetric matrix of one of the SWEEPS' sizes, in no order, and the rotations that lay it bare."""
    n, planes = len(A), []
    A = [list(row) for row in A]
    for _ in range(SWEEPS[n]):
        for p in range(n):
            for q in range(p + 1, n):
                planes.append(_rotated(A, p, q))
    return [A[i][i] for i in range(n)], planes


def _rotated(A: list, p: int, q: int) -> Plane:
    """Turn A so that its entry (p, q) is zero, by the smaller angle: tan = 2 a sign(d) / (|d| + (d^2 + 4 a^2)^1/2)."""
    a, d = A[p][q], A[q][q] - A[p][p]
    to = sign(d)
    t = (2.0 * a) * to / (to * d + root(d * d + 4.0 * (a * a) + TINY))
    c = 1.0 / root(1.0 + t * t)
    plane = Plane(p, q, c, t * c)
    A[p][p], A[q][q] = A[p][p] - t * a, A[q][q] + t * a
    for r in range(len(A)):
        if r not in (p, q):
            row = A[r]
            plane.turn(row)
            A[p][r], A[q][r] = row[p], row[q]
    A[p][q] = A[q][p] = 0.0
    return plane


def applied(w: list, planes: list[Plane], b: list) -> list:
    """Q diag(w) Q* b."""
    x = list(b)
    for plane in planes:
        plane.turn(x)
    x = [value * y for value, y in zip(w, x, strict=True)]
    for plane in reversed(planes):
        plane.unturn(x)
    return x


def transformed(A: list, function: Callable[[list], list], b: list) -> list:
    """f(A) b of a symmetric matrix, f given on the list of all its eigenvalues; NaN where A is not finite."""
    if on_tape(*(x for row in A for x in row)):
        w, planes = spectrum(A)
        return applied(function(w), planes, b)
    matrix = np.stack(np.broadcast_arrays(*map(stacked, A)), axis=-2)
    finite: Any = np.isfinite(matrix).all(axis=(-2, -1), keepdims=True)
    w, Q = np.linalg.eigh(np.where(finite, matrix, np.eye(len(A))))
    share = np.where(finite[..., 0], stacked(function(entries(w))), np.nan)
    return entries(np.einsum("...ij,...j,...kj,...k->...i", Q, share, Q, stacked(b)))
