"""The way of an equation through the passes, as text: derivation, sweeps, axes and cost."""

from __future__ import annotations

from psiphi.algebra.expressions.letters import inverse_letter
from psiphi.algebra.expressions.notation import result_names, show_poly
from psiphi.compiler.autodiff.inverse_dynamics_jacobian import InverseDynamicsJacobian
from psiphi.compiler.equations import WHOLE, Equation
from psiphi.compiler.lower.column_sweeps import LoweredColumns
from psiphi.compiler.lower.matrix_sweeps import LoweredMatrix
from psiphi.compiler.lower.vector_sweeps import Lowered
from psiphi.compiler.passes import choose, is_large, resolve, tree_of
from psiphi.compiler.pseudocode import pseudocode
from psiphi.compiler.tape.tape import Count


def explain(equation: Equation, count: Count) -> str:
    """The equation as written, and the result of each pass."""
    chosen = choose(equation)
    names = result_names(chosen.polys)
    lines = [f"{names[name]} = {e}" for name, e in equation.results.items()]
    if resolved := inverses(equation):
        lines += ["", "resolve:", *(f"  {line}" for line in resolved)]
    if chosen.derivation is not None and chosen.derivation.steps:
        whole = chosen.name == WHOLE
        lines += ["", "rewrite, with M φ* a + b as one body force:" if whole else "rewrite:"]
        lines += str(chosen.derivation).splitlines()[1:]
    which, forms = "first" if is_large(equation.model) else "cheapest", len(equation.forms)
    lines += ["", f"choose the {which} of {forms} forms:" if forms > 1 else "as written:"]
    lines += [f"  {names[name]} = {show_poly(poly)}" for name, poly in chosen.polys.items()]
    plural = "" if sweep_count(equation) == 1 else "s"
    lines += ["", f"lower to {sweep_count(equation)} sweep{plural}{_fusion_note(equation)}:"]
    lines += [*(f"  {line}" for line in loops(equation)), ""]
    moved = tree_of(equation).moves_inertia
    note = "; inertia that does not affect a joint is moved to its parent" if moved else ""
    lines.append(f"frame: links in Denavit-Hartenberg axes{note}")
    order = "O(N) plus the entries of the result" if equation.is_matrix else "O(N)"
    c = count
    operations = f"{c.mul} mul, {c.add} add, {c.div} div, {c.sqrt} sqrt; {c.trig} sin/cos"
    lines.append(f"trace: {c.flops} flops ({operations}), {order}")
    code = "loops over links" if is_large(equation.model) else "straight-line code"
    lines.append(f"emit: {code}")
    lines.append("load: from the cache, or compiled")
    return "\n".join(lines)


def inverses(equation: Equation) -> list[str]:
    """What each inverse became, and by which identity."""
    lines = []
    for name, rules in resolve(equation).items():
        for i, inner in enumerate(equation.results[name].inverses):
            rule = rules.resolved.get((inverse_letter(i),))
            if rule is not None:
                lines.append(f"({inner})⁻¹ = {show_poly(rule.rest)}    [{rule.name}]")
    return list(dict.fromkeys(lines))


def loops(equation: Equation) -> list[str]:
    """The sweeps of the chosen form, as the papers' pseudo-code."""
    lowered = choose(equation).lowered
    if isinstance(lowered, LoweredColumns):
        return [
            "for every column x of the identity:",
            *(f"  {line}" for line in pseudocode(lowered.lowered)),
        ]
    return lowered.loops if isinstance(lowered, InverseDynamicsJacobian) else pseudocode(lowered)


def sweep_count(equation: Equation) -> int:
    """The number of sweeps."""
    lowered = choose(equation).lowered
    if isinstance(lowered, LoweredColumns):
        return lowered.sweeps
    return (
        len(lowered.sweeps)
        if isinstance(lowered, (LoweredMatrix, InverseDynamicsJacobian))
        else len(lowered.schedule.directions)
    )


def _fusion_note(equation: Equation) -> str:
    """The number of sweeps before neighbours are fused, if there are more of them."""
    lowered = choose(equation).lowered
    if (
        equation.velocities
        or not isinstance(lowered, Lowered)
        or lowered.unfused_sweeps <= sweep_count(equation)
    ):
        return ""
    return f" (fused from {lowered.unfused_sweeps})"
