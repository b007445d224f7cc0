"""Any psiphi `Model` rebuilt in Pinocchio and in MuJoCo, joint by joint."""

# pyright: reportAttributeAccessIssue=false
# (both peers are compiled modules without stubs)

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin

from oracles.reference import plane_axes
from psiphi import interop
from psiphi.interop.tables import quaternion, scalar_first
from psiphi.model.model import IDENTITY, WORLD, Joint, Model, Pose


class Unsupported(Exception):
    """The peer has no such joint or body."""


def inner_turn(joint: Joint) -> Pose:
    """Where Pinocchio (in Python) knows a joint only about z: its axes, seen from the link frame."""
    return Pose(plane_axes(joint), np.zeros(3)) if joint.kind in ("planar", "continuous") else IDENTITY


def _composite(*joints) -> pin.JointModelComposite:
    whole = pin.JointModelComposite(joints[0])
    for joint in joints[1:]:
        whole.addJoint(joint)
    return whole


PINOCCHIO_JOINTS = {
    "revolute": lambda j: pin.JointModelRevoluteUnaligned(j.axis),
    "continuous": lambda j: pin.JointModelRUBZ(),
    "prismatic": lambda j: pin.JointModelPrismaticUnaligned(j.axis),
    "helical": lambda j: pin.JointModelHelicalUnaligned(j.axis, j.pitch),
    "cylindrical": lambda j: _composite(pin.JointModelRevoluteUnaligned(j.axis), pin.JointModelPrismaticUnaligned(j.axis)),
    "universal": lambda j: pin.JointModelUniversal(j.axis, j.axis2),
    "spherical": lambda j: pin.JointModelSpherical(),
    "planar": lambda j: pin.JointModelPlanar(),
    "free": lambda j: pin.JointModelFreeFlyer(),
}


def require_depth_first(model: Model) -> None:
    """Pinocchio's crba is wrong, silently, unless every subtree is numbered in one run."""
    branch: list[int] = []
    for k, parent in enumerate(model.parent):
        while branch and branch[-1] != parent:
            branch.pop()
        if parent != WORLD and not branch:
            raise Unsupported(f"body {k} of {model.name} leaves the depth-first order")
        branch.append(k)


def pinocchio_model(model: Model) -> pin.Model:
    """The same tree, gravity, rotors and frames in Pinocchio."""
    require_depth_first(model)
    out, ids, turns = pin.Model(), {WORLD: 0}, {WORLD: IDENTITY}
    out.name, out.gravity.linear = model.name, np.array(model.gravity_vector)
    for k, (body, joint) in enumerate(zip(model.bodies, model.joints, strict=True)):
        turns[k] = inner_turn(joint)
        placement = turns[joint.parent].inv @ joint.pose @ turns[k]
        ids[k] = out.addJoint(ids[joint.parent], PINOCCHIO_JOINTS[joint.kind](joint), pin.SE3(*placement), joint.name)
        inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
        out.appendBodyToJoint(ids[k], inertia, pin.SE3(*turns[k].inv))
    for frame in model.frames.values():
        place = pin.SE3(*(turns[frame.body].inv @ frame.pose))
        out.addFrame(pin.Frame(frame.name, ids[frame.body], 0, place, pin.FrameType.OP_FRAME))
    rotors = [joint.armature for joint in model.joints]
    out.armature = interop.pinocchio(model).to_tau(np.concatenate(rotors))  # a permutation, so the diagonal stays one
    return out


HINGE, SLIDE, BALL, FREE = (getattr(mujoco.mjtJoint, f"mjJNT_{name}") for name in ("HINGE", "SLIDE", "BALL", "FREE"))
MUJOCO_JOINTS = {
    "revolute": lambda j: [(HINGE, j.axis)],
    "continuous": lambda j: [(HINGE, j.axis)],
    "prismatic": lambda j: [(SLIDE, j.axis)],
    "cylindrical": lambda j: [(HINGE, j.axis), (SLIDE, j.axis)],
    "universal": lambda j: [(HINGE, j.axis), (HINGE, j.axis2)],
    "spherical": lambda j: [(BALL, None)],
    "planar": lambda j: [(kind, axis) for kind, axis in zip((SLIDE, SLIDE, HINGE), plane_axes(j).T, strict=True)],
    "free": lambda j: [(FREE, None)] if j.parent == WORLD else [*((SLIDE, e) for e in np.eye(3)), (BALL, None)],
}


def mujoco_model(model: Model) -> mujoco.MjModel:
    """The same tree, gravity and rotors in MuJoCo; frames become sites. Several joints on one body make the composites."""
    spec = mujoco.MjSpec()
    spec.option.gravity = model.gravity_vector
    spec.option.disableflags = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    bodies = {WORLD: spec.worldbody}
    for k, joint in enumerate(model.joints):
        bodies[k] = _mujoco_body(bodies[joint.parent], model, k)
    for frame in model.frames.values():
        place = dict(pos=frame.pose.translation, quat=scalar_first(quaternion(frame.pose.rotation)))
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
        name=body.name,
        pos=joint.pose.translation,
        quat=scalar_first(quaternion(joint.pose.rotation)),
        explicitinertial=True,
        mass=body.mass,
        ipos=body.com,
        iquat=scalar_first(quaternion(axes)),
        inertia=moments,
    )
    for i, (kind, axis) in enumerate(MUJOCO_JOINTS[joint.kind](joint)):
        name = joint.name if i == 0 else f"{joint.name}:{i}"
        out.add_joint(name=name, type=kind, **({} if axis is None else {"axis": axis}))
    return out


def _mujoco_rotors(model: Model) -> np.ndarray:
    """The diagonal of T diag(armature) T*, which must not depend on q."""
    layout, diagonal = interop.mujoco(model), np.diag(np.concatenate([joint.armature for joint in model.joints]))
    turned = layout.to_mass_matrix(diagonal, model.random(0))
    if np.abs(turned - np.diag(np.diag(turned))).max() > 1e-12:
        raise Unsupported("MuJoCo's rotors of a free or planar joint must be equal along all its slides")
    return np.diag(turned)
