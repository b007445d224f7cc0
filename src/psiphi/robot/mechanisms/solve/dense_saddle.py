"""The dense system (2.11) of S4, also for a singular Omega or a singular mass matrix.

[ M   -Jc* ] [ a      ]   [ tau - C v - g + J* f_ext ]
[ Jc    0  ] [ lambda ] = [ -dJc/dt v                ]

The compiled programs (`system_stages.py`) solve it with Omega, or by eliminating the hub. This file
solves it with NumPy, and determines ranks by singular values, which branch-free code cannot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi.robot.mechanisms.solve.redundant_constraints import (
    NEGLIGIBLE_ROW_TOLERANCE,
    UNMET_TOLERANCE,
    null_space,
)

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.system import System

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
RELATIVE_ROW_ROUNDING = 1e-13  # norm of a negligible row, relative to the largest row
ROW_ROUNDING = 1e-14  # the same, absolute: metres, components of unit vectors
JACOBIAN_RANK_TOLERANCE = 1e-8  # singular values of the scaled Jc below this count as zero
INERTIA_TOLERANCE = 1e-13  # inertia of a motion, relative to the largest, that counts as zero


def dense_terms(
    system: System, values: tuple[np.ndarray, ...], frames: tuple[str, ...], axes: str
) -> Arrays:
    """M, Jc and the two right sides, broadcast to one batch."""
    q, v, tau = values[:3]
    nv, m = system.nv, system.nc
    loads = {name: values[3][..., i, :] for i, name in enumerate(frames)}
    torque = tau - system.robot.inverse_dynamics(q, v, np.zeros(nv), f_ext=loads, axes=axes)
    mass, Jc, bias = (
        system.robot.mass_matrix(q),
        system.constraint_jacobian(q),
        system.bias_on_constraints(q, v),
    )
    lead = torque.shape[:-1]
    whole = ((mass, (nv, nv)), (Jc, (m, nv)), (torque, (nv,)), (-bias, (m,)))
    mass, Jc, torque, right = (np.broadcast_to(x, (*lead, *shape)) for x, shape in whole)
    return mass, Jc, torque, right


def solve(
    system: System, values: tuple[np.ndarray, ...], frames: tuple[str, ...], axes: str
) -> Arrays:
    """a, multipliers, contact forces and ill-conditioning: 1, or infinite if singular."""
    mass, Jc, torque, right = dense_terms(system, values, frames, axes)
    m, nv = Jc.shape[-2:]
    lead = torque.shape[:-1]
    K = np.zeros((*lead, nv + m, nv + m))
    K[..., :nv, :nv], K[..., nv:, :nv] = mass, Jc
    K[..., :nv, nv:] = -np.swapaxes(Jc, -1, -2)
    regular: Any = np.isfinite(K).all(axis=(-2, -1))
    safe = np.where(regular[..., None, None], K, np.eye(nv + m))
    regular &= (np.linalg.matrix_rank(safe[..., nv:, :nv], tol=JACOBIAN_RANK_TOLERANCE) == m) & (
        np.linalg.matrix_rank(safe) == nv + m
    )
    x = np.full((*lead, nv + m), np.nan)
    x[regular] = np.linalg.solve(
        K[regular], np.concatenate([torque, right], axis=-1)[regular][..., None]
    )[..., 0]
    a, lam = x[..., :nv], x[..., nv:]
    return a, lam, system.multiplier_response(values[0], lam)[1], np.where(regular, 1.0, np.inf)


@dataclass(frozen=True)
class DenseSolution:
    """The dense solution of one state: a and lambda, the rank of Jc, the residual of the rows
    (nonzero: no acceleration satisfies them), and an undetermined motion (zero: none)."""

    a: np.ndarray
    multipliers: np.ndarray
    rank: int
    residual: np.ndarray
    undetermined: np.ndarray

    @property
    def is_solved(self) -> bool:
        return bool(np.isfinite(self.a).all())


def normalize_rows(Jc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Jc with rows of norm one, and the norms (..., m); negligible rows are zero, with norm 1."""
    negligible = negligible_rows(Jc)
    size = np.where(negligible, 1.0, np.linalg.norm(Jc, axis=-1))
    return np.where(negligible[..., None], 0.0, Jc / size[..., None]), size


