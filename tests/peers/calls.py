"""The peers' own calls, one state at a time, wrapped to psiphi's conventions and batches."""

# pyright: reportAttributeAccessIssue=false
# (both peers are compiled modules without stubs)

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
import pinocchio as pin

from peers.models import mujoco_model, pinocchio_model
from psiphi import interop
from psiphi.model.model import WORLD, Model, Pose
from psiphi.model.urdf import load_urdf


class Peer:
    """What both peers share: convert the batch, loop over it, convert back.

    A peer gives the calls for one state, in its own coordinates; poses, velocities and points are psiphi's.
    """

    _forward: Callable  # q, v, tau, wrenches, their frames -> a
    _inverse: Callable  # q, v, a, wrenches, their frames -> tau
    _mass: Callable  # q -> (nv, nv)
    _pose: Callable  # q, frame -> R, p
    _velocity: Callable  # q, v, frame, axes -> [w; v]
    _jacobian: Callable  # q, frame -> (6, nv), linear rows first
    _energy: Callable  # q, v -> number
    _center: Callable  # q -> point

    def __init__(self, model: Model, layout: interop.Layout):
        self.model, self.layout = model, layout

    def forward_dynamics(self, q, v, tau, f_ext=None) -> np.ndarray:
        Q, V, L = self.layout.to_q(q), self.layout.to_v(v, q), self.layout
        names, wrenches = _stacked(f_ext)
        call = _each(lambda *args: self._forward(*args, names), "(q),(v),(v),(k,s)->(v)")
        return L.from_a(call(Q, V, L.to_tau(tau, q), wrenches), Q, V)

    def inverse_dynamics(self, q, v, a, f_ext=None) -> np.ndarray:
        Q, V, L = self.layout.to_q(q), self.layout.to_v(v, q), self.layout
        names, wrenches = _stacked(f_ext)
        call = _each(lambda *args: self._inverse(*args, names), "(q),(v),(v),(k,s)->(v)")
        return L.from_tau(call(Q, V, L.to_a(a, q, v), wrenches), Q)

    def mass_matrix(self, q) -> np.ndarray:
        Q = self.layout.to_q(q)
        return self.layout.from_mass_matrix(self._masses(Q), Q)

    def bias(self, q, v) -> np.ndarray:
        Q, V = self.layout.to_q(q), self.layout.to_v(v, q)
        call = _each(lambda q, v: self._inverse(q, v, 0 * v, np.zeros((0, 6)), []), "(q),(v)->(v)")
        return self.layout.from_bias(call(Q, V), self._masses(Q), Q, V)

    def gravity(self, q) -> np.ndarray:
        return self.bias(q, np.zeros(self.model.nv))

    def frame_pose(self, q, frame: str) -> Pose:
        call = _each(lambda q: self._pose(q, frame), "(q)->(r,r),(r)")
        return Pose(*call(self.layout.to_q(q)))

    def frame_velocity(self, q, v, frame: str, axes: str = "world") -> np.ndarray:
        call = _each(lambda q, v: self._velocity(q, v, frame, axes), "(q),(v)->(s)")
        return call(self.layout.to_q(q), self.layout.to_v(v, q))

    def jacobian(self, q, frame: str, axes: str = "world") -> np.ndarray:
        Q, call = self.layout.to_q(q), _each(lambda q: self._jacobian(q, frame), "(q)->(s,v)")
        J = self.layout.from_jacobian(call(Q), Q)
        R = np.swapaxes(self.frame_pose(q, frame).rotation, -1, -2)
        return J if axes == "world" else np.concatenate([R @ J[..., :3, :], R @ J[..., 3:, :]], axis=-2)

    def energy(self, q, v) -> np.ndarray:
        return _each(self._energy, "(q),(v)->()")(self.layout.to_q(q), self.layout.to_v(v, q))

    def center_of_mass(self, q) -> np.ndarray:
        return _each(self._center, "(q)->(r)")(self.layout.to_q(q))

    def _masses(self, Q) -> np.ndarray:
        return _each(self._mass, "(q)->(v,v)")(Q)


def _each(function, signature: str):
    """A plain loop over the leading axes."""
    return np.vectorize(function, signature=signature)


def _stacked(f_ext) -> tuple[list[str], np.ndarray]:
    """{frame: (..., 6)} as the frames' names and one array (..., k, 6)."""
    if not f_ext:
        return [], np.zeros((0, 6))
    return list(f_ext), np.stack(np.broadcast_arrays(*(np.asarray(w, dtype=float) for w in f_ext.values())), axis=-2)


