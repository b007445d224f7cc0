"""One contact point of a robot: the part of a shape that can touch a plane.

    sphere   centre o, radius r      lowest point  o - r n
    rim      centre o, axis a, radius r
             lowest point  o + r e,  e = ((n.a) a - n) / |(n.a) a - n|, turned about a by `angle`

n is the normal of the plane. A point of radius 0 is a corner.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

from psiphi.model.components import Frame, Pose
from psiphi.model.spatial.branch_free import choose, less
from psiphi.model.spatial.screws import add, cross, dot, square_root

Vector = tuple[float, float, float]
UPRIGHT = 1e-12  # |n x a|^2 below which every point of a rim is the lowest


@dataclass(frozen=True)
class ContactPoint:
    """A contact point on the frame `frame`; `center` and `axis` are in its axes."""

    name: str
    frame: str
    center: Vector
    radius: float = 0.0
    axis: Vector | None = None  # of a rim
    angle: float = 0.0
    friction: float | None = None  # of the robot's file

    def on(self, frame: str, name: str) -> ContactPoint:
        """The same point with other names."""
        return replace(self, frame=frame, name=name)

    def moved(self, frame: str, pose: Pose) -> ContactPoint:
        """The same point in the axes of `frame`, in which its own frame has this pose."""
        center = add(_turned(pose.rotation.tolist(), self.center), pose.translation.tolist())
        axis = None if self.axis is None else _vector(_turned(pose.rotation.tolist(), self.axis))
        return replace(self, frame=frame, center=_vector(center), axis=axis)

    def arm(self, rotation: Sequence[Sequence[Any]]) -> list[Any]:
        """The centre, from the origin of the frame, in world axes."""
        return _turned(rotation, self.center)

    def lever(self, rotation: Sequence[Sequence[Any]], normal: Sequence[Any]) -> list[Any]:
        """The lowest point along `normal`, from the origin of the frame, in world axes.

        `rotation` has the frame's axes as columns, in world axes. Entries are numbers, arrays or
        tape expressions.
        """
        center = self.arm(rotation)
        if not self.radius:
            return center
        if self.axis is None:
            return [x - self.radius * n for x, n in zip(center, normal, strict=True)]
        return add(center, [self.radius * x for x in self._rim_direction(rotation, normal)])

    def _rim_direction(self, rotation: Sequence[Sequence[Any]], normal: Sequence[Any]) -> list[Any]:
        """e, or a fixed radius of the disc if its axis is along the normal."""
        assert self.axis is not None
        a, across = _turned(rotation, self.axis), _turned(rotation, perpendicular(self.axis))
        along = dot(a, normal)
        down = [along * x - n for x, n in zip(a, normal, strict=True)]
        upright = less(dot(down, down), UPRIGHT)
        e = [choose(upright, x, y) for x, y in zip(across, down, strict=True)]
        size = 1.0 / square_root(dot(e, e))
        e = [size * x for x in e]
        if not self.angle:
            return e
        c, s = math.cos(self.angle), math.sin(self.angle)
        return [c * x + s * y for x, y in zip(e, cross(a, e), strict=True)]


class OnFrame(Protocol):
    """What is on a frame: a contact point, or a solid of a pair."""

    @property
    def frame(self) -> str: ...

    def moved(self, frame: str, pose: Pose) -> Self: ...


T = TypeVar("T", bound=OnFrame)


def on_shared_frames(parts: Iterable[T], frames: Mapping[str, Frame]) -> tuple[T, ...]:
    """The parts with one frame for each link: that of the first of its parts. Those on a link move
    together, whichever frames carry them."""
    shared: dict[int, Frame] = {}
    out = []
    for part in parts:
        own = frames[part.frame]
        first = shared.setdefault(own.body, own)
        is_first = first.name == own.name
        out.append(part if is_first else part.moved(first.name, first.pose.inv @ own.pose))
    return tuple(out)


def perpendicular(axis: Vector) -> Vector:
    """A unit vector perpendicular to a unit vector: its cross product with a coordinate axis."""
    k = min(range(3), key=lambda i: abs(axis[i]))
    x, y, z = cross([1.0 if i == k else 0.0 for i in range(3)], axis)
    size = math.hypot(x, y, z)
    return x / size, y / size, z / size


def _vector(x: Sequence[float]) -> Vector:
    a, b, c = x
    return a, b, c


def _turned(rotation: Sequence[Sequence[Any]], v: Sequence[float]) -> list[Any]:
    """rotation @ v."""
    return [dot(row, v) for row in rotation]
