"""What is asked of a study, read from TOML or from the same keys in Python: what moves, how, what varies, what is kept.

robot = "ur5"               or scene = "four_bar"
motions, seed, chunk        how many; their random numbers; how many are computed, written and lost at once
duration, dt, method, hold, damping, friction, springs, effort, limits, actuated, passive       as in `pp.rollout`
[start] q, v                where motions begin, all coordinates or { joint = value }
[controller] kind, kp, kd, gravity        none, hold, pd, computed
[vary]                      see `parameter_variation.py`
[keep] every, quantiles     samples every so many steps (0: none); the quantiles a report shows
[fail] limits, speed        what counts as a failure, besides divergence: looked at after every step
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.text import shown
from psiphi._util.validate import robot_of
from psiphi.apps.scenes.scene_controllers import GAINED, GAINS, LAWS
from psiphi.apps.scenes.scene_file import load as load_scene
from psiphi.apps.scenes.scene_robots import coordinates, robot_from_table
from psiphi.apps.scenes.toml_table import Table, read
from psiphi.apps.studies.parameter_variation import Variation, read_variations
from psiphi.apps.viewer.recorded_motion import resting
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.start_checks import step_count, step_size

CHUNK = 8192  # motions: about a second of one core
ROWS = 32  # chunks hold a multiple of so many
ROLLED = (
    "method",
    "hold",
    "damping",
    "friction",
    "springs",
    "effort",
    "limits",
    "actuated",
    "passive",
)
LARGEST = 10**12  # motions
DEEPEST = 8  # levels of tables and lists


@dataclass(frozen=True)
class StudyLaw:
    """The controller of a study: as a scene's, its gains in 1/s^2 and 1/s."""

    kind: str = "none"
    kp: float = GAINS["kp"]
    kd: float = GAINS["kd"]
    gravity: bool = True


