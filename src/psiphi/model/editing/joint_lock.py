"""Lock joints: each becomes a fixed joint at its displacement in a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import matching_names, real_array
from psiphi.model.body_matrices import joint_motion
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.pose_values import placement
from psiphi.model.builder.records import JointRecord
from psiphi.model.loops.cluster_joints import closed_configurations, cluster_joint
from psiphi.model.model import IDENTITY, Joint, Model, Pose
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.transforms import Placement, compose

# The name of a posture, positions by joint, or q.
Position: TypeAlias = str | Mapping[str, Numbers] | Numbers


def lock(
    model: Model,
    builder: Builder,
    joints: str | Iterable[str] | Mapping[str, Numbers],
    position: Position | None = None,
) -> np.ndarray:
    """Fix joints in the builder at a configuration, which is returned.

    The joints of embedded loops that can no longer move are fixed, too.
    """
    if isinstance(joints, Mapping):
        if position is not None:
            raise StateError("both positions of joints and `at` are given", "give one of them")
        joints, position = list(joints), joints
    known = [joint.name for joint in model.joints if joint.shared is None]
    q = configuration(model, "at", position)
    for name in _immobile_joints(model, q, matching_names("joints", joints, known, model.name)):
        for record in _joint_records(builder, name):
            joint = model.joint(record.name)
            locked = compose(record.place, placement(displacement(joint, q[joint.motion_slice])))
            builder.joints[record.name] = fixed_joint(record, locked)
    return q


def _immobile_joints(model: Model, q: np.ndarray, names: list[str]) -> list[str]:
    """The joints `names`, and the joints of embedded loops that cannot move while these are fixed.

    With rates X β of the joints of a cluster: for all β for which the rates of the fixed joints are
    zero, the rates of the others in question are zero, too.
    """
    locked = set(names)
    for cluster in model.clusters:
        joints = [model.joints[k] for k in cluster.bodies]
        if cluster.modes or not locked & {joint.name for joint in joints}:
            continue
        joint = cluster_joint(model, cluster)
        X = np.array(joint.kinematics.X(entries(q[joint.q_slice])), dtype=float).reshape(
            -1, len(cluster.free)
        )
        rows = {
            j.name: X[a:b]
            for j, a, b in zip(
                joints, joint.kinematics.starts, joint.kinematics.starts[1:], strict=False
            )
        }
        _, s, V = np.linalg.svd(np.concatenate([rows[name] for name in rows if name in locked]))
        free = V[(s > 1e-9 * max(1.0, s.max(initial=0.0))).sum() :].T  # the remaining motions β
        locked |= {
            name
            for name, X_j in rows.items()
            if np.abs(X_j @ free).max(initial=0.0) < 1e-9 * max(1.0, np.abs(X_j).max())
        }
    return [joint.name for joint in model.joints if joint.name in locked]


def _joint_records(builder: Builder, name: str) -> list[JointRecord]:
    """The record of a joint; for a modal joint, the records of all nodes of the flexible body."""
    joint = builder.joints[name]
    if joint.group is None:
        return [joint]
    return [
        record
        for record in builder.joints.values()
        if record.group is joint.group and record.parent == joint.parent
    ]


def fixed_joint(joint: JointRecord, place: Placement) -> JointRecord:
    """A fixed joint at `place`, with the names and links of `joint`."""
    return JointRecord(joint.name, "fixed", joint.parent, joint.child, place, line=joint.line)


def displacement(joint: Joint, q: np.ndarray) -> Pose:
    """The link's pose in the joint frame."""
    motion = joint_motion(replace(joint, pose=IDENTITY), q, np.zeros(joint.row.nv))
    return Pose(motion.R, motion.p)


def configuration(model: Model, what: str, value: Position | None) -> np.ndarray:
    """q (nq,) from None (neutral), q, the name of a posture, or positions by joint."""
    if value is None:
        return model.neutral()
    if isinstance(value, str):
        if value not in model.postures:
            remedy = "it has none; robot.with_posture(name, q) adds one"
            if model.postures:
                remedy = nearest(value, model.postures)
            raise StateError(f"{what}: {model.name} has no posture {shown(value)}", remedy)
        return np.array(model.postures[value])
    q = (
        coordinates_by_joint(model, what, value)
        if isinstance(value, Mapping)
        else np.array(model.state_array(what, value, model.nq))
    )
    if q.ndim != 1 or not np.isfinite(q).all():
        raise StateError(
            f"{what} has shape {q.shape}, or is not finite",
            f"give one configuration of {model.nq} numbers",
        )
    if model.embedding is None:
        return model.normalize(q)
    return _close_configuration(model, what, value, q)


def _close_configuration(
    model: Model, what: str, value: Mapping[str, Numbers] | Numbers, q: np.ndarray
) -> np.ndarray:
    """q with closed loops; an error if this would move a joint whose position is given."""
    by_joint = isinstance(value, Mapping)
    names = list(value) if by_joint else [joint.name for joint in model.joints]
    closed = model.normalize(closed_configurations(model, q) if by_joint else q)
    for joint in (model.joint(name) for name in names):
        change = np.abs(closed[joint.q_slice] - q[joint.q_slice]).max(initial=0.0)
        if not change < 1e-6:  # NaN if the loop cannot be closed
            position = shown(q[joint.q_slice].tolist())
            free = ", ".join(j.name for j in model.joints if j.v_slice.start < j.v_slice.stop)
            raise StateError(
                f"{what}: with joint {joint.name} at {position} its loop is not closed",
                f"give positions of the free joints: {free}",
            )
    return closed


def coordinates_by_joint(model: Model, what: str, values: Mapping[str, Numbers]) -> np.ndarray:
    """q (nq,) from positions by joint; the other joints are at zero."""
    q = model.neutral()
    for name, value in values.items():
        joint = model.joint(name)
        numbers = real_array(
            f"{what}[{name!r}]",
            value,
            () if joint.row.nq == 1 else (joint.row.nq,),
            f"give {joint.row.nq} numbers",
        )
        if numbers.size != joint.row.nq:
            raise StateError(
                f"{what}[{name!r}] has {numbers.size} numbers, expected {joint.row.nq}",
                "give one configuration",
            )
        q[joint.q_slice] = numbers.ravel()
    return q
