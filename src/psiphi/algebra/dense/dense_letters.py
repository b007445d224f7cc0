"""The letters as dense matrices, by their definitions.

The tests compare compiled code with these matrices. The two share no code, so an error in either
shows as a difference.

ℰ_φ(p, k) = φ(p, k),  φ = (I - ℰ_φ)⁻¹;   ℰ₀(k) = φ(world, k) at roots
P(k) = M(k) + Σ φ(k, c) P⁺(c) φ*(k, c),  D = H P H* + J_m,
G = P H* D⁻¹,  P⁺ = P - G H P;   τ̄ = I - G H,  ℰ_ψ = ℰ_φ τ̄,  ψ = (I - ℰ_ψ)⁻¹
Ω = ⟨ψ* H* D⁻¹ H ψ⟩, the blocks on its diagonal
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from psiphi._util.errors import SingularError, StateError
from psiphi.algebra.dense import dense_letter_rates
from psiphi.algebra.dense.dense_joints import Unit, dense_units, joint_rates
from psiphi.algebra.dense.dense_letter_rates import t
from psiphi.algebra.expressions.letters import FrameLetter
from psiphi.model.body_matrices import (
    articulate_joint,
    force_transform,
    joint_motion,
    spatial_inertia,
    tip_to_base,
)
from psiphi.model.model import WORLD, Model
from psiphi.model.spatial.rotations import skew

Matrix = np.ndarray


def no_center_of_mass(name: str) -> SingularError:
    """The error of a robot without a centre of mass."""
    return SingularError(
        f"no moving body of {name} has mass: there is no centre of mass",
        "write E_0, which refers to the world's origin",
    )


def block_diagonal(blocks: list[Matrix], lead: tuple[int, ...] = ()) -> Matrix:
    """(*lead, rows, columns) with these blocks on the diagonal."""
    out = np.zeros((*lead, sum(b.shape[-2] for b in blocks), sum(b.shape[-1] for b in blocks)))
    r = c = 0
    for b in blocks:
        out[..., r : r + b.shape[-2], c : c + b.shape[-1]] = b
        r, c = r + b.shape[-2], c + b.shape[-1]
    return out


class DenseLetters:
    """The operators of a robot at q (..., nq), v (..., nv).

    With `letters = DenseLetters(model, q, v)`, `letters["phi"]` is the matrix (..., 6N, 6N).
    """

    def __init__(self, model: Model, q: np.ndarray, v: np.ndarray):
        self.model = model
        self.lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        self.v = np.broadcast_to(v, (*self.lead, model.nv))
        self.q = np.broadcast_to(q, (*self.lead, model.nq))
        self.rates = joint_rates(model, self.q, self.v)  # one array per body
        self.motions = [
            joint_motion(joint, self.q[..., joint.motion_slice], v)
            for joint, v in zip(model.joints, self.rates, strict=True)
        ]
        self.cache: dict[str, Matrix] = {}

    def __getitem__(self, name: str) -> Matrix:
        if name not in self.cache:
            self.cache[name] = (
                self._frames(name) if isinstance(name, FrameLetter) else MATRICES[name](self)
            )
        return self.cache[name]

    def _frames(self, x: FrameLetter) -> Matrix:
        return dense_letter_rates.frame_rates(self, x) if x.rate else self.frames(x)

    @property
    def identity(self) -> Matrix:
        return np.eye(6 * len(self.model.bodies))

    @cached_property
    def units(self) -> list[Unit]:
        """The bodies; bodies of an embedded loop are one unit."""
        return dense_units(self)

    def on_diagonal(self, X: Matrix) -> Matrix:
        """⟨X⟩: the diagonal blocks of an operator from links to links."""
        return self.diagonal([X[..., unit.rows, unit.rows] for unit in self.units])

    def diagonal(self, blocks: list[Matrix], lead: tuple[int, ...] | None = None) -> Matrix:
        """Block diagonal; `lead`: batch axes, if vectors have more than the state."""
        return block_diagonal(blocks, self.lead if lead is None else lead)

    @cached_property
    def inertias(self) -> list[Matrix]:
        """M(k), about the origin of the link."""
        return [spatial_inertia(body) for body in self.model.bodies]

    @cached_property
    def articulated(self) -> list[tuple[Matrix, Matrix, Matrix, Matrix, Matrix]]:
        """(P, D, D⁻¹, G, P⁺) of each unit, tip to base."""
        units, out = self.units, {}

        def step(k: int, P: Matrix) -> Matrix:
            S, phi = units[k].S, units[k].phi
            try:
                D, G, P_plus = articulate_joint(P, S, units[k].rotor)
                out[k] = P, D, np.linalg.inv(D), G, P_plus
            except np.linalg.LinAlgError as error:
                cause = f"D of joint {units[k].name!r} is singular"
                raise SingularError(
                    cause, "give the bodies that it carries mass or inertia"
                ) from error
            return phi @ P_plus @ t(phi)

        def inertia(k: int) -> Matrix:
            return np.broadcast_to(units[k].M, (*self.lead, *units[k].M.shape[-2:]))

        tip_to_base(reversed(range(len(units))), [unit.parent for unit in units], inertia, step)
        return [out[k] for k in range(len(units))]

    @cached_property
    def rotations(self) -> list[Matrix]:
        """Link axes -> world axes."""
        out: list[Matrix] = []
        for joint, motion in zip(self.model.joints, self.motions, strict=True):
            out.append(motion.R if joint.parent == WORLD else out[joint.parent] @ motion.R)
        return out

    def frames(self, x: FrameLetter) -> Matrix:
        """B: wrenches at frames, in world or frame axes -> forces on their links."""
        out = np.zeros((*self.lead, 6 * len(self.model.bodies), 6 * len(x.frames)))
        for i, frame in enumerate(map(self.model.frame, x.frames)):
            if frame.body != WORLD:
                R = frame.pose.rotation if x.axes == "frame" else t(self.rotations[frame.body])
                rows = slice(6 * frame.body, 6 * frame.body + 6)
                out[..., rows, 6 * i : 6 * i + 6] = force_transform(R, frame.pose.translation)
        return out

    def shift(self, blocks: list[Matrix]) -> Matrix:
        """The matrix with blocks[k] at (parent(k), k) for each unit k; roots have no block."""
        n = sum(unit.size for unit in self.units)
        out = np.zeros((*self.lead, n, n))
        for unit, block in zip(self.units, blocks, strict=True):
            if unit.parent != WORLD:
                out[..., self.units[unit.parent].rows, unit.rows] = block
        return out

    def to_world(self) -> Matrix:
        """ℰ₀: forces at the roots -> forces at the world's origin, in world axes."""
        out = np.zeros((*self.lead, 6, 6 * len(self.motions)))
        for unit in self.units:
            if unit.parent == WORLD:
                out[..., unit.rows] = unit.phi
        return out

    def refuse_clusters(self, letter: str) -> None:
        """Raise a StateError for robots with embedded loops, which do not have this letter."""
        if self.model.embedding is not None:
            raise StateError(
                f"{letter} is not defined: {self.model.embedding.describe(self.model.name)}",
                "write E_phi or K",
            )

    @cached_property
    def total_inertia(self) -> Matrix:
        """ℰ₀ φ M φ* ℰ₀* = [[I, m c~], [-m c~, m]]: of all bodies, about the world's origin."""
        phi = self["E_0"] @ self["phi"]
        return phi @ self["M"] @ t(phi)

    def to_center(self) -> Matrix:
        """ℰ_c = [[I, -c~], [0, I]] ℰ₀."""
        if not self.motions:
            return self["E_0"]
        mass = sum(body.mass for body in self.model.bodies)
        if not mass > 0.0:
            raise no_center_of_mass(self.model.name)
        out = self["E_0"].copy()
        out[..., :3, :] -= self.total_inertia[..., :3, 3:] @ out[..., 3:, :] / mass
        return out

    def potential(self) -> Matrix:
        """U = - g·(m c), as a 1 x 1 matrix."""
        moment = self.total_inertia[..., [2, 0, 1], [4, 5, 3]]  # m c, from m c~
        return -(moment @ self.model.gravity_vector)[..., None, None]

    def articulated_part(self, i: int) -> Matrix:
        return self.diagonal([parts[i] for parts in self.articulated])

    @cached_property
    def V(self) -> Matrix:
        """φ* H* v in link axes, as a column (..., 6N, 1)."""
        return t(self["phi"]) @ t(self["H"]) @ self.v[..., None]

    @property
    def velocities(self) -> list[Matrix]:
        """V(k) of each link, (..., 6)."""
        return [self.V[..., 6 * k : 6 * k + 6, 0] for k in range(len(self.motions))]

    def gyroscopic(self) -> list[Matrix]:
        """(V×* M - M V× + (M V)×̄) / 2, with (f ×̄) x = x ×* f."""
        out = []
        for V, M in zip(self.velocities, self.inertias, strict=True):
            X, f = dense_letter_rates.motion_cross(V), (M @ V[..., None])[..., 0]
            n, F = skew(f[..., :3]), skew(f[..., 3:])
            bar = -np.concatenate(
                [np.concatenate([n, F], -1), np.concatenate([F, np.zeros_like(F)], -1)], -2
            )
            out.append(0.5 * (-t(X) @ M - M @ X + bar))
        return out


