"""The table of identities: the equations of the operators, one row each, written in the algebra.

    row(lhs, rhs, source, use, needs)

`source`: the equation in the papers S0 ... S4 (docs/papers.md). `use`: one or more of

    AXIOM      assumed; completion turns the axioms into rules, and all else is derived from them
    INVERSE    X⁻¹ = Y; resolves an inverse
    FACTORED   a step on a factored expression, so that derivations read as in the papers
    NAME       names a rule of the completion by its source in the papers
    STATED     stated in the papers; the tests prove it from the axioms and check it numerically
    MISPRINT   printed in the papers, but wrong; the tests find a counter-example

`needs`: the robots for which a row holds, or the letters for which an axiom is added; "" means all
robots (trees, forests, joints of 1 to 6 degrees of freedom, rotors).
"""

from __future__ import annotations

from enum import Flag, auto
from typing import NamedTuple

from psiphi.algebra.expressions.expression import Expression
from psiphi.algebra.expressions.operators import Operators
from psiphi.algebra.rewriting.rewrite_rules import Axiom, axiom
from psiphi.model.model import Model

# classes of robots
ROTORLESS, CHAIN = "no rotors", "chain"
FIXED_MAPS, SINGLE = "no universal joint", "one coordinate per joint"
# groups of letters
HALVES, MOTION, CROSS_PRODUCTS = "D^½", "motion", "V×"
BIASES = "two conventions for bias vectors"


class IdentityUse(Flag):
    """The uses of a row."""

    AXIOM, INVERSE, FACTORED, NAME, STATED, MISPRINT = (auto() for _ in range(6))


AXIOM, INVERSE, FACTORED, NAME, STATED, MISPRINT = IdentityUse


class Identity(NamedTuple):
    """A row: lhs = rhs."""

    lhs: Expression
    rhs: Expression
    source: str
    use: IdentityUse
    needs: str = ""


row = Identity

_s = Operators()
H, phi, psi, M, P, D, G, K, I = _s.H, _s.phi, _s.psi, _s.M, _s.P, _s.D, _s.G, _s.K, _s.I
E_phi, E_psi, tau_bar, rotor, S, L = _s.E_phi, _s.E_psi, _s.tau_bar, _s.rotor, _s.S, _s.L
Delta_phi, Delta_psi, Phi, Psi, Om = _s.Delta_phi, _s.Delta_psi, _s.Phi, _s.Psi, _s.Om
P_plus, P_dot, lambda_dot, H_dot = _s.P_plus, _s.P_dot, _s.lambda_dot, _s.H_dot
D_half, Theta, Omega_d, omega = _s.D_half, _s.D_rate, _s.Omega_d, _s.omega
a, b, a_local, b_local, mass, mass_half = _s.a, _s.b, _s.a_local, _s.b_local, _s.mass, _s.mass_half
B, J, r = _s.B("tool"), _s.J("tool"), _s.symbol("r")
v, tau, f = _s.vector("v"), _s.vector("tau"), _s.vector("f", "frame")
F, W = I + H @ phi @ K, I - H @ psi @ K  # W: the whitening filter of the papers
F_L, W_L, W_Phi, LH = I + H @ Phi @ L, I - H @ Psi @ L, I - H @ Phi @ L, L @ H
far_phi, far_psi = phi - I, psi - I
riccati_source = E_phi @ P_plus @ (Omega_d.T - H_dot.T @ G.T) @ E_phi.T
riccati = P - P @ H.T @ D.inv @ H @ P
bias = M @ phi.T @ a + b + B @ f
qdd = mass.inv @ (tau - H @ phi @ bias)
eps = tau - H @ psi @ (K @ tau + M @ phi.T @ a + b + B @ f)
nu = D.inv @ (tau - H @ psi @ (K @ tau + P @ a + b + B @ f))
nu4 = D.inv @ (W @ tau - H @ (psi - I) @ P @ a - H @ psi @ (b + B @ f))
free = tau - H @ phi @ (M @ phi.T @ a + b)
X = H.T @ D.inv @ H
spin, gyro, coriolis, x, V = _s.spin, _s.gyro, _s.coriolis, _s.vector("x", "force"), phi.T @ H.T @ v
U_ring = P_dot @ H.T + P @ H_dot.T - spin.T @ P @ H.T  # the definition of the letter Ů
couple = -(H @ spin.T + H_dot) @ tau_bar @ P @ E_phi.T @ V  # of couple

