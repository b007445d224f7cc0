"""Reader of the bundled robots: `data/<robot>.toml`, with the numbers of the published sources.

An arm in Denavit-Hartenberg rows has `[links]`, one column per link (`dh_tables.py`); other robots
have `[link.<name>]` and `[joint.<name>]` (`tree_tables.py`). Both have `title`, `source` and
`licence` of the data, optionally `base` (default "fixed"), `gravity` (default: the Earth's) and
`[shapes]` for viewers, `[collision]`, by link the shapes of `robot.with_contacts("collision")`, and
`[contacts]`, by frame the shapes that touch the ground by default. To add a robot, add a file here
and a function in `robot/bundled_robots.py`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache, partial
from importlib.resources import files

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import one_of
from psiphi.io.robots import dh_tables, tree_tables
from psiphi.model.contact.contact_shapes import ContactShape, solid
from psiphi.model.model import Model, Pose
from psiphi.model.shapes import SIZES, Shape

_DATA = files("psiphi.io.robots") / "data"
GRAVITY = (0.0, 0.0, -9.81)


def table_names() -> list[str]:
    """The names of the robots that have a table."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in _DATA.iterdir()
        if entry.name.endswith(".toml")
    )


@lru_cache(maxsize=32)
def read_table(name: str) -> dict:
    """The table of a robot, with the arms of `[[arm]]` mounted."""
    if not isinstance(name, str) or name not in table_names():
        raise ModelError(f"no bundled robot {shown(name)}", nearest(name, table_names()))
    table = tomllib.loads((_DATA / f"{name}.toml").read_text(encoding="utf-8"))
    for arm in table.pop("arm", ()):
        tree_tables.mount(table, read_table(arm["robot"]), arm)
    return table


def from_table(
    name: str,
    base: str | None = None,
    gravity: Numbers | None = None,
    armature: float | Mapping[str, float] | None = None,
) -> Model:
    """The robot of `data/<name>.toml`; base is "fixed", "free", or None for that of the table."""
    table = read_table(name)
    base = table.get("base", "fixed") if base is None else base
    one_of("base", base, ("fixed", "free"), kind=partial(ModelError, element="base"))
    gravity = table.get("gravity", GRAVITY) if gravity is None else gravity
    kind = dh_tables if "links" in table else tree_tables
    _check_armature(name, armature, kind.joints(table))
    return kind.build(name, table, base, gravity, armature)


def shapes_of(name: str, frames: Mapping) -> tuple[Shape, ...]:
    """The primitive shapes of a robot; those of links that are not in `frames` are on the world."""
    shapes, table = [], read_table(name)
    for role, key in (("visual", "shapes"), ("collision", "collision")):
        for link, rows in table.get(key, {}).items():
            on = link if link in frames else "world"
            shapes += [_shape(on, row, role) for row in rows]
    return tuple(shapes)


def contacts_of(name: str) -> dict[str, list[ContactShape]]:
    """The shapes of a robot that touch the ground by default, by frame; {} if it has none."""
    return {
        frame: [_contact_shape(row) for row in rows]
        for frame, rows in read_table(name).get("contacts", {}).items()
    }


def _contact_shape(row: dict) -> ContactShape:
    kind, size = _kind_and_size(row)
    rotation, translation = tree_tables.read_placement(row)
    return solid(kind, size, Pose(np.reshape(rotation, (3, 3)), np.array(translation)))


def _kind_and_size(row: dict) -> tuple[str, tuple[float, ...]]:
    kind = next(kind for kind in SIZES if kind in row)
    return kind, tuple(
        float(x) for x in (row[kind] if isinstance(row[kind], list) else [row[kind]])
    )


def _shape(link: str, row: dict, role: str) -> Shape:
    """A row like { box = [x, y, z], xyz = [...], rpy = [...], color = [r, g, b] } as a `Shape`."""
    kind, size = _kind_and_size(row)
    color = tuple(float(x) for x in (*row["color"], 1.0)) if "color" in row else None
    return Shape(link, role, kind, tree_tables.read_placement(row), size, color=color)


def _check_armature(
    name: str, armature: float | Mapping[str, float] | None, joints: list[str]
) -> None:
    for joint in armature if isinstance(armature, Mapping) else ():
        if joint not in joints:
            raise ModelError(
                f"armature names {shown(joint)}, which is not a moving joint of {name}",
                nearest(joint, joints),
                element="armature",
            )
