"""Linear Gaussian models on chains and trees.

    x(k) = sum_children phi(k, c) x(c) + w(k),   w(k) ~ N(xi(k), M(k))
    y(k) = H(k) x(k) + n(k),                     n(k) ~ N(0, R(k)), R diagonal

A robot is such a model: x is the spatial force across a joint, y its torque, M the inertia, R the rotors (theory.md
section 8). Stages are numbered like bodies, parents first: in a time series the last instant is stage 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psiphi.errors import ModelError
from psiphi.spatial.screws import dot
from psiphi.spatial.small import apply, transpose


@dataclass(frozen=True)
class Symmetric:
    """A symmetric matrix of any size, with the manners of a spatial inertia."""

    rows: list

    @property
    def size(self) -> int:
        return len(self.rows)

    @staticmethod
    def from_entries(entry) -> Symmetric:
        n = 1 + max(r for r, _ in entry)
        return Symmetric([[entry[r, c] for c in range(n)] for r in range(n)])

    def entry(self, r: int, c: int):
        return self.rows[r][c]

    def __add__(self, other: Symmetric) -> Symmetric:
        return Symmetric([[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(self.rows, other.rows, strict=True)])

    def __matmul__(self, x) -> list:
        return [dot(row, x) for row in self.rows]


@dataclass(frozen=True)
class Transition:
    """phi(p, k) of a linear model, as a displacement: force phi f, motion phi* V, inertia phi P phi*, compliance phi* X phi."""

    phi: list

    def force(self, f) -> list:
        return apply(self.phi, f)

    def motion(self, V) -> list:
        return apply(transpose(self.phi), V)

    def inertia(self, P: Symmetric) -> Symmetric:
        return _congruence(self.phi, P)

    def coinertia(self, X: Symmetric) -> Symmetric:
        return _congruence(transpose(self.phi), X)


@dataclass(frozen=True)
class Ground:
    """The way from a root to nowhere: nothing gets there, nothing comes back."""

    size: int

    def force(self, f) -> list:
        return []

    def motion(self, V) -> list:
        return [0.0] * self.size

    def inertia(self, P: Symmetric) -> Symmetric:
        return Symmetric([])


def _congruence(A, P: Symmetric) -> Symmetric:
    half = [[dot(row, column) for column in transpose(P.rows)] for row in A]
    n = len(A)
    out: list = [[None] * n for _ in range(n)]
    for r in range(n):
        for c in range(r, n):
            out[r][c] = out[c][r] = dot(half[r], A[c])
    return Symmetric(out)


@dataclass(frozen=True, eq=False)
class Stage:
    """One node: the transition to its parent, its process covariance M, its outputs H with noise variances R."""

    parent: int
    transition: np.ndarray  # (parent's size, own size); ignored at a root
    covariance: np.ndarray
    outputs: np.ndarray
    noise: np.ndarray | None = None


class StageLink:
    """A stage as the sweeps see it: a link with a path, a map and an inertia."""

    def __init__(self, index: int, stage: Stage):
        self.index, self.parent = index, stage.parent
        self.size = len(stage.covariance)
        self.inertia = Symmetric(np.asarray(stage.covariance, dtype=float).tolist())
        self.armature = np.asarray(stage.noise, dtype=float).tolist() if stage.noise is not None else [0.0] * len(stage.outputs)
        self._H = np.asarray(stage.outputs, dtype=float).tolist()
        way = Ground(self.size) if stage.parent < 0 else Transition(np.asarray(stage.transition, dtype=float).tolist())
        self._path = [way]

    def H(self, q) -> list:
        return self._H

    def path(self, q) -> list:
        return self._path


class LinearTree:
    """Stages in order, `parent[k] < k` (-1: a root). Checked when made.

    >>> import numpy as np
    >>> walk = sequence([np.eye(1)], [np.eye(1), np.eye(1)], [np.eye(1), np.eye(1)])
    >>> walk.sizes
    (1, 1)
    """

    def __init__(self, stages: Sequence[Stage]):
        self.stages = tuple(stages)
        for k, stage in enumerate(self.stages):
            _check(k, stage, self.stages)
        self.links = tuple(StageLink(k, stage) for k, stage in enumerate(self.stages))
        self.parent = tuple(stage.parent for stage in self.stages)
        self.gauge, self.gravity = (None,) * len(self.stages), (0.0, 0.0, 0.0)
        self.sizes = tuple(len(stage.covariance) for stage in self.stages)
        self.widths = tuple(len(stage.outputs) for stage in self.stages)
        self._states = np.concatenate([[0], np.cumsum(self.sizes)]).astype(int).tolist()
        self._outputs = np.concatenate([[0], np.cumsum(self.widths)]).astype(int).tolist()

    @property
    def nv(self) -> int:
        """Outputs in all."""
        return self._outputs[-1]

    @property
    def nx(self) -> int:
        """States in all."""
        return self._states[-1]

    def slices(self, k: int) -> dict[str, slice]:
        own = slice(self._outputs[k], self._outputs[k + 1])
        return {"q": slice(0, 0), "v": own, "x": slice(self._states[k], self._states[k + 1])}


def sequence(transitions, covariances, outputs, noise=None) -> LinearTree:
    """A time series, first instant first: x(t+1) = transitions[t] x(t) + w(t+1). Stage 0 is the last instant."""
    count = len(covariances)
    if len(transitions) != count - 1 or len(outputs) != count or (noise is not None and len(noise) != count):
        raise ModelError(
            f"{count} covariances come with {len(transitions)} transitions and {len(outputs)} outputs",
            f"give {count - 1} transitions and {count} outputs (and noises)",
        )
    stages = []
    for k in range(count):
        t = count - 1 - k
        step = transitions[t] if k > 0 else np.zeros((0, len(covariances[t])))
        stages.append(Stage(k - 1, step, covariances[t], outputs[t], None if noise is None else noise[t]))
    return LinearTree(stages)


def _check(k: int, stage: Stage, stages: tuple[Stage, ...]) -> None:
    where = f"stage {k}"
    M, H = np.asarray(stage.covariance, dtype=float), np.asarray(stage.outputs, dtype=float)
    if not -1 <= stage.parent < k:
        raise ModelError(
            f"its parent is {stage.parent}, expected -1 .. {k - 1}", "number parents before children", element=where
        )
    if M.ndim != 2 or M.shape[0] != M.shape[1] or not np.allclose(M, M.T) or np.linalg.eigvalsh(M).min() < -1e-9 * abs(M).max():
        raise ModelError(f"its covariance of shape {M.shape} is not symmetric and non-negative", "check it", element=where)
    if H.ndim != 2 or H.shape[1] != len(M):
        raise ModelError(f"its outputs have shape {H.shape}, expected (outputs, {len(M)})", "one row an output", element=where)
    if stage.parent >= 0 and np.shape(stage.transition) != (len(stages[stage.parent].covariance), len(M)):
        expected = (len(stages[stage.parent].covariance), len(M))
        raise ModelError(
            f"its transition has shape {np.shape(stage.transition)}, expected {expected}",
            "map state to parent's",
            element=where,
        )
    for name, value in (("transition", stage.transition), ("covariance", M), ("outputs", H), ("noise", stage.noise)):
        if value is not None and not np.isfinite(np.asarray(value, dtype=float)).all():
            raise ModelError(f"its {name} is not finite", "give finite numbers", element=where)
    if stage.noise is not None and (np.shape(stage.noise) != (len(H),) or np.min(stage.noise, initial=0.0) < 0):
        raise ModelError(f"its noise is {stage.noise!r}, expected {len(H)} variances >= 0", "give one an output", element=where)
