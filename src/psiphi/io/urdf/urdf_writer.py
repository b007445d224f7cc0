"""Writer of URDF: every link, joint and frame, numbers with all digits.

A frame becomes a massless link on a fixed joint, a loop an element of URDF+ (`urdf_plus.py`), a
gear a mimic joint. A floating base is a joint of type floating on the link "world". Infinite
limits are written as the largest float, which the reader reads as infinite.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import atan2, cos, inf, sin
from pathlib import Path
from typing import NamedTuple

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
from psiphi.model.loops.contacts_and_loops import Loop
from psiphi.model.loops.gears import Gear
from psiphi.model.model import Mimic, Model
from psiphi.model.shapes import SIZES, Shape
from psiphi.model.spatial.transforms import IDENTITY_PLACEMENT, Placement, Rotation

TYPES = {kind: word for word, kind in reversed(KINDS.items())}  # psiphi's kind -> URDF's type
BOUNDED = ("revolute", "prismatic")
DYNAMICS = ("damping", "friction", "armature", "stiffness", "rest")  # the last three: extensions


def text(robot: Model, file: Path) -> str:
    """The URDF of a robot for the file `file`."""
    builder = Builder(robot)
    for gear in getattr(robot, "gears", ()):
        builder.joints[gear.joint] = replace(builder.joints[gear.joint], mimic=_as_mimic(gear))
    loops = _loops(builder, getattr(robot, "loops", ()))
    has_child = any(joint.parent == "world" for joint in builder.joints.values())
    ends = (link for loop in loops for link, _ in (loop.first, loop.second))
    needs_world = has_child or "world" in (
        *ends,
        *(frame.link for frame in builder.frames.values()),
    )
    roots = set(builder.links) - {joint.child for joint in builder.joints.values()}
    if "world" not in builder.links and (needs_world or len(roots) > 1):
        builder.body("world")
        builder.links = {"world": builder.links.pop("world"), **builder.links}
        for root in sorted(roots, key=list(builder.links).index):
            builder.joint(
                unused_name(f"world_to_{root}", used_names(builder)), "fixed", "world", root
            )
        builder.joints = ordered_joints(builder)
    shapes: dict[str, list[Shape]] = {}
    for shape in getattr(robot, "shapes", ()):
        if not shape.vertices:  # a mesh without a file
            shapes.setdefault(shape.link, []).append(shape)
    attributes = {"name": robot.name, "order": "given"}
    if any(shape.kind == "capsule" for shape in getattr(robot, "shapes", ())):
        attributes["version"] = "1.2"  # the URDF version with capsules
    lines = ['<?xml version="1.0" encoding="utf-8"?>', tag("robot", attributes, end=">")]
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
        known.add(name := unused_name(f"{frame.name}_joint", known))
        lines += _joint(JointRecord(name, "fixed", frame.link, frame.name, frame.place))
    lines += [line for loop in loops for line in loop.lines()]
    return "\n".join([*lines, "</robot>", ""])


class WrittenLoop(NamedTuple):
    """A loop as `urdf_plus.py` reads it: its ends on links, and the axis in the second."""

    name: str
    type: str
    axis: Sequence[float] | None
    first: tuple[str, Placement]
    second: tuple[str, Placement]

    @classmethod
    def of(cls, builder: Builder, loop: Loop, name: str) -> WrittenLoop:
        kinds = {
            kind: (word, has_axis) for word, (kind, has_axis) in reversed(urdf_plus.KINDS.items())
        }
        if loop.kind not in kinds or loop.friction is not None:
            raise ModelError(
                f"loop {shown(name)} is of kind {shown(loop.kind)}, which URDF cannot represent",
                f"remove its frame: robot.without({shown(loop.first)})",
            )
        word, has_axis = kinds[loop.kind]
        axis = np.asarray((0.0, 0.0, 1.0) if loop.axis is None else loop.axis, dtype=float)
        ends = [frame_place(builder, frame, builder.name) for frame in (loop.first, loop.second)]
        return cls(
            name,
            word,
            axis.tolist() if has_axis else None,
            *ends,
        )

    def lines(self) -> Iterator[str]:
        """The lines of the <loop> element."""
        yield tag("  loop", {"name": self.name, "type": self.type}, end=">")
        for end, (link, place) in (("predecessor", self.second), ("successor", self.first)):
            yield tag(f"    {end}", {"link": link}, end=">")
            yield from _origin("      ", place)
            yield f"    </{end}>"
        if self.axis is not None:
            yield tag("    axis", {"xyz": numbers(self.axis)})
        yield "  </loop>"


def _loops(builder: Builder, loops: Sequence[Loop]) -> list[WrittenLoop]:
    """The loops with unique names; frames that the reader creates for loops are removed."""
    names = distinct_names(loop.name or f"loop{i + 1}" for i, loop in enumerate(loops))
    written = [WrittenLoop.of(builder, loop, name) for loop, name in zip(loops, names, strict=True)]
    for loop, name in zip(loops, names, strict=True):
        for frame, end in ((loop.first, "successor"), (loop.second, "predecessor")):
            if frame == f"{name} {end}":
                builder.frames.pop(frame, None)
    return written


def _as_mimic(gear: Gear) -> Mimic:
    """A linear gear with one leader as a mimic joint."""
    ((leader, ratio), *more) = gear.leaders.items()
    terms = np.asarray(ratio, dtype=float).ravel().tolist()
    if more or len(terms) > 1:
        raise ModelError(
            f"gear {shown(gear.name or gear.joint)} has {1 + len(more)} leaders "
            f"and {len(terms)} terms, but URDF has only linear gears with one leader",
            "lock the joint, for example",
        )
    return Mimic(leader, terms[0], gear.offset)


def rpy(R: Rotation) -> tuple[float, float, float]:
    """(roll, pitch, yaw) with R = Rz(yaw) Ry(pitch) Rx(roll).

    The yaw is computed first, then the others from Rz(-yaw) R, so that R is reproduced up to
    rounding for every rotation.

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
            f"joint {shown(joint.name)} is {joint.kind}, which URDF cannot represent",
            f"lock it, or save a robot whose joints are {', '.join(sorted(set(TYPES)))}",
        )
    if joint.spring is not None:
        raise ModelError(
            f"joint {shown(joint.name)} has a nonlinear spring, which URDF cannot represent",
            "use a linear stiffness",
        )
    yield tag("  joint", {"name": joint.name, "type": TYPES[joint.kind]}, end=">")
    yield from _origin("    ", joint.place)
    yield tag("    parent", {"link": joint.parent})
    yield tag("    child", {"link": joint.child})
    if joint.moves:
        if joint.row.axes:
            yield tag("    axis", {"xyz": numbers(joint.axis)})
        yield from _limit(joint)
        present = {word: getattr(joint, word) for word in DYNAMICS if any(getattr(joint, word))}
        dynamics = {word: repr(_common_value(joint, word, x)) for word, x in present.items()}
        dynamics |= {} if joint.motor else {"motor": "false"}
        if dynamics:
            # Other readers reject an element that has neither damping nor friction.
            if not {"damping", "friction"} & dynamics.keys():
                dynamics = {"damping": "0.0", **dynamics}
            yield tag("    dynamics", dynamics)
    if joint.mimic:
        leader, multiplier, offset = joint.mimic
        yield tag(
            "    mimic", {"joint": leader, "multiplier": repr(multiplier), "offset": repr(offset)}
        )
    yield "  </joint>"


