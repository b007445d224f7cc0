"""Pairs of solids of a robot that can touch each other: two links, or a link and what is fixed to
the world."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from psiphi._util.errors import ModelError
from psiphi.model.builder.pose_values import read_pose
from psiphi.model.components import Pose
from psiphi.model.contact.closest_points import Approach, Core, closest
from psiphi.model.contact.contact_points import Vector
from psiphi.model.contact.contact_shapes import Box, Capsule, ContactShape, Sphere
from psiphi.model.spatial.screws import add, dot

HALF_SIZES = {  # of the core, along the axes of the shape's pose
    Sphere: lambda x: (),
    Capsule: lambda x: ((0.0, 0.0, 0.5 * float(x.length)),),
    Box: lambda x: _box_axes(x.size),
}
Place = tuple[Sequence[Sequence[Any]], Sequence[Any]]  # rotation and origin of a frame, world axes


@dataclass(frozen=True)
class ContactSolid:
    """A sphere, capsule or box on the frame `frame`: its core (`closest_points.py`) in the axes of
    the frame, and the radius about it."""

    frame: str
    center: Vector
    half_axes: tuple[Vector, ...] = ()
    radius: float = 0.0

    @classmethod
    def of(cls, name: str, frame: str, shape: ContactShape) -> ContactSolid:
        """The solid of a shape; an error if there is none."""
        half = HALF_SIZES.get(type(shape))
        if half is None:
            raise ModelError(
                f"{name}: a {type(shape).__name__} cannot be in a pair",
                "give a pp.Sphere, pp.Capsule or pp.Box",
            )
        shape.check(name)
        pose = read_pose(f"the pose of {name}", shape.pose)
        axes = tuple(_turned(pose.rotation.tolist(), axis) for axis in half(shape))
        x, y, z = pose.translation.tolist()
        return cls(frame, (x, y, z), axes, float(getattr(shape, "radius", 0.0)))

    def on(self, frame: str) -> ContactSolid:
        return replace(self, frame=frame)

    def moved(self, frame: str, pose: Pose) -> ContactSolid:
        """The same solid in the axes of `frame`, in which its own frame has this pose."""
        rotation = pose.rotation.tolist()
        x, y, z = add(_turned(rotation, self.center), pose.translation.tolist())
        axes = tuple(_turned(rotation, axis) for axis in self.half_axes)
        return ContactSolid(frame, (x, y, z), axes, self.radius)

    def core(self, place: Place) -> Core:
        """The core in world axes."""
        rotation, origin = place
        center = add([dot(row, self.center) for row in rotation], origin)
        axes = [[dot(row, axis) for row in rotation] for axis in self.half_axes]
        return Core(center, axes, [math.hypot(*axis) for axis in self.half_axes])


@dataclass(frozen=True)
class ContactPair:
    """Two solids that can touch; the recorded force is that on the first."""

    name: str
    first: ContactSolid
    second: ContactSolid

    @classmethod
    def of(cls, name: str, first: ContactSolid, second: ContactSolid) -> ContactPair:
        """The pair, if the closest points of its solids are known."""
        sizes = sorted((len(first.half_axes), len(second.half_axes)))
        if sizes[1] == 3 and sizes[0]:
            kind = "box" if sizes[0] == 3 else "capsule"
            raise ModelError(
                f"{name}: contact of a box with a {kind} is not implemented",
                "use spheres in place of one of them, such as at the corners of a box",
            )
        return cls(name, first, second)

    @property
    def solids(self) -> tuple[ContactSolid, ContactSolid]:
        return self.first, self.second

    def on(self, first: str, second: str, name: str) -> ContactPair:
        """The same pair with other names."""
        return ContactPair(name, self.first.on(first), self.second.on(second))

    def approach(self, first: Place, second: Place) -> Approach:
        """Where the solids are closest; their frames are at these places."""
        radii = self.first.radius, self.second.radius
        return closest(self.first.core(first), self.second.core(second), radii)


def _box_axes(size: Any) -> tuple[Vector, ...]:
    x, y, z = (0.5 * float(a) for a in (size if hasattr(size, "__len__") else [size] * 3))
    return (x, 0.0, 0.0), (0.0, y, 0.0), (0.0, 0.0, z)


def _turned(rotation: Sequence[Sequence[float]], v: Vector) -> Vector:
    x, y, z = (dot(row, v) for row in rotation)
    return x, y, z
