"""`Smoother`: covariances and gains of a model, and estimates from data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import shown
from psiphi._util.validate import batch_axes, flag, read_array
from psiphi.apps.estimation.filter_covariances import (
    StageCovariance,
    element_text,
    read_covariances,
)
from psiphi.apps.estimation.linear_gaussian_tree import LinearTree, entries_by_stage
from psiphi.apps.estimation.smoother_covariances import smoothed_covariances
from psiphi.apps.estimation.smoother_equations import smoother_equations
from psiphi.apps.estimation.stage_compilation import run

UNCERTAIN = 1e-3  # of a state or its deviation: data are refused if rounding may change it by more
ZERO = 1e-9  # of the largest state: smaller estimates count as zero


@dataclass(frozen=True)
class Estimate:
    """Estimates, one list entry per stage; arrays have the batch axes of model and data."""

    predicted: list[np.ndarray]
    filtered: list[np.ndarray]
    smoothed: list[np.ndarray]
    innovations: list[np.ndarray]
    residuals: list[np.ndarray]
    costates: list[np.ndarray]
    inboard_costates: list[np.ndarray]
    multipliers: list[np.ndarray]


class Smoother:
    """The filter and smoother of a model, or of a batch of models. Called with data: estimates.

    The covariances and gains are computed when it is made, one matrix per stage, with the batch
    axes of the model in front:

    `predicted_covariance` P-, `filtered_covariance` P+, `smoothed_covariance` S,
    `innovation_covariance` D, `gains` G, `inboard_costate_covariance` Lam+, `costate_covariance`
    Lam-, and of S2 (10.3) `multiplier_covariance` c and `multiplier_slopes` d.

    A model with an output without noise that other such outputs determine is refused. The code
    depends on the shape of the model; it is compiled at first use and stored in the cache.
    `compiled=False` interprets it, which is faster for a shape that is used once and has many
    different stages.
    """

    def __init__(self, model: LinearTree, compiled: bool = True):
        if not isinstance(model, LinearTree):
            raise ModelError(
                f"model is {shown(model)}, expected a LinearTree",
                "give LinearTree(stages), sequence(...) or of(robot, q, v).model",
            )
        self.model = model
        self.compiled = flag("compiled", compiled, "leave it out for machine code")
        self._gains, self._covariances = self._compute_covariances(model)
        self._perturbed_gains, _ = self._compute_covariances(model.perturbed)
        by_stage = list(zip(self._covariances, model.widths, strict=True))
        self.predicted_covariance = [stage.P_minus for stage, _ in by_stage]
        self.filtered_covariance = [stage.P_plus for stage, _ in by_stage]
        self.innovation_covariance = [stage.D[..., :m, :m] for stage, m in by_stage]
        self.gains = [stage.G[..., :m] for stage, m in by_stage]
        self.inboard_costate_covariance = [stage.Lam_plus for stage, _ in by_stage]
        self.multiplier_covariance = [stage.c[..., :m, :m] for stage, m in by_stage]

    def _compute_covariances(self, model: LinearTree) -> tuple[np.ndarray, list[StageCovariance]]:
        if not model.stages:
            return np.zeros(0), []
        gains, statistics = run(
            model.shape, "covariances", self.compiled, model.q, model.covariances
        )
        return gains, read_covariances(model.shape, gains, statistics)

    @cached_property
    def smoothed_covariance(self) -> list[np.ndarray]:
        """S of each stage: the covariance of its states when all outputs are known."""
        return smoothed_covariances(self.model, self.filtered_covariance)

    @property
    def costate_covariance(self) -> list[np.ndarray]:
        """Lam- = (I - G H)* Lam+ (I - G H) + H* D^-1 H of each stage, S2 (10.31)."""
        found = []
        parts = (
            self.model.stages,
            self.gains,
            self.innovation_covariance,
            self.inboard_costate_covariance,
        )
        for stage, G, D, Lam_plus in zip(*parts, strict=True):
            H = stage.outputs
            H_t = H.swapaxes(-1, -2)
            T = np.eye(Lam_plus.shape[-1]) - G @ H
            found.append(T.swapaxes(-1, -2) @ Lam_plus @ T + H_t @ np.linalg.solve(D, H))
        return found

    @property
    def multiplier_slopes(self) -> list[np.ndarray]:
        """d = G* Lam+ - c H of each stage, S2 (10.3): derivative of its multipliers by its xi."""
        parts = (
            self.model.stages,
            self.gains,
            self.multiplier_covariance,
            self.inboard_costate_covariance,
        )
        return [
            G.swapaxes(-1, -2) @ Lam_plus - c @ stage.outputs
            for stage, G, c, Lam_plus in zip(*parts, strict=True)
        ]

    def __call__(
        self,
        outputs: Sequence[Numbers],
        inputs: Sequence[Numbers] | None = None,
        coinputs: Sequence[Numbers] | None = None,
    ) -> Estimate:
        """Estimates from measurements y, one entry (..., m) per stage, [] for a stage without.

        `inputs` xi (..., n) are the means of w. `coinputs` eta (..., n) multiply the density of the
        states by exp(sum eta(k) . x(k)), which shifts their mean as inputs xi + M phi* eta do. Both
        default to zero. Outputs that the model has not `seen` are ignored. Data that contradict the
        model so much that rounding determines the estimate raise a StateError.
        """
        model = self.model
        zero = [np.zeros(n) for n in model.sizes]
        y = _read_by_stage("outputs", outputs, model.widths, model.mask)
        y = [
            part if m else np.zeros((*part.shape[:-1], 1))
            for part, m in zip(y, model.widths, strict=True)
        ]
        xi = zero if inputs is None else _read_by_stage("inputs", inputs, model.sizes)
        eta = zero if coinputs is None else _read_by_stage("coinputs", coinputs, model.sizes)
        data = _concatenate({"outputs": y, "inputs": xi, "coinputs": eta}, model.lead)
        if not model.stages:
            return Estimate(**{name: [] for name in smoother_equations()})
        found = self._run(model, self._gains, data)
        estimate = self._split_by_stage(found)
        if not self._is_certain(found, self._run(model.perturbed, self._perturbed_gains, data)):
            raise StateError(*self._contradiction(estimate))
        return estimate

    def _run(
        self, model: LinearTree, gains: np.ndarray, data: list[np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The outputs of the program: arrays (..., total of all stages)."""
        found = run(model.shape, "smoother", self.compiled, model.q, gains, *data)
        return dict(zip(smoother_equations(), found, strict=True))

    def _split_by_stage(self, found: dict[str, np.ndarray]) -> Estimate:
        lists = {}
        for name, (_, space) in smoother_equations().items():
            place, sizes = ("v", self.model.widths) if space == "joint" else ("x", self.model.sizes)
            parts = self.model.shape.parts(found[name], place)
            lists[name] = [part[..., :n] for part, n in zip(parts, sizes, strict=True)]
        return Estimate(**lists)

    def _is_certain(self, found: dict[str, np.ndarray], perturbed: dict[str, np.ndarray]) -> bool:
        """Whether the perturbed model has the same estimates.

        Data that contradict a model of little noise may leave no accurate digit.
        """
        states = np.concatenate([_deviations(P) for P in self.filtered_covariance], axis=-1)
        multipliers = np.concatenate([_deviations(x.c) for x in self._covariances], axis=-1)
        deviations = {"filtered": states, "smoothed": states, "multipliers": multipliers}
        certain = True
        with np.errstate(all="ignore"):  # an overflow gives NaN, which is not certain
            for name, deviation in deviations.items():
                x, difference = np.abs(found[name]), np.abs(found[name] - perturbed[name])
                allowed = UNCERTAIN * (x + deviation) + ZERO * x.max(-1, keepdims=True)
                certain = certain and bool((difference <= allowed).all())
        return certain

    def _contradiction(self, found: Estimate) -> tuple[str, str]:
        """Cause and remedy, for the output that is farthest from its prediction."""
        pairs = zip(found.innovations, self.innovation_covariance, strict=True)
        far = [np.nan_to_num(np.abs(e) / _deviations(D), nan=np.inf) for e, D in pairs]
        k = int(np.argmax([x.max(initial=0.0) for x in far]))
        index, i = divmod(int(np.argmax(far[k])), far[k].shape[-1])
        return (
            f"outputs contradict the model: output {i} of stage {k}"
            f"{element_text(far[k].shape[:-1], index)} is {far[k].max():.3g} standard deviations "
            "from its prediction by the outputs outboard, and rounding determines the estimate",
            "check the data, or give the outputs that contradict each other more noise",
        )


