"""The filter and smoother of a model: gains and covariances when it is made, estimates when data come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import shown
from psiphi._util.validate import batch_axes, flag, read_array
from psiphi.apps.estimation.filter_covariances import StageCovariance, element_of, read_known
from psiphi.apps.estimation.linear_gaussian_tree import LinearTree, listed
from psiphi.apps.estimation.smoother_covariances import smoothed_covariances
from psiphi.apps.estimation.smoother_equations import smoother_equations
from psiphi.apps.estimation.stage_compilation import run

DOUBT = 1e-3  # of a state or its standard deviation: where rounding may move an estimate by more, the data are refused
NOTHING = 1e-9  # of the largest state: below it an estimate counts as zero


@dataclass(frozen=True)
class Estimate:
    """What the data say, a list entry a stage; arrays have the leading batch axes of model and data."""

    predicted: list[np.ndarray]
    filtered: list[np.ndarray]
    smoothed: list[np.ndarray]
    innovations: list[np.ndarray]
    residuals: list[np.ndarray]
    costates: list[np.ndarray]
    inboard_costates: list[np.ndarray]
    multipliers: list[np.ndarray]


class Smoother:
    """The filter and smoother of one model, or of a batch of models: gains and covariances now, estimates when data come.

    `predicted_covariance` P-, `filtered_covariance` P+, `smoothed_covariance` S, `innovation_covariance` D, `gains` G: a
    matrix a stage, the model's batch axes in front; `inboard_costate_covariance` Lam+, `costate_covariance` Lam-, and c and d
    of S2 (10.3): `multiplier_covariance`, and `multiplier_slopes`, how a stage's multipliers follow its own inputs. An output
    without noise that other such outputs already determine is
    refused here, before there are data. Code is made for the model's shape at the first use and kept in the cache;
    `compiled=False` makes none: for a shape that is used once, where its stages are many and all different.
    """

    def __init__(self, model: LinearTree, compiled: bool = True):
        if not isinstance(model, LinearTree):
            raise ModelError(
                f"{shown(model)} is no LinearTree",
                "LinearTree(stages), sequence(...) and of(robot, q, v).model are",
            )
        self.model, self.compiled = (
            model,
            flag("compiled", compiled, "leave it out for machine code"),
        )
        self._gains, self._known = self._learn(model)
        self._shaken, _ = self._learn(model.shaken)
        own = list(zip(self._known, model.widths, strict=True))
        self.predicted_covariance = [known.P_minus for known in self._known]
        self.filtered_covariance = [known.P_plus for known in self._known]
        self.innovation_covariance = [known.D[..., :m, :m] for known, m in own]
        self.gains = [known.G[..., :m] for known, m in own]
        self.inboard_costate_covariance = [known.inside for known in self._known]
        self.multiplier_covariance = [known.weights[..., :m, :m] for known, m in own]

    def _learn(self, model: LinearTree) -> tuple[np.ndarray, list[StageCovariance]]:
        if not model.stages:
            return np.zeros(0), []
        gains, more = run(model.shape, "covariances", self.compiled, model.q, model.own)
        return gains, read_known(model.shape, gains, more)

    @cached_property
    def smoothed_covariance(self) -> list[np.ndarray]:
        """S of each stage: what is unknown of its states when all outputs are known."""
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
        for stage, G, D, inside in zip(*parts, strict=True):
            H = stage.outputs
            T = np.eye(inside.shape[-1]) - G @ H
            found.append(
                T.swapaxes(-1, -2) @ inside @ T + H.swapaxes(-1, -2) @ np.linalg.solve(D, H)
            )
        return found

    @property
    def multiplier_slopes(self) -> list[np.ndarray]:
        """d = G* Lam+ - c H of each stage, S2 (10.3): by how much its multipliers change with its inputs xi."""
        parts = zip(
            self.model.stages,
            self.gains,
            self.multiplier_covariance,
            self.inboard_costate_covariance,
            strict=True,
        )
        return [G.swapaxes(-1, -2) @ inside - c @ stage.outputs for stage, G, c, inside in parts]

    def __call__(
        self, outputs: Sequence, inputs: Sequence | None = None, coinputs: Sequence | None = None
    ) -> Estimate:
        """Estimates from `outputs` y, a list entry a stage (..., m); a stage that measures nothing gets an empty one.

        Known: `inputs` xi (..., n), the means of w, and `coinputs` eta (..., n): the density of the states is multiplied by
        exp(sum eta(k) . x(k)), which moves their mean as inputs xi + M phi* eta do. Both are zero by default. Where the model
        has not `seen` an output its entry may be anything. Data that contradict the model until rounding alone decides the
        estimate are a StateError.
        """
        model = self.model
        zero = [np.zeros(n) for n in model.sizes]
        y = _read_parts("outputs", outputs, model.widths, model.mask)
        y = [
            part if m else np.zeros((*part.shape[:-1], 1))
            for part, m in zip(y, model.widths, strict=True)
        ]
        xi = zero if inputs is None else _read_parts("inputs", inputs, model.sizes)
        eta = zero if coinputs is None else _read_parts("coinputs", coinputs, model.sizes)
        given = _joined({"outputs": y, "inputs": xi, "coinputs": eta}, model.lead)
        if not model.stages:
            return Estimate(**{name: [] for name in smoother_equations()})
        found = self._run(model, self._gains, given)
        estimate = self._by_stages(found)
        if not self._sure(found, self._run(model.shaken, self._shaken, given)):
            raise StateError(*self._contradiction(estimate))
        return estimate

    def _run(
        self, model: LinearTree, gains: np.ndarray, given: list[np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The program on data: arrays (..., all stages' parts)."""
        found = run(model.shape, "smoother", self.compiled, model.q, gains, *given)
        return dict(zip(smoother_equations(), found, strict=True))

    def _by_stages(self, found: dict[str, np.ndarray]) -> Estimate:
        lists = {}
        for name, (_, space) in smoother_equations().items():
            place, own = ("v", self.model.widths) if space == "joint" else ("x", self.model.sizes)
            parts = self.model.shape.parts(found[name], place)
            lists[name] = [part[..., :m] for part, m in zip(parts, own, strict=True)]
        return Estimate(**lists)

    def _sure(self, found: dict[str, np.ndarray], shaken: dict[str, np.ndarray]) -> bool:
        """Data that contradict a model of little noise may leave no digit: then the shaken model says something else."""
        states = np.concatenate([_spread(P) for P in self.filtered_covariance], axis=-1)
        weights = np.concatenate([_spread(known.weights) for known in self._known], axis=-1)
        sure = True
        with np.errstate(all="ignore"):  # what overflowed differs
            for name, spread in {
                "filtered": states,
                "smoothed": states,
                "multipliers": weights,
            }.items():
                x, y = np.abs(found[name]), np.abs(found[name] - shaken[name])
                sure = sure and bool(
                    (y <= DOUBT * (x + spread) + NOTHING * x.max(-1, keepdims=True)).all()
                )
        return sure

    def _contradiction(self, found: Estimate) -> tuple[str, str]:
        """In words: the output that lies farthest from its prediction."""
        sizes = zip(found.innovations, self.innovation_covariance, strict=True)
        far = [np.nan_to_num(np.abs(e) / _spread(D), nan=np.inf) for e, D in sizes]
        k = int(np.argmax([x.max(initial=0.0) for x in far]))
        at, i = divmod(int(np.argmax(far[k])), far[k].shape[-1])
        return (
            f"outputs contradict the model: output {i} of stage {k}{element_of(far[k].shape[:-1], at)} is "
            f"{far[k].max():.3g} standard deviations from what the outputs outboard say, and rounding alone decides the "
            "estimate",
            "look at the data, or give the outputs that contradict each other more noise",
        )


