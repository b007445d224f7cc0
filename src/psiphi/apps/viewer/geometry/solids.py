"""Coloured solids, each fixed to a body or to the world, and their surfaces as triangles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from psiphi.apps.viewer.geometry.link_poses import rotation_with_z_along
from psiphi.io.meshes.triangles import Mesh
from psiphi.model.model import Pose

ROUND_SEGMENTS = 32  # of a circle
JOINT_COLOR = "#3a4150"
OBJECT_COLOR = "#d6a15f"
RAIL_COLOR = "#aab2bf"
PALETTE = (
    "#e8743b",
    "#3f7cac",
    "#5f9e6e",
    "#8e6fb0",
    "#c9566b",
    "#4aa3a2",
)  # a colour for each tree of the forest


@dataclass(frozen=True)
class DrawnSolid:
    """One solid, at `pose` in the link frame of its body.

    `size` is (x, y, z) of a "box", (radius,) of a "sphere", and (radius, length along z) of a
    "cylinder" or "capsule"; the length of a capsule is that of its straight part. A "mesh" has
    its triangles in `mesh`.
    """

    body: int
    kind: str
    size: tuple[float, ...]
    pose: Pose
    color: str
    mesh: Mesh | None = None
    is_ground: bool = False  # drawn, but not what the camera looks at

    @property
    def bounding_radius(self) -> float:
        """The radius of a ball about the solid's origin that contains it."""
        if self.kind == "box":
            return float(np.linalg.norm(self.size) / 2)
        if self.kind == "mesh":
            return (
                0.0
                if self.mesh is None
                else float(np.linalg.norm(self.mesh.vertices, axis=1).max(initial=0.0))
            )
        if self.kind == "sphere":
            return self.size[0]
        radius, length = self.size
        return (
            radius + length / 2 if self.kind == "capsule" else float(np.hypot(radius, length / 2))
        )


def box(body: int, size: Sequence[float] | np.ndarray, pose: Pose, color: str) -> DrawnSolid:
    """A box with its centre at the pose."""
    return DrawnSolid(body, "box", tuple(map(float, size)), pose, color)


def sphere(body: int, radius: float, center: ArrayLike, color: str) -> DrawnSolid:
    """A sphere."""
    return DrawnSolid(body, "sphere", (float(radius),), pose_at(center), color)


def cylinder(
    body: int, radius: float, length: float, center: ArrayLike, axis: ArrayLike, color: str
) -> DrawnSolid:
    """A cylinder about an axis."""
    return DrawnSolid(
        body, "cylinder", (float(radius), float(length)), pose_at(center, axis), color
    )


def capsule(body: int, radius: float, start: np.ndarray, end: np.ndarray, color: str) -> DrawnSolid:
    """A rod with round ends between two points."""
    return DrawnSolid(
        body,
        "capsule",
        (float(radius), float(np.linalg.norm(end - start))),
        pose_at((start + end) / 2, end - start),
        color,
    )


def pose_at(center: ArrayLike, axis: ArrayLike = (0.0, 0.0, 1.0)) -> Pose:
    """A pose at a point, with z along the axis."""
    return Pose(rotation_with_z_along(axis), np.asarray(center, dtype=float))


def surface_mesh(piece: DrawnSolid) -> Mesh:
    """The surface of a solid, in the solid's frame.

    >>> mesh = surface_mesh(sphere(0, 2.0, (0, 0, 0), "#ffffff"))
    >>> bool(np.allclose(np.linalg.norm(mesh.vertices, axis=1), 2.0))
    True
    """
    if piece.mesh is not None:
        return piece.mesh
    if piece.kind == "box":
        return _box_mesh(np.asarray(piece.size))
    quarter = np.linspace(0.0, np.pi / 2, 9)
    if piece.kind == "cylinder":
        r, h = piece.size[0], piece.size[1] / 2
        return _surface_of_revolution([(0.0, h), (r, h), (r, -h), (0.0, -h)])
    r, h = piece.size[0], piece.size[1] / 2 if piece.kind == "capsule" else 0.0
    top = [(r * np.sin(a), h + r * np.cos(a)) for a in quarter]
    return _surface_of_revolution(top + [(x, -z) for x, z in reversed(top)])


def _surface_of_revolution(profile: list[tuple[float, float]]) -> Mesh:
    """A profile of points (radius, z), from top to bottom, revolved about z."""
    angle = 2.0 * np.pi * np.arange(ROUND_SEGMENTS) / ROUND_SEGMENTS
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    vertices = np.concatenate(
        [np.column_stack([r * ring, np.full(ROUND_SEGMENTS, z)]) for r, z in profile]
    )
    k = np.arange(ROUND_SEGMENTS)
    after = (k + 1) % ROUND_SEGMENTS
    faces = []
    for j in range(len(profile) - 1):
        a, b = j * ROUND_SEGMENTS + k, (j + 1) * ROUND_SEGMENTS + k
        c, d = j * ROUND_SEGMENTS + after, (j + 1) * ROUND_SEGMENTS + after
        faces += [np.column_stack([a, b, c]), np.column_stack([c, b, d])]
    return Mesh(vertices, np.concatenate(faces))


def _box_mesh(size: np.ndarray) -> Mesh:
    corners = (
        np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * size
    )
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    vertices = np.concatenate([corners[list(quad)] for quad in quads])  # four vertices per side
    faces = np.concatenate(
        [[[4 * i, 4 * i + 1, 4 * i + 2], [4 * i, 4 * i + 2, 4 * i + 3]] for i in range(6)]
    )
    return Mesh(vertices, faces)
