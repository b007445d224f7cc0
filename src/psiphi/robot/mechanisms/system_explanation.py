"""A closed system's forward dynamics, told: the equations, what the identities made of them, the sweeps, the cost."""

from __future__ import annotations

from psiphi.algebra.expressions.notation import show_poly
from psiphi.compiler.equations import Equation
from psiphi.compiler.explanation import inverses
from psiphi.compiler.explanation import loops as loops_of
from psiphi.compiler.passes import choose, code
from psiphi.compiler.sweeps.stage_loops import StagedCode
from psiphi.robot.mechanisms.solve.constraint_solve import low_groups
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra
from psiphi.robot.mechanisms.solve.rccfd_methods import CORRECTED, HUB, METHODS
from psiphi.robot.mechanisms.solve.stage_program import StageProgramCode

FREE = {"a": "a_f"}  # accelerations before the constraints act


def text(algebra: Algebra, circuit: StageProgramCode, why: str = "") -> str:
    """Stage by stage, the dense solve in its place before the last; and why this form was taken."""
    method = circuit.name.split()[2]
    *before, last = METHODS[method](algebra, (), "world")
    lines = _opening(algebra)
    for stage in (*before, *algebra.compliances.values()):
        lines += _stage(algebra, stage, FREE)
    coupled = _around_hub(algebra) if method == HUB else _coupling(algebra)
    lines += ["", *coupled, *_stage(algebra, last, {"a": "Δa"} if method in CORRECTED else {})]
    lines += ["", "a = a_f + Δa"] if method in CORRECTED else []
    c = circuit.count
    growth = (
        "the sweeps are O(N), the solve is O(m³)"
        if method != HUB
        else "the sweeps are O(N), the solve is O(m)"
    )
    shared = (
        "Stages are loops over the links"
        if isinstance(code(circuit), StagedCode)
        else "What stages share is computed once"
    )
    lines += ["", f"{shared}; {growth}.", *([f"Taken: {why}."] if why else [])]
    lines += [
        f"{c.flops} flops ({method}): {c.mul} mul, {c.add} add, {c.div} div, {c.sqrt} sqrt; {c.trig} sin/cos"
    ]
    return "\n".join(lines)


def _opening(algebra: Algebra) -> list[str]:
    """What the letters mean, and what became of the inverse of the mass matrix."""
    closure = algebra.closure
    names = [part.name for part in (*closure.constraints, *closure.follows)]
    lines = [f"c' = Jc a + dJc/dt v = 0, Jc = Z [J; F]: {closure.size} rows of {', '.join(names)}"]
    if closure.frames:
        lines += [f"J = B* φ* H*: motions of {', '.join(closure.frames)}, in their own axes"]
    if closure.follows:
        lines += [f"F: {', '.join(f'{f.joint} follows {f.leader}' for f in closure.follows)}"]
    known = (line for equation in algebra.compliances.values() for line in inverses(equation))
    return lines + list(dict.fromkeys(known))


def _coupling(algebra: Algebra) -> list[str]:
    """How the results meet in the small dense solve, of the size of the constraints."""
    frames, joints = bool(algebra.closure.frames), bool(algebra.closure.follows)
    omega = {(True, False): "Z X Z*", (True, True): "Z [X, U; U*, Y] Z*", (False, True): "F Y F*"}[
        frames, joints
    ]
    sensed = {(True, False): "Z A", (True, True): "Z [A; F a_f]", (False, True): "F a_f"}[
        frames, joints
    ]
    solve = f"Ω λ = -({sensed} + dJc/dt v),   {'f' if frames else 'u'} of Jc* λ"
    return [f"Ω = {omega}", f"{solve}        dense, {algebra.closure.size} rows"]


def _around_hub(algebra: Algebra) -> list[str]:
    """How the results meet where the hub is eliminated last."""
    hub = algebra.hub
    assert hub is not None
    sizes = " + ".join(str(len(group)) for group in hub.groups)
    n, shared, low = len(hub.coordinates), len(hub.shared), sum(low_groups(algebra))
    lines = [
        f"Around {hub.name}, {len(hub.groups)} groups of rows i ({sizes}); B: the columns of its {n} coordinates"
    ]
    if shared:
        end = algebra.closure.model.bodies[hub.trunk[-1]].name
        head = f"{hub.name} and " if hub.bodies else ""
        lines = [
            f"Around {head}the trunk up to {end}, {len(hub.groups)} groups of rows i ({sizes}), the trunk still in S_i"
        ]
        lines += [
            f"B: the columns of {n} + {shared} coordinates, those of the trunk U = J M⁻¹, with Y = M⁻¹ in M_hub and T = 0"
        ]
        n += shared
    lines += ["S_i = Z_i X Z_i*,   P = M_hub + Σ B_i* S_i⁻¹ B_i,   r = -(Z A + dJc/dt v)"]
    lines += [f"P d = T + Σ B_i* S_i⁻¹ r_i        dense, {n} rows"]
    lines += ["λ_i = S_i⁻¹ (r_i - B_i d),   f of Jc* λ,   a of the hub is d"]
    if low:
        lines += [
            f"{low} of the groups cannot move all their rows: what is left of these binds d, by Q = Σ C_i* C_i"
        ]
    return lines


def _stage(algebra: Algebra, stage: Equation, named: dict[str, str]) -> list[str]:
    """name = as written = rewritten, and the loops that run."""
    lines = [""]
    for name, e in stage.results.items():
        written, found = (
            _short(algebra, str(e)),
            _short(algebra, show_poly(choose(stage).polys[name])),
        )
        head = f"{named.get(name, name)} = "
        lines += [head + written] + ([f"{'= ':>{len(head)}}{found}"] if found != written else [])
    loops = "\n".join(f"    {_short(algebra, line)}" for line in loops_of(stage))
    for name in stage.results:
        loops = loops.replace(f" {name}(k) =", f" {named.get(name, name)}(k) =")
    return [*lines, loops]


def _short(algebra: Algebra, words: str) -> str:
    """B for B(all the frames)."""
    return words.replace(str(algebra.B), "B") if algebra.closure.frames else words
