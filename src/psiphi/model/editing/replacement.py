"""Add a frame, replace inertias, replace or move the base."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import shown
from psiphi.model.builder import builder_values
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.pose_values import placement, read_pose
from psiphi.model.builder.records import FrameRecord, JointRecord
from psiphi.model.builder.welded_tree import free_joint
from psiphi.model.editing.joint_lock import fixed_joint
from psiphi.model.editing.name_patterns import (
    frame_place,
    known_link,
    ordered_joints,
    unused_name,
    used_names,
)
from psiphi.model.editing.subtree import descendants
from psiphi.model.model import Body, Model, Pose
from psiphi.model.spatial.transforms import IDENTITY_ROTATION, Placement, compose

FREE_POSE = "a pose is given for a free base"
FREE_POSE_REMEDY = "set its first seven coordinates, which are its pose"


def with_frame(builder: Builder, name: str, frame: str, pose: Pose | Numbers | None) -> None:
    """Add a frame at a pose in another frame."""
    builder_values.name(name, builder.fail_at("frame", name))
    if name in used_names(builder):
        raise StateError(
            f"{builder.name} already has a link, joint or frame {shown(name)}",
            "give the frame its own name",
        )
    link, base = frame_place(builder, frame, builder.name)
    place = compose(base, placement(read_pose(f"the pose of frame {name!r}", pose)))
    builder.frames[name] = FrameRecord(name, link, place, None)


def with_inertia(
    builder: Builder,
    link: str,
    body: Body | None,
    mass: Numbers | None,
    com: Numbers | None,
    inertia: Numbers | None,
) -> None:
    """Replace mass, centre of mass or inertia of one link; None leaves a value unchanged."""
    fail = builder.fail_at("link", known_link(builder, link))
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
        new["inertia"] = builder_values.inertia(inertia, IDENTITY_ROTATION, fail)
    if not new:
        raise StateError(
            "with_inertia has nothing to change",
            "give a pp.Body, or some of mass=, com=, inertia=",
        )
    builder.links[link] = replace(builder.links[link], **new)


def with_bodies(builder: Builder, model: Model, bodies: Mapping[int, Body]) -> None:
    """Replace the inertias of bodies {index: body}, each a link with the links welded to it.

    The link itself gets the new inertia, the inertia of the links welded to it becomes zero.
    """
    for k, body in bodies.items():
        for name in builder.links:
            if name in model.frames and model.frames[name].body == k:
                builder.links[name] = replace(builder.links[name], mass=0.0, inertia=(0.0,) * 6)
        with_inertia(builder, model.bodies[k].name, body, None, None, None)


def with_base(builder: Builder, base: str | None, pose: Pose | Numbers | None) -> None:
    """Make the base "free" or "fixed", or move it by a pose in the world."""
    if base is not None and not (isinstance(base, str) and base in ("fixed", "free")):
        raise StateError(
            f"base is {shown(base)}, expected 'fixed' or 'free'",
            "leave it out to move the robot alone",
        )
    if base is None and pose is None:
        raise StateError("with_base has nothing to change", 'give "fixed" or "free", or pose=')
    base_joints = _base_joints(builder, base == "free")
    if base == "free" and pose is not None:
        raise StateError(FREE_POSE, FREE_POSE_REMEDY)
    for link, joint in base_joints.items():
        if base == "free" and not (joint and joint.kind == "free"):
            name = joint.name if joint else _root_name(builder, base_joints, link)
            root = free_joint(name, builder.links[link])
            builder.joints[root.name] = replace(root, parent=joint.parent if joint else root.parent)
        elif base == "fixed" and joint and joint.kind == "free" and pose is None:
            builder.joints[joint.name] = fixed_joint(joint, joint.place)
    if pose is not None:
        _move_base(builder, placement(read_pose("pose", pose)), base)
    builder.joints = ordered_joints(builder)


def _base_joints(builder: Builder, needed: bool) -> dict[str, JointRecord | None]:
    """{link: joint or None} of the links that are welded to the world or on a free joint.

    A link called "world" is the world; a link welded to the world whose subtree has no mass does
    not count. An empty result is an error if `needed`.
    """
    carriers = {joint.child: joint for joint in builder.joints.values()}
    on_world: dict[str, JointRecord | None] = {
        name: carriers.get(name)
        for name in builder.links
        if name != "world" and (name not in carriers or carriers[name].parent == "world")
    }
    found = {
        name: joint
        for name, joint in on_world.items()
        if joint is None
        or joint.kind == "free"
        or (joint.kind == "fixed" and _carries_mass(builder, name))
    }
    if needed and not found:
        names = ", ".join(joint.name for joint in on_world.values() if joint)
        raise ModelError(
            f"{builder.name} has no base: its joints {names} are on the world itself",
            "attach it to a body, which can float: body_robot.attach(robot, ...)",
        )
    return found


def _carries_mass(builder: Builder, link: str) -> bool:
    return any(builder.links[name].has_mass for name in (link, *descendants(builder, [link])))


def _root_name(builder: Builder, base_joints: Collection[str], link: str) -> str:
    name = "root_joint" if len(base_joints) == 1 else f"root_joint_{link}"
    return unused_name(name, used_names(builder))


def _move_base(builder: Builder, pose: Placement, base: str | None) -> None:
    """Move all joints, root links and frames on the world; with base="fixed", fix free joints."""
    for name, joint in list(builder.joints.items()):
        if joint.kind == "free" and joint.parent == "world":
            if base != "fixed":
                raise StateError(FREE_POSE, FREE_POSE_REMEDY)
            builder.joints[name] = fixed_joint(joint, compose(pose, joint.place))
        elif joint.parent == "world":
            builder.joints[name] = replace(joint, place=compose(pose, joint.place))
    children = {joint.child for joint in builder.joints.values()}
    for link in [link for link in builder.links if link not in children and link != "world"]:
        name = unused_name(f"{link}_seat", used_names(builder))
        builder.joints[name] = JointRecord(name, "fixed", "world", link, pose)
    for name, frame in builder.frames.items():
        if frame.link == "world":
            builder.frames[name] = replace(frame, place=compose(pose, frame.place))
