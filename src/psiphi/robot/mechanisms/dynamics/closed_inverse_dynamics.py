"""Control of closed chains as programs: what the motors must do, on the same scalars as the dynamics.

    a = u - M^-1 Jc* Omega^+ (Jc u + bias)       the acceleration nearest to u, by the mass matrix, that keeps the constraints
    T = M a + C v + g
    tau = T - Jc* Jp (Jp* Jp)^+ Tp               Jp, Tp: the columns and entries without motors (`System.inverse_dynamics`)

Joints without motors that can move unfelt by any contact (a flying base) do so, as they must: y, Jp y = 0, is added to a with

    [M_pp  -Jp*] [y ]   [-Tp]
    [Jp     0  ] [mu] = [ 0 ]

That a is what the torques M u + C v + g do to the closed chain (Gauss's principle of least constraint): it depends neither on
units nor on the choice of coordinates, as the nearest by sums of squares of radians and metres would. M^-1 Jc* Omega^+ is the
dynamically consistent inverse of computed torque on many arms (docs/mathematics.md section 8). Both inverses are of small dense
matrices, by `loose` factors; where these are no use the strain is large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from psiphi.algebra.expressions.expression import Expression, vector
from psiphi.compiler.equations import Equation
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screws import add, dot
from psiphi.robot.mechanisms.dynamics.system_stages import motion_rows
from psiphi.robot.mechanisms.solve import semidefinite_solve
from psiphi.robot.mechanisms.solve.constraint_solve import (
    HUB_PLACES,
    coupling,
    over,
    pushing,
    settled,
)
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra
from psiphi.robot.mechanisms.solve.stage_program import (
    CircuitStage,
    StagePlaces,
    StageProgramCode,
    StageRule,
    arguments,
)

u = vector("u")


def holding(algebra: Algebra, idle: list[int]) -> StageProgramCode:
    """q -> tau, strain: the torques of a closed chain at rest."""
    s, inputs = algebra.s, arguments(algebra, "q")
    weight = algebra.equation(T=s.H @ s.phi @ (s.M @ s.phi.T @ s.a + s.b))
    stages = {"weight": weight, **motion_rows(algebra), "share": _sharing(idle)}
    return StageProgramCode(
        _name("holding", idle), "g - Jc* lambda", inputs, _outputs(algebra), algebra, stages, {}
    )


def driving(
    algebra: Algebra, idle: list[int], adrift: bool = False, method: str = "free"
) -> StageProgramCode:
    """q, v, u -> tau, strain: the torques that accelerate as near to u as constraints allow; `adrift`: and as motors can.
    By Omega, or around the hub, which then needs no inertia of its own."""
    inputs = arguments(algebra, "q", "v", "u")
    stages = {
        **motion_rows(algebra),
        **coupling(algebra, method, redundant=True),
        **nearest(algebra, method, "u"),
        "inverse": torques_of(algebra),
        **({"mass": algebra.inertia, "drift": _drifting(idle)} if adrift else {}),
        "share": _sharing(idle),
    }
    named = HUB_PLACES | NEAREST_PLACES | {("inverse", "u"): "a", ("mass", "inertia"): "mass"}
    name = f"{_name('driving', idle)} {method}" + " adrift" * adrift
    return StageProgramCode(
        name, "M a + C v + g - Jc* lambda", inputs, _outputs(algebra), algebra, stages, named
    )


def torques_of(algebra: Algebra, a: Expression = u) -> Equation:
    """T = M a + C v + g of the open mechanisms."""
    s = algebra.s
    return algebra.equation(T=s.H @ s.phi @ (s.M @ s.phi.T @ (s.H.T @ a + s.a) + s.b) + s.rotor @ a)


def nearest(algebra: Algebra, method: str, wish: str) -> dict[str, CircuitStage]:
    """Stages that leave in the place "a" the acceleration nearest to the one in the place `wish`, by the mass matrix, that
    keeps the constraints, of the solver there is."""
    nv = algebra.closure.model.nv

    def solve(places: StagePlaces) -> StagePlaces:
        opened = [
            dot(row, places[wish]) + b
            for row, b in zip(places["Jc"], places["c"].bias, strict=True)
        ]
        multipliers, strain, moved = places["solver"](
            [-x for x in opened], pushing(algebra, [0.0] * nv)
        )
        pushed, so_far = places["c"].spread(multipliers), places.get("strain", [0.0])[0]
        return {
            "f": pushed["f"],
            "pushed": pushed["u"],
            "moved": moved,
            "strain": [so_far + strain],
        }

    def summed(places: StagePlaces) -> StagePlaces:
        return {"a": add(places[wish], settled(algebra, places["da"], places["moved"]))}

    (correction,) = over(algebra, method, algebra.correction)
    return {"solve": solve, "correction": correction, "nearest": summed}


NEAREST_PLACES = {("correction", "u"): "pushed", ("correction", "a"): "da"}


def _drifting(idle: list[int]) -> StageRule:
    """T of the motion in which coordinates without motors move as they must: y with Jp y = 0, of G = Jp* Jp = L diag L*.

    z = L* y is zero where G has a pivot; the others are free: (free L^-1 M_pp L^-* free + kept) z = -free L^-1 Tp."""

    def drift(places: StagePlaces) -> StagePlaces:
        T, mass = places["T"], places["mass"]
        columns, nv, n = [[row[i] for row in places["Jc"]] for i in idle], len(T), len(idle)
        gram = [[dot(x, y) for y in columns] for x in columns]
        L, d_inv, on = semidefinite_solve.factor(gram)
        strain = small_matrices.ill_conditioning(gram, d_inv, start=places["strain"][0])
        turned = [small_matrices.forward(L, [mass[i * nv + k] for k in idle]) for i in idle]
        inner = [small_matrices.forward(L, column) for column in small_matrices.transpose(turned)]
        free = [1.0 - kept for kept in on]
        inner = [
            [free[i] * (free[j] * inner[i][j]) + (on[i] if i == j else 0.0) for j in range(n)]
            for i in range(n)
        ]
        wanted = [
            -a * x
            for a, x in zip(free, small_matrices.forward(L, [T[i] for i in idle]), strict=True)
        ]
        y = small_matrices.backward(L, small_matrices.solve(small_matrices.factor(inner), wanted))
        moving = [x + dot([mass[i * nv + k] for k in idle], y) for i, x in enumerate(T)]
        return {"T": moving, "strain": [strain]}

    return drift


def _sharing(idle: list[int]) -> StageRule:
    def share(places: StagePlaces) -> StagePlaces:
        Jc, T = places["Jc"], places["T"]
        lam, strain = carried(Jc, T, idle)
        return {
            "tau": at_motors(Jc, T, lam, idle),
            "strain": [places.get("strain", [0.0])[0] + strain],
        }

    return share


def carried(
    Jc: list,
    T: list,
    idle: Sequence[int],
    solve: Callable = semidefinite_solve.solve,
    weigh: Callable = list,
    wanted: list | None = None,
) -> tuple[list, Any]:
    """lambda = f + S Jp (Jp* S Jp)^+ (T_p - Jp* f), and the strain of that solve: what contacts carry for the coordinates
    `idle`, which have no motor; S (`weigh`) says how they share it, f is what is `wanted` of them besides."""
    f = [0.0] * len(Jc) if wanted is None else wanted
    if not idle:
        return f, 0.0
    columns = [[row[i] for row in Jc] for i in idle]
    weighed = [weigh(column) for column in columns]
    missing = [T[i] - dot(column, f) for i, column in zip(idle, columns, strict=True)]
    shares, strain = solve([[dot(x, y) for y in weighed] for x in columns], missing)
    return [x + dot([column[r] for column in weighed], shares) for r, x in enumerate(f)], strain


def at_motors(Jc: list, T: list, lam: list, idle: Sequence[int]) -> list:
    """T - Jc* lambda where there is a motor, else zero."""
    return [0.0 if i in idle else x - dot([row[i] for row in Jc], lam) for i, x in enumerate(T)]


def _name(verb: str, idle: list[int]) -> str:
    return f"closed {verb} {','.join(map(str, idle))}"


def _outputs(algebra: Algebra) -> tuple[Argument, ...]:
    return Argument("tau", (algebra.closure.model.nv,), "v"), Argument("strain", ())
