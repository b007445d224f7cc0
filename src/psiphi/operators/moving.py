"""The letters that need a velocity, as matrices: time derivatives in body axes, local bias vectors. Dense: the definitions.

With V_d = H* v, Ω_δ = V_d ×* and φ̇ = φ Ω_δ in body axes, the recursion of P differentiates to

    Ṗ(k) = Σ φ {Ṗ⁺ + Ω_δ P⁺ + P⁺ Ω_δ*} φ*,   Ṗ⁺ = Ṗ - Ġ H P - G (Ḣ P + H Ṗ),   Ġ = (Ṗ H* + P Ḣ* - G Ḋ) D⁻¹
    Π(k) = Σ φ {τ̄ Π τ̄* + P⁺ (Ω_δ* - Ḣ* G*)} φ*,   Π + Π* = Ṗ

(docs/mathematics.md section 10, for joints of any kind; Π is the sum of S1 (48)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.model.model import WORLD
from psiphi.operators.letters import A_LOCAL, B_LOCAL, COUPLE, GRAVITY, FrameLetter
from psiphi.spatial.rotations import skew

Matrix = np.ndarray


def t(x: Matrix) -> Matrix:
    """Transpose of the last two axes."""
    return np.swapaxes(x, -1, -2)


def joined(atoms: Any, parts: list[Matrix]) -> Matrix:
    """The bodies' parts as one vector (..., n), of no numbers where there is no body."""
    return np.concatenate([np.zeros((*atoms.lead, 0)), *parts], axis=-1)


def motion_cross(V: Matrix) -> Matrix:
    """V× = [[w~, 0], [v~, w~]]."""
    w, v = skew(V[..., :3]), skew(V[..., 3:])
    return np.concatenate([np.concatenate([w, np.zeros_like(w)], -1), np.concatenate([v, w], -1)], -2)


@dataclass(frozen=True)
class BodyRates:
    """One body: Ω_δ, P⁺ and the derivatives of P, D, G."""

    Omega_d: Matrix
    P_plus: Matrix
    P_dot: Matrix
    Pi: Matrix
    D_dot: Matrix
    G_dot: Matrix


def rates(atoms: Any) -> list[BodyRates]:
    """Tip to base."""
    if "rates" in atoms.known:
        return atoms.known["rates"]
    zeros = [np.zeros((*atoms.lead, unit.size, unit.size)) for unit in atoms.units]
    P_dot, Pi = list(zeros), list(zeros)
    out: list = [None] * len(zeros)
    for k in reversed(range(len(zeros))):
        unit, (P, _, D_inv, G, P_plus) = atoms.units[k], atoms.articulated[k]
        S, S_dot, Omega_d = unit.S, unit.S_dot, unit.Omega_d
        U_dot = P_dot[k] @ S + P @ S_dot
        D_dot = t(S) @ U_dot + t(S_dot) @ P @ S
        G_dot = (U_dot - G @ D_dot) @ D_inv
        plus_dot = P_dot[k] - G_dot @ t(S) @ P - G @ t(U_dot)
        out[k] = BodyRates(Omega_d, P_plus, P_dot[k], Pi[k], D_dot, G_dot)
        if unit.parent != WORLD:
            phi, tau_bar = unit.phi, np.eye(unit.size) - G @ t(S)
            turned = Omega_d @ P_plus
            half = tau_bar @ Pi[k] @ t(tau_bar) + P_plus @ (t(Omega_d) - S_dot @ t(G))
            P_dot[unit.parent] = P_dot[unit.parent] + phi @ (plus_dot + turned + t(turned)) @ t(phi)
            Pi[unit.parent] = Pi[unit.parent] + phi @ half @ t(phi)
    atoms.known["rates"] = out
    return out


def half_rate(D: Matrix, D_dot: Matrix) -> Matrix:
    """Θ = L⁻¹ L̇ for D = L L*: the lower triangle of L⁻¹ Ḋ L⁻*, its diagonal halved."""
    L = np.linalg.cholesky(D)
    X = np.linalg.solve(L, t(np.linalg.solve(L, D_dot)))
    return np.tril(X) - 0.5 * X * np.eye(X.shape[-1])


def _omega_dot(atoms: Any) -> list[Matrix]:
    """Ω̇(k) = d/dt (ψ* Ω ψ + H* D⁻¹ H), base to tip."""
    out: list[Matrix] = []
    for unit, (_, _, D_inv, G, _), rate in zip(atoms.units, atoms.articulated, rates(atoms), strict=True):
        S, S_dot = unit.S, unit.S_dot
        half = S_dot @ D_inv @ t(S)
        Om_dot = half + t(half) - S @ D_inv @ rate.D_dot @ D_inv @ t(S)
        if unit.parent != WORLD:
            tau_bar = np.eye(unit.size) - G @ t(S)
            psi = unit.phi @ tau_bar
            psi_dot = unit.phi @ rate.Omega_d @ tau_bar - unit.phi @ (rate.G_dot @ t(S) + G @ t(S_dot))
            half = t(psi_dot) @ atoms.omega[unit.parent] @ psi
            Om_dot = Om_dot + half + t(half) + t(psi) @ out[unit.parent] @ psi
        out.append(Om_dot)
    return out


