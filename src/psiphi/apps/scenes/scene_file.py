"""From a scene file to a system that can be simulated: robots, the object they hold, loops, the start, the controller."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import path
from psiphi.apps.scenes.scene_controllers import CONTROLLERS, controller
from psiphi.apps.scenes.scene_robots import PlacedRobot, pose, read_placed
from psiphi.apps.scenes.toml_table import Table, read_toml
from psiphi.apps.viewer import html
from psiphi.model.loops.closure_types import CONTACTS, LOOPS
from psiphi.model.model import Body, Pose
from psiphi.model.spatial.rotations import quaternions
from psiphi.robot.mechanisms.grasp_and_connect import Contact, Loop, connect, grasp
from psiphi.robot.robot import Robot
from psiphi.simulation.contact.contact_events import CONTACT_MODES
from psiphi.simulation.simulate.simulate import read_start, simulate
from psiphi.simulation.trajectory.trajectory import Trajectory

DATA = files("psiphi.apps.scenes") / "data"
CHECKED_OPTIONS = (
    "q0",
    "v0",
    "duration",
    "dt",
    "method",
    "every",
    "limits",
)  # options that `simulate` reads before all else


@dataclass(frozen=True, eq=False)
class SceneSetup:
    """A scene, built: `run()` simulates it, other `simulate` options may be given or overridden."""

    title: str
    system: Any
    q0: np.ndarray
    v0: np.ndarray
    tau: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    file_values: dict[str, Any] = field(default_factory=dict)  # the keys of its file

    def run(self, **options: Any) -> Trajectory:
        """The simulated motion."""
        return simulate(self.system, **self._simulate_options(options))

    def html(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write a live page: the scene's system runs in it from the scene's start, and can be pulled (`pp.viewer.html`)."""
        return html(self, path, live=True, **options)

    def check(self, **options: Any) -> None:
        """Refuse a start, a duration or steps that `run` would refuse; nothing is computed."""
        own = self._simulate_options(options)
        read_start(self.system, **{name: own[name] for name in CHECKED_OPTIONS if name in own})

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
    """The scene of a file, or the bundled one of that name."""
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
    motors = {
        key: own for key in ("actuated", "passive") if (own := _joint_names(top, key)) is not None
    }
    system, q0, v0 = _system(top, title, robots, motors)
    plain = motors if isinstance(system, Robot) else {}  # a closed chain has them itself
    tau = _controller(top, system, q0, plain)
    options = _simulation_options(top)
    _check_springs_act(top, options["springs"])
    top.reject_unknown()
    return SceneSetup(title, system, q0, v0, tau, options | plain, top.values)


def _joint_names(top: Table, key: str) -> list[str] | None:
    """Names of joints."""
    value = top.get(key, None)
    if value is not None and (
        not isinstance(value, list) or not all(isinstance(name, str) for name in value)
    ):
        top.fail(key, f"is {shown(value)}, expected names of joints", f'write {key} = ["joint"]')
    return value


def _check_springs_act(top: Table, act: bool) -> None:
    """Springs that are given and do not act."""
    for row in (row for _, row in top.table("robots").items()):
        for key in () if act else ("springs", "elastic"):
            if key in row:
                row.fail(
                    key,
                    "are there, and springs do not act",
                    "write springs = true at the top of the file",
                )


def _simulation_options(top: Table) -> dict[str, Any]:
    out: dict[str, Any] = {
        "duration": top.number("duration", 5.0, 0.0),
        "dt": top.number("dt", 1e-3, 0.0),
    }
    out["method"] = top.text("method", "rk4")
    out["limits"] = top.text("limits", "ignore")
    if "contacts" in top:
        out["contacts"] = top.text("contacts", "hold", CONTACT_MODES)
    every = top.number("every", 1.0, 0.0)
    if every % 1.0:
        top.fail("every", f"is {every:g}, expected a whole number", "1 keeps all steps")
    out["every"] = int(every)
    for key in ("damping", "friction", "springs", "hold"):
        out[key] = top.flag(key, False)
    return out


def _system(
    top: Table, title: str, robots: list[PlacedRobot], motors: dict
) -> tuple[Any, np.ndarray, np.ndarray]:
    grasps, loops = top.tables("grasps"), top.tables("loops")
    if grasps and loops:
        top.fail("loops", "stands beside grasps", "write one scene for each")
    if grasps:
        return _grasped_system(top, title, robots, grasps, motors)
    if "object" in top:
        top.fail("object", "is there, but nothing holds it", "add [[grasps]] with robot and frame")
    if loops:
        return _loop_system(title, robots, loops, motors)
    if len(robots) > 1:
        top.fail(
            "robots",
            f"there are {len(robots)}, and nothing joins them",
            "add [[grasps]] and [object], or [[loops]]",
        )
    only = robots[0]
    if np.any(only.base.translation) or not np.allclose(only.base.rotation, np.eye(3)):
        top.fail(
            f"robots.{only.name}",
            "a single robot stands at the world's origin",
            "leave out at and rpy",
        )
    return only.robot, only.q, only.v


