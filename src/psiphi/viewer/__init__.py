"""Robots and motions to look at.

Comes in: a robot, a closed chain or a trajectory. Goes out: a page that opens by itself in any browser (`html`), or a live
viewer in the browser (`view`, with the extra `psiphi[viewer]`).
Read `scene.py` first (what is shown), then `drawing.py` (a robot without shapes), then `page.py` and `live.py`; `cards.py` is
what notebooks show, with a still `picture.py`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from psiphi.viewer import page
from psiphi.viewer.live import Viewer, view
from psiphi.viewer.scene import Scene, scene

__all__ = ["Scene", "Viewer", "html", "scene", "view"]


def html(thing: Any, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write ONE file that shows a robot, a closed chain or a trajectory in any browser, without server or network.

    Options are those of `scene`: q=, t=, shapes=, meshes=, title=, element=, frames=.

    >>> import tempfile, psiphi as pp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     html(pp.load("puma560"), f"{folder}/puma.html").stat().st_size < 1_000_000
    True
    """
    return page.write(scene(thing, **options), path)
