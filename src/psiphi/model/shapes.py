"""Visual and collision shapes of a URDF link: not needed for dynamics, checked and kept for viewers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from psiphi._util.validate import frozen
from psiphi.model.model import Pose
from psiphi.model.spatial.transforms import Place

if TYPE_CHECKING:
    pass

SIZES = {
    "box": (("size", 3),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "sphere": (("radius", 1),),
}


@dataclass(frozen=True)
class Shape:
    """A shape on a link: `size` is x y z of a box, radius (and length) of the round ones, the scale of a mesh.

    `filename` is as written; `path` is the file it means, once confined, or None where its package is not known.
    """

    link: str
    role: str  # "visual" or "collision"
    kind: str  # "box", "cylinder", "capsule", "sphere" or "mesh"
    place: Place
    size: tuple[float, ...]
    filename: str = ""
    color: tuple[float, ...] | None = None
    line: int | None = None
    path: str | None = None

    @property
    def pose(self) -> Pose:
        """The shape's frame in the link frame."""
        return Pose(frozen(self.place[0], (3, 3)), frozen(self.place[1]))
