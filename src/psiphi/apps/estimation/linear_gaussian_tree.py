"""Linear Gaussian models on chains and trees.

    x(k) = sum_children phi(k, c) x(c) + w(k),   w(k) ~ N(xi(k), M(k))
    y(k) = H(k) x(k) + n(k),                     n(k) ~ N(0, R(k))

A robot is such a model: x is the spatial force across a joint, y its torque, M the inertia, R the
rotor inertias (docs/mathematics.md section 12); `robot_as_filter.py` makes it. Stages are numbered
like bodies, parents first: in a time series the last instant is stage 0. Every matrix may have
leading batch axes; the tree is then a batch of models. R may be given as a vector of variances,
which has no batch axes: an array of more axes holds covariance matrices.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.deprecation import RenamedMember
from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import shown
from psiphi._util.validate import batch_axes, read_array, whole_number
from psiphi.apps.estimation.stage_links import TreeShape

LARGEST = 1e50  # largest number of a model: products of larger ones overflow
PERTURBATION = 5e-14  # relative change of the numbers of a perturbed model
ROUNDING = 1e-9  # how far a covariance may be from symmetric and positive semidefinite


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage: parent, transition to it, process covariance M, outputs H, noise R.

    `noise` is the covariance of the measurement noise (m, m), or the variances (m,) of independent
    noises; it defaults to zero. A stage without measurements has outputs of shape (0, n). Any of
    the matrices may have leading batch axes: noise (..., m, m), not (..., m). A `LinearTree` checks
    and copies them.
    """

    parent: int
    transition: np.ndarray  # (size of the parent, size of the stage); ignored at a root
    covariance: np.ndarray
    outputs: np.ndarray
    noise: np.ndarray | None = None


class LinearTree:
    """Stages in order, `parent[k] < k` (-1: a root), checked.

    >>> import numpy as np
    >>> walk = sequence([np.eye(1)], [np.eye(1), np.eye(1)], [np.eye(1), np.eye(1)])
    >>> walk.sizes
    (1, 1)
    """

    def __init__(self, stages: Sequence[Stage]):
        checked: list[Stage] = []
        for k, stage in enumerate(entries_by_stage("stages", stages)):
            checked.append(_read_stage(k, stage, checked))
        self.stages = tuple(checked)
        self.parent = tuple(stage.parent for stage in checked)
        self.sizes = tuple(stage.covariance.shape[-1] for stage in checked)
        self.widths = tuple(stage.outputs.shape[-2] for stage in checked)
        self.mask: list[np.ndarray] | None = None  # which outputs were measured; None: all
        self.lead = _batch_axes(self.stages)
        self._states, self._outputs = (
            [0, *np.cumsum(n).tolist()] for n in (self.sizes, self.widths)
        )

    @property
    def nv(self) -> int:
        """Number of outputs of all stages."""
        return int(self._outputs[-1])

    @property
    def nx(self) -> int:
        """Number of states of all stages."""
        return int(self._states[-1])

    def slices(self, k: int) -> dict[str, slice]:
        """The slices of stage k in arrays over all outputs ("v") and over all states ("x")."""
        k = whole_number("k", k)
        if k >= len(self.stages):
            raise StateError(f"k is {k}, and there are {len(self.stages)} stages", "count from 0")
        outputs = slice(self._outputs[k], self._outputs[k + 1])
        states = slice(self._states[k], self._states[k + 1])
        return {"q": slice(0, 0), "v": outputs, "x": states}

    def seen(self, mask: Sequence[object]) -> LinearTree:
        """The same model with missing measurements.

        `mask` has one entry (..., m) per stage, True where an output was measured. Masks may have
        batch axes: each record then has its own gains and covariances. A missing output is replaced
        by an output of zero with noise 1, whose innovation and gain are 0.

        >>> import numpy as np
        >>> walk = sequence([np.eye(1)], [np.eye(1)] * 2, [np.eye(1)] * 2, [[0.1]] * 2)
        >>> walk.seen([[[True], [False]], [True]]).lead
        (2,)
        """
        entries = entries_by_stage("mask", mask)
        if len(entries) != len(self.stages):
            raise ModelError(
                f"the mask has {len(entries)} entries, expected one for each of "
                f"{len(self.stages)} stages",
                "give one entry per stage, [] for a stage without measurements",
            )
        masks, stages = [], []
        for k, (entry, stage, m) in enumerate(zip(entries, self.stages, self.widths, strict=True)):
            seen = _read_mask(k, entry, m)
            outputs = np.where(seen[..., :, None], stage.outputs, 0.0)
            noise = np.where(
                seen[..., :, None] & seen[..., None, :], noise_covariance(stage), np.eye(m)
            )
            stages.append(Stage(stage.parent, stage.transition, stage.covariance, outputs, noise))
            masks.append(seen if self.mask is None else seen & self.mask[k])
        tree = LinearTree(stages)
        tree.mask = masks
        return tree

    @cached_property
    def perturbed(self) -> LinearTree:
        """The same tree with every number changed by some hundred roundings.

        Data are refused if the estimates of both models differ.
        """
        rng = np.random.default_rng(0)

        def perturb(A: np.ndarray) -> np.ndarray:
            return A * (1.0 + PERTURBATION * rng.choice([-1.0, 1.0], A.shape))

        stages = []
        for s, n, m in zip(self.stages, self.sizes, self.widths, strict=True):
            of_M, of_R = perturb(np.ones(n)), perturb(np.ones(m))
            M = s.covariance * np.outer(of_M, of_M)  # still a covariance
            R = noise_covariance(s) * np.outer(of_R, of_R)
            stages.append(Stage(s.parent, perturb(s.transition), M, perturb(s.outputs), R))
        return LinearTree(stages)

    @cached_property
    def shape(self) -> TreeShape:
        """Parents and sizes, without numbers: all that code depends on."""
        return TreeShape(self.parent, self.sizes, self.widths)

    @cached_property
    def q(self) -> np.ndarray:
        """phi and H of all stages, (..., total)."""
        return self._flat(lambda s, n, m: [s.transition, s.outputs if m else np.zeros((1, n))])

    own, shaken = RenamedMember("covariances"), RenamedMember("perturbed")

    @cached_property
    def covariances(self) -> np.ndarray:
        """M and R of all stages, (..., total)."""
        return self._flat(
            lambda s, n, m: [s.covariance, noise_covariance(s) if m else np.ones((1, 1))]
        )

    def _flat(self, matrices: Callable[[Stage, int, int], list[np.ndarray]]) -> np.ndarray:
        """The matrices of every stage, which has n states and m outputs, as one vector."""
        by_stage = zip(self.stages, self.sizes, self.widths, strict=True)
        parts = [A for stage, n, m in by_stage for A in matrices(stage, n, m)]
        flat = [A.reshape(*A.shape[:-2], A.shape[-2] * A.shape[-1]) for A in parts]
        return np.concatenate(
            [np.broadcast_to(a, (*self.lead, a.shape[-1])) for a in flat], axis=-1
        )


