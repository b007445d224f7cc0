"""From the welded tree to a `Model`: merge inertias, place frames, convert numbers to arrays."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from psiphi._util.text import nearest, shown
from psiphi._util.validate import frozen
from psiphi.model.builder.model_checks import perpendicular
from psiphi.model.builder.records import FrameRecord, JointRecord, LinkRecord
from psiphi.model.builder.welded_tree import WeldedTree
from psiphi.model.diagnostics import ReaderReport
from psiphi.model.flexible.modal_cluster import modal_cluster
from psiphi.model.inertias import combine_bodies, inertia_matrices
from psiphi.model.loops.clusters import Cluster, Embedding
from psiphi.model.model import IDENTITY, WORLD, Body, Frame, Joint, Model, Pose
from psiphi.model.named_parts import NamedParts
from psiphi.model.spatial.transforms import IDENTITY_PLACEMENT, Placement, Vector, compose


def assemble(
    name: str,
    gravity: Vector,
    tree: WeldedTree,
    links: dict[str, LinkRecord],
    extra: list[FrameRecord],
    log: ReaderReport,
) -> Model:
    """The model of a welded tree, before `check_model`."""
    bodies, joints = NamedParts(_bodies(tree)), NamedParts(_joints(tree))
    model = Model(name, bodies, joints, _frames(tree, links, extra, log), frozen(gravity))
    clusters = _flexible_clusters(tree, log)
    if not clusters:
        return model
    return replace(model, embedding=Embedding(clusters, frozen(model.neutral())))


def _flexible_clusters(tree: WeldedTree, log: ReaderReport) -> tuple[Cluster, ...]:
    """A cluster for each flexible body: its nodes are consecutive bodies that share coordinates."""
    clusters = []
    for k, joint in enumerate(tree.joints):
        if joint.group is None:
            continue
        nodes = [
            i
            for i, other in enumerate(tree.joints)
            if other.group is joint.group and tree.parents[i] == tree.parents[k]
        ]
        if len(nodes) != joint.group.places:
            cause = (
                f"the flexible link {shown(joint.group.link)} has {joint.group.places} nodes, "
                f"but {len(nodes)} are left"
            )
            log.fail(joint, cause, "remove all of the link, or none of it")
        if joint.is_first:
            assert joint.modes is not None and nodes == list(range(k, k + len(nodes)))
            clusters.append(modal_cluster(k, len(nodes), tree.parents[k], joint.modes.count))
    return tuple(clusters)


def _bodies(tree: WeldedTree) -> tuple[Body, ...]:
    merged = [combine_bodies(parts) for parts in tree.parts]
    com = frozen([m[1] for m in merged], (-1, 3))
    inertia = frozen(inertia_matrices([m[2] for m in merged]))
    return tuple(
        Body(j.child, m[0], com[k], inertia[k])
        for k, (j, m) in enumerate(zip(tree.joints, merged, strict=True))
    )


def _joints(tree: WeldedTree) -> tuple[Joint, ...]:
    poses = _poses(tree.places)
    out, nq, nv = [], 0, 0
    for k, j in enumerate(tree.joints):
        row = j.row
        size = (row.nq, row.nv) if j.group is None or j.is_first else (0, 0)
        axis = (0.0, 0.0, 1.0) if row.axes == 0 else j.axis
        out.append(
            Joint(
                j.name,
                j.kind,
                k,
                tree.parents[k],
                poses[k],
                _row(axis),
                _row(j.axis2 or _perpendicular(axis)),
                j.pitch,
                slice(nq, nq + size[0]),
                slice(nv, nv + size[1]),
                *map(
                    _row,
                    (
                        j.lower,
                        j.upper,
                        j.velocity,
                        j.effort,
                        j.damping,
                        j.friction,
                        j.armature,
                        j.stiffness,
                        j.rest,
                    ),
                ),
                spring=j.spring,
                motor=j.motor,
                mimic=j.mimic,
                modes=j.modes,
                shared=slice(nq - row.nq, nq) if size == (0, 0) else None,
            )
        )
        nq, nv = nq + size[0], nv + size[1]
    return tuple(out)


_perpendicular = lru_cache(maxsize=1024)(perpendicular)


@lru_cache(maxsize=4096)
def _row(numbers: tuple[float, ...]) -> np.ndarray:
    """A read-only array; equal rows share one array."""
    return frozen(numbers)


def _poses(places: list[Placement]) -> list[Pose]:
    rotation = frozen([R for R, _ in places], (-1, 3, 3))
    translation = frozen([p for _, p in places], (-1, 3))
    return [
        IDENTITY if place is IDENTITY_PLACEMENT else Pose(rotation[k], translation[k])
        for k, place in enumerate(places)
    ]


def _frames(
    tree: WeldedTree, links: dict[str, LinkRecord], extra: list[FrameRecord], log: ReaderReport
) -> dict[str, Frame]:
    """The world, then each joint and its link in the order of the tree, then added frames."""
    places: dict[str, tuple[int, Placement]] = (
        {} if "world" in links else {"world": (WORLD, IDENTITY_PLACEMENT)}
    )
    for joint, link in tree.frame_order:
        if joint is not None:
            _add_joint_frame(places, joint, links, tree, log)
        places[link.name] = tree.links[link.name]
    for frame in extra:
        _add_frame(places, frame, tree, log)
    poses = _poses([place for _, place in places.values()])
    return {
        name: Frame(name, body, pose)
        for (name, (body, _)), pose in zip(places.items(), poses, strict=True)
    }


def _add_joint_frame(
    places: dict,
    joint: JointRecord,
    links: dict[str, LinkRecord],
    tree: WeldedTree,
    log: ReaderReport,
) -> None:
    if joint.name in links or joint.name in places:
        other = f"link {shown(joint.name)}" if joint.name in links else "the world"
        log.note(joint, f"has the name of {other}, so the frame of this name is that of {other}")
        return
    places[joint.name] = tree.links[joint.child] if joint.moves else tree.fixed_joints[joint.name]


def _add_frame(places: dict, frame: FrameRecord, tree: WeldedTree, log: ReaderReport) -> None:
    if frame.name in places:
        log.fail(
            frame,
            "there is already a frame, link or joint with this name",
            "give the frame its own name",
        )
    world = (WORLD, IDENTITY_PLACEMENT) if frame.link == "world" else None
    place = tree.links.get(frame.link, world)
    if place is None:
        log.fail(
            frame, f"its body {shown(frame.link)} is not a link", nearest(frame.link, tree.links)
        )
    places[frame.name] = place[0], compose(place[1], frame.place)
