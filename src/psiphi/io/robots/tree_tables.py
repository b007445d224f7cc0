"""Tables of robots as links and joints, in SI units and radians.

`[link.<name>]` has mass, com and inertia about the center of mass (ixx, ixy, ixz, iyy, iyz, izz,
or the diagonal). `[joint.<name>]` has kind, parent, child, xyz, rpy, axis, range, velocity,
effort, damping, friction, mimic. `[frame.<name>]` has link, xyz, rpy. `[posture.<name>]` has
coordinates of joints. Bodies are in the order of the joints in the file. `[[arm]]` mounts the robot
of another table: robot, prefix, parent, xyz, rpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psiphi._util.array_types import Numbers
from psiphi.io.dh import cos_sin
from psiphi.model.builder.builder import Builder
from psiphi.model.model import Model
from psiphi.model.spatial.transforms import (
    IDENTITY_ROTATION,
    ORIGIN,
    Placement,
    from_cosines_and_sines,
)


def joints(table: dict) -> list[str]:
    """The names of the joints that move."""
    return [
        name for name, joint in table["joint"].items() if joint.get("kind", "revolute") != "fixed"
    ]


def build(
    name: str,
    table: dict,
    base: str,
    gravity: Numbers,
    armature: float | Mapping[str, float] | None,
) -> Model:
    """The robot of a table."""
    builder = Builder(name, gravity, forest=False)
    for link, row in table["link"].items():
        builder.body(
            link,
            row.get("mass", 0.0),
            row.get("com", (0.0, 0.0, 0.0)),
            _six_inertia_entries(row.get("inertia", (0.0,) * 3)),
        )
    for joint, row in table["joint"].items():
        rotor = armature.get(joint) if isinstance(armature, Mapping) else armature
        builder.joint(joint, **_joint(row, rotor))
    for frame, row in table.get("frame", {}).items():
        builder.frame(
            frame, row["link"], row.get("xyz", (0.0, 0.0, 0.0)), rotation=read_placement(row)[0]
        )
    for posture, q in table.get("posture", {}).items():
        builder.posture(posture, q)
    return builder.build(base)


def mount(table: dict, arm: dict, where: dict) -> None:
    """Add an arm to the robot of `table`: its names get a prefix, its root is fixed to `parent`."""
    prefix = where["prefix"]
    for kind in ("link", "joint", "frame"):
        for name, row in arm.get(kind, {}).items():
            links = {key: prefix + row[key] for key in ("parent", "child", "link") if key in row}
            table.setdefault(kind, {})[prefix + name] = {**row, **links}
    carried = {row["child"] for row in arm["joint"].values()}
    root = next(link for link in arm["link"] if link not in carried)
    placement = {key: where[key] for key in ("parent", "xyz", "rpy") if key in where}
    table["joint"][f"{prefix}mount"] = {"kind": "fixed", "child": prefix + root, **placement}
    for link, shapes in arm.get("shapes", {}).items():
        table.setdefault("shapes", {})[prefix + link] = shapes


def read_placement(row: dict) -> Placement:
    """xyz and rpy of a row: R = Rz(yaw) Ry(pitch) Rx(roll), exact for multiples of 90 degrees."""
    x, y, z = (float(c) for c in row.get("xyz", ORIGIN))
    if "rpy" not in row:
        return IDENTITY_ROTATION, (x, y, z)
    R = from_cosines_and_sines(*(cos_sin(float(angle)) for angle in row["rpy"]))
    return tuple(entry + 0.0 for entry in R), (x, y, z)


def _joint(row: dict, rotor: float | None) -> dict:
    """A row as arguments of `Builder.joint`."""
    arguments = {key: value for key, value in row.items() if key not in ("xyz", "rpy", "range")}
    R, xyz = read_placement(row)
    lower, upper = row.get("range", (None, None))
    moving = {"lower": lower, "upper": upper, **({} if rotor is None else {"armature": rotor})}
    arguments.setdefault("kind", "revolute")
    return {
        **arguments,
        "xyz": xyz,
        "rotation": R,
        **({} if arguments["kind"] == "fixed" else moving),
    }


def _six_inertia_entries(inertia: Sequence[float]) -> tuple:
    """(ixx, ixy, ixz, iyy, iyz, izz) from these six entries or from the diagonal."""
    return (
        tuple(inertia) if len(inertia) == 6 else (inertia[0], 0.0, 0.0, inertia[1], 0.0, inertia[2])
    )
