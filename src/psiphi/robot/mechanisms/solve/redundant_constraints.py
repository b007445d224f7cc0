"""Solves with a singular Omega: redundant constraints, singular arms, parallel arms.

If the mass matrix is positive definite and the constraints can be satisfied, the accelerations are
unique. The forces need not be: multipliers in null(Omega) have no effect (Jc* lambda = 0). This
file returns the multipliers of least norm. If the right side is not in the range of Omega, no
acceleration satisfies the constraints. If some bodies are much lighter than others, Omega has the
right rank but too few digits. `LeastNormSolution.is_unsolved` marks both cases;
`dense_saddle.solve_gauss` decides them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi.model.loops.constraints import Constraint
from psiphi.model.spatial.scalar_arrays import max_norm

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.system import System

ILL_CONDITIONED = 1e14  # sum (Omega_jj / d_j)^2 from which Omega is singular: a pivot ratio of 1e-7
RANK_TOLERANCE = 1e-10  # eigenvalues of the scaled Omega, relative to the largest
RESIDUAL_TOLERANCE = 1e-9  # relative to the accelerations; above it the dense system decides
NEGLIGIBLE_ROW_TOLERANCE = 1e-3  # relative to the right side; integrator steps err by O(h^2)
UNMET_TOLERANCE = 1e-6  # residual of the dense system above which a row cannot be satisfied


def null_space(A: np.ndarray, rcond: float) -> tuple[np.ndarray, np.ndarray]:
    """(N, free): N (..., n, n) has a basis of null(A) in the columns marked by `free` (..., n) and
    zeros elsewhere, so that each element of a batch may have its own rank.

    Singular values below `rcond` times the largest count as zero.
    """
    _, w, Vt = np.linalg.svd(A)
    free = np.ones(Vt.shape[:-1], dtype=bool)
    free[..., : w.shape[-1]] = w <= rcond * w.max(axis=-1, keepdims=True, initial=0.0)
    return np.swapaxes(np.where(free[..., None], Vt, 0.0), -1, -2), free


@dataclass(frozen=True)
class LeastNormSolution:
    """Multipliers of least norm (..., m), rank of Omega (...), residual (..., m) and its scale."""

    multipliers: np.ndarray
    rank: np.ndarray
    residual: np.ndarray
    scale: np.ndarray

    @property
    def is_unsolved(self) -> np.ndarray:
        """Whether the multipliers miss the right side (...)."""
        return max_norm(self.residual) > RESIDUAL_TOLERANCE * self.scale


def least_norm(
    Omega: np.ndarray,
    right: np.ndarray,
    scale: np.ndarray | float = 0.0,
    negligible: np.ndarray | bool = False,
) -> LeastNormSolution:
    """lambda of least norm with Omega lambda = right.

    Rows are scaled to a unit diagonal before the rank is determined; `negligible` rows (..., m)
    are dropped. `scale` (...) is the size of the accelerations, for the residual.

    >>> least_norm(np.array([[2.0, 2.0], [2.0, 2.0]]), np.array([4.0, 4.0])).multipliers.tolist()
    [1.0, 1.0]
    """
    finite: Any = np.isfinite(Omega).all(axis=(-2, -1)) & np.isfinite(right).all(axis=-1)
    Omega = np.where(finite[..., None, None], Omega, np.eye(Omega.shape[-1]))
    negligible = np.broadcast_to(negligible, Omega.shape[:-1])
    Omega = np.where(negligible[..., None] | negligible[..., None, :], 0.0, Omega)
    d = np.sqrt(np.maximum(np.diagonal(Omega, axis1=-2, axis2=-1), 0.0))
    d = np.where(d > 0.0, d, 1.0)
    w, Q = np.linalg.eigh(Omega / d[..., :, None] / d[..., None, :])
    nonzero = w > RANK_TOLERANCE * np.maximum(w[..., -1:], 0.0)
    inverse = np.where(nonzero, 1.0 / np.where(nonzero, w, 1.0), 0.0)
    basic = np.einsum("...ij,...j,...kj,...k->...i", Q, inverse, Q, right / d) / d
    null = np.where(nonzero[..., None, :], 0.0, Q) / d[..., None]  # columns of null(Omega)
    gram = np.einsum("...ki,...kj->...ij", null, null)
    gram = gram + np.where(nonzero[..., None], np.eye(w.shape[-1]), 0.0)
    shares = np.linalg.solve(gram, np.einsum("...ki,...k->...i", null, basic)[..., None])[..., 0]
    multipliers = basic - np.einsum("...ij,...j->...i", null, shares)
    residual = right - np.einsum("...ij,...j->...i", Omega, multipliers)
    right_scale = np.maximum(1.0, max_norm(right))
    scale = np.maximum(right_scale, scale)
    looser = RESIDUAL_TOLERANCE / NEGLIGIBLE_ROW_TOLERANCE * (scale / right_scale)[..., None]
    residual = np.where(negligible, looser, 1.0) * residual
    return LeastNormSolution(
        np.where(finite[..., None], multipliers, np.nan),
        nonzero.sum(axis=-1),
        np.where(finite[..., None], residual, 0.0),
        scale,
    )


def violated_direction(system: System, q: np.ndarray, residual: np.ndarray) -> str:
    """The constraint and direction of the largest residual, in world axes, as text:
    "contact 2 (weld) of left/tool to box/grip2, turning about (0, 0, 1)"."""
    parts = (*system.closure.constraints, *system.closure.mimics)
    worst = max(
        range(len(parts)), key=lambda i: float(np.linalg.norm(residual[system.closure.slices[i]]))
    )
    constraint, own = parts[worst], system.closure.slices[worst]
    if not isinstance(constraint, Constraint):
        return f"{constraint.name}, {constraint.joint} following {constraint.leader}"
    units = np.eye(system.nc)[own]
    states = np.broadcast_to(q, (len(units), system.nq))
    rows = system.multiplier_response(states, units)[1][:, worst]
    turn, slide = (residual[own] @ rows).reshape(2, 3)
    turns = np.linalg.norm(turn) > np.linalg.norm(slide)
    axis = turn if turns else slide
    sign = np.sign(axis[np.argmax(np.abs(axis))] or 1.0)
    axis = np.round(axis / max(np.linalg.norm(axis), 1e-300) * sign, 3) + 0.0
    verb = "turning about" if turns else "sliding along"
    frames = f"{constraint.first} to {constraint.second}"
    where = ", ".join(f"{x:g}" for x in axis)
    return f"{constraint.name} ({constraint.kind}) of {frames}, {verb} ({where})"
