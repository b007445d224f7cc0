"""Gains of a filter without its covariances, for constant coefficients (S2 section 12; Morf, Sidhu
and Kailath 1974).

If Phi, M, H and R are the same at every stage, the increments of P have a recursion of their own,
P(k+1) - P(k) = Y N Y*, with as many columns as the first increment has rank:

    D' = D + H Y N Y* H*       A' = A + Phi Y N Y* H*       A = Phi P H*, the gain is A D^-1
    Y' = (Phi - A D^-1 H) Y    N' = N - N Y* H* D'^-1 H Y N

A filter with n states whose first covariance is known, and few sources of noise, has few columns;
the links of an arm have as many as P itself (docs/fast_filters.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi.apps.estimation.linear_gaussian_tree import LinearTree, noise_covariance

CONSTANT = 1e-12  # largest relative difference between the matrices of two stages
NEGLIGIBLE = 1e-13  # eigenvalues of the first increment, relative to the covariances


@dataclass(frozen=True, eq=False)
class FastGains:
    """Innovation covariances D (..., stages, m, m) and gains Phi P H* D^-1 (..., stages, n, m), in
    the order of time; `rank`: the columns of Y; the flops of a step with Y, and with P."""

    innovation_covariances: np.ndarray
    gains: np.ndarray
    rank: int
    flops: int
    riccati_flops: int


def fast_gains(model: LinearTree) -> FastGains:
    """The gains of a chain with constant coefficients, by increments of low rank.

    The covariance of the first instant is free. Chains whose other matrices differ between stages
    are refused, since the recursion would be wrong.

    >>> import numpy as np, psiphi as pp
    >>> turn = np.array([[0.9, 0.2], [-0.2, 0.9]])
    >>> start, push = np.zeros((2, 2)), np.diag([0.0, 0.1])
    >>> sees, noise = np.array([[1.0, 0.0]]), [[0.5]]
    >>> walk = pp.estimation.sequence([turn] * 9, [start] + [push] * 9, [sees] * 10, [noise] * 10)
    >>> found = pp.estimation.fast_gains(walk)
    >>> found.gains.shape, found.rank
    ((10, 2, 1), 1)
    """
    if not isinstance(model, LinearTree):
        raise StateError(f"model is {shown(model)}, expected a LinearTree", "see pp.estimation")
    if model.lead:
        raise StateError("fast_gains takes one model, and this is a batch", "pass one at a time")
    Phi, M, H, R, P = _constant_matrices(model)
    first = H @ P @ H.T + R
    A = Phi @ P @ H.T
    change = M + Phi @ P @ Phi.T - _times_inverse(A, first) @ A.T - P
    size = np.abs(P).max(initial=0.0) + np.abs(M).max(initial=0.0)
    values, vectors = np.linalg.eigh(0.5 * (change + change.T))
    kept = np.abs(values) > NEGLIGIBLE * size
    Y, N, D = vectors[:, kept], np.diag(values[kept]), first
    covariances, gains = [D], [_times_inverse(A, D)]
    for _ in model.stages[1:]:
        seen = H @ Y
        step = N @ seen.T
        after = D + seen @ step
        PhiY = Phi @ Y
        N, Y = N - step @ _solve(after, step.T), PhiY - gains[-1] @ seen
        A, D = A + PhiY @ step, 0.5 * (after + after.T)
        covariances.append(D)
        gains.append(_times_inverse(A, D))
    (n, m), r = A.shape, Y.shape[1]
    return FastGains(np.stack(covariances), np.stack(gains), r, *_flops(n, m, r))


def _flops(n: int, m: int, r: int) -> tuple[int, int]:
    """Multiplications and additions of a step, dense: with Y (n, r), and with P (n, n)."""
    solve = m**3 // 3 + 2 * n * m * m
    fast = 2 * n * n * r + 2 * n * m * r * 3 + 2 * m * r * (2 * r + m) + solve
    riccati = 4 * n**3 + 2 * n * n * m * 2 + 2 * n * m * m + solve
    return fast, riccati


def _solve(D: np.ndarray, x: np.ndarray) -> np.ndarray:
    if not D.size:
        return x
    try:
        return np.linalg.solve(D, x)
    except np.linalg.LinAlgError:
        raise StateError(
            "an innovation has no variance: outputs depend on each other", "give noise"
        ) from None


def _times_inverse(A: np.ndarray, D: np.ndarray) -> np.ndarray:
    """A D^-1 of a symmetric D."""
    return _solve(D, A.T).T


def _constant_matrices(model: LinearTree) -> tuple[np.ndarray, ...]:
    """(Phi, M, H, R, first P), the same at all stages; an error says which are not."""
    count = len(model.stages)
    if not count or list(model.parent) != list(range(-1, count - 1)):
        raise StateError(
            "fast_gains takes a chain, and this model branches or is empty", "use Smoother"
        )
    in_time = model.stages[::-1]  # the tip is the first instant
    H, R = in_time[0].outputs, noise_covariance(in_time[0])
    last = in_time[0]
    Phi = last.transition if count > 1 else np.eye(model.sizes[0])
    M = in_time[1].covariance if count > 1 else last.covariance
    for k, stage in enumerate(in_time):
        pairs = {"outputs": (stage.outputs, H), "noise": (noise_covariance(stage), R)}
        if k:
            pairs["covariance"] = stage.covariance, M
        if k < count - 1:
            pairs["transition"] = stage.transition, Phi
        for name, (own, first) in pairs.items():
            if own.shape != first.shape or not _is_equal(own, first):
                raise StateError(
                    f"fast_gains needs equal stages, and {name} of instant {k} differs"
                    + _difference(own, first),
                    "use pp.estimation.Smoother, or two_ports for robots",
                )
    return Phi, M, H, R, last.covariance


def _is_equal(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.abs(a - b).max(initial=0.0) <= CONSTANT * np.abs(b).max(initial=0.0))


def _difference(a: np.ndarray, b: np.ndarray) -> str:
    if a.shape != b.shape:
        return f": {a.shape}, not {b.shape}"
    return f" by {np.abs(a - b).max():.3g}"