def _limit(joint: JointRecord) -> Iterator[str]:
    limits = {word: getattr(joint, word) for word in ("effort", "velocity")}
    if joint.kind in BOUNDED:
        limits = {"lower": joint.lower, "upper": joint.upper, **limits}
    elif any(abs(x) < inf for x in (*joint.lower, *joint.upper)):
        raise ModelError(
            f"joint {shown(joint.name)} is {joint.kind} and has position limits, "
            "which URDF cannot represent",
            "remove its limits",
        )
    if joint.kind in BOUNDED or any(x < inf for values in limits.values() for x in values):
        yield tag(
            "    limit",
            {word: _finite(_common_value(joint, word, values)) for word, values in limits.items()},
        )


def _common_value(joint: JointRecord, word: str, values: tuple[float, ...]) -> float:
    """The value of all coordinates of a joint, for which URDF has one number."""
    if len(set(values)) > 1:
        raise ModelError(
            f"joint {shown(joint.name)} has the {word} {shown(values)}, "
            "but URDF has one number for all its coordinates",
            "make them equal",
        )
    return values[0]


def _finite(x: float) -> str:
    return repr(x if abs(x) < inf else UNLIMITED if x > 0.0 else -UNLIMITED)


def _origin(indent: str, placement: Placement) -> Iterator[str]:
    if placement is not IDENTITY_PLACEMENT:
        R, p = placement
        yield tag(f"{indent}origin", {"xyz": numbers(p), "rpy": numbers(rpy(R))})


def _shape(shape: Shape, file: Path) -> Iterator[str]:
    yield f"    <{shape.role}>"
    yield from _origin("      ", shape.place)
    if shape.kind == "mesh":
        attributes = {"filename": _mesh(shape, file), "scale": numbers(shape.size)}
    else:
        attributes, start = {}, 0
        for word, count in SIZES[shape.kind]:
            attributes[word], start = numbers(shape.size[start : start + count]), start + count
    yield f"      <geometry>{tag(shape.kind, attributes)}</geometry>"
    if shape.color is not None:
        yield f'      <material name="">{tag("color", {"rgba": numbers(shape.color)})}</material>'
    yield f"    </{shape.role}>"


def _mesh(shape: Shape, file: Path) -> str:
    """A package address unchanged; a plain path relative to the new file."""
    if shape.path is None or "://" in shape.filename:
        return shape.filename
    return os.path.relpath(shape.path, file.absolute().parent).replace(os.sep, "/")
