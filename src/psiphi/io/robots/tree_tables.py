"""Robots of any shape: `[link.<name>]`, `[joint.<name>]` and `[frame.<name>]` of a table, SI units, angles in radians.

A link has mass, com and inertia about it (ixx, ixy, ixz, iyy, iyz, izz, or the three diagonal ones); a joint has kind, parent,
child, xyz, rpy, axis, range, velocity, effort, damping, friction, mimic; a frame has link, xyz, rpy. Bodies are numbered as
the joints stand in the file. A robot with several equal arms names their table in `[[arm]]`: robot, prefix, parent, xyz, rpy.
"""

from __future__ import annotations

from collections.abc import Mapping

from psiphi.io.dh import turn
from psiphi.model.builder.builder import Builder
from psiphi.model.model import Model
from psiphi.model.spatial.transforms import HERE, Place, of_turns


def joints(table: dict) -> list[str]:
    """The names of the joints that move."""
    return [
        name for name, joint in table["joint"].items() if joint.get("kind", "revolute") != "fixed"
    ]


def build(name: str, table: dict, base: str, gravity, armature) -> Model:
    """The robot of a table."""
    builder = Builder(name, gravity, forest=False)
    for link, row in table["link"].items():
        builder.body(
            link,
            row.get("mass", 0.0),
            row.get("com", (0.0, 0.0, 0.0)),
            _six(row.get("inertia", (0.0,) * 3)),
        )
    for joint, row in table["joint"].items():
        rotor = armature.get(joint) if isinstance(armature, Mapping) else armature
        builder.joint(joint, **_joint(row, rotor))
    for frame, row in table.get("frame", {}).items():
        builder.frame(frame, row["link"], row.get("xyz", (0.0, 0.0, 0.0)), rotation=place(row)[0])
    return builder.build(base)


def mount(table: dict, arm: dict, where: dict) -> None:
    """Put an arm on the robot of `table`: all its names get a prefix, its root link is fixed to `parent`."""
    prefix = where["prefix"]
    for kind in ("link", "joint", "frame"):
        for name, row in arm.get(kind, {}).items():
            links = {key: prefix + row[key] for key in ("parent", "child", "link") if key in row}
            table.setdefault(kind, {})[prefix + name] = {**row, **links}
    carried = {row["child"] for row in arm["joint"].values()}
    root = next(link for link in arm["link"] if link not in carried)
    seat = {key: where[key] for key in ("parent", "xyz", "rpy") if key in where}
    table["joint"][f"{prefix}mount"] = {"kind": "fixed", "child": prefix + root, **seat}
    for link, shapes in arm.get("shapes", {}).items():
        table.setdefault("shapes", {})[prefix + link] = shapes


def place(row: dict) -> Place:
    """xyz and rpy of a row as a place: R = Rz(yaw) Ry(pitch) Rx(roll), with quarter turns exact."""
    if "rpy" not in row:
        return HERE[0], tuple(float(x) for x in row.get("xyz", HERE[1]))  # type: ignore[return-value]
    R = of_turns(*(turn(float(angle)) for angle in row["rpy"]))
    return tuple(x + 0.0 for x in R), tuple(float(x) for x in row.get("xyz", HERE[1]))  # type: ignore[return-value]


def _joint(row: dict, rotor: float | None) -> dict:
    """A row as arguments of `Builder.joint`."""
    given = {key: value for key, value in row.items() if key not in ("xyz", "rpy", "range")}
    R, xyz = place(row)
    lower, upper = row.get("range", (None, None))
    moving = {"lower": lower, "upper": upper, **({} if rotor is None else {"armature": rotor})}
    given.setdefault("kind", "revolute")
    return {**given, "xyz": xyz, "rotation": R, **({} if given["kind"] == "fixed" else moving)}


def _six(inertia) -> tuple:
    """ixx, ixy, ixz, iyy, iyz, izz, of which the diagonal may stand alone."""
    return (
        tuple(inertia) if len(inertia) == 6 else (inertia[0], 0.0, 0.0, inertia[1], 0.0, inertia[2])
    )
