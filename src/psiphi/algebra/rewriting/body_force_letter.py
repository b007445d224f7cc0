"""A letter for the body force M phi* a + b, so that rewriting does not separate its two terms.

Newton-Euler sweeps compute the force of a body in one step; the separate terms would cost more.
"""

from __future__ import annotations

from psiphi.algebra.expressions.letters import A, B, letter, vector_letter
from psiphi.algebra.expressions.terms import Poly, accumulate

BODY_FORCE = vector_letter("body force", "link")
M_PHI_A = (letter("M"), letter("phi*"), A)


def fold(poly: Poly) -> Poly:
    """x M phi* a + x b -> x BODY_FORCE, for every prefix x."""
    out = dict(poly)
    for word, c in poly.items():
        if word[-3:] == M_PHI_A and out.get((*word[:-3], B)) == c:
            del out[word], out[(*word[:-3], B)]
            out[(*word[:-3], BODY_FORCE)] = c
    return out


def unfold(poly: Poly) -> Poly:
    """x BODY_FORCE -> x M phi* a + x b."""
    out: Poly = {}
    for word, c in poly.items():
        tails = (M_PHI_A, (B,)) if word[-1:] == (BODY_FORCE,) else (word[-1:],)
        for tail in tails:
            accumulate(out, {(*word[:-1], *tail): c})
    return out