def _grasped_system(
    top: Table, title: str, robots: list[PlacedRobot], grasps: list[Table], motors: dict
) -> tuple:
    row = top.table("object")
    body, where = _object_body(row), pose(row)
    row.reject_unknown()
    by_name = {robot.name: robot for robot in robots}
    frames: dict[str, list[str]] = {robot.name: [] for robot in robots}
    at: dict[tuple[str, str], Pose] = {}
    contacts: dict[tuple[str, str], Contact] = {}
    for grip in grasps:
        name = grip.text("robot", among=tuple(by_name))
        arm = by_name[name]
        frame = grip.text("frame", among=tuple(arm.robot.frames))
        if (name, frame) in at:
            grip.fail(
                "frame",
                f"is {frame!r}, by which {name!r} holds the object already",
                "name a hand once",
            )
        there = arm.frame_pose(frame)
        at[name, frame] = pose(grip) if "at" in grip or "rpy" in grip else where.inv @ there
        contacts[name, frame] = _contact(grip)
        frames[name].append(frame)
        grip.reject_unknown()
    idle = [name for name, own in frames.items() if not own]
    if idle:
        top.fail(
            "grasps", f"robot {idle[0]!r} holds nothing", "add a grasp for it, or leave it out"
        )
    hands = [(robot.name, frame) for robot in robots for frame in frames[robot.name]]
    arms = [(robot.renamed(), robot.base, tuple(frames[robot.name])) for robot in robots]
    cell = grasp(
        arms,
        body,
        [at[hand] for hand in hands],
        [contacts[hand] for hand in hands],
        name=title,
        **motors,
    )
    free = np.concatenate([where.translation, quaternions(where.rotation)])
    q = cell.assemble(
        np.concatenate([*(robot.q for robot in robots), free]), hold=(cell.robot.joints[-1].name,)
    )
    v = np.concatenate([*(robot.v for robot in robots), np.zeros(6)])
    return cell, *cell.project(q, v)


def _object_body(row: Table) -> Body:
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
    title: str, robots: list[PlacedRobot], loops: list[Table], motors: dict
) -> tuple[Any, np.ndarray, np.ndarray]:
    wanted = []
    for row in loops:
        kind, first, second = row.text("kind", among=LOOPS), row.text("first"), row.text("second")
        axis, axis2 = (row.numbers(key, 3, None) for key in ("axis", "axis2"))
        friction = row.number("friction", None, -1e-300)
        more = dict(
            length=row.number("length", None, 0.0), name=row.text("name", ""), friction=friction
        )
        wanted.append(
            Loop(
                kind, first, second, axis, axis2, **more, restitution=row.number("restitution", 0.0)
            )
        )
        row.reject_unknown()
    alone = len(robots) == 1
    system = connect(
        robots[0].robot if alone else {p.name: (p.robot, p.base) for p in robots},
        wanted,
        name=title,
        **motors,
    )

    def named(which: str) -> tuple[str, ...]:
        return tuple(
            joint if alone else f"{p.name}/{joint}" for p in robots for joint in getattr(p, which)
        )

    held = named("given_joints")
    q = system.assemble(
        np.concatenate([p.q for p in robots]), hold=held if len(held) < len(system.joints) else ()
    )
    return system, *system.project(
        q, _closed_velocity(system, q, np.concatenate([p.v for p in robots]), named("driven_joints"))
    )


def _closed_velocity(
    system: Any, q: np.ndarray, v: np.ndarray, driven: tuple[str, ...]
) -> np.ndarray:
    """Velocities that keep the loops closed while the driven joints have theirs: the others, least, from Jc v = 0."""
    own = np.array([i for name in driven for i in system.robot.joint(name).coordinates], dtype=int)
    rest = np.setdiff1d(np.arange(system.nv), own)
    Jc, out = system.constraint_jacobian(q), v.copy()
    out[rest] = -np.linalg.pinv(Jc[:, rest], rcond=1e-9) @ Jc[:, own] @ v[own]
    return out


def _controller(top: Table, system: Any, q0: np.ndarray, motors: dict) -> Any:
    if "controller" not in top:
        return None
    row = top.table("controller")
    kind = row.text("kind", among=tuple(CONTROLLERS))
    law = controller(kind, row, system, q0, motors)
    row.reject_unknown()
    return law
