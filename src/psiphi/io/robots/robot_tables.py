"""Robots kept as tables: `data/<robot>.toml`, figures as their sources print them.

An arm in Denavit-Hartenberg rows has `[links]`, one column a link (`dh_tables.py`); any other robot has `[link.<name>]` and
`[joint.<name>]` (`tree_tables.py`). Common to both: `title`, `source`, `licence` of the figures, `base` ("fixed" unless given),
`gravity` where it is not the Earth's, and `[shapes]`, what viewers draw. A new robot is a new file and one function in
`__init__.py`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache, partial
from importlib.resources import files

from psiphi._util.errors import ModelError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import one_of
from psiphi.io.robots import dh_tables, tree_tables
from psiphi.model.model import Model
from psiphi.model.shapes import SIZES, Shape

_DATA = files("psiphi.io.robots") / "data"
GRAVITY = (0.0, 0.0, -9.81)


def table_names() -> list[str]:
    """The robots that have a table."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in _DATA.iterdir()
        if entry.name.endswith(".toml")
    )


@lru_cache(maxsize=32)
def read(name: str) -> dict:
    """The table of a robot, with the arms that it names in `[[arm]]` put on."""
    if not isinstance(name, str) or name not in table_names():
        raise ModelError(f"no bundled robot {shown(name)}", nearest(name, table_names()))
    table = tomllib.loads((_DATA / f"{name}.toml").read_text(encoding="utf-8"))
    for arm in table.pop("arm", ()):
        tree_tables.mount(table, read(arm["robot"]), arm)
    return table


def from_table(
    name: str, base=None, gravity=None, armature: float | Mapping[str, float] | None = None
) -> Model:
    """The robot of `data/<name>.toml`; base "fixed" or "free", None for the robot's own."""
    table = read(name)
    base = table.get("base", "fixed") if base is None else base
    one_of("base", base, ("fixed", "free"), kind=partial(ModelError, element="base"))
    gravity = table.get("gravity", GRAVITY) if gravity is None else gravity
    kind = dh_tables if "links" in table else tree_tables
    _check_armature(name, armature, kind.joints(table))
    return kind.build(name, table, base, gravity, armature)


def shapes_of(name: str, frames: Mapping) -> tuple[Shape, ...]:
    """The primitive shapes of a robot, on links that are among `frames`; a pedestal stands on the world when it is fixed."""
    shapes = []
    for link, rows_ in read(name).get("shapes", {}).items():
        on = link if link in frames else "world"
        shapes += [_shape(on, row) for row in rows_]
    return tuple(shapes)


def _shape(link: str, row: dict) -> Shape:
    """{ box = [x, y, z], xyz = [...], rpy = [...], color = [r, g, b] } and the like as a `Shape`."""
    kind = next(kind for kind in SIZES if kind in row)
    size = tuple(float(x) for x in (row[kind] if isinstance(row[kind], list) else [row[kind]]))
    color = tuple(float(x) for x in (*row["color"], 1.0)) if "color" in row else None
    return Shape(link, "visual", kind, tree_tables.place(row), size, color=color)


def _check_armature(name: str, armature, joints: list[str]) -> None:
    for joint in armature if isinstance(armature, Mapping) else ():
        if joint not in joints:
            raise ModelError(
                f"armature names {shown(joint)}, which is no moving joint of {name}",
                nearest(joint, joints),
                element="armature",
            )
