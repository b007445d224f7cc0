"""Robots and motions to look at.

Comes in: a robot, a closed chain or a trajectory. Goes out: a page that opens by itself in any browser (`html`), in which a
motion is shown or the robot itself runs, or a live viewer in the browser (`view`, with the extra `psiphi[viewer]`).
Read `scene.py` first (what is shown), then `drawing.py` (a robot without shapes), then `page.py` (a motion), `living.py` (a
robot that runs in its page, with the numbers of `handling.py`) and `live.py`; `cards.py` is what notebooks show, with a still
`picture.py`. Below them

    motions.py, poses.py        what moves: times, configurations, forces; where every link is
    pieces.py, looks.py         coloured solids on bodies; those of a description
    plots.py                    curves as SVG
    meshes.py                   triangles; mesh_files.py, collada.py: those of files
    stage.py, gate.py           the live viewer's things, and who may talk to it
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from psiphi.arguments import flag
from psiphi.errors import StateError
from psiphi.viewer import living, page
from psiphi.viewer.live import Viewer, view
from psiphi.viewer.scene import Scene, scene

RECORDED, RUNNING = ("t", "element", "frames"), ("v", "dt", "method", "payload", "limits")  # options of one kind of page alone
__all__ = ["Scene", "Viewer", "html", "scene", "view"]


def html(thing: Any, path: str | os.PathLike[str], live: bool = False, **options: Any) -> Path:
    """Write ONE file that shows a robot, a closed chain or a trajectory in any browser, without server or network.

    Options are those of `scene`: q=, t=, shapes=, meshes=, title=, element=, frames=.
    With `live` the robot, closed chain or scene runs in the page and can be pulled; options are then q=, v= (where it starts),
    dt= and method= of its steps, payload= (a frame that carries a load of any mass), limits= ("block" or "ignore": whether
    joints end at their limits when the page opens, where they can; it has a switch), shapes=, meshes=, title=.

    >>> import tempfile, psiphi as pp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     html(pp.load("puma560"), f"{folder}/puma.html").stat().st_size < 1_000_000
    True
    """
    runs = flag("live", live)
    other = [name for name in options if name in (RECORDED if runs else RUNNING)]
    if other:
        cause = f"{', '.join(other)} came, and the page shows a {'robot that runs' if runs else 'motion that was computed'}"
        raise StateError(cause, f"leave {'it' if len(other) == 1 else 'them'} out, or write live={not runs}")
    return page.write(living.of(thing, **options) if runs else scene(thing, **options), path)