def sequence(
    transitions: Sequence[Numbers],
    covariances: Sequence[Numbers],
    outputs: Sequence[Numbers],
    noise: Sequence[Numbers] | None = None,
) -> LinearTree:
    """A time series: x(t+1) = transitions[t] x(t) + w(t+1). Stage 0 is the last instant.

    Lists are in the order of time. An instant without measurements has outputs of shape (0, n).
    """
    lists = {"transitions": transitions, "covariances": covariances, "outputs": outputs}
    phis, Ms, Hs = (entries_by_stage(name, values) for name, values in lists.items())
    count = len(Ms)
    Rs = [None] * count if noise is None else entries_by_stage("noise", noise)
    if len(phis) != max(count - 1, 0) or len(Hs) != count or len(Rs) != count:
        raise ModelError(
            f"{count} covariances come with {len(phis)} transitions, {len(Hs)} outputs and "
            f"{len(Rs)} noises",
            f"give {max(count - 1, 0)} transitions and {count} outputs (and noises)",
        )
    last = count - 1
    return LinearTree(
        [
            Stage(k - 1, phis[last - k] if k else EMPTY, Ms[last - k], Hs[last - k], Rs[last - k])
            for k in range(count)
        ]
    )


EMPTY = np.zeros((0, 0))


def entries_by_stage(name: str, values: object) -> list:
    """The entries of a list, a tuple or an array, one per stage."""
    if not isinstance(values, str | bytes | bytearray | dict | set | frozenset):
        with suppress(Exception):  # a foreign __iter__ may raise anything
            return list(values)  # type: ignore[call-overload]
    raise ModelError(
        f"{name} is {shown(values)}, expected a list with one entry per stage", "give a list"
    )


def _read_stage(k: int, stage: object, before: list[Stage]) -> Stage:
    """The stage with its arrays checked and copied."""
    where = f"stage {k}"
    if not isinstance(stage, Stage):
        raise ModelError(
            f"it is {shown(stage)}, expected a Stage",
            "Stage(parent, transition, covariance, ...)",
            element=where,
        )
    parent = _read_parent(k, stage.parent, where)
    M = _read_matrix("covariance", stage.covariance, (None, None), where)
    n = M.shape[-1]
    if n == 0 or M.shape[-2] != n or not _is_covariance(M):
        raise ModelError(
            f"its covariance of shape {M.shape} is not symmetric or has negative variances",
            "give a covariance: square, symmetric, no eigenvalue below zero",
            element=where,
        )
    H = _read_matrix("outputs", stage.outputs, (None, n), where)
    phi = np.zeros((0, n))
    if parent >= 0:
        shape = (before[parent].covariance.shape[-1], n)
        phi = _read_matrix("transition", stage.transition, shape, where)
    R = _read_noise(stage.noise, H.shape[-2], where)
    arrays = [phi, (M + M.swapaxes(-1, -2)) / 2, H, R]
    for array in arrays:
        array.setflags(write=False)
    return Stage(parent, *arrays)


