"""Pieces as triangles, for viewers that want meshes."""

from __future__ import annotations

import numpy as np

from psiphi.viewer.meshes import Mesh
from psiphi.viewer.pieces import Piece

AROUND = 32


def triangles(piece: Piece) -> Mesh:
    """The surface of a piece, in its own axes.

    >>> from psiphi.viewer.pieces import sphere
    >>> mesh = triangles(sphere(0, 2.0, (0, 0, 0), "#ffffff"))
    >>> bool(np.allclose(np.linalg.norm(mesh.vertices, axis=1), 2.0))
    True
    """
    if piece.mesh is not None:
        return piece.mesh
    if piece.kind == "box":
        return _box(np.asarray(piece.size))
    quarter = np.linspace(0.0, np.pi / 2, 9)
    if piece.kind == "cylinder":
        r, h = piece.size[0], piece.size[1] / 2
        return _revolved([(0.0, h), (r, h), (r, -h), (0.0, -h)])
    r, h = piece.size[0], piece.size[1] / 2 if piece.kind == "capsule" else 0.0
    top = [(r * np.sin(a), h + r * np.cos(a)) for a in quarter]
    return _revolved(top + [(x, -z) for x, z in reversed(top)])


def _revolved(profile: list[tuple[float, float]]) -> Mesh:
    """A profile (radius, z), from top to bottom, turned about z."""
    angle = 2.0 * np.pi * np.arange(AROUND) / AROUND
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    vertices = np.concatenate([np.column_stack([r * ring, np.full(AROUND, z)]) for r, z in profile])
    k = np.arange(AROUND)
    after = (k + 1) % AROUND
    faces = []
    for j in range(len(profile) - 1):
        a, b = j * AROUND + k, (j + 1) * AROUND + k
        c, d = j * AROUND + after, (j + 1) * AROUND + after
        faces += [np.column_stack([a, b, c]), np.column_stack([c, b, d])]
    return Mesh(vertices, np.concatenate(faces))


def _box(size: np.ndarray) -> Mesh:
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * size
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    vertices = np.concatenate([corners[list(quad)] for quad in quads])  # parted corners: flat sides
    faces = np.concatenate([[[4 * i, 4 * i + 1, 4 * i + 2], [4 * i, 4 * i + 2, 4 * i + 3]] for i in range(6)])
    return Mesh(vertices, faces)
