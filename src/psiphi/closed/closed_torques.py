"""Inverse dynamics of a closed chain as a function with derivatives: (q, v, a) -> tau, zero where there is no motor.

    T = M a + C v + g        Jp* λ = T_p, λ of least norm: λ = Jp (Jp* Jp)⁻¹ T_p        tau = T - Jc* λ

Jp are the columns of Jc of coordinates without motors (`sharing.py`). The factors of Jp* Jp are on the tape with all the rest,
and so have derivatives of every order, also where rows of Jc follow from others: only what no motor drives must be held in
every direction. Where it is not, and where `a` does not keep the constraints, there is no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psiphi.closed import sharing
from psiphi.closed.circuits import motion_rows
from psiphi.closed.closed_call import ClosedCall, Steps, TracedCall
from psiphi.closed.coupling import Algebra
from psiphi.closed.driving import at_motors, carried, torques_of
from psiphi.closed.implicit import a
from psiphi.closed.singular import STRAIN
from psiphi.closed.wiring import Circuit, StagePlaces, arguments
from psiphi.errors import SingularError, StateError
from psiphi.functions.differentiable import Differentiable
from psiphi.runtime.launching import looked_at
from psiphi.spatial import small
from psiphi.spatial.choices import less
from psiphi.spatial.screws import dot
from psiphi.sweeps.program import Argument

TORQUES = "inverse_dynamics"


def shared_torques(algebra: Algebra, idle: tuple[int, ...], judged: bool = False) -> Circuit:
    """q, v, a -> tau; NaN where the coordinates `idle`, which nothing drives, are not all held; where `judged`, also where `a`
    does not keep the constraints."""
    nv = algebra.closure.model.nv

    def share(places: StagePlaces) -> StagePlaces:
        Jc, T, sound = places["Jc"], places["T"], 1.0
        if judged:
            kept = [dot(row, places["a"]) for row in Jc]
            moving = places["c"].bias[: len(Jc) - len(algebra.closure.follows)]  # Jc a among it, but of rows that follow
            left = [*moving, *kept[len(moving) :]]
            good = 1.0 - sharing.opens(left, kept, [x - y for x, y in zip(left, kept, strict=True)])
            sound = good / good  # 1, or 0 / 0
            T = [x * sound for x in T]
        lam, held = carried(Jc, T, idle, _regular)
        tau = at_motors(Jc, T, lam, idle)
        for i in idle:
            tau[i] = sound * held - 1.0
        return {"tau": tau}

    stages = {"T": torques_of(algebra, a), **motion_rows(algebra), "share": share}
    outputs, name = (Argument("tau", (nv,), "v"),), f"closed torques {idle}{', judged' * judged}"
    return Circuit(name, "T - Jc* Jp (Jp* Jp)^-1 T_p", arguments(algebra, "q", "v", "a"), outputs, algebra, stages, {})


def _regular(A: list, b: list) -> tuple[list, Any]:
    """x with A x = b, and 1; NaN both where A has no inverse."""
    factors = small.factor(A)
    good = less(small.strain(A, factors[1]), STRAIN)
    return small.solve(factors, [x * (good / good) for x in b]), good / good


class ClosedTorques(TracedCall):
    """tau (q, v, a) of a closed system, or a derivative of it."""

    def __init__(self, system: Any, steps: Steps = ()):
        super().__init__(TORQUES, system, steps)

    def traced(self, judged: bool = False) -> Differentiable:
        system, idle = self.system, tuple(int(i) for i in self.system.idle)
        make = lambda: shared_torques(system.algebra, idle, judged)  # noqa: E731
        return system._function((TORQUES, idle, judged), make, Differentiable)

    def on_cards(self, values: Sequence[Any]) -> Any:
        if looked_at(self.name, self.inputs, values)[0] != "d":
            cause = f"{self.name}: float32 does not tell whether a motion keeps the constraints"
            raise StateError(cause, "give float64")
        return self.differentiated(self.traced(judged=True))(*values[:3], *self.system.robot._more, *values[3:])

    def taking(self, tau: tuple[int, ...]) -> ClosedCall:
        return self

    def derived(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        return ClosedTorques(self.system, (*self.steps, (kind, names)))

    def answers(self, values: Sequence[Any]) -> list[np.ndarray]:
        system, (arrays, lead) = self.system, self.arrays(values)
        lead = system._batch(lead)
        q, v, wanted = system._state(q=arrays[0], v=arrays[1], a=arrays[2])
        wrong = np.broadcast_to(sharing.broken(system, q, v, wanted, system.constraint_jacobian(q), False), lead)
        found = system._run(self.code, (*arrays[:3], *system.robot._more, *arrays[3:]))
        results = [np.array(x) for x in (found if isinstance(found, tuple) else (found,))]
        if not lead and not all(np.isfinite(x).all() for x in results) and all(np.isfinite(x).all() for x in arrays):
            cause = f"{self.name}: what no motor drives is not held in every direction here"
            raise SingularError(cause, "cell.inverse_dynamics(q, v, a) answers where this motion needs no force there")
        for x in results:
            x[wrong] = np.nan
        return results
