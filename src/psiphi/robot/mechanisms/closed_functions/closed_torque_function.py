"""Inverse dynamics of a closed chain as a function with derivatives: (q, v, a) -> tau.

    T = M a + C v + g      Jp* λ = T_p, λ of least norm: λ = Jp (Jp* Jp)⁻¹ T_p      tau = T - Jc* λ

Jp: the columns of Jc of coordinates without motors (`load_distribution.py`), where tau is zero. The
factors of Jp* Jp are on the tape, and have derivatives of every order, also if rows of Jc are
redundant. The result is NaN if contacts do not constrain all coordinates without motors, or if `a`
does not satisfy the constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.errors import SingularError, StateError
from psiphi.backends.cuda.kernel_launch import dtype_and_device
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.screws import dot
from psiphi.robot.mechanisms.closed_functions.closed_call import ClosedCall, Steps, TracedCall
from psiphi.robot.mechanisms.closed_functions.implicit_theorem import a
from psiphi.robot.mechanisms.dynamics import load_distribution
from psiphi.robot.mechanisms.dynamics.closed_inverse_dynamics import (
    contact_multipliers,
    motor_torques,
    torques_of,
)
from psiphi.robot.mechanisms.dynamics.system_stages import motion_rows
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED
from psiphi.robot.mechanisms.solve.stage_program import StagePlaces, StageProgramCode, arguments

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.system import System

TORQUES = "inverse_dynamics"


def shared_torques(
    algebra: Algebra, unactuated: tuple[int, ...], checked: bool = False
) -> StageProgramCode:
    """q, v, a -> tau; NaN if contacts do not constrain all coordinates `unactuated`, and with
    `checked` also if `a` does not satisfy the constraints."""
    nv = algebra.closure.model.nv

    def share(places: StagePlaces) -> StagePlaces:
        Jc, T, one_or_nan = places["Jc"], places["T"], 1.0
        if checked:
            Jc_a = [dot(row, places["a"]) for row in Jc]
            # the bias of frames includes Jc a, since a is an input; that of mimic joints does not
            of_frames = places["c"].bias[: len(Jc) - len(algebra.closure.mimics)]
            residual = [*of_frames, *Jc_a[len(of_frames) :]]
            bias = [x - y for x, y in zip(residual, Jc_a, strict=True)]
            good = 1.0 - load_distribution.exceeds_tolerance(residual, Jc_a, bias)
            one_or_nan = good / good
            T = [x * one_or_nan for x in T]
        lam, solved = contact_multipliers(Jc, T, unactuated, _solve_or_nan)
        tau = motor_torques(Jc, T, lam, unactuated)
        for i in unactuated:
            tau[i] = one_or_nan * solved - 1.0
        return {"tau": tau}

    stages = {"T": torques_of(algebra, a), **motion_rows(algebra), "share": share}
    outputs = (Argument("tau", (nv,), "v"),)
    name = f"closed torques {unactuated}{', checked' * checked}"
    return StageProgramCode(
        name,
        "T - Jc* Jp (Jp* Jp)^-1 T_p",
        arguments(algebra, "q", "v", "a"),
        outputs,
        algebra,
        stages,
        {},
    )


def _solve_or_nan(A: list, b: list) -> tuple[list, Any]:
    """x with A x = b, and 1; both NaN if A is singular."""
    factors = small_matrices.factor(A)
    good = less(small_matrices.ill_conditioning(A, factors[1]), ILL_CONDITIONED)
    return small_matrices.solve(factors, [x * (good / good) for x in b]), good / good


class ClosedTorques(TracedCall):
    """tau(q, v, a) of a closed system, or a derivative of it."""

    def __init__(self, system: System, steps: Steps = ()):
        super().__init__(TORQUES, system, steps)

    def traced(self, checked: bool = False) -> DifferentiableFunction:
        system, unactuated = self.system, tuple(int(i) for i in self.system.idle)
        make = lambda: shared_torques(system.algebra, unactuated, checked)  # noqa: E731
        key = TORQUES, unactuated, checked
        return system.compiled_function(key, make, DifferentiableFunction)

    def run_on_gpu(self, values: Sequence[Any]) -> Any:
        if dtype_and_device(self.name, self.inputs, values)[0] != "d":
            cause = f"{self.name}: float32 cannot tell whether a satisfies the constraints"
            raise StateError(cause, "use float64")
        return self.differentiated(self.traced(checked=True))(
            *values[:3], *self.system.robot.parameter_arguments, *values[3:]
        )

    def for_torque_shape(self, shape: tuple[int, ...]) -> ClosedCall:
        return self

    def make_derivative(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        return ClosedTorques(self.system, (*self.steps, (kind, names)))

    def evaluate_host(self, values: Sequence[Any]) -> list[np.ndarray]:
        system, (arrays, batch) = self.system, self.read_arrays(values)
        batch = system.batch_axes(batch)
        q, v, a = system.state_arrays(q=arrays[0], v=arrays[1], a=arrays[2])
        Jc = system.constraint_jacobian(q)
        infeasible = load_distribution.violates_constraints(system, q, v, a, Jc, False)
        infeasible = np.broadcast_to(infeasible, batch)
        results = system.run_function(
            self.code, (*arrays[:3], *system.robot.parameter_arguments, *arrays[3:])
        )
        results = [np.array(x) for x in (results if isinstance(results, tuple) else (results,))]
        if (
            not batch
            and not all(np.isfinite(x).all() for x in results)
            and all(np.isfinite(x).all() for x in arrays)
        ):
            raise SingularError(
                f"{self.name}: contacts do not constrain all coordinates without motors here",
                "use system.inverse_dynamics(q, v, a), which also solves motions that need no "
                "force on these coordinates",
            )
        for x in results:
            x[infeasible] = np.nan
        return results
