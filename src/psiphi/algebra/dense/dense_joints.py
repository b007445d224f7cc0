"""What has a joint, as matrices: a body; or a cluster of bodies whose joints move together, where loops are embedded.

A cluster S of bodies that hang on body p (docs/embedding.md), with H_S, ℰ_S and φ_S = (I - ℰ_S)⁻¹ of its bodies:

    H*(S) = φ_S* H_S* X      φ(p, S) = C φ_S
    dℰ_φ/dt = ℰ_φ Ω_δ with Ω_δ = (H* v) ×*, as of single bodies;
    dH*/dt = φ_S* ((ℰ_S Ω_S)* φ_S* H_S* X + dH_S*/dt X + H_S* dX/dt), Ω_S of the joints one by one
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.algebra.dense.dense_letter_rates import motion_cross, t
from psiphi.model.body_matrices import stack_scalars
from psiphi.model.loops.cluster_joints import ClusterJoint, cluster_joint
from psiphi.model.loops.clusters import OUTSIDE
from psiphi.model.model import WORLD, Model
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.model.spatial.scalar_arrays import entries

Matrix = np.ndarray


@dataclass(frozen=True)
class Unit:
    """Its rows in vectors over links, its parent among the units, φ(p, k), H* and its rate, Ω_δ, M and J_m."""

    name: str
    rows: slice
    v_slice: slice
    parent: int
    phi: Matrix
    S: Matrix
    S_dot: Matrix
    Omega_d: Matrix
    M: Matrix
    rotor: Matrix
    spun: tuple[Matrix, Matrix] | None = (
        None  # X and (dX/dt) β of a cluster: what its rotors turn by
    )

    @property
    def size(self) -> int:
        return self.rows.stop - self.rows.start


def joint_rates(model: Model, q: Matrix, v: Matrix) -> list[Matrix]:
    """The rates of every joint: v of those that are free, X v of those that move with them."""
    out = [v[..., joint.v_slice] for joint in model.joints]
    for joint in clusters(model):
        laws = joint.kinematics
        whole = stack_scalars(
            laws.rates(entries(q[..., joint.q_slice]), entries(v[..., joint.v_slice])), v.shape[:-1]
        )
        for k, a, b in zip(laws.cluster.bodies, laws.starts, laws.starts[1:], strict=False):
            out[k] = whole[..., a:b]
    return out


def clusters(model: Model) -> list[ClusterJoint]:
    return (
        []
        if model.embedding is None
        else [cluster_joint(model, cluster) for cluster in model.embedding.clusters]
    )


def dense_units(atoms: Any) -> list[Unit]:
    """The units, where matrices over bodies say all of them."""
    for joint in clusters(atoms.model):
        if joint.kinematics.cluster.varying_rotors:
            raise StateError(
                f"{joint.name}: rotors of joints that a loop moves have no place among matrices over bodies",
                "ask the robot's functions, or set their armature to zero",
            )
    return units(atoms)


def units(atoms: Any) -> list[Unit]:
    """Base to tip."""
    model = atoms.model
    inside = {joint.kinematics.cluster.first: joint for joint in clusters(model)}
    found: list[Unit] = []
    home: dict[int, tuple[int, int]] = {}
    k = 0
    while k < len(model.joints):
        compound = inside.get(k)
        count = 1 if compound is None else len(compound.kinematics.cluster.parents)
        home |= {k + i: (len(found), i) for i in range(count)}
        found.append(
            _body_unit(atoms, k, home, found)
            if compound is None
            else _cluster_unit(atoms, compound, home, found)
        )
        k += count
    return found


def _parent_transform(
    phi: Matrix, parent: int, home: dict[int, tuple[int, int]], found: list[Unit]
) -> tuple[int, Matrix]:
    """The unit that a body belongs to, and φ to it: rows of its other bodies are zero."""
    if parent == WORLD:
        return WORLD, phi
    unit, at = home[parent]
    out = np.zeros((*phi.shape[:-2], found[unit].size, phi.shape[-1]))
    out[..., 6 * at : 6 * at + 6, :] = phi
    return unit, out


def _body_unit(atoms: Any, k: int, home: dict[int, tuple[int, int]], found: list[Unit]) -> Unit:
    joint, motion = atoms.model.joints[k], atoms.motions[k]
    parent, phi = _parent_transform(motion.phi, joint.parent, home, found)
    rotor, M, rows = np.diag(joint.armature), atoms.inertias[k], slice(6 * k, 6 * k + 6)
    return Unit(
        joint.name,
        rows,
        joint.v_slice,
        parent,
        phi,
        motion.S,
        motion.S_dot,
        _joint_spin(atoms, k),
        M,
        rotor,
    )


def _joint_spin(atoms: Any, k: int) -> Matrix:
    """Ω_δ of a body by its own joint."""
    return _force_cross((atoms.motions[k].S @ atoms.rates[k][..., None])[..., 0])


def _force_cross(V: Matrix) -> Matrix:
    """V ×*."""
    return -t(motion_cross(V))


def _cluster_unit(
    atoms: Any, joint: ClusterJoint, home: dict[int, tuple[int, int]], found: list[Unit]
) -> Unit:
    cluster, lead = joint.kinematics.cluster, atoms.lead
    bodies, n = cluster.bodies, 6 * len(cluster.parents)
    inner, out = np.zeros((*lead, n, n)), np.zeros((*lead, 6, n))
    for i, (k, on) in enumerate(zip(bodies, cluster.parents, strict=True)):
        phi = atoms.motions[k].phi
        if on == OUTSIDE:
            out[..., 6 * i : 6 * i + 6] = phi
        else:
            inner[..., 6 * on : 6 * on + 6, 6 * i : 6 * i + 6] = phi
    within = np.linalg.inv(np.eye(n) - inner)
    H, H_dot = (
        atoms.diagonal([getattr(atoms.motions[k], word) for k in bodies]) for word in ("S", "S_dot")
    )
    turn = atoms.diagonal([_joint_spin(atoms, k) for k in bodies])
    X, X_dot, drift = _cluster_maps(atoms, joint)
    parent, phi = _parent_transform(out @ within, cluster.parent, home, found)
    S = t(within) @ H @ X
    S_dot = t(within) @ (t(inner @ turn) @ S + H_dot @ X + H @ X_dot)
    rotor = t(X) @ (np.array(cluster.armature)[:, None] * X)
    M = atoms.diagonal([np.broadcast_to(atoms.inertias[k], (*lead, 6, 6)) for k in bodies])
    rows = slice(6 * bodies[0], 6 * bodies[-1] + 6)
    moved = (S @ atoms.v[..., joint.v_slice, None])[..., 0]
    Omega_d = atoms.diagonal([_force_cross(moved[..., i : i + 6]) for i in range(0, n, 6)])
    return Unit(
        joint.name, rows, joint.v_slice, parent, phi, S, S_dot, Omega_d, M, rotor, (X, drift)
    )


def _cluster_maps(atoms: Any, joint: ClusterJoint) -> tuple[Matrix, Matrix, Matrix]:
    """X, dX/dt (..., n_S, n) and (dX/dt) β."""
    laws, lead = joint.kinematics, atoms.lead
    q, v = entries(atoms.q[..., joint.q_slice]), entries(atoms.v[..., joint.v_slice])
    shape = (*lead, laws.nv, len(laws.cluster.free))
    flat = lambda x: [y for row in laws.X(x) for y in row]  # noqa: E731
    rates = laws.rates(q, v)
    X = stack_scalars(flat(q), lead).reshape(shape)
    X_dot = stack_scalars(rate_of_change(flat, q, laws.rate(q, rates)), lead).reshape(shape)
    return X, X_dot, stack_scalars(laws.drift(q, rates), lead)
