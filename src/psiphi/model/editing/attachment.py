"""Attach a body or another robot to a frame of a robot, welded or by a joint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import listed, shown
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.description import spanning_tree
from psiphi.model.builder.pose_values import placement, read_pose
from psiphi.model.components import Solid
from psiphi.model.editing.name_patterns import frame_place, unused_name, used_names
from psiphi.model.editing.reconstruction import AttachedPart, world_frame
from psiphi.model.model import Body, Mimic, Model, Pose
from psiphi.model.shapes import Shape
from psiphi.model.spatial.transforms import IDENTITY_PLACEMENT, Placement, compose

# Arguments of `Builder.joint` that `attach` sets itself.
RESERVED = ("parent", "child", "xyz", "rpy", "rotation", "line")


@dataclass(frozen=True)
class Attachment:
    """The attached part: its builder, its shapes, and the prefix of its names."""

    builder: Builder
    shapes: tuple[Shape, ...]
    prefix: str

    def new_name(self, name: str) -> str:
        """The name in the result for a name of the part."""
        return name if name == "world" and name not in self.builder.links else self.prefix + name

    @property
    def names(self) -> list[str]:
        part = self.builder
        names = dict.fromkeys([*part.links, *part.joints, *part.frames])
        return [self.new_name(name) for name in names]


def attach(
    builder: Builder,
    other: Body | Model,
    frame: str,
    pose: Pose | Numbers | None,
    joint: str | Mapping[str, Any],
    prefix: str,
) -> AttachedPart:
    """Add the records of `other` to the builder, at a pose in a frame.

    `joint` is "fixed", a kind of joint, or arguments of `Builder.joint`.
    """
    if not isinstance(prefix, str):
        raise StateError(f"prefix is {shown(prefix)}, expected text", 'give prefix="left_"')
    new = Attachment(*builder_and_shapes(other), prefix)
    link, base = frame_place(builder, frame, builder.name)
    seat = compose(base, placement(read_pose("pose", pose)))
    _check_names(builder, new)
    part, roots = new.builder, _roots(new.builder)
    for name, record in part.links.items():
        builder.links[new.new_name(name)] = replace(record, name=new.new_name(name))
    for record in part.joints.values():
        on_world = record.parent == "world" and "world" not in part.links
        mimic = record.mimic and Mimic(new.new_name(record.mimic.joint), *record.mimic[1:])
        builder.joints[new.new_name(record.name)] = replace(
            record,
            name=new.new_name(record.name),
            parent=link if on_world else new.new_name(record.parent),
            child=new.new_name(record.child),
            place=compose(seat, record.place) if on_world else record.place,
            mimic=mimic,
        )
    _attach_roots(builder, new, roots, link, seat, joint)
    for record in part.frames.values():
        on_world = record.link == "world" and "world" not in part.links
        builder.frames[new.new_name(record.name)] = replace(
            record,
            name=new.new_name(record.name),
            link=link if on_world else new.new_name(record.link),
            place=compose(seat, record.place) if on_world else record.place,
        )
    _merge_postures(builder, new)
    shapes = tuple(_attached_shapes(new, new.shapes, builder, frame, seat))
    if "world" in part.links:
        return AttachedPart(shapes, other, new.new_name)
    ground = world_frame(other, builder, f"{prefix or part.name + '_'}world", link, seat)
    return AttachedPart(
        shapes, other, lambda name: ground if name == "world" else new.new_name(name)
    )


def builder_and_shapes(other: object) -> tuple[Builder, tuple[Shape, ...]]:
    """A builder with the records of a body or robot, and its shapes."""
    if isinstance(other, Model):
        return Builder(spanning_tree(other)), tuple(getattr(other, "shapes", ()))
    if not isinstance(other, Body):
        raise StateError(
            f"{shown(other)} cannot be attached",
            "give a pp.Body, for instance pp.Body.box(3.0, (0.2, 0.1, 0.1)), or a robot",
        )
    builder = Builder(other.name)
    builder.body(other.name, other.mass, other.com, other.inertia)
    x, y, z = (float(c) for c in other.com)
    solid = other.solid
    if solid is not None and not isinstance(solid, Solid):
        raise StateError(
            f"solid is {shown(solid)}, expected a shape",
            "leave it out, or use pp.Body.box, sphere, cylinder or capsule",
        )
    shapes = (
        (Shape(other.name, "visual", solid.kind, (IDENTITY_PLACEMENT[0], (x, y, z)), solid.size),)
        if solid
        else ()
    )
    return builder, shapes


def _roots(builder: Builder) -> list[str]:
    children = {joint.child for joint in builder.joints.values()}
    return [name for name in builder.links if name not in children]


def _attach_roots(
    builder: Builder,
    new: Attachment,
    roots: list[str],
    link: str,
    seat: Placement,
    joint: str | Mapping[str, Any],
) -> None:
    """Connect each root link of the part to `link`."""
    options: dict[str, Any] = dict(joint) if isinstance(joint, Mapping) else {"kind": joint}
    for option in options:
        if option in RESERVED:
            raise StateError(
                f"joint has {shown(option)}, which the frame and the pose define", "leave it out"
            )
    kind = options.get("kind", "fixed")
    if not isinstance(kind, str):
        raise StateError(
            f"joint is {shown(kind)}, expected a kind of joint, or arguments of pp.Builder.joint",
            'give joint="revolute"',
        )
    if kind != "fixed" and len(roots) != 1:
        what = f"its roots are {listed(roots)}" if roots else "its joints are on the world itself"
        raise ModelError(
            f"{new.builder.name} has no single root link for a joint: {what}",
            "weld it: leave joint= out",
        )
    for root in roots:
        child = new.new_name(root)
        name = unused_name(f"{child}_joint", used_names(builder))
        arguments: dict[str, Any] = {"kind": "fixed", "name": name, **options}
        name = arguments["name"]
        if isinstance(name, str) and name in used_names(builder):
            raise StateError(
                f"{builder.name} already has a {shown(name)}", "give the joint another name"
            )
        try:
            builder.joint(**arguments, parent=link, child=child)
        except TypeError as error:
            raise StateError(
                f"joint is {shown(joint)}: {error}",
                'give a kind, or dict(kind="revolute", axis=(0, 0, 1))',
            ) from None
        builder.joints[name] = replace(builder.joints[name], place=seat)


def _check_names(builder: Builder, new: Attachment) -> None:
    clashes = [name for name in new.names if name in used_names(builder)]
    if clashes:
        prefix = "left_" if not new.prefix else f"{new.prefix}2_"
        raise StateError(
            f"{builder.name} and {new.builder.name} both have {listed(clashes)}",
            f'attach it with a prefix, for instance "{prefix}"',
        )


def _merge_postures(builder: Builder, new: Attachment) -> None:
    for name, q in new.builder.postures.items():
        builder.postures.setdefault(name, {}).update(
            {new.new_name(joint): coordinates for joint, coordinates in q.items()}
        )


def _attached_shapes(
    new: Attachment, shapes: Iterable[Shape], builder: Builder, frame: str, seat: Placement
) -> Iterable[Shape]:
    """The shapes on renamed links; shapes on the world of the part are on the frame."""
    link, _ = frame_place(builder, frame, builder.name)
    for shape in shapes:
        if shape.link == "world" and "world" not in new.builder.links:
            yield replace(shape, link=link, place=compose(seat, shape.place))
        else:
            yield replace(shape, link=new.new_name(shape.link))
