"""Scenes: a mechanism, its start, its controller and how long to simulate, in one small TOML file.

Comes in: a file, or the name of a bundled scene. Goes out: a `Case`, whose `run()` simulates it.
Read `data/two_arms.toml` first (what a scene looks like), then `building.py`; `keys.py` reads tables,
`placing.py` the robots in them, `steering.py` the controller. docs/viewer.md lists every key.

    >>> from psiphi import scenes
    >>> case = scenes.load("two_arms")
    >>> case.system.nv, len(case.system.contacts)
    (18, 2)
"""

from psiphi.scenes.building import Case, load, names

__all__ = ["Case", "load", "names"]