def _read_parent(k: int, value: object, where: str) -> int:
    try:
        parent = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        parent = k
    if not -1 <= parent < k or isinstance(value, bool | np.bool_):
        raise ModelError(
            f"its parent is {shown(value)}, expected -1 (a root) .. {k - 1}",
            "number parents before children",
            element=where,
        )
    return parent


def noise_covariance(stage: Stage) -> np.ndarray:
    """R (..., m, m) of a checked stage."""
    R = np.asarray(stage.noise)
    return np.diag(R) if R.ndim == 1 else R


def _read_noise(value: object, m: int, where: str) -> np.ndarray:
    """Variances (m,) or covariances (..., m, m), checked and copied."""
    if value is None:
        return np.zeros(m)
    R = _read_matrix("noise", value, (m,), where)
    variances = R if R.ndim == 1 else np.diagonal(R, axis1=-2, axis2=-1)
    if R.ndim > 1 and R.shape[-2] != m:
        warnings.warn(
            f"{where}: noise of shape {R.shape} is read as a batch of {m} variances; write it as "
            f"covariances (..., {m}, {m}): noise[..., None] * np.eye({m})",
            DeprecationWarning,
            stacklevel=5,
        )
        R, variances = R[..., None] * np.eye(m), R
    if (variances < 0).any():
        i = int(np.argmin(variances.reshape(-1, m).min(0)))
        raise ModelError(
            f"the noise of output {i} is {variances.min():.3g}, expected a variance of 0 or more",
            "give variances or covariances, not standard deviations",
            element=where,
        )
    if R.ndim == 1:
        return R
    if m and not _is_covariance(R):
        raise ModelError(
            f"its noise of shape {R.shape} is read as covariances of {m} outputs, and is not "
            "symmetric or has negative variances",
            f"give one variance per output ({m},) or symmetric matrices (..., {m}, {m}); a batch "
            f"of variances is noise[..., None] * np.eye({m})",
            element=where,
        )
    return (R + R.swapaxes(-1, -2)) / 2


def _read_matrix(name: str, value: object, shape: tuple[int | None, ...], where: str) -> np.ndarray:
    """A float64 copy of `value`, finite, (..., *shape); None in `shape` is any size."""
    array, fault = read_array(value, None)
    core = array.shape[-len(shape) :]
    fits = array.ndim >= len(shape) and all(
        want in (None, n) for want, n in zip(shape, core, strict=True)
    )
    if not fault and not fits:
        sizes = ", ".join("any" if n is None else str(n) for n in shape)
        fault = f"has shape {array.shape}, expected (..., {sizes})"
    if not fault and not (np.abs(array.astype(float)) <= LARGEST).all():  # also false for NaN
        fault = f"holds numbers that are not finite, or beyond {LARGEST:g}"
    if fault:
        raise ModelError(f"its {name} {fault}", REMEDIES[name], element=where)
    return np.array(array, dtype=float)


REMEDIES = {
    "transition": "give the matrix that maps the state to its part in the parent's",
    "covariance": "give a square matrix",
    "outputs": "give a matrix with one row per output; np.zeros((0, n)) if nothing is measured",
    "noise": "give one variance per output, or a covariance matrix",
}


def _is_covariance(M: np.ndarray) -> bool:
    """Whether M is symmetric and positive semidefinite up to rounding; scales may differ."""
    d = np.diagonal(M, axis1=-2, axis2=-1)
    s = np.sqrt(np.maximum(d, 1e-6 * np.maximum(d.max(-1, keepdims=True), 0.0)))
    zero = np.asarray(~s.all(-1))
    if M[zero].any():
        return False
    s = np.where(zero[..., None], 1.0, s)
    C = M / (s[..., :, None] * s[..., None, :])
    symmetric = np.abs(C - C.swapaxes(-1, -2)).max(initial=0.0) <= ROUNDING
    return bool(symmetric and np.linalg.eigvalsh(C).min(initial=0.0) >= -ROUNDING * M.shape[-1])


def _batch_axes(stages: Sequence[Stage]) -> tuple[int, ...]:
    """The batch axes of all arrays, broadcast."""
    shapes = {}
    for k, s in enumerate(stages):
        arrays = {
            "transition": s.transition,
            "covariance": s.covariance,
            "outputs": s.outputs,
            "noise": noise_covariance(s),
        }
        shapes |= {f"{name} of stage {k}": A.shape[:-2] for name, A in arrays.items()}
    return batch_axes("", shapes, ModelError)


def _read_mask(k: int, entry: object, m: int) -> np.ndarray:
    """Whether each output (..., m) of a stage was measured."""
    try:
        array = np.asarray(entry)
    except Exception:  # a foreign __array__ may raise anything
        array = np.zeros(0)
    if m == 0 and array.size == 0:
        array = array.astype(bool)
    if array.dtype != bool or array.shape[-1:] != (m,) or np.ma.is_masked(entry):
        raise ModelError(
            f"mask[{k}] is {shown(entry)}, expected True or False for each of its {m} outputs, "
            f"(..., {m})",
            "give a mask like ~np.isnan(y) of the data",
        )
    return array
