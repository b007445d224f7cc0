"""Joints that stand still: the place of the joint takes in its motion at a posture, and the joint is fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import real
from psiphi.model.body_matrices import joint_motion
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.pose_values import place
from psiphi.model.builder.records import JointRecord
from psiphi.model.editing.name_patterns import matching
from psiphi.model.loops.cluster_joints import compound_joint, scattered
from psiphi.model.model import IDENTITY, Joint, Model, Pose
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.model.spatial.transforms import Place, compose


def lock(model: Model, builder: Builder, joints: Any, at: Any = None) -> np.ndarray:
    """Fix these joints at a configuration, in the builder, and the joints of their loops that cannot move then; that
    configuration."""
    if isinstance(joints, Mapping):
        if at is not None:
            raise StateError("joints came with positions, and `at` as well", "give one of them")
        joints, at = list(joints), joints
    known = [joint.name for joint in model.joints if joint.shared is None]
    q = configuration(model, "at", at)
    for name in _held(model, q, matching("joints", joints, known, model.name)):
        for record in _together(builder, name):
            joint = model.joint(record.name)
            still = compose(record.place, place(displacement(joint, q[joint.q_read])))
            builder.joints[record.name] = fixed(record, still)
    return q


def _held(model: Model, q: np.ndarray, names: list[str]) -> list[str]:
    """These joints, and those of embedded loops that cannot move while these stand still: X β = 0 at them, for all β that
    leave these at rest."""
    held = set(names)
    for cluster in () if model.embedding is None else model.embedding.clusters:
        own = [model.joints[k] for k in cluster.bodies]
        if cluster.modes or not held & {joint.name for joint in own}:
            continue
        joint = compound_joint(model, cluster)
        X = np.array(joint.laws.X(entries(q[joint.q_slice])), dtype=float).reshape(
            -1, len(cluster.free)
        )
        rows = {
            j.name: X[a:b]
            for j, a, b in zip(own, joint.laws.starts, joint.laws.starts[1:], strict=False)
        }
        still = np.concatenate([rows[name] for name in rows if name in held])
        _, s, V = np.linalg.svd(still)
        rest = V[(s > 1e-9 * max(1.0, s.max(initial=0.0))).sum() :].T  # what can still move
        held |= {
            name
            for name, X_j in rows.items()
            if np.abs(X_j @ rest).max(initial=0.0) < 1e-9 * max(1.0, np.abs(X_j).max())
        }
    return [joint.name for joint in model.joints if joint.name in held]


def _together(builder: Builder, name: str) -> list[JointRecord]:
    """The joint, or all places of a body that bends by its coordinates."""
    own = builder.joints[name]
    if own.group is None:
        return [own]
    return [
        record
        for record in builder.joints.values()
        if record.group is own.group and record.parent == own.parent
    ]


def fixed(joint: JointRecord, place: Place) -> JointRecord:
    """A joint that holds its link at a place: what it was otherwise is gone."""
    return JointRecord(joint.name, "fixed", joint.parent, joint.child, place, line=joint.line)


def displacement(joint: Joint, q: np.ndarray) -> Pose:
    """The link's pose in the joint's frame."""
    moved = joint_motion(replace(joint, pose=IDENTITY), q, np.zeros(joint.row.nv))
    return Pose(moved.R, moved.p)


def configuration(model: Model, what: str, given: Any) -> np.ndarray:
    """One configuration: None (all at zero), q, the name of a posture, or positions by joint."""
    if given is None:
        return model.neutral()
    if isinstance(given, str):
        if given not in model.postures:
            known = (
                nearest(given, model.postures)
                if model.postures
                else "it has none; robot.with_posture(name, q) adds one"
            )
            raise StateError(f"{what}: {model.name} has no posture {shown(given)}", known)
        return np.array(model.postures[given])
    q = (
        by_joint(model, what, given)
        if isinstance(given, Mapping)
        else np.array(model._state(what, given, model.nq))
    )
    if q.ndim != 1 or not np.isfinite(q).all():
        raise StateError(
            f"{what} has shape {q.shape}, or is not finite",
            f"give one configuration of {model.nq} numbers",
        )
    return model.normalize(q) if model.embedding is None else _closed(model, what, given, q)


def _closed(model: Model, what: str, given: Any, q: np.ndarray) -> np.ndarray:
    """q with its loops closed, if the joints that were given stay where they are."""
    named = given if isinstance(given, Mapping) else [joint.name for joint in model.joints]
    closed = model.normalize(scattered(model, q) if isinstance(given, Mapping) else q)
    for joint in (model.joint(name) for name in named):
        if (
            not np.abs(closed[joint.q_slice] - q[joint.q_slice]).max(initial=0.0) < 1e-6
        ):  # nan where nothing closes
            free = ", ".join(j.name for j in model.joints if j.v_slice.start < j.v_slice.stop)
            raise StateError(
                f"{what}: with joint {joint.name} at {shown(q[joint.q_slice].tolist())} its loop is not closed",
                f"say where the joints are that are free: {free}",
            )
    return closed


def by_joint(model: Model, what: str, given: Mapping[str, Any]) -> np.ndarray:
    """Positions by joint as one configuration; the others are at zero."""
    q = model.neutral()
    for name, value in given.items():
        joint = model.joint(name)
        own = real(
            f"{what}[{name!r}]",
            value,
            () if joint.row.nq == 1 else (joint.row.nq,),
            f"give {joint.row.nq} numbers",
        )
        if own.size != joint.row.nq:
            raise StateError(
                f"{what}[{name!r}] has {own.size} numbers, expected {joint.row.nq}",
                "give one configuration",
            )
        q[joint.q_slice] = own.ravel()
    return q
