"""The operational-space inertia (J M^-1 J*)^-1, and what to do where J M^-1 J* has no inverse.

A frame at a singularity, or more frames than the robot can move independently, makes X = J M^-1 J* singular. The policy is
chosen by the caller and applied to each batch element by itself; with X = Q diag(w) Q*, w >= 0:

    "exact"    1 / w; an element with w <= rcond max(w) is NaN, and only that one
    "pseudo"   1 / w where w > rcond max(w), else 0: the least-norm answer, forces that do nothing are left out
    "damped"   w / (w^2 + damping^2 max(w)^2): smooth everywhere
"""

from __future__ import annotations

import numpy as np

from psiphi.errors import StateError
from psiphi.model.arguments import real
from psiphi.model.words import shown

POLICIES = ("exact", "pseudo", "damped")


def inverse(X: np.ndarray, policy: str = "pseudo", rcond: float = 1e-9, damping: float = 1e-3) -> np.ndarray:
    """X^-1 of symmetric non-negative matrices (..., n, n), by the policy.

    >>> inverse(np.diag([2.0, 0.0])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    if not isinstance(policy, str) or policy not in POLICIES:
        raise StateError(f"policy is {shown(policy)}, expected one of {', '.join(POLICIES)}", 'the default is "pseudo"')
    rcond, damping = _share("rcond", rcond), _share("damping", damping)
    finite = np.isfinite(X).all(axis=(-2, -1), keepdims=True)
    w, Q = np.linalg.eigh(np.where(finite, X, np.eye(X.shape[-1], dtype=X.dtype)))
    top = np.maximum(w[..., -1:], 0.0)
    small = w <= rcond * top
    with np.errstate(divide="ignore", invalid="ignore"):
        if policy == "damped":
            scale = w / (w * w + (damping * top) ** 2)
            scale = np.where(top > 0.0, scale, 0.0)
        else:
            scale = np.where(small, 0.0 if policy == "pseudo" else np.nan, 1.0 / np.where(small, 1.0, w))
    result = np.einsum("...ij,...j,...kj->...ik", Q, scale, Q)
    return np.where(finite, result, np.nan)


def _share(name: str, value: float) -> float:
    """A finite number of at least 0."""
    number = real(name, value, (), "give a small number")
    if number.ndim or not 0.0 <= number < np.inf:
        raise StateError(f"{name} is {shown(value)}, expected a finite number of at least 0", "leave it out for the default")
    return float(number)


def rank(X: np.ndarray, rcond: float = 1e-9) -> np.ndarray:
    """How many independent directions the frames can be pushed in: (...,) integers."""
    w = np.linalg.eigvalsh(X)
    return (w > rcond * np.maximum(w[..., -1:], 0.0)).sum(axis=-1)
