"""A still picture of a robot as SVG: the outline of each solid, drawn from far to near."""

from __future__ import annotations

import numpy as np

from psiphi.apps.viewer.geometry.solids import DrawnSolid, surface_mesh
from psiphi.apps.viewer.scene import Scene
from psiphi.model.model import WORLD

# rows: right, up, towards the eye
VIEW = np.array([[-0.58, 0.81, 0.0], [-0.27, -0.19, 0.94], [0.77, 0.55, 0.33]])
LIGHT = np.array([0.4, 0.2, 0.9])
Pixel = tuple[float, float]
MAX_POINTS = 400  # of a mesh from which an outline is made


def picture(scene: Scene, at: int = -1, size: int = 220) -> str:
    """The scene at the time of index `at`, as SVG text of size x size pixels; gravity points down.

    >>> import psiphi as pp
    >>> from psiphi.apps.viewer.scene import scene
    >>> picture(scene(pp.load("ur5"), q=[0, -1, 1, 0, 0, 0])).startswith("<svg")
    True
    """
    parts = [_projected(scene, piece, at) for piece in scene.pieces]
    every = np.concatenate([points for _, points, _, _ in parts]) if parts else np.zeros((1, 2))
    low, span = every.min(axis=0), float(np.ptp(every, axis=0).max()) or 1.0
    middle = (every.max(axis=0) + low) / 2
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" '
        f'width="{size}" height="{size}">'
    ]
    for _, points, shade, color in sorted(parts, key=lambda part: part[0]):
        flat = (points - middle) * [1, -1] * (0.91 * size) / span + size / 2
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in flat)
        rgb = ",".join(str(round(min(255.0, int(color[i : i + 2], 16) * shade))) for i in (1, 3, 5))
        out.append(
            f'<polygon points="{corners}" fill="rgb({rgb})" stroke="#333" stroke-width="0.6"/>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"


def _projected(scene: Scene, piece: DrawnSolid, at: int) -> tuple[float, np.ndarray, float, str]:
    """(nearness, outline in the picture, brightness, colour) of a solid."""
    R, p = (
        (np.eye(3), np.zeros(3))
        if piece.body == WORLD
        else (scene.rotation[at, piece.body], scene.position[at, piece.body])
    )
    R, p = R @ piece.pose.rotation, R @ piece.pose.translation + p
    surface = surface_mesh(piece).vertices
    surface = surface[:: 1 + len(surface) // MAX_POINTS] if piece.kind == "mesh" else surface
    view = VIEW @ scene.view_rotation
    seen = np.round((surface @ R.T + p) @ view.T, 6)  # pictures do not depend on rounding
    slope = abs(float(scene.view_rotation @ R[:, 2] @ LIGHT))
    shade = 0.72 + 0.28 * slope / float(np.linalg.norm(LIGHT))
    return round(float(seen[:, 2].mean()), 5), convex_hull(seen[:, :2]), shade, piece.color


def convex_hull(points: np.ndarray) -> np.ndarray:
    """The convex hull of points (n, 2), by Andrew's monotone chain algorithm."""
    order = sorted(set(map(tuple, points.tolist())))
    if len(order) < 3:
        return np.array(order)

    def chain(row: list[Pixel]) -> list[Pixel]:
        out: list[Pixel] = []
        for p in row:
            while len(out) > 1 and _orientation(out[-2], out[-1], p) <= 1e-12:
                out.pop()
            out.append(p)
        return out[:-1]

    return np.array(chain(order) + chain(order[::-1]))


def _orientation(a: Pixel, b: Pixel, c: Pixel) -> float:
    """Twice the signed area of a triangle; positive if it is counterclockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
