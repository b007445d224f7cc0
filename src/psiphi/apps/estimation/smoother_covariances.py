"""The smoothed covariances S, base to tip: of every state when all outputs are known.

The state x of a child and x(p) = phi x + u of its parent, given the outputs outboard, are linear in
independent unit normal numbers z:

    x = [F 0] z,    x(p) = [phi F, V] z = B z
    F F* = P+,      V V* = Cov(u) = M(p) + sum of the siblings' phi P+ phi*

x(p) leaves the null space of B unknown. With A = [F 0] B^+ this gives

    S = [F 0] (I - B^+ B) [F 0]* + A S(p) A*

Both terms are positive. P+ - P+ Lam+ P+ is the same in exact arithmetic, but cancels nearly all of
P+ if a diffuse initial state is determined later.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from psiphi.apps.estimation.linear_gaussian_tree import LinearTree

SINGULAR = 1e-13  # relative singular value of B below which x(p) does not determine a direction


def smoothed_covariances(model: LinearTree, filtered: list[np.ndarray]) -> list[np.ndarray]:
    """S (..., n, n) of each stage, from P+ of all."""
    factors = [_factor(P) for P in filtered]
    S = [F @ _t(F) for F in factors]  # final at the roots
    for k, Cov_u in enumerate(_other_covariances(model, filtered)):
        p = model.parent[k]
        if p >= 0:
            S[k] = _smoothed(factors[k], model.stages[k].transition, _factor(Cov_u), S[p])
    return S


def _smoothed(F: np.ndarray, phi: np.ndarray, V: np.ndarray, S_parent: np.ndarray) -> np.ndarray:
    """The covariance of x = F z if x(p) = phi x + V z' has the covariance S_parent."""
    n, batch = F.shape[-1], F.shape[:-2]
    B = np.concatenate([phi @ F, np.broadcast_to(V, (*batch, *V.shape[-2:]))], axis=-1)
    scale = np.linalg.norm(B, axis=-1)[..., None]
    scale = np.where(scale > 0.0, scale, 1.0)  # states of the parent may differ in scale
    left, values, right = np.linalg.svd(B / scale)
    regular = values > SINGULAR * values[..., :1]
    F_right = F @ _t(right)[..., :n, :]
    count = values.shape[-1]
    null = F_right.copy()
    null[..., :count] *= ~regular[..., None, :]
    inverse = np.where(regular, 1.0 / np.where(regular, values, 1.0), 0.0)
    A = F_right[..., :count] * inverse[..., None, :] @ _t(left / scale)
    return null @ _t(null) + A @ S_parent @ _t(A)


def _other_covariances(model: LinearTree, filtered: list[np.ndarray]) -> list[np.ndarray]:
    """Cov(u) of each stage: of all in its parent's state but its own part.

    The parts of its siblings are added, without subtraction.
    """
    children: list[list[int]] = [[] for _ in model.stages]
    for k, p in enumerate(model.parent):
        if p >= 0:
            children[p].append(k)
    found = list(filtered)  # the entries of roots are not used
    for p, siblings in enumerate(children):
        phis = [model.stages[c].transition for c in siblings]
        parts = [phi @ filtered[c] @ _t(phi) for phi, c in zip(phis, siblings, strict=True)]
        zero = np.zeros_like(filtered[p])
        before = list(accumulate(parts, initial=zero))
        after = list(accumulate(reversed(parts), initial=zero))[::-1]
        for i, c in enumerate(siblings):
            found[c] = model.stages[p].covariance + before[i] + after[i + 1]
    return found


def _factor(P: np.ndarray) -> np.ndarray:
    """F with F F* = P (..., n, n), without negative variances of rounding; scales may differ."""
    deviation = np.sqrt(np.maximum(np.diagonal(P, axis1=-2, axis2=-1), 0.0))[..., None]
    scale = np.where(deviation > 0.0, deviation, 1.0)
    values, vectors = np.linalg.eigh(P / (scale * _t(scale)))
    return deviation * vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]


def _t(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)
