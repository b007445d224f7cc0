"""Less of a robot: one link with all it carries, or the robot without some of its branches or frames."""

from __future__ import annotations

from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi.model.builder.builder import Builder
from psiphi.model.editing.name_patterns import matching, spot


def subtree(builder: Builder, root: Any) -> None:
    """Keep a link and what it carries; the link becomes the root."""
    link, _ = spot(builder, root, builder.name)
    if link == "world" and "world" not in builder.links:
        raise StateError(
            f"{shown(root)} is on the world, which is no subtree",
            "name a link or a joint that moves",
        )
    _keep(builder, {link, *carried(builder, [link])}, world=False)
    for joint in [joint.name for joint in builder.joints.values() if joint.child == link]:
        del builder.joints[joint]
    for q in builder.postures.values():  # a base that flies may be called as one that is gone
        for joint in [joint for joint in q if joint not in builder.joints]:
            del q[joint]


def without(builder: Builder, given: Any) -> None:
    """Leave out the links that are named, or that named joints carry, with all they carry, and named frames."""
    joints, links, frames = builder.joints, builder.links, builder.frames
    found = matching(
        "link, joint or frame", given, dict.fromkeys([*links, *joints, *frames]), builder.name
    )
    starts = [
        name if name in links else joints[name].child
        for name in found
        if name in links or name in joints
    ]
    for name in found:
        frames.pop(name, None)
    gone = {*starts, *carried(builder, starts)}
    if gone >= set(links):
        raise StateError(
            f"without {', '.join(map(shown, found[:3]))} nothing of {builder.name} is left",
            "leave out less",
        )
    _keep(builder, set(links) - gone, world=True)


def carried(builder: Builder, links: list[str]) -> set[str]:
    """The links that these carry, through joints of any kind."""
    children: dict[str, list[str]] = {}
    for joint in builder.joints.values():
        children.setdefault(joint.parent, []).append(joint.child)
    found, stack = set(), list(links)
    while stack:
        for child in children.get(stack.pop(), ()):
            if child not in found:
                found.add(child)
                stack.append(child)
    return found


def _keep(builder: Builder, links: set[str], world: bool) -> None:
    builder.links = {name: link for name, link in builder.links.items() if name in links}
    builder.joints = {name: joint for name, joint in builder.joints.items() if joint.child in links}
    there = links | ({"world"} if world else set())
    builder.frames = {name: frame for name, frame in builder.frames.items() if frame.link in there}
