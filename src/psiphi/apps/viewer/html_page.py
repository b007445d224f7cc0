"""A scene as one HTML file: data, plots, styles and the program that draws, with nothing to fetch."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np

from psiphi._util import validate
from psiphi._util.errors import StateError
from psiphi._util.escape import html, script_json
from psiphi._util.files import atomic_write
from psiphi._util.text import count_of, shown
from psiphi.apps.viewer.geometry.triangles import Mesh, simplified
from psiphi.apps.viewer.scene import Scene
from psiphi.apps.viewer.svg_plots import COLORS, LEFT, RIGHT, WIDTH, Plot
from psiphi.model.model import WORLD, Pose
from psiphi.model.spatial.rotations import quaternions

PAGE = files("psiphi.apps.viewer") / "page"
SHARED_SCRIPTS = ("algebra.js", "solids.js", "draw.js", "camera.js")
MAX_TRIANGLES = 18_000  # of all meshes of a page together


def page(scene: Scene) -> str:
    """The text of the page.

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
    """A template of this room with its parts."""
    pieces = page_file(template).split("{{")
    return pieces[0] + "".join(
        parts[name] + rest for name, _, rest in (piece.partition("}}") for piece in pieces[1:])
    )


def write_page(made: Scene | str, path: str | os.PathLike[str]) -> Path:
    """Write the page of a scene, or its text: whole or not at all. A pipe or device is written to, never replaced."""
    target = Path(validate.path("the file", path, "a path", 'give a name like "motion.html"'))
    with atomic_write(target) as part:
        if target.is_dir():
            raise StateError(
                f"{shown(path)} is a folder, expected a file to write",
                "name a file that ends in .html",
            )
        through = target.exists() and not target.is_file()
        text = made if isinstance(made, str) else page(made)
        (target if through else part).write_text(text, encoding="utf-8")
    return target


def page_data(scene: Scene) -> dict:
    """What the page's program reads."""
    up = scene.view_rotation
    return solid_data(scene) | {
        "t": _rounded(scene.t),
        "poses": _pose_numbers(up @ scene.rotation, scene.position @ up.T, flat=True),
        "arrows": _arrows(scene),
        "plots": [
            [_finite_numbers(row) for row in np.atleast_2d(plot.values)]
            for plot in scene.motion.plots
        ],
        "margins": [LEFT, RIGHT, WIDTH],
    }


def solid_data(scene: Scene) -> dict:
    """What is drawn, on which body; the page's z is up, whatever gravity's axis."""
    center, radius = scene.extent
    up = scene.view_rotation
    meshes: list[dict] = []
    own = {
        id(p.mesh): p.mesh for p in scene.pieces if p.mesh is not None
    }  # pieces of one mesh share it
    solid, places = sum(len(mesh.faces) for mesh in own.values()), {}
    pieces = []
    for piece in scene.pieces:
        row = {"body": piece.body, "kind": piece.kind, "color": piece.color}
        row["at"] = _pose_numbers(*_page_pose(piece.body, piece.pose, up))
        if piece.mesh is None:
            row["size"] = _rounded(piece.size)
        else:
            row["mesh"] = places.setdefault(id(piece.mesh), len(meshes))
            if row["mesh"] == len(meshes):
                most = max(
                    100, int(MAX_TRIANGLES * len(piece.mesh.faces) / max(solid, MAX_TRIANGLES))
                )
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
        "center": _rounded(up @ center),
        "radius": round(radius, 5),
    }


def scene_summary(scene: Scene) -> str:
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
    chip = '<span><i class="chip" style="background:{}"></i>{} <b></b></span>'
    return f'<div class="keys">{"".join(chip.format(COLORS[i % len(COLORS)], html(n)) for i, n in enumerate(plot.names))}</div>'


def _arrows(scene: Scene) -> dict | None:
    if scene.motion.arrows is None:
        return None
    at, force = (
        np.nan_to_num(x) @ scene.view_rotation.T
        for x in (scene.motion.arrows.point, scene.motion.arrows.force)
    )
    return {
        "names": list(scene.motion.arrows.names),
        "at": _rounded(at),
        "force": np.round(force, 3).tolist(),
    }


def _page_pose(body: int, pose: Pose, up: np.ndarray) -> Pose:
    """A place on a body as it is; one in the world is turned with it."""
    return pose if body != WORLD else Pose(up @ pose.rotation, up @ pose.translation)


def _pose_numbers(R, p, flat: bool = False) -> list:
    """x y z, qx qy qz qw of poses; `flat` runs the bodies of a time together."""
    seven = np.concatenate([np.asarray(p, dtype=float), quaternions(R)], axis=-1)
    seven = np.round(seven, 5) + 0.0
    return (seven.reshape(len(seven), -1) if flat else seven).tolist()


def _rounded(values) -> list:
    return (np.round(np.asarray(values, dtype=float), 5) + 0.0).tolist()


def _finite_numbers(row: np.ndarray) -> list:
    return [float(f"{x:.4g}") if math.isfinite(x) else None for x in row.tolist()]


def _packed_mesh(mesh: Mesh) -> dict:
    """Vertices as 16-bit steps of the mesh's box."""
    low = mesh.vertices.min(axis=0)
    step = np.maximum(np.ptp(mesh.vertices, axis=0), 1e-9) / 65535.0
    grid = np.round((mesh.vertices - low) / step).astype("<u2")
    text = {
        name: base64.b64encode(x.tobytes()).decode()
        for name, x in (("vertices", grid), ("faces", mesh.faces.astype("<u4")))
    }
    return {**text, "low": low.tolist(), "step": step.tolist()}


def page_file(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")
