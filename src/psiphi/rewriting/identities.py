"""What the papers state about the operators, one row each: proved from the axioms, and checked with numbers, by the tests.

`identities(s)` gives (lhs, rhs, source, needs) in the letters of a robot's operators `s`; `needs` says for which robots a
row holds: "" all of them (trees, forests, joints of 1 to 6 degrees of freedom, rotors), "no rotors", "chain".
`misprints(s)` are printed forms that are wrong: each has a counter-example.
"""

from __future__ import annotations

from typing import NamedTuple

from psiphi.operators import Expression, Operators


class Identity(NamedTuple):
    """lhs = rhs, where it stands, and which robots it needs."""

    lhs: Expression
    rhs: Expression
    source: str
    needs: str = ""


def identities(s: Operators) -> list[Identity]:
    """Every row that is stated of all robots, or of those without rotors."""
    return [Identity(*row) for table in (_definitions, _appendix, _factors, _articulated, _dynamics) for row in table(s)]


def _definitions(s: Operators) -> list[tuple]:
    H, phi, psi, P, D, G, I, S, L = s.H, s.phi, s.psi, s.P, s.D, s.G, s.I, s.S, s.L
    Phi, Psi, Dphi, Dpsi = s.Phi, s.Psi, s.Delta_phi, s.Delta_psi
    return [
        (D, H @ P @ H.T + s.rotor, "S0 (a.1)"),
        (G, P @ H.T @ D.inv, "S0 (a.2)"),
        (S @ Dphi, s.E_phi, "S0 (a.4)"),
        (S @ Dpsi, s.E_psi, "S0 (a.5)"),
        (Dpsi, Dphi @ s.tau_bar, "S0 (4.7)"),
        (Phi, phi @ S, "S0 A.1 (a.6)"),
        (Psi, psi @ S, "S0 A.1 (a.7)"),
        (Psi @ Dpsi, psi - I, "S0 A.1 (a.8)"),
        (Phi @ Dphi, phi - I, "S0 A.1 (a.9)"),
        (psi.inv, I - S @ Dpsi, "S0 A.1 (a.10)"),
        (phi.inv, I - S @ Dphi, "S0 A.1 (a.11)"),
        (L, Dphi @ G, "S0 A.1 (a.12)"),
        ((phi - I) @ G, Phi @ L, "S0 A.1 (a.13)"),
    ]


def _appendix(s: Operators) -> list[tuple]:
    H, phi, psi, Phi, Psi, L, I, S = s.H, s.phi, s.psi, s.Phi, s.Psi, s.L, s.I, s.S
    LH = L @ H
    return [
        (phi, psi @ (I + S @ LH @ phi), "S0 A.2 (a.14)"),
        (psi, (I - Psi @ LH) @ phi, "S0 A.2 (a.15)"),
        (Phi, Psi @ (I + LH @ Phi), "S0 A.2 (a.16)"),
        (Psi, (I - Psi @ LH) @ Phi, "S0 A.2 (a.17)"),
        (phi - psi, Psi @ LH @ phi, "S0 A.2 (a.18)"),
        (phi - psi, psi @ S @ LH @ phi, "S0 (a.19)-(a.21)"),
        (phi, (I + Phi @ LH) @ psi, "S0 A.3 (a.22)"),
        (psi, phi @ (I - S @ LH @ psi), "S0 A.3 (a.23)"),
        (Phi, (I + Phi @ LH) @ Psi, "S0 A.3 (a.24)"),
        (Psi, Phi @ (I - LH @ Psi), "S0 A.3 (a.25)"),
        (Phi @ LH @ psi, Psi @ LH @ phi, "S0 A.3 (a.26)"),
        (Phi @ LH @ Psi, Psi @ LH @ Phi, "S0 A.3 (a.27)"),
        (phi - psi, Phi @ LH @ psi, "S0 A.3 (a.28)"),
        (psi - phi, -phi @ S @ LH @ psi, "S0 (a.29)-(a.31)"),
        (H @ phi, (I + H @ Phi @ L) @ H @ psi, "S0 A.4 (a.32)"),
        (H @ Phi, (I + H @ Phi @ L) @ H @ Psi, "S0 A.4 (a.33)"),
        (H @ Psi, H @ Phi @ (I - LH @ Psi), "S0 A.4 (a.34)"),
        (H @ psi, (I - H @ Psi @ L) @ H @ phi, "S0 A.4 (a.35)"),
        (H @ Psi, (I - H @ Psi @ L) @ H @ Phi, "S0 A.4 (a.36)"),
        (H @ Phi, H @ Psi @ (I + LH @ Phi), "S0 A.4 (a.37)"),
        (H @ Phi @ LH @ Psi, H @ Psi @ LH @ Phi, "S0 A.4 (a.38)"),
        (Phi @ L, Psi @ L @ (I + H @ Phi @ L), "S0 A.4 (a.39)"),
        (Psi @ L, (I - Psi @ LH) @ Phi @ L, "S0 A.4 (a.40)"),
        (Psi @ L, Phi @ L @ (I - H @ Psi @ L), "S0 A.4 (a.41)"),
        (Phi @ L, (I + Phi @ LH) @ Psi @ L, "S0 A.4 (a.42)"),
        (Psi @ LH @ Phi @ L, Phi @ LH @ Psi @ L, "S0 A.4 (a.43)"),
    ]


