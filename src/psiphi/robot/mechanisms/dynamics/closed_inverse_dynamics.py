"""Inverse dynamics of closed chains as programs: the motor torques for a desired acceleration u.

    a = u - M^-1 Jc* Omega^+ (Jc u + bias)    the nearest feasible acceleration, by the mass matrix
    T = M a + C v + g
    tau = T - Jc* Jp (Jp* Jp)^+ Tp            Jp, Tp: columns and entries without motors

If coordinates without motors can move without any contact force (a flying base), their motion is
determined by the dynamics: y with Jp y = 0 is added to a, where

    [M_pp  -Jp*] [y ]   [-Tp]
    [Jp     0  ] [mu] = [ 0 ]

The acceleration a is the response of the closed chain to the torques M u + C v + g (Gauss'
principle of least constraint). It depends neither on units nor on the choice of coordinates, unlike
the nearest one by least squares. M^-1 Jc* Omega^+ is the dynamically consistent inverse of computed
torque (docs/mathematics.md, section 8). Both inverses are small and dense, by
`semidefinite_solve.py`; the ill-conditioning is large where they fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.compiler.equations import Equation
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.model.loops.constraints import Closure
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screws import add, dot
from psiphi.robot.mechanisms.dynamics.system_stages import motion_rows
from psiphi.robot.mechanisms.solve import semidefinite_solve
from psiphi.robot.mechanisms.solve.constraint_solve import (
    HUB_PLACES,
    hub_torques,
    restrict_stages,
    solver_stages,
    with_hub_accelerations,
)
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra
from psiphi.robot.mechanisms.solve.stage_program import (
    StageDefinition,
    StagePlaces,
    StageProgramCode,
    StageRule,
    arguments,
)

u = vector("u")


def static_torques(algebra: Algebra, unactuated: list[int]) -> StageProgramCode:
    """q -> tau, ill_conditioning: the torques that hold a closed chain at rest."""
    s, inputs = algebra.s, arguments(algebra, "q")
    gravity = algebra.equation(T=s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b))
    stages = {"gravity": gravity, **motion_rows(algebra), "share": _torque_stage(unactuated)}
    return StageProgramCode(
        _name("static torques", unactuated),
        "g - Jc* lambda",
        inputs,
        _outputs(algebra),
        algebra,
        stages,
        {},
    )


def inverse_dynamics(
    algebra: Algebra,
    unactuated: list[int],
    floating: bool = False,
    method: str = "free",
    is_shared: bool = False,
) -> StageProgramCode:
    """q, v, u -> tau, ill_conditioning: the torques of the feasible acceleration nearest to u.

    `is_shared`: a further input `share` (l,) has a weight for each contact, S = diag(share), and
    lambda = S Jp (Jp* S Jp)^+ Tp.

    `floating`: some coordinates without motors move freely (see above). By Omega, or by eliminating
    the hub, whose inertia may then be singular.
    """
    inputs = arguments(algebra, "q", "v", "u")
    stages = {
        **motion_rows(algebra),
        **solver_stages(algebra, method, redundant=True),
        **nearest_acceleration(algebra, method, "u"),
        "inverse": torques_of(algebra),
        **({"mass": algebra.inertia, "float": _floating_motion(unactuated)} if floating else {}),
        "share": _torque_stage(unactuated, contact_rows(algebra.closure) if is_shared else None),
    }
    if is_shared:
        inputs = (*inputs, Argument("share", (len(algebra.closure.constraints),)))
    named = HUB_PLACES | NEAREST_PLACES | {("inverse", "u"): "a", ("mass", "inertia"): "mass"}
    name = f"{_name('inverse dynamics', unactuated)} {method}" + " floating" * floating
    name += " shared" * is_shared
    return StageProgramCode(
        name, "M a + C v + g - Jc* lambda", inputs, _outputs(algebra), algebra, stages, named
    )


def torques_of(algebra: Algebra, a: Expression = u) -> Equation:
    """T = M a + C v + g of the mechanisms without constraints."""
    s = algebra.s
    return algebra.equation(T=s.H @ s.phi @ (s.M @ s.phi.T @ (s.H.T @ a + s.a) + s.b) + s.rotor @ a)


def nearest_acceleration(algebra: Algebra, method: str, desired: str) -> dict[str, StageDefinition]:
    """The stages that store in the place "a" the acceleration that satisfies the constraints and
    is nearest, by the mass matrix, to the one in the place `desired`."""
    nv = algebra.closure.model.nv

    def solve(places: StagePlaces) -> StagePlaces:
        rows = [
            dot(row, places[desired]) + b
            for row, b in zip(places["Jc"], places["c"].bias, strict=True)
        ]
        multipliers, ill_conditioning, hub = places["solver"](
            [-x for x in rows], hub_torques(algebra, [0.0] * nv)
        )
        forces = places["c"].apply_transpose(multipliers)
        before = places.get("ill_conditioning", [0.0])[0]
        return {
            "f": forces["f"],
            "constraint u": forces["u"],
            "hub a": hub,
            "ill_conditioning": [before + ill_conditioning],
        }

    def nearest(places: StagePlaces) -> StagePlaces:
        da = with_hub_accelerations(algebra, places["da"], places["hub a"])
        return {"a": add(places[desired], da)}

    (correction,) = restrict_stages(algebra, method, algebra.correction)
    return {"solve": solve, "correction": correction, "nearest": nearest}


NEAREST_PLACES = {("correction", "u"): "constraint u", ("correction", "a"): "da"}


def _floating_motion(unactuated: list[int]) -> StageRule:
    """T + M y with the free motion y of coordinates without motors, Jp y = 0. With
    G = Jp* Jp = L diag L*, z = L* y is zero where G has a pivot and free elsewhere:
    (free L^-1 M_pp L^-* free + used) z = -free L^-1 Tp."""

    def floating(places: StagePlaces) -> StagePlaces:
        T, mass = places["T"], places["mass"]
        columns, nv, n = (
            [[row[i] for row in places["Jc"]] for i in unactuated],
            len(T),
            len(unactuated),
        )
        gram = [[dot(x, y) for y in columns] for x in columns]
        L, d_inv, used = semidefinite_solve.factor(gram)
        ill_conditioning = small_matrices.ill_conditioning(
            gram, d_inv, start=places["ill_conditioning"][0]
        )
        half = [
            small_matrices.forward(L, [mass[i * nv + k] for k in unactuated]) for i in unactuated
        ]
        inner = [small_matrices.forward(L, column) for column in small_matrices.transpose(half)]
        free = [1.0 - x for x in used]
        inner = [
            [free[i] * (free[j] * inner[i][j]) + (used[i] if i == j else 0.0) for j in range(n)]
            for i in range(n)
        ]
        right = [
            -a * x
            for a, x in zip(
                free, small_matrices.forward(L, [T[i] for i in unactuated]), strict=True
            )
        ]
        y = small_matrices.backward(L, small_matrices.solve(small_matrices.factor(inner), right))
        T = [x + dot([mass[i * nv + k] for k in unactuated], y) for i, x in enumerate(T)]
        return {"T": T, "ill_conditioning": [ill_conditioning]}

    return floating


def contact_rows(closure: Closure) -> tuple[int, ...]:
    """The number of rows of each contact."""
    own = zip(closure.constraints, closure.slices, strict=False)
    return tuple(rows.stop - rows.start for _, rows in own)


def row_weights(share: Sequence, counts: Sequence[int], rows: int) -> list:
    """One weight per row, from one per contact with `counts` rows; rows of mimic joints have the
    weight 1."""
    out = [weight for weight, n in zip(share, counts, strict=True) for _ in range(n)]
    return out + [1.0] * (rows - len(out))


def _torque_stage(unactuated: list[int], counts: tuple[int, ...] | None = None) -> StageRule:
    """tau of Jc and T, with multipliers of least norm; weighted, if the rows of the contacts are
    given."""

    def share(places: StagePlaces) -> StagePlaces:
        Jc, T = places["Jc"], places["T"]
        weights = [1.0] * len(Jc)
        if counts is not None:
            weights = row_weights(places["share"], counts, len(Jc))
        lam, ill_conditioning = contact_multipliers(
            Jc,
            T,
            unactuated,
            share=lambda column: [w * x for w, x in zip(weights, column, strict=True)],
        )
        return {
            "tau": motor_torques(Jc, T, lam, unactuated),
            "ill_conditioning": [places.get("ill_conditioning", [0.0])[0] + ill_conditioning],
        }

    return share


def contact_multipliers(
    Jc: list,
    T: list,
    unactuated: Sequence[int],
    solve: Callable[[list, list], tuple[list, Any]] = semidefinite_solve.solve,
    share: Callable[[list], list] = list,
    desired: list | None = None,
) -> tuple[list, Any]:
    """lambda = f + S Jp (Jp* S Jp)^+ (T_p - Jp* f), and the ill-conditioning of the solve: the
    contact forces that act on coordinates without motors.

    `share` applies S, which distributes the load over the contacts; f (`desired`) are the
    multipliers to stay near to.
    """
    f = [0.0] * len(Jc) if desired is None else desired
    if not unactuated:
        return f, 0.0
    columns = [[row[i] for row in Jc] for i in unactuated]
    weighted = [share(column) for column in columns]
    missing = [T[i] - dot(column, f) for i, column in zip(unactuated, columns, strict=True)]
    shares, ill_conditioning = solve([[dot(x, y) for y in weighted] for x in columns], missing)
    multipliers = [x + dot([column[r] for column in weighted], shares) for r, x in enumerate(f)]
    return multipliers, ill_conditioning


def motor_torques(Jc: list, T: list, lam: list, unactuated: Sequence[int]) -> list:
    """T - Jc* lambda at coordinates with motors, zero at the others."""
    return [
        0.0 if i in unactuated else x - dot([row[i] for row in Jc], lam) for i, x in enumerate(T)
    ]


def _name(quantity: str, unactuated: list[int]) -> str:
    return f"closed {quantity} {','.join(map(str, unactuated))}"


def _outputs(algebra: Algebra) -> tuple[Argument, ...]:
    return Argument("tau", (algebra.closure.model.nv,), "v"), Argument("ill_conditioning", ())
