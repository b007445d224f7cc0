"""Replace a rigid link by a flexible body; joints and frames on the link move to its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import flag
from psiphi.model.builder.builder import Builder
from psiphi.model.editing.name_patterns import known_link
from psiphi.model.flexible.flexible_link import UNNAMED_PLACES, BendingBody, BodyPlace
from psiphi.model.inertias import ZERO_INERTIA
from psiphi.model.model import Model
from psiphi.model.spatial.transforms import IDENTITY_PLACEMENT, Placement, compose, inverse

ROOT = "root"


def with_flexible(
    model: Model,
    builder: Builder,
    link: str,
    body: BendingBody,
    xyz: Numbers,
    rpy: Numbers | None,
    keep: bool,
    hang: Mapping[str, str] | None,
) -> None:
    """Replace the mass of a link by a flexible body with its root at xyz and rpy.

    Each joint and frame on the link moves to the nearest node, or to the node that `hang` names for
    it. With `keep`, the link also keeps its rigid mass.
    """
    known_link(builder, link)
    joints = [joint.name for joint in builder.joints.values() if joint.parent == link]
    frames = [frame.name for frame in builder.frames.values() if frame.link == link]
    builder.flexible(link, body, xyz, rpy)
    assert isinstance(body, BendingBody)
    if not flag("keep", keep):
        builder.links[link] = replace(
            builder.links[link], mass=0.0, com=IDENTITY_PLACEMENT[1], inertia=ZERO_INERTIA
        )
    nodes = {place.name: builder_place for place, builder_place in _nodes(builder, link, body)}
    chosen = _check_hang({} if hang is None else hang, [*joints, *frames], nodes, model.name)
    for name in joints:
        record = builder.joints[name]
        parent, place = _node_placement(link, record.place, nodes, chosen.get(name))
        builder.joints[name] = replace(record, parent=parent, place=place)
    for name in frames:
        frame = builder.frames[name]
        parent, place = _node_placement(link, frame.place, nodes, chosen.get(name))
        builder.frames[name] = replace(frame, link=parent, place=place)


def _nodes(builder: Builder, link: str, body: BendingBody) -> list[tuple[BodyPlace, Placement]]:
    """The named nodes and their placements in the link."""
    carriers = {joint.child: joint for joint in builder.joints.values()}
    return [
        (place, carriers[f"{link}_{place.name}"].place)
        for place in body.places
        if place.name not in UNNAMED_PLACES
    ]


def _check_hang(
    hang: object, known: list[str], nodes: dict[str, Placement], on: str
) -> dict[str, str]:
    """{joint or frame: node}, checked; `on` is the robot's name."""
    if not isinstance(hang, Mapping):
        raise StateError(
            f"hang is {shown(hang)}, expected names and nodes", 'give hang={"elbow": "tip"}'
        )
    for name, node in hang.items():
        if not isinstance(name, str) or name not in known:
            remedy = (
                nearest(name, known)
                if isinstance(name, str) and known
                else "name joints and frames that are on the link"
            )
            raise StateError(
                f"hang has {shown(name)}, which is neither a joint nor a frame on the link of {on}",
                remedy,
            )
        if not isinstance(node, str) or node not in (ROOT, *nodes):
            raise StateError(
                f"hang[{shown(name)}] is {shown(node)}, which is not a node",
                f"give one of {[ROOT, *nodes]}",
            )
    return {str(name): str(node) for name, node in hang.items()}


def _node_placement(
    link: str, place: Placement, nodes: dict[str, Placement], chosen: str | None
) -> tuple[str, Placement]:
    """The link of the chosen or else the nearest node, and `place` relative to it."""
    distance = {ROOT: _squared_distance(place, IDENTITY_PLACEMENT)} | {
        name: _squared_distance(place, other) for name, other in nodes.items()
    }
    node = min(distance, key=lambda name: distance[name]) if chosen is None else chosen
    if node == ROOT:
        return link, place
    return f"{link}_{node}", compose(inverse(nodes[node]), place)


def _squared_distance(one: Placement, two: Placement) -> float:
    return sum((x - y) ** 2 for x, y in zip(one[1], two[1], strict=True))
