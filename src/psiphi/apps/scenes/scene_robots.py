"""The robots of a scene, each with its base and its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from psiphi._util.errors import Error
from psiphi._util.text import nearest
from psiphi.apps.scenes.toml_table import Table
from psiphi.apps.viewer.recorded_motion import resting
from psiphi.model.flexible.beam import Beam
from psiphi.model.flexible.flexible_body import FlexibleBody
from psiphi.model.model import Joint, Pose
from psiphi.model.spatial.transforms import from_rpy
from psiphi.robot.load import load as load_robot
from psiphi.robot.robot import Robot


@dataclass(frozen=True)
class PlacedRobot:
    """A robot of the scene: where its base stands, and how its joints stand and move at the start."""

    name: str
    robot: Robot
    base: Pose
    q: np.ndarray
    v: np.ndarray
    given: tuple[str, ...]  # joints whose place was given
    driven: tuple[str, ...]  # joints whose velocity was given

    def frame_pose(self, frame: str) -> Pose:
        """A frame of the robot at the start, in the world."""
        T = self.robot.frame_pose(self.q, frame)
        return self.base @ Pose(T[:3, :3], T[:3, 3])

    def renamed(self) -> Robot:
        """The robot under its name in the scene: the system's names are "left/tool"."""
        return replace(self.robot, name=self.name)


def read_placed(name: str, row: Table, folder: Path) -> PlacedRobot:
    """A table [robots.NAME]."""
    robot = _bent(row, _sprung(row, robot_from_table(row, folder)), folder)
    base = pose(row)
    q, given = coordinates(row, "q", robot, resting(robot))
    v, driven = coordinates(row, "v", robot, np.zeros(robot.nv))
    row.done()
    return PlacedRobot(name, robot, base, q, v, given, driven)


def robot_from_table(row: Table, folder: Path) -> Robot:
    source = row.text("robot")
    beside = folder / source
    base = row.text("base", None, ("fixed", "free"))
    try:
        return load_robot(
            beside if source.endswith((".urdf", ".xml")) and beside.exists() else source, base=base
        )
    except (Error, OSError) as error:
        remedy = (
            getattr(error, "remedy", "") or "name a bundled robot, or a URDF file beside the scene"
        )
        row.fail("robot", f"is {source!r}: {getattr(error, 'cause', error)}", remedy)


def _sprung(row: Table, robot: Robot) -> Robot:
    """[[robots.NAME.springs]] and [[robots.NAME.elastic]]: the words of `robot.with_spring` and `robot.with_elastic`."""
    verbs = {
        "springs": (Robot.with_spring, ("joints", "stiffness", "rest", "spring")),
        "elastic": (
            Robot.with_elastic,
            ("joints", "stiffness", "rotor", "ratio", "damping", "spring"),
        ),
    }
    for key, (verb, words) in verbs.items():
        for table in row.tables(key):
            given = {word: table.get(word) for word in words if word == "joints" or word in table}
            table.done()
            try:
                robot = verb(robot, **given)
            except Error as error:
                table.fail("joints", error.cause, error.remedy)
    return robot


BEAM = (
    "length",
    "section",
    "material",
    "modes",
    "planes",
    "torsion",
    "axial",
    "tip",
    "damping",
    "stiffening",
)


def _bent(row: Table, robot: Robot, folder: Path) -> Robot:
    """[[robots.NAME.flexible]]: the words of `robot.with_flexible`, and those of a `pp.Beam`, or the `file` of modal data."""
    for table in row.tables("flexible"):
        link, own = (
            table.text("link"),
            {word: table.get(word) for word in ("xyz", "rpy", "keep", "hang") if word in table},
        )
        file, beam = (
            table.text("file", None),
            {word: table.get(word) for word in BEAM if word in table},
        )
        table.done()
        if file is not None and beam:
            table.fail(
                next(iter(beam)), "stands beside file", "give modal data, or the measures of a beam"
            )
        if file is None:
            for word in BEAM[:3]:
                table.get(word)
        try:
            robot = robot.with_flexible(
                link, Beam(**beam) if file is None else FlexibleBody.load(folder / file), **own
            )
        except (Error, OSError) as error:
            table.fail(
                "link" if file is None else "file",
                getattr(error, "cause", str(error)),
                getattr(error, "remedy", ""),
            )
    return robot


def coordinates(
    row: Table, key: str, robot: Robot, start: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """A list of all coordinates, or a table { joint = value }."""
    value = row.get(key, None)
    if value is None:
        return start, ()
    if not isinstance(value, Mapping):
        return np.array(row.numbers(key, len(start))), tuple(joint.name for joint in robot.joints)
    out, table = start.copy(), row.table(key)
    for name in value:
        joint = _joint(table, robot, name)
        own = joint.q_slice if key == "q" else joint.v_slice
        size = own.stop - own.start
        out[own] = [table.number(name)] if size == 1 else table.numbers(name, size)
    return out, tuple(value)


def _joint(table: Table, robot: Robot, name: str) -> Joint:
    for joint in robot.joints:
        if joint.name == name:
            return joint
    table.fail(
        name,
        f"{robot.name} has no joint {name!r}",
        nearest(name, [joint.name for joint in robot.joints]),
    )


def pose(row: Table) -> Pose:
    """`at` is x y z, `rpy` roll, pitch and yaw in radians: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    place = np.array(row.numbers("at", 3, [0.0, 0.0, 0.0]))
    roll, pitch, yaw = row.numbers("rpy", 3, [0.0, 0.0, 0.0])
    return Pose(np.reshape(from_rpy(roll, pitch, yaw), (3, 3)), place)
