"""A second opinion in plain NumPy: rigid-body dynamics of any tree and any joint kind, one state at
a time.

Written straight from docs/mathematics.md section 3, derivatives in body axes, in the link frames as
the `Model` gives them: no canonical axes, no operators, no sharing with psiphi's compiled road.
Spatial vectors are angular first.

    V(k)     = phi* V(p) + H* v
    alpha(k) = phi* alpha(p) + H* a + V x (H* v) + Hdot v,     alpha(base) = [0; -g]
    f(k)     = sum of phi f(children) + M alpha + V x* M V - f_ext,   tau = H f + armature a
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from psiphi.model.model import Joint, Model, Pose


class Motion(NamedTuple):
    """A joint's displacement, joint map H* (6, nv) and (d/dt H*) v, all in link axes."""

    pose: Pose
    S: np.ndarray
    rate: np.ndarray


def skew(x) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def axis_rotation(axis, angle: float) -> np.ndarray:
    """Rodrigues: the turn by `angle` about the unit vector `axis`."""
    W = skew(axis)
    return np.eye(3) + np.sin(angle) * W + (1.0 - np.cos(angle)) * W @ W


def quaternion_rotation(q) -> np.ndarray:
    """x, y, z, w of any length -> rotation matrix."""
    x, y, z, w = np.asarray(q) / np.linalg.norm(q)
    U = skew([x, y, z])
    return np.eye(3) + 2.0 * w * U + 2.0 * U @ U


def plane_axes(joint: Joint) -> np.ndarray:
    """Columns x, y, z of a planar joint in the joint frame: z is the normal `axis`, x is `axis2`,
    both the model's data."""
    return np.column_stack([joint.axis2, np.cross(joint.axis, joint.axis2), joint.axis])


def joint_motion(joint: Joint, q, v) -> Motion:
    """The row of the table in docs/mathematics.md section 1 for this joint."""
    return _MOTIONS[joint.kind](joint, q, v)


def _one_axis(joint, q, v, turn: float, slide: float) -> Motion:
    S = np.concatenate([turn * joint.axis, slide * joint.axis])[:, None]
    return Motion(
        Pose(axis_rotation(joint.axis, turn * q[0]), slide * q[0] * joint.axis), S, np.zeros(6)
    )


def _cylindrical(joint, q, v) -> Motion:
    h, zero = joint.axis, np.zeros(3)
    S = np.column_stack([np.concatenate([h, zero]), np.concatenate([zero, h])])
    return Motion(Pose(axis_rotation(h, q[0]), q[1] * h), S, np.zeros(6))


def _universal(joint, q, v) -> Motion:
    h1, h2, zero = joint.axis, joint.axis2, np.zeros(3)
    R2 = axis_rotation(h2, q[1])
    first = R2.T @ h1
    S = np.column_stack([np.concatenate([first, zero]), np.concatenate([h2, zero])])
    rate = np.concatenate([-np.cross(h2 * v[1], first) * v[0], zero])
    return Motion(Pose(axis_rotation(h1, q[0]) @ R2, zero), S, rate)


def _spherical(joint, q, v) -> Motion:
    return Motion(Pose(quaternion_rotation(q), np.zeros(3)), np.eye(6)[:, :3], np.zeros(6))


def _planar(joint, q, v) -> Motion:
    C, zero = plane_axes(joint), np.zeros(3)
    S = np.column_stack(
        [
            np.concatenate([C[:, 2], zero]),
            np.concatenate([zero, C[:, 0]]),
            np.concatenate([zero, C[:, 1]]),
        ]
    )
    return Motion(Pose(axis_rotation(C[:, 2], q[2]), C[:, :2] @ q[:2]), S, np.zeros(6))


def _free(joint, q, v) -> Motion:
    return Motion(Pose(quaternion_rotation(q[3:]), np.asarray(q[:3])), np.eye(6), np.zeros(6))


_MOTIONS = {
    "revolute": lambda j, q, v: _one_axis(j, q, v, 1.0, 0.0),
    "continuous": lambda j, q, v: _one_axis(j, q, v, 1.0, 0.0),
    "prismatic": lambda j, q, v: _one_axis(j, q, v, 0.0, 1.0),
    "helical": lambda j, q, v: _one_axis(j, q, v, 1.0, j.pitch),
    "cylindrical": _cylindrical,
    "universal": _universal,
    "spherical": _spherical,
    "planar": _planar,
    "free": _free,
}


def phi(pose: Pose) -> np.ndarray:
    """phi(outer, inner) in body axes: forces inner -> outer; its transpose carries motions outer ->
    inner."""
    R, zero = pose.rotation, np.zeros((3, 3))
    return np.block([[R, skew(pose.translation) @ R], [zero, R]])


def cross_motion(V) -> np.ndarray:
    """V x on motions."""
    w, v = skew(V[:3]), skew(V[3:])
    return np.block([[w, np.zeros((3, 3))], [v, w]])


def inertias(model: Model) -> list[np.ndarray]:
    """The 6x6 inertia of each body about its link origin."""
    out = []
    for body in model.bodies:
        c = skew(body.com)
        top = [body.inertia - body.mass * c @ c, body.mass * c]
        out.append(np.block([top, [-body.mass * c, body.mass * np.eye(3)]]))
    return out


