"""Loops and gears in URDF files (URDF+, Chignoli, Slotine, Wensing and Kim 2024; and the words its authors used before).

    <loop name type> <predecessor link> <origin/> </predecessor> <successor link> <origin/> </successor> <axis/> </loop>
    <coupling name> <predecessor link/> <successor link/> <ratio value/> </coupling>

A loop holds two frames together by a joint of its type; a coupling turns the joint that carries the successor `ratio` times as
far as the one that carries the predecessor. Couplings become mimic joints, loops rows for `robot.loops`: data, until
`pp.embed` or `pp.connect` makes them act.
"""

from __future__ import annotations

from typing import NamedTuple

from psiphi._util.text import nearest, shown
from psiphi.io.urdf.xml_fields import Fields
from psiphi.io.urdf.xml_reader import Element
from psiphi.model.spatial.transforms import IDENTITY_ROTATION

KINDS = {  # type of a loop's joint -> how it holds (`closure_types.py`); whether it has an axis
    "revolute": ("hinge", True),
    "continuous": ("hinge", True),
    "cylindrical": ("cylindrical", True),
    "planar": ("planar", True),
    "spherical": ("ball", False),
    "ball": ("ball", False),
    "position": ("ball", False),
    "fixed": ("weld", False),
}
LOOPS, COUPLINGS = ("loop", "constraint", "loop_constraint"), ("coupling", "joint_constraint")
ENDS = (("predecessor", "parent", "parent_origin"), ("successor", "child", "child_origin"))


class LoopRow(NamedTuple):
    """A loop of a file: its name, how it holds, its frames, and its axis in the second one, where it has one."""

    name: str
    kind: str
    first: str
    second: str
    axis: tuple[float, ...] | None


class Coupling(NamedTuple):
    """q(follower) = ratio * q(leader)."""

    leader: str
    ratio: float


def couplings(root: Element, fields: Fields) -> dict[str, Coupling]:
    """{joint: the joint that it follows}."""
    carried = {}
    for joint in root.all("joint"):
        child = joint.first("child")
        if child is not None and "link" in child.attributes:
            carried[child.attributes["link"]] = joint.attributes.get("name", "")
    found = {}
    for element in (x for tag in COUPLINGS for x in root.all(tag)):
        fields.owner = element
        joints = []
        for names in ENDS:
            end = _end_element(element, names, fields)
            link = fields.text(end, "link")
            if link not in carried:
                fields.fail(end, f"no joint carries link {shown(link)}", nearest(link, carried))
            joints.append(carried[link])
        ratio = element.first("ratio") or element.first("gear_ratio")
        if ratio is None:
            fields.fail(element, f"<{element.tag}> has no <ratio>", 'add <ratio value="..."/>')
        found[joints[1]] = Coupling(joints[0], fields.number(ratio, "value"))
    return found


def loops(root: Element, fields: Fields, builder) -> list[LoopRow]:
    """The loops; their frames go into the builder."""
    found = []
    for element in (x for tag in LOOPS for x in root.all(tag)):
        fields.owner = element
        name, kind = fields.text(element, "name"), element.attributes.get("type", "position")
        if kind not in KINDS:
            fields.fail(element, f"no loop of type {shown(kind)}", nearest(kind, KINDS))
        holds, has_axis = KINDS[kind]
        frames = []
        for names in ENDS:
            end = _end_element(element, names, fields)
            place = end if names[0] == end.tag else OriginHolder(element.first(names[2]))
            rotation, xyz = fields.origin(place)  # type: ignore[arg-type]
            frame = f"{name} {names[0]}"
            builder.frame(
                frame,
                fields.text(end, "link"),
                xyz,
                rotation=None if rotation is IDENTITY_ROTATION else rotation,
            )
            frames.append(frame)
        axis = element.first("axis")
        along = (
            None
            if not has_axis
            else (1.0, 0.0, 0.0)
            if axis is None
            else fields.numbers(axis, "xyz", 3)
        )
        found.append(LoopRow(name, holds, frames[1], frames[0], along))
    return found


def _end_element(element: Element, names: tuple[str, ...], fields: Fields) -> Element:
    found = element.first(names[0]) or element.first(names[1])
    if found is None:
        fields.fail(element, f"<{element.tag}> has no <{names[0]}>", f'add <{names[0]} link="...">')
    return found


class OriginHolder(NamedTuple):
    """An origin that stands beside its link, not in it."""

    origin: Element | None

    def first(self, tag: str) -> Element | None:
        return self.origin
