"""Craig and Bampton's shapes: a body's interface nodes moved one coordinate at a time, and its modes while they are held.

Φ = [[1, 0], [-K_ii⁻¹ K_ib, Φ_i]]      b: coordinates of interface nodes, i: of all others that are not clamped
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.validate import whole


def reduced(
    m: np.ndarray,
    J: np.ndarray,
    K: np.ndarray,
    per: int,
    root: Sequence[int],
    ends: Sequence[int],
    modes: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shapes (N, 3, n), their turns (N, 3, n) and stiffness (n, n), of masses (N, N) and inertias (N, 3, 3) at nodes with
    `per` coordinates each."""
    N = len(m)
    free = [k for k in range(N) if k not in set(root)]
    if set(ends) & set(root):
        raise ModelError(
            "a node is clamped and an interface node, too", "leave it out of root or of interface"
        )
    of = lambda nodes: [per * k + c for k in nodes for c in range(per)]  # noqa: E731
    b, i = of(ends), of([k for k in free if k not in set(ends)])
    inner = K[np.ix_(i, i)]
    if i and np.linalg.eigvalsh(inner)[0] <= 1e-14 * np.abs(inner).max():
        raise ModelError(
            "stiffness is singular with the root clamped",
            "clamp nodes that hold the body: root=[...]",
        )
    held = np.linalg.solve(inner, K[np.ix_(i, b)]) if i else np.zeros((0, len(b)))
    count = whole("modes", modes)
    vibrating = _slowest(inner, _mass(m, J, per)[np.ix_(i, i)], count)
    Phi = np.zeros((per * N, len(b) + vibrating.shape[1]))
    Phi[b, : len(b)] = np.eye(len(b))
    Phi[i, : len(b)] = -held
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


def _slowest(K: np.ndarray, M: np.ndarray, count: int) -> np.ndarray:
    """The modes of K φ = ω² M φ with the smallest ω; M may have no mass in some directions: 1/ω² is what is computed."""
    L = np.linalg.cholesky(K) if len(K) else np.zeros((0, 0))
    soft = np.linalg.solve(L, np.linalg.solve(L, M).T) if len(K) else np.zeros((0, 0))
    values, vectors = np.linalg.eigh(0.5 * (soft + soft.T))
    there = int((values > 1e-12 * values[-1]).sum()) if len(values) else 0
    if count > there:
        cause = f"modes is {count}, and {there} shapes of the inner nodes have mass: more modes than the nodes can have"
        raise ModelError(cause, f"give modes={there} at most, or more nodes with mass")
    return np.linalg.solve(L.T, vectors[:, ::-1][:, :count]) if count else np.zeros((len(K), 0))
