"""A few point masses with the same dynamics as many, for a body that moves by n linear shapes.

With z_i = [1, r_i, U_i, Q_i] at each node, the dynamics depend on the masses only through
S = Σ m_i z_i z_i*: mass, center of mass, second moments, and the coupling of the shapes with each
other and with rigid motion. If S has rank k, k points of equal mass have the same S: write S = A A*
and reflect A so that its first row has equal entries. The positions of these points have no
geometric meaning.
"""

from __future__ import annotations

import numpy as np

RANK_TOLERANCE = 1e-13  # relative to the largest eigenvalue


def equivalent_points(
    mass: np.ndarray, *by_node: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Equal masses (k,) and node values (k, ...) with the same S as the given ones.

    `mass` is (N,) or (N, N), the node values are (N, ...).
    """
    count = len(mass)
    z = np.concatenate([np.ones((count, 1)), *(x.reshape(count, -1) for x in by_node)], axis=1)
    scale = np.maximum(np.abs(z).max(axis=0), 1e-300)
    y = z / scale
    S = y.T @ (mass[:, None] * y if mass.ndim == 1 else mass @ y)
    values, vectors = np.linalg.eigh(0.5 * (S + S.T))
    significant = values > RANK_TOLERANCE * values[-1]
    A = vectors[:, significant] * np.sqrt(values[significant])
    A = A @ _equalizing_reflection(A[0])
    each = S[0, 0] / A.shape[1]
    points = (A / np.sqrt(each)).T * scale
    points /= points[:, :1]  # the first column is 1 up to rounding
    ends = np.cumsum([1, *(x[0].size for x in by_node)])
    cut = [
        points[:, a:b].reshape(len(points), *x.shape[1:])
        for a, b, x in zip(ends, ends[1:], by_node, strict=False)
    ]
    return np.full(len(points), each), cut


def _equalizing_reflection(row: np.ndarray) -> np.ndarray:
    """The Householder reflection that makes all entries of a row equal."""
    size = np.linalg.norm(row)
    w = row - np.full(len(row), size / np.sqrt(len(row)))
    long = w @ w
    return (
        np.eye(len(row))
        if long < 1e-30 * size * size
        else np.eye(len(row)) - 2.0 * np.outer(w, w) / long
    )
