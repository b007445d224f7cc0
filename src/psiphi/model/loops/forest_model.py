"""Several mechanisms as one forest: trees side by side, every name with its mechanism's name in front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.validate import frozen
from psiphi.model.loops.clusters import OUTSIDE, Cluster, ClusterFrame, Embedding
from psiphi.model.model import IDENTITY, WORLD, Body, Frame, Joint, Mimic, Model, Pose
from psiphi.model.parameters.free_parameters import FreeParameters, ParameterBlock, nominal

MARK = "/"  # between a mechanism's name and its own names: "left/tool"


@dataclass(frozen=True)
class Part:
    """A mechanism of a system: its model, where its base stands in the world, and the name in front of its names."""

    model: Model
    base: Pose = IDENTITY
    name: str = ""

    def named(self, name: str) -> str:
        """A name of this mechanism, as the system calls it."""
        return f"{self.name}{MARK}{name}" if self.name else name


def join(parts: Sequence[Part], name: str) -> Model:
    """The forest of all parts; q and v are theirs, one after the other."""
    _same_gravity(parts)
    bodies: list[Body] = []
    joints: list[Joint] = []
    frames = {"world": Frame("world", WORLD, IDENTITY)}
    for part in parts:
        first, nq, nv = len(joints), _stop(joints, "q_slice"), _stop(joints, "v_slice")
        bodies += [replace(body, name=part.named(body.name)) for body in part.model.bodies]
        joints += [_moved(part, joint, first, nq, nv) for joint in part.model.joints]
        for frame in part.model.frames.values():
            fixed = frame.body == WORLD
            pose = part.base @ frame.pose if fixed else frame.pose
            own = part.named(frame.name)
            frames[own] = Frame(own, WORLD if fixed else frame.body + first, pose)
    gravity = parts[0].model.gravity_vector
    report = tuple(
        f"{part.name}: {line}" if part.name else line
        for part in parts
        for line in part.model.report
    )
    more = {"freed": _all_free(parts, name), "embedding": _embedded(parts)}
    return Model(name, tuple(bodies), tuple(joints), frames, gravity, report, **more)


def _embedded(parts: Sequence[Part]) -> Embedding | None:
    """The joints that move together, of all parts."""
    if all(part.model.embedding is None for part in parts):
        return None
    clusters, first = [], 0
    for part in parts:
        for cluster in () if part.model.embedding is None else part.model.embedding.clusters:
            clusters.append(_shifted(cluster, part.base, first))
        first += len(part.model.joints)
    return Embedding(
        tuple(clusters), frozen(np.concatenate([part.model.neutral() for part in parts]))
    )


def _shifted(cluster: Cluster, base: Pose, first: int) -> Cluster:
    """A cluster whose bodies are `first` numbers further on; frames that stand in the world stand where the base is."""

    def placed(spot: ClusterFrame) -> ClusterFrame:
        if cluster.parent != WORLD or spot.body != OUTSIDE:
            return spot
        pose = base @ Pose(spot.rotation, spot.origin)
        return ClusterFrame(OUTSIDE, pose.rotation, pose.translation)

    ties = tuple(
        replace(tie, first=placed(tie.first), second=placed(tie.second)) for tie in cluster.ties
    )
    parent = WORLD if cluster.parent == WORLD else cluster.parent + first
    return replace(cluster, first=cluster.first + first, parent=parent, ties=ties)


def _all_free(parts: Sequence[Part], name: str) -> FreeParameters | None:
    """The numbers that are free of all parts, one part after the other."""
    if all(part.model.freed is None for part in parts):
        return None
    blocks: list[ParameterBlock] = []
    first = 0
    for part in parts:
        at = blocks[-1].stop if blocks else 0
        for word, k, start, stop in () if part.model.freed is None else part.model.freed.blocks:
            blocks.append(ParameterBlock(word, k + first, start + at, stop + at))
        first += len(part.model.joints)
    return FreeParameters(
        tuple(blocks), join([replace(part, model=nominal(part.model)) for part in parts], name)
    )


def _moved(part: Part, joint: Joint, first: int, nq: int, nv: int) -> Joint:
    root = joint.parent == WORLD
    mimic = joint.mimic
    return replace(
        joint,
        name=part.named(joint.name),
        index=joint.index + first,
        parent=WORLD if root else joint.parent + first,
        pose=part.base @ joint.pose if root else joint.pose,
        q_slice=slice(joint.q_slice.start + nq, joint.q_slice.stop + nq),
        v_slice=slice(joint.v_slice.start + nv, joint.v_slice.stop + nv),
        mimic=None
        if mimic is None
        else Mimic(part.named(mimic.joint), mimic.multiplier, mimic.offset),
    )


def _stop(joints: list[Joint], which: str) -> int:
    return getattr(joints[-1], which).stop if joints else 0


def _same_gravity(parts: Sequence[Part]) -> None:
    first = parts[0]
    for part in parts[1:]:
        if not np.array_equal(part.model.gravity_vector, first.model.gravity_vector):
            ours, theirs = first.model.gravity_vector.tolist(), part.model.gravity_vector.tolist()
            raise ModelError(
                f"{first.name or first.model.name} has gravity {ours}, {part.name or part.model.name} has {theirs}",
                "load all mechanisms of a system with one gravity",
            )
