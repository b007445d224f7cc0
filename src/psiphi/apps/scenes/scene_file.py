"""Read a scene file into a `SceneSetup`: robots, held object, loops, ground, start, controller,
options."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import path
from psiphi.apps.optimal_control.optimal_motion import OptimalMotion
from psiphi.apps.scenes.scene_contacts import read_ground, start_on_ground
from psiphi.apps.scenes.scene_controllers import CONTROLLERS, TorqueLaw, controller
from psiphi.apps.scenes.scene_optimal_control import (
    SceneProblem,
    check_same_model,
    read_optimal_control,
)
from psiphi.apps.scenes.scene_robots import PlacedRobot, read_placed
from psiphi.apps.scenes.toml_table import Table, pose, read_toml
from psiphi.apps.viewer import html
from psiphi.model.contact.ground import Ground
from psiphi.model.loops.closure_types import CONTACTS, LOOPS
from psiphi.model.model import Body, Pose
from psiphi.model.spatial.rotations import quaternions
from psiphi.robot.mechanisms.grasp_and_connect import Contact, Loop, connect, grasp
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.contact_step import choose_method, ground_contact
from psiphi.simulation.contact.contact_events import CONTACT_MODES
from psiphi.simulation.simulate.simulate import read_start, simulate
from psiphi.simulation.trajectory.trajectory import Trajectory

DATA = files("psiphi.apps.scenes") / "data"
# options that `read_start` checks before anything is computed
CHECKED_OPTIONS = ("q0", "v0", "duration", "dt", "method", "every", "limits")


@dataclass(frozen=True, eq=False)
class SceneSetup:
    """A scene, ready to run: `run()` simulates it. Options of `simulate` override the file's."""

    title: str
    system: Any  # Robot or System
    q0: np.ndarray
    v0: np.ndarray
    tau: TorqueLaw | None = None
    options: dict[str, Any] = field(default_factory=dict)
    file_values: dict[str, Any] = field(default_factory=dict)  # the keys of the file
    on_ground: bool = False  # whether the base was moved onto the ground
    optimal_control: SceneProblem | None = None

    def run(self, **options: Any) -> Trajectory:
        """The simulated motion."""
        return simulate(self.system, **self._simulate_options(options))

    def optimise(self, **options: Any) -> OptimalMotion:
        """The motion of least cost from the start: the problem of the table [optimal_control].

        Options are those of `OptimalControl.solve`, and q0 and v0 for other starts.
        """
        if self.optimal_control is None:
            raise StateError(
                f"the scene {self.title!r} has no problem of optimal control",
                "add [optimal_control] with dt, steps and costs: docs/viewer.md",
            )
        check_same_model(self.options)
        q0, v0 = options.pop("q0", self.q0), options.pop("v0", self.v0)
        return self.optimal_control.solve(q0, v0, **options)

    def html(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write a live page (`pp.viewer.html`) that runs the system from the scene's start."""
        return html(self, path, live=True, **options)

    def check(self, **options: Any) -> None:
        """Raise for a start, duration or step that `run` would reject, without simulating."""
        merged = self._simulate_options(options)
        checked = {name: merged[name] for name in CHECKED_OPTIONS if name in merged}
        ground = merged.get("contacts")
        if isinstance(ground, Ground):
            checked["method"] = choose_method(merged.get("method"), ground)
        start = read_start(self.system, **checked)
        if isinstance(ground, Ground):
            ground_contact(start.plant, ground, start.limits, "simulate", start.q)

    def _simulate_options(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"q0": self.q0, "v0": self.v0, "tau": self.tau, **self.options, **options}


def names() -> list[str]:
    """The bundled scenes.

    >>> names()
    ['four_bar', 'two_arms']
    """
    return sorted(
        entry.name.removesuffix(".toml") for entry in DATA.iterdir() if entry.name.endswith(".toml")
    )


def load(source: str | os.PathLike[str]) -> SceneSetup:
    """Load the scene of a file, or the bundled scene of that name."""
    source = text = path(
        "the scene", source, "a name or a path", f"there are {', '.join(names())}", ModelError
    )
    if text in names():
        source = Path(str(DATA / f"{text}.toml"))
    elif os.path.basename(text) == text and not text.endswith(".toml") and not os.path.exists(text):
        raise ModelError(f"no bundled scene {text!r}, and no such file", nearest(text, names()))
    top = read_toml(source)
    title = top.text("title", Path(text).stem)
    robots = [
        read_placed(name, row, Path(source).parent) for name, row in top.table("robots").items()
    ]
    if not robots:
        top.fail("robots", "is empty", 'add [robots.arm] with robot = "ur5"')
    given = {key: _joint_names(top, key) for key in ("actuated", "passive")}
    motors = {key: joints for key, joints in given.items() if joints is not None}
    system, q0, v0 = _system(top, title, robots, motors)
    robot_motors = motors if isinstance(system, Robot) else {}  # a closed chain stores its own
    options = _simulation_options(top)
    planned = read_optimal_control(top, system, q0, robot_motors)
    ground, placed = read_ground(top), False
    if ground is not None:
        if "contacts" in options:
            top.fail("contacts", "is for closed chains", "leave it out: there is a [ground]")
        q0, placed = start_on_ground(top, system, q0, ground, robots[0].given_joints)
        options["contacts"] = ground
    tau = _controller(top, system, q0, robot_motors, planned)
    _check_springs_act(top, options["springs"])
    top.reject_unknown()
    options |= robot_motors
    return SceneSetup(title, system, q0, v0, tau, options, top.values, placed, planned)


def _joint_names(top: Table, key: str) -> list[str] | None:
    """A list of joint names, or None."""
    value = top.get(key, None)
    if value is not None and (
        not isinstance(value, list) or not all(isinstance(name, str) for name in value)
    ):
        top.fail(key, f"is {shown(value)}, expected names of joints", f'write {key} = ["joint"]')
    return value


def _check_springs_act(top: Table, springs_act: bool) -> None:
    """Raise if the file defines springs and does not set springs = true."""
    for row in (row for _, row in top.table("robots").items()):
        for key in () if springs_act else ("springs", "elastic"):
            if key in row:
                row.fail(
                    key,
                    "are defined, but springs do not act",
                    "write springs = true at the top of the file",
                )


def _simulation_options(top: Table) -> dict[str, Any]:
    out: dict[str, Any] = {
        "duration": top.number("duration", 5.0, 0.0),
        "dt": top.number("dt", 1e-3, 0.0),
    }
    if "method" in top:
        out["method"] = top.text("method")
    out["limits"] = top.text("limits", "ignore")
    if "contacts" in top:
        out["contacts"] = top.text("contacts", "hold", CONTACT_MODES)
    every = top.number("every", 1.0, 0.0)
    if every % 1.0:
        top.fail("every", f"is {every:g}, expected a whole number", "1 stores all steps")
    out["every"] = int(every)
    for key in ("damping", "friction", "springs", "hold"):
        out[key] = top.flag(key, False)
    return out


def _system(
    top: Table, title: str, robots: list[PlacedRobot], motors: dict[str, Any]
) -> tuple[Robot | System, np.ndarray, np.ndarray]:
    """The system with q and v at the start."""
    grasps, loops = top.tables("grasps"), top.tables("loops")
    if grasps and loops:
        top.fail("loops", "cannot be combined with grasps", "write one scene for each")
    if grasps:
        return _grasped_system(top, title, robots, grasps, motors)
    if "object" in top:
        top.fail("object", "is given, but nothing holds it", "add [[grasps]] with robot and frame")
    if loops:
        return _loop_system(title, robots, loops, motors)
    if len(robots) > 1:
        top.fail(
            "robots",
            f"there are {len(robots)}, and nothing connects them",
            "add [[grasps]] and [object], or [[loops]]",
        )
    placed = robots[0]
    if np.any(placed.base.translation) or not np.allclose(placed.base.rotation, np.eye(3)):
        top.fail(
            f"robots.{placed.name}",
            "the base of a single robot is at the world's origin",
            "leave out at and rpy",
        )
    return placed.robot, placed.q, placed.v


def _grasped_system(
    top: Table,
    title: str,
    robots: list[PlacedRobot],
    grasps: list[Table],
    motors: dict[str, Any],
) -> tuple[System, np.ndarray, np.ndarray]:
    """Arms that hold an object, with q and v at the start."""
    row = top.table("object")
    body, object_pose = _object_body(row), pose(row)
    row.reject_unknown()
    by_name = {robot.name: robot for robot in robots}
    frames: dict[str, list[str]] = {robot.name: [] for robot in robots}
    points: dict[tuple[str, str], Pose] = {}  # of the grasps, in the frame of the object
    contacts: dict[tuple[str, str], Contact] = {}
    for grip in grasps:
        name = grip.text("robot", among=tuple(by_name))
        arm = by_name[name]
        frame = grip.text("frame", among=tuple(arm.robot.frames))
        if (name, frame) in points:
            grip.fail(
                "frame",
                f"is {frame!r}, and {name!r} already holds the object with it",
                "use a frame in one grasp only",
            )
        hand = arm.frame_pose(frame)
        is_given = "at" in grip or "rpy" in grip
        points[name, frame] = pose(grip) if is_given else object_pose.inv @ hand
        contacts[name, frame] = _contact(grip)
        frames[name].append(frame)
        grip.reject_unknown()
    idle = [name for name, grasping in frames.items() if not grasping]
    if idle:
        top.fail(
            "grasps", f"robot {idle[0]!r} holds nothing", "add a grasp for it, or leave it out"
        )
    hands = [(robot.name, frame) for robot in robots for frame in frames[robot.name]]
    arms = [(robot.renamed(), robot.base, tuple(frames[robot.name])) for robot in robots]
    cell = grasp(
        arms,
        body,
        [points[hand] for hand in hands],
        [contacts[hand] for hand in hands],
        name=title,
        **motors,
    )
    free = np.concatenate([object_pose.translation, quaternions(object_pose.rotation)])
    q = cell.assemble(
        np.concatenate([*(robot.q for robot in robots), free]), hold=(cell.robot.joints[-1].name,)
    )
    v = np.concatenate([*(robot.v for robot in robots), np.zeros(6)])
    return cell, *cell.project(q, v)


def _object_body(row: Table) -> Body:
    """The body of a table [object]: a sphere, cylinder, capsule or box."""
    mass, name = row.number("mass", above=0.0), row.text("name", "box")
    if "sphere" in row:
        return Body.sphere(mass, row.number("sphere", above=0.0), name)
    for kind in ("cylinder", "capsule"):
        if kind in row:
            radius, length = row.numbers(kind, 2)
            if radius <= 0.0 or length <= 0.0:
                row.fail(
                    kind, f"is {[radius, length]}", "give its radius and its length, both positive"
                )
            return getattr(Body, kind)(mass, radius, length, name)
    size = row.numbers("box", 3)
    if min(size) <= 0.0:
        row.fail("box", f"has the edges {size}", "give three positive lengths")
    return Body.box(mass, size, name)


def _contact(grip: Table) -> Contact:
    kind = grip.text("contact", "rigid", tuple(CONTACTS))
    axis, normal = (grip.numbers(key, 3, None) for key in ("axis", "normal"))
    friction, torsion = grip.number("friction", None, -1e-300), grip.number("torsion", None, 0.0)
    return Contact(kind, axis, normal, friction, torsion, grip.number("restitution", 0.0))


def _loop_system(
    title: str, robots: list[PlacedRobot], loops: list[Table], motors: dict[str, Any]
) -> tuple[System, np.ndarray, np.ndarray]:
    """Robots with loops, with q and v at the start."""
    closures = []
    for row in loops:
        kind, first, second = row.text("kind", among=LOOPS), row.text("first"), row.text("second")
        axis, axis2 = (row.numbers(key, 3, None) for key in ("axis", "axis2"))
        options = {
            "friction": row.number("friction", None, -1e-300),
            "length": row.number("length", None, 0.0),
            "name": row.text("name", ""),
            "restitution": row.number("restitution", 0.0),
        }
        closures.append(Loop(kind, first, second, axis, axis2, **options))
        row.reject_unknown()
    alone = len(robots) == 1
    system = connect(
        robots[0].robot if alone else {p.name: (p.robot, p.base) for p in robots},
        closures,
        name=title,
        **motors,
    )

    def in_system(robot: PlacedRobot, joints: tuple[str, ...]) -> list[str]:
        return [joint if alone else f"{robot.name}/{joint}" for joint in joints]

    hold = [joint for p in robots for joint in in_system(p, p.given_joints)]
    driven = [joint for p in robots for joint in in_system(p, p.driven_joints)]
    q = system.assemble(
        np.concatenate([p.q for p in robots]), hold=hold if len(hold) < len(system.joints) else ()
    )
    v = _closed_velocity(system, q, np.concatenate([p.v for p in robots]), driven)
    return system, *system.project(q, v)


def _closed_velocity(
    system: System, q: np.ndarray, v: np.ndarray, driven: Sequence[str]
) -> np.ndarray:
    """v with Jc v = 0. Driven joints keep their values; the others have the least norm."""
    indices = [i for joint in driven for i in system.robot.joint(joint).coordinates]
    fixed = np.array(indices, dtype=int)
    rest = np.setdiff1d(np.arange(system.nv), fixed)
    Jc, out = system.constraint_jacobian(q), v.copy()
    out[rest] = -np.linalg.pinv(Jc[:, rest], rcond=1e-9) @ Jc[:, fixed] @ v[fixed]
    return out


def _controller(
    top: Table,
    system: Robot | System,
    q0: np.ndarray,
    motors: dict[str, Any],
    planned: SceneProblem | None,
) -> TorqueLaw | None:
    if "controller" not in top:
        return None
    row = top.table("controller")
    kind = row.text("kind", among=tuple(CONTROLLERS))
    if kind == "mpc" and planned is None:
        row.fail("kind", "mpc solves a problem, and there is none", "add [optimal_control]")
    if kind == "mpc":
        assert planned is not None
        law = planned.mpc(row)
    else:
        law = controller(kind, row, system, q0, motors)
    row.reject_unknown()
    return law
