"""The product rule: the derivative of a term from those of its letters.

d(A B) = dA B + A dB     d(A*) = (dA)*     d(A⁻¹) = -A⁻¹ dA A⁻¹
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from psiphi.algebra.expressions.letters import Letter
from psiphi.algebra.expressions.terms import Term, adjoint, product, scaled, total

LetterRule = Callable[[Letter], Term | None]  # derivative of a letter without star; None: zero


def differentiate(term: Term, rule: LetterRule) -> Term | None:
    """The derivative of a term; None if it is zero."""
    if term.op == "letter":
        x = term.args[0]
        inner = rule(x.T if x.starred else x)
        return adjoint(inner) if inner is not None and x.starred else inner
    if term.op == "product":
        factors, parts = term.args, []
        for i, factor in enumerate(factors):
            change = differentiate(factor, rule)
            parts += [] if change is None else [product(*factors[:i], change, *factors[i + 1 :])]
        return total(*parts) if parts else None
    if term.op == "sum":
        found = [
            change for change in (differentiate(x, rule) for x in term.args) if change is not None
        ]
        return total(*found) if found else None
    change = differentiate(term.args[-1], rule)
    if change is None or term.op == "adjoint":
        return None if change is None else adjoint(change)
    return (
        scaled(term.args[0], change)
        if term.op == "scale"
        else scaled(Fraction(-1), product(term, change, term))
    )
