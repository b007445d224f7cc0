"""The operational-space inertia (J M^-1 J*)^-1, with policies for singular J M^-1 J*.

A frame at a singularity, or more frames than the robot can move independently, makes
X = J M^-1 J* singular. The caller chooses a policy, which is applied to each batch element
separately. With X = Q diag(w) Q*, w >= 0:

    "exact"    1 / w; a batch element with any w <= rcond max(w) is NaN
    "pseudo"   1 / w where w > rcond max(w), else 0: the least-norm inverse
    "damped"   w / (w^2 + damping^2 max(w)^2): smooth everywhere

Where no w is small, the first two are X^-1, which a function of the catalogue (`frame_inertia.py`)
computes without eigenvalues.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.array_types import AnyArray
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import nonnegative_number, one_of
from psiphi.functions.arrays.array_dispatch import (
    array_module,
    convert_like,
    is_differentiated,
    is_single,
)
from psiphi.model.spatial.pseudo_inverse import POLICIES
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.robot.catalogue.frame_inertia import RCOND

NAMES = ("exact", "pseudo", "damped")
FLOAT32_RCOND = 1e-5  # smaller eigenvalues of matrices in float32 are rounding
UNROLLED_FRAMES = 4  # up to this number of frames, the inverse is straight-line code


def uses_inverse(policy: object, rcond: object, damping: object) -> bool:
    """Whether the policy is X^-1 wherever the catalogue's function returns no NaN.

    False for invalid arguments: `inverse` reports them.
    """
    if not (isinstance(rcond, float) and isinstance(damping, float)):
        return False
    valid = 0.0 <= rcond <= RCOND and 0.0 <= damping < np.inf
    return valid and isinstance(policy, str) and policy in ("pseudo", "exact")


def has_no_nan(Lam: np.ndarray) -> bool:
    """Whether no matrix is NaN; a matrix is NaN in all entries or in none."""
    first = Lam[..., 0, 0]
    return bool(first == first) if Lam.ndim == 2 else not np.isnan(first).any()


def inverse(
    X: AnyArray,
    policy: str = "pseudo",
    rcond: float = 1e-9,
    damping: float = 1e-3,
    known: np.ndarray | None = None,
) -> Any:
    """X^-1 of symmetric non-negative matrices (..., n, n) of any library, by the policy.

    Where `known` is not NaN, it is the result.

    >>> inverse(np.diag([2.0, 0.0])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    one_of("policy", policy, NAMES, 'the default is "pseudo"')
    rcond, damping = _read_rcond(rcond, X), nonnegative_number("damping", damping)
    m = array_module(X)
    finite = m.isfinite(X).all(-1).all(-1)[..., None, None]
    w, Q = m.linalg.eigh(m.where(finite, X, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = m.stack(POLICIES[policy](entries(w), damping if policy == "damped" else rcond), -1)
    result = m.einsum("...ij,...j,...kj->...ik", Q, scale, Q)
    result = m.where(finite, result, m.nan)
    return result if known is None else m.where(m.isnan(known), result, known)


def _read_rcond(rcond: float, X: AnyArray) -> float:
    """rcond, at least the relative rounding of X."""
    return max(nonnegative_number("rcond", rcond), FLOAT32_RCOND if is_single(X) else 0.0)


def foreign_inverse(X: AnyArray, policy: str, rcond: float, damping: float) -> Any:
    """The inverse for torch or JAX arrays, or arrays on a GPU.

    "exact" has gradients, and NaN where there is no inverse; the other policies have no gradients.
    """
    if not isinstance(policy, str) or policy != "exact":
        if not is_differentiated(X):
            return inverse(X, policy, rcond, damping)
        cause = (
            f"operational_space_inertia: policy is {shown(policy)}, "
            "whose eigenvectors have no gradients"
        )
        raise StateError(
            cause, 'give policy="exact", or arrays without gradients and outside of jit'
        )
    m, eye = array_module(X), convert_like(X, np.eye(X.shape[-1]))
    w = m.linalg.eigvalsh(getattr(X, "detach", lambda: X)())
    good = (w[..., :1] > _read_rcond(rcond, X) * w[..., -1:])[..., None]
    return m.where(good, m.linalg.inv(m.where(good, X, eye)), m.nan)
