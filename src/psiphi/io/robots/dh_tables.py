"""Arms in Denavit-Hartenberg rows: `[links]` of a table, one column a link, in the units of the papers.

Such a table has `convention` ("modified", "standard"), `inertia_about` ("com", "origin": of the link frame), maybe `tool` (its
place in the last frame) and `[pedestal]` (mass, com, inertia: what flies when the base is free). Columns are named as the
fields of `psiphi.io.dh.DH`; two differ: angles are in degrees, and `range` holds [lower, upper].
"""

from __future__ import annotations

from collections.abc import Mapping
from math import radians

import numpy as np

from psiphi.io.dh import DH, from_dh
from psiphi.model.inertias import off_origin
from psiphi.model.model import Model, Pose


def joints(table: dict) -> list[str]:
    """The names of the joints that move."""
    return table["links"]["name"]


def build(name: str, table: dict, base: str, gravity, armature) -> Model:
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
    stand = "fixed" if base == "fixed" else table["pedestal"]
    return from_dh(
        rows, name=name, gravity=gravity, base=stand, tool=tool, convention=table["convention"]
    )


def _row(link: dict, about_origin: bool) -> DH:
    """A column of the table as a DH row: radians, limits, inertia about the centre of mass."""
    lower, upper = link.pop("range")
    if link.get("kind", "revolute") != "prismatic":
        lower, upper = radians(lower), radians(upper)
    for angle in ("alpha", "theta"):
        link[angle] = radians(link.get(angle, 0.0))
    if about_origin:
        link["inertia"] = np.diag(link["inertia"]) - off_origin(
            link["mass"], np.array(link["com"], dtype=float)
        )
    return DH(**link, lower=lower, upper=upper)
