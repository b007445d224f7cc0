"""The operational-space inertia (J M^-1 J*)^-1, and what to do where J M^-1 J* has no inverse.

A frame at a singularity, or more frames than the robot can move independently, makes X = J M^-1 J* singular. The policy is
chosen by the caller and applied to each batch element by itself; with X = Q diag(w) Q*, w >= 0:

    "exact"    1 / w; an element with w <= rcond max(w) is NaN, and only that one
    "pseudo"   1 / w where w > rcond max(w), else 0: the least-norm answer, forces that do nothing are left out
    "damped"   w / (w^2 + damping^2 max(w)^2): smooth everywhere

The first two are X^-1 where no w is small: code of the catalogue (`frame_inertia.py`) has found it there, without eigenvalues.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import not_negative, one_of
from psiphi.functions.arrays.array_dispatch import constant, is_followed, mathematics
from psiphi.model.spatial.pseudo_inverse import POLICIES
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.robot.catalogue.frame_inertia import RCOND

NAMES = ("exact", "pseudo", "damped")
WRITTEN = 4  # frames up to which the inverse of their compliance is written out as code


def is_regular(policy: Any, rcond: Any, damping: Any) -> bool:
    """Whether the policy is X^-1 wherever the catalogue's function finds that one; what is no number is told elsewhere."""
    plain = (
        type(rcond) is type(damping) is float and 0.0 <= rcond <= RCOND and 0.0 <= damping < np.inf
    )
    return plain and isinstance(policy, str) and policy in ("pseudo", "exact")


def is_found(Lam: np.ndarray) -> bool:
    """Whether no element is NaN; one is as a whole."""
    first = Lam[..., 0, 0]
    return bool(first == first) if Lam.ndim == 2 else not np.isnan(first).any()


def inverse(
    X: Any, policy: str = "pseudo", rcond: float = 1e-9, damping: float = 1e-3, found: Any = None
) -> Any:
    """X^-1 of symmetric non-negative matrices (..., n, n) of any library, by the policy; what is `found` already stays.

    >>> inverse(np.diag([2.0, 0.0])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    one_of("policy", policy, NAMES, 'the default is "pseudo"')
    rcond, damping = not_negative("rcond", rcond), not_negative("damping", damping)
    m = mathematics(X)
    finite = m.isfinite(X).all(-1).all(-1)[..., None, None]
    w, Q = m.linalg.eigh(m.where(finite, X, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = m.stack(POLICIES[policy](entries(w), damping if policy == "damped" else rcond), -1)
    result = m.einsum("...ij,...j,...kj->...ik", Q, scale, Q)
    result = m.where(finite, result, m.nan)
    return result if found is None else m.where(m.isnan(found), result, found)


def inverse_in_their_library(X: Any, policy: str, rcond: float, damping: float) -> Any:
    """The inverse of arrays of torch or JAX, or of a card; the "exact" one with their gradients: NaN where there is none."""
    if not isinstance(policy, str) or policy != "exact":
        if not is_followed(X):
            return inverse(X, policy, rcond, damping)
        cause = f"operational_space_inertia: policy is {shown(policy)}, whose eigenvectors have no gradients"
        raise StateError(
            cause, 'give policy="exact", or arrays without gradients and outside of jit'
        )
    m, eye = mathematics(X), constant(X, np.eye(X.shape[-1]))
    w = m.linalg.eigvalsh(X.detach() if hasattr(X, "detach") else X)
    good = (w[..., :1] > not_negative("rcond", rcond) * w[..., -1:])[..., None]
    return m.where(good, m.linalg.inv(m.where(good, X, eye)), m.nan)
