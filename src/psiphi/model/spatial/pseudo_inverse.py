"""Inverses of X = Q diag(w) Q*, symmetric and positive semidefinite, on any scalars.

Each policy is a function of the eigenvalues w that replaces 1 / w:

exact     1 / w; NaN (0 / 0) where w <= rcond max(w)
pseudo    1 / w where w > rcond max(w), else 0: the least-norm solution
damped    w / (w^2 + damping^2 max(w)^2): smooth everywhere
faded     (3 x^2 - 2 x^3) / w with x = min(1, w / fade): 1 / w above `fade`, smooth, 0 at w = 0
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

from psiphi._util.array_types import AnyScalar
from psiphi.model.spatial.branch_free import choose, less, maximum, minimum
from psiphi.model.spatial.eigenvalues import matrix_function_product
from psiphi.model.spatial.screws import square_root
from psiphi.model.spatial.small_matrices import factor
from psiphi.model.spatial.small_matrices import solve as ldl_solve


def _scale(w: list, top: AnyScalar | None) -> AnyScalar:
    """The scale of the eigenvalues: the largest one, or `top` if given."""
    return reduce(maximum, w, 0.0) if top is None else top


def _significant(w: list, rcond: AnyScalar, top: AnyScalar | None) -> list:
    """1 for each eigenvalue above rcond times the scale, 0 for the others."""
    floor = rcond * _scale(w, top)
    return [less(floor, x) for x in w]


def exact(w: list, rcond: AnyScalar, top: AnyScalar | None = None) -> list:
    return [on / (on * x) for on, x in zip(_significant(w, rcond, top), w, strict=True)]


def pseudo(w: list, rcond: AnyScalar, top: AnyScalar | None = None) -> list:
    return [on / choose(on, x, 1.0) for on, x in zip(_significant(w, rcond, top), w, strict=True)]


def damped(w: list, damping: AnyScalar, top: AnyScalar | None = None) -> list:
    return [x * over for x, over in zip(w, _inverse_damped_squares(w, damping, top), strict=True)]


def _inverse_damped_squares(w: list, damping: AnyScalar, top: AnyScalar | None) -> list:
    """1 / (w^2 + damping^2 max(w)^2); 1 if all eigenvalues are zero."""
    small = damping * _scale(w, top)
    squares = [x * x + small * small for x in w]
    return [1.0 / choose(less(0.0, x), x, 1.0) for x in squares]


def faded(w: list, fade: AnyScalar, top: AnyScalar | None = None) -> list:
    out = []
    for value in w:
        x = minimum(maximum(value / fade, 0.0), 1.0)
        out.append(x * x * (3.0 - 2.0 * x) / choose(less(0.0, value), value, 1.0))
    return out


POLICIES: dict[str, Callable[..., list]] = {
    "faded": faded,
    "pseudo": pseudo,
    "exact": exact,
    "damped": damped,
}


# -- f' and f'' / 2 of these functions f of w, at a constant scale ---------------------------------


def _inverse_slopes(w: list, f: list, number: AnyScalar, top: object) -> tuple[list, list]:
    return [-x * x for x in f], [x * x * x for x in f]


def _damped_slopes(
    w: list, f: list, damping: AnyScalar, top: AnyScalar | None
) -> tuple[list, list]:
    """With 1 / (w^2 + s) = y and f = w y: f' = y - 2 f^2, f'' / 2 = 4 f^3 - 3 f y."""
    over = _inverse_damped_squares(w, damping, top)
    rows = list(zip(f, over, strict=True))
    return [y - 2.0 * (x * x) for x, y in rows], [x * (4.0 * (x * x) - 3.0 * y) for x, y in rows]


def _faded_slopes(w: list, f: list, fade: AnyScalar, top: object) -> tuple[list, list]:
    """Below `fade`, f = (3 fade - 2 w) w / fade^3."""
    cube = 1.0 / (fade * fade * fade)
    below = [less(x, fade) for x in w]
    slopes = [
        choose(on, (3.0 * fade - 4.0 * x) * cube, -y * y)
        for on, x, y in zip(below, w, f, strict=True)
    ]
    return slopes, [choose(on, -2.0 * cube, y * y * y) for on, y in zip(below, f, strict=True)]


SLOPES = {
    "faded": _faded_slopes,
    "pseudo": _inverse_slopes,
    "exact": _inverse_slopes,
    "damped": _damped_slopes,
}


