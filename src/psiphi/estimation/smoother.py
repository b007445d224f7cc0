"""Filter and smoother as operator expressions, lowered to sweeps like any other:

    z- = psi (K y + E_phi P+ eta + xi)      predicted states: E(x_k | outputs of all stages strictly outboard)
    e- = y - H z-                           innovations, white, covariance D;   e+ = D^-1 e-  residuals
    z+ = z- + G e- + P+ eta                 filtered states: the stage's own outputs among them
    lambda- = psi* (H* e+ + tau_bar* eta)   co-states;   lambda+ = E_phi* lambda-
    x = z+ + P+ lambda+                     smoothed states: E(x_k | all outputs)
    u = e+ - G* (lambda+ + eta)             Cov(y)^-1 (y - E y); the joint accelerations of a robot

They are the words of forward dynamics by `method="kalman"` (`psiphi.lowering` makes both programs). P does not depend on the
data: it is known when the smoother is made (`covariances.py`), and what runs is one inward and one outward recursion with
constant gains. The program is interpreted, on arrays with the data's batch axes: stages have states of any size, and a model is
most often used for one set of data, which does not pay for machine code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from psiphi.arguments import read
from psiphi.errors import ModelError, StateError
from psiphi.estimation.covariances import Known, covariances
from psiphi.estimation.linear import LinearTree, listed
from psiphi.estimation.swept import Symmetric
from psiphi.lowering.vectors import Lowered, Result
from psiphi.operators import Expression, Operators, vector
from psiphi.sweeps.interpreter import interpret
from psiphi.sweeps.program import Argument, Program, Site, Sweep
from psiphi.wording import shown

DOUBT = 1e-3  # of a state or its standard deviation: where rounding may move an estimate by more, the data are refused
NOTHING = 1e-9  # of the largest state: below it an estimate counts as zero


@lru_cache(maxsize=1)
def _equations() -> dict[str, tuple[Expression, str]]:
    """The fields of an `Estimate`: their expressions, and whether they are forces, motions or of the outputs."""
    s, y, xi, eta = Operators(), vector("tau"), vector("xi", "link"), vector("eta", "link")
    predicted = s.psi @ (s.K @ y + s.E_phi @ s.P_plus @ eta + xi)
    innovations = y - s.H @ predicted
    residuals = s.D.inv @ innovations
    filtered = predicted + s.G @ innovations + s.P_plus @ eta
    costates = s.psi.T @ (s.H.T @ residuals + s.tau_bar.T @ eta)
    inboard = s.E_phi.T @ costates
    return {
        "predicted": (predicted, "force"),
        "filtered": (filtered, "force"),
        "smoothed": (filtered + s.P_plus @ inboard, "force"),
        "innovations": (innovations, "joint"),
        "residuals": (residuals, "joint"),
        "costates": (costates, "motion"),
        "inboard_costates": (inboard, "motion"),
        "multipliers": (residuals - s.G.T @ inboard - s.G.T @ eta, "joint"),
    }


@dataclass(frozen=True)
class Estimate:
    """What the data say, a list entry a stage; arrays have the data's leading batch axes."""

    predicted: list[np.ndarray]
    filtered: list[np.ndarray]
    smoothed: list[np.ndarray]
    innovations: list[np.ndarray]
    residuals: list[np.ndarray]
    costates: list[np.ndarray]
    inboard_costates: list[np.ndarray]
    multipliers: list[np.ndarray]


class Smoother:
    """The filter and smoother of one model: gains and covariances now, estimates when data come.

    `predicted_covariance` P-, `filtered_covariance` P+, `smoothed_covariance` S, `innovation_covariance` D, `gains` G: a
    matrix a stage. An output without noise that other such outputs already determine is refused here, before there are data.
    """

    def __init__(self, model: LinearTree):
        if not isinstance(model, LinearTree):
            raise ModelError(
                f"{shown(model)} is no LinearTree", "LinearTree(stages), sequence(...) and of(robot, q, v).model are"
            )
        self.model = model
        self._known, shaken = covariances(model), covariances(model.shaken)
        self.program, self._shaken = _program(model, self._known), _program(model.shaken, shaken)
        own = list(zip(self._known, model.widths, strict=True))
        self.predicted_covariance = [known.P_minus for known in self._known]
        self.filtered_covariance = [known.P_plus for known in self._known]
        self.smoothed_covariance = [known.smoothed for known in self._known]
        self.innovation_covariance = [known.D[:m, :m] for known, m in own]
        self.gains = [known.G[:, :m] for known, m in own]

    def __call__(self, outputs: Sequence, inputs: Sequence | None = None, coinputs: Sequence | None = None) -> Estimate:
        """Estimates from `outputs` y, a list entry a stage (..., m); a stage that measures nothing gets an empty one.

        Known: `inputs` xi (..., n), the means of w, and `coinputs` eta (..., n): the density of the states is multiplied by
        exp(sum eta(k) . x(k)), which moves their mean as inputs xi + M phi* eta do. Both are zero by default. Data that
        contradict the model until rounding alone decides the estimate are a StateError.
        """
        model = self.model
        zero = [np.zeros(n) for n in model.sizes]
        y = _read_parts("outputs", outputs, model.widths)
        y = [part if m else np.zeros((*part.shape[:-1], 1)) for part, m in zip(y, model.widths, strict=True)]
        xi = zero if inputs is None else _read_parts("inputs", inputs, model.sizes)
        eta = zero if coinputs is None else _read_parts("coinputs", coinputs, model.sizes)
        given = _joined({"outputs": y, "inputs": xi, "coinputs": eta})
        with np.errstate(all="ignore"):  # what overflows is refused
            estimate, other = _run(self.program, model, given), _run(self._shaken, model.shaken, given)
            self._compare(estimate, other)
        return estimate

    def _compare(self, found: Estimate, shaken: Estimate) -> None:
        """Data that contradict a model of little noise may leave no digit: then the shaken model says something else."""
        states = [np.sqrt(np.maximum(np.diag(P), 0.0)) for P in self.filtered_covariance]
        widths = self.model.widths
        weights = [np.sqrt(np.abs(np.diag(known.weights)[:m])) for known, m in zip(self._known, widths, strict=True)]
        for name, spreads in {"filtered": states, "smoothed": states, "multipliers": weights}.items():
            pairs = list(zip(getattr(found, name), getattr(shaken, name), spreads, strict=True))
            largest = np.max([np.abs(x).max(-1, initial=0.0) for x, _, _ in pairs], axis=0) if pairs else 0.0
            for x, y, spread in pairs:
                sure = np.abs(x - y) <= DOUBT * (np.abs(x) + spread) + NOTHING * np.asarray(largest)[..., None]
                if not sure.all():
                    raise StateError(*self._contradiction(found))

    def _contradiction(self, found: Estimate) -> tuple[str, str]:
        """In words: the output that lies farthest from its prediction."""
        sizes = zip(found.innovations, self.innovation_covariance, strict=True)
        far = [np.nan_to_num(np.abs(e) / np.sqrt(np.diag(D)), nan=np.inf) for e, D in sizes]
        k = int(np.argmax([x.max(initial=0.0) for x in far]))
        *element, i = np.unravel_index(int(np.argmax(far[k])), far[k].shape)
        where = f" of batch element {[int(n) for n in element]}" if element else ""
        return (
            f"outputs contradict the model: output {int(i)} of stage {k}{where} is {far[k][(*element, i)]:.3g} standard "
            "deviations from what the outputs outboard say, and rounding alone decides the estimate",
            "look at the data, or give the outputs that contradict each other more noise",
        )