def _factors(s: Operators) -> list[tuple]:
    H, phi, psi, D, G, K, I = s.H, s.phi, s.psi, s.D, s.G, s.K, s.I
    F, W, mass = I + H @ phi @ K, I - H @ psi @ K, s.mass
    FL, WL = I + H @ s.Phi @ s.L, I - H @ s.Psi @ s.L
    no_rotors = "no rotors"
    return [
        (mass, F @ D @ F.T, "S3 Lemma 1 (11)"),
        (mass, FL @ D @ FL.T, "S0 (4.11)"),
        (F.inv, W, "S3 Lemma 2 (12)"),
        (F @ W, I, "S3 Lemma 2 (12)"),
        (W @ F, I, "S3 Lemma 2 (12)"),
        (FL.inv, WL, "S0 (4.14)"),
        (mass.inv, W.T @ D.inv @ W, "S3 Lemma 3 (13)"),
        (mass.inv, WL.T @ D.inv @ WL, "S0 (4.16)"),
        (mass @ W.T @ D.inv @ W, I, "S3 Lemma 3 (13)"),
        (W.T @ D.inv @ W @ mass, I, "S3 Lemma 3 (13)"),
        (W @ H @ phi, H @ psi, "S3 Lemma 4 (16)"),
        (WL @ H @ phi, H @ psi, "S0 (5.4)"),
        (psi.inv, phi.inv + K @ H, "S3 Lemma 5"),
        (I - psi @ K @ H, psi @ phi.inv, "S3 Lemma 5"),
        (K, s.E_phi @ G, "S3 (10)"),
        (s.E_psi, s.E_phi @ (I - G @ H), "S3 (10)"),
        (s.E_psi, s.E_phi - K @ H, "S3 (10)"),
        (s.tau_bar, I - G @ H, "S3 (10)"),
        (F, H @ phi @ G, "S0 (a.13) with H G = I", no_rotors),
        (H @ phi @ s.tau_bar, H @ phi @ s.E_psi, "S0 (a.13) with H G = I", no_rotors),
        (s.mass_half @ s.mass_half.T, mass, "S1 (26)"),
        (s.mass_half.inv, s.D_half.inv @ W, "S3 section 6"),
        (mass.inv, s.mass_half.inv.T @ s.mass_half.inv, "S3 section 6"),
    ]


