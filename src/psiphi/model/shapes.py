"""Visual and collision shapes of a URDF link, for viewers. The dynamics do not need them."""

from __future__ import annotations

from dataclasses import dataclass

from psiphi._util.validate import frozen
from psiphi.model.model import Pose
from psiphi.model.spatial.transforms import Placement

SIZES = {  # kind: attributes of its size, with the count of numbers of each
    "box": (("size", 3),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "sphere": (("radius", 1),),
}


@dataclass(frozen=True)
class Surface:
    """How a shape touches, as MuJoCo says it: `friction` along the surface; `margin`, the distance
    (m) at which it touches; `condim`, 1 without friction, 3 with it, 4 and 6 with torsional and
    rolling friction, too."""

    friction: float
    margin: float = 0.0
    condim: int = 3


@dataclass(frozen=True)
class Shape:
    """A shape on a link.

    `size` is (x, y, z) of a box, the radius of a sphere, (radius, length) of a cylinder or capsule,
    the scale of a mesh. `filename` is the mesh as written in the file; `path` is the resolved file
    within the allowed folders, or None if its package is unknown. A mesh without a file has the
    vertices of its convex hull.
    """

    link: str
    role: str  # "visual" or "collision"
    kind: str  # "box", "cylinder", "capsule", "sphere" or "mesh"
    place: Placement
    size: tuple[float, ...]
    filename: str = ""
    color: tuple[float, ...] | None = None
    line: int | None = None
    path: str | None = None
    surface: Surface | None = None
    vertices: tuple[tuple[float, ...], ...] = ()

    @property
    def pose(self) -> Pose:
        """The shape's frame in the link frame."""
        return Pose(frozen(self.place[0], (3, 3)), frozen(self.place[1]))
