"""Pages and viewers of robots and motions.

In: a robot, a closed chain or a trajectory. Out: an HTML page with a recorded motion or with a
running simulation (`html`), or a live viewer in the browser (`view`, extra `viewer`).
Read `scene.py` first.

    scene.py           what every viewer shows: solids, link poses, frames, forces
    recorded_motion.py times, configurations, forces and plots of a motion
    geometry/          solids, meshes, visuals of URDF files, link poses
    html_page.py       a page with a recorded motion
    page/              HTML, CSS and JavaScript of both kinds of pages
    live/              pages in which the robot is simulated, and the viser viewer
    svg_plots.py       line plots as SVG
    svg_picture.py     a still picture as SVG
    notebook_cards.py  what notebooks display for robots and motions
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

# options of one kind of page only
RECORDED_OPTIONS = ("t", "element", "frames")
LIVE_OPTIONS = ("v", "dt", "method", "payload", "limits")
__all__ = ["Scene", "Viewer", "html", "scene", "view"]


def html(thing: object, path: str | os.PathLike[str], live: bool = False, **options: Any) -> Path:
    """Write one HTML file that shows a robot, a closed chain or a trajectory in any browser.

    The file needs neither a server nor a network. Options are those of `scene`: q=, t=, shapes=,
    meshes=, title=, element=, frames=, contacts= (the pp.Ground under a robot).

    With `live=True` the page simulates the robot, closed chain or scene, and the user can pull its
    links. Options are then q= and v= (the start), dt= and method= (the steps), payload= (a frame
    that carries a load of adjustable mass), limits= ("block" or "ignore": whether joints stop at
    their limits when the page opens; the page has a switch), contacts= (a pp.Ground: the contact
    points of the robot touch it, the motors hold the start, and without them the robot falls),
    shapes=, meshes= and title=.

    >>> import tempfile, psiphi as pp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     html(pp.load("puma560"), f"{folder}/puma.html").stat().st_size < 1_000_000
    True
    """
    is_live = flag("live", live)
    other = [name for name in options if name in (RECORDED_OPTIONS if is_live else LIVE_OPTIONS)]
    if other:
        kind = "live pages" if not is_live else "pages with a recorded motion"
        raise StateError(
            f"{', '.join(other)}: only for {kind}",
            f"leave {'it' if len(other) == 1 else 'them'} out, or pass live={not is_live}",
        )
    page = live_page.live_html(thing, **options) if is_live else scene(thing, **options)
    return html_page.write_page(page, path)
