"""Rewriting steps on an expression before it is multiplied out, as in the papers.

    B* φ* H* (I - H ψ K)* D⁻¹ (I - H ψ K) H φ B  =  B* ψ* H* D⁻¹ H ψ B        by Lemma 4, twice

Each step is a row of the table of identities that the rules prove, as the tests check. These steps
make derivations shorter; they prove nothing new.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.notation import UNICODE
from psiphi.algebra.expressions.terms import Term, adjoint, product, scaled, total
from psiphi.algebra.rewriting.identities import FACTORED, rows

FoundStep = tuple[Term, str, str] | None  # the new term, the rule as text, its source
Inverse = Callable[[Term], tuple[Term, str] | None]
MAX_STEPS = 40


@dataclass(frozen=True, eq=False)
class FactoredStep:
    """A step: the rule as text, its source, the whole expression before and after."""

    rule: str
    source: str
    before: Expression
    after: Expression
    position: int = 0

    def __str__(self) -> str:
        return f"{self.before}  =  {self.after}"


def factored_steps(expression: Expression, inverse: Inverse) -> list[FactoredStep]:
    """The steps that apply, in order; `inverse` returns (t⁻¹, source) for t, or None."""
    done: list[FactoredStep] = []
    while len(done) < MAX_STEPS and (
        found := _next_cancellation(expression.term) or _next_step(expression.term, inverse)
    ):
        after = Expression(found[0], expression.model)
        done.append(FactoredStep(found[1], found[2], expression, after))
        expression = after
    return done


def cancelled(term: Term) -> Term:
    """The term without products X⁻¹ X and X X⁻¹, as far as they are written out."""
    while found := _next_cancellation(term):
        term = found[0]
    return term


def _next_cancellation(term: Term) -> FoundStep:
    """X⁻¹ X = I = X X⁻¹ in a product, a sum or a multiple; X is a factor or several."""
    if term.op not in ("product", "sum", "scale"):
        return None
    for i, x in enumerate(term.args):
        if isinstance(x, Term) and (found := _next_cancellation(x)):
            return REBUILD[term.op](*term.args[:i], found[0], *term.args[i + 1 :]), *found[1:]
    return _cancel_factors(term.args) if term.op == "product" else None


def _cancel_factors(factors: tuple[Term, ...]) -> FoundStep:
    for i, x in enumerate(factors):
        if x.op != "inverse":
            continue
        inner = x.args[0]
        pattern = inner.args if inner.op == "product" else (inner,)
        n = len(pattern)
        for start in (i + 1, i - n):
            if start >= 0 and factors[start : start + n] == pattern:
                low, high = min(i, start), max(i + 1, start + n)
                rest = product(*factors[:low], *factors[high:])
                return rest, f"{UNICODE.text(Term('product', factors[low:high]))} → I", "X⁻¹ X = I"
    return None


def _next_step(term: Term, inverse: Inverse) -> FoundStep:
    if term.op == "inverse":
        known = inverse(term.args[0])
        return (
            (known[0], f"{UNICODE.text(term)} → {UNICODE.text(known[0])}", known[1])
            if known
            else None
        )
    for i, x in enumerate(term.args):
        if isinstance(x, Term) and (found := _next_step(x, inverse)):
            return REBUILD[term.op](*term.args[:i], found[0], *term.args[i + 1 :]), *found[1:]
    return _match_product(term.args) if term.op == "product" else None


REBUILD = {"product": product, "sum": total, "scale": scaled, "adjoint": adjoint}
PATTERNS = [
    (a.term.args, b.term, x.source)
    for x in rows(FACTORED)
    for a, b in ((x.lhs, x.rhs), (x.lhs.T, x.rhs.T))
]


def _match_product(factors: tuple[Term, ...]) -> FoundStep:
    """Rewrite a known product; or one that appears when a factor is distributed over a sum."""
    for pattern, result, source in PATTERNS:
        n = len(pattern)
        for i in range(len(factors) - n + 1):
            if factors[i : i + n] == pattern:
                return (
                    product(*factors[:i], result, *factors[i + n :]),
                    _rule_text(pattern, result),
                    source,
                )
    for pattern, result, source in PATTERNS:
        for i in range(len(factors) - 1):
            if split := _distribute(factors[i], factors[i + 1], pattern, result):
                return (
                    product(*factors[:i], split, *factors[i + 2 :]),
                    _rule_text(pattern, result),
                    source,
                )
    return None


def _rule_text(pattern: tuple[Term, ...], result: Term) -> str:
    return f"{UNICODE.text(Term('product', pattern))} → {UNICODE.text(result)}"


def _distribute(first: Term, second: Term, pattern: tuple[Term, ...], result: Term) -> Term | None:
    """first (x + y) distributed over the sum, if that makes the pattern appear; None otherwise."""
    if len(pattern) < 3 or second.op != "sum" or first != pattern[0]:
        return None
    parts, hits = [], 0
    for x in second.args:
        term = product(first, x)
        c, body = term.args if term.op == "scale" else (Fraction(1), term)
        if body.op == "product" and body.args[: len(pattern)] == pattern:
            term, hits = scaled(c, product(result, *body.args[len(pattern) :])), hits + 1
        parts.append(term)
    return total(*parts) if hits else None
