"""What to do where X = Q diag(w) Q*, symmetric and non-negative, has no inverse: one function of w a policy, on any scalars.

exact     1 / w; 0 / 0, which is no number, where w <= rcond max(w)
pseudo    1 / w where w > rcond max(w), else 0: the least-norm answer, forces that do nothing are left out
damped    w / (w^2 + damping^2 max(w)^2): smooth everywhere
faded     f(w) / w with f = 3 x^2 - 2 x^3, x = min(1, w / fade): 1 / w above `fade`, and smoothly nothing where w -> 0
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

from psiphi.model.spatial.branch_free import choose, least, less, most
from psiphi.model.spatial.eigenvalues import transformed
from psiphi.model.spatial.screws import root
from psiphi.model.spatial.small_matrices import factor
from psiphi.model.spatial.small_matrices import solve as solved


def _largest(w: list, top: Any) -> Any:
    """What eigenvalues are measured by: the largest, unless something larger is given."""
    return reduce(most, w, 0.0) if top is None else top


def _kept(w: list, rcond: Any, top: Any) -> list:
    """1 for eigenvalues above rcond times the largest, 0 for the others."""
    floor = rcond * _largest(w, top)
    return [less(floor, x) for x in w]


def exact(w: list, rcond: Any, top: Any = None) -> list:
    return [on / (on * x) for on, x in zip(_kept(w, rcond, top), w, strict=True)]


def pseudo(w: list, rcond: Any, top: Any = None) -> list:
    return [on / choose(on, x, 1.0) for on, x in zip(_kept(w, rcond, top), w, strict=True)]


def damped(w: list, damping: Any, top: Any = None) -> list:
    return [x * over for x, over in zip(w, _over_squares(w, damping, top), strict=True)]


def _over_squares(w: list, damping: Any, top: Any) -> list:
    """1 / (w^2 + damping^2 max(w)^2); 1 where nothing has a compliance."""
    small = damping * _largest(w, top)
    squares = [x * x + small * small for x in w]
    return [1.0 / choose(less(0.0, x), x, 1.0) for x in squares]


def faded(w: list, fade: Any, top: Any = None) -> list:
    out = []
    for value in w:
        x = least(most(value / fade, 0.0), 1.0)
        out.append(x * x * (3.0 - 2.0 * x) / choose(less(0.0, value), value, 1.0))
    return out


POLICIES: dict[str, Callable[..., list]] = {
    "faded": faded,
    "pseudo": pseudo,
    "exact": exact,
    "damped": damped,
}


# -- f' and f'' / 2 of these functions f of w, what they are measured by kept --------------------------------------------------


def _inverse_slopes(w: list, f: list, number: Any, top: Any) -> tuple[list, list]:
    return [-x * x for x in f], [x * x * x for x in f]


def _damped_slopes(w: list, f: list, damping: Any, top: Any) -> tuple[list, list]:
    """With 1 / (w^2 + s) = y and f = w y: f' = y - 2 f^2, f'' / 2 = 4 f^3 - 3 f y."""
    over = _over_squares(w, damping, top)
    rows = list(zip(f, over, strict=True))
    return [y - 2.0 * (x * x) for x, y in rows], [x * (4.0 * (x * x) - 3.0 * y) for x, y in rows]


def _faded_slopes(w: list, f: list, fade: Any, top: Any) -> tuple[list, list]:
    """Below `fade` f is (3 fade - 2 w) w / fade^3."""
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


def solve(policy: str, X: list, b: list, number: Any, beside: list | None = None) -> list:
    """Lambda b of X = J M^-1 J* (3 or 6 rows, angular ones first) by a policy and its number.

    "faded" first divides angular and linear rows by the root of their mean compliance: w has no unit then, and does not depend
    on axes; f / w stays below 1.2 / fade. What is left of a compliance is measured by the whole, `beside` it: where nothing is
    left, rounding is not taken for something.

    >>> X = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    >>> [round(float(x), 12) for x in solve("faded", X, [1.0, 2.0, 3.0], 0.03)]
    [1.0, 2.0, 0.0]
    >>> I = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    >>> [float(x) for x in solve("pseudo", [[1e-17 * x for x in row] for row in I], [1.0, 2.0, 3.0], 1e-9, I)]
    [0.0, 0.0, 0.0]
    """
    whole, top = (
        (X, None)
        if beside is None
        else (beside, reduce(add, (row[k] for k, row in enumerate(beside))))
    )

    def share(w: list) -> tuple[list, list, list]:
        f = POLICIES[policy](w, number, top)
        return f, *SLOPES[policy](w, f, number, top)

    if policy != "faded":
        return transformed(X, share, b)
    scale, scaled = _scaled(X, whole)
    inner = transformed(scaled, share, [s * x for s, x in zip(scale, b, strict=True)])
    return [s * x for s, x in zip(scale, inner, strict=True)]


WITHOUT = ("faded", "pseudo", "exact")  # policies that are 1 / w where no eigenvalue is small


def regular(
    policy: str, X: list, b: list, number: Any, beside: list | None = None
) -> tuple[list, Any]:
    """X^-1 b and 1 where that is what `solve` answers: where X - c I > 0, c the bound below which it lets go of directions.
    Elsewhere some finite numbers, and 0. That matrices are positive is told by the pivots of L D L*: no eigenvalues.

    >>> X = [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0]]
    >>> x, sure = regular("faded", X, [1.0, 2.0, 3.0], 0.03)
    >>> [round(float(y), 12) for y in x], float(sure), float(regular("exact", [[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0], 1e-9)[1])
    ([1.0, 1.0, 0.75], 1.0, 0.0)
    """
    whole = X if beside is None else beside
    if policy == "faded":
        scale, A = _scaled(X, whole)
        bound = number
    else:  # no eigenvalue exceeds the trace
        scale, A = [1.0] * len(X), X
        bound = number * reduce(add, (row[k] for k, row in enumerate(whole)))
    known, sure = sure_factor(A, bound)
    inner = solved(known, [s * x for s, x in zip(scale, b, strict=True)])
    return [s * x for s, x in zip(scale, inner, strict=True)], sure


def sure_factor(A: list, bound: Any) -> tuple[Any, Any]:
    """Factors of a symmetric A, and 1 where its pivots tell that no eigenvalue is below the bound; else 0, and no factors."""
    sure: Any = 1.0

    def pivot(d: Any, diagonal: Any) -> Any:
        nonlocal sure
        positive = less(0.0, d)
        sure = sure * positive
        return 1.0 / choose(positive, d, 1.0)

    factor(
        [[x - bound if i == j else x for j, x in enumerate(row)] for i, row in enumerate(A)], pivot
    )
    return factor(A, lambda d, diagonal: 1.0 / choose(sure, d, 1.0)), sure


def _scaled(X: list, whole: list) -> tuple[list, list]:
    """The scales of the rows, and X in them."""
    scale = []
    for k in range(0, len(X), 3):
        mean = (whole[k][k] + whole[k + 1][k + 1] + whole[k + 2][k + 2]) * (1.0 / 3.0)
        scale += [1.0 / root(choose(less(0.0, mean), mean, 1.0))] * 3
    return scale, [
        [x * (a * c) for x, c in zip(row, scale, strict=True)]
        for a, row in zip(scale, X, strict=True)
    ]
