"""Linear Gaussian models on chains and trees.

    x(k) = sum_children phi(k, c) x(c) + w(k),   w(k) ~ N(xi(k), M(k))
    y(k) = H(k) x(k) + n(k),                     n(k) ~ N(0, R(k)), R diagonal

A robot is such a model: x is the spatial force across a joint, y its torque, M the inertia, R the rotors (docs/mathematics.md
section 12); `robots.py` makes it. Stages are numbered like bodies, parents first: in a time series the last instant is stage 0.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi.arguments import Numbers, read
from psiphi.errors import ModelError
from psiphi.estimation.swept import Swept
from psiphi.wording import shown

LARGEST = 1e50  # the largest number of a model: beyond it products overflow
SHAKE = 5e-14  # by how much the numbers of a model are moved to see what its estimates hang on
ROUNDING = 1e-9  # how far from symmetric, and how far below zero, a covariance may be by rounding


@dataclass(frozen=True, eq=False)
class Stage:
    """One node: the transition to its parent, its process covariance M, its outputs H with noise variances R (none: zero).

    A stage without outputs, an instant at which nothing was measured, has outputs of shape (0, n). A `LinearTree` reads and
    checks the numbers, and keeps copies.
    """

    parent: int
    transition: np.ndarray  # (parent's size, own size); ignored at a root
    covariance: np.ndarray
    outputs: np.ndarray
    noise: np.ndarray | None = None


class LinearTree:
    """Stages in order, `parent[k] < k` (-1: a root). Checked when made.

    >>> import numpy as np
    >>> walk = sequence([np.eye(1)], [np.eye(1), np.eye(1)], [np.eye(1), np.eye(1)])
    >>> walk.sizes
    (1, 1)
    """

    def __init__(self, stages: Sequence[Stage]):
        found: list[Stage] = []
        for k, stage in enumerate(listed("stages", stages)):
            found.append(_read_stage(k, stage, found))
        self.stages = tuple(found)
        self.parent = tuple(stage.parent for stage in found)
        self.sizes = tuple(len(stage.covariance) for stage in found)
        self.widths = tuple(len(stage.outputs) for stage in found)
        self._states, self._outputs = ([0, *np.cumsum(n).tolist()] for n in (self.sizes, self.widths))

    @property
    def nv(self) -> int:
        """Outputs in all."""
        return int(self._outputs[-1])

    @property
    def nx(self) -> int:
        """States in all."""
        return int(self._states[-1])

    def slices(self, k: int) -> dict[str, slice]:
        """Where stage k's outputs ("v") and states ("x") are in arrays over all stages."""
        own = slice(self._outputs[k], self._outputs[k + 1])
        return {"q": slice(0, 0), "v": own, "x": slice(self._states[k], self._states[k + 1])}

    @cached_property
    def shaken(self) -> LinearTree:
        """The same tree, every number moved by some hundred roundings: estimates that tell the two apart are refused."""
        rng = np.random.default_rng(0)

        def moved(A: np.ndarray) -> np.ndarray:
            return A * (1.0 + SHAKE * rng.choice([-1.0, 1.0], A.shape))

        stages = []
        for s in self.stages:
            scale = moved(np.ones(len(s.covariance)))
            M = s.covariance * np.outer(scale, scale)  # a covariance again
            stages.append(Stage(s.parent, moved(s.transition), M, moved(s.outputs), moved(np.asarray(s.noise))))
        return LinearTree(stages)

    @cached_property
    def swept(self) -> Swept:
        """The tree as the sweeps see it."""
        return Swept(self)


def sequence(
    transitions: Sequence[Numbers],
    covariances: Sequence[Numbers],
    outputs: Sequence[Numbers],
    noise: Sequence[Numbers] | None = None,
) -> LinearTree:
    """A time series, first instant first: x(t+1) = transitions[t] x(t) + w(t+1). Stage 0 is the last instant.

    An instant without a measurement has outputs of shape (0, n).
    """
    given = {"transitions": transitions, "covariances": covariances, "outputs": outputs}
    steps, covariances, outputs = (listed(name, value) for name, value in given.items())
    count = len(covariances)
    noises = [None] * count if noise is None else listed("noise", noise)
    if len(steps) != max(count - 1, 0) or len(outputs) != count or len(noises) != count:
        raise ModelError(
            f"{count} covariances come with {len(steps)} transitions, {len(outputs)} outputs and {len(noises)} noises",
            f"give {max(count - 1, 0)} transitions and {count} outputs (and noises)",
        )
    last = count - 1
    return LinearTree(
        [
            Stage(k - 1, steps[last - k] if k else EMPTY, covariances[last - k], outputs[last - k], noises[last - k])
            for k in range(count)
        ]
    )


