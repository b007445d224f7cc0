"""Inverse dynamics of a closed chain as a function with derivatives: (q, v, a) -> tau, zero where there is no motor.

    T = M a + C v + g        Jp* λ = T_p, λ of least norm: λ = Jp (Jp* Jp)⁻¹ T_p        tau = T - Jc* λ

Jp are the columns of Jc of coordinates without motors (`load_distribution.py`). The factors of Jp* Jp are on the tape with all the rest,
and so have derivatives of every order, also where rows of Jc follow from others: only what no motor drives must be held in
every direction. Where it is not, and where `a` does not keep the constraints, there is no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psiphi._util.errors import SingularError, StateError
from psiphi.backends.cuda.kernel_launch import looked_at
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.screws import dot
from psiphi.robot.mechanisms.closed_functions.closed_call import ClosedCall, Steps, TracedCall
from psiphi.robot.mechanisms.closed_functions.implicit_theorem import a
from psiphi.robot.mechanisms.dynamics import load_distribution
from psiphi.robot.mechanisms.dynamics.closed_inverse_dynamics import at_motors, carried, torques_of
from psiphi.robot.mechanisms.dynamics.system_stages import motion_rows
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra
from psiphi.robot.mechanisms.solve.redundant_constraints import STRAIN
from psiphi.robot.mechanisms.solve.stage_program import StagePlaces, StageProgramCode, arguments

TORQUES = "inverse_dynamics"


def shared_torques(
    algebra: Algebra, idle: tuple[int, ...], judged: bool = False
) -> StageProgramCode:
    """q, v, a -> tau; NaN where the coordinates `idle`, which nothing drives, are not all held; where `judged`, also where `a`
    does not keep the constraints."""
    nv = algebra.closure.model.nv

    def share(places: StagePlaces) -> StagePlaces:
        Jc, T, sound = places["Jc"], places["T"], 1.0
        if judged:
            kept = [dot(row, places["a"]) for row in Jc]
            moving = places["c"].bias[
                : len(Jc) - len(algebra.closure.follows)
            ]  # Jc a among it, but of rows that follow
            left = [*moving, *kept[len(moving) :]]
            good = 1.0 - load_distribution.opens(
                left, kept, [x - y for x, y in zip(left, kept, strict=True)]
            )
            sound = good / good  # 1, or 0 / 0
            T = [x * sound for x in T]
        lam, held = carried(Jc, T, idle, _regular)
        tau = at_motors(Jc, T, lam, idle)
        for i in idle:
            tau[i] = sound * held - 1.0
        return {"tau": tau}

    stages = {"T": torques_of(algebra, a), **motion_rows(algebra), "share": share}
    outputs, name = (Argument("tau", (nv,), "v"),), f"closed torques {idle}{', judged' * judged}"
    return StageProgramCode(
        name,
        "T - Jc* Jp (Jp* Jp)^-1 T_p",
        arguments(algebra, "q", "v", "a"),
        outputs,
        algebra,
        stages,
        {},
    )


def _regular(A: list, b: list) -> tuple[list, Any]:
    """x with A x = b, and 1; NaN both where A has no inverse."""
    factors = small_matrices.factor(A)
    good = less(small_matrices.ill_conditioning(A, factors[1]), STRAIN)
    return small_matrices.solve(factors, [x * (good / good) for x in b]), good / good


class ClosedTorques(TracedCall):
    """tau (q, v, a) of a closed system, or a derivative of it."""

    def __init__(self, system: Any, steps: Steps = ()):
        super().__init__(TORQUES, system, steps)

    def traced(self, judged: bool = False) -> DifferentiableFunction:
        system, idle = self.system, tuple(int(i) for i in self.system.idle)
        make = lambda: shared_torques(system.algebra, idle, judged)  # noqa: E731
        return system.compiled_function((TORQUES, idle, judged), make, DifferentiableFunction)

    def on_cards(self, values: Sequence[Any]) -> Any:
        if looked_at(self.name, self.inputs, values)[0] != "d":
            cause = f"{self.name}: float32 does not tell whether a motion keeps the constraints"
            raise StateError(cause, "give float64")
        return self.differentiated(self.traced(judged=True))(
            *values[:3], *self.system.robot.parameter_arguments, *values[3:]
        )

    def taking(self, tau: tuple[int, ...]) -> ClosedCall:
        return self

    def derived(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        return ClosedTorques(self.system, (*self.steps, (kind, names)))

    def answers(self, values: Sequence[Any]) -> list[np.ndarray]:
        system, (arrays, lead) = self.system, self.arrays(values)
        lead = system.batch_axes(lead)
        q, v, wanted = system.state_arrays(q=arrays[0], v=arrays[1], a=arrays[2])
        wrong = np.broadcast_to(
            load_distribution.broken(system, q, v, wanted, system.constraint_jacobian(q), False),
            lead,
        )
        found = system.run_function(
            self.code, (*arrays[:3], *system.robot.parameter_arguments, *arrays[3:])
        )
        results = [np.array(x) for x in (found if isinstance(found, tuple) else (found,))]
        if (
            not lead
            and not all(np.isfinite(x).all() for x in results)
            and all(np.isfinite(x).all() for x in arrays)
        ):
            cause = f"{self.name}: what no motor drives is not held in every direction here"
            raise SingularError(
                cause,
                "cell.inverse_dynamics(q, v, a) answers where this motion needs no force there",
            )
        for x in results:
            x[wrong] = np.nan
        return results
