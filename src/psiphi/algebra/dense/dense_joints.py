"""The units of a robot, as matrices: a body, or a cluster of bodies whose joints move together.

Embedded loops are clusters (docs/embedding.md). For a cluster S with parent p, and H_S, ℰ_S and
φ_S = (I - ℰ_S)⁻¹ of its bodies:

    H*(S) = φ_S* H_S* X      φ(p, S) = C φ_S
    dℰ_φ/dt = ℰ_φ Ω_δ with Ω_δ = (H* v) ×*, as for single bodies
    dH*/dt = φ_S* ((ℰ_S Ω_S)* φ_S* H_S* X + dH_S*/dt X + H_S* dX/dt), Ω_S of its single joints

X maps the independent rates β of the cluster to the rates of all its joints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psiphi._util.errors import StateError
from psiphi.algebra.dense.dense_letter_rates import motion_cross, t
from psiphi.model.body_matrices import stack_scalars
from psiphi.model.loops.cluster_joints import ClusterJoint, cluster_joint
from psiphi.model.loops.clusters import OUTSIDE
from psiphi.model.model import WORLD, Model
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.model.spatial.scalar_arrays import entries

if TYPE_CHECKING:
    from psiphi.algebra.dense.dense_letters import DenseLetters

Matrix = np.ndarray


@dataclass(frozen=True)
class Unit:
    """A body or a cluster.

    rows         its slice of link vectors
    parent       index of its parent unit
    phi          φ(p, k), p the parent
    S, S_dot     H* and its time derivative
    rotor        J_m
    rotor_map    X and (dX/dt) β of a cluster, which give the speeds of its rotors
    """

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
    rotor_map: tuple[Matrix, Matrix] | None = None

    @property
    def size(self) -> int:
        return self.rows.stop - self.rows.start


def joint_rates(model: Model, q: Matrix, v: Matrix) -> list[Matrix]:
    """The rates of each joint: v of independent joints, X v in clusters."""
    out = [v[..., joint.v_slice] for joint in model.joints]
    for joint in clusters(model):
        kinematics = joint.kinematics
        rates = stack_scalars(
            kinematics.rates(entries(q[..., joint.q_slice]), entries(v[..., joint.v_slice])),
            v.shape[:-1],
        )
        for k, a, b in zip(
            kinematics.cluster.bodies, kinematics.starts, kinematics.starts[1:], strict=False
        ):
            out[k] = rates[..., a:b]
    return out


def clusters(model: Model) -> list[ClusterJoint]:
    return [cluster_joint(model, cluster) for cluster in model.clusters]


def dense_units(letters: DenseLetters) -> list[Unit]:
    """The units; an error for clusters whose rotors need more than matrices over bodies."""
    for joint in clusters(letters.model):
        if joint.kinematics.cluster.varying_rotors:
            raise StateError(
                f"{joint.name}: rotors of joints that a loop moves are not supported by `dense`",
                "use the methods of the robot, or set their armature to zero",
            )
    return units(letters)


def units(letters: DenseLetters) -> list[Unit]:
    """The units, base to tip."""
    model = letters.model
    cluster_at = {joint.kinematics.cluster.first: joint for joint in clusters(model)}
    found: list[Unit] = []
    unit_of_body: dict[int, tuple[int, int]] = {}
    k = 0
    while k < len(model.joints):
        cluster = cluster_at.get(k)
        count = 1 if cluster is None else len(cluster.kinematics.cluster.parents)
        unit_of_body |= {k + i: (len(found), i) for i in range(count)}
        found.append(
            _body_unit(letters, k, unit_of_body, found)
            if cluster is None
            else _cluster_unit(letters, cluster, unit_of_body, found)
        )
        k += count
    return found


def _parent_transform(
    phi: Matrix, parent: int, unit_of_body: dict[int, tuple[int, int]], found: list[Unit]
) -> tuple[int, Matrix]:
    """The parent unit, and φ to it; rows of bodies other than the parent body are zero."""
    if parent == WORLD:
        return WORLD, phi
    unit, place = unit_of_body[parent]
    out = np.zeros((*phi.shape[:-2], found[unit].size, phi.shape[-1]))
    out[..., 6 * place : 6 * place + 6, :] = phi
    return unit, out


def _body_unit(
    letters: DenseLetters, k: int, unit_of_body: dict[int, tuple[int, int]], found: list[Unit]
) -> Unit:
    joint, motion = letters.model.joints[k], letters.motions[k]
    parent, phi = _parent_transform(motion.phi, joint.parent, unit_of_body, found)
    rotor, M, rows = np.diag(joint.armature), letters.inertias[k], slice(6 * k, 6 * k + 6)
    return Unit(
        joint.name,
        rows,
        joint.v_slice,
        parent,
        phi,
        motion.S,
        motion.S_dot,
        _joint_spin(letters, k),
        M,
        rotor,
    )


def _joint_spin(letters: DenseLetters, k: int) -> Matrix:
    """Ω_δ of a body: of the velocity in its joint."""
    return _force_cross((letters.motions[k].S @ letters.rates[k][..., None])[..., 0])


def _force_cross(V: Matrix) -> Matrix:
    """V ×*."""
    return -t(motion_cross(V))


def _cluster_unit(
    letters: DenseLetters,
    joint: ClusterJoint,
    unit_of_body: dict[int, tuple[int, int]],
    found: list[Unit],
) -> Unit:
    cluster, lead = joint.kinematics.cluster, letters.lead
    bodies, n = cluster.bodies, 6 * len(cluster.parents)
    inner, out = np.zeros((*lead, n, n)), np.zeros((*lead, 6, n))
    for i, (k, on) in enumerate(zip(bodies, cluster.parents, strict=True)):
        phi = letters.motions[k].phi
        if on == OUTSIDE:
            out[..., 6 * i : 6 * i + 6] = phi
        else:
            inner[..., 6 * on : 6 * on + 6, 6 * i : 6 * i + 6] = phi
    within = np.linalg.inv(np.eye(n) - inner)
    H, H_dot = (
        letters.diagonal([getattr(letters.motions[k], word) for k in bodies])
        for word in ("S", "S_dot")
    )
    spins = letters.diagonal([_joint_spin(letters, k) for k in bodies])
    X, X_dot, drift = _cluster_maps(letters, joint)
    parent, phi = _parent_transform(out @ within, cluster.parent, unit_of_body, found)
    S = t(within) @ H @ X
    S_dot = t(within) @ (t(inner @ spins) @ S + H_dot @ X + H @ X_dot)
    rotor = t(X) @ (np.array(cluster.armature)[:, None] * X)
    M = letters.diagonal([np.broadcast_to(letters.inertias[k], (*lead, 6, 6)) for k in bodies])
    rows = slice(6 * bodies[0], 6 * bodies[-1] + 6)
    V_d = (S @ letters.v[..., joint.v_slice, None])[..., 0]
    Omega_d = letters.diagonal([_force_cross(V_d[..., i : i + 6]) for i in range(0, n, 6)])
    return Unit(
        joint.name, rows, joint.v_slice, parent, phi, S, S_dot, Omega_d, M, rotor, (X, drift)
    )


def _cluster_maps(letters: DenseLetters, joint: ClusterJoint) -> tuple[Matrix, Matrix, Matrix]:
    """X, dX/dt (..., n_S, n) and (dX/dt) β."""
    kinematics, lead = joint.kinematics, letters.lead
    q, v = entries(letters.q[..., joint.q_slice]), entries(letters.v[..., joint.v_slice])
    shape = (*lead, kinematics.nv, len(kinematics.cluster.free))
    flat = lambda x: [y for row in kinematics.X(x) for y in row]  # noqa: E731
    rates = kinematics.rates(q, v)
    X = stack_scalars(flat(q), lead).reshape(shape)
    X_dot = stack_scalars(rate_of_change(flat, q, kinematics.rate(q, rates)), lead).reshape(shape)
    return X, X_dot, stack_scalars(kinematics.drift(q, rates), lead)
