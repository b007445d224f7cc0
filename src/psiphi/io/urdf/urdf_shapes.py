"""Visual and collision shapes of URDF links."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from psiphi._util.errors import ModelError
from psiphi._util.text import first_names, shown
from psiphi.io.urdf.mesh_paths import AllowedFolders, PathOutsideError
from psiphi.model.diagnostics import ReaderWarning
from psiphi.model.shapes import SIZES, Shape

if TYPE_CHECKING:
    from psiphi.io.urdf.xml_fields import Fields
    from psiphi.io.urdf.xml_reader import Element


def read_shape(
    element: Element, link: str, colors: dict[str, tuple[float, ...]], fields: Fields
) -> Shape | None:
    """The shape of a <visual> or <collision>; None if its geometry is of an unknown kind."""
    geometry = element.first("geometry")
    if geometry is None or not geometry.children:
        fields.fail(
            geometry or element,
            f"<{element.tag}> has no geometry",
            "add one, or remove the element",
        )
    known = [child for child in geometry.children if child.tag == "mesh" or child.tag in SIZES]
    if len(known) > 1:
        fields.fail(
            known[1],
            f"<geometry> has both <{known[0].tag}> and <{known[1].tag}>",
            "keep one of them",
        )
    placement, color = fields.origin(element), _color(element, colors, fields)
    for child in known:
        if child.tag == "mesh":
            scale = fields.numbers(child, "scale", 3, (1.0, 1.0, 1.0))
            return Shape(
                link,
                element.tag,
                "mesh",
                placement,
                scale,
                fields.text(child, "filename"),
                color,
                child.line,
            )
        size = tuple(
            x for name, count in SIZES[child.tag] for x in fields.numbers(child, name, count)
        )
        if min(size) < 0.0:
            fields.fail(
                child, f"the {child.tag} has a negative size {shown(size)}", "correct the size"
            )
        return Shape(link, element.tag, child.tag, placement, size, "", color, child.line)
    return None


def read_colors(root: Element, fields: Fields) -> dict[str, tuple[float, ...]]:
    """Colors of the materials of the robot, by name."""
    colors = {}
    for material in root.all("material"):
        fields.owner = material
        color = material.first("color")
        if color is not None:
            colors[fields.text(material, "name")] = fields.numbers(color, "rgba", 4)
    return colors


def _color(
    element: Element, colors: dict[str, tuple[float, ...]], fields: Fields
) -> tuple[float, ...] | None:
    """The color of a shape: its own or that of a material of the robot, else None."""
    material = element.first("material")
    color = material.first("color") if material else None
    return (
        fields.numbers(color, "rgba", 4)
        if color
        else colors.get(material.attributes.get("name", ""))
        if material
        else None
    )


def with_mesh_paths(
    shapes: list[Shape], folders: AllowedFolders, file: str, allow_outside: bool = False
) -> tuple[list[Shape], list[str]]:
    """The shapes with the paths of their meshes, and lines of a report: a warning about those
    outside the allowed folders, which have no path unless `allow_outside`, and a note about those
    that are not found. Viewers draw a box for both."""
    found: list[Shape] = []
    outside: dict[str, tuple[int | None, str]] = {}  # lines and reasons of file names
    missing: dict[str, int | None] = {}
    for shape in shapes:
        path = None
        if shape.filename:
            try:
                path = folders.resolve(shape.filename)
            except PathOutsideError as reason:
                path = reason.path if allow_outside else None
                if not allow_outside:
                    outside.setdefault(shape.filename, (shape.line, str(reason)))
            if shape.filename not in outside and not (path and os.path.isfile(path)):
                missing.setdefault(shape.filename, shape.line)
        found.append(replace(shape, path=path) if shape.filename else shape)
    report: list[str] = []
    if outside:
        line, reason = next(iter(outside.values()))
        text = (
            f"meshes outside the package are not read: {_names(outside)} ({reason}); move them "
            "inside, name their package with packages={...}, or load with allow_outside=True"
        )
        report.append(ReaderWarning(ModelError(text, file=file, line=line, element="shapes")))
    if missing:
        text = (
            f"meshes that are not found are drawn as boxes: {_names(missing)}; put them there, or "
            "name their package with packages={...}"
        )
        line = next(iter(missing.values()))
        report.append(str(ModelError(text, file=file, line=line, element="shapes")))
    return found, report


def _names(files: Iterable[str]) -> str:
    return first_names([shown(name) for name in files], 3)
