"""The dense system (2.11) of S4, batch by batch: what the recursions are measured against.

[ M   -Jc* ] [ a      ]   [ tau - C v - g + J* f_ext ]
[ Jc    0  ] [ lambda ] = [ -dJc/dt v                ]
"""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def solve(system: Any, values: tuple[np.ndarray, ...], frames: tuple[str, ...], axes: str) -> Arrays:
    """a, multipliers, contact forces, and a strain that is infinite where the matrix has no inverse."""
    q, v, tau = values[:3]
    robot, m, nv = system.robot, system.nc, system.nv
    loads = {name: values[3][..., i, :] for i, name in enumerate(frames)}
    mass, Jc = robot.mass_matrix(q), system.constraint_jacobian(q)
    torque = tau - robot.inverse_dynamics(q, v, np.zeros(nv), f_ext=loads, axes=axes)
    free, _, gap = system._call(system._terms(frames, axes), values)
    bias = gap - np.einsum("...ij,...j->...i", Jc, free)
    lead = bias.shape[:-1]
    K = np.zeros((*lead, nv + m, nv + m))
    K[..., :nv, :nv], K[..., nv:, :nv] = mass, Jc
    K[..., :nv, nv:] = -np.swapaxes(Jc, -1, -2)
    right = np.concatenate([np.broadcast_to(torque, (*lead, nv)), -bias], axis=-1)
    regular: Any = np.isfinite(K).all(axis=(-2, -1))
    regular &= np.linalg.matrix_rank(np.where(regular[..., None, None], Jc, 0.0), tol=1e-8) == m
    x = np.full((*lead, nv + m), np.nan)
    x[regular] = np.linalg.solve(K[regular], right[regular][..., None])[..., 0]
    a, lam = x[..., :nv], x[..., nv:]
    forces = system._corrected(q, lam)[1]
    return a, lam, forces, np.where(regular, 1.0, np.inf)
