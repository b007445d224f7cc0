"""Mesh files into triangles: STL (both kinds), OBJ and COLLADA, read with NumPy alone."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np

from psiphi.errors import ModelError
from psiphi.viewer.collada import read_dae
from psiphi.viewer.meshes import Mesh, joined
from psiphi.wording import shown

MAX_BYTES = 256 * 2**20


def read_mesh(path: str) -> list[tuple[Mesh, str | None]]:
    """The triangles of a file, by its ending (.stl, .obj or .dae): a mesh for each colour, None where it has none."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in READERS:
        known = ", ".join(READERS)
        raise ModelError(
            f"a mesh of the kind {shown(ending)}, expected {known}", "convert it, or view without meshes", file=path
        )
    if os.path.getsize(path) > MAX_BYTES:
        raise ModelError(f"the mesh has more than {MAX_BYTES >> 20} MiB", "reduce it, or view without meshes", file=path)
    try:
        parts = READERS[ending](path)
    except (ValueError, IndexError, KeyError) as error:
        raise ModelError(f"the mesh cannot be read: {error}", "convert it anew, or view without meshes", file=path) from error
    if not parts or not all(_whole(mesh) for mesh, _ in parts):
        raise ModelError("the mesh has no triangles, or broken ones", "convert it anew, or view without meshes", file=path)
    return parts


def _whole(mesh: Mesh) -> bool:
    faces = mesh.faces
    return bool(len(faces) and np.isfinite(mesh.vertices).all() and faces.min() >= 0 and faces.max() < len(mesh.vertices))


def _stl(path: str) -> Mesh:
    with open(path, "rb") as file:
        data = file.read()
    count = int.from_bytes(data[80:84], "little")
    if len(data) == 84 + 50 * count:
        rows = np.frombuffer(data, dtype=np.dtype([("floats", "<f4", 12), ("spare", "<u2")]), offset=84, count=count)
        corners = rows["floats"][:, 3:].reshape(-1, 3)
    else:
        words = data.decode("ascii", errors="replace").split()
        corners = np.array([words[i + 1 : i + 4] for i, word in enumerate(words) if word == "vertex"], dtype=float)
    return joined(corners.astype(float))


def _obj(path: str) -> Mesh:
    vertices: list[list[float]] = []
    faces: list[tuple[int, int, int]] = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            word, *rest = line.split() or [""]
            if word == "v":
                vertices.append([float(x) for x in rest[:3]])
            elif word == "f":
                corner = [int(x.split("/")[0]) for x in rest]
                corner = [i - 1 if i > 0 else len(vertices) + i for i in corner]
                faces += [(corner[0], b, c) for b, c in pairwise(corner[1:])]
    return Mesh(np.array(vertices, dtype=float).reshape(-1, 3), np.array(faces, dtype=int).reshape(-1, 3))


READERS = {".stl": lambda path: [(_stl(path), None)], ".obj": lambda path: [(_obj(path), None)], ".dae": read_dae}


def readable(path: str) -> bool:
    """Whether there is such a file, of a kind that can be read."""
    return os.path.splitext(path)[1].lower() in READERS and os.path.isfile(path)
