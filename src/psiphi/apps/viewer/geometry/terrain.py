"""The heights of a ground as triangles."""

from __future__ import annotations

import numpy as np

from psiphi.apps.viewer.geometry.solids import DrawnSolid
from psiphi.io.meshes.triangles import Mesh
from psiphi.model.contact.height_field import HeightGrid
from psiphi.model.model import WORLD, Pose

COLOR = "#c9c4b8"
MARGIN = 3.0  # what is drawn about a motion, in radii of the ball about it


def terrain(grid: HeightGrid, heights: np.ndarray, center: np.ndarray, radius: float) -> DrawnSolid:
    """The triangles of heights (nx, ny) about a ball; beyond the border, the border."""
    places, rows = [], []
    for n, start, step, middle in zip(grid.shape, grid.origin, grid.spacing, center, strict=False):
        x = start + step * np.arange(n)
        low, high = middle - MARGIN * radius, middle + MARGIN * radius
        kept = np.flatnonzero((x > low - step) & (x < high + step))
        ends = [([low], [0]) if low < x[0] else ([], []), ([high], [n - 1])]
        last = ends[1] if high > x[-1] else ([], [])
        places.append(np.array([*ends[0][0], *x[kept], *last[0]]))
        rows.append(np.array([*ends[0][1], *kept, *last[1]], dtype=int))
    x, y = np.meshgrid(*places, indexing="ij")
    z = grid.origin[2] + heights[np.ix_(*rows)]
    count = x.shape[1]
    first = (np.arange(x.shape[0] - 1)[:, None] * count + np.arange(count - 1)).ravel()
    corners = [(0, count, count + 1), (0, count + 1, 1)]
    faces = np.concatenate([np.stack([first + k for k in corner], axis=-1) for corner in corners])
    mesh = Mesh(np.stack([x, y, z], axis=-1).reshape(-1, 3), faces)
    return DrawnSolid(WORLD, "mesh", (1.0, 1.0, 1.0), Pose(), COLOR, mesh, is_ground=True)
