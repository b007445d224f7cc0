"""Names of joints, links and frames, and patterns like "arm_*"."""

from __future__ import annotations

from collections.abc import Container, Iterable

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.records import JointRecord
from psiphi.model.spatial.transforms import IDENTITY_PLACEMENT, Placement


def known_link(builder: Builder, link: object) -> str:
    """`link`, checked to be the name of a link."""
    if not isinstance(link, str) or link not in builder.links:
        remedy = nearest(link, builder.links) if isinstance(link, str) else "give its name"
        raise StateError(f"no link {shown(link)} on {builder.name}", remedy)
    return link


def frame_place(builder: Builder, frame: object, on: str) -> tuple[str, Placement]:
    """The link of a frame (or "world"), and the frame's placement on it.

    `frame` is the name of a link, of a joint (the frame of its child) or of a frame; `on` is the
    robot's name in messages.
    """
    if isinstance(frame, str):
        if frame in builder.links or frame == "world":
            return frame, IDENTITY_PLACEMENT
        if frame in builder.joints:
            return builder.joints[frame].child, IDENTITY_PLACEMENT
        if frame in builder.frames:
            record = builder.frames[frame]
            return record.link, record.place
    known = [*builder.links, *builder.joints, *builder.frames]
    raise StateError(
        f"no frame {shown(frame)} on {on}",
        nearest(frame, known) if isinstance(frame, str) else "give its name",
    )


def used_names(builder: Builder) -> set[str]:
    """The names of all links, joints and frames, and "world"."""
    return {"world", *builder.links, *builder.joints, *builder.frames}


def unused_name(name: str, names: Container[str], end: str = "_") -> str:
    """The name with `end` appended until it is not in `names`."""
    while name in names:
        name += end
    return name


def distinct_names(names: Iterable[str]) -> list[str]:
    """The names, with "_" appended to repeated ones.

    >>> distinct_names(["loop", "loop", "gear"])
    ['loop', 'loop_', 'gear']
    """
    out: list[str] = []
    for name in names:
        out.append(unused_name(name, out))
    return out


def ordered_joints(builder: Builder) -> dict[str, JointRecord]:
    """The builder's joints, sorted by the order of their child links.

    Adding a joint to an existing link then leaves the order of the robot unchanged.
    """
    position = {link: i for i, link in enumerate(builder.links)}
    return dict(sorted(builder.joints.items(), key=lambda item: position[item[1].child]))
