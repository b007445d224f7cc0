"""The functions of a closed system as programs in stages: sweeps over the forest, with small dense algebra between them.

    frames    where constrained frames are, and how they move       (`relative_motion.py`)
    meet      the rows of the constraints: Z, F and dJc/dt v         (`delassus_operator.py`)
    X, U, Y   J M^-1 J* and, with joints that follow, J M^-1, M^-1
    Omega     Jc M^-1 Jc* of these
    ...       what each function adds

Every stage runs on the same scalars; on a tape, what stages share (articulated inertias, poses, gains) is computed once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from psiphi.compiler.sweeps.sweep_program import ADDED, Argument
from psiphi.model.loops.constraints import Closure
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.screws import add, dot
from psiphi.model.spatial.small_matrices import flatten
from psiphi.robot.mechanisms.solve.constraint_solve import (
    HUB_PLACES,
    compliance,
    coupling,
    hub_stages,
    over,
    pushing,
    settled,
)
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra, DelassusOperator, solver
from psiphi.robot.mechanisms.solve.hub_elimination import felt_inertia
from psiphi.robot.mechanisms.solve.rccfd_methods import CORRECTED, HUB, METHODS
from psiphi.robot.mechanisms.solve.redundant_constraints import STRAIN
from psiphi.robot.mechanisms.solve.stage_program import (
    CircuitStage,
    StagePlaces,
    StageProgramCode,
    arguments,
    circuit,
    given,
)


def _wrenches(closure: Closure) -> Argument:
    """Contact forces; a system of joints that follow has none, and NumPy no empty results: one row of zeros."""
    return Argument("forces", (max(len(closure.constraints), 1), 6))


def gap(places: StagePlaces) -> list:
    """Jc a + bias, from the motions A = J a of the frames and a itself."""
    c: DelassusOperator = places["c"]
    return add(c.sense(places.get("A", []), places.get("a", [])), c.bias)


def _filled(places: StagePlaces, algebra: Algebra, multipliers: list) -> list:
    """The contact forces of multipliers, as many numbers as the output has."""
    forces = places["c"].forces(multipliers)
    return forces + [0.0] * (_wrenches(algebra.closure).size - len(forces))


# -- the functions ------------------------------------------------------------------------------------------------------------


def dynamics(
    algebra: Algebra,
    method: str,
    frames: tuple[str, ...] = (),
    axes: str = "world",
    redundant: bool = False,
) -> StageProgramCode:
    """a, the multipliers, the contact forces and the strain, by one of METHODS; `redundant` leaves out rows that follow."""
    closure, coupled = algebra.closure, coupling(algebra, method, redundant)
    *before, last = METHODS[method](algebra, frames, axes)

    def solve(places: StagePlaces) -> StagePlaces:
        push = pushing(algebra, places["T"]) if method == HUB else []
        multipliers, strain, moved = places["solver"]([-x for x in gap(places)], push)
        pushed = places["c"].spread(multipliers) | {"moved": moved}
        return {
            "lam": multipliers,
            "strain": [strain],
            "forces": _filled(places, algebra, multipliers),
            **pushed,
        }

    *first, ending = over(algebra, method, *before, last)
    stages: dict[str, CircuitStage] = {f"stage {i + 1}": stage for i, stage in enumerate(first)}
    stages |= {**coupled, "solve": solve, "last": ending}
    named = dict(HUB_PLACES)
    if method in CORRECTED:
        named[("last", "a")] = "da"
        stages["sum"] = lambda places: {
            "a": settled(algebra, add(places["a"], places["da"]), places["moved"])
        }
    outputs = (
        Argument("a", (closure.model.nv,), "v"),
        Argument("lam", (closure.size,)),
        _wrenches(closure),
        Argument("strain", ()),
    )
    name = f"closed dynamics {method} {axes} {','.join(frames)}" + " redundant" * redundant
    inputs = given(algebra, frames)
    return StageProgramCode(
        name, "Omega lambda = -(Jc a_f + bias)", inputs, outputs, algebra, stages, named
    )


def combined(
    algebra: Algebra, rank: int, forces: bool, frames: tuple[str, ...] = (), axes: str = "world"
) -> StageProgramCode:
    """`dynamics` by `rank` rows W* c' that all others follow from: lambda = W mu, and with `forces` P lambda, those of least
    norm, P onto the range of Jc V. W (m, rank) and V (nv, rank) are inputs, and stay: `implicit.Split` has them of one state.
    """
    whole, m, nv = (
        dynamics(algebra, "free", frames, axes),
        algebra.closure.size,
        algebra.closure.model.nv,
    )

    def factor(places: StagePlaces) -> StagePlaces:
        W = _rows(places["W"], m, rank)
        across = small_matrices.transpose(W)
        answers = [small_matrices.apply(places["Omega"], column) for column in across]
        reach = [dot([x * x for x in column], places["reach"]) for column in across]
        solved = solver([[dot(x, y) for y in answers] for x in across], reach)

        def solve(right: list, push: list) -> tuple[list, Any, list]:
            mu, strain, moved = solved(small_matrices.apply(across, right), push)
            return small_matrices.apply(W, mu), strain, moved

        return {"solver": solve}

    def shortest(places: StagePlaces) -> StagePlaces:
        columns = small_matrices.transpose(_rows(places["V"], nv, rank))
        Q = [[dot(row, column) for column in columns] for row in places["Jc"]]
        across = small_matrices.transpose(Q)
        normal = small_matrices.factor([[dot(x, y) for y in across] for x in across])
        shares = small_matrices.solve(normal, small_matrices.apply(across, places["lam"]))
        return {"forces": _filled(places, algebra, small_matrices.apply(Q, shares))}

    more: dict[str, CircuitStage] = {**motion_rows(algebra), "shortest": shortest} if forces else {}
    stages, inputs = (
        {**whole.stages, "factor": factor, **more},
        (Argument("W", (m, rank)), Argument("V", (nv, rank))),
    )
    name = f"{whole.name} by {rank} rows" + ", forces" * forces
    return replace(whole, name=name, inputs=(*whole.inputs, *inputs), stages=stages)


def _rows(entries: list, m: int, n: int) -> list[list]:
    """A matrix (m, n) of entries in a row."""
    return [entries[i * n : (i + 1) * n] for i in range(m)]


def alone(
    dynamics: StageProgramCode, output: str, motors: list[int] | None = None
) -> StageProgramCode:
    """One result of `dynamics`, NaN where it is strained, as are its derivatives; the rest is left out. Its torques may be
    those of motors, at these coordinates."""
    nv = dynamics.model.nv

    def judge(places: StagePlaces) -> StagePlaces:
        good = less(places["strain"][0], STRAIN)
        sound = good / good  # 1, or 0 / 0
        return {output: [x * sound for x in places[output]]}

    outputs = tuple(arg for arg in dynamics.outputs if arg.name == output)
    made = replace(
        dynamics,
        name=f"{dynamics.name} {output} alone",
        outputs=outputs,
        stages={**dynamics.stages, "judge": judge},
    )
    if motors is None:
        return made

    def fill(places: StagePlaces) -> StagePlaces:
        at = dict(zip(motors, places["tau"], strict=True))
        return {"tau": [at.get(i, 0.0) for i in range(nv)]}

    inputs = tuple(
        Argument("tau", (len(motors),)) if arg.name == "tau" else arg for arg in dynamics.inputs
    )
    return replace(
        made,
        name=f"{made.name} motors {motors}",
        inputs=inputs,
        stages={"motors": fill, **made.stages},
    )


def heavier_dynamics(closure: Closure, method: str) -> StageProgramCode:
    """`dynamics` with D + X in place of D, the diagonal X an input: (M + X) a - Jc* lambda = tau - C v - g, Jc a + bias = 0."""
    found = dynamics(Algebra(closure, added=True), method, redundant=True)
    inputs = (*found.inputs, Argument(ADDED, (closure.model.nv,), "v"))
    return replace(found, name=f"{found.name} heavier", inputs=inputs)


def terms(algebra: Algebra, frames: tuple[str, ...] = (), axes: str = "world") -> StageProgramCode:
    """Free accelerations, Omega, and c' under them: for states where Omega has no inverse."""
    m, nv = algebra.closure.size, algebra.closure.model.nv
    stages: dict[str, CircuitStage] = {
        "free": METHODS["free"](algebra, frames, axes)[0],
        **compliance(algebra),
    }
    stages["open"] = lambda places: {"gap": gap(places), "Omega": flatten(places["Omega"])}
    outputs = (Argument("a", (nv,), "v"), Argument("Omega", (m, m)), Argument("gap", (m,)))
    name = f"closed terms {axes} {','.join(frames)}"
    return StageProgramCode(
        name, "Omega = Jc M^-1 Jc*", given(algebra, frames), outputs, algebra, stages, {}
    )