def solve(policy: str, X: list, b: list, number: AnyScalar, whole: list | None = None) -> list:
    """X^-1 b by a policy and its number, for X = J M^-1 J* with 3 or 6 rows, angular ones first.

    "faded" first divides the angular and the linear rows by the root of their mean compliance. Then
    w has no unit and does not depend on the axes, and f(w) stays below 1.2 / fade. If X is what
    remains of a compliance `whole` after a projection, `whole` sets the scale, so that rounding
    errors in X do not count as compliance.

    >>> X = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    >>> [round(float(x), 12) for x in solve("faded", X, [1.0, 2.0, 3.0], 0.03)]
    [1.0, 2.0, 0.0]
    >>> I = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    >>> tiny = [[1e-17 * x for x in row] for row in I]
    >>> [float(x) for x in solve("pseudo", tiny, [1.0, 2.0, 3.0], 1e-9, I)]
    [0.0, 0.0, 0.0]
    """
    whole, top = (
        (X, None)
        if whole is None
        else (whole, reduce(add, (row[k] for k, row in enumerate(whole))))
    )

    def function(w: list) -> tuple[list, list, list]:
        f = POLICIES[policy](w, number, top)
        return f, *SLOPES[policy](w, f, number, top)

    if policy != "faded":
        return matrix_function_product(X, function, b)
    scale, scaled = _scale_rows(X, whole)
    inner = matrix_function_product(
        scaled, function, [s * x for s, x in zip(scale, b, strict=True)]
    )
    return [s * x for s, x in zip(scale, inner, strict=True)]


INVERSE_POLICIES = ("faded", "pseudo", "exact")  # equal to 1 / w if no eigenvalue is small


def solve_if_definite(
    policy: str, X: list, b: list, number: AnyScalar, whole: list | None = None
) -> tuple[list, Any]:
    """X^-1 b and 1 if X - c I > 0; else finite numbers without meaning, and 0.

    c is the eigenvalue below which the policy differs from 1 / w, so with 1 the result is that of
    `solve`. The signs of the pivots of L D L* decide; no eigenvalues are computed.

    >>> X = [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0]]
    >>> x, definite = solve_if_definite("faded", X, [1.0, 2.0, 3.0], 0.03)
    >>> [round(float(y), 12) for y in x], float(definite)
    ([1.0, 1.0, 0.75], 1.0)
    >>> float(solve_if_definite("exact", [[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0], 1e-9)[1])
    0.0
    """
    whole = X if whole is None else whole
    if policy == "faded":
        scale, A = _scale_rows(X, whole)
        bound = number
    else:  # no eigenvalue exceeds the trace
        scale, A = [1.0] * len(X), X
        bound = number * reduce(add, (row[k] for k, row in enumerate(whole)))
    factors, definite = factor_if_definite(A, bound)
    inner = ldl_solve(factors, [s * x for s, x in zip(scale, b, strict=True)])
    return [s * x for s, x in zip(scale, inner, strict=True)], definite


def factor_if_definite(A: list, bound: AnyScalar) -> tuple[Any, Any]:
    """L D L* factors of a symmetric A, and 1 if all eigenvalues exceed `bound`.

    Else the second result is 0 and the factors are meaningless.
    """
    definite: Any = 1.0

    def pivot(d: AnyScalar, diagonal: AnyScalar) -> AnyScalar:
        nonlocal definite
        positive = less(0.0, d)
        definite = definite * positive
        return 1.0 / choose(positive, d, 1.0)

    factor(
        [[x - bound if i == j else x for j, x in enumerate(row)] for i, row in enumerate(A)], pivot
    )
    return factor(A, lambda d, diagonal: 1.0 / choose(definite, d, 1.0)), definite


def _scale_rows(X: list, whole: list) -> tuple[list, list]:
    """Row scales s from the mean compliances of `whole`, and diag(s) X diag(s)."""
    scale = []
    for k in range(0, len(X), 3):
        mean = (whole[k][k] + whole[k + 1][k + 1] + whole[k + 2][k + 2]) * (1.0 / 3.0)
        scale += [1.0 / square_root(choose(less(0.0, mean), mean, 1.0))] * 3
    return scale, [
        [x * (a * c) for x, c in zip(row, scale, strict=True)]
        for a, row in zip(scale, X, strict=True)
    ]
