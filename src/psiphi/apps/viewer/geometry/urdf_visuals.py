"""Solids on the bodies of a model, from the shapes of a URDF file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import first_names, shown
from psiphi._util.validate import is_list
from psiphi.apps.viewer.geometry.solids import PALETTE, DrawnSolid
from psiphi.apps.viewer.geometry.stick_figure import (
    flexible_bodies,
    stick_figure_solids,
    tree_numbers,
)
from psiphi.io.meshes.mesh_files import is_readable_mesh, read_mesh
from psiphi.io.meshes.triangles import Mesh, hex_color
from psiphi.io.urdf.urdf import load_shapes
from psiphi.model.model import IDENTITY, WORLD, Frame, Model, Pose
from psiphi.model.shapes import Shape

MAX_TRIANGLES = 4_000_000  # of all mesh files together
SOLIDS = ("box", "cylinder", "capsule", "sphere")
ShapeSource = str | os.PathLike[str] | Sequence[Shape]


def link_visuals(
    model: Model, shapes: ShapeSource | None = None, meshes: bool = True
) -> tuple[list[DrawnSolid], set[int], list[str]]:
    """Solids to draw; the trees without shapes, which are drawn as stick figures; notes.

    `shapes` is a URDF file, its text or a list of `Shape`; the default is the model's shapes. The
    notes say what could not be drawn.
    """
    listed = getattr(model, "shapes", ()) if shapes is None else _read_shapes(shapes)
    listed = [shape for shape in listed if not shape.vertices]  # hulls are not drawn
    out, notes = _solids_of_shapes(model, drawable_shapes(listed, meshes), meshes)
    if meshes and (missing := missing_meshes(listed)):
        files = first_names([shown(file) for file in missing], 1)
        notes.append(f"no mesh could be read from {files}: simple shapes are drawn instead")
    tree, drawn = tree_numbers(model), {piece.body for piece in out}
    bare_trees = set(tree) - {tree[body] for body in drawn if body != WORLD}
    with_shape = {frame.body for shape in listed if (frame := _link_frame(model, shape.link))}
    # stick figures also for bodies none of whose shapes could be drawn, and for flexible links
    bodies = (with_shape - drawn) | flexible_bodies(model)
    rest = [
        piece
        for piece in stick_figure_solids(model)
        if tree[piece.body] in bare_trees or piece.body in bodies
    ]
    return out + rest, bare_trees, notes


def _read_shapes(shapes: ShapeSource) -> Sequence[Shape]:
    if isinstance(shapes, str | os.PathLike):
        return load_shapes(shapes)
    each: list = list(shapes) if is_list(shapes) else [None]
    if not all(isinstance(shape, Shape) for shape in each):
        raise StateError(
            f"shapes is {shown(shapes)}, expected a URDF file or shapes",
            "leave it out to draw the kinematics",
        )
    return each


def drawable_shapes(shapes: Sequence[Shape], meshes: bool = True) -> list[Shape]:
    """For each link, its visual shapes that can be drawn, else its collision shapes."""
    links: dict[str, list[Shape]] = {}
    readable = _readable_files(shapes) if meshes else set()
    for shape in shapes:
        if shape.kind in SOLIDS or shape.path in readable:
            links.setdefault(shape.link, []).append(shape)
    return [s for row in links.values() for s in [s for s in row if s.role == "visual"] or row]


def _readable_files(shapes: Sequence[Shape]) -> set[str]:
    """The paths of mesh files that can be read; each is tested once."""
    return {path for path in {shape.path for shape in shapes} if path and is_readable_mesh(path)}


def missing_meshes(shapes: Sequence[Shape]) -> list[str]:
    """Mesh files of visual shapes that do not exist, or whose format cannot be read."""
    readable = _readable_files(shapes)
    visuals = (shape for shape in shapes if shape.kind == "mesh" and shape.role == "visual")
    return list(dict.fromkeys(shape.filename for shape in visuals if shape.path not in readable))


def _solids_of_shapes(
    model: Model, shapes: Sequence[Shape], meshes: bool
) -> tuple[list[DrawnSolid], list[str]]:
    out: list[DrawnSolid] = []
    notes: list[str] = []
    tree, order = (
        tree_numbers(model),
        {name: i for i, name in enumerate(dict.fromkeys(s.link for s in shapes))},
    )
    # (path, scale) -> meshes: shapes with the same file and scale share one mesh
    scaled: dict[tuple, list[tuple[Mesh, str | None]]] = {}
    triangles = 0
    for shape in shapes:
        frame = _link_frame(model, shape.link)
        if frame is None:
            notes.append(f"link {shown(shape.link)} is not on {model.name}; its shape is left out")
            continue
        paint = PALETTE[tree[frame.body] % len(PALETTE)] if frame.body != WORLD else "#5b6270"
        color = (
            hex_color(shape.color[:3]) if shape.color else alternate_shade(paint, order[shape.link])
        )
        pose = frame.pose @ Pose(
            np.asarray(shape.pose.rotation), np.asarray(shape.pose.translation)
        )
        if shape.kind in SOLIDS:
            out.append(DrawnSolid(frame.body, shape.kind, shape.size, pose, color))
        elif meshes and shape.path:
            key = shape.path, tuple(shape.size)
            try:
                if key not in scaled:
                    if triangles > MAX_TRIANGLES:
                        raise ModelError(
                            f"the meshes have more than {MAX_TRIANGLES} triangles together",
                            "reduce them, or view without meshes; the other files are not read",
                            file=shape.path,
                        )
                    scaled[key] = []
                    parts = _cached_meshes(shape.path, os.stat(shape.path).st_mtime_ns)
                    scaled[key] = [(mesh.scaled(shape.size), hue) for mesh, hue in parts]
                    triangles += sum(len(mesh.faces) for mesh, _ in parts)
            except (ModelError, OSError) as error:
                notes.append(str(error))
            for mesh, hue in scaled.get(key, ()):
                paint = color if shape.color or hue is None else hue
                out.append(DrawnSolid(frame.body, "mesh", shape.size, pose, paint, mesh))
    return out, notes


@lru_cache(maxsize=64)
def _cached_meshes(path: str, modified: int) -> list[tuple[Mesh, str | None]]:
    """The meshes of a file, read again only if its modification time changes."""
    return read_mesh(path)


def _link_frame(model: Model, link: str) -> Frame | None:
    """The frame with the name of a link, or the frame of the body with that name."""
    if link in model.frames:
        return model.frames[link]
    for k, body in enumerate(model.bodies):
        if body.name == link:
            return Frame(link, k, IDENTITY)
    return None


def alternate_shade(color: str, k: int) -> str:
    """A lighter colour for every other link, to tell neighbours apart."""
    if k % 2 == 0:
        return color
    rgb = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{int(c + 0.35 * (255 - c)):02x}" for c in rgb)