def omega(algebra: Algebra) -> StageProgramCode:
    """Omega = Jc M^-1 Jc*."""
    m = algebra.closure.size
    stages = compliance(algebra) | {"matrix": lambda places: {"Omega": flatten(places["Omega"])}}
    outputs = (Argument("Omega", (m, m)),)
    return StageProgramCode(
        "closed omega", "Omega = Jc M^-1 Jc*", arguments(algebra, "q"), outputs, algebra, stages, {}
    )


def correction(algebra: Algebra) -> StageProgramCode:
    """M^-1 Jc* lambda, and the contact forces of lambda."""

    def spread(places: StagePlaces) -> StagePlaces:
        return places["c"].spread(places["lam"]) | {
            "forces": _filled(places, algebra, places["lam"])
        }

    closure = algebra.closure
    inputs, outputs = (
        arguments(algebra, "q", "lam"),
        (Argument("a", (closure.model.nv,), "v"), _wrenches(closure)),
    )
    (moved,) = over(
        algebra, HUB if algebra.is_thin else "", algebra.correction
    )  # a thin hub has no M^-1: that part is zero
    return circuit(
        "closed correction",
        "M^-1 Jc* lambda",
        inputs,
        outputs,
        algebra,
        spread=spread,
        correction=moved,
    )


