"""The inverses in the table of identities. Tests prove X X⁻¹ = I = X⁻¹ X for each row."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial

from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.terms import IDENTITY, Poly, Term, scale_poly, scaled
from psiphi.algebra.rewriting.identities import INVERSE, rows
from psiphi.algebra.rewriting.rewrite_rules import Rules


def inverse_rows() -> list[tuple[Expression, Expression, str]]:
    """(X, X⁻¹, source) of each row."""
    return [(Expression(x.lhs.term.args[0]), x.rhs, x.source) for x in rows(INVERSE)]


@lru_cache
def _normal_forms(rules: Rules) -> tuple[tuple[Poly, Term, str], ...]:
    """(X in normal form, X⁻¹, source) for X and X⁻¹ of each row, and for their adjoints."""
    both = [
        (x, y, source)
        for a, b, source in inverse_rows()
        for x, y in ((a, b), (b, a), (a.T, b.T), (b.T, a.T))
    ]
    return tuple((rules.reduce(x.poly()), y.term, source) for x, y, source in both)


def known_inverses(rules: Rules) -> Callable[[Poly], tuple[Term, str] | None]:
    """The function p -> (p⁻¹, source); None if p is not a multiple of a known X or of I.

    p must be in the normal form of these rules.
    """
    return partial(_known_inverse, rules)


def _known_inverse(rules: Rules, p: Poly) -> tuple[Term, str] | None:
    if set(p) == {()}:
        return scaled(1 / p[()], IDENTITY), "(c I)⁻¹ = I / c"
    for x, y, source in _normal_forms(rules):
        if c := ratio(p, x):
            return scaled(1 / c, y), source
    return None


def ratio(p: Poly, q: Poly) -> Fraction | None:
    """c with p = c q; None if there is none."""
    if not p or p.keys() != q.keys():
        return None
    word = next(iter(p))
    c = p[word] / q[word]
    return c if scale_poly(q, c) == p else None
