"""The solution z of F(z, x) = 0 as a differentiable statement of a tape.

    z = z0 + dz,    A dz = -F(z0, x),    A = dF/dz

z0 and the factors of A are numbers that were found before: inputs of the tape, without derivatives.
At the solution dz is zero, and its derivative by x is that of the solution, -A^-1 dF/dx: the tape
solves with A in forward mode, and with A* in reverse mode. How z0 was found does not matter.

A is factored as L U without exchanging rows: a tape has no branches. The caller orders the unknowns
so that the leading minors are regular.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psiphi.model.spatial.scalar_arrays import less
from psiphi.model.spatial.screws import dot

TOLERANCE = 1e-6  # relative to the right-hand side, of a test of the factors

Rows = Sequence[Sequence[Any]]  # numbers, arrays or tape expressions


def factor_rows(A: Rows) -> list[list[Any]]:
    """L U = A in one matrix: L is unit lower triangular, the diagonal has 1 / U_ii."""
    n, rows = len(A), [list(row) for row in A]
    for k in range(n):
        rows[k][k] = 1.0 / rows[k][k]
        for i in range(k + 1, n):
            rows[i][k] = rows[i][k] * rows[k][k]
            for j in range(k + 1, n):
                rows[i][j] = rows[i][j] - rows[i][k] * rows[k][j]
    return rows


def solve_rows(factors: Rows, b: Sequence[Any]) -> list[Any]:
    """A^-1 b."""
    n, x = len(factors), list(b)
    for i in range(n):
        x[i] = x[i] - dot(factors[i][:i], x[:i]) if i else x[i]
    for i in reversed(range(n)):
        rest = x[i] - dot(factors[i][i + 1 :], x[i + 1 :]) if i + 1 < n else x[i]
        x[i] = rest * factors[i][i]
    return x


def are_accurate(factors: Rows, A: Rows) -> Any:
    """1 if the factors solve A x = A (1, 1, ...), so that A x is right to TOLERANCE, else 0."""
    ones = [1.0] * len(A)
    b = [dot(row, ones) for row in A]
    x = solve_rows(factors, b)
    error = [dot(row, x) - y for row, y in zip(A, b, strict=True)]
    return less(dot(error, error), TOLERANCE**2 * dot(b, b))
