"""Solves with symmetric matrices that may lack rank, without branches.

A = L diag(d) L*; a pivot below LOOSE of its diagonal entry is a row that follows from those before it: it is left out. The rest
answers the system if the right side follows too. The strain is large where it does not, and where a pivot is small and yet no
zero: sum (A_jj / d_j)^2 over the pivots kept, FAR for each row that does not follow. A row may be nothing at all but for
rounding (the row across the plane of a plane mechanism); beside its own diagonal entry its pivot then looks sound: those not
above their `floors` are left out, too, and may be OFF by what speeds that are not quite the mechanism's make of it.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import choose, less
from psiphi.model.spatial.screws import dot
from psiphi.robot.mechanisms.solve.redundant_constraints import OFF, STRAIN

DUST = (
    1e-14  # of what forces at its frames can do to them: what rounding leaves of a row that is none
)
FAINT = DUST * sqrt(STRAIN)  # a pivot of dust strains by STRAIN
LOOSE = 1e-10
OPEN = 1e-7  # of the right side: a row left out that is off by more does not follow
FAR = 1e30


def factor(A: list, floors: list | None = None) -> tuple[list, list, list]:
    """(L, d_inv, on): the factors, d_inv zero where a pivot is left out, and on = 1 where it is kept."""
    on: list = []

    def inverse(d: Any, diagonal: Any) -> Any:
        on.append(less(LOOSE * diagonal + (floors[len(on)] if floors else 0.0), d))
        return on[-1] / choose(on[-1], d, 1.0)

    L, d_inv = small_matrices.factor(A, inverse)
    return L, d_inv, on


def solve(A: list, b: list) -> tuple[list, Any]:
    """x with A x = b, and the strain."""
    return solve_factored(factor(A), A, b)


def solve_factored(
    factors: tuple[list, list, list], A: list, b: list, floors: list | None = None
) -> tuple[list, Any]:
    L, d_inv, on = factors
    y = small_matrices.forward(L, b)
    size = 1.0 + dot(b, b)
    close, off = OPEN * OPEN * size, OFF * OFF * size
    strain: Any = 0.0
    for j, (value, inverse, kept) in enumerate(zip(y, d_inv, on, strict=True)):
        ratio = A[j][j] * inverse
        allowed = choose(less(A[j][j], floors[j]), off, close) if floors else close
        strain = strain + (ratio * ratio + FAR * ((1.0 - kept) * less(allowed, value * value)))
    return small_matrices.backward(
        L, [value * inverse for value, inverse in zip(y, d_inv, strict=True)]
    ), strain
