"""From the walked tree to a `Model`: merged inertias, frames, and arrays that share memory."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from psiphi._util.text import nearest, shown
from psiphi._util.validate import frozen
from psiphi.model.builder.model_checks import perpendicular
from psiphi.model.builder.records import FrameRecord, JointRecord, LinkRecord
from psiphi.model.builder.tree_walk import TreeWalk
from psiphi.model.diagnostics import ReaderReport
from psiphi.model.flexible.modal_cluster import modal_cluster
from psiphi.model.inertias import combine, matrices
from psiphi.model.loops.clusters import Cluster, Embedding
from psiphi.model.model import IDENTITY, WORLD, Body, Frame, Joint, Model, Pose
from psiphi.model.spatial.transforms import HERE, Place, compose


def assemble(
    name: str,
    gravity,
    walk: TreeWalk,
    links: dict[str, LinkRecord],
    extra: list[FrameRecord],
    log: ReaderReport,
) -> Model:
    """The model of a walked tree, not yet judged as a whole."""
    bodies, joints = _bodies(walk), _joints(walk)
    model = Model(name, bodies, joints, _frames(walk, links, extra, log), frozen(gravity))
    clusters = _bending(walk, log)
    return (
        model
        if not clusters
        else replace(model, embedding=Embedding(clusters, frozen(model.neutral())))
    )


def _bending(walk: TreeWalk, log: ReaderReport) -> tuple[Cluster, ...]:
    """The bodies that bend: each a run of places that move together."""
    found = []
    for k, joint in enumerate(walk.joints):
        if joint.group is None:
            continue
        beside = [
            i
            for i, other in enumerate(walk.joints)
            if other.group is joint.group and walk.parents[i] == walk.parents[k]
        ]
        if len(beside) != joint.group.places:
            cause = f"the flexible link {shown(joint.group.link)} has {joint.group.places} places, and {len(beside)} are left"
            log.fail(joint, cause, "take the whole link away, or nothing of it")
        if joint.leads:
            assert joint.modes is not None and beside == list(range(k, k + len(beside)))
            found.append(modal_cluster(k, len(beside), walk.parents[k], joint.modes.count))
    return tuple(found)


def _bodies(walk: TreeWalk) -> tuple[Body, ...]:
    merged = [combine(parts) for parts in walk.parts]
    com = frozen([m[1] for m in merged], (-1, 3))
    inertia = frozen(matrices([m[2] for m in merged]))
    return tuple(
        Body(j.child, m[0], com[k], inertia[k])
        for k, (j, m) in enumerate(zip(walk.joints, merged, strict=True))
    )


def _joints(walk: TreeWalk) -> tuple[Joint, ...]:
    poses = _poses(walk.places)
    out, nq, nv = [], 0, 0
    for k, j in enumerate(walk.joints):
        row = j.row
        own = (row.nq, row.nv) if j.group is None or j.leads else (0, 0)
        axis = (0.0, 0.0, 1.0) if row.axes == 0 else j.axis
        out.append(
            Joint(
                j.name,
                j.kind,
                k,
                walk.parents[k],
                poses[k],
                _row(axis),
                _row(j.axis2 or _perpendicular(axis)),
                j.pitch,
                slice(nq, nq + own[0]),
                slice(nv, nv + own[1]),
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
                shared=slice(nq - row.nq, nq) if own == (0, 0) else None,
            )
        )
        nq, nv = nq + own[0], nv + own[1]
    return tuple(out)


_perpendicular = lru_cache(maxsize=1024)(perpendicular)


@lru_cache(maxsize=4096)
def _row(numbers: tuple[float, ...]) -> np.ndarray:
    """A read-only array; equal rows are one array (the models never write)."""
    return frozen(numbers)


def _poses(places: list[Place]) -> list[Pose]:
    rotation = frozen([R for R, _ in places], (-1, 3, 3))
    translation = frozen([p for _, p in places], (-1, 3))
    return [
        IDENTITY if place is HERE else Pose(rotation[k], translation[k])
        for k, place in enumerate(places)
    ]


def _frames(
    walk: TreeWalk, links: dict[str, LinkRecord], extra: list[FrameRecord], log: ReaderReport
) -> dict[str, Frame]:
    """The world, then each joint and its link in walking order, then the frames asked for by name."""
    spots: dict[str, tuple[int, Place]] = {} if "world" in links else {"world": (WORLD, HERE)}
    for joint, link in walk.spots:
        if joint is not None:
            _add_joint(spots, joint, links, walk, log)
        spots[link.name] = walk.links[link.name]
    for frame in extra:
        _add_extra(spots, frame, walk, log)
    poses = _poses([place for _, place in spots.values()])
    return {
        name: Frame(name, body, pose)
        for (name, (body, _)), pose in zip(spots.items(), poses, strict=True)
    }


def _add_joint(
    spots: dict, joint: JointRecord, links: dict[str, LinkRecord], walk: TreeWalk, log: ReaderReport
) -> None:
    if joint.name in links or joint.name in spots:
        other = f"link {shown(joint.name)}" if joint.name in links else "the world"
        log.note(joint, f"has the name of {other}, so the frame of this name is that of {other}")
        return
    spots[joint.name] = walk.links[joint.child] if joint.moves else walk.fixed[joint.name]


def _add_extra(spots: dict, frame: FrameRecord, walk: TreeWalk, log: ReaderReport) -> None:
    if frame.name in spots:
        log.fail(
            frame,
            "there is already a frame, link or joint with this name",
            "give the frame its own name",
        )
    spot = walk.links.get(frame.link, (WORLD, HERE) if frame.link == "world" else None)
    if spot is None:
        log.fail(
            frame, f"its body {shown(frame.link)} is not a link", nearest(frame.link, walk.links)
        )
    spots[frame.name] = spot[0], compose(spot[1], frame.place)
