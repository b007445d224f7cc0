"""Inverses the algebra knows: rows (X, X⁻¹, source). X X⁻¹ = I = X⁻¹ X is provable for each row, and tested."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from psiphi.operators import Expression, Operators
from psiphi.operators.polynomial import Poly, scale
from psiphi.operators.terms import IDENTITY, Term, scaled
from psiphi.rewriting.rules import Rules

_s = Operators()
H, phi, psi, D, K, I, E_phi, E_psi, D_half = _s.H, _s.phi, _s.psi, _s.D, _s.K, _s.I, _s.E_phi, _s.E_psi, _s.D_half
W = I - H @ psi @ K  # the whitening filter of the papers

INVERSES: tuple[tuple[Expression, Expression, str], ...] = (
    (_s.mass, W.T @ D.inv @ W, "S3 Lemma 3 (13)"),
    (I + H @ phi @ K, W, "S3 Lemma 2 (12)"),
    (_s.mass_half, D_half.inv @ W, "S3 Lemma 2 (12)"),
    (phi, I - E_phi, "S0 (a.11)"),
    (psi, I - E_psi, "S0 (a.10)"),
    (I + K @ H @ phi, I - K @ H @ psi, "S3 Lemma 5"),
    (I + phi @ K @ H, I - psi @ K @ H, "S3 Lemma 5"),
    (D, D.inv, "S0 (4.6)"),
    (D_half, D_half.inv, "S1 (26)"),
)


@lru_cache
def _forms(rules: Rules) -> tuple[tuple[Poly, Term, str], ...]:
    """Both directions of every row and of its adjoint, X in normal form."""
    rows = [(x, y, source) for a, b, source in INVERSES for x, y in ((a, b), (b, a), (a.T, b.T), (b.T, a.T))]
    return tuple((rules.reduce(x.poly()), y.term, source) for x, y, source in rows)


def known_inverse(p: Poly, rules: Rules) -> tuple[Term, str] | None:
    """(p⁻¹, source) for p in normal form, when p is a multiple of a known X or of the identity."""
    if set(p) == {()}:
        return scaled(1 / p[()], IDENTITY), "(c I)⁻¹ = I / c"
    for x, y, source in _forms(rules):
        if c := ratio(p, x):
            return scaled(1 / c, y), source
    return None


def ratio(p: Poly, q: Poly) -> Fraction | None:
    """c with p = c q, or None."""
    if not p or p.keys() != q.keys():
        return None
    word = next(iter(p))
    c = p[word] / q[word]
    return c if scale(q, c) == p else None
