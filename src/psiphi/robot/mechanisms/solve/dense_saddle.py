"""The dense system (2.11) of S4, and its answer where neither Omega nor the mass matrix has an inverse.

[ M   -Jc* ] [ a      ]   [ tau - C v - g + J* f_ext ]
[ Jc    0  ] [ lambda ] = [ -dJc/dt v                ]

On arrays: compiled programs (`system_stages.py`) solve it by Omega, or around the hub. This has another road to the same answer, and
where pivots tell nothing, ranks by singular values, which no code without branches has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.robot.mechanisms.solve.redundant_constraints import OFF, UNMET, null_space

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
FAINT_ROW = 1e-13  # of the largest row,
NO_ROW = (
    1e-14  # or in metres and parts of a unit vector: what rounding leaves of a row that is none
)
KEPT = 1e-8  # singular values of the scaled Jc below this are zeros
FELT = 1e-13  # motions with less inertia than this, relative to the largest, are not determined by any force


def pieces(
    system: Any, values: tuple[np.ndarray, ...], frames: tuple[str, ...], axes: str
) -> Arrays:
    """M, Jc, and the two right sides, broadcast to one batch."""
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
    system: Any, values: tuple[np.ndarray, ...], frames: tuple[str, ...], axes: str
) -> Arrays:
    """a, multipliers, contact forces, and a strain that is infinite where the matrix has no inverse."""
    mass, Jc, torque, right = pieces(system, values, frames, axes)
    m, nv = Jc.shape[-2:]
    lead = torque.shape[:-1]
    K = np.zeros((*lead, nv + m, nv + m))
    K[..., :nv, :nv], K[..., nv:, :nv] = mass, Jc
    K[..., :nv, nv:] = -np.swapaxes(Jc, -1, -2)
    regular: Any = np.isfinite(K).all(axis=(-2, -1))
    safe = np.where(regular[..., None, None], K, np.eye(nv + m))
    regular &= (np.linalg.matrix_rank(safe[..., nv:, :nv], tol=KEPT) == m) & (
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
    """One state's last word: a and lambda, the rank of Jc, what is left open of its rows, a motion nothing determines."""

    a: np.ndarray
    multipliers: np.ndarray
    rank: int
    left: np.ndarray
    loose: np.ndarray

    @property
    def is_answer(self) -> bool:
        return bool(np.isfinite(self.a).all())


def comparable(Jc: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Jc with rows of norm one, and the norms (..., m); rows that are nothing but rounding are zero, and their norm 1."""
    dust = is_dust(Jc)
    size = np.where(dust, 1.0, np.linalg.norm(Jc, axis=-1))
    return np.where(dust[..., None], 0.0, Jc / size[..., None]), size


def is_dust(Jc: np.ndarray) -> np.ndarray:
    """Which rows (..., m) are zero but for rounding: beside the others, or beside arms of a metre and unit axes."""
    size = np.linalg.norm(Jc, axis=-1)
    return size <= np.maximum(FAINT_ROW * size.max(axis=-1, keepdims=True, initial=0.0), NO_ROW)


def judge(mass: np.ndarray, Jc: np.ndarray, torque: np.ndarray, right: np.ndarray) -> DenseSolution:
    """Gauss' principle for one state, nothing inverted that may be singular: with N a basis of null(Jc)

    a = Jc^+ right + N y      (N* M N) y = N* (torque - M Jc^+ right)      lambda = (Jc*)^+ (M a - torque)
    """
    m, nv = Jc.shape
    nothing = DenseSolution(np.full(nv, np.nan), np.full(m, np.nan), m, np.zeros(m), np.zeros(nv))
    if not all(np.isfinite(x).all() for x in (mass, Jc, torque, right)):
        return nothing
    unmet = np.where(is_dust(Jc), OFF, UNMET) * max(1.0, np.abs(right).max(initial=0.0))
    rows, size = comparable(Jc)
    Jc = rows * size[:, None]
    U, w, Vt = np.linalg.svd(rows)
    rank = int((w > KEPT * w.max(initial=0.0)).sum())
    held = Vt[:rank].T @ ((U[:, :rank].T @ (right / size)) / w[:rank])
    left = right - Jc @ held
    if (np.abs(left) > unmet).any():
        return DenseSolution(nothing.a, nothing.multipliers, rank, left, nothing.loose)
    N = Vt[rank:].T
    inertia, Q = np.linalg.eigh(N.T @ mass @ N)
    if inertia.size and inertia[0] <= FELT * np.abs(mass).max():
        return DenseSolution(nothing.a, nothing.multipliers, rank, np.zeros(m), N @ Q[:, 0])
    a = held + N @ (Q @ ((Q.T @ (N.T @ (torque - mass @ held))) / inertia))
    lam = np.linalg.pinv(Jc.T, rcond=KEPT) @ (mass @ a - torque)
    return DenseSolution(a, lam, rank, np.zeros(m), nothing.loose)


def least_motion(system: Any, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """min x* M x with Jc x = rows, for states (n, nq): the step of a projection."""
    mass, Jc, rest = system.robot.mass_matrix(q), system.constraint_jacobian(q), np.zeros(system.nv)
    return np.array(
        [judge(M, J, rest, right).a for M, J, right in zip(mass, Jc, rows, strict=True)]
    ).reshape(-1, system.nv)


def compliance(mass: np.ndarray, Jc: np.ndarray, J: np.ndarray) -> np.ndarray:
    """J N (N* M N)^-1 N* J*, N = null(Jc), batch by batch: no differences of large numbers, however light a body is."""
    finite = (np.isfinite(mass) & np.isfinite(J).all(axis=(-2, -1), keepdims=True)).all(
        axis=(-2, -1), keepdims=True
    )
    mass, Jc = np.where(finite, mass, np.eye(mass.shape[-1])), np.where(finite, Jc, 0.0)
    N, free = null_space(comparable(Jc)[0], KEPT)
    inner = np.swapaxes(N, -1, -2) @ mass @ N + np.where(free, 0.0, 1.0)[..., None] * np.eye(
        N.shape[-1]
    )
    least = np.linalg.eigvalsh(inner)
    finite &= (least[..., 0] > 1e-15 * least[..., -1])[
        ..., None, None
    ]  # else some motion has no inertia
    moved = np.where(finite, J, 0.0) @ N
    answer = moved @ np.linalg.solve(
        np.where(finite, inner, np.eye(N.shape[-1])), np.swapaxes(moved, -1, -2)
    )
    return np.where(finite, answer, np.nan)
