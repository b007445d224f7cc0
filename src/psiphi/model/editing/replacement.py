"""Small changes: a frame more, other gravity, another base, other inertia, a named posture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import shown
from psiphi.model.builder import builder_values
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.pose_values import place, pose
from psiphi.model.builder.records import FrameRecord, JointRecord
from psiphi.model.builder.tree_walk import free_joint
from psiphi.model.editing.joint_lock import fixed
from psiphi.model.editing.name_patterns import known_link, ordered_joints, spot, taken, unused
from psiphi.model.editing.subtree import carried
from psiphi.model.model import Body, Model
from psiphi.model.spatial.transforms import UPRIGHT, compose


def with_frame(builder: Builder, name: Any, frame: Any, at: Any) -> None:
    """A frame more, at a pose in another."""
    builder_values.name(name, builder._fail_at("frame", name))
    if name in taken(builder):
        raise StateError(
            f"{builder.name} already has a link, joint or frame {shown(name)}",
            "give the frame its own name",
        )
    link, here = spot(builder, frame, builder.name)
    builder.frames[name] = FrameRecord(
        name, link, compose(here, place(pose(f"the pose of frame {name!r}", at))), None
    )


def with_inertia(builder: Builder, link: Any, body: Any, mass: Any, com: Any, inertia: Any) -> None:
    """Another mass, centre of mass or inertia of one link by itself; what is not given stays."""
    fail = builder._fail_at("link", known_link(builder, link))
    if body is not None:
        if not isinstance(body, Body) or not (mass is com is inertia is None):
            raise StateError(
                f"body is {shown(body)}", "give a pp.Body, or mass=, com= and inertia="
            )
        mass, com, inertia = body.mass, body.com, body.inertia
    new: dict[str, Any] = {}
    if mass is not None:
        new["mass"] = builder_values.number(mass, "mass", fail)
    if com is not None:
        new["com"] = builder_values.triple(com, "com", fail)
    if inertia is not None:
        new["inertia"] = builder_values.inertia(inertia, UPRIGHT, fail)
    if not new:
        raise StateError(
            "with_inertia came without anything to change",
            "give a pp.Body, or some of mass=, com=, inertia=",
        )
    builder.links[link] = replace(builder.links[link], **new)


def with_bodies(builder: Builder, model: Model, bodies: Mapping[int, Body]) -> None:
    """Other inertias of whole bodies: the link that the joint carries gets them, those welded to it none."""
    for k, body in bodies.items():
        for name in [
            name for name in builder.links if name in model.frames and model.frames[name].body == k
        ]:
            builder.links[name] = replace(builder.links[name], mass=0.0, inertia=(0.0,) * 6)
        with_inertia(builder, model.bodies[k].name, body, None, None, None)


def with_base(builder: Builder, base: Any, at: Any) -> None:
    """What is welded to the world flies, or stands at a pose; what flies is bolted down."""
    if base is not None and not (isinstance(base, str) and base in ("fixed", "free")):
        raise StateError(
            f"base is {shown(base)}, expected 'fixed' or 'free'",
            "leave it out to move the robot alone",
        )
    if base is None and at is None:
        raise StateError(
            "with_base came without anything to change", 'give "fixed" or "free", or pose='
        )
    seats = _seats(builder, base == "free")
    if base == "free" and at is not None:
        raise StateError("a pose came for a free base", "its first seven coordinates are its pose")
    for link, joint in seats.items():
        if base == "free" and not (joint and joint.kind == "free"):
            root = free_joint(
                joint.name if joint else _root_name(builder, seats, link), builder.links[link]
            )
            builder.joints[root.name] = replace(root, parent=joint.parent if joint else root.parent)
        elif base == "fixed" and joint and joint.kind == "free" and at is None:
            builder.joints[joint.name] = fixed(joint, joint.place)
    if at is not None:
        _move(builder, place(pose("pose", at)), base)
    builder.joints = ordered_joints(builder)


def _seats(builder: Builder, needed: bool) -> dict[str, JointRecord | None]:
    """The links that stand on the world, welded or flying, with the joints that hold them; a link called world is the world,
    and one that is welded to it and carries no mass a mark on it."""
    carriers = {joint.child: joint for joint in builder.joints.values()}
    seats: dict[str, JointRecord | None] = {
        name: carriers.get(name)
        for name in builder.links
        if name != "world" and (name not in carriers or carriers[name].parent == "world")
    }
    standing = {
        name: joint
        for name, joint in seats.items()
        if joint is None
        or joint.kind == "free"
        or (joint.kind == "fixed" and _heavy(builder, name))
    }
    if needed and not standing:
        cause = f"{builder.name} has no base: its joints {', '.join(j.name for j in seats.values() if j)} are on the world itself"
        raise ModelError(cause, "attach it to a body, which can fly: body_robot.attach(robot, ...)")
    return standing


def _heavy(builder: Builder, link: str) -> bool:
    return any(builder.links[name].has_mass for name in (link, *carried(builder, [link])))


def _root_name(builder: Builder, seats: dict[str, Any], link: str) -> str:
    return unused("root_joint" if len(seats) == 1 else f"root_joint_{link}", taken(builder))


def _move(builder: Builder, by, base: str | None) -> None:
    """Everything on the world, moved by a pose; free joints are at their q, and are bolted down there if asked to."""
    for name, joint in list(builder.joints.items()):
        if joint.kind == "free" and joint.parent == "world":
            if base != "fixed":
                raise StateError(
                    "a pose came for a free base", "its first seven coordinates are its pose"
                )
            builder.joints[name] = fixed(joint, compose(by, joint.place))
        elif joint.parent == "world":
            builder.joints[name] = replace(joint, place=compose(by, joint.place))
    held = {joint.child for joint in builder.joints.values()}
    for link in [link for link in builder.links if link not in held and link != "world"]:
        name = unused(f"{link}_seat", taken(builder))
        builder.joints[name] = JointRecord(name, "fixed", "world", link, by)
    for name, frame in builder.frames.items():
        if frame.link == "world":
            builder.frames[name] = replace(frame, place=compose(by, frame.place))
