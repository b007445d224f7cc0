"""An equation's way through the passes, in words: what was written, what it was rewritten to, the loops, the cost."""

from __future__ import annotations

from psiphi.algebra.expressions.letters import inverse_letter
from psiphi.algebra.expressions.notation import result_names, show_poly
from psiphi.compiler.autodiff.inverse_dynamics_jacobian import InverseDynamicsJacobian
from psiphi.compiler.equations import WHOLE, Equation
from psiphi.compiler.lower.column_sweeps import LoweredColumns
from psiphi.compiler.lower.matrix_sweeps import LoweredMatrix
from psiphi.compiler.lower.vector_sweeps import Lowered
from psiphi.compiler.passes import choose, framed, is_large, resolve
from psiphi.compiler.pseudocode import loops as written_out
from psiphi.compiler.tape.tape import Count


def explain(equation: Equation, count: Count) -> str:
    """What is written; then pass by pass: the derivation, the loops it ends in, whose axes they run in, what they cost."""
    form = choose(equation)
    called = result_names(form.polys)
    lines = [f"{called[name]} = {e}" for name, e in equation.results.items()]
    if known := inverses(equation):
        lines += ["", "resolve:", *(f"  {line}" for line in known)]
    if form.derivation is not None and form.derivation.steps:
        lines += [
            "",
            "rewrite, with M φ* a + b as one body force:" if form.name == WHOLE else "rewrite:",
        ]
        lines += str(form.derivation).splitlines()[1:]
    which = "the first" if is_large(equation.model) else "the cheapest"
    lines += [
        "",
        f"choose, of {len(equation.forms)} forms {which}:"
        if len(equation.forms) > 1
        else "as written:",
    ]
    lines += [f"  {called[name]} = {show_poly(poly)}" for name, poly in form.polys.items()]
    plural = "" if sweeps(equation) == 1 else "s"
    lines += ["", f"lower to {sweeps(equation)} sweep{plural}{_unfused(equation)}:"]
    lines += [*(f"  {line}" for line in loops(equation)), ""]
    felt = ", inertia that joints do not feel on their parents" if framed(equation).moves else ""
    lines.append(f"frame: links in Denavit and Hartenberg's axes{felt}")
    order = "O(N), and the entries of the result" if equation.is_matrix else "O(N)"
    c = count
    lines.append(
        f"trace: {c.flops} flops ({c.mul} mul, {c.add} add, {c.div} div, {c.sqrt} sqrt; {c.trig} sin/cos), {order}"
    )
    lines.append(f"emit: {'loops over links' if is_large(equation.model) else 'straight lines'}")
    lines.append("load: from the cache, or made now")
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
            *(f"  {line}" for line in written_out(lowered.lowered)),
        ]
    return lowered.loops if isinstance(lowered, InverseDynamicsJacobian) else written_out(lowered)


def sweeps(equation: Equation) -> int:
    """How many sweeps run."""
    lowered = choose(equation).lowered
    if isinstance(lowered, LoweredColumns):
        return lowered.sweeps
    return (
        len(lowered.sweeps)
        if isinstance(lowered, (LoweredMatrix, InverseDynamicsJacobian))
        else len(lowered.schedule.directions)
    )


def _unfused(equation: Equation) -> str:
    """How many sweeps the equation has before neighbours are fused; those of quasi-velocities are part of it."""
    lowered = choose(equation).lowered
    if equation.velocities or not isinstance(lowered, Lowered) or lowered.chain <= sweeps(equation):
        return ""
    return f" ({lowered.chain} as written, fused)"
