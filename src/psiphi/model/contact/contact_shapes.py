"""`pp.Sphere`, `pp.Box`, ...: shapes that can touch the ground.

A shape stands at `pose` in the frame it is given to: a `pp.Pose`, (x, y, z), a 4x4 matrix, or
[(x, y, z), (roll, pitch, yaw)]. Against a plane it is a few contact points (`contact_points.py`):

    Point      itself               Box        its 8 corners
    Sphere     itself               Cylinder   3 points on the rim of each end: the lowest one, and
    Capsule    2 spheres                       those 120 degrees from it
    Points     each of them             Hull       some vertices
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import shown
from psiphi._util.validate import read_array, whole_number
from psiphi.model.builder.pose_values import read_pose
from psiphi.model.contact.contact_points import ContactPoint, Vector
from psiphi.model.contact.convex_hull import SupportPoints, support_points
from psiphi.model.model import Pose
from psiphi.model.spatial.screws import add
from psiphi.model.spatial.small_matrices import apply

RIM_ANGLES = (0.0, 2.0 * math.pi / 3.0, -2.0 * math.pi / 3.0)
Placed = tuple[Vector, float, Vector | None, float]  # centre, radius, axis, angle


class ContactShape(ABC):
    """A shape that can touch the ground."""

    pose: Pose | Numbers | None
    sizes: ClassVar[tuple[str, ...]] = ()  # the fields that are positive lengths

    def contact_points(self, name: str, frame: str) -> tuple[ContactPoint, ...]:
        """The contact points of the shape on a frame; several are numbered, "foot.0", "foot.1".

        >>> [point.name for point in Capsule(0.1, 0.4).contact_points("arm", "link")]
        ['arm.0', 'arm.1']
        """
        self.check(name)
        pose = read_pose(f"the pose of {name}", self.pose)
        rotation, translation = pose.rotation.tolist(), pose.translation.tolist()

        def placed(center: Vector, radius: float, axis: Vector | None, angle: float) -> Placed:
            x, y, z = add(apply(rotation, list(center)), translation)
            turned = None if axis is None else _vector(apply(rotation, list(axis)))
            return (x, y, z), radius, turned, angle

        points = [placed(*point) for point in self._points()]
        names = [name] if len(points) == 1 else [f"{name}.{i}" for i in range(len(points))]
        return tuple(
            ContactPoint(each, frame, *point) for each, point in zip(names, points, strict=True)
        )

    @abstractmethod
    def _points(self) -> Iterable[Placed]:
        """The contact points in the axes of the shape."""

    def check(self, name: str) -> None:
        """(Internal use only) Raise an error unless the sizes are lengths; `name` is that of the
        frame."""
        for size in self.sizes:
            value = getattr(self, size)
            array, fault = read_array(value, None)
            shapes = ((), (3,)) if size == "size" else ((),)
            if fault or array.shape not in shapes or not ((array > 0.0) & (array < 1e50)).all():
                raise ModelError(
                    f"{name}: the {size} of a {type(self).__name__.lower()} is {shown(value)}",
                    "give a finite length above 0, in metres",
                )


@dataclass(frozen=True)
class Point(ContactShape):
    """A point: the origin of its pose.

    >>> Point((0.1, 0, 0)).contact_points("toe", "foot")[0].center
    (0.1, 0.0, 0.0)
    """

    pose: Pose | Numbers | None = None

    def _points(self) -> Iterable[Placed]:
        yield (0.0, 0.0, 0.0), 0.0, None, 0.0


@dataclass(frozen=True)
class Sphere(ContactShape):
    """A sphere about the origin of its pose.

    >>> Sphere(0.03).contact_points("foot", "foot")[0].radius
    0.03
    """

    radius: float
    pose: Pose | Numbers | None = None
    sizes: ClassVar[tuple[str, ...]] = ("radius",)

    def _points(self) -> Iterable[Placed]:
        yield (0.0, 0.0, 0.0), float(self.radius), None, 0.0


@dataclass(frozen=True)
class Capsule(ContactShape):
    """A cylinder along z with a hemisphere at each end; `length` is that of the cylinder.

    >>> [point.center for point in Capsule(0.1, 0.4).contact_points("arm", "arm")]
    [(0.0, 0.0, -0.2), (0.0, 0.0, 0.2)]
    """

    radius: float
    length: float
    pose: Pose | Numbers | None = None
    sizes: ClassVar[tuple[str, ...]] = ("radius", "length")

    def _points(self) -> Iterable[Placed]:
        half = 0.5 * float(self.length)
        for z in (-half, half):
            yield (0.0, 0.0, z), float(self.radius), None, 0.0


@dataclass(frozen=True)
class Box(ContactShape):
    """A box with edges `size` (x, y, z), or a cube: its corners can touch the ground.

    >>> len(Box((0.2, 0.1, 0.05)).contact_points("sole", "foot"))
    8
    """

    size: Numbers
    pose: Pose | Numbers | None = None
    sizes: ClassVar[tuple[str, ...]] = ("size",)

    def _points(self) -> Iterable[Placed]:
        x, y, z = (0.5 * np.broadcast_to(np.asarray(self.size, dtype=float), (3,))).tolist()
        for a, b, c in product((-1.0, 1.0), repeat=3):
            yield (a * x, b * y, c * z), 0.0, None, 0.0


@dataclass(frozen=True)
class Cylinder(ContactShape):
    """A cylinder along z: points of its rims can touch the ground.

    >>> len(Cylinder(0.1, 0.3).contact_points("wheel", "wheel"))
    6
    """

    radius: float
    length: float
    pose: Pose | Numbers | None = None
    sizes: ClassVar[tuple[str, ...]] = ("radius", "length")

    def _points(self) -> Iterable[Placed]:
        half = 0.5 * float(self.length)
        for z, angle in product((-half, half), RIM_ANGLES):
            yield (0.0, 0.0, z), float(self.radius), (0.0, 0.0, 1.0), angle


@dataclass(frozen=True)
class Points(ContactShape):
    """Several points (n, 3), in the axes of the pose.

    >>> [point.name for point in Points([(0.1, 0, 0), (-0.1, 0, 0)]).contact_points("sole", "foot")]
    ['sole.0', 'sole.1']
    """

    points: Numbers
    pose: Pose | Numbers | None = None

    def _points(self) -> Iterable[Placed]:
        for point in np.asarray(self.points, dtype=float):
            yield _vector(point.tolist()), 0.0, None, 0.0

    def check(self, name: str) -> None:
        """(Internal use only) Raise an error unless the points are an array (n, 3)."""
        array, fault = read_array(self.points, None)
        is_list = not fault and array.ndim == 2 and array.shape[-1] == 3 and len(array)
        if not is_list or not np.isfinite(array.astype(float)).all():
            raise ModelError(
                f"{name}: points is {shown(self.points)}", "give an array (n, 3) of finite numbers"
            )


@dataclass(frozen=True)
class Hull(ContactShape):
    """The convex hull of vertices (n, 3), of a mesh for instance: at most `points` of them touch.

    They are chosen so that their own hull differs from that of all vertices as little as possible;
    `error` (m) is the largest distance of a vertex from it.

    >>> corners = [(x, y, z) for x in (-0.1, 0.1) for y in (-0.2, 0.2) for z in (0.0, 0.3)]
    >>> hull = Hull([*corners, (0.0, 0.0, 0.1)])
    >>> len(hull.contact_points("trunk", "trunk")), hull.error
    (8, 0.0)
    """

    vertices: Numbers
    points: int = 8
    pose: Pose | Numbers | None = None

    def at(self, pose: Pose) -> Hull:
        """(Internal use only) The same hull at another pose."""
        moved = Hull(self.vertices, self.points, pose)
        vars(moved).update(_found=self._support("the hull"))
        return moved

    @property
    def error(self) -> float:
        """The largest distance (m) of a vertex from the hull of the points."""
        return self._support("the hull").error

    def _points(self) -> Iterable[Placed]:
        for point in self._support("the hull").points:
            yield _vector(point.tolist()), 0.0, None, 0.0

    def _support(self, name: str) -> SupportPoints:
        known: SupportPoints | None = vars(self).get("_found")
        if known is None:
            known = support_points(np.asarray(self.vertices, dtype=float), self.points)
            if known is None:
                raise ModelError(
                    f"{name}: the vertices of a hull are in one plane",
                    "give pp.Points, or vertices of a body that is not flat",
                )
            vars(self).update(_found=known)
        return known

    def check(self, name: str) -> None:
        """(Internal use only) Raise an error unless the vertices span a body."""
        array, fault = read_array(self.vertices, None)
        is_list = not fault and array.ndim == 2 and array.shape[-1] == 3 and len(array) > 3
        if not is_list or not (np.abs(array.astype(float)) < 1e50).all():
            raise ModelError(
                f"{name}: vertices is {shown(self.vertices)}",
                "give an array (n, 3) of finite numbers, 4 rows at least",
            )
        if whole_number(f"{name}: points", self.points) < 4:
            raise ModelError(f"{name}: points is {self.points}", "give at least 4")
        self._support(name)


SOLIDS: dict[str, Callable[..., ContactShape]] = {  # the kinds of `model/shapes.py`
    "box": lambda *size, pose: Box(size, pose),
    "capsule": Capsule,
    "cylinder": Cylinder,
    "sphere": Sphere,
}


def solid(kind: str, size: Iterable[float], pose: Pose | None = None) -> ContactShape:
    """The contact shape of a solid: a "sphere" of size (radius,), a "box" of size (x, y, z), a
    "capsule" or a "cylinder" of size (radius, length)."""
    return SOLIDS[kind](*size, pose=pose)


def _vector(values: list[float]) -> Vector:
    x, y, z = values
    return float(x), float(y), float(z)
