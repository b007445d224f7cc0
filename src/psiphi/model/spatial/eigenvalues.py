"""Functions of symmetric matrices without branches: Jacobi's rotations, as many sweeps as any matrix of the size needs.

A = Q diag(w) Q*;    f(A) b = Q diag(f(w)) Q* b

On a tape Q stays a list of plane rotations: turning a vector by them costs less than a matrix would. Numbers and arrays take
NumPy's eigenvectors, which are faster there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from psiphi.model.spatial.branch_free import choose, less, on_tape, sign
from psiphi.model.spatial.scalar_arrays import entries, stacked
from psiphi.model.spatial.screws import root
from psiphi.model.spatial.small_matrices import apply

NEAR = 1e-5  # of two diagonal entries: eigenvalues nearer than this are one
SWEEPS = {1: 0, 2: 1, 3: 5, 6: 8}  # measured: one more than leaves 1e-16 off the diagonal


class Plane(NamedTuple):
    """A turn in the plane of coordinates p and q."""

    p: int
    q: int
    c: Any
    s: Any

    def turn(self, x: list) -> None:
        x[self.p], x[self.q] = (
            self.c * x[self.p] - self.s * x[self.q],
            self.s * x[self.p] + self.c * x[self.q],
        )

    def unturn(self, x: list) -> None:
        x[self.p], x[self.q] = (
            self.c * x[self.p] + self.s * x[self.q],
            self.c * x[self.q] - self.s * x[self.p],
        )


def spectrum(A: list) -> tuple[list, list, list[Plane]]:
    """The eigenvalues of a symmetric matrix of one of the SWEEPS' sizes, in no order, the rotations that lay it bare, and what
    they leave off its diagonal between eigenvalues that are NEAR."""
    n, planes = len(A), []
    A = [list(row) for row in A]
    for _ in range(SWEEPS[n]):
        for p in range(n):
            for q in range(p + 1, n):
                planes.append(_rotated(A, p, q))
    return (
        [A[i][i] for i in range(n)],
        [[0.0 if r == c else A[r][c] for c in range(n)] for r in range(n)],
        planes,
    )


def _rotated(A: list, p: int, q: int) -> Plane:
    """Turn A so that its entry (p, q) is zero, by the smaller angle: tan = 2 a sign(d) / (|d| + (d^2 + 4 a^2)^1/2). Where A is
    a multiple of the identity in this plane it stays: no angle is better than another there, and none has a derivative."""
    a, d, near = A[p][q], A[q][q] - A[p][p], NEAR * (A[p][p] + A[q][q])
    to, square = sign(d), d * d + 4.0 * (a * a)
    turns = less(near * near, square)
    t = turns * ((2.0 * a) * to / (to * d + root(choose(turns, square, 1.0))))
    c = 1.0 / root(1.0 + t * t)
    plane = Plane(p, q, c, t * c)
    A[p][p], A[q][q] = A[p][p] - t * a, A[q][q] + t * a
    for r in range(len(A)):
        if r not in (p, q):
            row = A[r]
            plane.turn(row)
            A[p][r], A[q][r] = row[p], row[q]
    A[p][q] = A[q][p] = (1.0 - turns) * a
    return plane


def applied(planes: list[Plane], function: Callable[[list], list], b: list) -> list:
    """Q f(Q* b)."""
    x = list(b)
    for plane in planes:
        plane.turn(x)
    x = function(x)
    for plane in reversed(planes):
        plane.unturn(x)
    return x


def transformed(A: list, function: Callable[[list], tuple[list, list, list]], b: list) -> list:
    """f(A) b of a symmetric matrix; f, f' and f'' / 2 given on the list of all its eigenvalues. NaN where A is not finite.

    With E what is left off the diagonal, f(w + E) = f + (f' E + E f') / 2 + E (f'' / 2) E to second order: so f(A) has its
    first and second derivatives where eigenvalues meet, too."""
    if on_tape(*(x for row in A for x in row)):
        w, left, planes = spectrum(A)
        f, slope, bend = function(w)

        def near(x: list) -> list:
            moved, turned = (
                apply(left, x),
                apply(left, [s * y for s, y in zip(slope, x, strict=True)]),
            )
            bent = apply(left, [s * y for s, y in zip(bend, moved, strict=True)])
            rows = zip(f, x, slope, moved, turned, bent, strict=True)
            return [
                value * y + (0.5 * (s * by + back) + more) for value, y, s, by, back, more in rows
            ]

        return applied(planes, near, b)
    matrix = np.stack(np.broadcast_arrays(*map(stacked, A)), axis=-2)
    finite: Any = np.isfinite(matrix).all(axis=(-2, -1), keepdims=True)
    w, Q = np.linalg.eigh(np.where(finite, matrix, np.eye(len(A))))
    share = np.where(finite[..., 0], stacked(function(entries(w))[0]), np.nan)
    return entries(np.einsum("...ij,...j,...kj,...k->...i", Q, share, Q, stacked(b)))