@dataclass(frozen=True)
class StudyConfig:
    """A study, as it was asked for; `spec` says all of it in JSON."""

    title: str
    system: Any
    q0: np.ndarray
    v0: np.ndarray
    tau: Any  # of a scene
    law: StudyLaw
    motions: int
    seed: int
    chunk: int
    steps: int
    dt: float
    options: dict[str, Any]
    variations: tuple[Variation, ...]
    every: int
    quantiles: tuple[float, ...]
    fail_limits: bool
    fail_speed: float
    spec: dict[str, Any]

    @property
    def robot(self) -> Robot:
        return robot_of(self.system)

    @property
    def chunks(self) -> int:
        return -(-self.motions // self.chunk)

    @property
    def samples(self) -> int:
        """How many states of each motion are kept, with the first; 0 when none."""
        return 1 + self.steps // self.every if self.every else 0

    def numbers(self, chunk: int) -> np.ndarray:
        """The motions of a chunk."""
        return np.arange(chunk * self.chunk, min(self.motions, (chunk + 1) * self.chunk))


def read_study(source: Any, changes: Mapping[str, Any]) -> StudyConfig:
    """The study of a TOML file, of the same keys in a dict, or of a robot or system with the keys in `changes`."""
    folder = Path()
    if isinstance(source, Robot | System):
        top = Table("pp.study", "", _plain("the study", {"robot": source, **changes}))
    elif isinstance(source, Mapping):
        top = Table("pp.study", "", _plain("the study", {**source, **changes}))
    elif isinstance(source, str | os.PathLike):
        top, folder = read(source, "study"), Path(os.fsdecode(source)).parent
        top.values.update(_plain("the study", dict(changes)))
    else:
        cause = (
            f"the study is {shown(source)}, expected a TOML file, a dict of its keys, or a robot"
        )
        raise StateError(
            cause,
            'pp.study("study.toml"), or pp.study(robot, motions=1000, duration=1.0, vary={...})',
        )
    asked = _asked(top, folder)
    top.done()
    return asked


def _plain(name: str, value: Any, depth: int = 0) -> Any:
    """Python's values as TOML's: arrays become lists."""
    if depth > DEEPEST:
        raise StateError(
            f"{name} holds lists or tables that lie too deep in each other",
            "a study has two or three levels",
        )
    if isinstance(value, Mapping):
        if strange := [key for key in value if not isinstance(key, str)]:
            raise StateError(
                f"{name} has the key {shown(strange[0])}, expected text",
                "name it as in docs/studies.md",
            )
        return {key: _plain(key, x, depth + 1) for key, x in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [_plain(name, x, depth + 1) for x in value] if isinstance(value, list | tuple) else value


def _asked(top: Table, folder: Path) -> StudyConfig:
    system, q0, v0, tau, given, scene = _moved(top, folder)
    robot = robot_of(system)
    motions, seed = _whole(top, "motions", 1, LARGEST), _whole(top, "seed", 0, (1 << 64) - 1, 0)
    chunk = _whole(top, "chunk", 1, LARGEST, min(CHUNK, ROWS * math.ceil(motions / ROWS / 8)))
    dt = step_size(top.number("dt", given.get("dt", 1e-3), 0.0))
    duration = top.number("duration", given.get("duration", 1.0), 0.0)
    try:
        steps = step_count(duration, dt)
    except Error as error:
        top.fail("duration", error.cause, error.remedy)
    if not steps:
        top.fail("duration", f"{duration:g} is no step of {dt:g}", "give a longer one")
    options = {key: top.get(key, given.get(key)) for key in ROLLED if key in top or key in given}
    law = _law(top, "scene" in top)
    at_start = {"q": q0, "v": v0, "kp": law.kp, "kd": law.kd}
    variations = read_variations(top.table("vary", {}), system, law.kind, options, at_start)
    keep, fail = top.table("keep", {}), top.table("fail", {})
    every = _whole(keep, "every", 0, steps, 0)
    if every and steps % every:
        keep.fail(
            "every",
            f"is {every}, and {steps} steps are no multiple of it",
            f"give a divisor of {steps}",
        )
    levels = keep.numbers("quantiles", None, [0.05, 0.25, 0.5, 0.75, 0.95])
    if not levels or not all(0.0 <= x <= 1.0 for x in levels):
        keep.fail(
            "quantiles",
            f"is {shown(levels)}, expected numbers from 0 to 1",
            "write quantiles = [0.05, 0.5, 0.95]",
        )
    limits, speed = fail.flag("limits", False), fail.number("speed", math.inf, 0.0)
    keep.done()
    fail.done()
    title = top.text("title", robot.name)
    numbers = {"motions": motions, "seed": seed, "chunk": chunk, "dt": dt, "steps": steps}
    told = {"scene": scene, "vary": [astuple(x) for x in variations]}
    spec = _spec(top, system, q0, v0, told | numbers)
    return StudyConfig(
        title, system, q0, v0, tau, law, motions, seed, chunk, steps, dt, options, variations, every, tuple(sorted(levels)),
        limits, speed, spec,
    )  # fmt: skip


def _moved(
    top: Table, folder: Path
) -> tuple[Any, np.ndarray, np.ndarray, Any, dict[str, Any], dict[str, Any]]:
    """What moves, from where, what drives it and how, where a scene says so; and all that the scene says."""
    if "scene" in top and "robot" in top:
        top.fail("scene", "stands beside robot", "name one of them")
    if "scene" in top:
        name = top.text("scene")
        case = load_scene(folder / name if name.endswith(".toml") else name)
        options = {key: x for key, x in case.options.items() if key != "every"}
        if options.pop("contacts", "hold") != "hold":
            top.fail(
                "scene",
                "its contacts open, and rollouts hold them",
                'write contacts = "hold" into it',
            )
        row = top.table("start", {})
        if row.values:
            top.fail("start", "stands beside a scene, which has its own", "write it into the scene")
        return (
            case.system,
            case.q0,
            case.v0,
            case.tau,
            options,
            {key: x for key, x in case.said.items() if key != "title"},
        )
    given = top.get("robot")
    system = given if isinstance(given, Robot | System) else robot_from_table(top, folder)
    robot = robot_of(system)
    if robot.freed is not None:
        top.fail(
            "robot",
            f"numbers of {robot.name} are free already",
            "give the robot itself, and name what varies in [vary]",
        )
    row = top.table("start", {})
    start = (
        resting(robot)
        if "q" in row or not isinstance(system, System)
        else system.assemble(resting(robot))
    )
    q, _ = coordinates(row, "q", robot, start)
    v, _ = coordinates(row, "v", robot, np.zeros(robot.nv))
    row.done()
    return system, q, v, None, {}, {}


def _law(top: Table, of_scene: bool) -> StudyLaw:
    if "controller" not in top:
        return StudyLaw()
    row = top.table("controller")
    if of_scene:
        top.fail(
            "controller", "stands beside a scene, which has its own", "write it into the scene"
        )
    kind = row.text("kind", among=LAWS)
    own: dict[str, Any] = (
        {name: _gain(row, name, usual) for name, usual in GAINS.items()} if kind in GAINED else {}
    )
    if kind == "pd":
        own["gravity"] = row.flag("gravity", True)
    row.done()
    return StudyLaw(kind, **own)


def _gain(row: Table, name: str, usual: float) -> float:
    value = row.number(name, usual)
    if value < 0.0:
        row.fail(name, f"is {value:g}, expected a gain of at least 0", f"write {name} = {usual:g}")
    return value


def _whole(table: Table, key: str, least: int, most: int, *default: int) -> int:
    value = table.get(key, *default)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1e6
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        table.fail(
            key,
            f"is {shown(value)}, expected a whole number from {least} to {most}",
            f"write {key} = {least}",
        )
    return value


def _spec(
    top: Table, system: Any, q0: np.ndarray, v0: np.ndarray, read: dict[str, Any]
) -> dict[str, Any]:
    """All of it as JSON: what two studies differ in is found by comparing. What was `read` of keys stands for them: what varies
    in its order, since grids go by that; a scene as its file says it, with its controller."""
    robot = robot_of(system)
    own = {
        key: x for key, x in top.values.items() if key in top.asked and key not in ("title", "base")
    }
    known = [robot.digest, repr(getattr(system, "key", "")), q0.tolist(), v0.tolist()]
    digest = hashlib.sha256(json.dumps(known).encode()).hexdigest()
    spec = {**own, "robot": robot.name, "robot and start": digest, **read}
    return json.loads(json.dumps(spec, sort_keys=True, default=shown))
