"""Solids, frames and plots of a scene, as viser objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psiphi._util.escape import line
from psiphi.apps.viewer.geometry.solids import surface_mesh
from psiphi.apps.viewer.scene import Scene
from psiphi.apps.viewer.svg_plots import COLORS, Plot
from psiphi.model.model import WORLD
from psiphi.model.spatial.rotations import quaternions

if TYPE_CHECKING:  # viser comes with the extra `viewer`
    from viser import FrameHandle, ViserServer


def add_bodies(server: ViserServer, scene: Scene) -> list[FrameHandle]:
    """Add the solids and the ground to a server. Returns a handle for each body."""
    world = server.scene
    up = scene.up
    world.set_up_direction(xyz(up))
    if scene.ground is not None:
        center, radius = scene.extent
        place = {
            "position": center + (scene.ground - center @ up) * up,
            "wxyz": wxyz(scene.view_rotation.T),
        }
        world.add_grid(
            "/ground", 12 * radius, 12 * radius, cell_size=0.1, section_size=1.0, **place
        )
    handles = [
        world.add_frame(f"/robot/{k}", show_axes=False) for k in range(len(scene.model.bodies))
    ]
    for i, piece in enumerate(scene.pieces):
        mesh = surface_mesh(piece)
        red, green, blue = (int(piece.color[j : j + 2], 16) for j in (1, 3, 5))
        world.add_mesh_simple(
            f"{_parent_path(piece.body)}/piece{i}",
            mesh.vertices.astype(np.float32),
            mesh.faces.astype(np.uint32),
            color=(red, green, blue),
            flat_shading=piece.kind in ("mesh", "cylinder", "box"),
            side="double" if piece.kind == "mesh" else "front",
            wxyz=wxyz(piece.pose.rotation),
            position=np.asarray(piece.pose.translation),
        )
    return handles


def add_frames(server: ViserServer, scene: Scene) -> list[FrameHandle]:
    """Add the named frames, hidden. Returns a handle for each."""
    size = 0.1 * scene.extent[1]
    options = {"axes_length": size, "axes_radius": 0.05 * size, "visible": False}
    out = []
    for frame in scene.frames:
        name = f"{_parent_path(frame.body)}/frame {line(frame.name).replace('/', ':')}"
        place = {"wxyz": wxyz(frame.pose.rotation), "position": np.asarray(frame.pose.translation)}
        out.append(server.scene.add_frame(name, **place, **options))
    return out


def add_plot(server: ViserServer, scene: Scene, plot: Plot) -> None:
    """Add a plot over time to the panel."""
    from viser import uplot

    series = [uplot.Series(label="t")]
    series += [
        uplot.Series(label=line(name), stroke=COLORS[i % len(COLORS)], width=1.5)
        for i, name in enumerate(plot.names)
    ]
    unit = f"log10, {plot.unit}" if plot.log else plot.unit
    plain = {"x": uplot.Scale(time=False)}  # seconds, not dates
    data = (
        np.asarray(scene.t, dtype=float),
        *(np.ascontiguousarray(row) for row in plot.plotted_values),
    )
    server.gui.add_uplot(
        data, tuple(series), title=line(f"{plot.title} [{unit}]"), aspect=2.0, scales=plain
    )


def _parent_path(body: int) -> str:
    return "/fixed" if body == WORLD else f"/robot/{body}"


def xyz(vector: np.ndarray) -> tuple[float, float, float]:
    """A vector as three floats."""
    x, y, z = map(float, vector)
    return x, y, z


def wxyz(R: np.ndarray) -> np.ndarray:
    """The quaternion (w, x, y, z) of a rotation, in viser's order."""
    return quaternions(R)[[3, 0, 1, 2]]
