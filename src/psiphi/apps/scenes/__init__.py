"""Scenes: a mechanism, its start, its controller and how long to simulate, in one small TOML file.

In: a file, or the name of a bundled scene. Out: a `SceneSetup`, whose `run()` simulates it.
Read `scene_file.py` first. docs/viewer.md lists every key; data/two_arms.toml is an example.

    scene_file.py         reads the file: system, start, controller, simulation options
    scene_robots.py       reads a robot with its base, start, springs and flexible links
    scene_contacts.py     reads the ground, and the shapes of a robot that touch it
    scene_controllers.py  the controllers that a scene can name
    scene_optimal_control.py
                          reads a problem of optimal control: costs, limits, goals that move
    toml_table.py         reads TOML tables; errors name the file and the key

    >>> from psiphi import scenes
    >>> case = scenes.load("two_arms")
    >>> case.system.nv, len(case.system.contacts)
    (18, 2)
"""

from psiphi._util.deprecation import renamed_attribute
from psiphi.apps.scenes.scene_file import SceneSetup, load, names

__all__ = ["SceneSetup", "load", "names"]


def __getattr__(name: str) -> object:
    return renamed_attribute(__name__, "psiphi.scenes", name, {"Case": "SceneSetup"})