BUILD = {
    "H_dot": lambda s: s.diagonal([t(unit.S_dot) for unit in s.units]),
    "spin": lambda s: s.diagonal([dense_letter_rates.motion_cross(V) for V in s.velocities]),
    "gyro": lambda s: s.diagonal(s.gyroscopic()),
    "H": lambda s: s.diagonal([t(unit.S) for unit in s.units]),
    "M": lambda s: s.diagonal(s.inertias),
    "P": lambda s: s.articulated_part(0),
    "D": lambda s: s.articulated_part(1),
    "D_inv": lambda s: s.articulated_part(2),
    "D_half": lambda s: np.linalg.cholesky(s["D"]),
    "D_half_inv": lambda s: np.linalg.inv(s["D_half"]),
    "G": lambda s: s.articulated_part(3),
    "rotor": lambda s: s.diagonal([unit.rotor for unit in s.units]),
    "S": lambda s: s.refuse_clusters("S") or s.shift([np.eye(6)] * len(s.motions)),
    "Delta_phi": lambda s: s.refuse_clusters("Delta_phi") or s.diagonal([m.phi for m in s.motions]),
    "E_phi": lambda s: s.shift([unit.phi for unit in s.units]),
    "E_0": lambda s: s.to_world(),
    "E_c": lambda s: s.to_center(),
    "phi": lambda s: np.linalg.inv(s.identity - s["E_phi"]),
    "tau_bar": lambda s: s.identity - s["G"] @ s["H"],
    "Delta_psi": lambda s: s["Delta_phi"] @ s["tau_bar"],
    "E_psi": lambda s: s["E_phi"] @ s["tau_bar"],
    "psi": lambda s: np.linalg.inv(s.identity - s["E_psi"]),
    "L": lambda s: s["Delta_phi"] @ s["G"],
    "K": lambda s: s["E_phi"] @ s["G"],
    "Phi": lambda s: s["phi"] @ s["S"],
    "Psi": lambda s: s["psi"] @ s["S"],
    "Om": lambda s: s.on_diagonal(t(s["psi"]) @ t(s["H"]) @ s["D_inv"] @ s["H"] @ s["psi"]),
    "U": lambda s: s.potential(),
}
MATRICES: dict[str, Callable[[DenseLetters], Matrix]] = {**BUILD, **dense_letter_rates.BUILD}
