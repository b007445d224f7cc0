"""Names for what completion finds: rows (lhs, rhs, name), each a rule, or the adjoint of one, under its name in the papers."""

from __future__ import annotations

from psiphi.operators import Expression, Operators
from psiphi.operators.polynomial import Poly, add, adjoint, scale
from psiphi.rewriting.rules import Rule

_s = Operators()
H, phi, psi, M, P, D, G, K, I = _s.H, _s.phi, _s.psi, _s.M, _s.P, _s.D, _s.G, _s.K, _s.I
E_phi, E_psi, rotor, S, Delta_phi, Delta_psi = _s.E_phi, _s.E_psi, _s.rotor, _s.S, _s.Delta_phi, _s.Delta_psi

Lemma = tuple[Expression, Expression, str]

LEMMAS: tuple[Lemma, ...] = (
    (H @ G, I, "H G = I, from S0 (a.1), (a.2)"),
    (H @ G, I - rotor @ D.inv, "H G with rotors, from S0 (a.1), (a.2)"),
    (P @ H.T, G @ D, "S0 (a.2)"),
    (S @ Delta_phi, E_phi, "S0 (a.4)"),
    (Delta_psi, Delta_phi - Delta_phi @ G @ H, "S0 (a.5)"),
    (E_phi @ G, K, "S3 (10)"),
    (E_psi, E_phi - K @ H, "S3 (10)"),
    (phi @ G, G + phi @ K, "S0 (a.13)"),
    (psi @ G, G, "ψ G = G, from H G = I"),
    (psi @ G, G + psi @ K @ rotor @ D.inv, "ψ G with rotors, from S0 (a.1), (a.2)"),
    (E_phi @ psi, psi - I + K @ H @ psi, "S3 Lemma 5"),
    (psi @ E_phi, psi - I + psi @ K @ H, "S3 Lemma 5"),
    (psi @ K @ H @ phi, phi - psi, "S0 A.2 (a.18)"),
    (phi @ K @ H @ psi, phi - psi, "S0 A.3 (a.28)"),
    (E_phi @ P @ E_phi.T, P - M + K @ D @ K.T, "S3 Lemma 1, Riccati"),
    (psi @ P @ E_phi.T, psi @ P - psi @ M + P @ E_phi.T, "S0 A.5, Riccati"),
    (phi @ P @ E_phi.T, phi @ P - phi @ M + phi @ K @ D @ K.T + P @ E_phi.T, "S0 A.6, Riccati"),
    (psi @ M @ phi.T, psi @ P + P @ phi.T - P, "S0 A.5 (a.46)"),
    (psi @ M @ psi.T, psi @ P + P @ psi.T - P, "S0 A.5 (a.47)"),
    (psi @ M @ psi.T, psi @ P + P @ psi.T - P - psi @ K @ rotor @ K.T @ psi.T, "S0 A.5 (a.47), rotors"),
    (phi @ K @ D @ K.T @ phi.T, phi @ M @ phi.T - phi @ P - P @ phi.T + P, "S0 A.6 (a.48)"),
)


def _poly(lemma: Lemma) -> Poly:
    return add(lemma[0].poly(), lemma[1].poly(), -1)


_NAMES = [(p, name) for lemma in LEMMAS for name in (lemma[2],) for p in (_poly(lemma), adjoint(_poly(lemma)))]


def name_of(rule: Rule) -> str:
    """The rule's name in the papers, or ""."""
    p = rule.poly
    return next((name for q, name in _NAMES if rule.lead in q and scale(q, 1 / q[rule.lead]) == p), "")
