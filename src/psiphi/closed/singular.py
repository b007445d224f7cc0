"""States where Omega has no inverse: redundant constraints, an arm at a singularity, parallel arms.

The mass matrix of the forest is positive definite, so that accelerations are unique wherever constraints can be kept at all;
what may not be unique are the forces: null(Omega) are the multipliers that do nothing, Jc* lambda = 0. The answer here has
least norm. Where the right side is not in the image of Omega no acceleration keeps the constraints: `open` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.closed.constraints import Closure, Constraint
from psiphi.closed.kinds import Relative

STRAIN = 1e16  # a pivot of Omega below 1e-8 of its diagonal counts as singular, and is looked at with eigenvalues
RANK = 1e-10  # eigenvalues of the scaled Omega below this, relative to the largest, are zeros
UNMET = 1e-6  # rows left open by more than this, relative to the accelerations asked for, cannot be met


@dataclass(frozen=True)
class Least:
    """Multipliers of least norm (..., m), the rank of Omega (...), and what is left open of each row (..., m)."""

    multipliers: np.ndarray
    rank: np.ndarray
    left: np.ndarray
    scale: np.ndarray

    @property
    def open(self) -> np.ndarray:
        """Where no multipliers meet the right side."""
        return np.abs(self.left).max(axis=-1, initial=0.0) > UNMET * self.scale


def least_norm(Omega: np.ndarray, right: np.ndarray, asked: np.ndarray | float = 0.0) -> Least:
    """lambda of least norm with Omega lambda = right, element by element; rows are scaled before ranks are judged.

    >>> least_norm(np.array([[2.0, 2.0], [2.0, 2.0]]), np.array([4.0, 4.0])).multipliers.tolist()
    [1.0, 1.0]
    """
    finite: Any = np.isfinite(Omega).all(axis=(-2, -1)) & np.isfinite(right).all(axis=-1)
    Omega = np.where(finite[..., None, None], Omega, np.eye(Omega.shape[-1]))
    d = np.sqrt(np.maximum(np.diagonal(Omega, axis1=-2, axis2=-1), 0.0))
    d = np.where(d > 0.0, d, 1.0)
    w, Q = np.linalg.eigh(Omega / d[..., :, None] / d[..., None, :])
    kept = w > RANK * np.maximum(w[..., -1:], 0.0)
    inverse = np.where(kept, 1.0 / np.where(kept, w, 1.0), 0.0)
    basic = np.einsum("...ij,...j,...kj,...k->...i", Q, inverse, Q, right / d) / d
    null = np.where(kept[..., None, :], 0.0, Q) / d[..., None]  # columns of null(Omega)
    gram = np.einsum("...ki,...kj->...ij", null, null)
    gram = gram + np.where(kept[..., None], np.eye(w.shape[-1]), 0.0)
    slack = np.linalg.solve(gram, np.einsum("...ki,...k->...i", null, basic)[..., None])[..., 0]
    answer = basic - np.einsum("...ij,...j->...i", null, slack)
    left = right - np.einsum("...ij,...j->...i", Omega, answer)
    scale = np.maximum(np.maximum(1.0, np.abs(right).max(axis=-1, initial=0.0)), asked)
    return Least(np.where(finite[..., None], answer, np.nan), kept.sum(axis=-1), np.where(finite[..., None], left, 0.0), scale)


def direction(closure: Closure, row: int) -> str:
    """A row in words: "contact 2 (weld), turning about (0, 0, 1) of left/tool"."""
    for constraint, own in zip((*closure.constraints, *closure.follows), closure.slices, strict=True):
        if own.start <= row < own.stop:
            if not isinstance(constraint, Constraint):
                return f"{constraint.name}, {constraint.joint} following {constraint.leader}"
            p = [constraint.shape.length, 0.0, 0.0]
            zero = [0.0, 0.0, 0.0]
            line = constraint.row.rows(constraint.shape, Relative(np.eye(3).tolist(), p, zero, zero))[row - own.start]
            turns = any(line.turn)
            axis = ", ".join(f"{x:.3g}" for x in (line.turn if turns else line.slide))
            verb = "turning about" if turns else "sliding along"
            return f"{constraint.name} ({constraint.kind}), {verb} ({axis}) of {constraint.second}"
    raise IndexError(row)
