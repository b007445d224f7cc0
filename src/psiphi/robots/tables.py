"""Arms kept as tables: `data/<robot>.toml`, one column a link, in the units of the papers.

A table has `convention` ("modified", "standard"), `inertia_about` ("com", "origin": of the link frame), maybe `tool` (its
place in the last frame), and `[links]` with columns named as the fields of `psiphi.model.dh.DH`. Two differ: angles are in
degrees, and `range` holds [lower, upper]. A new arm is a new file and one function in `__init__.py`.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from math import radians

import numpy as np

from psiphi.model.dh import DH, from_dh
from psiphi.model.model import Model, Pose

_DATA = files("psiphi.robots") / "data"


def table_names() -> list[str]:
    """The robots that have a table."""
    return sorted(entry.name.removesuffix(".toml") for entry in _DATA.iterdir() if entry.name.endswith(".toml"))


def from_table(name: str) -> Model:
    """The arm of `data/<name>.toml`."""
    table = tomllib.loads((_DATA / f"{name}.toml").read_text(encoding="utf-8"))
    columns = table["links"]
    links = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    rows = [_row(link, about_origin=table["inertia_about"] == "origin") for link in links]
    tool = Pose(np.eye(3), np.array(table.get("tool", (0.0, 0.0, 0.0)), dtype=float))
    return from_dh(rows, name=name, tool=tool, convention=table["convention"])


def _row(link: dict, about_origin: bool) -> DH:
    """A column of the table as a DH row: radians, limits, inertia about the centre of mass."""
    lower, upper = link.pop("range")
    if link.get("kind", "revolute") != "prismatic":
        lower, upper = radians(lower), radians(upper)
    for angle in ("alpha", "theta"):
        link[angle] = radians(link.get(angle, 0.0))
    if about_origin:
        link["inertia"] = _central(link["mass"], np.array(link["com"], dtype=float), np.diag(link["inertia"]))
    return DH(**link, lower=lower, upper=upper)


def _central(mass: float, c: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """I_com = I_origin - m (|c|^2 - c c*)."""
    return inertia - mass * (c @ c * np.eye(3) - np.outer(c, c))
