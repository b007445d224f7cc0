"""The robots of a scene: base, start, contact shapes, springs, flexible links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from psiphi._util.errors import Error
from psiphi._util.text import nearest
from psiphi.apps.scenes.scene_contacts import with_contact_shapes
from psiphi.apps.scenes.toml_table import Table, pose
from psiphi.apps.viewer.recorded_motion import rest_configuration
from psiphi.model.flexible.beam import Beam
from psiphi.model.flexible.flexible_body import FlexibleBody
from psiphi.model.model import Joint, Pose
from psiphi.robot.load import load as load_robot
from psiphi.robot.robot import Robot


@dataclass(frozen=True)
class PlacedRobot:
    """A robot of the scene: the pose of its base, and its q and v at the start."""

    name: str
    robot: Robot
    base: Pose
    q: np.ndarray
    v: np.ndarray
    given_joints: tuple[str, ...]  # joints whose q is in the file
    driven_joints: tuple[str, ...]  # joints whose v is in the file

    def frame_pose(self, frame: str) -> Pose:
        """The pose of a frame at the start, in the world."""
        T = self.robot.frame_pose(self.q, frame)
        return self.base @ Pose(T[:3, :3], T[:3, 3])

    def renamed(self) -> Robot:
        """The robot with its name in the scene: a system has names such as "left/tool"."""
        return replace(self.robot, name=self.name)


def read_placed(name: str, row: Table, folder: Path) -> PlacedRobot:
    """The robot of a table [robots.NAME]."""
    robot = _with_flexible_links(row, _with_springs(row, robot_from_table(row, folder)), folder)
    base = pose(row)
    q, given = joint_coordinates(row, "q", robot, rest_configuration(robot))
    v, driven = joint_coordinates(row, "v", robot, np.zeros(robot.nv))
    row.reject_unknown()
    return PlacedRobot(name, robot, base, q, v, given, driven)


def robot_from_table(row: Table, folder: Path) -> Robot:
    """The robot of the keys `robot`, `base` and `contacts`. Paths are relative to the scene's
    folder."""
    source = row.text("robot")
    file = folder / source
    base = row.text("base", None, ("fixed", "free"))
    try:
        robot = load_robot(
            file if source.endswith((".urdf", ".xml")) and file.exists() else source, base=base
        )
    except (Error, OSError) as error:
        remedy = (
            getattr(error, "remedy", "")
            or "name a bundled robot, or a URDF file in the scene's folder"
        )
        row.fail("robot", f"is {source!r}: {getattr(error, 'cause', error)}", remedy)
    return with_contact_shapes(row, robot)


def _with_springs(row: Table, robot: Robot) -> Robot:
    """Add [[robots.NAME.springs]] and [[robots.NAME.elastic]].

    Their keys are arguments of `robot.with_spring` and `robot.with_elastic`.
    """
    methods = {
        "springs": (Robot.with_spring, ("joints", "stiffness", "rest", "spring")),
        "elastic": (
            Robot.with_elastic,
            ("joints", "stiffness", "rotor", "ratio", "damping", "spring"),
        ),
    }
    for key, (method, names) in methods.items():
        for table in row.tables(key):
            arguments = {
                name: table.get(name) for name in names if name == "joints" or name in table
            }
            table.reject_unknown()
            try:
                robot = method(robot, **arguments)
            except Error as error:
                table.fail("joints", error.cause, error.remedy)
    return robot


BEAM_KEYS = (
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


def _with_flexible_links(row: Table, robot: Robot, folder: Path) -> Robot:
    """Add [[robots.NAME.flexible]].

    Its keys are arguments of `robot.with_flexible`, and those of `pp.Beam` or a `file` of modal
    data.
    """
    for table in row.tables("flexible"):
        link = table.text("link")
        options = {key: table.get(key) for key in ("xyz", "rpy", "keep", "hang") if key in table}
        file = table.text("file", None)
        beam = {key: table.get(key) for key in BEAM_KEYS if key in table}
        table.reject_unknown()
        if file is not None and beam:
            table.fail(
                next(iter(beam)), "cannot be combined with file", "give file, or the data of a beam"
            )
        if file is None:
            for key in BEAM_KEYS[:3]:
                table.get(key)
        try:
            body = Beam(**beam) if file is None else FlexibleBody.load(folder / file)
            robot = robot.with_flexible(link, body, **options)
        except (Error, OSError) as error:
            table.fail(
                "link" if file is None else "file",
                getattr(error, "cause", str(error)),
                getattr(error, "remedy", ""),
            )
    return robot


def joint_coordinates(
    row: Table, key: str, robot: Robot, start: np.ndarray, of: str = ""
) -> tuple[np.ndarray, tuple[str, ...]]:
    """q or v of a robot: a list of all coordinates, or a table { joint = value }. `of` is "q" or
    "v", by default the key.

    Returns the coordinates and the names of the joints whose values are given; all others are
    those of `start`.
    """
    value = row.get(key, None)
    if value is None:
        return start, ()
    if not isinstance(value, Mapping):
        return np.array(row.numbers(key, len(start))), tuple(joint.name for joint in robot.joints)
    out, table = start.copy(), row.table(key)
    for name in value:
        joint = _joint(table, robot, name)
        place = joint.q_slice if (of or key) == "q" else joint.v_slice
        size = place.stop - place.start
        out[place] = [table.number(name)] if size == 1 else table.numbers(name, size)
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
