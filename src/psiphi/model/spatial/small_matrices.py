"""Small dense matrices of any scalar: sums, L D L* factors and solves, for joints of several degrees of freedom."""

from __future__ import annotations

from psiphi.model.spatial.screws import add, dot


def factor(A, inverse=lambda d, diagonal: 1.0 / d) -> tuple[list, list]:
    """(L, d_inv): A = L diag(d) L* for symmetric positive definite A, L unit lower triangular, d_inv = 1 / d.

    `inverse(d, A_jj)` is asked for every pivot; a pivot that is the number zero, in every state, is an error unless it answers.
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


def strain(A, d_inv, faint=None, start=0.0):
    """start + sum (A_jj / d_j)^2 of the pivots d: large where one is small beside its diagonal; also by `faint` / d_j."""
    total = start
    for j, inverse in enumerate(d_inv):
        ratio, beside = A[j][j] * inverse, 0.0 if faint is None else faint[j] * inverse
        total = total + (ratio * ratio + beside * beside)
    return total


def solve(factors, b) -> list:
    """x with L diag(d) L* x = b."""
    L, d_inv = factors
    x = forward(L, b)
    return backward(L, [value * d for value, d in zip(x, d_inv, strict=True)])


def forward(L, b) -> list:
    """L^-1 b for unit lower triangular L."""
    x = list(b)
    for i in range(len(x)):
        for k in range(i):
            x[i] = x[i] - L[i][k] * x[k]
    return x


def backward(L, b) -> list:
    """L^-* b for unit lower triangular L."""
    x = list(b)
    for i in reversed(range(len(x))):
        for k in range(i + 1, len(x)):
            x[i] = x[i] - L[k][i] * x[k]
    return x


def lower(L, x) -> list:
    """L x for unit lower triangular L."""
    return [x[i] if i == 0 else x[i] + dot(L[i][:i], x[:i]) for i in range(len(x))]


def upper(L, x) -> list:
    """L* x for unit lower triangular L."""
    n = len(x)
    return [
        x[i] if i == n - 1 else x[i] + dot([L[k][i] for k in range(i + 1, n)], x[i + 1 :])
        for i in range(n)
    ]


def transpose(A) -> list:
    return [list(column) for column in zip(*A, strict=True)]


def apply(A, x) -> list:
    """A x."""
    return [dot(row, x) for row in A]


def adjoint_map(H, x) -> list:
    """H* x: of a joint's map H, the spatial motion of its rates x."""
    return apply(transpose(H), x)


def product(A, B) -> list:
    """A B."""
    columns = transpose(B)
    return [[dot(row, column) for column in columns] for row in A]


def part(x: list, at: int, size: int = 6) -> list:
    """The numbers of one body of several."""
    return x[at * size : (at + 1) * size]


def flat(rows) -> list:
    """Entries row by row, one after the other."""
    return [x for row in rows for x in row]


def plus(A, B) -> list:
    """A + B."""
    return [add(x, y) for x, y in zip(A, B, strict=True)]


def steiner(J, mass, p, l) -> list:
    """J + l p* + p l* + m l l*: the second moment of a mass m with first moment p, seen from where its origin is at l.

    Written out, so that zeros of l fold it away; with l (p + m l / 2)* and its adjoint it would cost less where l has none."""
    rows = [
        [J[i][j] + l[i] * p[j] + l[j] * p[i] + mass * (l[i] * l[j]) for j in range(i, 3)]
        for i in range(3)
    ]
    return [[rows[min(i, j)][abs(i - j)] for j in range(3)] for i in range(3)]


def symmetric(A) -> list:
    """By its upper half: below the diagonal stands what stands above it, to the last bit."""
    return [[A[min(r, c)][max(r, c)] for c in range(len(A))] for r in range(len(A))]
