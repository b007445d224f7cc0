"""The convex hulls of mesh files, as shapes that can touch."""

from __future__ import annotations

import os
from functools import lru_cache

import numpy as np

from psiphi._util.errors import ModelError
from psiphi.io.meshes.mesh_files import is_readable_mesh, read_mesh
from psiphi.model.contact.contact_shapes import Hull
from psiphi.model.shapes import Shape


def mesh_hull(shape: Shape, points: int) -> Hull | None:
    """The hull of a mesh, with at most `points` points; None if its file cannot be read, or if the
    mesh is flat."""
    if shape.vertices:
        return _checked(Hull(shape.vertices, points, shape.pose), shape.link)
    if not shape.path or not is_readable_mesh(shape.path):
        return None
    try:
        hull = _hull(shape.path, os.stat(shape.path).st_mtime_ns, tuple(shape.size), points)
    except (ModelError, OSError):
        return None
    checked = _checked(hull, shape.link)
    return checked and checked.at(shape.pose)


def _checked(hull: Hull, link: str) -> Hull | None:
    try:
        hull.check(link)
    except ModelError:
        return None
    return hull


@lru_cache(maxsize=64)
def _hull(path: str, modified: int, scale: tuple[float, ...], points: int) -> Hull:
    """The points of the hull of a file, in the axes of the mesh."""
    cloud = np.concatenate([mesh.scaled(scale).vertices for mesh, _ in read_mesh(path)])
    return Hull(cloud, points)