def inertias(algebra: Algebra) -> StageProgramCode:
    """M of the hub, and what each group adds to it, B* S^-1 B, one under the other: their sum is what one feels at the hub."""
    hub = algebra.hub
    assert hub is not None
    n = len(hub.coordinates)

    def added(places: StagePlaces) -> StagePlaces:
        M, blocks = places["around"]
        parts = [felt_inertia(n, block) for block in blocks]
        return {
            "own": flatten(M),
            "added": [x for A, _ in parts for x in flatten(A)],
            "strain": [strain for _, strain in parts],
        }

    count = len(hub.groups)
    outputs = (
        Argument("own", (n, n)),
        Argument("added", (count * n, n)),
        Argument("strain", (count,)),
    )
    stages = hub_stages(algebra) | {"added": added}
    return StageProgramCode(
        "closed inertias",
        "M_hub, B* S^-1 B",
        arguments(algebra, "q"),
        outputs,
        algebra,
        stages,
        dict(HUB_PLACES),
    )


def residual(algebra: Algebra) -> StageProgramCode:
    """How far every row is open, and how fast it opens."""

    def opened(places: StagePlaces) -> StagePlaces:
        return {"residual": places["c"].errors(places["q"]) + places["c"].rates(places["v"])}

    outputs = (Argument("residual", (2, algebra.closure.size)),)
    return circuit(
        "closed residual",
        "[e(q); Jc v]",
        arguments(algebra, "q", "v"),
        outputs,
        algebra,
        open=opened,
    )


def bias(algebra: Algebra) -> StageProgramCode:
    """dJc/dt v: what c' would be under a = 0, of velocities that keep the constraints."""
    outputs = (Argument("bias", (algebra.closure.size,)),)
    inputs = arguments(algebra, "q", "v")
    return circuit(
        "closed bias",
        "dJc/dt v",
        inputs,
        outputs,
        algebra,
        bias=lambda places: {"bias": places["c"].bias},
    )


def opening(algebra: Algebra) -> StageProgramCode:
    """dJc/dt v of any velocities."""
    outputs = (Argument("bias", (algebra.closure.size,)),)
    inputs = arguments(algebra, "q", "v")
    return circuit(
        "closed opening",
        "dJc/dt v",
        inputs,
        outputs,
        algebra,
        bias=lambda places: {"bias": places["c"].opening},
    )


