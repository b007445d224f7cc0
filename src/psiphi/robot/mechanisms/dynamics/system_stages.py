"""The functions of a closed system as programs in stages: sweeps over the forest and small dense
algebra between them.

    poses, motions   of the constrained frames                         (`relative_motion.py`)
    rows             the rows of the constraints: Z, F and dJc/dt v    (`delassus_operator.py`)
    X, U, Y          J M^-1 J* and, with mimic joints, J M^-1 and M^-1
    Omega            Jc M^-1 Jc* of these
    ...              the stages of each function

All stages are traced on one tape, which computes shared terms (articulated inertias, poses, gains)
once.
"""

from __future__ import annotations

from dataclasses import replace

from psiphi._util.array_types import AnyScalar
from psiphi.compiler.sweeps.sweep_program import ADDED_INERTIA, Argument
from psiphi.model.loops.constraints import Closure
from psiphi.model.model import WORLD, Model
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.screws import add, dot
from psiphi.model.spatial.small_matrices import flatten
from psiphi.robot.mechanisms.solve.constraint_solve import (
    HUB_PLACES,
    hub_stages,
    hub_torques,
    omega_stages,
    restrict_stages,
    solver_stages,
    with_hub_accelerations,
)
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra, DelassusOperator, omega_solver
from psiphi.robot.mechanisms.solve.hub_elimination import Solution, added_inertia
from psiphi.robot.mechanisms.solve.rccfd_methods import CORRECTED, HUB, METHODS, SPLIT
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED
from psiphi.robot.mechanisms.solve.stage_program import (
    StageDefinition,
    StagePlaces,
    StageProgramCode,
    arguments,
    dynamics_arguments,
    program_of_rules,
)


def _wrench_output(closure: Closure) -> Argument:
    """Contact wrenches (l, 6); one row of zeros if there are none, as results must not be empty."""
    return Argument("forces", (max(len(closure.constraints), 1), 6))


def row_accelerations(places: StagePlaces) -> list:
    """Jc a + bias, from A = J a of the frames and a."""
    c: DelassusOperator = places["c"]
    return add(c.apply(places.get("A", []), places.get("a", [])), c.bias)


def _contact_wrenches(places: StagePlaces, algebra: Algebra, multipliers: list) -> list:
    """The contact wrenches of multipliers, padded to the size of the output."""
    forces = places["c"].forces(multipliers)
    return forces + [0.0] * (_wrench_output(algebra.closure).size - len(forces))


# -- the functions ---------------------------------------------------------------------------------


def dynamics(
    algebra: Algebra,
    method: str,
    frames: tuple[str, ...] = (),
    axes: str = "world",
    redundant: bool = False,
) -> StageProgramCode:
    """a, the multipliers, the contact wrenches and the ill-conditioning, by one of METHODS;
    `redundant` skips redundant rows."""
    if method in SPLIT:
        return _split_dynamics(algebra, method, frames, axes, redundant)

    def solve(places: StagePlaces) -> StagePlaces:
        torques = hub_torques(algebra, places["T"]) if method == HUB else []
        multipliers, ill_conditioning, hub = places["solver"](
            [-x for x in row_accelerations(places)], torques
        )
        return {
            **_multiplier_places(places, algebra, multipliers, ill_conditioning),
            **places["c"].apply_transpose(multipliers),
            "hub a": hub,
        }

    *first, ending = restrict_stages(algebra, method, *METHODS[method](algebra, frames, axes))
    stages: dict[str, StageDefinition] = {f"stage {i + 1}": stage for i, stage in enumerate(first)}
    stages |= {**solver_stages(algebra, method, redundant), "solve": solve, "last": ending}
    named = dict(HUB_PLACES)
    if method in CORRECTED:
        named[("last", "a")] = "da"
        stages["sum"] = lambda places: {
            "a": with_hub_accelerations(algebra, add(places["a"], places["da"]), places["hub a"])
        }
    name = f"closed dynamics {method} {axes} {','.join(frames)}" + " redundant" * redundant
    return _dynamics_code(algebra, name, frames, stages, named)


