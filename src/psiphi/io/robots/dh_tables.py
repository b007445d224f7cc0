"""Tables of arms as Denavit-Hartenberg rows: `[links]`, one column per link, units of the papers.

A table has `convention` ("modified" or "standard") and `inertia_about` ("com", or "origin" of the
link frame), optionally `tool` (its position in the last frame) and `[pedestal]` (mass, com,
inertia: the base if it is free). Columns are the fields of `psiphi.io.dh.DH`, except that angles
are in degrees and `range` is [lower, upper].
"""

from __future__ import annotations

from collections.abc import Mapping
from math import radians

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi.io.dh import DH, from_dh
from psiphi.model.inertias import point_mass_inertia
from psiphi.model.model import Model, Pose


def joints(table: dict) -> list[str]:
    """The names of the joints that move."""
    return table["links"]["name"]


def build(
    name: str,
    table: dict,
    base: str,
    gravity: Numbers,
    armature: float | Mapping[str, float] | None,
) -> Model:
    """The arm of a table."""
    columns = table["links"]
    links = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    for link in links:
        rotor = armature.get(link["name"]) if isinstance(armature, Mapping) else armature
        link |= {} if rotor is None else {"armature": rotor}
    rows = [_row(link, about_origin=table["inertia_about"] == "origin") for link in links]
    tool = Pose(np.eye(3), np.array(table.get("tool", (0.0, 0.0, 0.0)), dtype=float))
    support = "fixed" if base == "fixed" else table["pedestal"]
    return from_dh(
        rows, name=name, gravity=gravity, base=support, tool=tool, convention=table["convention"]
    )


def _row(link: dict, about_origin: bool) -> DH:
    """A column of the table as a DH row: radians, limits, inertia about the center of mass."""
    lower, upper = link.pop("range")
    if link.get("kind", "revolute") != "prismatic":
        lower, upper = radians(lower), radians(upper)
    for angle in ("alpha", "theta"):
        link[angle] = radians(link.get(angle, 0.0))
    if about_origin:
        link["inertia"] = np.diag(link["inertia"]) - point_mass_inertia(
            link["mass"], np.array(link["com"], dtype=float)
        )
    return DH(**link, lower=lower, upper=upper)
