"""A scene as one HTML file: data, plots, styles and scripts; it needs no network."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from psiphi._util import validate
from psiphi._util.errors import StateError
from psiphi._util.escape import html, script_json
from psiphi._util.files import atomic_write
from psiphi._util.text import count_of, shown
from psiphi.apps.viewer.scene import Scene
from psiphi.apps.viewer.svg_plots import COLORS, LEFT, RIGHT, WIDTH, Plot
from psiphi.io.meshes.triangles import Mesh, simplified
from psiphi.model.model import WORLD, Pose
from psiphi.model.spatial.rotations import quaternions

PAGE = files("psiphi.apps.viewer") / "page"
SHARED_SCRIPTS = ("algebra.js", "solids.js", "draw.js", "camera.js", "touches.js")
MAX_TRIANGLES = 18_000  # of all meshes of a page


def page(scene: Scene) -> str:
    """The HTML of a page with a recorded motion.

    >>> import psiphi as pp
    >>> from psiphi.apps.viewer.scene import scene
    >>> text = page(scene(pp.load("puma560")))
    >>> "https:" in text, len(text) < 1_000_000
    (False, True)
    """
    parts = {
        "title": html(scene.title),
        "words": html(scene_summary(scene)),
        "style": page_file("page.css"),
        "facts": _facts_table(scene),
        "plots": "\n".join(
            [*_figures(scene), *(f'<p class="note">{html(note)}</p>' for note in scene.notes[:20])]
        ),
        "data": script_json(page_data(scene)),
        "script": "\n".join(page_file(name) for name in (*SHARED_SCRIPTS, "page.js")),
    }
    return fill_template("page.html", parts)


def fill_template(template: str, parts: dict[str, str]) -> str:
    """A template from `page/`, with {{name}} replaced by parts["name"]."""
    pieces = page_file(template).split("{{")
    return pieces[0] + "".join(
        parts[name] + rest for name, _, rest in (piece.partition("}}") for piece in pieces[1:])
    )


def write_page(content: Scene | str, path: str | os.PathLike[str]) -> Path:
    """Write the page of a scene, or HTML text, atomically. Pipes and devices are written to."""
    target = Path(validate.path("the file", path, "a path", 'give a name like "motion.html"'))
    with atomic_write(target) as part:
        if target.is_dir():
            raise StateError(
                f"{shown(path)} is a folder, expected a file to write",
                "name a file that ends in .html",
            )
        is_device = target.exists() and not target.is_file()
        text = content if isinstance(content, str) else page(content)
        (target if is_device else part).write_text(text, encoding="utf-8")
    return target


def page_data(scene: Scene) -> dict:
    """The data that `page.js` reads: those of `solid_data`, and link poses, arrows and plots."""
    up = scene.view_rotation
    return solid_data(scene) | {
        "t": _rounded(scene.t),
        "poses": _pose_numbers(up @ scene.rotation, scene.position @ up.T, flat=True),
        "arrows": _arrows(scene),
        "touches": _touches(scene),
        "plots": [
            [_finite_numbers(row) for row in np.atleast_2d(plot.values)]
            for plot in scene.motion.plots
        ],
        "margins": [LEFT, RIGHT, WIDTH],
    }


def solid_data(scene: Scene) -> dict:
    """Solids, meshes and frames with their bodies, in axes with z up."""
    center, radius = scene.extent
    up = scene.view_rotation
    meshes: list[dict] = []
    distinct = {id(p.mesh): p.mesh for p in scene.pieces if p.mesh is not None}
    triangles = sum(len(mesh.faces) for mesh in distinct.values())
    index: dict[int, int] = {}  # solids with the same mesh share it
    pieces = []
    for piece in scene.pieces:
        row = {"body": piece.body, "kind": piece.kind, "color": piece.color}
        row["at"] = _pose_numbers(*_page_pose(piece.body, piece.pose, up))
        row |= {"ground": True} if piece.is_ground else {}
        if piece.mesh is None:
            row["size"] = _rounded(piece.size)
        else:
            row["mesh"] = index.setdefault(id(piece.mesh), len(meshes))
            if row["mesh"] == len(meshes):
                faces = len(piece.mesh.faces)
                most = max(100, int(MAX_TRIANGLES * faces / max(triangles, MAX_TRIANGLES)))
                meshes.append(_packed_mesh(simplified(piece.mesh, most)))
        pieces.append(row)
    return {
        "title": scene.title,
        "bodies": [body.name for body in scene.model.bodies],
        "pieces": pieces,
        "meshes": meshes,
        "frames": [
            {"name": f.name, "body": f.body, "at": _pose_numbers(*_page_pose(f.body, f.pose, up))}
            for f in scene.frames
        ],
        "ground": None if scene.ground is None else round(scene.ground, 5),
        "slope": scene.slope and [_rounded(up @ x) for x in scene.slope],
        "center": _rounded(up @ center),
        "radius": round(radius, 5),
    }


def scene_summary(scene: Scene) -> str:
    """The line below the title: numbers of bodies and coordinates, duration."""
    seconds = f", {scene.t[-1] - scene.t[0]:.3g} s" if len(scene.t) > 1 else ""
    return f"{count_of(scene.model.body_count, 'body', 'bodies')}, {scene.freedom}{seconds}"


def _facts_table(scene: Scene) -> str:
    if not scene.motion.facts:
        return ""
    rows = "".join(
        f"<tr><td>{html(name)}</td><td>{html(value)}</td></tr>"
        for name, value in scene.motion.facts
    )
    return f'<table class="facts">{rows}</table>\n'


def _figures(scene: Scene) -> Iterator[str]:
    for plot in scene.motion.plots:
        head = f"<figcaption>{html(plot.title)}<span>{html(plot.unit)} over s</span></figcaption>"
        yield f"<figure>{head}{plot.svg(scene.t)}{_legend(plot)}</figure>"


def _legend(plot: Plot) -> str:
    key = '<span><i class="chip" style="background:{}"></i>{} <b></b></span>'
    keys = (key.format(COLORS[i % len(COLORS)], html(name)) for i, name in enumerate(plot.names))
    return f'<div class="keys">{"".join(keys)}</div>'


def _arrows(scene: Scene) -> dict | None:
    if scene.motion.arrows is None:
        return None
    point, force = (
        np.nan_to_num(x) @ scene.view_rotation.T
        for x in (scene.motion.arrows.point, scene.motion.arrows.force)
    )
    return {
        "names": list(scene.motion.arrows.names),
        "at": _rounded(point),
        "force": np.round(force, 3).tolist(),
    }


def _touches(scene: Scene) -> dict | None:
    touches = scene.motion.touches
    if touches is None:
        return None
    return {
        "modes": touches.modes.tolist(),
        "radii": _rounded(touches.radii),
        "normal": _rounded(scene.view_rotation @ touches.normal),
    }


def _page_pose(body: int, pose: Pose, up: np.ndarray) -> Pose:
    """A pose on a body is unchanged; a pose in the world is rotated to z up."""
    return pose if body != WORLD else Pose(up @ pose.rotation, up @ pose.translation)


def _pose_numbers(R: np.ndarray, p: np.ndarray, flat: bool = False) -> list:
    """(..., 7): x y z qx qy qz qw of poses; with `flat`, (times, 7 bodies)."""
    poses = np.concatenate([np.asarray(p, dtype=float), quaternions(R)], axis=-1)
    poses = np.round(poses, 5) + 0.0
    return (poses.reshape(len(poses), -1) if flat else poses).tolist()


def _rounded(values: ArrayLike) -> list:
    return (np.round(np.asarray(values, dtype=float), 5) + 0.0).tolist()


def _finite_numbers(row: np.ndarray) -> list[float | None]:
    """The numbers with four digits; None for NaN and infinity, which JSON lacks."""
    return [float(f"{x:.4g}") if math.isfinite(x) else None for x in row.tolist()]


def _packed_mesh(mesh: Mesh) -> dict:
    """A mesh for the page; vertices are 16-bit numbers over the mesh's bounding box."""
    low = mesh.vertices.min(axis=0)
    step = np.maximum(np.ptp(mesh.vertices, axis=0), 1e-9) / 65535.0
    grid = np.round((mesh.vertices - low) / step).astype("<u2")
    text = {
        name: base64.b64encode(x.tobytes()).decode()
        for name, x in (("vertices", grid), ("faces", mesh.faces.astype("<u4")))
    }
    return {**text, "low": low.tolist(), "step": step.tolist()}


def page_file(name: str) -> str:
    """The text of a file in `page/`."""
    return (PAGE / name).read_text(encoding="utf-8")
