"""Triangle meshes: merging equal vertices, reducing the number of triangles, the triangle limit;
colours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

MAX_TRIANGLES = 1_000_000  # of a file; the largest of the 807 in example-robot-data has 351 394


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles: `faces` (n, 3) are indices of rows of `vertices` (m, 3)."""

    vertices: np.ndarray
    faces: np.ndarray

    def scaled(self, scale: ArrayLike) -> Mesh:
        """The mesh with each axis scaled; the faces of a mirrored mesh still point outward."""
        factors = np.asarray(scale, dtype=float)
        if (factors == 1.0).all():
            return self
        faces = self.faces[:, ::-1] if np.prod(factors) < 0 else self.faces
        return Mesh(self.vertices * factors, faces)


def check_triangle_count(triangles: int) -> int:
    """Return the number of triangles of a file; raise if it is above the limit."""
    if triangles > MAX_TRIANGLES:
        raise ValueError(f"it has {triangles} triangles or more, expected at most {MAX_TRIANGLES}")
    return triangles


def merge_vertices(corners: np.ndarray) -> Mesh:
    """The mesh of triangles with corners (3 n, 3). Equal corners become one vertex."""
    corners = np.ascontiguousarray(corners, dtype=float) + 0.0  # -0.0 becomes 0.0
    bits = corners.view(np.uint64).reshape(-1, 3)
    mixed = (bits * HASH_FACTORS) ^ ((bits * HASH_FACTORS) >> np.uint64(29))
    _, first, where = np.unique(mixed @ HASH_FACTORS, return_index=True, return_inverse=True)
    if not np.array_equal(corners[first][where], corners):  # hash collisions, or NaN
        _, first, where = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    return Mesh(corners[first], where.reshape(-1, 3))


HASH_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64
)


def simplified(mesh: Mesh, faces: int) -> Mesh:
    """The mesh with about `faces` triangles at most, by vertex clustering.

    All vertices in a cell of a grid become their mean (Rossignac and Borrel 1993).
    """
    if len(mesh.faces) <= faces:
        return mesh
    low = mesh.vertices.min(axis=0)
    span = float(np.ptp(mesh.vertices, axis=0).max()) or 1.0
    cells = 4.0 * np.sqrt(faces)
    while True:
        cell = np.floor((mesh.vertices - low) * (cells / span)).astype(int)
        _, where, count = np.unique(cell, axis=0, return_inverse=True, return_counts=True)
        where = where.ravel()
        small = where[mesh.faces]
        keep = (
            (small[:, 0] != small[:, 1])
            & (small[:, 1] != small[:, 2])
            & (small[:, 2] != small[:, 0])
        )
        small = np.unique(
            np.take_along_axis(small[keep], _least_vertex_first(small[keep]), axis=1), axis=0
        )
        if len(small) <= faces or cells < 2.0:
            means = [np.bincount(where, mesh.vertices[:, i]) / count for i in range(3)]
            return Mesh(np.stack(means, axis=1), small)
        cells *= max(0.5, min(0.93, np.sqrt(faces / len(small))))


def _least_vertex_first(faces: np.ndarray) -> np.ndarray:
    """(n, 3) column order with each face's least vertex first, so that equal triangles have equal
    rows."""
    first = faces.argmin(axis=1)
    return (first[:, None] + np.arange(3)) % 3


def hex_color(rgb: Iterable[float]) -> str:
    """Red, green and blue in 0..1 as #rrggbb.

    >>> hex_color((1.0, 0.5, 0.0))
    '#ff8000'
    """
    return "#" + "".join(f"{round(255 * min(max(float(x), 0.0), 1.0)):02x}" for x in rgb)
