"""Scenes: a mechanism, its start, its controller and how long to simulate, in one small TOML file.

In: a file, or the name of a bundled scene. Out: a `SceneSetup`, whose `run()` simulates it. Read `scene_file.py` first;
docs/viewer.md lists every key, data/two_arms.toml is an example.

    scene_file.py         the file as a whole
    scene_robots.py       the robots in it, where they stand and how they are held together
    scene_controllers.py  its controller
    toml_table.py         reads tables, and says which key is wrong

    >>> from psiphi import scenes
    >>> case = scenes.load("two_arms")
    >>> case.system.nv, len(case.system.contacts)
    (18, 2)
"""

from typing import Any

from psiphi._util.deprecation import renamed_attribute
from psiphi.apps.scenes.scene_file import SceneSetup, load, names

__all__ = ["SceneSetup", "load", "names"]


def __getattr__(name: str) -> Any:
    return renamed_attribute(__name__, "psiphi.scenes", name, {"Case": "SceneSetup"})
