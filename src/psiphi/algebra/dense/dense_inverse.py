"""Inverses with numbers, and where there is none.

A matrix is singular when its least singular value is not above RCOND times its greatest, after rows and columns were scaled
by powers of two to entries of one size, so that units do not count; or not above NOISE times it as it stands, so that rows of
rounding errors do not count either. What is closer to singular than that would keep fewer than five or six digits: it has no
inverse here, and says so.
"""

from __future__ import annotations

import numpy as np

from psiphi._util.errors import SingularError

RCOND, NOISE = 1e-10, 1e-12


def equilibrate(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(R A C, R, C) with diagonal R and C: entries of at most one in every row and column, or nearly so."""
    rows: np.ndarray = _inverse_powers_of_two(np.abs(A).max(axis=-1, initial=0.0))
    B = rows[..., :, None] * A
    cols: np.ndarray = _inverse_powers_of_two(np.abs(B).max(axis=-2, initial=0.0))
    return B * cols[..., None, :], rows, cols


def _inverse_powers_of_two(sizes: np.ndarray) -> np.ndarray:
    """The power of two next to 1 / size; 1 for zero."""
    _, exponent = np.frexp(np.where(sizes > 0.0, sizes, 1.0))
    return np.ldexp(1.0, -exponent)


def reciprocal_condition(A: np.ndarray) -> np.ndarray:
    """Least by greatest singular value of the scaled matrices (..., n, n); 0: singular, NaN: A is not finite."""
    if A.shape[-1] == 0:
        return np.ones(A.shape[:-2])
    finite = np.asarray(np.isfinite(A).all(axis=(-2, -1)))
    A = np.where(finite[..., None, None], A, 0.0)
    ratio = np.where(_singular_ratio(A) > NOISE, _singular_ratio(equilibrate(A)[0]), 0.0)
    return np.where(finite, ratio, np.nan)


def _singular_ratio(A: np.ndarray) -> np.ndarray:
    """Least by greatest singular value."""
    values = np.linalg.svd(A, compute_uv=False)
    top = values[..., 0]
    return np.where(top > 0.0, values[..., -1] / np.where(top > 0.0, top, 1.0), 0.0)


def invert(A: np.ndarray) -> np.ndarray:
    """A⁻¹ of matrices (..., n, n); NaN, element by element, where there is none."""
    good = reciprocal_condition(A) > RCOND
    B, rows, cols = equilibrate(np.where(good[..., None, None], A, np.eye(A.shape[-1])))
    X = cols[..., :, None] * np.linalg.inv(B) * rows[..., None, :]
    return np.where(good[..., None, None], X, np.nan)


def inverse_or_error(A: np.ndarray) -> np.ndarray:
    """A⁻¹; one singular matrix is an error."""
    X = invert(A)
    if np.isfinite(A).all() and not np.isfinite(X).all():
        raise SingularError(
            "the operator under .inv is singular at this state", "look at its rank there"
        )
    return X
