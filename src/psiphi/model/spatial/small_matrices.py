"""Small dense matrices of any scalar, as lists of rows: products, L D L* factors and solves."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from psiphi._util.array_types import AnyScalar
from psiphi.model.spatial.screws import add, dot


def factor(A: list, inverse: Callable = lambda d, diagonal: 1.0 / d) -> tuple[list, list]:
    """(L, d_inv) with A = L diag(d) L*, A symmetric positive definite, L unit lower triangular.

    d_inv is 1 / d. `inverse(d, A_jj)` returns 1 / d for the pivot d; the default raises
    ZeroDivisionError if a pivot is the float 0.0.
    """
    n = len(A)
    L: list = [[0.0] * n for _ in range(n)]
    scaled: list = [[0.0] * n for _ in range(n)]  # L diag(d)
    d_inv = []
    for j in range(n):
        d = A[j][j]
        for k in range(j):
            d = d - L[j][k] * scaled[j][k]
        d_inv.append(inverse(d, A[j][j]))
        for i in range(j + 1, n):
            s = A[i][j]
            for k in range(j):
                s = s - scaled[i][k] * L[j][k]
            scaled[i][j] = s
            L[i][j] = s * d_inv[j]
    return L, d_inv


def ill_conditioning(
    A: list, d_inv: list, floor: list | None = None, start: AnyScalar = 0.0
) -> AnyScalar:
    """start + sum_j (A_jj^2 + floor_j^2) / d_j^2, d_j the pivots: large if A is nearly singular."""
    total = start
    for j, inverse in enumerate(d_inv):
        ratio, second = A[j][j] * inverse, 0.0 if floor is None else floor[j] * inverse
        total = total + (ratio * ratio + second * second)
    return total


def solve(factors: tuple[list, list], b: list) -> list:
    """x with L diag(d) L* x = b."""
    L, d_inv = factors
    x = forward(L, b)
    return backward(L, [value * d for value, d in zip(x, d_inv, strict=True)])


def forward(L: list, b: list) -> list:
    """L^-1 b for unit lower triangular L."""
    x = list(b)
    for i in range(len(x)):
        for k in range(i):
            x[i] = x[i] - L[i][k] * x[k]
    return x


def backward(L: list, b: list) -> list:
    """L^-* b for unit lower triangular L."""
    x = list(b)
    for i in reversed(range(len(x))):
        for k in range(i + 1, len(x)):
            x[i] = x[i] - L[k][i] * x[k]
    return x


def multiply_lower(L: list, x: list) -> list:
    """L x for unit lower triangular L."""
    return [x[i] if i == 0 else x[i] + dot(L[i][:i], x[:i]) for i in range(len(x))]


def multiply_upper(L: list, x: list) -> list:
    """L* x for unit lower triangular L."""
    n = len(x)
    return [
        x[i] if i == n - 1 else x[i] + dot([L[k][i] for k in range(i + 1, n)], x[i + 1 :])
        for i in range(n)
    ]


def transpose(A: list) -> list:
    return [list(column) for column in zip(*A, strict=True)]


def apply(A: list, x: list) -> list:
    """A x."""
    return [dot(row, x) for row in A]


def adjoint_map(H: list, x: list) -> list:
    """H* x: the spatial velocity of a joint with map H at the rates x."""
    return apply(transpose(H), x)


def product(A: list, B: list) -> list:
    """A B."""
    columns = transpose(B)
    return [[dot(row, column) for column in columns] for row in A]


def body_part(x: list, index: int, size: int = 6) -> list:
    """The entries of body `index` in a stack of bodies with `size` entries each."""
    return x[index * size : (index + 1) * size]


def flatten(rows: Iterable) -> list:
    """The entries of all rows in one list."""
    return [x for row in rows for x in row]


def add_matrices(A: list, B: list) -> list:
    """A + B."""
    return [add(x, y) for x, y in zip(A, B, strict=True)]


def shifted_second_moment(J, mass, p, l) -> list:
    """J + l p* + p l* + m l l*: the second moment J of a mass m with first moment p, shifted by l.

    The terms are written out, so that zeros in l fold on the tape. If l has no zeros,
    l (p + m l / 2)* and its transpose would need fewer operations.
    """
    rows = [
        [J[i][j] + l[i] * p[j] + l[j] * p[i] + mass * (l[i] * l[j]) for j in range(i, 3)]
        for i in range(3)
    ]
    return [[rows[min(i, j)][abs(i - j)] for j in range(3)] for i in range(3)]


def mirror_upper_half(A: list) -> list:
    """A with its lower half replaced by the upper half, so that it is symmetric to the last bit."""
    return [[A[min(r, c)][max(r, c)] for c in range(len(A))] for r in range(len(A))]