IDENTITIES: tuple[Identity, ...] = (
    # definitions, and the Riccati equation of P: all other identities follow from these
    row(E_phi, S @ Delta_phi, "S0 (a.4)", AXIOM | NAME | STATED),
    row(phi @ (I - E_phi), I, "S0 (a.11)", AXIOM),
    row((I - E_phi) @ phi, I, "S0 (a.11)", AXIOM),
    row(Phi, phi @ S, "S0 A.1 (a.6)", AXIOM | STATED),
    row(D, H @ P @ H.T + rotor, "S0 (a.1)", AXIOM | STATED),
    row(D @ D.inv, I, "S0 (4.6)", AXIOM),
    row(D.inv @ D, I, "S0 (4.6)", AXIOM),
    row(G, P @ H.T @ D.inv, "S0 (a.2)", AXIOM | STATED),
    row(tau_bar, I - G @ H, "S3 (10)", AXIOM | STATED),
    row(L, Delta_phi @ G, "S0 A.1 (a.12)", AXIOM | STATED),
    row(K, S @ L, "S3 (10)", AXIOM),
    row(Delta_psi, Delta_phi @ tau_bar, "S0 (a.5), (4.7)", AXIOM | STATED),
    row(E_psi, S @ Delta_psi, "S0 (a.5)", AXIOM | STATED),
    row(psi @ (I - E_psi), I, "S0 (a.10)", AXIOM),
    row((I - E_psi) @ psi, I, "S0 (a.10)", AXIOM),
    row(Psi, psi @ S, "S0 A.1 (a.7)", AXIOM | STATED),
    row(M, P - E_psi @ P @ E_phi.T, "S0 (4.5), (a.46) proof", AXIOM | STATED),
    # the Cholesky factor of D
    row(D_half @ D_half.T, D, "S1 (26)", AXIOM, HALVES),
    row(D_half @ D_half.inv, I, "S1 (26)", AXIOM, HALVES),
    row(D_half.inv @ D_half, I, "S1 (26)", AXIOM, HALVES),
    # along the motion: P⁺ = τ̄ P, and the derivative of the Riccati equation, for any joint
    row(P_plus, tau_bar @ P, "S0 (4.5)", AXIOM, MOTION),
    row(omega.T, -omega, "ω̃ = diag(w~, w~)", AXIOM, MOTION),
    row(lambda_dot, P_dot + Omega_d @ P + P @ Omega_d.T, "S1 (18)", AXIOM, MOTION),
    row(
        P_dot,
        E_psi @ P_dot @ E_psi.T + riccati_source + riccati_source.T,
        "S1 (13), any joint: docs/mathematics.md section 10",
        AXIOM,
        MOTION,
    ),
    row(Omega_d.T @ H.T @ v, 0 * (H.T @ v), "V_d × V_d = 0", AXIOM, MOTION),
    row(
        a_local,
        Omega_d.T @ E_phi.T @ phi.T @ H.T @ v + H_dot.T @ v,
        "S2 (5.6): V × V_d + Ḣ* v",
        AXIOM,
        MOTION,
    ),
    row(
        Theta + Theta.T,
        D_half.inv @ (H @ P_dot @ H.T + H_dot @ P @ H.T + H @ P @ H_dot.T) @ D_half.inv.T,
        "S1 (26), d/dt",
        AXIOM,
        MOTION,
    ),
    # cross products with the link velocities V = φ* H* v: V×* ℰ_φ = ℰ_φ (V×* + Ω_δ)
    row(
        phi.T @ Omega_d.T @ phi.T,
        phi.T @ Omega_d.T + phi.T @ spin - spin @ phi.T,
        "(φ*V)× φ* = φ* V×",
        AXIOM,
        CROSS_PRODUCTS,
    ),
    row(
        gyro + gyro.T,
        -spin.T @ M - M @ spin,
        "B_V: the rate of M in inertial axes",
        AXIOM,
        CROSS_PRODUCTS,
    ),
    row(spin @ H.T @ v, Omega_d.T @ V, "V × V_d = -V_d × V", AXIOM, CROSS_PRODUCTS),
    row(gyro @ V, -spin.T @ M @ V, "B_V V = V×* M V", AXIOM, CROSS_PRODUCTS),
    row(
        b_local, -spin.T @ M @ V - M @ _s.g, "S2 (4.1): V×* M V, and weights", AXIOM, CROSS_PRODUCTS
    ),
    row(mass.dot(), coriolis + coriolis.T, "dℳ/dt = C + C*", STATED),
    row(
        coriolis @ v,
        H @ phi @ (M @ phi.T @ a_local + b_local + M @ _s.g),
        "C v, without weights",
        STATED,
    ),
    # Coriolis forces in ξ = F* v, D ξ̇ + C = W τ, not in the papers (docs/diagonalised.md). x are
    # the bias forces b; H ψ b, by the second and third rows, cancels with terms of the first
    row(
        D @ (F.T @ mass.inv @ (tau - H @ phi @ (M @ phi.T @ a_local + x)) + F.T.dot() @ v)
        + (W @ couple + H @ psi @ U_ring @ F.T @ v)
        + (
            H @ psi @ x
            + H @ psi @ spin.T @ P @ V
            - H @ psi @ E_phi @ (spin.T + Omega_d) @ tau_bar @ P @ E_phi.T @ V
        ),
        W @ tau,
        "D ξ̇ + C(q, ξ) = W τ, bias forces x",
        STATED,
    ),
    row(
        H @ psi @ (b_local + M @ _s.g),
        -H @ psi @ spin.T @ (P - E_psi @ P @ E_phi.T) @ V,
        "M V = P V - ℰ_ψ P V⁺",
        STATED,
    ),
    row(
        phi @ spin.T @ E_phi @ phi,
        phi @ E_phi @ (spin.T + Omega_d) @ phi,
        "V×* ℰ_φ = ℰ_φ (V×* + Ω_δ), φ invertible",
        STATED,
    ),
    # inertial derivatives with gravity in a, and local derivatives with gravity in b, give equal
    # forces on the bodies
    row(
        M @ phi.T @ a + b,
        M @ phi.T @ a_local + b_local,
        "S0 (2.24)-(2.30), S2 (4.1): docs/mathematics.md section 3",
        AXIOM,
        BIASES,
    ),
    # for some robots only; with these, Table 1 of S1 is as printed
    row(rotor, 0 * rotor, "no rotor inertia", AXIOM, ROTORLESS),
    row(H_dot, 0 * H_dot, "no universal joint", AXIOM, FIXED_MAPS),
    row(H @ Omega_d, 0 * H_dot, "one coordinate per joint: V_d is along h", AXIOM, SINGLE),
    row(D_half.T, D_half, "one coordinate per joint", AXIOM, SINGLE),
    row(Theta.T, Theta, "one coordinate per joint", AXIOM, SINGLE),
    # Ω on chains
    row(Om, H.T @ D.inv @ H + E_psi.T @ Om @ E_psi, "S3 (20)", AXIOM | STATED, CHAIN),
    row(
        psi.T @ X @ psi,
        Om + (psi - I).T @ Om + Om @ (psi - I),
        "S3 (20), every block",
        STATED,
        CHAIN,
    ),
    # inverses
    row(mass.inv, W.T @ D.inv @ W, "S3 Lemma 3 (13)", INVERSE | STATED),
    row(F.inv, W, "S3 Lemma 2 (12)", INVERSE | STATED),
    row(mass_half.inv, D_half.inv @ W, "S3 Lemma 2 (12), section 6", INVERSE | STATED),
    row(phi.inv, I - E_phi, "S0 (a.11)", INVERSE),
    row(psi.inv, I - E_psi, "S0 (a.10)", INVERSE),
    row((I + K @ H @ phi).inv, I - K @ H @ psi, "S3 Lemma 5", INVERSE),
    row((I + phi @ K @ H).inv, I - psi @ K @ H, "S3 Lemma 5", INVERSE),
    row((H @ P @ H.T + rotor).inv, D.inv, "S0 (4.6)", INVERSE),
    row((D @ D_half.inv.T).inv, D_half.inv, "S1 (26)", INVERSE),
    # steps on factored expressions
    row(W @ H @ phi, H @ psi, "S3 Lemma 4 (16)", FACTORED | STATED),
    row(W_L @ H @ phi, H @ psi, "S0 Identity 5.1 (5.4)", FACTORED | STATED),
    row(F @ H @ psi, H @ phi, "S0 A.4 (a.32)", FACTORED),
    row(F_L @ H @ psi, H @ phi, "S0 A.4 (a.32)", FACTORED | STATED),
    row(F @ W, I, "S3 Lemma 2 (12)", FACTORED | STATED),
    row(W @ F, I, "S3 Lemma 2 (12)", FACTORED | STATED),
    row(F_L @ W_L, I, "S0 Fact 4.2 (4.14)", FACTORED),
    row(W_L @ F_L, I, "S0 Fact 4.2 (4.14)", FACTORED),
    # names of rules that completion finds
    row(H @ G, I, "H G = I, from S0 (a.1), (a.2)", NAME),
    row(H @ G, I - rotor @ D.inv, "H G with rotors, from S0 (a.1), (a.2)", NAME),
    row(P @ H.T, G @ D, "S0 (a.2)", NAME),
    row(Delta_psi, Delta_phi - Delta_phi @ G @ H, "S0 (a.5)", NAME),
    row(phi @ G, G + phi @ K, "S0 (a.13)", NAME),
    row(psi @ G, G, "ψ G = G, from H G = I", NAME),
    row(psi @ G, G + psi @ K @ rotor @ D.inv, "ψ G with rotors, from S0 (a.1), (a.2)", NAME),
    row(E_phi @ psi, psi - I + K @ H @ psi, "S3 Lemma 5", NAME),
    row(psi @ E_phi, psi - I + psi @ K @ H, "S3 Lemma 5", NAME),
    row(psi @ K @ H @ phi, phi - psi, "S0 A.2 (a.18)", NAME),
    row(phi @ K @ H @ psi, phi - psi, "S0 A.3 (a.28)", NAME),
    row(E_phi @ P @ E_phi.T, P - M + K @ D @ K.T, "S3 Lemma 1, Riccati", NAME),
    row(psi @ P @ E_phi.T, psi @ P - psi @ M + P @ E_phi.T, "S0 A.5, Riccati", NAME),
    row(
        phi @ P @ E_phi.T,
        phi @ P - phi @ M + phi @ K @ D @ K.T + P @ E_phi.T,
        "S0 A.6, Riccati",
        NAME,
    ),
    row(psi @ M @ phi.T, psi @ P + P @ phi.T - P, "S0 A.5 (a.46)", NAME),
    row(psi @ M @ psi.T, psi @ P + P @ psi.T - P, "S0 A.5 (a.47)", NAME),
    row(
        psi @ M @ psi.T,
        psi @ P + P @ psi.T - P - psi @ K @ rotor @ K.T @ psi.T,
        "S0 A.5 (a.47), rotors",
        NAME,
    ),
    row(
        phi @ K @ D @ K.T @ phi.T, phi @ M @ phi.T - phi @ P - P @ phi.T + P, "S0 A.6 (a.48)", NAME
    ),
    # S0, definitions
    row(Psi @ Delta_psi, psi - I, "S0 A.1 (a.8)", STATED),
    row(Phi @ Delta_phi, phi - I, "S0 A.1 (a.9)", STATED),
    row(psi.inv, I - S @ Delta_psi, "S0 A.1 (a.10)", STATED),
    row(phi.inv, I - S @ Delta_phi, "S0 A.1 (a.11)", STATED),
    row((phi - I) @ G, Phi @ L, "S0 A.1 (a.13)", STATED),
    # S0, appendix A.2 to A.4
    row(phi, psi @ (I + S @ LH @ phi), "S0 A.2 (a.14)", STATED),
    row(psi, (I - Psi @ LH) @ phi, "S0 A.2 (a.15)", STATED),
    row(Phi, Psi @ (I + LH @ Phi), "S0 A.2 (a.16)", STATED),
    row(Psi, (I - Psi @ LH) @ Phi, "S0 A.2 (a.17)", STATED),
    row(phi - psi, Psi @ LH @ phi, "S0 A.2 (a.18)", STATED),
    row(phi - psi, psi @ S @ LH @ phi, "S0 (a.19)-(a.21)", STATED),
    row(phi, (I + Phi @ LH) @ psi, "S0 A.3 (a.22)", STATED),
    row(psi, phi @ (I - S @ LH @ psi), "S0 A.3 (a.23)", STATED),
    row(Phi, (I + Phi @ LH) @ Psi, "S0 A.3 (a.24)", STATED),
    row(Psi, Phi @ (I - LH @ Psi), "S0 A.3 (a.25)", STATED),
    row(Phi @ LH @ psi, Psi @ LH @ phi, "S0 A.3 (a.26)", STATED),
    row(Phi @ LH @ Psi, Psi @ LH @ Phi, "S0 A.3 (a.27)", STATED),
    row(phi - psi, Phi @ LH @ psi, "S0 A.3 (a.28)", STATED),
    row(psi - phi, -phi @ S @ LH @ psi, "S0 (a.29)-(a.31)", STATED),
    row(H @ Phi, (I + H @ Phi @ L) @ H @ Psi, "S0 A.4 (a.33)", STATED),
    row(H @ Psi, H @ Phi @ (I - LH @ Psi), "S0 A.4 (a.34)", STATED),
    row(H @ psi, (I - H @ Psi @ L) @ H @ phi, "S0 A.4 (a.35)", STATED),
    row(H @ Psi, (I - H @ Psi @ L) @ H @ Phi, "S0 A.4 (a.36)", STATED),
    row(H @ Phi, H @ Psi @ (I + LH @ Phi), "S0 A.4 (a.37)", STATED),
    row(H @ Phi @ LH @ Psi, H @ Psi @ LH @ Phi, "S0 A.4 (a.38)", STATED),
    row(Phi @ L, Psi @ L @ (I + H @ Phi @ L), "S0 A.4 (a.39)", STATED),
    row(Psi @ L, (I - Psi @ LH) @ Phi @ L, "S0 A.4 (a.40)", STATED),
    row(Psi @ L, Phi @ L @ (I - H @ Psi @ L), "S0 A.4 (a.41)", STATED),
    row(Phi @ L, (I + Phi @ LH) @ Psi @ L, "S0 A.4 (a.42)", STATED),
    row(Psi @ LH @ Phi @ L, Phi @ LH @ Psi @ L, "S0 A.4 (a.43)", STATED),
    # factors of the mass operator and of its inverse
    row(mass, F @ D @ F.T, "S3 Lemma 1 (11)", STATED),
    row(mass, F_L @ D @ F_L.T, "S0 (4.11)", STATED),
    row(F_L.inv, W_L, "S0 (4.14)", STATED),
    row(mass.inv, W_L.T @ D.inv @ W_L, "S0 (4.16)", STATED),
    row(mass @ W.T @ D.inv @ W, I, "S3 Lemma 3 (13)", STATED),
    row(W.T @ D.inv @ W @ mass, I, "S3 Lemma 3 (13)", STATED),
    row(psi.inv, phi.inv + K @ H, "S3 Lemma 5", STATED),
    row(I - psi @ K @ H, psi @ phi.inv, "S3 Lemma 5", STATED),
    row(K, E_phi @ G, "S3 (10)", STATED | NAME),
    row(E_psi, E_phi @ (I - G @ H), "S3 (10)", STATED),
    row(E_psi, E_phi - K @ H, "S3 (10)", STATED | NAME),
    row(F, H @ phi @ G, "S0 (a.13) with H G = I", STATED, ROTORLESS),
    row(H @ phi @ tau_bar, H @ phi @ E_psi, "S0 (a.13) with H G = I", STATED, ROTORLESS),
    row(mass_half @ mass_half.T, mass, "S1 (26)", STATED),
    row(mass.inv, mass_half.inv.T @ mass_half.inv, "S3 section 6", STATED),
    # articulated inertias
    row(H @ G, I, "S0 (a.1), (a.2)", STATED, ROTORLESS),
    row(tau_bar @ P, P @ tau_bar.T, "S0 (a.2)", STATED),
    row(tau_bar @ P, P - G @ H @ P, "S0 (4.5)", STATED),
    row(tau_bar @ P, tau_bar @ P @ tau_bar.T, "S0 (a.47) proof", STATED, ROTORLESS),
    row(
        tau_bar @ P,
        tau_bar @ P @ tau_bar.T + G @ rotor @ G.T,
        "rotors as measurement noise",
        STATED,
    ),
    row(H @ P @ tau_bar.T, 0 * (H @ P), "S0 (a.47) proof", STATED, ROTORLESS),
    row(H @ P @ E_psi.T, 0 * (H @ P), "S0 (a.47) proof", STATED, ROTORLESS),
    row(tau_bar @ tau_bar, tau_bar, "tau_bar is a projection", STATED, ROTORLESS),
    row(M, P - E_psi @ P @ E_psi.T, "S3 (8)", STATED, ROTORLESS),
    row(M, P - E_phi @ P @ E_phi.T + K @ D @ K.T, "S3 Lemma 1 proof", STATED),
    row(P, E_phi @ riccati @ E_phi.T + M, "S0 (4.5), (a.49)", STATED),
    row(
        psi @ (r - E_psi @ r @ E_phi.T) @ phi.T,
        r + far_psi @ r + r @ far_phi.T,
        "S0 Lemma A.1 (a.45)",
        STATED,
    ),
    row(
        phi @ (r - E_phi @ r @ E_phi.T) @ phi.T,
        r + far_phi @ r + r @ far_phi.T,
        "S0 Corollary A.1",
        STATED,
    ),
    row(
        psi @ (r - E_psi @ r @ E_psi.T) @ psi.T,
        r + far_psi @ r + r @ far_psi.T,
        "S0 Corollary A.1",
        STATED,
    ),
    row(psi @ M @ phi.T, P + far_psi @ P + P @ far_phi.T, "S0 A.5 (a.46)", STATED),
    row(psi @ M @ psi.T, P + far_psi @ P + P @ far_psi.T, "S0 A.5 (a.47)", STATED, ROTORLESS),
    row(
        phi @ M @ phi.T,
        P + far_phi @ P + P @ far_phi.T + far_phi @ P @ H.T @ D.inv @ H @ P @ far_phi.T,
        "S0 A.6 (a.48)",
        STATED,
    ),
    row(
        far_phi @ P @ H.T @ D.inv @ H @ P @ far_phi.T,
        phi @ K @ D @ K.T @ phi.T,
        "S3 Lemma 1 proof",
        STATED,
    ),
    row(
        W.T @ D.inv @ H @ psi @ M @ phi.T,
        W.T @ D.inv @ H @ far_psi @ P + L.T @ Psi.T @ tau_bar.T + G.T,
        "S0 A.7 (a.50)",
        STATED,
    ),
    row(
        W.T @ D.inv @ H @ P + W.T @ D.inv @ H @ P @ far_phi.T,
        L.T @ Psi.T @ tau_bar.T + G.T,
        "S0 A.7 (a.51)",
        STATED,
    ),
    # forward dynamics and frames
    row(qdd, W.T @ D.inv @ W @ (tau - H @ phi @ bias), "S0 FD1 (4.18)", STATED),
    row(
        phi.T @ (H.T @ qdd + a),
        psi.T @ H.T @ D.inv @ W @ (tau - H @ phi @ bias) + phi.T @ a,
        "S0 FD2 (5.6)",
        STATED,
    ),
    row(qdd, W.T @ D.inv @ eps, "S0 FD3 (5.10)", STATED),
    row(qdd, W.T @ nu4 - L.T @ Psi.T @ tau_bar.T @ a - G.T @ a, "S0 FD4 (5.15)", STATED),
    row(qdd, nu - K.T @ psi.T @ (H.T @ nu + a), "two sweeps", STATED),
    row(phi.T @ (H.T @ qdd + a), psi.T @ (H.T @ nu + a), "two sweeps, link accelerations", STATED),
    row(J @ mass.inv @ J.T, B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B, "S3 (20)", STATED),
    row(J @ mass.inv, B.T @ psi.T @ H.T @ D.inv @ W, "S4 (6.12)", STATED),
    row(-mass.inv @ J.T @ f, -W.T @ D.inv @ H @ psi @ B @ f, "S3 (18)", STATED),
    row(B.T @ Om @ B, J @ mass.inv @ J.T, "S3 (20), Ω at the tip", STATED),
    # misprints
    row(mass.inv, W_Phi.T @ D.inv @ W_Phi, "S0 abstract of Part I: Φ for Ψ", MISPRINT),
    row((I + H @ phi @ K).inv, I - H @ phi @ K, "S3 section 6: φ for ψ", MISPRINT),
    row(W @ free, tau - H @ psi @ K @ free, "S0 (4.20): T for T'", MISPRINT),
    row(mass.inv, W_L.inv @ D.inv @ W_L, "S0 FD3: inverse for transpose", MISPRINT),
    row(
        W_L.T @ D.inv @ H @ psi @ M @ phi.T,
        W_L.T @ D.inv @ H @ far_phi @ P + L.T @ Psi.T @ tau_bar.T + G.T,
        "S0 FD4 proof: φ~ for ψ~",
        MISPRINT,
    ),
    row(
        psi @ (r - E_phi @ r @ E_psi.T) @ phi.T,
        r + far_psi @ r + r @ far_phi.T,
        "S0 Lemma A.1 proof: φ, ψ swapped",
        MISPRINT,
    ),
    row(psi @ M @ phi.T, P + far_psi @ P + P @ phi.T, "S0 (a.50) proof: tilde lost", MISPRINT),
    row(-mass.inv @ J.T @ f, W.T @ D.inv @ H @ psi @ B @ f, "S4 (6.4c), (6.11g): sign", MISPRINT),
    row(-mass.inv @ J.T @ f, -W @ D.inv @ H @ psi @ B @ f, "S4 (6.18e): transpose lost", MISPRINT),
)


def rows(use: IdentityUse, needs: str | None = None, model: Model | None = None) -> list[Identity]:
    """The rows with a use and these needs (None: any), in the letters of a robot."""
    found = [x for x in IDENTITIES if use in x.use and needs in (None, x.needs)]
    return [
        x._replace(lhs=Expression(x.lhs.term, model), rhs=Expression(x.rhs.term, model))
        for x in found
    ]


def axioms(needs: str = "") -> tuple[Axiom, ...]:
    """The axioms with these needs."""
    return tuple(axiom(x.lhs, x.rhs, x.source) for x in rows(AXIOM, needs))


def at_frame(B: Expression) -> Axiom:
    """The axiom of Ω at a single frame: B* Ω B is a diagonal block."""
    return axiom(B.T @ Om @ B, B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B, "S3 (20)")