def _run(program: Program, model: LinearTree, given: list[np.ndarray]) -> Estimate:
    """The program on data, its results by stages."""
    tree = model.swept
    found = interpret(program, tree, *given)
    return Estimate(
        **{
            arg.name: _parts(array, *((tree.widths, model.widths) if arg.per_joint else (model.sizes, model.sizes)))
            for arg, array in zip(program.outputs, found, strict=True)
        }
    )


def _parts(array: np.ndarray, swept: Sequence[int], own: Sequence[int]) -> list[np.ndarray]:
    """The stages' parts of an array over all that is swept."""
    ends = np.cumsum(swept, dtype=int)
    return [array[..., end - n : end - n + m] for end, n, m in zip(ends.tolist(), swept, own, strict=True)]


def _program(model: LinearTree, known: Sequence[Known]) -> Program:
    """The sweeps of the equations, gains that are known put in place of the recursion that would find them anew."""
    tree, equations = model.swept, _equations()
    lowered = Lowered([Result(name, e.poly(), space) for name, (e, space) in equations.items()])
    lowered.schedule = replace(lowered.schedule, articulate=None)
    inputs = (Argument("tau", (tree.nv,), "v"), Argument("xi", (tree.nx,)), Argument("eta", (tree.nx,)))
    outputs = [
        Argument(name, (tree.nv,), "v") if space == "joint" else Argument(name, (tree.nx,))
        for name, (_, space) in equations.items()
    ]
    program = lowered.program("smoother", tree, inputs, tuple(outputs))
    kept = [{"P": Symmetric(k.P_minus.tolist()), "P_plus": Symmetric(k.P_plus.tolist()), "gain": k.gain} for k in known]

    def with_gains(step):
        def gained(site: Site) -> None:
            site.keep(**kept[site.link.index])
            step(site)

        return gained

    return replace(program, sweeps=tuple(Sweep(sweep.direction, with_gains(sweep.step)) for sweep in program.sweeps))


def _read_parts(name: str, parts, sizes: Sequence[int]) -> list[np.ndarray]:
    """One array (..., n) a stage, finite."""
    try:
        entries = listed(name, parts)
    except ModelError as error:
        raise StateError(error.cause, error.remedy) from None
    if len(entries) != len(sizes):
        raise StateError(f"{name} has {len(entries)} entries, expected one for each of {len(sizes)} stages", "give one a stage")
    arrays = []
    for k, (part, n) in enumerate(zip(entries, sizes, strict=True)):
        array, fault = read(part, (n,))
        if not fault and not np.isfinite(array).all():
            fault = "holds numbers that are not finite"
        if fault:
            missing = "; nothing measured at a stage: outputs of shape (0, n) in its model" if name == "outputs" else ""
            raise StateError(f"{name}[{k}] {fault}", f"give one number a coordinate{missing}")
        arrays.append(array.astype(float, copy=False))
    return arrays


def _joined(given: dict[str, list[np.ndarray]]) -> list[np.ndarray]:
    """Each list as one array (..., sum of n), all with the same batch axes."""
    shapes = {f"{name}[{k}]": part.shape[:-1] for name, parts in given.items() for k, part in enumerate(parts)}
    try:
        lead = np.broadcast_shapes(*shapes.values())
    except ValueError:
        each = ", ".join(f"{name} {shape}" for name, shape in {shape: (name, shape) for name, shape in shapes.items()}.values())
        raise StateError(f"the batch axes do not fit together: {each}", "make them equal, 1, or absent") from None
    return [
        np.concatenate([np.zeros((*lead, 0)), *(np.broadcast_to(a, (*lead, a.shape[-1])) for a in parts)], axis=-1)
        for parts in given.values()
    ]
