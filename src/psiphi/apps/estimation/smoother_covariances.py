"""What is left to know of every state when all outputs are known: the smoothed covariances S, base to tip.

A child's state x and its parent's x(p) = phi x + u, given the outputs outboard, hang on independent unit numbers z:

    x = [F 0] z,    x(p) = [phi F, V] z = B z,    F F* = P+,    V V* = Cov(u) = M(p) + sum of the siblings' phi P+ phi*

Knowing x(p) leaves of z what B does not see; with A = [F 0] B^+ then S = [F 0] (I - B^+ B) [F 0]* + A S(p) A*. Both are squares
that are added: P+ - P+ Lam+ P+ is the same and takes away nearly all of P+ where a vague beginning was found out later.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from psiphi.apps.estimation.linear_gaussian_tree import LinearTree

UNSEEN = 1e-13  # of the largest singular value of B: below it x(p) says nothing


def smoothed_covariances(model: LinearTree, filtered: list[np.ndarray]) -> list[np.ndarray]:
    """S (..., n, n) of each stage, from P+ of all."""
    halves = [_half(P) for P in filtered]
    found = [F @ _t(F) for F in halves]  # right at the roots
    for k, beside in enumerate(_besides(model, filtered)):
        if model.parent[k] >= 0:
            found[k] = _told(
                halves[k], model.stages[k].transition, _half(beside), found[model.parent[k]]
            )
    return found


def _told(F: np.ndarray, phi: np.ndarray, V: np.ndarray, S: np.ndarray) -> np.ndarray:
    """The covariance of x = F z when x(p) = phi x + V z' is known up to S."""
    n, lead = F.shape[-1], F.shape[:-2]
    B = np.concatenate([phi @ F, np.broadcast_to(V, (*lead, *V.shape[-2:]))], axis=-1)
    size = np.linalg.norm(B, axis=-1)[..., None]
    size = np.where(size > 0.0, size, 1.0)  # states of the parent may differ in scale
    left, values, right = np.linalg.svd(B / size)
    seen = values > UNSEEN * values[..., :1]
    F_right = F @ _t(right)[..., :n, :]
    count = values.shape[-1]
    unseen = F_right.copy()
    unseen[..., :count] *= ~seen[..., None, :]
    inverse = np.where(seen, 1.0 / np.where(seen, values, 1.0), 0.0)
    A = F_right[..., :count] * inverse[..., None, :] @ _t(left / size)
    return unseen @ _t(unseen) + A @ S @ _t(A)


def _besides(model: LinearTree, filtered: list[np.ndarray]) -> list[np.ndarray]:
    """Of each stage, Cov(u): what its parent's state is made of besides. Siblings' parts are added, none is taken away."""
    children: list[list[int]] = [[] for _ in model.stages]
    for k, p in enumerate(model.parent):
        if p >= 0:
            children[p].append(k)
    found = list(filtered)  # of roots never asked for
    for p, those in enumerate(children):
        parts = [
            model.stages[c].transition @ filtered[c] @ _t(model.stages[c].transition) for c in those
        ]
        none = np.zeros_like(filtered[p])
        before, after = (
            list(accumulate(parts, initial=none)),
            list(accumulate(reversed(parts), initial=none))[::-1],
        )
        for i, c in enumerate(those):
            found[c] = model.stages[p].covariance + before[i] + after[i + 1]
    return found


def _half(P: np.ndarray) -> np.ndarray:
    """F with F F* = P (..., n, n), without the negative variances that rounding leaves; states may differ in scale."""
    spread = np.sqrt(np.maximum(np.diagonal(P, axis1=-2, axis2=-1), 0.0))[..., None]
    scale = np.where(spread > 0.0, spread, 1.0)
    values, vectors = np.linalg.eigh(P / (scale * _t(scale)))
    return spread * vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]


def _t(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)
