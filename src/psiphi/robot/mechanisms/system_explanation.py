"""The forward dynamics of a closed system as text: equations, rewritten forms, sweeps and cost."""

from __future__ import annotations

from psiphi.algebra.expressions.notation import show_poly
from psiphi.compiler.equations import Equation
from psiphi.compiler.explanation import inverses
from psiphi.compiler.explanation import loops as loops_of
from psiphi.compiler.passes import choose, code
from psiphi.compiler.sweeps.stage_loops import StagedCode
from psiphi.robot.mechanisms.solve.constraint_solve import deficient_groups
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra
from psiphi.robot.mechanisms.solve.rccfd_methods import CORRECTED, HUB, METHODS
from psiphi.robot.mechanisms.solve.stage_program import StageProgramCode

FREE = {"a": "a_f"}  # the free acceleration, without constraint forces


def explanation(algebra: Algebra, program: StageProgramCode, reason: str = "") -> str:
    """The stages in order, with the dense solve before the last one; the operation counts; and the
    reason for the choice of the method."""
    method = program.name.split()[2]
    *before, last = METHODS[method](algebra, (), "world")
    lines = _notation(algebra)
    for stage in (*before, *algebra.compliances.values()):
        lines += _stage(algebra, stage, FREE)
    solve = _hub_solve(algebra) if method == HUB else _omega_solve(algebra)
    lines += ["", *solve, *_stage(algebra, last, {"a": "Δa"} if method in CORRECTED else {})]
    lines += ["", "a = a_f + Δa"] if method in CORRECTED else []
    c = program.count
    growth = f"the sweeps are O(N), the solve is {'O(m)' if method == HUB else 'O(m³)'}"
    shared = (
        "Stages are loops over the links"
        if isinstance(code(program), StagedCode)
        else "Terms that stages share are computed once"
    )
    lines += ["", f"{shared}; {growth}.", *([f"Method: {reason}."] if reason else [])]
    lines += [
        f"{c.flops} flops ({method}): {c.mul} mul, {c.add} add, {c.div} div, {c.sqrt} sqrt; "
        f"{c.trig} sin/cos"
    ]
    return "\n".join(lines)


def _notation(algebra: Algebra) -> list[str]:
    """The meaning of the letters, and the factors of the inverse mass matrix."""
    closure = algebra.closure
    names = [part.name for part in (*closure.constraints, *closure.mimics)]
    lines = [f"c' = Jc a + dJc/dt v = 0, Jc = Z [J; F]: {closure.size} rows of {', '.join(names)}"]
    if closure.frames:
        lines += [f"J = B* φ* H*: motions of {', '.join(closure.frames)}, in frame axes"]
    if closure.mimics:
        lines += [f"F: {', '.join(f'{f.joint} follows {f.leader}' for f in closure.mimics)}"]
    known = (line for equation in algebra.compliances.values() for line in inverses(equation))
    return lines + list(dict.fromkeys(known))


def _omega_solve(algebra: Algebra) -> list[str]:
    """The dense solve, of the size of the constraints."""
    frames, joints = bool(algebra.closure.frames), bool(algebra.closure.mimics)
    omega = {(True, False): "Z X Z*", (True, True): "Z [X, U; U*, Y] Z*", (False, True): "F Y F*"}[
        frames, joints
    ]
    rows = {(True, False): "Z A", (True, True): "Z [A; F a_f]", (False, True): "F a_f"}[
        frames, joints
    ]
    solve = f"Ω λ = -({rows} + dJc/dt v),   {'f' if frames else 'u'} of Jc* λ"
    return [f"Ω = {omega}", f"{solve}        dense, {algebra.closure.size} rows"]


def _hub_solve(algebra: Algebra) -> list[str]:
    """The elimination of the hub, of the size of the hub."""
    hub = algebra.hub
    assert hub is not None
    sizes = " + ".join(str(len(group)) for group in hub.groups)
    n, in_trunk = len(hub.coordinates), len(hub.trunk_coordinates)
    deficient = sum(deficient_groups(algebra))
    groups = f"{len(hub.groups)} groups of rows i ({sizes})"
    lines = [f"Around {hub.name}, {groups}; B: the columns of its {n} coordinates"]
    if in_trunk:
        end = algebra.closure.model.bodies[hub.trunk[-1]].name
        head = f"{hub.name} and " if hub.bodies else ""
        lines = [f"Around {head}the trunk up to {end}, {groups}, the trunk at rest in S_i"]
        lines += [
            f"B: the columns of {n} + {in_trunk} coordinates; those of the trunk are U = J M⁻¹, "
            "with Y = M⁻¹ in M_hub and T = 0"
        ]
        n += in_trunk
    lines += ["S_i = Z_i X Z_i*,   P = M_hub + Σ B_i* S_i⁻¹ B_i,   r = -(Z A + dJc/dt v)"]
    lines += [f"P d = T + Σ B_i* S_i⁻¹ r_i        dense, {n} rows"]
    lines += ["λ_i = S_i⁻¹ (r_i - B_i d),   f of Jc* λ,   a of the hub is d"]
    if deficient:
        lines += [
            f"{deficient} of the groups cannot move all their rows; the other rows constrain d, by "
            "Q = Σ C_i* C_i"
        ]
    return lines


def _stage(algebra: Algebra, stage: Equation, named: dict[str, str]) -> list[str]:
    """name = as written = rewritten, and the loops of its sweeps."""
    lines = [""]
    for name, e in stage.results.items():
        written = _short(algebra, str(e))
        rewritten = _short(algebra, show_poly(choose(stage).polys[name]))
        head = f"{named.get(name, name)} = "
        lines += [head + written]
        lines += [f"{'= ':>{len(head)}}{rewritten}"] if rewritten != written else []
    loops = "\n".join(f"    {_short(algebra, line)}" for line in loops_of(stage))
    for name in stage.results:
        loops = loops.replace(f" {name}(k) =", f" {named.get(name, name)}(k) =")
    return [*lines, loops]


def _short(algebra: Algebra, text: str) -> str:
    """`text` with B in place of B(all frames)."""
    return text.replace(str(algebra.B), "B") if algebra.closure.frames else text