def negligible_rows(Jc: np.ndarray) -> np.ndarray:
    """Rows (..., m) that contain rounding only, relative to the largest row or to 1 m."""
    size = np.linalg.norm(Jc, axis=-1)
    return size <= np.maximum(
        RELATIVE_ROW_ROUNDING * size.max(axis=-1, keepdims=True, initial=0.0), ROW_ROUNDING
    )


def solve_gauss(
    mass: np.ndarray, Jc: np.ndarray, torque: np.ndarray, right: np.ndarray
) -> DenseSolution:
    """Gauss' principle for one state, with N a basis of null(Jc); M may be singular:

    a = Jc^+ right + N y                  (N* M N) y = N* (torque - M Jc^+ right)
    lambda = (Jc*)^+ (M a - torque)
    """
    m, nv = Jc.shape
    unsolved = DenseSolution(np.full(nv, np.nan), np.full(m, np.nan), m, np.zeros(m), np.zeros(nv))
    if not all(np.isfinite(x).all() for x in (mass, Jc, torque, right)):
        return unsolved
    tolerance = np.where(negligible_rows(Jc), NEGLIGIBLE_ROW_TOLERANCE, UNMET_TOLERANCE)
    tolerance = tolerance * max(1.0, np.abs(right).max(initial=0.0))
    rows, size = normalize_rows(Jc)
    Jc = rows * size[:, None]
    U, w, Vt = np.linalg.svd(rows)
    rank = int((w > JACOBIAN_RANK_TOLERANCE * w.max(initial=0.0)).sum())
    particular = Vt[:rank].T @ ((U[:, :rank].T @ (right / size)) / w[:rank])  # Jc^+ right
    residual = right - Jc @ particular
    if (np.abs(residual) > tolerance).any():
        return replace(unsolved, rank=rank, residual=residual)
    N = Vt[rank:].T
    inertia, Q = np.linalg.eigh(N.T @ mass @ N)
    if inertia.size and inertia[0] <= INERTIA_TOLERANCE * np.abs(mass).max():
        return replace(unsolved, rank=rank, undetermined=N @ Q[:, 0])
    a = particular + N @ (Q @ ((Q.T @ (N.T @ (torque - mass @ particular))) / inertia))
    lam = np.linalg.pinv(Jc.T, rcond=JACOBIAN_RANK_TOLERANCE) @ (mass @ a - torque)
    return replace(unsolved, a=a, multipliers=lam, rank=rank)


def least_motion(system: System, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """min x* M x subject to Jc x = rows, for states (n, nq): a projection step."""
    mass, Jc, rest = system.robot.mass_matrix(q), system.constraint_jacobian(q), np.zeros(system.nv)
    return np.array(
        [solve_gauss(M, J, rest, right).a for M, J, right in zip(mass, Jc, rows, strict=True)]
    ).reshape(-1, system.nv)


def compliance(mass: np.ndarray, Jc: np.ndarray, J: np.ndarray) -> np.ndarray:
    """J N (N* M N)^-1 N* J*, N = null(Jc), for batches.

    Light bodies do not lose digits, since no large numbers are subtracted. NaN if some motion has
    no inertia.
    """
    finite = (np.isfinite(mass) & np.isfinite(J).all(axis=(-2, -1), keepdims=True)).all(
        axis=(-2, -1), keepdims=True
    )
    mass, Jc = np.where(finite, mass, np.eye(mass.shape[-1])), np.where(finite, Jc, 0.0)
    N, free = null_space(normalize_rows(Jc)[0], JACOBIAN_RANK_TOLERANCE)
    inner = np.swapaxes(N, -1, -2) @ mass @ N + np.where(free, 0.0, 1.0)[..., None] * np.eye(
        N.shape[-1]
    )
    inertia = np.linalg.eigvalsh(inner)
    finite &= (inertia[..., 0] > 1e-15 * inertia[..., -1])[..., None, None]
    motions = np.where(finite, J, 0.0) @ N
    result = motions @ np.linalg.solve(
        np.where(finite, inner, np.eye(N.shape[-1])), np.swapaxes(motions, -1, -2)
    )
    return np.where(finite, result, np.nan)