EMPTY = np.zeros((0, 0))


def listed(name: str, values: Any) -> list:
    """The entries of a list, a tuple or an array, one a stage."""
    if not isinstance(values, str | bytes | bytearray | dict | set | frozenset):
        with suppress(Exception):  # an object's own __iter__ may raise anything
            return list(values)
    raise ModelError(f"{name} is {shown(values)}, expected a list with one entry a stage", "give a list")


def _read_stage(k: int, stage: Any, before: list[Stage]) -> Stage:
    """The stage with its numbers read, checked and copied."""
    where = f"stage {k}"
    if not isinstance(stage, Stage):
        raise ModelError(f"it is {shown(stage)}, expected a Stage", "Stage(parent, transition, covariance, ...)", element=where)
    parent = _parent(k, stage.parent, where)
    M = _matrix("covariance", stage.covariance, (None, None), where)
    n = len(M)
    if n == 0 or M.shape != (n, n) or not _is_covariance(M):
        raise ModelError(
            f"its covariance of shape {M.shape} is not a symmetric matrix without negative variances",
            "give a covariance: square, symmetric, no eigenvalue below zero",
            element=where,
        )
    H = _matrix("outputs", stage.outputs, (None, n), where)
    phi = (
        np.zeros((0, n)) if parent < 0 else _matrix("transition", stage.transition, (len(before[parent].covariance), n), where)
    )
    R = np.zeros(len(H)) if stage.noise is None else _matrix("noise", stage.noise, (len(H),), where)
    if (R < 0).any():
        raise ModelError(
            f"the noise of output {int(np.argmax(R < 0))} is {R.min():.3g}, expected a variance of 0 or more",
            "give variances, not standard deviations or covariances",
            element=where,
        )
    arrays = [phi, (M + M.T) / 2, H, R]
    for array in arrays:
        array.setflags(write=False)
    return Stage(parent, *arrays)


def _parent(k: int, value: Any, where: str) -> int:
    try:
        parent = operator.index(value)
    except TypeError:
        parent = k
    if not -1 <= parent < k or isinstance(value, bool | np.bool_):
        raise ModelError(
            f"its parent is {shown(value)}, expected -1 (a root) .. {k - 1}", "number parents before children", element=where
        )
    return parent


def _matrix(name: str, value: Any, shape: tuple[int | None, ...], where: str) -> np.ndarray:
    """A copy of `value` as float64 of that shape (None: any), all numbers finite."""
    array, fault = read(value, None)
    fits = array.ndim == len(shape) and all(want in (None, n) for want, n in zip(shape, array.shape, strict=True))
    if not fault and not fits:
        words = ", ".join("any" if n is None else str(n) for n in shape)
        fault = f"has shape {array.shape}, expected ({words}{',' if len(shape) == 1 else ''})"
    if not fault and not (np.abs(array.astype(float)) <= LARGEST).all():  # NaN is not, either
        fault = f"holds numbers that are not finite, or beyond {LARGEST:g}"
    if fault:
        raise ModelError(f"its {name} {fault}", HOW[name], element=where)
    return np.array(array, dtype=float)


HOW = {
    "transition": "give the matrix that maps the state to its part in the parent's",
    "covariance": "give a square matrix",
    "outputs": "give a matrix with one row an output; no row where nothing is measured: np.zeros((0, n))",
    "noise": "give one variance an output",
}


def _is_covariance(M: np.ndarray) -> bool:
    """Symmetric, and no combination of the states has a negative variance, but for rounding; states may differ in scale."""
    d = np.diag(M)
    s = np.sqrt(np.maximum(d, 1e-6 * max(d.max(), 0.0)))
    if not s.all():
        return not M.any()
    C = M / np.outer(s, s)
    return bool(np.abs(C - C.T).max() <= ROUNDING and np.linalg.eigvalsh(C).min() >= -ROUNDING * len(M))
