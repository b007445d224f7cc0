"""Pinocchio with psiphi's conventions: a `Model` rebuilt joint by joint, or a file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from psiphi import interop
from psiphi.io.urdf.urdf import load_urdf
from psiphi.model.model import IDENTITY, WORLD, Joint, Model, Pose
from psiphi_bench.peers.lazy_import import pinocchio as pin
from psiphi_bench.peers.peer import Peer, Unsupported


class Pin(Peer):
    """Pinocchio. `Pin(model)` rebuilds the model; `Pin.from_urdf(path)` uses Pinocchio's reader."""

    def __init__(self, model: Model, peer: Any = None):
        self.peer = pinocchio_model(model) if peer is None else peer
        self.data = self.peer.createData()
        self.weightless = pin.Model(self.peer)
        self.weightless.gravity.linear = np.zeros(3)
        super().__init__(model, interop.pinocchio(model, self.peer))

    @classmethod
    def from_urdf(
        cls, path: str | os.PathLike[str], base: str = "fixed", model: Model | None = None
    ) -> Pin:
        """A URDF file loaded by Pinocchio; `model` (default: loaded here) has its coordinates."""
        root = (pin.JointModelFreeFlyer(),) if base == "free" else ()
        return cls(model or load_urdf(path, base=base), pin.buildModelFromUrdf(str(path), *root))

    def frame_id(self, name: str) -> int:
        """The index of a psiphi frame: its added frame, else the URDF link or joint of its name."""
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

    def _forces(self, q, wrenches, names) -> Any:
        """World-aligned wrenches at the frames' origins as one force per joint, in its frame."""
        pin.framesForwardKinematics(self.peer, self.data, q)
        out = pin.StdVec_Force([pin.Force.Zero() for _ in range(self.peer.njoints)])
        for name, wrench in zip(names, wrenches, strict=True):
            k = self.frame_id(name)
            origin = pin.SE3(np.eye(3), self.data.oMf[k].translation)
            joint = self.peer.frames[k].parentJoint
            out[joint] = out[joint] + self.data.oMi[joint].actInv(
                origin.act(pin.Force(wrench[3:], wrench[:3]))
            )
        return out

    def _mass(self, q):
        upper = np.triu(pin.crba(self.peer, self.data, q).reshape(self.peer.nv, self.peer.nv))
        return upper + np.triu(upper, 1).T

    def _inverse_mass(self, q):
        # not computeMinverse, which in Pinocchio 4.1 loses three to five digits for robots with
        # both heavy and light links
        n = self.peer.nv
        rows = [pin.aba(self.weightless, self.data, q, np.zeros(n), e).copy() for e in np.eye(n)]
        return np.reshape(rows, (n, n))

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
        J = pin.computeFrameJacobian(
            self.peer, self.data, q, self.frame_id(frame), pin.LOCAL_WORLD_ALIGNED
        )
        return J.reshape(6, self.peer.nv)  # one column comes back as a vector

    def _energy(self, q, v):
        # not computeKineticEnergy, which in Pinocchio 4.1 ignores rotors of unaligned joints
        return 0.5 * v @ self._mass(q) @ v + pin.computePotentialEnergy(self.peer, self.data, q)

    def _center(self, q):
        return pin.centerOfMass(self.peer, self.data, q).copy()


def link_rotation(joint: Joint) -> Pose:
    """The joint axes x, y, z in the link frame, for joints that Pinocchio has about z only."""
    if joint.kind not in ("planar", "continuous"):
        return IDENTITY
    return Pose(
        np.column_stack([joint.axis2, np.cross(joint.axis, joint.axis2), joint.axis]), np.zeros(3)
    )


def _composite(*joints) -> Any:
    composite = pin.JointModelComposite(joints[0])
    for joint in joints[1:]:
        composite.addJoint(joint)
    return composite


PINOCCHIO_JOINTS = {
    "revolute": lambda j: pin.JointModelRevoluteUnaligned(j.axis),
    "continuous": lambda j: pin.JointModelRUBZ(),
    "prismatic": lambda j: pin.JointModelPrismaticUnaligned(j.axis),
    "helical": lambda j: pin.JointModelHelicalUnaligned(j.axis, j.pitch),
    "cylindrical": lambda j: _composite(
        pin.JointModelRevoluteUnaligned(j.axis), pin.JointModelPrismaticUnaligned(j.axis)
    ),
    "universal": lambda j: pin.JointModelUniversal(j.axis, j.axis2),
    "spherical": lambda j: pin.JointModelSpherical(),
    "planar": lambda j: pin.JointModelPlanar(),
    "free": lambda j: pin.JointModelFreeFlyer(),
}


def require_depth_first(model: Model) -> None:
    """Raise `Unsupported` for other orders, where Pinocchio's crba silently fails."""
    branch: list[int] = []
    for k, parent in enumerate(model.parent):
        while branch and branch[-1] != parent:
            branch.pop()
        if parent != WORLD and not branch:
            raise Unsupported(f"body {k} of {model.name} leaves the depth-first order")
        branch.append(k)


def pinocchio_model(model: Model) -> Any:
    """The same tree, gravity, rotors and frames in Pinocchio."""
    require_depth_first(model)
    out, ids, turns = pin.Model(), {WORLD: 0}, {WORLD: IDENTITY}
    out.name, out.gravity.linear = model.name, np.array(model.gravity_vector)
    for k, (body, joint) in enumerate(zip(model.bodies, model.joints, strict=True)):
        turns[k] = link_rotation(joint)
        placement = turns[joint.parent].inv @ joint.pose @ turns[k]
        ids[k] = out.addJoint(
            ids[joint.parent], PINOCCHIO_JOINTS[joint.kind](joint), pin.SE3(*placement), joint.name
        )
        inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
        out.appendBodyToJoint(ids[k], inertia, pin.SE3(*turns[k].inv))
    for frame in model.frames.values():
        place = pin.SE3(*(turns[frame.body].inv @ frame.pose))
        out.addFrame(pin.Frame(frame.name, ids[frame.body], 0, place, pin.FrameType.OP_FRAME))
    rotors = [joint.armature for joint in model.joints]
    # a permutation, so the diagonal stays diagonal
    out.armature = interop.pinocchio(model).to_tau(np.concatenate(rotors))
    return out
