"""Numerical inverses, and tests for singular matrices.

A matrix counts as singular if the ratio of its least to its greatest singular value is at most one
of these:

    RCOND    after its rows and columns were scaled by powers of two: units do not matter
    NOISE    as it is: rows that consist of rounding errors do not make a matrix regular

The inverse of a matrix beyond these limits would have fewer than about six correct digits.
"""

from __future__ import annotations

import numpy as np

from psiphi._util.errors import SingularError

RCOND, NOISE = 1e-10, 1e-12


def equilibrate(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(R A C, R, C), R and C diagonal: the largest entry of each row and column is about 1."""
    rows: np.ndarray = _inverse_powers_of_two(np.abs(A).max(axis=-1, initial=0.0))
    B = rows[..., :, None] * A
    cols: np.ndarray = _inverse_powers_of_two(np.abs(B).max(axis=-2, initial=0.0))
    return B * cols[..., None, :], rows, cols


def _inverse_powers_of_two(sizes: np.ndarray) -> np.ndarray:
    """The power of two that scales `size` into [0.5, 1); 1 for size 0."""
    _, exponent = np.frexp(np.where(sizes > 0.0, sizes, 1.0))
    return np.ldexp(1.0, -exponent)


def reciprocal_condition(A: np.ndarray) -> np.ndarray:
    """Least / greatest singular value of the scaled matrices (..., n, n); NaN for nonfinite A."""
    if A.shape[-1] == 0:
        return np.ones(A.shape[:-2])
    finite = np.asarray(np.isfinite(A).all(axis=(-2, -1)))
    A = np.where(finite[..., None, None], A, 0.0)
    ratio = np.where(_singular_ratio(A) > NOISE, _singular_ratio(equilibrate(A)[0]), 0.0)
    return np.where(finite, ratio, np.nan)


def _singular_ratio(A: np.ndarray) -> np.ndarray:
    """Least / greatest singular value."""
    values = np.linalg.svd(A, compute_uv=False)
    top = values[..., 0]
    return np.where(top > 0.0, values[..., -1] / np.where(top > 0.0, top, 1.0), 0.0)


def invert(A: np.ndarray) -> np.ndarray:
    """A⁻¹ of matrices (..., n, n); NaN for the singular ones."""
    good = reciprocal_condition(A) > RCOND
    B, rows, cols = equilibrate(np.where(good[..., None, None], A, np.eye(A.shape[-1])))
    X = cols[..., :, None] * np.linalg.inv(B) * rows[..., None, :]
    return np.where(good[..., None, None], X, np.nan)


def inverse_or_error(A: np.ndarray) -> np.ndarray:
    """A⁻¹; a SingularError if any matrix is singular."""
    X = invert(A)
    if np.isfinite(A).all() and not np.isfinite(X).all():
        raise SingularError(
            "the operator under .inv is singular at this state",
            "check the rank of the operator there",
        )
    return X
