"""The ground of a scene or a study, and the shapes of a robot that touch it.

    [ground]                   friction, restitution, stiffness, damping, normal, point, iterations,
                               tolerance, height, size, law, smooth: the arguments of `pp.Ground`
    contacts = "collision"     of a robot: the collision shapes of its file
    contacts = { "*_foot" = { sphere = 0.03, at = [0, 0, 0.01] } }
                               by frames: sphere, box, capsule, cylinder, points; or a list of them

A free base whose place is not given stands on the ground.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields

import numpy as np

from psiphi._util.errors import Error
from psiphi._util.text import shown
from psiphi.apps.scenes.toml_table import Table, pose
from psiphi.model.contact.contact_shapes import ContactShape, Points, solid
from psiphi.model.contact.ground import Ground
from psiphi.model.shapes import SIZES
from psiphi.robot.robot import Robot
from psiphi.simulation.contact.placement import on_ground

KINDS = (*SIZES, "points")
GROUND_KEYS = tuple(field.name for field in fields(Ground))


def read_ground(top: Table) -> Ground | None:
    """The ground of the table [ground], if there is one."""
    if "ground" not in top:
        return None
    row = top.table("ground")
    given = {key: row.get(key) for key in GROUND_KEYS if key in row}
    row.reject_unknown()
    try:
        return Ground(**given)
    except Error as error:
        word = error.cause.split(" ")[0]
        row.fail(word if word in given else "", error.cause, error.remedy)


def with_contact_shapes(row: Table, robot: Robot) -> Robot:
    """The robot with the shapes of the key `contacts`, if it is there, and the pairs of `pairs`."""
    if "contacts" not in row:
        if "pairs" in row:
            remedy = 'write contacts = { "*_foot" = { sphere = 0.03 } } as well'
            row.fail("pairs", "is given without contacts", remedy)
        return robot
    value = row.get("contacts")
    shapes = value if isinstance(value, str) else _shapes_by_frame(row)
    pairs = row.get("pairs") if "pairs" in row else ()
    try:
        return robot.with_contacts(shapes, pairs=pairs)
    except Error as error:
        key = "pairs" if error.cause.startswith("pairs") else "contacts"
        row.fail(key, error.cause, error.remedy)


def start_on_ground(
    top: Table, robot: object, q: np.ndarray, ground: Ground, given_joints: Collection[str]
) -> tuple[np.ndarray, bool]:
    """q with a free base moved onto the ground, and True; q itself if the place of the base is
    given, or fixed. Raises for a system without shapes."""
    if not isinstance(robot, Robot):
        top.fail("ground", "is for robots, not for closed chains", "leave it out, or use pp.embed")
    if not robot.contact_points:
        cause = f"is given, but {robot.name} has no contact points"
        remedy = 'write contacts = { "*_foot" = { sphere = 0.03 } } or contacts = "collision"'
        top.fail("ground", cause, f"{remedy} beside robot = ...")
    root = robot.joints[0]
    if root.kind != "free" or root.name in given_joints:
        return q, False
    return on_ground(robot, q, ground), True


def _shapes_by_frame(row: Table) -> dict[str, list[ContactShape]]:
    table = row.table("contacts")
    found = {}
    for frames, value in table.values.items():
        each = table.tables(frames) if isinstance(value, list) else [table.table(frames)]
        found[frames] = [_contact_shape(one) for one in each]
    return found


def _contact_shape(row: Table) -> ContactShape:
    kinds = [kind for kind in KINDS if kind in row]
    if len(kinds) != 1:
        names = " and ".join(kinds) or "no shape"
        row.fail("", f"has {names}, expected one of {', '.join(KINDS)}", "write { sphere = 0.03 }")
    (kind,) = kinds
    place = pose(row)
    if kind == "points":
        made: ContactShape = Points(_rows_of_three(row, kind), place)
    else:
        count = sum(size for _, size in SIZES[kind])
        size = [row.number(kind)] if count == 1 else row.numbers(kind, count)
        made = solid(kind, size, place)
    row.reject_unknown()
    return made


def _rows_of_three(row: Table, key: str) -> list[list[float]]:
    value = row.get(key)
    if not isinstance(value, list) or not value:
        row.fail(key, f"is {shown(value)}, expected a list of points", "write [[x, y, z], ...]")
    inner = Table(row.file, f"{row.path}.{key}", {str(i): x for i, x in enumerate(value)})
    return [inner.numbers(str(i), 3) for i in range(len(value))]
