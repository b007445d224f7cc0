"""Visual and collision shapes of a URDF link: not needed for dynamics, checked and kept for viewers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from psiphi.arguments import frozen
from psiphi.errors import ModelError
from psiphi.model.model import Pose
from psiphi.model.paths import Outside, Roots
from psiphi.model.places import Place
from psiphi.wording import shown

if TYPE_CHECKING:
    from psiphi.model.fields import Fields
    from psiphi.model.xml import Element

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


def read_shape(element: Element, link: str, colors: dict[str, tuple[float, ...]], fields: Fields) -> Shape | None:
    """The shape of a <visual> or <collision>; None when its geometry is of an unknown kind."""
    geometry = element.first("geometry")
    if geometry is None or not geometry.children:
        fields.fail(geometry or element, f"<{element.tag}> has no geometry", "add one, or remove the element")
    known = [child for child in geometry.children if child.tag == "mesh" or child.tag in SIZES]
    if len(known) > 1:
        fields.fail(known[1], f"<geometry> has both <{known[0].tag}> and <{known[1].tag}>", "keep one of them")
    place, color = fields.origin(element), _color(element, colors, fields)
    for child in known:
        if child.tag == "mesh":
            scale = fields.numbers(child, "scale", 3, (1.0, 1.0, 1.0))
            return Shape(link, element.tag, "mesh", place, scale, fields.text(child, "filename"), color, child.line)
        size = tuple(x for name, count in SIZES[child.tag] for x in fields.numbers(child, name, count))
        if min(size) < 0.0:
            fields.fail(child, f"the {child.tag} has a negative size {shown(size)}", "correct the size")
        return Shape(link, element.tag, child.tag, place, size, "", color, child.line)
    return None


def read_colors(root: Element, fields: Fields) -> dict[str, tuple[float, ...]]:
    """Colors of the robot's own materials, by name."""
    colors = {}
    for material in root.all("material"):
        fields.owner = material
        color = material.first("color")
        if color is not None:
            colors[fields.text(material, "name")] = fields.numbers(color, "rgba", 4)
    return colors


def _color(element: Element, colors: dict[str, tuple[float, ...]], fields: Fields) -> tuple[float, ...] | None:
    material = element.first("material")
    color = material.first("color") if material else None
    return fields.numbers(color, "rgba", 4) if color else colors.get(material.attributes.get("name", "")) if material else None


def confine(shapes: list[Shape], roots: Roots, file: str, allow_outside: bool = False) -> list[Shape]:
    """The shapes with the paths of their meshes; one that lies outside the roots is refused, or allowed."""
    return [replace(shape, path=_path(shape, roots, file, allow_outside)) if shape.filename else shape for shape in shapes]


def _path(shape: Shape, roots: Roots, file: str, allow_outside: bool) -> str | None:
    try:
        return roots.resolve(shape.filename)
    except Outside as reason:
        if allow_outside:
            return reason.path
        raise ModelError(
            f"the mesh {shown(shape.filename)} lies outside the package: {reason}",
            "move it inside, name its package with packages={...}, or load with allow_outside=True",
            file=file,
            line=shape.line,
            element=f"link {shown(shape.link)}",
        ) from None