def _articulated(s: Operators) -> list[tuple]:
    H, phi, psi, M, P, D, G, K, I = s.H, s.phi, s.psi, s.M, s.P, s.D, s.G, s.K, s.I
    tau_bar, E_phi, E_psi, W = s.tau_bar, s.E_phi, s.E_psi, s.I - s.H @ s.psi @ s.K
    far_phi, far_psi = phi - I, psi - I
    r = s.symbol("r")
    no_rotors = "no rotors"
    riccati = P - P @ H.T @ D.inv @ H @ P
    return [
        (H @ G, I, "S0 (a.1), (a.2)", no_rotors),
        (tau_bar @ P, P @ tau_bar.T, "S0 (a.2)"),
        (tau_bar @ P, P - G @ H @ P, "S0 (4.5)"),
        (tau_bar @ P, tau_bar @ P @ tau_bar.T, "S0 (a.47) proof", no_rotors),
        (tau_bar @ P, tau_bar @ P @ tau_bar.T + G @ s.rotor @ G.T, "rotors as measurement noise"),
        (H @ P @ tau_bar.T, 0 * (H @ P), "S0 (a.47) proof", no_rotors),
        (H @ P @ E_psi.T, 0 * (H @ P), "S0 (a.47) proof", no_rotors),
        (tau_bar @ tau_bar, tau_bar, "tau_bar is a projection", no_rotors),
        (M, P - E_psi @ P @ E_psi.T, "S3 (8)", no_rotors),
        (M, P - E_psi @ P @ E_phi.T, "S0 (a.46) proof"),
        (M, P - E_phi @ P @ E_phi.T + K @ D @ K.T, "S3 Lemma 1 proof"),
        (P, E_phi @ riccati @ E_phi.T + M, "S0 (4.5), (a.49)"),
        (psi @ (r - E_psi @ r @ E_phi.T) @ phi.T, r + far_psi @ r + r @ far_phi.T, "S0 Lemma A.1 (a.45)"),
        (phi @ (r - E_phi @ r @ E_phi.T) @ phi.T, r + far_phi @ r + r @ far_phi.T, "S0 Corollary A.1"),
        (psi @ (r - E_psi @ r @ E_psi.T) @ psi.T, r + far_psi @ r + r @ far_psi.T, "S0 Corollary A.1"),
        (psi @ M @ phi.T, P + far_psi @ P + P @ far_phi.T, "S0 A.5 (a.46)"),
        (psi @ M @ psi.T, P + far_psi @ P + P @ far_psi.T, "S0 A.5 (a.47)", no_rotors),
        (
            phi @ M @ phi.T,
            P + far_phi @ P + P @ far_phi.T + far_phi @ P @ H.T @ D.inv @ H @ P @ far_phi.T,
            "S0 A.6 (a.48)",
        ),
        (far_phi @ P @ H.T @ D.inv @ H @ P @ far_phi.T, phi @ K @ D @ K.T @ phi.T, "S3 Lemma 1 proof"),
        (
            W.T @ D.inv @ H @ psi @ M @ phi.T,
            W.T @ D.inv @ H @ far_psi @ P + s.L.T @ s.Psi.T @ tau_bar.T + G.T,
            "S0 A.7 (a.50)",
        ),
        (
            W.T @ D.inv @ H @ P + W.T @ D.inv @ H @ P @ far_phi.T,
            s.L.T @ s.Psi.T @ tau_bar.T + G.T,
            "S0 A.7 (a.51)",
        ),
    ]


