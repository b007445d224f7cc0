"""Links that bend: what hangs on a link that becomes flexible hangs on its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import flag
from psiphi.model.builder.builder import Builder
from psiphi.model.editing.name_patterns import known_link
from psiphi.model.flexible.flexible_link import LUMPS, BendingBody
from psiphi.model.inertias import NONE
from psiphi.model.model import Model
from psiphi.model.spatial.transforms import HERE, Place, compose, inverse

ROOT = "root"


def with_flexible(
    model: Model,
    builder: Builder,
    link: Any,
    body: Any,
    xyz: Any,
    rpy: Any,
    keep: Any,
    hang: Mapping[str, str] | None,
) -> None:
    """The link's mass as a body that bends, and what is on the link moved to the body's nodes."""
    known_link(builder, link)
    joints = [joint.name for joint in builder.joints.values() if joint.parent == link]
    frames = [frame.name for frame in builder.frames.values() if frame.link == link]
    builder.flexible(link, body, xyz, rpy)
    assert isinstance(body, BendingBody)
    if not flag("keep", keep):
        builder.links[link] = replace(builder.links[link], mass=0.0, com=HERE[1], inertia=NONE)
    nodes = {place.name: builder_place for place, builder_place in _nodes(builder, link, body)}
    said = _hung({} if hang is None else hang, [*joints, *frames], nodes, model.name)
    for name in joints:
        record = builder.joints[name]
        on, place = _seat(link, record.place, nodes, said.get(name))
        builder.joints[name] = replace(record, parent=on, place=place)
    for name in frames:
        frame = builder.frames[name]
        on, place = _seat(link, frame.place, nodes, said.get(name))
        builder.frames[name] = replace(frame, link=on, place=place)


def _nodes(builder: Builder, link: str, body: BendingBody) -> list[tuple[Any, Place]]:
    """The nodes that others may hang on, with their places in the link."""
    carriers = {joint.child: joint for joint in builder.joints.values()}
    return [
        (place, carriers[f"{link}_{place.name}"].place)
        for place in body.places
        if place.name not in LUMPS
    ]


def _hung(hang: Any, known: list[str], nodes: dict[str, Place], on: str) -> dict[str, str]:
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
                f"hang has {shown(name)}, which is no joint and no frame on that link of {on}",
                remedy,
            )
        if not isinstance(node, str) or node not in (ROOT, *nodes):
            raise StateError(
                f"hang[{shown(name)}] is {shown(node)}, which is no node",
                f"give one of {[ROOT, *nodes]}",
            )
    return dict(hang)


def _seat(link: str, place: Place, nodes: dict[str, Place], said: str | None) -> tuple[str, Place]:
    """The link that a place is nearest to, or the one that is said, and the place seen from there."""
    apart = {ROOT: _distance(place, HERE)} | {
        name: _distance(place, at) for name, at in nodes.items()
    }
    node = min(apart, key=lambda name: apart[name]) if said is None else said
    return (
        (link, place) if node == ROOT else (f"{link}_{node}", compose(inverse(nodes[node]), place))
    )


def _distance(one: Place, two: Place) -> float:
    return sum((x - y) ** 2 for x, y in zip(one[1], two[1], strict=True))
