"""What to do where X = Q diag(w) Q*, symmetric and non-negative, has no inverse: one function of w a policy, on any scalars.

exact     1 / w; 0 / 0, which is no number, where w <= rcond max(w)
pseudo    1 / w where w > rcond max(w), else 0: the least-norm answer, forces that do nothing are left out
damped    w / (w^2 + damping^2 max(w)^2): smooth everywhere
faded     f(w) / w with f = 3 x^2 - 2 x^3, x = min(1, w / fade): 1 / w above `fade`, and smoothly nothing where w -> 0
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from psiphi.spatial.choices import choose, least, less, most
from psiphi.spatial.rotations import TINY
from psiphi.spatial.screws import root
from psiphi.spatial.small import factor
from psiphi.spatial.small import solve as solved
from psiphi.spatial.spectrum import transformed


def _kept(w: list, rcond: Any) -> list:
    """1 for eigenvalues above rcond times the largest, 0 for the others."""
    floor = rcond * reduce(most, w, 0.0)
    return [less(floor, x) for x in w]


def exact(w: list, rcond: Any) -> list:
    return [on / (on * x) for on, x in zip(_kept(w, rcond), w, strict=True)]


def pseudo(w: list, rcond: Any) -> list:
    return [on / choose(on, x, 1.0) for on, x in zip(_kept(w, rcond), w, strict=True)]


def damped(w: list, damping: Any) -> list:
    small = damping * reduce(most, w, 0.0)
    return [x / (x * x + (small * small + TINY)) for x in w]


def faded(w: list, fade: Any) -> list:
    out = []
    for value in w:
        x = least(most(value / fade, 0.0), 1.0)
        out.append(x * x * (3.0 - 2.0 * x) / choose(less(0.0, value), value, 1.0))
    return out


POLICIES: dict[str, Callable[[list, Any], list]] = {"faded": faded, "pseudo": pseudo, "exact": exact, "damped": damped}


def solve(policy: str, X: list, b: list, number: Any) -> list:
    """Lambda b of X = J M^-1 J* (3 or 6 rows, angular ones first) by a policy and its number.

    "faded" first divides angular and linear rows by the root of their mean compliance: w has no unit then, and does not depend
    on axes; f / w stays below 1.2 / fade.

    >>> X = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    >>> [round(float(x), 12) for x in solve("faded", X, [1.0, 2.0, 3.0], 0.03)]
    [1.0, 2.0, 0.0]
    """
    share = POLICIES[policy]
    if policy != "faded":
        return transformed(X, lambda w: share(w, number), b)
    scale, scaled = _scaled(X)
    inner = transformed(scaled, lambda w: share(w, number), [s * x for s, x in zip(scale, b, strict=True)])
    return [s * x for s, x in zip(scale, inner, strict=True)]


WITHOUT = ("faded", "pseudo", "exact")  # policies that are 1 / w where no eigenvalue is small


def regular(policy: str, X: list, b: list, number: Any) -> tuple[list, Any]:
    """X^-1 b and 1 where that is what the policy answers: where X - c I > 0, c the bound below which it lets go of directions.
    Elsewhere some finite numbers, and 0. That matrices are positive is told by the pivots of L D L*: no eigenvalues.

    >>> X = [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0]]
    >>> x, sure = regular("faded", X, [1.0, 2.0, 3.0], 0.03)
    >>> [round(float(y), 12) for y in x], float(sure), float(regular("exact", [[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0], 1e-9)[1])
    ([1.0, 1.0, 0.75], 1.0, 0.0)
    """
    if policy == "faded":
        scale, A = _scaled(X)
        bound = number
    else:  # no eigenvalue exceeds the trace
        scale, A = [1.0] * len(X), X
        bound = number * reduce(lambda x, y: x + y, [A[i][i] for i in range(len(A))])
    sure: Any = 1.0

    def pivot(d: Any, diagonal: Any) -> Any:
        nonlocal sure
        positive = less(0.0, d)
        sure = sure * positive
        return 1.0 / choose(positive, d, 1.0)

    factor([[x - bound if i == j else x for j, x in enumerate(row)] for i, row in enumerate(A)], pivot)
    known = factor(A, lambda d, diagonal: 1.0 / choose(sure, d, 1.0))
    inner = solved(known, [s * x for s, x in zip(scale, b, strict=True)])
    return [s * x for s, x in zip(scale, inner, strict=True)], sure


def _scaled(X: list) -> tuple[list, list]:
    """The scales of the rows, and X in them."""
    scale = []
    for k in range(0, len(X), 3):
        mean = (X[k][k] + X[k + 1][k + 1] + X[k + 2][k + 2]) * (1.0 / 3.0)
        scale += [1.0 / root(most(mean, TINY))] * 3
    return scale, [[x * (a * c) for x, c in zip(row, scale, strict=True)] for a, row in zip(scale, X, strict=True)]
