"""Maps of joint coordinates and velocities between psiphi and a peer library, by joint type.

One row per joint type, vectorized over leading axes; quaternions are x y z w in psiphi.

to_q(q, joint)     psiphi's coordinates of one joint -> the peer's; from_q is the inverse
T(q, joint)        the orthogonal map v_peer = T v, (..., nv, nv); or a constant array; or None, I
rate(q, v, joint)  (dT/dt) v, or None if T is constant
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from psiphi.model.model import IDENTITY, WORLD, Joint, Pose
from psiphi.model.spatial import rotations
from psiphi.model.spatial.rotations import quaternions, rotation_matrices
from psiphi.model.spatial.scalar_arrays import on_arrays


def _same(q, joint):
    return q


@dataclass(frozen=True)
class PeerJoint:
    """One joint type of a peer; the docstring of the module describes the fields."""

    nq: int
    nv: int
    to_q: Callable = _same
    from_q: Callable = _same
    T: np.ndarray | Callable | None = None
    rate: Callable | None = None


def rotation_2d(angle) -> np.ndarray:
    """The 2x2 rotation by `angle`."""
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)


def _angle_to_pair(q, joint):
    return np.concatenate([np.cos(q), np.sin(q)], axis=-1)


def _pair_to_angle(q, joint):
    return np.arctan2(q[..., 1], q[..., 0])[..., None]


def _planar_to_pair(q, joint):
    return np.concatenate([q[..., :2], _angle_to_pair(q[..., 2:], joint)], axis=-1)


def _planar_from_pair(q, joint):
    return np.concatenate([q[..., :2], _pair_to_angle(q[..., 2:], joint)], axis=-1)


def scalar_first(q, joint=None):
    """(x, y, z, w) -> (w, x, y, z)."""
    return np.roll(q, 1, axis=-1)


def scalar_last(q, joint=None):
    """(w, x, y, z) -> (x, y, z, w)."""
    return np.roll(q, -1, axis=-1)


def _free_joint_axes(joint: Joint) -> Pose:
    """The frame of MuJoCo's free joint: the world, or the joint frame if the parent is a body."""
    return joint.pose if joint.parent == WORLD else IDENTITY


def _mujoco_free_to_q(q, joint):
    pose = _free_joint_axes(joint)
    p = on_arrays(rotations.multiply, quaternions(pose.rotation), q[..., 3:])
    return np.concatenate(
        [q[..., :3] @ pose.rotation.T + pose.translation, scalar_first(p)], axis=-1
    )


def _mujoco_free_from_q(q, joint):
    pose = _free_joint_axes(joint)
    p = on_arrays(
        rotations.relative_quaternion, quaternions(pose.rotation), scalar_last(q[..., 3:])
    )
    return np.concatenate([(q[..., :3] - pose.translation) @ pose.rotation, p], axis=-1)


def _mujoco_free_T(q, joint):
    T = np.zeros((*q.shape[:-1], 6, 6))
    T[..., :3, 3:] = _free_joint_axes(joint).rotation @ rotation_matrices(q[..., 3:])
    T[..., 3:, :3] = np.eye(3)
    return T


def _mujoco_free_rate(q, v, joint):
    # d/dt (R v) = R (a + w x v)
    bias = np.einsum(
        "...ij,...j->...i", rotation_matrices(q[..., 3:]), np.cross(v[..., :3], v[..., 3:])
    )
    bias = bias @ _free_joint_axes(joint).rotation.T
    return np.concatenate([bias, np.zeros_like(bias)], axis=-1)


def _mujoco_planar_T(q, joint):
    T = np.zeros((*q.shape[:-1], 3, 3))
    T[..., :2, 1:] = rotation_2d(q[..., 2])
    T[..., 2, 0] = 1.0
    return T


def _mujoco_planar_rate(q, v, joint):
    bias = v[..., :1] * np.stack([-v[..., 2], v[..., 1]], axis=-1)
    bias = np.einsum("...ij,...j->...i", rotation_2d(q[..., 2]), bias)
    return np.concatenate([bias, np.zeros_like(bias[..., :1])], axis=-1)


_ONE, _TWO = PeerJoint(1, 1), PeerJoint(2, 2)
_LINEAR_FIRST = np.eye(6)[[3, 4, 5, 0, 1, 2]]
_PLANAR_LINEAR_FIRST = np.eye(3)[[1, 2, 0]]

PINOCCHIO: dict[str, PeerJoint] = {
    "revolute": _ONE,
    "continuous": PeerJoint(2, 1, _angle_to_pair, _pair_to_angle),
    "prismatic": _ONE,
    "helical": _ONE,
    "cylindrical": _TWO,
    "universal": _TWO,
    "spherical": PeerJoint(4, 3),
    "planar": PeerJoint(4, 3, _planar_to_pair, _planar_from_pair, _PLANAR_LINEAR_FIRST),
    "free": PeerJoint(7, 6, T=_LINEAR_FIRST),
}

MUJOCO: dict[str, PeerJoint] = {
    "revolute": _ONE,
    "continuous": _ONE,
    "prismatic": _ONE,
    "cylindrical": _TWO,
    "universal": _TWO,
    "spherical": PeerJoint(4, 3, scalar_first, scalar_last),
    "planar": PeerJoint(3, 3, T=_mujoco_planar_T, rate=_mujoco_planar_rate),
    "free": PeerJoint(
        7, 6, _mujoco_free_to_q, _mujoco_free_from_q, _mujoco_free_T, _mujoco_free_rate
    ),
}
