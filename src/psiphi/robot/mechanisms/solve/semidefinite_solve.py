"""Branch-free solves with symmetric positive semidefinite matrices, A = L diag(d) L*.

A pivot below PIVOT_TOLERANCE of its diagonal entry belongs to a redundant row, which is skipped.
The other rows solve the system if the right side is consistent. The ill-conditioning of a solve
is sum (A_jj / d_j)^2 over the pivots used, plus UNSOLVABLE for each inconsistent row.

A negligible row contains rounding only (the row normal to the plane of a planar mechanism). Its
pivot is not small relative to its own diagonal entry, so pivots below `rounding` are skipped too;
such a row may have a residual of NEGLIGIBLE_ROW_TOLERANCE.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from psiphi._util.array_types import AnyScalar
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import choose, less
from psiphi.model.spatial.screws import dot
from psiphi.robot.mechanisms.solve.redundant_constraints import (
    ILL_CONDITIONED,
    NEGLIGIBLE_ROW_TOLERANCE,
)

ROW_ROUNDING = 1e-14  # a pivot below this fraction of its row scale is rounding
ROUNDING_WEIGHT = ROW_ROUNDING * sqrt(ILL_CONDITIONED)  # a pivot of rounding is ILL_CONDITIONED
PIVOT_TOLERANCE = 1e-10  # relative to the diagonal entry
RESIDUAL_TOLERANCE = 1e-7  # relative to the right side: skipped rows above it are inconsistent
UNSOLVABLE = 1e30


def factor(A: list, rounding: list | None = None) -> tuple[list, list, list]:
    """(L, d_inv, used): d_inv is 1 / d, or 0 for a skipped pivot; `used` is 1 or 0."""
    used: list = []

    def inverse(d: AnyScalar, diagonal: AnyScalar) -> Any:
        floor = rounding[len(used)] if rounding else 0.0
        used.append(less(PIVOT_TOLERANCE * diagonal + floor, d))
        return used[-1] / choose(used[-1], d, 1.0)

    L, d_inv = small_matrices.factor(A, inverse)
    return L, d_inv, used


def solve(A: list, b: list) -> tuple[list, Any]:
    """x with A x = b, and the ill-conditioning."""
    return solve_factored(factor(A), A, b)


def solve_factored(
    factors: tuple[list, list, list], A: list, b: list, rounding: list | None = None
) -> tuple[list, Any]:
    """x with A x = b by the factors of A, and the ill-conditioning."""
    L, d_inv, used = factors
    y = small_matrices.forward(L, b)
    size = 1.0 + dot(b, b)
    tight = RESIDUAL_TOLERANCE * RESIDUAL_TOLERANCE * size
    loose = NEGLIGIBLE_ROW_TOLERANCE * NEGLIGIBLE_ROW_TOLERANCE * size
    ill_conditioning: Any = 0.0
    for j, (value, inverse, is_used) in enumerate(zip(y, d_inv, used, strict=True)):
        ratio = A[j][j] * inverse
        allowed = choose(less(A[j][j], rounding[j]), loose, tight) if rounding else tight
        ill_conditioning = ill_conditioning + (
            ratio * ratio + UNSOLVABLE * ((1.0 - is_used) * less(allowed, value * value))
        )
    return small_matrices.backward(
        L, [value * inverse for value, inverse in zip(y, d_inv, strict=True)]
    ), ill_conditioning