def _deviations(P: np.ndarray) -> np.ndarray:
    """Standard deviations (..., n)."""
    return np.sqrt(np.maximum(np.diagonal(P, axis1=-2, axis2=-1), 0.0))


def _read_by_stage(
    name: str, values: object, sizes: Sequence[int], mask: list[np.ndarray] | None = None
) -> list[np.ndarray]:
    """One array (..., n) per stage, finite; with a mask, finite where it is True."""
    try:
        entries = entries_by_stage(name, values)
    except ModelError as error:
        raise StateError(error.cause, error.remedy) from None
    if len(entries) != len(sizes):
        raise StateError(
            f"{name} has {len(entries)} entries, expected one for each of {len(sizes)} stages",
            "give one per stage",
        )
    arrays = []
    for k, (entry, n) in enumerate(zip(entries, sizes, strict=True)):
        array, fault = read_array(entry, (n,))
        if not fault and mask is not None:
            try:
                array = np.where(mask[k], array, 0.0)
            except ValueError:
                fault = f"has the batch axes {array.shape[:-1]}, its mask {mask[k].shape[:-1]}"
        if not fault and not np.isfinite(array).all():
            fault = "holds numbers that are not finite"
        if fault:
            missing = "; use model.seen(mask) for missing ones" if name == "outputs" else ""
            raise StateError(f"{name}[{k}] {fault}", f"give one number per coordinate{missing}")
        arrays.append(array.astype(float, copy=False))
    return arrays


def _concatenate(lists: dict[str, list[np.ndarray]], model: tuple[int, ...]) -> list[np.ndarray]:
    """Each list as one array (..., total of n), all with the same batch axes.

    `model` are the batch axes of the model, which must be compatible.
    """
    shapes = {
        f"{name}[{k}]": part.shape[:-1]
        for name, parts in lists.items()
        for k, part in enumerate(parts)
    }
    batch_axes("", shapes | {"the model": model})
    batch = np.broadcast_shapes(*shapes.values())
    return [
        np.concatenate(
            [np.zeros((*batch, 0)), *(np.broadcast_to(a, (*batch, a.shape[-1])) for a in parts)],
            axis=-1,
        )
        for parts in lists.values()
    ]
