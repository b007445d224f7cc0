"""Few points of mass in place of many: what moves by n linear shapes has the same dynamics.

With z_i = [1, r_i, U_i, Q_i] at each node, everything that the mass decides is in Σ m_i z_i z_i*: mass, centre, second moments,
and how shapes couple with each other and with rigid motions. A matrix of rank k is the sum of k such points, of equal masses:
let Σ = A A*, turned so that the first row of A has equal entries. They lie anywhere, and are not to be looked at.
"""

from __future__ import annotations

import numpy as np

TINY = 1e-13  # of the largest eigenvalue: what is rounding


def few_points(mass: np.ndarray, *by_node: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Mass (N,) or (N, N) and what nodes have, (N, ...) each -> the same of as many points as these have rank, and one."""
    count = len(mass)
    z = np.concatenate([np.ones((count, 1)), *(x.reshape(count, -1) for x in by_node)], axis=1)
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
    ends = np.cumsum([1, *(x[0].size for x in by_node)])
    cut = [
        points[:, a:b].reshape(len(points), *x.shape[1:])
        for a, b, x in zip(ends, ends[1:], by_node, strict=False)
    ]
    return np.full(len(points), each), cut


def _evened(row: np.ndarray) -> np.ndarray:
    """The reflection that makes all entries of a row equal."""
    size = np.linalg.norm(row)
    w = row - np.full(len(row), size / np.sqrt(len(row)))
    long = w @ w
    return (
        np.eye(len(row))
        if long < 1e-30 * size * size
        else np.eye(len(row)) - 2.0 * np.outer(w, w) / long
    )
