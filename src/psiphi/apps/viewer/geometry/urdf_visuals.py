"""The shapes of a URDF description as pieces on the bodies of a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import first_names, shown
from psiphi._util.validate import is_list
from psiphi.apps.viewer.geometry.mesh_files import is_readable_mesh, read_mesh
from psiphi.apps.viewer.geometry.solids import PALETTE, DrawnSolid, hex_color
from psiphi.apps.viewer.geometry.stick_figure import (
    flexible_bodies,
    stick_figure_solids,
    tree_numbers,
)
from psiphi.apps.viewer.geometry.triangles import Mesh
from psiphi.io.urdf.urdf import load_shapes
from psiphi.model.model import IDENTITY, WORLD, Frame, Model, Pose
from psiphi.model.shapes import Shape

MAX_TRIANGLES, REMEDY = (
    4_000_000,
    "this one and the next are left out: reduce them, or view without meshes",
)
SOLIDS = ("box", "cylinder", "capsule", "sphere")


def link_visuals(
    model: Model, shapes=None, meshes: bool = True
) -> tuple[list[DrawnSolid], set[int], list[str]]:
    """What to draw; which trees of the forest had no shapes and were drawn from their kinematics; notes on what is missing.

    `shapes` is a URDF file, its text or a list of `Shape`; without, the model's own.
    """
    given = getattr(model, "shapes", ()) if shapes is None else _read_shapes(shapes)
    out, notes = _solids_of_shapes(model, drawable_shapes(given, meshes), meshes)
    if meshes and (gone := missing_meshes(given)):
        notes.append(
            f"no mesh could be read from {first_names([shown(file) for file in gone], 1)}: simple shapes stand in"
        )
    tree, clad = tree_numbers(model), {piece.body for piece in out}
    bare = set(tree) - {tree[body] for body in clad if body != WORLD}
    wanted = {
        frame.body for shape in given if (frame := _link_frame(model, shape.link))
    }  # had a shape, but none could be drawn
    bent = flexible_bodies(model)
    rest = [
        piece
        for piece in stick_figure_solids(model)
        if tree[piece.body] in bare or piece.body in (wanted - clad) | bent
    ]
    return out + rest, bare, notes


def _read_shapes(shapes) -> Sequence[Shape]:
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
    """Per link: visual shapes that can be drawn, else collision shapes."""
    links: dict[str, list[Shape]] = {}
    there = _readable_files(shapes) if meshes else set()
    for shape in shapes:
        if shape.kind in SOLIDS or shape.path in there:
            links.setdefault(shape.link, []).append(shape)
    return [s for own in links.values() for s in [s for s in own if s.role == "visual"] or own]


def _readable_files(shapes: Sequence[Shape]) -> set[str]:
    """The mesh files that can be read, each looked for once."""
    return {path for path in {shape.path for shape in shapes} if path and is_readable_mesh(path)}


def missing_meshes(shapes: Sequence[Shape]) -> list[str]:
    """The mesh files of visual shapes that are not on this machine, or of a kind that is not read."""
    there = _readable_files(shapes)
    own = (s for s in shapes if s.kind == "mesh" and s.role == "visual" and s.path not in there)
    return list(dict.fromkeys(shape.filename for shape in own))


def _solids_of_shapes(
    model: Model, shapes: Sequence[Shape], meshes: bool
) -> tuple[list[DrawnSolid], list[str]]:
    out: list[DrawnSolid] = []
    notes: list[str] = []
    tree, order = (
        tree_numbers(model),
        {name: i for i, name in enumerate(dict.fromkeys(s.link for s in shapes))},
    )
    scaled: dict[
        tuple, list[tuple[Mesh, str | None]]
    ] = {}  # a file in one size is one mesh, however often it is drawn
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
                            REMEDY,
                            file=shape.path,
                        )
                    scaled[key] = []
                    parts = _cached_meshes(shape.path, os.stat(shape.path).st_mtime_ns)
                    scaled[key] = [(mesh.scaled(shape.size), own) for mesh, own in parts]
                    triangles += sum(len(mesh.faces) for mesh, _ in parts)
            except (ModelError, OSError) as error:
                notes.append(str(error))
            for mesh, own in scaled.get(key, ()):
                paint = color if shape.color or own is None else own
                out.append(DrawnSolid(frame.body, "mesh", shape.size, pose, paint, mesh))
    return out, notes


@lru_cache(maxsize=64)
def _cached_meshes(path: str, changed: int) -> list[tuple[Mesh, str | None]]:
    """The meshes of a file, read once until it changes."""
    return read_mesh(path)


def _link_frame(model: Model, link: str) -> Frame | None:
    """The frame of a link: of its own name, or the body's; the world's links stand at the world."""
    if link in model.frames:
        return model.frames[link]
    for k, body in enumerate(model.bodies):
        if body.name == link:
            return Frame(link, k, IDENTITY)
    return None


def alternate_shade(color: str, k: int) -> str:
    """Every other link a little lighter, so that neighbours can be told apart."""
    if k % 2 == 0:
        return color
    rgb = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{int(c + 0.35 * (255 - c)):02x}" for c in rgb)