def _split_dynamics(
    algebra: Algebra, method: str, frames: tuple[str, ...], axes: str, redundant: bool
) -> StageProgramCode:
    """`dynamics` with a = a_1 + a_2, the parts due to the arms' torques and to a': S4 (6.22)."""
    closure = algebra.closure
    held = [k for k, name in enumerate(closure.frames) if _is_held(closure.model, name)]

    def solve(places: StagePlaces) -> StagePlaces:
        c, motions = places["c"], places.get("A", [])
        of_object = [x if i // 6 in held else 0.0 for i, x in enumerate(motions)]
        of_arms = [0.0 if i // 6 in held else x for i, x in enumerate(motions)]
        at_rest = [0.0] * closure.model.nv
        rights = {
            "1": c.apply(of_arms, places.get("a", [])),
            "2": add(c.apply(of_object, at_rest), c.bias),  # -a'(C), S4 (2.15b)
        }
        parts = {name: places["solver"]([-x for x in y], []) for name, y in rights.items()}
        (lam_1, ill_1, _), (lam_2, ill_2, _) = parts.values()
        found = _multiplier_places(places, algebra, add(lam_1, lam_2), ill_1 + ill_2)
        for name, (lam, *_) in parts.items():
            forces = c.apply_transpose(lam)
            found |= {f"f {name}": forces["f"], f"u {name}": forces["u"]}
        return found

    *first, last_1, last_2 = METHODS[method](algebra, frames, axes)
    stages: dict[str, StageDefinition] = {f"stage {i + 1}": stage for i, stage in enumerate(first)}
    stages |= {**solver_stages(algebra, method, redundant), "solve": solve}
    stages |= {"1": last_1, "2": last_2}
    stages["sum"] = lambda places: {"a": add(places["a 1"], places["a 2"])}
    named = {(name, x): f"{x} {name}" for name in "12" for x in "fua"}
    name = f"closed dynamics {method} {axes} {','.join(frames)}" + " redundant" * redundant
    return _dynamics_code(algebra, name, frames, stages, named)


def _is_held(model: Model, frame: str) -> bool:
    """Whether a frame is on an object: a free body that carries no other body."""
    k = model.frame(frame).body
    return model.joints[k].kind == "free" and k not in model.parent and model.parent[k] == WORLD


def _multiplier_places(
    places: StagePlaces, algebra: Algebra, multipliers: list, ill_conditioning: AnyScalar
) -> StagePlaces:
    """The multipliers, their contact wrenches, and the ill-conditioning of the solve."""
    return {
        "lam": multipliers,
        "ill_conditioning": [ill_conditioning],
        "forces": _contact_wrenches(places, algebra, multipliers),
    }


def _dynamics_code(
    algebra: Algebra,
    name: str,
    frames: tuple[str, ...],
    stages: dict[str, StageDefinition],
    named: dict[tuple[str, str], str],
) -> StageProgramCode:
    """The program of stages that compute a, lam, forces and ill_conditioning."""
    closure = algebra.closure
    outputs = (
        Argument("a", (closure.model.nv,), "v"),
        Argument("lam", (closure.size,)),
        _wrench_output(closure),
        Argument("ill_conditioning", ()),
    )
    inputs = dynamics_arguments(algebra, frames)
    return StageProgramCode(
        name, "Omega lambda = -(Jc a_f + bias)", inputs, outputs, algebra, stages, named
    )


def dynamics_of_rank(
    algebra: Algebra, rank: int, forces: bool, frames: tuple[str, ...] = (), axes: str = "world"
) -> StageProgramCode:
    """`dynamics` with redundant rows: `rank` independent combinations W* c' and lambda = W mu.

    With `forces`, lambda is projected onto the range of Jc V, which gives the least norm. W (m,
    rank) and V (nv, rank) are inputs, which derivatives hold constant; `RangeNullSplit` of
    `implicit_theorem.py` computes them for a state.
    """
    whole, m, nv = (
        dynamics(algebra, "free", frames, axes),
        algebra.closure.size,
        algebra.closure.model.nv,
    )

    def factor(places: StagePlaces) -> StagePlaces:
        W = _matrix(places["W"], m, rank)
        W_t = small_matrices.transpose(W)
        Omega_W = [small_matrices.apply(places["Omega"], column) for column in W_t]
        scales = [dot([x * x for x in column], places["row scales"]) for column in W_t]
        solve_reduced = omega_solver([[dot(x, y) for y in Omega_W] for x in W_t], scales)

        def solve(right: list, torques: list) -> Solution:
            mu, ill_conditioning, hub = solve_reduced(small_matrices.apply(W_t, right), torques)
            return small_matrices.apply(W, mu), ill_conditioning, hub

        return {"solver": solve}

    def least_norm(places: StagePlaces) -> StagePlaces:
        columns = small_matrices.transpose(_matrix(places["V"], nv, rank))
        Q = [[dot(row, column) for column in columns] for row in places["Jc"]]
        Q_t = small_matrices.transpose(Q)
        normal = small_matrices.factor([[dot(x, y) for y in Q_t] for x in Q_t])
        shares = small_matrices.solve(normal, small_matrices.apply(Q_t, places["lam"]))
        return {"forces": _contact_wrenches(places, algebra, small_matrices.apply(Q, shares))}

    stages: dict[str, StageDefinition] = {**whole.stages, "factor": factor}
    if forces:
        stages |= {**motion_rows(algebra), "least norm": least_norm}
    inputs = (*whole.inputs, Argument("W", (m, rank)), Argument("V", (nv, rank)))
    name = f"{whole.name} by {rank} rows" + ", forces" * forces
    return replace(whole, name=name, inputs=inputs, stages=stages)


def _matrix(entries: list, m: int, n: int) -> list[list]:
    """The matrix (m, n) of entries in row-major order."""
    return [entries[i * n : (i + 1) * n] for i in range(m)]


def single_result(
    dynamics: StageProgramCode, output: str, motors: list[int] | None = None
) -> StageProgramCode:
    """One result of `dynamics`; it and its derivatives are NaN where the solve is ill-conditioned.

    With `motors`, the velocity coordinates with motors, tau has entries for these alone.
    """
    nv = dynamics.model.nv

    def mask(places: StagePlaces) -> StagePlaces:
        good = less(places["ill_conditioning"][0], ILL_CONDITIONED)
        one_or_nan = good / good
        return {output: [x * one_or_nan for x in places[output]]}

    outputs = tuple(arg for arg in dynamics.outputs if arg.name == output)
    single = replace(
        dynamics,
        name=f"{dynamics.name} {output} alone",
        outputs=outputs,
        stages={**dynamics.stages, "mask": mask},
    )
    if motors is None:
        return single

    def fill(places: StagePlaces) -> StagePlaces:
        by_coordinate = dict(zip(motors, places["tau"], strict=True))
        return {"tau": [by_coordinate.get(i, 0.0) for i in range(nv)]}

    inputs = tuple(
        Argument("tau", (len(motors),)) if arg.name == "tau" else arg for arg in dynamics.inputs
    )
    return replace(
        single,
        name=f"{single.name} motors {motors}",
        inputs=inputs,
        stages={"motors": fill, **single.stages},
    )


def added_inertia_dynamics(closure: Closure, method: str) -> StageProgramCode:
    """`dynamics` with D + X in place of D, for a diagonal input X:
    (M + X) a - Jc* lambda = tau - C v - g, Jc a + bias = 0."""
    plain = dynamics(Algebra(closure, added=True), method, redundant=True)
    inputs = (*plain.inputs, Argument(ADDED_INERTIA, (closure.model.nv,), "v"))
    return replace(plain, name=f"{plain.name} added inertia", inputs=inputs)


def terms(algebra: Algebra, frames: tuple[str, ...] = (), axes: str = "world") -> StageProgramCode:
    """The free accelerations a_f, Omega, and Jc a_f + bias, for states with a singular Omega."""
    m, nv = algebra.closure.size, algebra.closure.model.nv
    stages: dict[str, StageDefinition] = {
        "free": METHODS["free"](algebra, frames, axes)[0],
        **omega_stages(algebra),
    }
    stages["rows of a_f"] = lambda places: {
        "row_accelerations": row_accelerations(places),
        "Omega": flatten(places["Omega"]),
    }
    outputs = (
        Argument("a", (nv,), "v"),
        Argument("Omega", (m, m)),
        Argument("row_accelerations", (m,)),
    )
    name = f"closed terms {axes} {','.join(frames)}"
    return StageProgramCode(
        name,
        "Omega = Jc M^-1 Jc*",
        dynamics_arguments(algebra, frames),
        outputs,
        algebra,
        stages,
        {},
    )


def omega(algebra: Algebra) -> StageProgramCode:
    """Omega = Jc M^-1 Jc*."""
    m = algebra.closure.size
    stages = omega_stages(algebra) | {"matrix": lambda places: {"Omega": flatten(places["Omega"])}}
    outputs = (Argument("Omega", (m, m)),)
    return StageProgramCode(
        "closed omega", "Omega = Jc M^-1 Jc*", arguments(algebra, "q"), outputs, algebra, stages, {}
    )


def correction(algebra: Algebra) -> StageProgramCode:
    """M^-1 Jc* lambda and the contact wrenches of lambda; accelerations of a thin hub, which has no
    M^-1, are zero."""

    def forces(places: StagePlaces) -> StagePlaces:
        return places["c"].apply_transpose(places["lam"]) | {
            "forces": _contact_wrenches(places, algebra, places["lam"])
        }

    closure = algebra.closure
    inputs = arguments(algebra, "q", "lam")
    outputs = (Argument("a", (closure.model.nv,), "v"), _wrench_output(closure))
    (equation,) = restrict_stages(algebra, HUB if algebra.is_thin else "", algebra.correction)
    return program_of_rules(
        "closed correction",
        "M^-1 Jc* lambda",
        inputs,
        outputs,
        algebra,
        forces=forces,
        correction=equation,
    )


def inertias(algebra: Algebra) -> StageProgramCode:
    """M of the hub and, stacked, B* S^-1 B of each group; their sum is the effective inertia."""
    hub = algebra.hub
    assert hub is not None
    n = len(hub.coordinates)

    def added(places: StagePlaces) -> StagePlaces:
        M, blocks = places["hub blocks"]
        parts = [added_inertia(n, block) for block in blocks]
        return {
            "own": flatten(M),
            "added": [x for A, _ in parts for x in flatten(A)],
            "ill_conditioning": [ill_conditioning for _, ill_conditioning in parts],
        }

    count = len(hub.groups)
    outputs = (
        Argument("own", (n, n)),
        Argument("added", (count * n, n)),
        Argument("ill_conditioning", (count,)),
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
    """The position errors e(q) of all rows, and their rates Jc v."""

    def errors(places: StagePlaces) -> StagePlaces:
        return {"residual": places["c"].errors(places["q"]) + places["c"].rates(places["v"])}

    outputs = (Argument("residual", (2, algebra.closure.size)),)
    return program_of_rules(
        "closed residual",
        "[e(q); Jc v]",
        arguments(algebra, "q", "v"),
        outputs,
        algebra,
        errors=errors,
    )


def bias(algebra: Algebra) -> StageProgramCode:
    """dJc/dt v = c' at a = 0, for velocities that satisfy the constraints."""
    outputs = (Argument("bias", (algebra.closure.size,)),)
    inputs = arguments(algebra, "q", "v")
    return program_of_rules(
        "closed bias",
        "dJc/dt v",
        inputs,
        outputs,
        algebra,
        bias=lambda places: {"bias": places["c"].bias},
    )


def full_bias(algebra: Algebra) -> StageProgramCode:
    """dJc/dt v = c' at a = 0, for any velocities."""
    outputs = (Argument("bias", (algebra.closure.size,)),)
    inputs = arguments(algebra, "q", "v")
    return program_of_rules(
        "closed full bias",
        "dJc/dt v",
        inputs,
        outputs,
        algebra,
        bias=lambda places: {"bias": places["c"].full_bias},
    )


def motions(algebra: Algebra) -> StageProgramCode:
    """W and W' of S4: the motion of the object relative to the arm, the negative of that of the
    first frame relative to the second. Padded with zeros."""
    shape = _wrench_output(algebra.closure).shape
    outputs = (Argument("rates", shape), Argument("accelerations", shape))

    def relative(places: StagePlaces) -> StagePlaces:
        states = places["c"].states
        rates = [-x for state in states for x in (*state.relative.w, *state.relative.v)]
        accelerations = [-x for state in states for x in (*state.wd, *state.vd)]
        padding = [0.0] * (outputs[0].size - len(rates))
        return {"rates": rates + padding, "accelerations": accelerations + padding}

    inputs = arguments(algebra, "q", "v", "a")
    return program_of_rules("closed motions", "W, W'", inputs, outputs, algebra, relative=relative)


def projection(algebra: Algebra, method: str, redundant: bool = False) -> StageProgramCode:
    """One Newton step onto the constraints, the smallest in the metric of the mass matrix:

    dq = -M^-1 Jc* Omega^-1 e(q)        dv = -M^-1 Jc* Omega^-1 Jc v
    """

    nv = algebra.closure.model.nv

    def solve(places: StagePlaces) -> StagePlaces:
        c, results = places["c"], {"ill_conditioning": [0.0]}
        for name, rows in (("dq", c.errors(places["q"])), ("dv", c.rates(places["v"]))):
            multipliers, ill_conditioning, hub = places["solver"](
                [-x for x in rows], hub_torques(algebra, [0.0] * nv)
            )
            forces = c.apply_transpose(multipliers)
            total = results["ill_conditioning"][0] + ill_conditioning
            results |= {
                f"f {name}": forces["f"],
                f"u {name}": forces["u"],
                f"hub {name}": hub,
                "ill_conditioning": [total],
            }
        return results

    def with_hub(places: StagePlaces) -> StagePlaces:
        return {
            name: with_hub_accelerations(algebra, places[name], places[f"hub {name}"])
            for name in ("dq", "dv")
        }

    outputs = (
        Argument("dq", (nv,), "v"),
        Argument("dv", (nv,), "v"),
        Argument("ill_conditioning", ()),
    )
    name = f"closed projection {method}" + " redundant" * redundant
    named = HUB_PLACES | {
        (x, own): f"{own} {x}" if own in "fu" else x
        for x in ("dq", "dv")
        for own in ("f", "u", "a")
    }
    steps = dict.fromkeys(("dq", "dv"), restrict_stages(algebra, method, algebra.correction)[0])
    stages = {
        **solver_stages(algebra, method, redundant),
        "solve": solve,
        **steps,
        "with hub": with_hub,
    }
    inputs = arguments(algebra, "q", "v")
    return StageProgramCode(
        name, "-M^-1 Jc* Omega^-1 [e, Jc v]", inputs, outputs, algebra, stages, named
    )


def motion_rows(algebra: Algebra) -> dict[str, StageDefinition]:
    """The stages that store the rows of Jc in the place "Jc", as lists."""
    closure = algebra.closure
    nv, width = closure.model.nv, 6 * len(closure.frames)

    def rows(places: StagePlaces) -> StagePlaces:
        J = places.get("J", [])
        units = [[1.0 if i == j else 0.0 for j in range(nv)] for i in range(nv)]
        columns = [
            places["c"].apply([J[r * nv + i] for r in range(width)], unit)
            for i, unit in enumerate(units)
        ]
        return {"Jc": [[column[r] for column in columns] for r in range(closure.size)]}

    motion: dict[str, StageDefinition] = {"J": algebra.motion} if closure.frames else {}
    return motion | {"Jc": rows}


def jacobian(algebra: Algebra) -> StageProgramCode:
    """Jc (m, nv), the Jacobian of the constraint rows."""
    closure, inputs = algebra.closure, arguments(algebra, "q")
    outputs = (Argument("Jc", (closure.size, closure.model.nv)),)
    stages = motion_rows(algebra) | {"matrix": lambda places: {"Jc": flatten(places["Jc"])}}
    return StageProgramCode(
        "closed jacobian", "Jc = Z [J; F]", inputs, outputs, algebra, stages, {}
    )
