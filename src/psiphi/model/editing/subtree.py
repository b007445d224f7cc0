"""Keep one subtree of a robot, or remove subtrees and frames."""

from __future__ import annotations

from collections.abc import Iterable

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import matching_names
from psiphi.model.builder.builder import Builder
from psiphi.model.editing.name_patterns import frame_place


def subtree(builder: Builder, root: str) -> None:
    """Keep a link and its descendants; the link becomes the root."""
    link, _ = frame_place(builder, root, builder.name)
    if link == "world" and "world" not in builder.links:
        raise StateError(
            f"{shown(root)} is on the world, which is not a subtree",
            "name a link or a joint that moves",
        )
    _keep(builder, {link, *descendants(builder, [link])}, world=False)
    for joint in [joint.name for joint in builder.joints.values() if joint.child == link]:
        del builder.joints[joint]
    for q in builder.postures.values():  # a new joint of the base may have a removed joint's name
        for joint in [joint for joint in q if joint not in builder.joints]:
            del q[joint]


def without(builder: Builder, names: str | Iterable[str]) -> None:
    """Remove the subtrees of the named links and joints, and the named frames."""
    joints, links, frames = builder.joints, builder.links, builder.frames
    found = matching_names(
        "link, joint or frame", names, dict.fromkeys([*links, *joints, *frames]), builder.name
    )
    roots = [
        name if name in links else joints[name].child
        for name in found
        if name in links or name in joints
    ]
    for name in found:
        frames.pop(name, None)
    removed = {*roots, *descendants(builder, roots)}
    if removed >= set(links):
        raise StateError(
            f"without {', '.join(map(shown, found[:3]))} nothing of {builder.name} is left",
            "remove less",
        )
    _keep(builder, set(links) - removed, world=True)


def descendants(builder: Builder, links: list[str]) -> set[str]:
    """The links below `links`, through joints of any kind."""
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
    """Keep only `links`, their joints and frames; with `world`, also frames on the world."""
    builder.links = {name: link for name, link in builder.links.items() if name in links}
    builder.joints = {name: joint for name, joint in builder.joints.items() if joint.child in links}
    bases = links | ({"world"} if world else set())
    builder.frames = {name: frame for name, frame in builder.frames.items() if frame.link in bases}
