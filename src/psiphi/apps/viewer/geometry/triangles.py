"""Triangles: equal corners joined, made small enough for a page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MAX_TRIANGLES = (
    1_000_000  # that a file may become; the largest of example-robot-data's 807 has 351 394
)


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles: `faces` (n, 3) are rows of `vertices` (m, 3)."""

    vertices: np.ndarray
    faces: np.ndarray

    def scaled(self, scale) -> Mesh:
        """Each coordinate times its scale; a mirrored mesh keeps its faces outward."""
        scale = np.asarray(scale, dtype=float)
        if (scale == 1.0).all():
            return self
        return Mesh(
            self.vertices * scale, self.faces[:, ::-1] if np.prod(scale) < 0 else self.faces
        )


def check_triangle_count(triangles: int) -> int:
    """The number, unless a file would become more than it may."""
    if triangles > MAX_TRIANGLES:
        raise ValueError(f"it would become {triangles} triangles, more than {MAX_TRIANGLES}")
    return triangles


def merge_vertices(corners: np.ndarray) -> Mesh:
    """Corners (3n, 3) of loose triangles; equal corners become one vertex."""
    corners = np.ascontiguousarray(corners, dtype=float) + 0.0  # one zero
    bits = corners.view(np.uint64).reshape(-1, 3)
    mixed = (bits * HASH_FACTORS) ^ ((bits * HASH_FACTORS) >> np.uint64(29))
    _, first, where = np.unique(mixed @ HASH_FACTORS, return_index=True, return_inverse=True)
    if not np.array_equal(
        corners[first][where], corners
    ):  # two corners of one number, or no numbers at all
        _, first, where = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    return Mesh(corners[first], where.reshape(-1, 3))


HASH_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64
)


def simplified(mesh: Mesh, faces: int) -> Mesh:
    """At most about `faces` triangles: vertices in one cell of a grid become their mean (Rossignac and Borrel 1993)."""
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
    """Column order that puts each face's least vertex first: the same triangle is the same row."""
    first = faces.argmin(axis=1)
    return (first[:, None] + np.arange(3)) % 3
