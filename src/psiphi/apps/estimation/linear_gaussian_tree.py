"""Linear Gaussian models on chains and trees.

    x(k) = sum_children phi(k, c) x(c) + w(k),   w(k) ~ N(xi(k), M(k))
    y(k) = H(k) x(k) + n(k),                     n(k) ~ N(0, R(k)), R diagonal

A robot is such a model: x is the spatial force across a joint, y its torque, M the inertia, R the rotors (docs/mathematics.md
section 12); `robot_as_filter.py` makes it. Stages are numbered like bodies, parents first: in a time series the last instant is
stage 0. Every matrix may have batch axes in front: then the tree is a batch of models, one of each.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import shown
from psiphi._util.validate import batch_axes, read_array, whole_number
from psiphi.apps.estimation.stage_links import TreeShape

LARGEST = 1e50  # the largest number of a model: beyond it products overflow
SHAKE = 5e-14  # by how much the numbers of a model are moved to see what its estimates hang on
ROUNDING = 1e-9  # how far from symmetric, and how far below zero, a covariance may be by rounding


@dataclass(frozen=True, eq=False)
class Stage:
    """One node: the transition to its parent, its process covariance M, its outputs H with noise variances R (none: zero).

    A stage without outputs, an instant at which nothing was measured, has outputs of shape (0, n). A `LinearTree` reads and
    checks the numbers, and keeps copies. Batch axes may stand in front of any of them.
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
        self.sizes = tuple(stage.covariance.shape[-1] for stage in found)
        self.widths = tuple(stage.outputs.shape[-2] for stage in found)
        self.mask: list[np.ndarray] | None = None  # what was measured, where not all was
        self.lead = _lead(self.stages)
        self._states, self._outputs = (
            [0, *np.cumsum(n).tolist()] for n in (self.sizes, self.widths)
        )

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
        k = whole_number("k", k)
        if k >= len(self.stages):
            raise StateError(f"k is {k}, and there are {len(self.stages)} stages", "count from 0")
        own = slice(self._outputs[k], self._outputs[k + 1])
        return {"q": slice(0, 0), "v": own, "x": slice(self._states[k], self._states[k + 1])}

    def seen(self, mask: Sequence[Any]) -> LinearTree:
        """The same model where not everything was measured: `mask` is a list with an entry (..., m) a stage, True where an
        output was. Masks may be of a batch: then every record has gains and covariances of its own. An output that was not seen
        is an output of zero with noise 1: its innovation is 0, its gain 0.

        >>> import numpy as np
        >>> walk = sequence([np.eye(1)], [np.eye(1)] * 2, [np.eye(1)] * 2, [[0.1]] * 2)
        >>> walk.seen([[[True], [False]], [True]]).lead
        (2,)
        """
        entries = listed("mask", mask)
        if len(entries) != len(self.stages):
            cause = f"the mask has {len(entries)} entries, expected one for each of {len(self.stages)} stages"
            raise ModelError(cause, "give an entry a stage, [] where it measures nothing")
        found, stages = [], []
        for k, (entry, stage, m) in enumerate(zip(entries, self.stages, self.widths, strict=True)):
            see = _mask(k, entry, m)
            stages.append(
                Stage(
                    stage.parent,
                    stage.transition,
                    stage.covariance,
                    np.where(see[..., :, None], stage.outputs, 0.0),
                    np.where(see, np.asarray(stage.noise), 1.0),
                )
            )
            found.append(see if self.mask is None else see & self.mask[k])
        tree = LinearTree(stages)
        tree.mask = found
        return tree

    @cached_property
    def shaken(self) -> LinearTree:
        """The same tree, every number moved by some hundred roundings: estimates that tell the two apart are refused."""
        rng = np.random.default_rng(0)

        def moved(A: np.ndarray) -> np.ndarray:
            return A * (1.0 + SHAKE * rng.choice([-1.0, 1.0], A.shape))

        stages = []
        for s, n in zip(self.stages, self.sizes, strict=True):
            scale = moved(np.ones(n))
            M = s.covariance * np.outer(scale, scale)  # a covariance again
            stages.append(
                Stage(
                    s.parent, moved(s.transition), M, moved(s.outputs), moved(np.asarray(s.noise))
                )
            )
        return LinearTree(stages)

    @cached_property
    def shape(self) -> TreeShape:
        """The tree without its numbers: what code is made for."""
        return TreeShape(self.parent, self.sizes, self.widths)

    @cached_property
    def q(self) -> np.ndarray:
        """phi and H of every stage, (..., all of them)."""
        return self._flat(lambda s, n, m: [s.transition, s.outputs if m else np.zeros((1, n))])

    @cached_property
    def own(self) -> np.ndarray:
        """M and R of every stage, (..., all of them)."""
        return self._flat(
            lambda s, n, m: [s.covariance, np.asarray(s.noise)[..., None] if m else np.ones((1, 1))]
        )

    def _flat(self, of: Any) -> np.ndarray:
        parts = [
            a for each in zip(self.stages, self.sizes, self.widths, strict=True) for a in of(*each)
        ]
        flat = [a.reshape(*a.shape[:-2], a.shape[-2] * a.shape[-1]) for a in parts]
        return np.concatenate(
            [np.broadcast_to(a, (*self.lead, a.shape[-1])) for a in flat], axis=-1
        )


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
            Stage(
                k - 1,
                steps[last - k] if k else EMPTY,
                covariances[last - k],
                outputs[last - k],
                noises[last - k],
            )
            for k in range(count)
        ]
    )


