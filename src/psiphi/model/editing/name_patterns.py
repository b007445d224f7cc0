"""Which joints, links and frames are meant: by name, or by patterns like "arm_*"."""

from __future__ import annotations

from collections.abc import Container, Iterable
from fnmatch import fnmatchcase
from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import names
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.records import JointRecord
from psiphi.model.spatial.transforms import HERE, Place


def known_link(builder: Builder, link: Any) -> str:
    """The name of a link that is there."""
    if not isinstance(link, str) or link not in builder.links:
        remedy = nearest(link, builder.links) if isinstance(link, str) else "give its name"
        raise StateError(f"no link {shown(link)} on {builder.name}", remedy)
    return link


def matching(what: str, given: Any, known: Iterable[str], on: str) -> list[str]:
    """The known names that are named or fit a pattern, in their own order; one that fits none is an error.

    >>> matching("joints", ["b*", "a"], ["a", "b1", "b2", "c"], "robot")
    ['a', 'b1', 'b2']
    """
    known, found = list(known), set()
    for pattern in names(what, given):
        fits = (
            {pattern}
            if pattern in known
            else {name for name in known if fnmatchcase(name, pattern)}
        )
        if not fits:
            raise StateError(f"{on} has no {what} {shown(pattern)}", nearest(pattern, known))
        found |= fits
    return [name for name in known if name in found]


def spot(builder: Builder, frame: Any, on: str) -> tuple[str, Place]:
    """The link that a frame is on (or "world"), and its place there: a link, a joint (where it carries), or a named frame."""
    if isinstance(frame, str):
        if frame in builder.links or frame == "world":
            return frame, HERE
        if frame in builder.joints:
            return builder.joints[frame].child, HERE
        if frame in builder.frames:
            record = builder.frames[frame]
            return record.link, record.place
    known = [*builder.links, *builder.joints, *builder.frames]
    raise StateError(
        f"no frame {shown(frame)} on {on}",
        nearest(frame, known) if isinstance(frame, str) else "give its name",
    )


def taken(builder: Builder) -> set[str]:
    """All names in use."""
    return {"world", *builder.links, *builder.joints, *builder.frames}


def unused(name: str, names: Container[str], end: str = "_") -> str:
    """The name, with as many _ behind it as make it a new one."""
    while name in names:
        name += end
    return name


def distinct(names: Iterable[str]) -> list[str]:
    """The names, each a new one beside those before it.

    >>> distinct(["loop", "loop", "gear"])
    ['loop', 'loop_', 'gear']
    """
    found: list[str] = []
    for name in names:
        found.append(unused(name, found))
    return found


def ordered_joints(builder: Builder) -> dict[str, JointRecord]:
    """Its joints in the order of the links they carry, which is the robot's: a joint that was added leaves it as it was."""
    place = {link: i for i, link in enumerate(builder.links)}
    return dict(sorted(builder.joints.items(), key=lambda item: place[item[1].child]))