class Pin(Peer):
    """Pinocchio. `Pin(model)` rebuilds the model; `Pin.from_urdf(path)` trusts Pinocchio's own reader."""

    def __init__(self, model: Model, peer: pin.Model | None = None):
        self.peer = pinocchio_model(model) if peer is None else peer
        self.data = self.peer.createData()
        super().__init__(model, interop.pinocchio(model, self.peer))

    @classmethod
    def from_urdf(cls, path, base: str = "fixed", model: Model | None = None) -> Pin:
        """Pinocchio's reading of a URDF file, seen through psiphi's `model` of it (read here if not given)."""
        root = (pin.JointModelFreeFlyer(),) if base == "free" else ()
        return cls(model or load_urdf(path, base=base), pin.buildModelFromUrdf(str(path), *root))

    def frame_id(self, name: str) -> int:
        """A psiphi frame's index: the frame added for it, else the URDF link or joint of that name."""
        kinds = pin.FrameType
        for kind in (kinds.OP_FRAME, kinds.BODY, kinds.FIXED_JOINT, kinds.JOINT):
            if self.peer.existFrame(name, kind):
                return self.peer.getFrameId(name, kind)
        if self.model.frame(name).body == WORLD:
            return 0
        raise KeyError(f"Pinocchio has no frame {name!r}")

    def _forward(self, q, v, tau, wrenches, names):
        return pin.aba(self.peer, self.data, q, v, tau, self._forces(q, wrenches, names)).copy()

    def _inverse(self, q, v, a, wrenches, names):
        return pin.rnea(self.peer, self.data, q, v, a, self._forces(q, wrenches, names)).copy()

    def _forces(self, q, wrenches, names) -> pin.StdVec_Force:
        """World-aligned wrenches at the frames' origins -> one force a joint, in its own frame."""
        pin.framesForwardKinematics(self.peer, self.data, q)
        out = pin.StdVec_Force([pin.Force.Zero() for _ in range(self.peer.njoints)])
        for name, wrench in zip(names, wrenches, strict=True):
            k = self.frame_id(name)
            at = pin.SE3(np.eye(3), self.data.oMf[k].translation)
            joint = self.peer.frames[k].parentJoint
            out[joint] = out[joint] + self.data.oMi[joint].actInv(at.act(pin.Force(wrench[3:], wrench[:3])))
        return out

    def _mass(self, q):
        upper = np.triu(pin.crba(self.peer, self.data, q).reshape(self.peer.nv, self.peer.nv))
        return upper + np.triu(upper, 1).T

    def _pose(self, q, frame):
        pin.framesForwardKinematics(self.peer, self.data, q)
        place = self.data.oMf[self.frame_id(frame)]
        return place.rotation.copy(), place.translation.copy()

    def _velocity(self, q, v, frame, axes):
        pin.forwardKinematics(self.peer, self.data, q, v)
        where = pin.LOCAL if axes == "frame" else pin.LOCAL_WORLD_ALIGNED
        V = pin.getFrameVelocity(self.peer, self.data, self.frame_id(frame), where)
        return np.concatenate([V.angular, V.linear])

    def _jacobian(self, q, frame):
        J = pin.computeFrameJacobian(self.peer, self.data, q, self.frame_id(frame), pin.LOCAL_WORLD_ALIGNED)
        return J.reshape(6, self.peer.nv)  # one column comes back as a vector

    def _energy(self, q, v):
        # not computeKineticEnergy: Pinocchio 4.1 leaves out the rotors of unaligned hinges and screws
        return 0.5 * v @ self._mass(q) @ v + pin.computePotentialEnergy(self.peer, self.data, q)

    def _center(self, q):
        return pin.centerOfMass(self.peer, self.data, q).copy()


class Mj(Peer):
    """MuJoCo, without contacts, limits or friction."""

    def __init__(self, model: Model):
        self.peer = mujoco_model(model)
        self.data = mujoco.MjData(self.peer)
        super().__init__(model, interop.mujoco(model, self.peer))

    def _at(self, q, v=None) -> None:
        """Put the state in and compute everything that depends on it."""
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
            mujoco.mj_applyFT(self.peer, self.data, force, torque, site.xpos, self.peer.site(name).bodyid[0], out)
        return out

    def _mass(self, q):
        self._at(q)
        M = np.zeros((self.peer.nv, self.peer.nv))
        mujoco.mj_fullM(self.peer, self.data, M)
        return M

    def _pose(self, q, frame):
        self._at(q)
        site = self.data.site(frame)
        return site.xmat.reshape(3, 3).copy(), site.xpos.copy()

    def _velocity(self, q, v, frame, axes):
        self._at(q, v)
        V, kind = np.zeros(6), mujoco.mjtObj.mjOBJ_SITE
        mujoco.mj_objectVelocity(self.peer, self.data, kind, self.peer.site(frame).id, V, axes == "frame")
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
