"""The letters that depend on velocity, as dense matrices: time derivatives in body axes, biases.

With V = φ* H* v, V_d = H* v, Ω_δ = V_d ×* and φ̇ = φ Ω_δ in body axes, the derivative of the
recursion of P is

    Ṗ = ℰ_ψ Ṗ ℰ_ψ* + Q + Q*     with Q = ℰ_φ P⁺ (Ω_δ* - Ḣ* G*) ℰ_φ*
    Ṗ = ⟨ψ (Q + Q*) ψ*⟩          Π = ⟨ψ Q ψ*⟩, so that Π + Π* = Ṗ

where ⟨ ⟩ are the diagonal blocks (S0 Corollary A.1; docs/mathematics.md section 10, for joints of
any kind; Π is the sum of S1 (48)). Ω̇ is the derivative of ⟨ψ* H* D⁻¹ H ψ⟩, with
ψ̇ = ψ (dℰ_ψ/dt) ψ.

Bias vectors are derivatives of V (S0 (2.24)-(2.30)). In body axes, V̇ - φ* H* v̇ = φ* a_local;
in inertial axes, ω̃ V is added at each link. Gravity is an acceleration of the world by -g.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psiphi.algebra.expressions.letters import A_LOCAL, B_LOCAL, COUPLE, GRAVITY, A, B, FrameLetter
from psiphi.model.model import WORLD
from psiphi.model.spatial.rotations import skew

if TYPE_CHECKING:
    from psiphi.algebra.dense.dense_letters import DenseLetters

Matrix = np.ndarray


def t(x: Matrix) -> Matrix:
    """Transpose of the last two axes."""
    return np.swapaxes(x, -1, -2)


def motion_cross(V: Matrix) -> Matrix:
    """V× = [[w~, 0], [v~, w~]]."""
    w, v = skew(V[..., :3]), skew(V[..., 3:])
    return np.concatenate(
        [np.concatenate([w, np.zeros_like(w)], -1), np.concatenate([v, w], -1)], -2
    )


def _plus_adjoint(X: Matrix) -> Matrix:
    """X + X*."""
    return X + t(X)


def _riccati_source(s: DenseLetters) -> Matrix:
    """Q = ℰ_φ P⁺ (Ω_δ* - Ḣ* G*) ℰ_φ*."""
    return s["E_phi"] @ s["P_plus"] @ (t(s["Omega_d"]) - t(s["H_dot"]) @ t(s["G"])) @ t(s["E_phi"])


def _U_dot(s: DenseLetters) -> Matrix:
    """d(P H*)/dt."""
    return s["P_dot"] @ t(s["H"]) + s["P"] @ t(s["H_dot"])


def _D_dot(s: DenseLetters) -> Matrix:
    return s["H"] @ _U_dot(s) + s["H_dot"] @ s["P"] @ t(s["H"])


def _cholesky_rate(s: DenseLetters) -> Matrix:
    """Θ = L⁻¹ L̇ for D = L L*: the lower triangle of L⁻¹ Ḋ L⁻*, its diagonal halved."""
    X = s["D_half_inv"] @ _D_dot(s) @ t(s["D_half_inv"])
    return np.tril(X) - 0.5 * X * np.eye(X.shape[-1])


def _omega_dot(s: DenseLetters) -> Matrix:
    """Ω̇ = ⟨d/dt (ψ* H* D⁻¹ H ψ)⟩."""
    H, H_dot, D_inv, G, psi, D_dot = s["H"], s["H_dot"], s["D_inv"], s["G"], s["psi"], _D_dot(s)
    G_dot = (_U_dot(s) - G @ D_dot) @ D_inv
    psi_dot = psi @ s["E_phi"] @ (s["Omega_d"] @ s["tau_bar"] - G_dot @ H - G @ H_dot) @ psi
    seen, seen_dot = H @ psi, H_dot @ psi + H @ psi_dot
    return s.on_diagonal(
        _plus_adjoint(t(seen_dot) @ D_inv @ seen) - t(seen) @ D_inv @ D_dot @ D_inv @ seen
    )


def _gravity(s: DenseLetters) -> Matrix:
    """[0; g] at each link, in its axes."""
    down = [t(R) @ s.model.gravity_vector[:, None] for R in s.rotations]
    return np.concatenate(
        [np.zeros((*s.lead, 0, 1)), *(x for g in down for x in (np.zeros_like(g), g))], axis=-2
    )


def _a_local(s: DenseLetters) -> Matrix:
    """V× H* v + Ḣ* v."""
    return (s["spin"] @ t(s["H"]) + t(s["H_dot"])) @ s.v[..., None]


def frame_rates(letters: DenseLetters, x: FrameLetter) -> Matrix:
    """-B diag(w~, w~), w the angular velocity of each frame's link in the axes of B.

    In world axes this is dB/dt; in frame axes it is the term that the inertial derivative adds.
    """
    B = letters.frames(x.plain)
    out = np.zeros_like(B)
    for i, frame in enumerate(map(letters.model.frame, x.frames)):
        if frame.body != WORLD:
            rows, cols = slice(6 * frame.body, 6 * frame.body + 6), slice(6 * i, 6 * i + 6)
            axes = frame.pose.rotation.T if x.axes == "frame" else letters.rotations[frame.body]
            w = axes @ letters.velocities[frame.body][..., :3, None]
            out[..., rows, cols] = -B[..., rows, cols] @ letters.diagonal([skew(w[..., 0])] * 2)
    return out


BUILD = {
    "P_plus": lambda s: s["tau_bar"] @ s["P"],
    "Omega_d": lambda s: s.diagonal([unit.Omega_d for unit in s.units]),
    "omega": lambda s: s.diagonal([skew(V[..., :3]) for V in s.velocities for _ in range(2)]),
    "P_dot": lambda s: _plus_adjoint(s["Pi"]),
    "lambda_dot": lambda s: s["P_dot"] + _plus_adjoint(s["Omega_d"] @ s["P"]),
    "Pi": lambda s: s.on_diagonal(s["psi"] @ _riccati_source(s) @ t(s["psi"])),
    "D_rate": _cholesky_rate,
    "U_ring": lambda s: _U_dot(s) - t(s["spin"]) @ s["P"] @ t(s["H"]),
    COUPLE: lambda s: -(s["H"] @ t(s["spin"]) + s["H_dot"]) @ s["P_plus"] @ t(s["E_phi"]) @ s.V,
    GRAVITY: _gravity,
    "Om_dot": _omega_dot,
    A_LOCAL: _a_local,
    B_LOCAL: lambda s: -t(s["spin"]) @ s["M"] @ s.V - s["M"] @ s[GRAVITY],
    A: lambda s: _a_local(s) + (s.identity - t(s["E_phi"])) @ (s["omega"] @ s.V - s[GRAVITY]),
    B: lambda s: -t(s["spin"]) @ s["M"] @ s.V - s["M"] @ s["omega"] @ s.V,
}
