"""Reads STL (binary and text), OBJ and COLLADA files as triangles, with NumPy only.

Mesh files come from others, so reading has hard limits: 128 MiB of a binary file, 64 MiB of a text
file, a million triangles and as many vertices; for COLLADA also half a million elements, 512 levels
and 10 000 nodes. Reading takes less than 1 GB of memory.

psiphi does not use the package `trimesh` because of the limits. trimesh depends on NumPy only, but
it has no such limits, and it needs the package pycollada to read COLLADA. A COLLADA file
can place one geometry many times: an early version of this reader took 1.1 GB for a file of 91 kB,
and now it rejects such a file with 25 MB. trimesh 5.2 reads that file with 350 MB, but it fails
with 6 GB on a file of 24 kB whose nodes contain nodes ("nodes of nodes" in
`tests/hostile/bombs.py`, with the attributes that pycollada requires). Also, `pp.viewer.html`
works without the extra `viewer`, with which trimesh is installed.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator
from itertools import islice, pairwise

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.text import shown
from psiphi.io.meshes.collada import read_dae
from psiphi.io.meshes.triangles import (
    MAX_TRIANGLES,
    Mesh,
    check_triangle_count,
    merge_vertices,
)

MAX_BYTES, MAX_TEXT = 128 * 2**20, 64 * 2**20
MAX_LINES = 8_000_000
BLOCK_VERTICES = 100_000  # of a text file that are parsed at a time
VERTEX = re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)")
READ_ERRORS = (
    ValueError,
    LookupError,
    OverflowError,
    TypeError,
    AttributeError,
    StopIteration,
    MemoryError,
    RecursionError,
)


def read_mesh(path: str) -> list[tuple[Mesh, str | None]]:
    """The meshes of a .stl, .obj or .dae file: one per colour; None for no colour."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in READERS:
        known = ", ".join(READERS)
        raise ModelError(
            f"the mesh is a {shown(ending)} file, expected {known}",
            "convert it, or view without meshes",
            file=path,
        )
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > (most := MAX_BYTES if _is_binary(ending, data) else MAX_TEXT):
            raise ModelError(
                f"the mesh has more than {most >> 20} MiB",
                "reduce it, or view without meshes",
                file=path,
            )
        with np.errstate(all="ignore"):
            parts = READERS[ending](data)
    except READ_ERRORS as error:
        if isinstance(error, ModelError):
            raise
        cause = str(error) or type(error).__name__
        raise ModelError(
            f"the mesh cannot be read: {cause}",
            "convert it again, or view without meshes",
            file=path,
        ) from error
    if not parts or not all(_is_valid(mesh) for mesh, _ in parts):
        raise ModelError(
            "the mesh has no triangles, or invalid ones",
            "convert it again, or view without meshes",
            file=path,
        )
    return parts


def _is_binary(ending: str, data: bytes) -> bool:
    return ending == ".stl" and len(data) == 84 + 50 * int.from_bytes(data[80:84], "little")


def _is_valid(mesh: Mesh) -> bool:
    """Whether there are triangles, finite vertices, and indices in range."""
    faces = mesh.faces
    return bool(
        len(faces)
        and np.isfinite(mesh.vertices).all()
        and faces.min() >= 0
        and faces.max() < len(mesh.vertices)
    )


def _read_stl(data: bytes) -> Mesh:
    if _is_binary(".stl", data):
        count = check_triangle_count(int.from_bytes(data[80:84], "little"))
        rows = np.frombuffer(
            data, dtype=np.dtype([("floats", "<f4", 12), ("spare", "<u2")]), offset=84, count=count
        )
        return merge_vertices(rows["floats"][:, 3:].reshape(-1, 3))
    found, blocks = VERTEX.finditer(data), []
    while rows := [match.groups() for match in islice(found, BLOCK_VERTICES)]:
        blocks.append(np.array(rows).astype(float))
        check_triangle_count(sum(map(len, blocks)) // 3)
    return merge_vertices(np.concatenate(blocks) if blocks else np.empty((0, 3)))


def _read_obj(data: bytes) -> Mesh:
    vertices, faces = array("d"), array("q")
    for number, line in enumerate(_lines(data)):
        if line[:2] in (b"v ", b"v\t"):
            vertices.extend([float(x) for x in line.split(None, 4)[1:4]])
            if len(vertices) > 3 * MAX_TRIANGLES:
                raise ValueError(f"it has more than {MAX_TRIANGLES} vertices")
        elif line[:2] in (b"f ", b"f\t"):
            corners = line.split()[1:]
            check_triangle_count(len(faces) // 3 + max(0, len(corners) - 2))
            faces.extend(
                _fan_triangles([_vertex_index(word, len(vertices) // 3) for word in corners])
            )
        if number > MAX_LINES:
            raise ValueError(f"it has more than {MAX_LINES} lines")
    return Mesh(np.array(vertices).reshape(-1, 3), np.array(faces).reshape(-1, 3))


def _lines(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield data[start:end].strip()
        start = end + 1


def _vertex_index(word: bytes, count: int) -> int:
    """The vertex index of a corner "3/1/2": it counts from 1, or from the end if negative."""
    i = int(word.split(b"/", 1)[0])
    return i - 1 if i > 0 else count + i


def _fan_triangles(corner: list[int]) -> list[int]:
    """A polygon as a fan of triangles."""
    return [i for b, c in pairwise(corner[1:]) for i in (corner[0], b, c)]


READERS = {
    ".stl": lambda data: [(_read_stl(data), None)],
    ".obj": lambda data: [(_read_obj(data), None)],
    ".dae": read_dae,
}


def is_readable_mesh(path: str) -> bool:
    """Whether the file exists and has a format that can be read."""
    return os.path.splitext(path)[1].lower() in READERS and os.path.isfile(path)
