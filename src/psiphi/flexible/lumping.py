"""Few points of mass in place of many: what moves by n linear shapes has the same dynamics.

With z_i = [1, r_i, U_i] at each node, everything that the mass decides is in Σ m_i z_i z_i*: mass, centre, second moments, and
how shapes couple with each other and with rigid motions. A matrix of rank k is the sum of k such points, of equal masses: let
Σ = A A*, turned so that the first row of A has equal entries.
"""

from __future__ import annotations

import numpy as np

TINY = 1e-13  # of the largest eigenvalue: what is rounding


def few_points(nodes: np.ndarray, mass: np.ndarray, shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes (N, 3), mass (N,) or (N, N), shapes (N, 3, n) -> the same of at most 4 + 3 n points."""
    count, _, n = shapes.shape
    z = np.concatenate([np.ones((count, 1)), nodes, shapes.reshape(count, 3 * n)], axis=1)
    scale = np.maximum(np.abs(z).max(axis=0), 1e-300)
    y = z / scale
    S = y.T @ (mass[:, None] * y if mass.ndim == 1 else mass @ y)
    values, vectors = np.linalg.eigh(0.5 * (S + S.T))
    kept = values > TINY * values[-1]
    A = vectors[:, kept] * np.sqrt(values[kept])
    A = A @ _evened(A[0])
    each = S[0, 0] / A.shape[1]
    points = (A / np.sqrt(each)).T * scale
    points /= points[:, :1]  # one, to rounding
    return points[:, 1:4], np.full(len(points), each), points[:, 4:].reshape(-1, 3, n)


def _evened(row: np.ndarray) -> np.ndarray:
    """The reflection that makes all entries of a row equal."""
    size = np.linalg.norm(row)
    w = row - np.full(len(row), size / np.sqrt(len(row)))
    long = w @ w
    return np.eye(len(row)) if long < 1e-30 * size * size else np.eye(len(row)) - 2.0 * np.outer(w, w) / long
