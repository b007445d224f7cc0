"""MuJoCo: a psiphi `Model` rebuilt joint by joint, with psiphi's conventions."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi import interop
from psiphi.io.conventions.joint_coordinate_maps import scalar_first
from psiphi.io.mujoco.mjcf_writer import MUJOCO_JOINTS, OneAxis
from psiphi.model.model import WORLD, Model
from psiphi.model.spatial.rotations import quaternions
from psiphi_bench.peers.lazy_import import mujoco
from psiphi_bench.peers.peer import Peer, Unsupported


class Mj(Peer):
    """MuJoCo, without contacts, limits or friction."""

    def __init__(self, model: Model):
        self.peer = mujoco_model(model)
        self.data = mujoco.MjData(self.peer)
        super().__init__(model, interop.mujoco(model, self.peer))

    def _at(self, q, v=None) -> None:
        """Set the state and compute all quantities that depend on it."""
        self.data.qpos[:], self.data.qvel[:] = q, 0.0 if v is None else v
        mujoco.mj_fwdPosition(self.peer, self.data)
        mujoco.mj_fwdVelocity(self.peer, self.data)

    def _forward(self, q, v, tau, wrenches, names):
        self._at(q, v)
        self.data.qfrc_applied[:] = tau + self._forces(wrenches, names)
        mujoco.mj_forward(self.peer, self.data)
        return self.data.qacc.copy()

    def _inverse(self, q, v, a, wrenches, names):
        self._at(q, v)
        self.data.qacc[:] = a
        mujoco.mj_inverse(self.peer, self.data)
        return self.data.qfrc_inverse - self._forces(wrenches, names)

    def _forces(self, wrenches, names) -> np.ndarray:
        out = np.zeros(self.peer.nv)
        for name, wrench in zip(names, wrenches, strict=True):
            site, force, torque = self.data.site(name), np.array(wrench[3:]), np.array(wrench[:3])
            mujoco.mj_applyFT(
                self.peer, self.data, force, torque, site.xpos, self.peer.site(name).bodyid[0], out
            )
        return out

    def _mass(self, q):
        self._at(q)
        M = np.zeros((self.peer.nv, self.peer.nv))
        mujoco.mj_fullM(self.peer, self.data, M)
        return M

    def _inverse_mass(self, q):
        self._at(q)
        M_inv = np.zeros((self.peer.nv, self.peer.nv))
        mujoco.mj_solveM(self.peer, self.data, M_inv, np.eye(self.peer.nv))
        return M_inv

    def _pose(self, q, frame):
        self._at(q)
        site = self.data.site(frame)
        return site.xmat.reshape(3, 3).copy(), site.xpos.copy()

    def _velocity(self, q, v, frame, axes):
        self._at(q, v)
        V, kind = np.zeros(6), mujoco.mjtObj.mjOBJ_SITE
        mujoco.mj_objectVelocity(
            self.peer, self.data, kind, self.peer.site(frame).id, V, axes == "frame"
        )
        return V

    def _jacobian(self, q, frame):
        self._at(q)
        J = np.zeros((6, self.peer.nv))
        mujoco.mj_jacSite(self.peer, self.data, J[:3], J[3:], self.peer.site(frame).id)
        return J

    def _energy(self, q, v):
        self._at(q, v)
        mujoco.mj_energyPos(self.peer, self.data)
        mujoco.mj_energyVel(self.peer, self.data)
        return self.data.energy.sum()

    def _center(self, q):
        self._at(q)
        return self.data.subtree_com[0].copy()


def mujoco_model(model: Model) -> Any:
    """The same tree, gravity and rotors in MuJoCo.

    Frames become sites; joints of several degrees of freedom become several joints on one body.
    """
    if not model.joints:
        raise Unsupported("MuJoCo has no model without joints")
    spec = mujoco.MjSpec()
    spec.option.gravity = model.gravity_vector
    spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    bodies = {WORLD: spec.worldbody}
    for k, joint in enumerate(model.joints):
        bodies[k] = _mujoco_body(bodies[joint.parent], model, k)
    for frame in model.frames.values():
        place = dict(
            pos=frame.pose.translation, quat=scalar_first(quaternions(frame.pose.rotation))
        )
        bodies[frame.body].add_site(name=frame.name, **place)
    try:
        out = spec.compile()
    except ValueError as error:
        raise Unsupported(str(error)) from error
    out.dof_armature[:] = _mujoco_rotors(model)
    return out


def _mujoco_body(parent, model: Model, k: int):
    body, joint = model.bodies[k], model.joints[k]
    if joint.kind not in MUJOCO_JOINTS:
        raise Unsupported(f"MuJoCo has no {joint.kind} joint")
    moments, axes = np.linalg.eigh(body.inertia)
    axes = axes * np.sign(np.linalg.det(axes))
    out = parent.add_body(
        pos=joint.pose.translation,
        quat=scalar_first(quaternions(joint.pose.rotation)),
        explicitinertial=True,
        mass=body.mass,
        ipos=body.com,
        iquat=scalar_first(quaternions(axes)),
        inertia=moments,
    )
    pieces = MUJOCO_JOINTS[joint.kind](joint)
    if (
        joint.kind == "free" and joint.parent != WORLD
    ):  # MuJoCo allows free joints on the world only
        pieces = [
            *(OneAxis("slide", axis, i, i) for i, axis in enumerate(np.eye(3))),
            *MUJOCO_JOINTS["spherical"](joint),
        ]
    for i, (kind, axis, *_) in enumerate(pieces):
        name = joint.name if i == 0 else f"{joint.name}:{i}"
        place = {} if axis is None else {"axis": axis}
        out.add_joint(name=name, type=getattr(mujoco.mjtJoint, f"mjJNT_{kind.upper()}"), **place)
    return out


def _mujoco_rotors(model: Model) -> np.ndarray:
    """The diagonal of T diag(armature) T*, which must not depend on q."""
    layout, diagonal = (
        interop.mujoco(model),
        np.diag(np.concatenate([joint.armature for joint in model.joints])),
    )
    rotated = layout.to_mass_matrix(diagonal, model.random(seed=0))
    if np.abs(rotated - np.diag(np.diag(rotated))).max() > 1e-12:
        raise Unsupported(
            "MuJoCo's rotors of a free or planar joint must be equal along all its slides"
        )
    return np.diag(rotated)
