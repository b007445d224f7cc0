"""A few points of a cloud whose convex hull contains nearly all of it.

The hull begins as a tetrahedron and grows by the point that is farthest outside of it, until there
are enough points, or none is outside. The error is the largest distance of a point of the cloud
from the hull: by so much a plane, in any direction, comes closer to the cloud than to the points.
Distances below 2e-7 of the size count as 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FLAT = 1e-6  # of the size: a thinner cloud is flat
OUTSIDE = 1e-7  # of the size: a point that is farther from a face is outside
SHIFT = 1e-8  # of the size: points are moved by so much, so that no four are in a plane


class SupportPoints(NamedTuple):
    """Points (n, 3) of a cloud, and the error of their hull."""

    points: np.ndarray
    error: float


def support_points(cloud: np.ndarray, most: int) -> SupportPoints | None:
    """At most `most` points, 4 at least, of a cloud (m, 3); None if it is flat.

    >>> corners = np.array([(x, y, z) for x in (0.0, 1) for y in (0.0, 2) for z in (0.0, 3)])
    >>> found = support_points(np.vstack([corners, [[0.5, 1, 1]]]), 8)
    >>> found.points.shape, found.error
    ((8, 3), 0.0)
    """
    cloud = np.unique(np.asarray(cloud, dtype=float), axis=0)
    size = float(np.ptp(cloud, axis=0).max(initial=0.0))
    middle = 0.5 * (cloud.min(axis=0, initial=np.inf) + cloud.max(axis=0, initial=-np.inf))
    reach = np.linalg.norm(cloud - middle, axis=1)
    first = _tetrahedron(cloud, reach, FLAT * size)
    if first is None:
        return None
    shift = np.random.default_rng(0).uniform(-1.0, 1.0, cloud.shape)
    moved = cloud + SHIFT * size * shift
    chosen, faces = first, _outward(moved, first)
    tolerance = OUTSIDE * size
    outside = np.setdiff1d(np.arange(len(cloud)), chosen)  # what is inside once stays there
    while True:
        normals, offsets = _planes(moved, faces)
        heights = moved[outside] @ normals.T - offsets
        farthest = heights.max(axis=1, initial=0.0)
        kept = farthest > tolerance
        outside, heights, farthest = outside[kept], heights[kept], farthest[kept]
        if not len(outside) or len(chosen) >= most:
            return SupportPoints(cloud[chosen], _largest_distance(cloud[outside], cloud[faces]))
        k = _farthest(farthest, reach[outside], tolerance)
        chosen.append(int(outside[k]))
        faces = _with_point(faces, heights[k] > 0.0, chosen[-1])
        outside = np.delete(outside, k)


def _farthest(heights: np.ndarray, reach: np.ndarray, tolerance: float) -> int:
    """The highest point; of equals a corner, the one with the largest reach."""
    return int(np.where(heights > heights.max() - 10.0 * tolerance, reach, -1.0).argmax())


def _tetrahedron(cloud: np.ndarray, reach: np.ndarray, flat: float) -> list[int] | None:
    """Four points far from each other; None if all are in a plane."""
    if len(cloud) < 4:
        return None
    a = int(reach.argmax())
    away = cloud - cloud[a]
    b = int(np.linalg.norm(away, axis=1).argmax())
    length = np.linalg.norm(away[b])
    if length <= flat:
        return None
    aside = np.linalg.norm(np.cross(away, away[b]), axis=1) / length
    c = _farthest(aside, reach, flat)
    if aside[c] <= flat:
        return None
    normal = np.cross(away[b], away[c])
    above = np.abs(away @ normal) / np.linalg.norm(normal)
    d = _farthest(above, reach, flat)
    return None if above[d] <= flat else [a, b, c, d]


def _outward(cloud: np.ndarray, corners: list[int]) -> np.ndarray:
    """The faces (4, 3) of a tetrahedron, seen counterclockwise from outside."""
    a, b, c, d = corners
    faces = []
    for face, other in (((a, b, c), d), ((a, b, d), c), ((a, c, d), b), ((b, c, d), a)):
        p, q, r = cloud[list(face)]
        inside = np.dot(np.cross(q - p, r - p), cloud[other] - p) > 0.0
        faces.append(face[::-1] if inside else face)
    return np.array(faces)


def _planes(cloud: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The unit normals (n, 3) of faces, outward, and their distances from the origin."""
    p, q, r = (cloud[faces[:, k]] for k in range(3))
    normals = np.cross(q - p, r - p)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return normals, np.einsum("ij,ij->i", normals, p)


def _with_point(faces: np.ndarray, visible: np.ndarray, i: int) -> np.ndarray:
    """The faces after those that point i sees are replaced by faces to it."""
    seen = faces[visible]
    edges = {(face[k - 1], face[k]) for face in seen.tolist() for k in range(3)}
    horizon = [(a, b) for a, b in sorted(edges) if (b, a) not in edges]
    return np.concatenate([faces[~visible], np.array([(a, b, i) for a, b in horizon])])


def _largest_distance(points: np.ndarray, triangles: np.ndarray) -> float:
    """The largest distance of points (m, 3) from the nearest of the triangles (n, 3, 3)."""
    least = np.full(len(points), np.inf)
    for a, b, c in triangles:
        least = np.minimum(least, _distance(points, a, b, c))
    return float(least.max(initial=0.0))


def _distance(points: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The distances of points (m, 3) from a triangle."""
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal)
    inside = np.ones(len(points), dtype=bool)
    least = np.full(len(points), np.inf)
    for p, q in ((a, b), (b, c), (c, a)):
        along = q - p
        t = np.clip((points - p) @ along / (along @ along), 0.0, 1.0)
        least = np.minimum(least, np.linalg.norm(points - p - t[:, None] * along, axis=1))
        inside &= (points - p) @ np.cross(normal, along) >= 0.0
    return np.where(inside, np.abs((points - a) @ normal), least)
