"""More of a robot: a body, a tool or another robot on one of its frames, welded or on a joint of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import listed, shown
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.description import spanning
from psiphi.model.builder.pose_values import place, pose
from psiphi.model.editing.name_patterns import spot, taken, unused
from psiphi.model.editing.reconstruction import AttachedPart, grounded
from psiphi.model.model import Body, Mimic, Model, Solid
from psiphi.model.shapes import Shape
from psiphi.model.spatial.transforms import HERE, Place, compose

OWN = (
    "parent",
    "child",
    "xyz",
    "rpy",
    "rotation",
    "line",
)  # what the call itself says of the new joint


@dataclass(frozen=True)
class Attachment:
    """What is put on: a builder of it, its shapes, and the prefix of all its names."""

    builder: Builder
    shapes: tuple[Shape, ...]
    prefix: str

    def named(self, name: str) -> str:
        """A name of it, as the robot will call it."""
        return name if name == "world" and name not in self.builder.links else self.prefix + name

    @property
    def names(self) -> list[str]:
        own = self.builder
        return [self.named(name) for name in dict.fromkeys([*own.links, *own.joints, *own.frames])]


def attach(
    builder: Builder, other: Any, frame: Any, at: Any, joint: Any, prefix: Any
) -> AttachedPart:
    """Put `other` on a frame of the builder; what it was, and what its names are now."""
    if not isinstance(prefix, str):
        raise StateError(f"prefix is {shown(prefix)}, expected text", 'give prefix="left_"')
    new = Attachment(*opened(other), prefix)
    link, here = spot(builder, frame, builder.name)
    seat = compose(here, place(pose("pose", at)))
    _refuse_clashes(builder, new)
    own, roots = new.builder, _roots(new.builder)
    for name, record in own.links.items():
        builder.links[new.named(name)] = replace(record, name=new.named(name))
    for record in own.joints.values():
        hung = record.parent == "world" and "world" not in own.links
        mimic = record.mimic and Mimic(new.named(record.mimic.joint), *record.mimic[1:])
        builder.joints[new.named(record.name)] = replace(
            record,
            name=new.named(record.name),
            parent=link if hung else new.named(record.parent),
            child=new.named(record.child),
            place=compose(seat, record.place) if hung else record.place,
            mimic=mimic,
        )
    _seat(builder, new, roots, link, seat, joint)
    for record in own.frames.values():
        hung = record.link == "world" and "world" not in own.links
        target, where = (
            (link, compose(seat, record.place)) if hung else (new.named(record.link), record.place)
        )
        builder.frames[new.named(record.name)] = replace(
            record, name=new.named(record.name), link=target, place=where
        )
    _merge_postures(builder, new)
    shapes = tuple(_worn(new, new.shapes, builder, frame, seat))
    if "world" in own.links:
        return AttachedPart(shapes, other, new.named)
    ground = grounded(other, builder, f"{prefix or own.name + '_'}world", link, seat)
    return AttachedPart(shapes, other, lambda name: ground if name == "world" else new.named(name))


def opened(other: Any) -> tuple[Builder, tuple[Shape, ...]]:
    """A body or a robot as records and shapes."""
    if isinstance(other, Model):
        return Builder(spanning(other)), tuple(getattr(other, "shapes", ()))
    if not isinstance(other, Body):
        raise StateError(
            f"{shown(other)} cannot be attached",
            "give a pp.Body, say pp.Body.box(3.0, (0.2, 0.1, 0.1)), or a robot",
        )
    builder = Builder(other.name)
    builder.body(other.name, other.mass, other.com, other.inertia)
    x, y, z = (float(c) for c in other.com)
    solid = other.solid
    if solid is not None and not isinstance(solid, Solid):
        raise StateError(
            f"solid is {shown(solid)}, expected a shape",
            "leave it out, or make the body by pp.Body.box and its kin",
        )
    shapes = (
        (Shape(other.name, "visual", solid.kind, (HERE[0], (x, y, z)), solid.size),)
        if solid
        else ()
    )
    return builder, shapes


def _roots(builder: Builder) -> list[str]:
    carried = {joint.child for joint in builder.joints.values()}
    return [name for name in builder.links if name not in carried]


def _seat(
    builder: Builder, new: Attachment, roots: list[str], link: str, seat: Place, joint: Any
) -> None:
    """Root links on the frame, by a joint each: fixed, or the one that is asked for."""
    given = dict(joint) if isinstance(joint, Mapping) else {"kind": joint}
    for word in given:
        if word in OWN:
            raise StateError(
                f"joint has {shown(word)}, which the frame and the pose say", "leave it out"
            )
    kind = given.get("kind", "fixed")
    if not isinstance(kind, str):
        raise StateError(
            f"joint is {shown(kind)}, expected a kind of joints or the words of one",
            'joint="revolute"',
        )
    if kind != "fixed" and len(roots) != 1:
        what = f"its roots are {listed(roots)}" if roots else "its joints hang on the world itself"
        raise ModelError(
            f"{new.builder.name} has no one link that a joint could carry: {what}",
            "weld it: leave joint= out",
        )
    for root in roots:
        child = new.named(root)
        own = {"kind": "fixed", "name": unused(f"{child}_joint", taken(builder)), **given}
        if isinstance(own["name"], str) and own["name"] in taken(builder):
            raise StateError(
                f"{builder.name} already has a {shown(own['name'])}", "give the joint another name"
            )
        try:
            builder.joint(**own, parent=link, child=child)
        except TypeError as error:
            raise StateError(
                f"joint is {shown(joint)}: {error}",
                'give a kind, or dict(kind="revolute", axis=(0, 0, 1))',
            ) from None
        builder.joints[own["name"]] = replace(builder.joints[own["name"]], place=seat)


def _refuse_clashes(builder: Builder, new: Attachment) -> None:
    clashes = [name for name in new.names if name in taken(builder)]
    if clashes:
        prefix = "left_" if not new.prefix else f"{new.prefix}2_"
        raise StateError(
            f"{builder.name} and {new.builder.name} both have {listed(clashes)}",
            f'attach it with prefix="{prefix}", say',
        )


def _merge_postures(builder: Builder, new: Attachment) -> None:
    for name, q in new.builder.postures.items():
        builder.postures.setdefault(name, {}).update(
            {new.named(joint): own for joint, own in q.items()}
        )


def _worn(
    new: Attachment, shapes: Iterable[Shape], builder: Builder, frame: str, seat: Place
) -> Iterable[Shape]:
    """Shapes under their new names; what stood on the other's world sits on the frame."""
    link, _ = spot(builder, frame, builder.name)
    for shape in shapes:
        if shape.link == "world" and "world" not in new.builder.links:
            yield replace(shape, link=link, place=compose(seat, shape.place))
        else:
            yield replace(shape, link=new.named(shape.link))