def _spins(atoms: Any) -> list[Matrix]:
    """diag(w~, w~) of each link."""
    return [atoms.diagonal([skew(V[..., :3])] * 2) for V in atoms.velocities]


def _lambda_dot(rate: BodyRates, P: Matrix) -> Matrix:
    X = rate.Omega_d @ P
    return rate.P_dot + X + t(X)


def _a_local(atoms: Any) -> Matrix:
    """V× H* v + (dH*/dt) v."""
    parts = []
    for motion, v, V in zip(atoms.motions, atoms.rates, atoms.velocities, strict=True):
        parts.append((motion_cross(V) @ (motion.S @ v[..., None]))[..., 0] + motion.rate)
    return joined(atoms, [unit.gathered(parts) for unit in atoms.units])


def _b_local(atoms: Any) -> Matrix:
    """V×* M V - M [0; g]."""
    parts = []
    for V, M, R in zip(atoms.velocities, atoms.inertias, atoms.rotations, strict=True):
        g = t(R) @ atoms.model.gravity_vector[:, None]
        pull = np.concatenate([np.zeros_like(g), g], axis=-2)
        parts.append((-t(motion_cross(V)) @ M @ V[..., None] - M @ pull)[..., 0])
    return joined(atoms, parts)


def _couple(atoms: Any) -> Matrix:
    """(H V×* - Ḣ) P⁺ V⁺, V⁺ = V - H* v."""
    parts = []
    for unit, rate in zip(atoms.units, rates(atoms), strict=True):
        V = _stacked(atoms, unit)
        felt = rate.P_plus @ (V[..., None] - unit.S @ atoms.v[..., unit.v_slice, None])
        parts.append((-t(unit.S) @ t(_crosses(atoms, V)) @ felt - t(unit.S_dot) @ felt)[..., 0])
    return joined(atoms, parts)


def _stacked(atoms: Any, unit: Any) -> Matrix:
    """V of the bodies of a unit, end to end."""
    return np.concatenate(atoms.velocities[unit.rows.start // 6 : unit.rows.stop // 6], axis=-1)


def _crosses(atoms: Any, V: Matrix) -> Matrix:
    """V× of each body, on the diagonal."""
    return atoms.diagonal([motion_cross(V[..., i : i + 6]) for i in range(0, V.shape[-1], 6)])


def _gravity(atoms: Any) -> Matrix:
    """[0; g] at each link, in its axes."""
    down = [(t(R) @ atoms.model.gravity_vector[:, None])[..., 0] for R in atoms.rotations]
    return joined(atoms, [x for g in down for x in (np.zeros_like(g), g)])


def _U_ring(atoms: Any) -> list[Matrix]:
    out = []
    for unit, rate, (P, *_) in zip(atoms.units, rates(atoms), atoms.articulated, strict=True):
        crosses = _crosses(atoms, _stacked(atoms, unit))
        out.append(rate.P_dot @ unit.S + P @ unit.S_dot - t(crosses) @ P @ unit.S)
    return out


def frames(atoms: Any, x: FrameLetter) -> Matrix:
    """-B diag(w~, w~), w the spin of each frame's link in the axes of B: dB/dt where these are the world's; where they are the
    frames' own, what the inertial derivative adds."""
    B = atoms.frames(x.of)
    out = np.zeros_like(B)
    for i, frame in enumerate(map(atoms.model.frame, x.frames)):
        if frame.body != WORLD:
            rows, cols = slice(6 * frame.body, 6 * frame.body + 6), slice(6 * i, 6 * i + 6)
            axes = frame.pose.rotation.T if x.axes == "frame" else atoms.rotations[frame.body]
            w = axes @ atoms.velocities[frame.body][..., :3, None]
            out[..., rows, cols] = -B[..., rows, cols] @ atoms.diagonal([skew(w[..., 0])] * 2)
    return out


BUILD = {
    "P_plus": lambda s: s.diagonal([r.P_plus for r in rates(s)]),
    "Omega_d": lambda s: s.diagonal([r.Omega_d for r in rates(s)]),
    "omega": lambda s: s.diagonal(_spins(s)),
    "P_dot": lambda s: s.diagonal([r.P_dot for r in rates(s)]),
    "lambda_dot": lambda s: s.diagonal([_lambda_dot(r, P) for r, (P, *_) in zip(rates(s), s.articulated, strict=True)]),
    "Pi": lambda s: s.diagonal([r.Pi for r in rates(s)]),
    "D_rate": lambda s: s.diagonal([half_rate(D, r.D_dot) for r, (_, D, *_) in zip(rates(s), s.articulated, strict=True)]),
    "U_ring": lambda s: s.diagonal(_U_ring(s)),
    COUPLE: lambda s: _couple(s)[..., None],
    GRAVITY: lambda s: _gravity(s)[..., None],
    "Om_dot": lambda s: s.diagonal(_omega_dot(s)),
    A_LOCAL: lambda s: _a_local(s)[..., None],
    B_LOCAL: lambda s: _b_local(s)[..., None],
}
