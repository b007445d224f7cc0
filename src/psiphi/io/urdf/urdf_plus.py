"""Loops and couplings of URDF+ (Chignoli, Slotine, Wensing and Kim 2024), also by older names.

    <loop name type>
      <predecessor link> <origin/> </predecessor> <successor link> <origin/> </successor> <axis/>
    </loop>
    <coupling name> <predecessor link/> <successor link/> <ratio value/> </coupling>

A loop is a joint of its type between two frames. A coupling moves the joint of the successor
`ratio` times as far as the joint of the predecessor. Couplings become mimic joints, loops become
`robot.loops`; they do not act until `pp.embed` or `pp.connect` is called.
"""

from __future__ import annotations

from typing import NamedTuple

from psiphi._util.text import nearest, shown
from psiphi.io.urdf.xml_fields import Fields
from psiphi.io.urdf.xml_reader import Element
from psiphi.model.builder.builder import Builder
from psiphi.model.spatial.transforms import IDENTITY_ROTATION

KINDS = {  # type of loop -> (joint type of `closure_types.py`, whether it has an axis)
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
    """A loop of a file: its name, joint type, frames, and axis in the second frame, if any."""

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
    """The coupling of each follower joint, by name."""
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
                fields.fail(
                    end, f"no joint has the child link {shown(link)}", nearest(link, carried)
                )
            joints.append(carried[link])
        ratio = element.first("ratio") or element.first("gear_ratio")
        if ratio is None:
            fields.fail(element, f"<{element.tag}> has no <ratio>", 'add <ratio value="..."/>')
        found[joints[1]] = Coupling(joints[0], fields.number(ratio, "value"))
    return found


def loops(root: Element, fields: Fields, builder: Builder) -> list[LoopRow]:
    """The loops; their frames are added to the builder."""
    found = []
    for element in (x for tag in LOOPS for x in root.all(tag)):
        fields.owner = element
        name, kind = fields.text(element, "name"), element.attributes.get("type", "position")
        if kind not in KINDS:
            fields.fail(element, f"no loop of type {shown(kind)}", nearest(kind, KINDS))
        closure_type, has_axis = KINDS[kind]
        frames = []
        for names in ENDS:
            end = _end_element(element, names, fields)
            holder = end if names[0] == end.tag else OriginHolder(element.first(names[2]))
            rotation, xyz = fields.origin(holder)
            frame = f"{name} {names[0]}"
            builder.frame(
                frame,
                fields.text(end, "link"),
                xyz,
                rotation=None if rotation is IDENTITY_ROTATION else rotation,
            )
            frames.append(frame)
        axis = element.first("axis")
        direction = (
            None
            if not has_axis
            else (1.0, 0.0, 0.0)
            if axis is None
            else fields.numbers(axis, "xyz", 3)
        )
        found.append(LoopRow(name, closure_type, frames[1], frames[0], direction))
    return found


def _end_element(element: Element, names: tuple[str, ...], fields: Fields) -> Element:
    found = element.first(names[0]) or element.first(names[1])
    if found is None:
        fields.fail(element, f"<{element.tag}> has no <{names[0]}>", f'add <{names[0]} link="...">')
    return found


class OriginHolder(NamedTuple):
    """Holds an origin element that is a sibling of its link element, not a child."""

    origin: Element | None

    def first(self, tag: str) -> Element | None:
        return self.origin