def motions(algebra: Algebra) -> StageProgramCode:
    """W and W' of S4, and what is zero beside them: the object beside the arm, which is less the first frame seen from the
    second."""
    shape = _wrenches(algebra.closure).shape
    outputs = (Argument("rates", shape), Argument("accelerations", shape))

    def seen(places: StagePlaces) -> StagePlaces:
        meetings = places["c"].meetings
        rates = [-x for meeting in meetings for x in (*meeting.at.w, *meeting.at.v)]
        accelerations = [-x for meeting in meetings for x in (*meeting.wd, *meeting.vd)]
        none = [0.0] * (outputs[0].size - len(rates))
        return {"rates": rates + none, "accelerations": accelerations + none}

    return circuit(
        "closed motions", "W, W'", arguments(algebra, "q", "v", "a"), outputs, algebra, seen=seen
    )


def projection(algebra: Algebra, method: str, redundant: bool = False) -> StageProgramCode:
    """One Newton step onto the constraints, least in the metric of the mass matrix:

    dq = -M^-1 Jc* Omega^-1 e(q)        dv = -M^-1 Jc* Omega^-1 Jc v
    """

    nv = algebra.closure.model.nv

    def solve(places: StagePlaces) -> StagePlaces:
        c, solved, found = places["c"], places["solver"], {"strain": [0.0]}
        for name, rows in (("dq", c.errors(places["q"])), ("dv", c.rates(places["v"]))):
            multipliers, strain, moved = solved([-x for x in rows], pushing(algebra, [0.0] * nv))
            pushed, strains = c.spread(multipliers), [found["strain"][0] + strain]
            found |= {
                f"f {name}": pushed["f"],
                f"u {name}": pushed["u"],
                f"moved {name}": moved,
                "strain": strains,
            }
        return found

    def settle(places: StagePlaces) -> StagePlaces:
        return {
            name: settled(algebra, places[name], places[f"moved {name}"]) for name in ("dq", "dv")
        }

    outputs = (Argument("dq", (nv,), "v"), Argument("dv", (nv,), "v"), Argument("strain", ()))
    name = f"closed projection {method}" + " redundant" * redundant
    named = HUB_PLACES | {
        (x, own): f"{own} {x}" if own in "fu" else x
        for x in ("dq", "dv")
        for own in ("f", "u", "a")
    }
    steps = dict.fromkeys(("dq", "dv"), over(algebra, method, algebra.correction)[0])
    stages = {**coupling(algebra, method, redundant), "solve": solve, **steps, "settle": settle}
    inputs = arguments(algebra, "q", "v")
    return StageProgramCode(
        name, "-M^-1 Jc* Omega^-1 [e, Jc v]", inputs, outputs, algebra, stages, named
    )


def motion_rows(algebra: Algebra) -> dict[str, CircuitStage]:
    """Stages that leave the rows of Jc in the place Jc, as lists."""
    closure = algebra.closure
    nv, width = closure.model.nv, 6 * len(closure.frames)

    def rows(places: StagePlaces) -> StagePlaces:
        J = places.get("J", [])
        units = [[1.0 if i == j else 0.0 for j in range(nv)] for i in range(nv)]
        columns = [
            places["c"].sense([J[r * nv + i] for r in range(width)], unit)
            for i, unit in enumerate(units)
        ]
        return {"Jc": [[column[r] for column in columns] for r in range(closure.size)]}

    motion: dict[str, CircuitStage] = {"J": algebra.motion} if closure.frames else {}
    return motion | {"Jc": rows}


def jacobian(algebra: Algebra) -> StageProgramCode:
    """Jc: the constraint rows' Jacobian (m, nv)."""
    closure, inputs = algebra.closure, arguments(algebra, "q")
    outputs = (Argument("Jc", (closure.size, closure.model.nv)),)
    stages = motion_rows(algebra) | {"matrix": lambda places: {"Jc": flatten(places["Jc"])}}
    return StageProgramCode(
        "closed jacobian", "Jc = Z [J; F]", inputs, outputs, algebra, stages, {}
    )
