"""Robots and motions to look at.

In: a robot, a closed chain or a trajectory. Out: a page that opens in any browser (`html`), in which a motion is
shown or the robot itself runs, or a live viewer in the browser (`view`, extra `viewer`). Read `scene.py` first.

    scene.py           what is shown: bodies, joints, frames, forces
    html_page.py       a page with a recorded motion; its JavaScript and CSS are in page/
    recorded_motion.py times, configurations and forces of a motion to draw
    svg_picture.py     a still picture as SVG
    svg_plots.py       curves as SVG
    notebook_cards.py  what notebooks show of robots and motions
    geometry/          solids, meshes, visuals of URDF files, poses of links
    live/              pages in which the robot runs, and the viewer of viser
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.validate import flag
from psiphi.apps.viewer import html_page
from psiphi.apps.viewer.live import live_page
from psiphi.apps.viewer.live.viser_viewer import Viewer, view
from psiphi.apps.viewer.scene import Scene, scene

RECORDED_OPTIONS, LIVE_OPTIONS = (
    ("t", "element", "frames"),
    ("v", "dt", "method", "payload", "limits"),
)  # options of one kind of page alone
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
    other = [name for name in options if name in (RECORDED_OPTIONS if runs else LIVE_OPTIONS)]
    if other:
        cause = f"{', '.join(other)} came, and the page shows a {'robot that runs' if runs else 'motion that was computed'}"
        raise StateError(
            cause, f"leave {'it' if len(other) == 1 else 'them'} out, or write live={not runs}"
        )
    return html_page.write_page(
        live_page.live_html(thing, **options) if runs else scene(thing, **options), path
    )
