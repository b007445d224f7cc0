"""Filter and smoother as operator expressions, compiled like any other:

    z = psi (K y + xi)          predicted states z(k) = E(x_k | outputs of all stages strictly outboard)
    e = y - H z                 innovations, white, covariance D
    lambda = psi* H* D^-1 e     co-states;   x = z + P lambda  smoothed states
    S = P - P Lam P             smoothed covariance, Lam = Om(k): the compliance recursion

They are the words of forward dynamics (`psiphi.lowering` runs both): P does not depend on the data, so it becomes numbers
when the kernel is traced, and what runs is one inward and one outward recursion with constant gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from psiphi.errors import SingularError, StateError
from psiphi.estimation.linear import LinearTree, Symmetric
from psiphi.lowering.local import LOCAL, articulate
from psiphi.lowering.vectors import Lowered, Result
from psiphi.sweeps.drive import drive
from psiphi.sweeps.interpreter import interpret
from psiphi.sweeps.program import BASE_TO_TIP, TIP_TO_BASE, Argument, Program, Site, Sweep

Y, XI = "vec:tau@joint", "vec:xi@link"
ONE = Fraction(1)
INNOVATION = {(Y,): ONE, ("H", "psi", "K", Y): -ONE, ("H", "psi", XI): -ONE}
PREDICTED = {("psi", "K", Y): ONE, ("psi", XI): ONE}


def _times(prefix: tuple[str, ...], poly: dict) -> dict:
    return {prefix + word: c for word, c in poly.items()}


COSTATE = _times(("psi*", "H*", "D_inv"), INNOVATION)
SMOOTHED = {**PREDICTED, **_times(("P",), COSTATE)}
FILTERED = {**PREDICTED, **_times(("G",), INNOVATION)}


@dataclass(frozen=True)
class Estimate:
    """What the data say, a list entry a stage; arrays have the data's leading batch axes."""

    predicted: list[np.ndarray]
    filtered: list[np.ndarray]
    smoothed: list[np.ndarray]
    innovations: list[np.ndarray]


class Smoother:
    """The filter and smoother of one model: gains and covariances now, estimates when data come.

    `predicted_covariance`, `filtered_covariance`, `smoothed_covariance`, `innovation_covariance`: a matrix a stage.
    """

    def __init__(self, model: LinearTree):
        self.model = model
        self._covariances()
        names = {"predicted": PREDICTED, "filtered": FILTERED, "smoothed": SMOOTHED}
        self._lowered = Lowered(
            [Result(name, poly, "force") for name, poly in names.items()] + [Result("e", INNOVATION, "joint")]
        )
        inputs = (Argument("tau", (model.nv,), "v"), Argument("xi", (model.nx,)))
        outputs = (*(Argument(name, (model.nx,)) for name in names), Argument("e", (model.nv,), "v"))
        self.program = self._lowered.program("smoother", model, inputs, outputs)

    def __call__(self, outputs, inputs=None) -> Estimate:
        """Estimates from `outputs`, a list entry a stage (..., m), and known `inputs` xi (..., n), zero by default."""
        y = self._joined("outputs", outputs, self.model.widths)
        zero = [np.zeros(n) for n in self.model.sizes]
        xi = self._joined("inputs", zero if inputs is None else inputs, self.model.sizes)
        z, f, x, e = interpret(self.program, self.model, y, xi)
        z, f, x = (self._parts(array, self.model.sizes) for array in (z, f, x))
        return Estimate(z, f, x, self._parts(e, self.model.widths))

    def _joined(self, name: str, parts, sizes) -> np.ndarray:
        if len(parts) != len(sizes):
            raise StateError(
                f"{name} has {len(parts)} entries, expected one for each of {len(sizes)} stages", "give one a stage"
            )
        arrays = [np.asarray(part, dtype=float) for part in parts]
        for k, (array, n) in enumerate(zip(arrays, sizes, strict=True)):
            if array.ndim == 0 or array.shape[-1] != n:
                raise StateError(f"{name}[{k}] has shape {array.shape}, expected (..., {n})", "one number a coordinate")
        lead = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
        return np.concatenate([np.broadcast_to(a, (*lead, a.shape[-1])) for a in arrays], axis=-1)

    @staticmethod
    def _parts(array: np.ndarray, sizes) -> list[np.ndarray]:
        return np.split(array, np.cumsum(sizes)[:-1], axis=-1)

    def _covariances(self) -> None:
        """One inward sweep for P, one outward for Lam, on numbers."""
        found: dict[int, dict[str, Any]] = {}

        def inward(site: Site) -> None:
            articulate(site)
            found[site.link.index] = {"P": site.kept["P"].rows, "D": site.kept["gain"].D, "G": site.kept["gain"].G}

        def outward(site: Site) -> None:
            site.keep(Lam=compliance(site, site.parent.get("Lam")))
            found[site.link.index]["Lam"] = site.kept["Lam"].rows

        sweeps = (Sweep(TIP_TO_BASE, inward), Sweep(BASE_TO_TIP, outward))
        try:
            drive(Program("covariances", (), (), sweeps), self.model, {})
        except ZeroDivisionError as error:
            raise SingularError("an innovation has no variance: an output is known beforehand", "give it noise") from error
        stages = [{name: np.array(value, dtype=float) for name, value in found[k].items()} for k in range(len(found))]
        self.predicted_covariance = [s["P"] for s in stages]
        self.innovation_covariance = [s["D"] for s in stages]
        self.filtered_covariance = [s["P"] - s["G"] @ s["D"] @ s["G"].T for s in stages]
        self.smoothed_covariance = [s["P"] - s["P"] @ s["Lam"] @ s["P"] for s in stages]


def compliance(site: Site, above: Symmetric | None) -> Symmetric:
    """Lam(k) = H* D^-1 H + psi*(p,k) Lam(p) psi(p,k)."""
    n = site.link.size
    unit = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
    local = Symmetric([LOCAL["H*"](site, LOCAL["D_inv"](site, LOCAL["H"](site, e))) for e in unit])
    if above is None:
        return local
    lam = site.path[0].coinertia(above)
    columns = [LOCAL["tau_bar*"](site, lam @ LOCAL["tau_bar"](site, e)) for e in unit]
    return Symmetric([list(row) for row in zip(*columns, strict=True)]) + local
