"""Several mechanisms as one model (a forest); names are prefixed with the name of the mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.validate import frozen
from psiphi.model.loops.clusters import OUTSIDE, Cluster, ClusterFrame, Embedding
from psiphi.model.model import IDENTITY, WORLD, Body, Frame, Joint, Mimic, Model, Pose
from psiphi.model.named_parts import NamedParts
from psiphi.model.parameters.free_parameters import FreeParameters, ParameterBlock, nominal_model

NAME_SEPARATOR = "/"  # after the name of a mechanism: "left/tool"


@dataclass(frozen=True)
class Part:
    """A mechanism of a system: its model, the pose of its base in the world, and its name."""

    model: Model
    base: Pose = IDENTITY
    name: str = ""

    def qualified(self, name: str) -> str:
        """`name` with the name of this mechanism as prefix."""
        return f"{self.name}{NAME_SEPARATOR}{name}" if self.name else name


def join(parts: Sequence[Part], name: str) -> Model:
    """The model of all parts; its q and v are those of the parts, concatenated."""
    _check_gravity(parts)
    bodies: list[Body] = []
    joints: list[Joint] = []
    frames = {"world": Frame("world", WORLD, IDENTITY)}
    for part in parts:
        first, nq, nv = len(joints), _stop(joints, "q_slice"), _stop(joints, "v_slice")
        bodies += [replace(body, name=part.qualified(body.name)) for body in part.model.bodies]
        joints += [_shift_joint(part, joint, first, nq, nv) for joint in part.model.joints]
        for frame in part.model.frames.values():
            fixed = frame.body == WORLD
            pose = part.base @ frame.pose if fixed else frame.pose
            name_in_forest = part.qualified(frame.name)
            frames[name_in_forest] = Frame(
                name_in_forest, WORLD if fixed else frame.body + first, pose
            )
    gravity = parts[0].model.gravity_vector
    report = tuple(
        f"{part.name}: {line}" if part.name else line
        for part in parts
        for line in part.model.report
    )
    return Model(
        name,
        NamedParts(bodies),
        NamedParts(joints),
        frames,
        gravity,
        report,
        freed=_join_parameters(parts, name),
        embedding=_join_embeddings(parts),
    )


def _join_embeddings(parts: Sequence[Part]) -> Embedding | None:
    """The clusters of all parts."""
    if all(part.model.embedding is None for part in parts):
        return None
    clusters, first = [], 0
    for part in parts:
        for cluster in part.model.clusters:
            clusters.append(_shift_cluster(cluster, part.base, first))
        first += len(part.model.joints)
    return Embedding(
        tuple(clusters), frozen(np.concatenate([part.model.neutral() for part in parts]))
    )


def _shift_cluster(cluster: Cluster, base: Pose, first: int) -> Cluster:
    """The cluster with body indices shifted by `first`, and frames on the world moved by `base`."""

    def placed(frame: ClusterFrame) -> ClusterFrame:
        if cluster.parent != WORLD or frame.body != OUTSIDE:
            return frame
        pose = base @ Pose(frame.rotation, frame.origin)
        return ClusterFrame(OUTSIDE, pose.rotation, pose.translation)

    ties = tuple(
        replace(tie, first=placed(tie.first), second=placed(tie.second)) for tie in cluster.ties
    )
    parent = WORLD if cluster.parent == WORLD else cluster.parent + first
    return replace(cluster, first=cluster.first + first, parent=parent, ties=ties)


def _join_parameters(parts: Sequence[Part], name: str) -> FreeParameters | None:
    """The free parameters of all parts, concatenated."""
    if all(part.model.freed is None for part in parts):
        return None
    blocks: list[ParameterBlock] = []
    first = 0
    for part in parts:
        offset = blocks[-1].stop if blocks else 0
        for word, k, start, stop in () if part.model.freed is None else part.model.freed.blocks:
            blocks.append(ParameterBlock(word, k + first, start + offset, stop + offset))
        first += len(part.model.joints)
    return FreeParameters(
        tuple(blocks),
        join([replace(part, model=nominal_model(part.model)) for part in parts], name),
    )


def _shift_joint(part: Part, joint: Joint, first: int, nq: int, nv: int) -> Joint:
    root = joint.parent == WORLD
    mimic = joint.mimic
    return replace(
        joint,
        name=part.qualified(joint.name),
        index=joint.index + first,
        parent=WORLD if root else joint.parent + first,
        pose=part.base @ joint.pose if root else joint.pose,
        q_slice=slice(joint.q_slice.start + nq, joint.q_slice.stop + nq),
        v_slice=slice(joint.v_slice.start + nv, joint.v_slice.stop + nv),
        mimic=None
        if mimic is None
        else Mimic(part.qualified(mimic.joint), mimic.multiplier, mimic.offset),
    )


def _stop(joints: list[Joint], which: str) -> int:
    return getattr(joints[-1], which).stop if joints else 0


def _check_gravity(parts: Sequence[Part]) -> None:
    first = parts[0]
    for part in parts[1:]:
        if not np.array_equal(part.model.gravity_vector, first.model.gravity_vector):
            ours, theirs = first.model.gravity_vector.tolist(), part.model.gravity_vector.tolist()
            raise ModelError(
                f"{first.name or first.model.name} has gravity {ours}, "
                f"{part.name or part.model.name} has {theirs}",
                "load all mechanisms of a system with the same gravity",
            )
