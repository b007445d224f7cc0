"""The axioms, one row each, written in the algebra itself, with their sources. Everything else is derived from them.

S0 ... S4 are the papers (see the room's `__init__.py`). HALVES adds the Cholesky factor of D, IN_MOTION derivatives in time;
WITHOUT_ROTORS and ON_CHAINS hold only for such robots.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from psiphi.operators import Expression, Operators
from psiphi.operators.letters import letter
from psiphi.rewriting.polynomial import Poly, Word, add

_s = Operators()
H, phi, psi, M, P, D, G, K, I = _s.H, _s.phi, _s.psi, _s.M, _s.P, _s.D, _s.G, _s.K, _s.I
E_phi, E_psi, tau_bar, rotor, S, L = _s.E_phi, _s.E_psi, _s.tau_bar, _s.rotor, _s.S, _s.L
Delta_phi, Delta_psi, Phi, Psi, Om = _s.Delta_phi, _s.Delta_psi, _s.Phi, _s.Psi, _s.Om
D_half = _s.D_half
v = _s.vector("v")  # the joint rates of which Ω_δ and a_local are made
P_plus, P_dot, lambda_dot, Omega_d, H_dot, Theta = _s.P_plus, _s.P_dot, _s.lambda_dot, _s.Omega_d, _s.H_dot, _s.D_rate


@dataclass(frozen=True, eq=False)
class Axiom:
    """An equation taken as true: lhs - rhs as a polynomial, and where it stands."""

    text: str
    poly: Poly
    source: str
    sides: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        return self.text


def axiom(lhs: Expression, rhs: Expression, source: str) -> Axiom:
    """lhs = rhs."""
    return Axiom(f"{lhs} = {rhs}", add(lhs.poly(), rhs.poly(), -1), source, (lhs, rhs))


AXIOMS = (
    # transmission of forces
    axiom(E_phi, S @ Delta_phi, "S0 (a.4)"),
    axiom(phi @ (I - E_phi), I, "S0 (a.11)"),
    axiom((I - E_phi) @ phi, I, "S0 (a.11)"),
    axiom(Phi, phi @ S, "S0 (a.6)"),
    # the joint seen through the articulated inertia
    axiom(D, H @ P @ H.T + rotor, "S0 (a.1)"),
    axiom(D @ D.inv, I, "S0 (4.6)"),
    axiom(D.inv @ D, I, "S0 (4.6)"),
    axiom(G, P @ H.T @ D.inv, "S0 (a.2)"),
    axiom(tau_bar, I - G @ H, "S3 (10)"),
    axiom(L, Delta_phi @ G, "S0 (a.12)"),
    axiom(K, S @ L, "S3 (10)"),
    # articulated transmission, and the Riccati equation of P
    axiom(Delta_psi, Delta_phi @ tau_bar, "S0 (a.5)"),
    axiom(E_psi, S @ Delta_psi, "S0 (a.5)"),
    axiom(psi @ (I - E_psi), I, "S0 (a.10)"),
    axiom((I - E_psi) @ psi, I, "S0 (a.10)"),
    axiom(Psi, psi @ S, "S0 (a.7)"),
    axiom(M, P - E_psi @ P @ E_phi.T, "S0 (4.5)"),
)

HALVES = (
    axiom(D_half @ D_half.T, D, "S1 (26)"),
    axiom(D_half @ D_half.inv, I, "S1 (26)"),
    axiom(D_half.inv @ D_half, I, "S1 (26)"),
)

# along the motion: P⁺ = τ̄ P, and the Riccati equation of P differentiated, for joints of any kind
_half = E_phi @ P_plus @ (Omega_d.T - H_dot.T @ G.T) @ E_phi.T
IN_MOTION = (
    axiom(P_plus, tau_bar @ P, "S0 (4.5)"),
    axiom(_s.omega.T, -_s.omega, "ω̃ = diag(w~, w~)"),
    axiom(lambda_dot, P_dot + Omega_d @ P + P @ Omega_d.T, "S1 (18)"),
    axiom(P_dot, E_psi @ P_dot @ E_psi.T + _half + _half.T, "S1 (13), any joint: theory g.3"),
    axiom(Omega_d.T @ H.T @ v, 0 * (H.T @ v), "V_d × V_d = 0"),
    axiom(_s.a_local, Omega_d.T @ E_phi.T @ phi.T @ H.T @ v + H_dot.T @ v, "S2 (5.6): V × V_d + Ḣ* v"),
    axiom(Theta + Theta.T, D_half.inv @ (H @ P_dot @ H.T + H_dot @ P @ H.T + H @ P @ H_dot.T) @ D_half.inv.T, "S1 (26), d/dt"),
)

# inertial derivatives with gravity in a, or derivatives in body axes with gravity in b: the forces on the bodies are the same
BIASES = (axiom(M @ phi.T @ _s.a + _s.b, M @ phi.T @ _s.a_local + _s.b_local, "S0 (2.24)-(2.30), S2 (4.1): theory section 1"),)

WITHOUT_ROTORS = (axiom(rotor, 0 * rotor, "no rotor inertia"),)

# what holds of the joints of many robots, and makes Table 1 of S1 what is printed
FIXED_MAPS = (axiom(H_dot, 0 * H_dot, "no universal joint"),)
SINGLE = (
    axiom(H @ Omega_d, 0 * H_dot, "one coordinate a joint: V_d is along h"),
    axiom(D_half.T, D_half, "one coordinate a joint"),
    axiom(Theta.T, Theta, "one coordinate a joint"),
)

ON_CHAINS = (axiom(Om, H.T @ D.inv @ H + E_psi.T @ Om @ E_psi, "S3 (20)"),)


def at_frame(B: Expression) -> Axiom:
    """At one frame: B* picks the diagonal block that Ω holds."""
    return axiom(B.T @ Om @ B, B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B, "S3 (20)")


@lru_cache(maxsize=65536)
def heft(word: Word) -> tuple[int, int, Word]:
    """The key of the term order: weight, length, then the alphabet; compatible with products on both sides."""
    return sum(letter(x).row.weight for x in word), len(word), word
