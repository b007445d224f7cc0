"""Functions of symmetric matrices without branches: A = Q diag(w) Q*, f(A) b = Q diag(f(w)) Q* b.

On a tape, Jacobi's method runs a fixed number of sweeps, enough for any matrix of the size. Q stays
a list of plane rotations, which multiply a vector at lower cost than a matrix. Numbers and arrays
use the faster `numpy.linalg.eigh`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from psiphi.model.spatial.branch_free import choose, less, on_tape, sign
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.model.spatial.screws import square_root
from psiphi.model.spatial.small_matrices import apply

EQUAL_TOLERANCE = 1e-5  # eigenvalues closer than this, relative to their sum, count as equal
SWEEPS = {1: 0, 2: 1, 3: 5, 6: 8}  # per matrix size; one more than measured to leave 1e-16


class PlaneRotation(NamedTuple):
    """A rotation in the plane of coordinates p and q, by the angle with cosine c and sine s."""

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


def diagonalize(A: list) -> tuple[list, list, list[PlaneRotation]]:
    """Unordered eigenvalues, remaining off-diagonal entries and Jacobi rotations of a symmetric A.

    The size of A is a key of SWEEPS. Off-diagonal entries remain only between equal eigenvalues.
    """
    n, planes = len(A), []
    A = [list(row) for row in A]
    for _ in range(SWEEPS[n]):
        for p in range(n):
            for q in range(p + 1, n):
                planes.append(_jacobi_rotation(A, p, q))
    return (
        [A[i][i] for i in range(n)],
        [[0.0 if r == c else A[r][c] for c in range(n)] for r in range(n)],
        planes,
    )


def _jacobi_rotation(A: list, p: int, q: int) -> PlaneRotation:
    """Rotate A in place so that its entry (p, q) is zero.

    tan = 2 a sign(d) / (|d| + (d^2 + 4 a^2)^1/2), the smaller of the two angles. If A is a multiple
    of the identity in this plane, it is not rotated: no angle is determined, and none has a
    derivative.
    """
    a, d, tolerance = A[p][q], A[q][q] - A[p][p], EQUAL_TOLERANCE * (A[p][p] + A[q][q])
    side, square = sign(d), d * d + 4.0 * (a * a)
    distinct = less(tolerance * tolerance, square)
    t = distinct * ((2.0 * a) * side / (side * d + square_root(choose(distinct, square, 1.0))))
    c = 1.0 / square_root(1.0 + t * t)
    plane = PlaneRotation(p, q, c, t * c)
    A[p][p], A[q][q] = A[p][p] - t * a, A[q][q] + t * a
    for r in range(len(A)):
        if r not in (p, q):
            row = A[r]
            plane.turn(row)
            A[p][r], A[q][r] = row[p], row[q]
    A[p][q] = A[q][p] = (1.0 - distinct) * a
    return plane


def apply_in_eigenbasis(
    planes: list[PlaneRotation], function: Callable[[list], list], b: list
) -> list:
    """Q f(Q* b)."""
    x = list(b)
    for plane in planes:
        plane.turn(x)
    x = function(x)
    for plane in reversed(planes):
        plane.unturn(x)
    return x


def matrix_function_product(
    A: list, function: Callable[[list], tuple[list, list, list]], b: list
) -> list:
    """f(A) b for a symmetric A; `function` maps the list of eigenvalues to (f, f', f'' / 2).

    NaN if A is not finite. With E the remaining off-diagonal part,
    f(w + E) = f + (f' E + E f') / 2 + E (f'' / 2) E to second order. So f(A) has correct first and
    second derivatives also where eigenvalues are equal.
    """
    if on_tape(*(x for row in A for x in row)):
        w, E, planes = diagonalize(A)
        f, slope, curvature = function(w)

        def second_order(x: list) -> list:
            Ex = apply(E, x)
            Esx = apply(E, [s * y for s, y in zip(slope, x, strict=True)])
            EcEx = apply(E, [c * y for c, y in zip(curvature, Ex, strict=True)])
            rows = zip(f, x, slope, Ex, Esx, EcEx, strict=True)
            return [value * y + (0.5 * (s * e + es) + ece) for value, y, s, e, es, ece in rows]

        return apply_in_eigenbasis(planes, second_order, b)
    matrix = np.stack(np.broadcast_arrays(*map(stack_entries, A)), axis=-2)
    finite: Any = np.isfinite(matrix).all(axis=(-2, -1), keepdims=True)
    w, Q = np.linalg.eigh(np.where(finite, matrix, np.eye(len(A))))
    f = np.where(finite[..., 0], stack_entries(function(entries(w))[0]), np.nan)
    return entries(np.einsum("...ij,...j,...kj,...k->...i", Q, f, Q, stack_entries(b)))