def poses(model: Model, q) -> list[Pose]:
    """Each link frame in the world."""
    out: list[Pose] = []
    for joint in model.joints:
        inner = joint.pose @ joint_motion(joint, q[joint.q_slice], np.zeros(joint.row.nv)).pose
        out.append(inner if joint.parent < 0 else out[joint.parent] @ inner)
    return out


def frame_pose(model: Model, q, frame: str) -> Pose:
    """The frame in the world."""
    place = model.frames[frame]
    return place.pose if place.body < 0 else poses(model, q)[place.body] @ place.pose


def velocities(model: Model, q, v) -> list[np.ndarray]:
    """Spatial velocity of each link in link axes."""
    out: list[np.ndarray] = []
    for j in model.joints:
        m = joint_motion(j, q[j.q_slice], v[j.v_slice])
        inboard = np.zeros(6) if j.parent < 0 else out[j.parent]
        out.append(phi(j.pose @ m.pose).T @ inboard + m.S @ v[j.v_slice])
    return out


def frame_velocity(model: Model, q, v, frame: str, axes: str = "world") -> np.ndarray:
    """[w; v] of the frame's origin."""
    place = model.frames[frame]
    if place.body < 0:
        return np.zeros(6)
    V = phi(place.pose).T @ velocities(model, q, v)[place.body]
    return V if axes == "frame" else np.kron(np.eye(2), frame_pose(model, q, frame).rotation) @ V


def jacobian(model: Model, q, frame: str, axes: str = "world") -> np.ndarray:
    """Columns are the frame's velocities for unit joint velocities."""
    columns = [frame_velocity(model, q, e, frame, axes) for e in np.eye(model.nv)]
    return np.reshape(columns, (model.nv, 6)).T


def inverse_dynamics(model: Model, q, v, a, f_ext=None, gravity=None) -> np.ndarray:
    """tau; `f_ext` = {frame: [n; f]} acts on the robot at the frame's origin, world axes."""
    g = model.gravity_vector if gravity is None else gravity
    count, V, M = len(model.joints), velocities(model, q, v), inertias(model)
    motions = [joint_motion(j, q[j.q_slice], v[j.v_slice]) for j in model.joints]
    paths = [phi(j.pose @ m.pose) for j, m in zip(model.joints, motions, strict=True)]
    alpha: list[np.ndarray] = []
    f = [-wrench for wrench in _link_wrenches(model, q, f_ext or {})]
    for k, (j, m) in enumerate(zip(model.joints, motions, strict=True)):
        inboard = np.concatenate([np.zeros(3), -g]) if j.parent < 0 else alpha[j.parent]
        spin = cross_motion(V[k])
        alpha.append(paths[k].T @ inboard + m.S @ a[j.v_slice] + spin @ m.S @ v[j.v_slice] + m.rate)
        f[k] = f[k] + M[k] @ alpha[k] - spin.T @ M[k] @ V[k]
    tau = np.zeros(model.nv)
    for k in reversed(range(count)):
        j = model.joints[k]
        tau[j.v_slice] = motions[k].S.T @ f[k] + j.armature * a[j.v_slice]
        if j.parent >= 0:
            f[j.parent] = f[j.parent] + paths[k] @ f[k]
    return tau


def _link_wrenches(model: Model, q, f_ext) -> list[np.ndarray]:
    out, X = [np.zeros(6) for _ in model.bodies], poses(model, q)
    for name, wrench in f_ext.items():
        place = model.frames[name]
        if place.body >= 0:
            R = X[place.body].rotation
            offset = Pose(
                R.T, place.pose.translation
            )  # world axes at the frame's origin, seen from the link
            out[place.body] = out[place.body] + phi(offset) @ np.asarray(wrench)
    return out


def mass_matrix(model: Model, q) -> np.ndarray:
    """Column by column: inverse dynamics at unit accelerations, at rest, without gravity."""
    rest = np.zeros(model.nv)
    columns = [inverse_dynamics(model, q, rest, e, gravity=np.zeros(3)) for e in np.eye(model.nv)]
    return np.reshape(columns, (model.nv, model.nv)).T


def bias(model: Model, q, v) -> np.ndarray:
    """Everything in tau but M a: Coriolis, centrifugal, gravity."""
    return inverse_dynamics(model, q, v, np.zeros(model.nv))


def gravity(model: Model, q) -> np.ndarray:
    """tau that holds the robot still."""
    return bias(model, q, np.zeros(model.nv))


def forward_dynamics(model: Model, q, v, tau, f_ext=None) -> np.ndarray:
    """a = M^-1 (tau - bias), by a dense solve."""
    rest = inverse_dynamics(model, q, v, np.zeros(model.nv), f_ext)
    return np.linalg.solve(mass_matrix(model, q), tau - rest)


def center_of_mass(model: Model, q) -> np.ndarray:
    """In the world."""
    moments = [
        b.mass * (X.rotation @ b.com + X.translation)
        for b, X in zip(model.bodies, poses(model, q), strict=True)
    ]
    return np.sum(moments, axis=0) / sum(b.mass for b in model.bodies)


def energy(model: Model, q, v) -> float:
    """v* M v / 2 - sum m g . c: kinetic (rotors too) and potential, zero at the world's origin."""
    kinetic = 0.5 * v @ mass_matrix(model, q) @ v
    return float(
        kinetic
        - sum(b.mass for b in model.bodies) * model.gravity_vector @ center_of_mass(model, q)
    )