def _spread(P: np.ndarray) -> np.ndarray:
    """Standard deviations (..., n)."""
    return np.sqrt(np.maximum(np.diagonal(P, axis1=-2, axis2=-1), 0.0))


def _read_parts(
    name: str, parts, sizes: Sequence[int], seen: list[np.ndarray] | None = None
) -> list[np.ndarray]:
    """One array (..., n) a stage, finite where it was seen."""
    try:
        entries = listed(name, parts)
    except ModelError as error:
        raise StateError(error.cause, error.remedy) from None
    if len(entries) != len(sizes):
        raise StateError(
            f"{name} has {len(entries)} entries, expected one for each of {len(sizes)} stages",
            "give one a stage",
        )
    arrays = []
    for k, (part, n) in enumerate(zip(entries, sizes, strict=True)):
        array, fault = read_array(part, (n,))
        if not fault and seen is not None:
            try:
                array = np.where(seen[k], array, 0.0)
            except ValueError:
                fault = f"has the batch axes {array.shape[:-1]}, what was seen of it {seen[k].shape[:-1]}"
        if not fault and not np.isfinite(array).all():
            fault = "holds numbers that are not finite"
        if fault:
            missing = (
                "; what was not measured: model.seen(...) says so" if name == "outputs" else ""
            )
            raise StateError(f"{name}[{k}] {fault}", f"give one number a coordinate{missing}")
        arrays.append(array.astype(float, copy=False))
    return arrays


def _joined(given: dict[str, list[np.ndarray]], model: tuple[int, ...]) -> list[np.ndarray]:
    """Each list as one array (..., sum of n), all with the same batch axes, which fit the model's."""
    shapes = {
        f"{name}[{k}]": part.shape[:-1]
        for name, parts in given.items()
        for k, part in enumerate(parts)
    }
    batch_axes("", shapes | {"the model": model})
    lead = np.broadcast_shapes(*shapes.values())
    return [
        np.concatenate(
            [np.zeros((*lead, 0)), *(np.broadcast_to(a, (*lead, a.shape[-1])) for a in parts)],
            axis=-1,
        )
        for parts in given.values()
    ]
