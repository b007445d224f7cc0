"""A robot as URDF text: every link, joint and frame by itself, numbers with all their digits.

A frame becomes a link without mass on a fixed joint, a loop the words of URDF+ (`io/urdf/urdf_plus.py`), a gear a mimic. A
floating base is a joint of type floating on the link "world". What is infinite is written as the largest number, which the
reader takes for infinite.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import atan2, cos, inf, sin
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.text import shown
from psiphi.io.urdf import urdf_plus
from psiphi.io.urdf.urdf import KINDS, MOMENTS, UNLIMITED
from psiphi.io.urdf.xml_writer import numbers, tag
from psiphi.model.builder.builder import EARTH, Builder
from psiphi.model.builder.records import JointRecord, LinkRecord
from psiphi.model.editing.name_patterns import (
    distinct_names,
    frame_place,
    ordered_joints,
    unused_name,
    used_names,
)
from psiphi.model.inertias import ZERO_INERTIA
from psiphi.model.model import Mimic, Model
from psiphi.model.shapes import SIZES, Shape
from psiphi.model.spatial.transforms import IDENTITY_PLACEMENT, Placement, Rotation

TYPES = {kind: word for word, kind in reversed(KINDS.items())}  # psiphi's kind -> URDF's type
BOUNDED = ("revolute", "prismatic")
DYNAMICS = (
    "damping",
    "friction",
    "armature",
    "stiffness",
    "rest",
)  # from the third on: words of psiphi's own


def text(robot: Model, file: Path) -> str:
    """The URDF of a robot that will stand in `file`."""
    builder = Builder(robot)
    for gear in getattr(robot, "gears", ()):
        builder.joints[gear.joint] = replace(builder.joints[gear.joint], mimic=_as_mimic(gear))
    loops = _loops(builder, getattr(robot, "loops", ()))
    hung = any(joint.parent == "world" for joint in builder.joints.values())
    ends = (link for loop in loops for link, _ in (loop.first, loop.second))
    on_world = hung or "world" in (*ends, *(frame.link for frame in builder.frames.values()))
    roots = set(builder.links) - {joint.child for joint in builder.joints.values()}
    if "world" not in builder.links and (on_world or len(roots) > 1):
        builder.body("world")
        builder.links = {"world": builder.links.pop("world"), **builder.links}
        for root in sorted(roots, key=list(builder.links).index):
            builder.joint(
                unused_name(f"world_to_{root}", used_names(builder)), "fixed", "world", root
            )
        builder.joints = ordered_joints(builder)
    shapes: dict[str, list[Shape]] = {}
    for shape in getattr(robot, "shapes", ()):
        shapes.setdefault(shape.link, []).append(shape)
    words = {"name": robot.name, "order": "given"}
    if any(shape.kind == "capsule" for shape in getattr(robot, "shapes", ())):
        words["version"] = "1.2"  # of URDF: with which other readers know capsules
    lines = ['<?xml version="1.0" encoding="utf-8"?>', tag("robot", words, end=">")]
    if tuple(robot.gravity_vector.tolist()) != EARTH:
        lines.append(tag("  gravity", {"xyz": numbers(robot.gravity_vector)}))
    for link in builder.links.values():
        lines += _link(link, shapes.get(link.name, ()), file)
    for joint in builder.joints.values():
        lines += _joint(joint)
    known = used_names(builder)
    for frame in builder.frames.values():
        lines += _link(
            LinkRecord(frame.name, 0.0, IDENTITY_PLACEMENT[1], ZERO_INERTIA, None),
            shapes.get(frame.name, ()),
            file,
        )
        known.add(own := unused_name(f"{frame.name}_joint", known))
        lines += _joint(JointRecord(own, "fixed", frame.link, frame.name, frame.place))
    lines += [line for loop in loops for line in loop.lines()]
    return "\n".join([*lines, "</robot>", ""])


class WrittenLoop(NamedTuple):
    """A loop as `io/urdf/urdf_plus.py` reads it: its ends on links, and the axis in the second."""

    name: str
    type: str
    axis: Any
    first: tuple[str, Placement]
    second: tuple[str, Placement]

    @classmethod
    def of(cls, builder: Builder, loop: Any, name: str) -> WrittenLoop:
        kinds = {
            kind: (word, has_axis) for word, (kind, has_axis) in reversed(urdf_plus.KINDS.items())
        }
        if loop.kind not in kinds or loop.friction is not None:
            cause = f"loop {shown(name)} is of kind {shown(loop.kind)}, which URDF cannot say"
            raise ModelError(cause, f"leave its frame out: robot.without({shown(loop.first)})")
        word, has_axis = kinds[loop.kind]
        ends = [frame_place(builder, frame, builder.name) for frame in (loop.first, loop.second)]
        return cls(
            name,
            word,
            (loop.axis if loop.axis is not None else (0.0, 0.0, 1.0)) if has_axis else None,
            *ends,
        )

    def lines(self) -> Iterator[str]:
        yield tag("  loop", {"name": self.name, "type": self.type}, end=">")
        for end, (link, place) in (("predecessor", self.second), ("successor", self.first)):
            yield tag(f"    {end}", {"link": link}, end=">")
            yield from _origin("      ", place)
            yield f"    </{end}>"
        if self.axis is not None:
            yield tag("    axis", {"xyz": numbers(self.axis)})
        yield "  </loop>"


def _loops(builder: Builder, given: Sequence[Any]) -> list[WrittenLoop]:
    """Each under a name of its own; the frames that the reader makes of their ends are written with them alone."""
    names = distinct_names(loop.name or f"loop{i + 1}" for i, loop in enumerate(given))
    loops = [WrittenLoop.of(builder, loop, name) for loop, name in zip(given, names, strict=True)]
    for loop, name in zip(given, names, strict=True):
        for frame, end in ((loop.first, "successor"), (loop.second, "predecessor")):
            if frame == f"{name} {end}":
                builder.frames.pop(frame, None)
    return loops


def _as_mimic(gear: Any) -> Mimic:
    ((leader, ratio), *more) = gear.leaders.items()
    terms = np.atleast_1d(ratio).tolist()
    if more or len(terms) > 1:
        cause = f"gear {shown(gear.name or gear.joint)} has {1 + len(more)} leaders and {len(terms)} terms"
        raise ModelError(cause, "URDF has joints that follow one other linearly: lock it, say")
    return Mimic(leader, float(terms[0]), gear.offset)


def rpy(R: Rotation) -> tuple[float, float, float]:
    """Angles of R = Rz(yaw) Ry(pitch) Rx(roll), to rounding everywhere: the yaw first, then those of Rz(-yaw) R.

    >>> rpy((0.0, 0.0, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0))
    (0.0, 1.5707963267948966, 0.0)
    """
    yaw = atan2(R[3], R[0])
    c, s = cos(yaw), sin(yaw)
    pitch = atan2(-R[6], c * R[0] + s * R[3])
    roll = atan2(s * R[2] - c * R[5], c * R[4] - s * R[1])
    return roll + 0.0, pitch + 0.0, yaw + 0.0


def _link(link: LinkRecord, shapes: Iterable[Shape], file: Path) -> Iterator[str]:
    inner = [*_inertial(link), *(line for shape in shapes for line in _shape(shape, file))]
    yield tag("  link", {"name": link.name}, end=">" if inner else "/>")
    if inner:
        yield from inner
        yield "  </link>"


def _inertial(link: LinkRecord) -> Iterator[str]:
    if link.has_mass or any(link.com):
        yield "    <inertial>"
        yield tag("      origin", {"xyz": numbers(link.com), "rpy": "0 0 0"})
        yield tag("      mass", {"value": repr(link.mass)})
        yield tag(
            "      inertia", {word: repr(x) for word, x in zip(MOMENTS, link.inertia, strict=True)}
        )
        yield "    </inertial>"


def _joint(joint: JointRecord) -> Iterator[str]:
    if joint.kind not in TYPES:
        raise ModelError(
            f"joint {shown(joint.name)} is {joint.kind}, which URDF cannot say",
            f"lock it, or save a robot whose joints are {', '.join(sorted(set(TYPES)))}",
        )
    if joint.spring is not None:
        raise ModelError(
            f"joint {shown(joint.name)} has a spring that is not linear, which URDF cannot say",
            "give it a plain stiffness",
        )
    yield tag("  joint", {"name": joint.name, "type": TYPES[joint.kind]}, end=">")
    yield from _origin("    ", joint.place)
    yield tag("    parent", {"link": joint.parent})
    yield tag("    child", {"link": joint.child})
    if joint.moves:
        if joint.row.axes:
            yield tag("    axis", {"xyz": numbers(joint.axis)})
        yield from _limit(joint)
        own = {word: getattr(joint, word) for word in DYNAMICS if any(getattr(joint, word))}
        words = {word: repr(_common_value(joint, word, x)) for word, x in own.items()} | (
            {} if joint.motor else {"motor": "false"}
        )
        if words:  # other readers refuse an element that has neither damping nor friction
            yield tag(
                "    dynamics",
                words if {"damping", "friction"} & words.keys() else {"damping": "0.0", **words},
            )
    if joint.mimic:
        leader, multiplier, offset = joint.mimic
        yield tag(
            "    mimic", {"joint": leader, "multiplier": repr(multiplier), "offset": repr(offset)}
        )
    yield "  </joint>"


def _limit(joint: JointRecord) -> Iterator[str]:
    words = {word: getattr(joint, word) for word in ("effort", "velocity")}
    if joint.kind in BOUNDED:
        words = {"lower": joint.lower, "upper": joint.upper, **words}
    elif any(abs(x) < inf for x in (*joint.lower, *joint.upper)):
        raise ModelError(
            f"joint {shown(joint.name)} is {joint.kind} and has position limits, which URDF cannot say",
            "lift its limits",
        )
    if joint.kind in BOUNDED or any(x < inf for values in words.values() for x in values):
        yield tag(
            "    limit",
            {word: _finite(_common_value(joint, word, values)) for word, values in words.items()},
        )


def _common_value(joint: JointRecord, word: str, values: tuple[float, ...]) -> float:
    """URDF has one number for all coordinates of a joint."""
    if len(set(values)) > 1:
        cause = f"joint {shown(joint.name)} has the {word} {shown(values)}: URDF has one number for all its coordinates"
        raise ModelError(cause, "make them equal")
    return values[0]


def _finite(x: float) -> str:
    return repr(x if abs(x) < inf else UNLIMITED if x > 0.0 else -UNLIMITED)


def _origin(indent: str, place: Placement) -> Iterator[str]:
    if place is not IDENTITY_PLACEMENT:
        yield tag(f"{indent}origin", {"xyz": numbers(place[1]), "rpy": numbers(rpy(place[0]))})


def _shape(shape: Shape, file: Path) -> Iterator[str]:
    yield f"    <{shape.role}>"
    yield from _origin("      ", shape.place)
    if shape.kind == "mesh":
        words = {"filename": _mesh(shape, file), "scale": numbers(shape.size)}
    else:
        words, start = {}, 0
        for word, count in SIZES[shape.kind]:
            words[word], start = numbers(shape.size[start : start + count]), start + count
    yield f"      <geometry>{tag(shape.kind, words)}</geometry>"
    if shape.color is not None:
        yield f'      <material name="">{tag("color", {"rgba": numbers(shape.color)})}</material>'
    yield f"    </{shape.role}>"


def _mesh(shape: Shape, file: Path) -> str:
    """A package's address as it is; a plain path as seen from the new file."""
    if shape.path is None or "://" in shape.filename:
        return shape.filename
    return os.path.relpath(shape.path, file.absolute().parent).replace(os.sep, "/")
