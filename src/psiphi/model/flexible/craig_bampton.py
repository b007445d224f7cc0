"""Craig-Bampton reduction: constraint modes and fixed-interface normal modes.

Φ = [[1, 0], [-K_ii⁻¹ K_ib, Φ_i]]    b: coordinates of interface nodes, i: of other free nodes
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.validate import whole_number


def reduce_matrices(
    m: np.ndarray,
    J: np.ndarray,
    K: np.ndarray,
    per: int,
    root: Sequence[int],
    ends: Sequence[int],
    modes: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shapes (N, 3, n), their rotations (N, 3, n) and the reduced stiffness (n, n).

    m (N, N) is the mass matrix, J (N, 3, 3) are rotary inertias, K is the stiffness with `per`
    coordinates per node.
    """
    N = len(m)
    free = [k for k in range(N) if k not in set(root)]
    if set(ends) & set(root):
        raise ModelError(
            "a node is both clamped and an interface node",
            "remove it from root or from interface",
        )
    of = lambda nodes: [per * k + c for k in nodes for c in range(per)]  # noqa: E731
    b, i = of(ends), of([k for k in free if k not in set(ends)])
    inner = K[np.ix_(i, i)]
    if i and np.linalg.eigvalsh(inner)[0] <= 1e-14 * np.abs(inner).max():
        raise ModelError(
            "stiffness is singular with the root clamped",
            "clamp enough nodes to fix the body: root=[...]",
        )
    static = np.linalg.solve(inner, K[np.ix_(i, b)]) if i else np.zeros((0, len(b)))
    count = whole_number("modes", modes)
    vibrating = _lowest_modes(inner, _mass(m, J, per)[np.ix_(i, i)], count)
    Phi = np.zeros((per * N, len(b) + vibrating.shape[1]))
    Phi[b, : len(b)] = np.eye(len(b))
    Phi[i, : len(b)] = -static
    Phi[i, len(b) :] = vibrating
    by_node = Phi.reshape(N, per, -1)
    turns = by_node[:, 3:] if per == 6 else np.zeros_like(by_node)
    return by_node[:, :3], turns, Phi.T @ K @ Phi


def _mass(m: np.ndarray, J: np.ndarray, per: int) -> np.ndarray:
    out = np.zeros((len(m), per, len(m), per))
    for c in range(3):
        out[:, c, :, c] = m
    if per == 6:
        for k, inertia in enumerate(J):
            out[k, 3:, k, 3:] = inertia
    return out.reshape(per * len(m), -1)


def _lowest_modes(K: np.ndarray, M: np.ndarray, count: int) -> np.ndarray:
    """The modes of K φ = ω² M φ with the lowest ω; M may be singular, since 1/ω² is computed."""
    L = np.linalg.cholesky(K) if len(K) else np.zeros((0, 0))
    flexibility = np.linalg.solve(L, np.linalg.solve(L, M).T) if len(K) else np.zeros((0, 0))
    values, vectors = np.linalg.eigh(0.5 * (flexibility + flexibility.T))
    available = int((values > 1e-12 * values[-1]).sum()) if len(values) else 0
    if count > available:
        raise ModelError(
            f"modes is {count}, but the inner nodes have only {available} modes with mass",
            f"give modes={available} at most, or more nodes with mass",
        )
    return np.linalg.solve(L.T, vectors[:, ::-1][:, :count]) if count else np.zeros((len(K), 0))