def _dynamics(s: Operators) -> list[tuple]:
    H, phi, psi, M, P, D, G, K, I = s.H, s.phi, s.psi, s.M, s.P, s.D, s.G, s.K, s.I
    a, b, tau, f = s.a, s.b, s.vector("tau"), s.vector("f", "frame")
    W, B, J, mass = I - H @ psi @ K, s.B("tool"), s.J("tool"), s.mass
    bias = M @ phi.T @ a + b + B @ f
    qdd = mass.inv @ (tau - H @ phi @ bias)
    eps = tau - H @ psi @ (K @ tau + M @ phi.T @ a + b + B @ f)
    nu = D.inv @ (tau - H @ psi @ (K @ tau + P @ a + b + B @ f))
    nu4 = D.inv @ (W @ tau - H @ (psi - I) @ P @ a - H @ psi @ (b + B @ f))
    return [
        (qdd, W.T @ D.inv @ W @ (tau - H @ phi @ bias), "S0 FD1 (4.18)"),
        (phi.T @ (H.T @ qdd + a), psi.T @ H.T @ D.inv @ W @ (tau - H @ phi @ bias) + phi.T @ a, "S0 FD2 (5.6)"),
        (qdd, W.T @ D.inv @ eps, "S0 FD3 (5.10)"),
        (qdd, W.T @ nu4 - s.L.T @ s.Psi.T @ s.tau_bar.T @ a - G.T @ a, "S0 FD4 (5.15)"),
        (qdd, nu - K.T @ psi.T @ (H.T @ nu + a), "two sweeps"),
        (phi.T @ (H.T @ qdd + a), psi.T @ (H.T @ nu + a), "two sweeps, link accelerations"),
        (J @ mass.inv @ J.T, B.T @ psi.T @ H.T @ D.inv @ H @ psi @ B, "S3 (20)"),
        (J @ mass.inv, B.T @ psi.T @ H.T @ D.inv @ W, "S4 (6.12)"),
        (-mass.inv @ J.T @ f, -W.T @ D.inv @ H @ psi @ B @ f, "S3 (18)"),
        (B.T @ s.Om @ B, J @ mass.inv @ J.T, "S3 (20), Ω at the tip"),
    ]


def on_chains(s: Operators) -> list[Identity]:
    """What holds where no body carries two others."""
    H, psi, D, I, Om = s.H, s.psi, s.D, s.I, s.Om
    X = H.T @ D.inv @ H
    return [
        Identity(Om, X + s.E_psi.T @ Om @ s.E_psi, "S3 (20)", "chain"),
        Identity(psi.T @ X @ psi, Om + (psi - I).T @ Om + Om @ (psi - I), "S3 (20), every block", "chain"),
    ]


def misprints(s: Operators) -> list[Identity]:
    """Printed forms that are wrong, with what went wrong."""
    H, phi, psi, M, P, D, G, K, I = s.H, s.phi, s.psi, s.M, s.P, s.D, s.G, s.K, s.I
    W, WPhi, WL, mass, J, B = I - H @ psi @ K, I - H @ s.Phi @ s.L, I - H @ s.Psi @ s.L, s.mass, s.J("tool"), s.B("tool")
    tau, f, a, b = s.vector("tau"), s.vector("f", "frame"), s.a, s.b
    far_phi, far_psi = phi - I, psi - I
    free = tau - H @ phi @ (M @ phi.T @ a + b)
    r = s.symbol("r")
    rows = [
        (mass.inv, WPhi.T @ D.inv @ WPhi, "S0 abstract of Part I: Φ for Ψ"),
        ((I + H @ phi @ K).inv, I - H @ phi @ K, "S3 section 6: φ for ψ"),
        (W @ free, tau - H @ psi @ K @ free, "S0 (4.20): T for T'"),
        (mass.inv, WL.inv @ D.inv @ WL, "S0 FD3: inverse for transpose"),
        (
            WL.T @ D.inv @ H @ psi @ M @ phi.T,
            WL.T @ D.inv @ H @ far_phi @ P + s.L.T @ s.Psi.T @ s.tau_bar.T + G.T,
            "S0 FD4 proof: φ~ for ψ~",
        ),
        (psi @ (r - s.E_phi @ r @ s.E_psi.T) @ phi.T, r + far_psi @ r + r @ far_phi.T, "S0 Lemma A.1 proof: φ, ψ swapped"),
        (psi @ M @ phi.T, P + far_psi @ P + P @ phi.T, "S0 (a.50) proof: tilde lost"),
        (-mass.inv @ J.T @ f, W.T @ D.inv @ H @ psi @ B @ f, "S4 (6.4c), (6.11g): sign"),
        (-mass.inv @ J.T @ f, -W @ D.inv @ H @ psi @ B @ f, "S4 (6.18e): transpose lost"),
    ]
    return [Identity(*row) for row in rows]
