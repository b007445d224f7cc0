"""States where Omega has no inverse: redundant constraints, an arm at a singularity, parallel arms.

Where the mass matrix of the forest is positive definite, accelerations are unique wherever constraints can be kept at all;
what may not be unique are the forces: null(Omega) are the multipliers that do nothing, Jc* lambda = 0. The answer here has
least norm. Where the right side is not in the image of Omega no acceleration keeps the constraints; where bodies are very light
beside others, Omega has the right rank and too few digits. `open` tells of both, and `saddle.judge` has the last word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.model.loops.constraints import Constraint
from psiphi.model.spatial.scalar_arrays import max_norm

STRAIN = 1e14  # a pivot of Omega below 1e-7 of its diagonal counts as singular, and is looked at with eigenvalues
RANK = 1e-10  # eigenvalues of the scaled Omega below this, relative to the largest, are zeros
CLOSE = 1e-9  # rows left open by more than this, relative to the accelerations asked for, need the dense system
OFF = 1e-3  # of the right side, for rows that are none: steps of an integrator are off by the square of the step
UNMET = 1e-6  # rows it leaves open by more than this cannot be met


def null_space(A: np.ndarray, rcond: float) -> tuple[np.ndarray, np.ndarray]:
    """(N, free): columns (..., n, n) that span null(A), the others zero, and which they are (..., n); by singular values,
    those below `rcond` of the largest counted as zeros. Every element of a batch has a rank of its own."""
    _, w, Vt = np.linalg.svd(A)
    free = np.ones(Vt.shape[:-1], dtype=bool)
    free[..., : w.shape[-1]] = w <= rcond * w.max(axis=-1, keepdims=True, initial=0.0)
    return np.swapaxes(np.where(free[..., None], Vt, 0.0), -1, -2), free


@dataclass(frozen=True)
class Least:
    """Multipliers of least norm (..., m), the rank of Omega (...), and what is left open of each row (..., m)."""

    multipliers: np.ndarray
    rank: np.ndarray
    left: np.ndarray
    scale: np.ndarray

    @property
    def open(self) -> np.ndarray:
        """Where these multipliers do not meet the right side."""
        return max_norm(self.left) > CLOSE * self.scale


def least_norm(
    Omega: np.ndarray,
    right: np.ndarray,
    asked: np.ndarray | float = 0.0,
    dust: np.ndarray | bool = False,
) -> Least:
    """lambda of least norm with Omega lambda = right, element by element; rows are scaled before ranks are judged. Rows that
    are `dust` (..., m) are none.

    >>> least_norm(np.array([[2.0, 2.0], [2.0, 2.0]]), np.array([4.0, 4.0])).multipliers.tolist()
    [1.0, 1.0]
    """
    finite: Any = np.isfinite(Omega).all(axis=(-2, -1)) & np.isfinite(right).all(axis=-1)
    Omega = np.where(finite[..., None, None], Omega, np.eye(Omega.shape[-1]))
    dust = np.broadcast_to(dust, Omega.shape[:-1])
    Omega = np.where(dust[..., None] | dust[..., None, :], 0.0, Omega)
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
    wanted = np.maximum(1.0, max_norm(right))
    scale = np.maximum(wanted, asked)
    left = (
        np.where(dust, CLOSE / OFF * (scale / wanted)[..., None], 1.0) * left
    )  # rows that are none may be off by more
    return Least(
        np.where(finite[..., None], answer, np.nan),
        kept.sum(axis=-1),
        np.where(finite[..., None], left, 0.0),
        scale,
    )


def direction(system: Any, q: np.ndarray, left: np.ndarray) -> str:
    """Rows left open, in words: "contact 2 (weld) of left/tool to box/grip2, turning about (0, 0, 1)", in world axes."""
    parts = (*system.closure.constraints, *system.closure.follows)
    worst = max(
        range(len(parts)), key=lambda i: float(np.linalg.norm(left[system.closure.slices[i]]))
    )
    constraint, own = parts[worst], system.closure.slices[worst]
    if not isinstance(constraint, Constraint):
        return f"{constraint.name}, {constraint.joint} following {constraint.leader}"
    units = np.eye(system.nc)[own]
    rows = system.multiplier_response(np.broadcast_to(q, (len(units), system.nq)), units)[1][
        :, worst
    ]
    turn, slide = (left[own] @ rows).reshape(2, 3)
    turns = np.linalg.norm(turn) > np.linalg.norm(slide)
    axis = turn if turns else slide
    axis = (
        np.round(
            axis
            / max(np.linalg.norm(axis), 1e-300)
            * np.sign(axis[np.argmax(np.abs(axis))] or 1.0),
            3,
        )
        + 0.0
    )
    verb = "turning about" if turns else "sliding along"
    where = ", ".join(f"{x:g}" for x in axis)
    return f"{constraint.name} ({constraint.kind}) of {constraint.first} to {constraint.second}, {verb} ({where})"