EMPTY = np.zeros((0, 0))


def listed(name: str, values: Any) -> list:
    """The entries of a list, a tuple or an array, one a stage."""
    if not isinstance(values, str | bytes | bytearray | dict | set | frozenset):
        with suppress(Exception):  # an object's own __iter__ may raise anything
            return list(values)
    raise ModelError(
        f"{name} is {shown(values)}, expected a list with one entry a stage", "give a list"
    )


def _read_stage(k: int, stage: Any, before: list[Stage]) -> Stage:
    """The stage with its numbers read, checked and copied."""
    where = f"stage {k}"
    if not isinstance(stage, Stage):
        raise ModelError(
            f"it is {shown(stage)}, expected a Stage",
            "Stage(parent, transition, covariance, ...)",
            element=where,
        )
    parent = _parent(k, stage.parent, where)
    M = _matrix("covariance", stage.covariance, (None, None), where)
    n = M.shape[-1]
    if n == 0 or M.shape[-2] != n or not _is_covariance(M):
        raise ModelError(
            f"its covariance of shape {M.shape} is not a symmetric matrix without negative variances",
            "give a covariance: square, symmetric, no eigenvalue below zero",
            element=where,
        )
    H = _matrix("outputs", stage.outputs, (None, n), where)
    phi = (
        np.zeros((0, n))
        if parent < 0
        else _matrix(
            "transition", stage.transition, (before[parent].covariance.shape[-1], n), where
        )
    )
    m = H.shape[-2]
    R = np.zeros(m) if stage.noise is None else _matrix("noise", stage.noise, (m,), where)
    if (R < 0).any():
        raise ModelError(
            f"the noise of output {int(np.argmin(R.reshape(-1, m).min(0)))} is {R.min():.3g}, expected a variance of 0 or more",
            "give variances, not standard deviations or covariances",
            element=where,
        )
    arrays = [phi, (M + M.swapaxes(-1, -2)) / 2, H, R]
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
            f"its parent is {shown(value)}, expected -1 (a root) .. {k - 1}",
            "number parents before children",
            element=where,
        )
    return parent


def _matrix(name: str, value: Any, shape: tuple[int | None, ...], where: str) -> np.ndarray:
    """A copy of `value` as float64 of that shape (None: any) behind any batch axes, all numbers finite."""
    array, fault = read_array(value, None)
    own = array.shape[-len(shape) :]
    fits = array.ndim >= len(shape) and all(
        want in (None, n) for want, n in zip(shape, own, strict=True)
    )
    if not fault and not fits:
        words = ", ".join("any" if n is None else str(n) for n in shape)
        fault = f"has shape {array.shape}, expected (..., {words})"
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
    d = np.diagonal(M, axis1=-2, axis2=-1)
    s = np.sqrt(np.maximum(d, 1e-6 * np.maximum(d.max(-1, keepdims=True), 0.0)))
    empty = np.asarray(~s.all(-1))
    if M[empty].any():
        return False
    s = np.where(empty[..., None], 1.0, s)
    C = M / (s[..., :, None] * s[..., None, :])
    even = np.abs(C - C.swapaxes(-1, -2)).max(initial=0.0) <= ROUNDING
    return bool(even and np.linalg.eigvalsh(C).min(initial=0.0) >= -ROUNDING * M.shape[-1])


def _lead(stages: Sequence[Stage]) -> tuple[int, ...]:
    """The batch axes of all numbers together."""
    shapes = {}
    for k, s in enumerate(stages):
        arrays = {
            "transition": s.transition,
            "covariance": s.covariance,
            "outputs": s.outputs,
            "noise": np.asarray(s.noise)[..., None],
        }
        shapes |= {f"{name} of stage {k}": a.shape[:-2] for name, a in arrays.items()}
    return batch_axes("", shapes, ModelError)


def _mask(k: int, entry: Any, m: int) -> np.ndarray:
    """Whether each output (..., m) of a stage was seen."""
    try:
        array = np.asarray(entry)
    except Exception:  # an object's own __array__ may raise anything
        array = np.zeros(0)
    if m == 0 and array.size == 0:
        array = array.astype(bool)
    if array.dtype != bool or array.shape[-1:] != (m,) or np.ma.is_masked(entry):
        raise ModelError(
            f"mask[{k}] is {shown(entry)}, expected True or False for each of its {m} outputs, (..., {m})",
            "~np.isnan(y) of the data is such a mask",
        )
    return array
