"""The configuration of a study, read from TOML or from the same keys in Python.

robot = "ur5"               or scene = "four_bar"
motions, seed, chunk        number of motions; random seed; motions computed and written at once
duration, dt, method, hold, damping, friction, springs, effort, limits, actuated, passive
                            as in `pp.rollout`
[ground], contacts          as in scenes; a robot whose place is not given stands on the ground
[start] q, v                initial state: all coordinates, or { joint = value }
[controller] kind, kp, kd, gravity
                            none, hold, pd, computed
[vary]                      see `parameter_variation.py`
[keep] every, quantiles     steps between stored samples (0: none); quantiles of the report
[fail] limits, speed        failures besides divergence, checked after every step
[sensors.NAME]              see `study_sensors.py`
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.text import shown
from psiphi._util.validate import robot_of
from psiphi.apps.scenes.scene_contacts import read_ground, start_on_ground
from psiphi.apps.scenes.scene_controllers import (
    DEFAULT_GAINS,
    LAWS_WITH_GAINS,
    PATH_FREE_LAWS,
    TorqueLaw,
)
from psiphi.apps.scenes.scene_file import load as load_scene
from psiphi.apps.scenes.scene_robots import joint_coordinates, robot_from_table
from psiphi.apps.scenes.toml_table import Table, read_toml
from psiphi.apps.studies.parameter_variation import Variation, read_variations
from psiphi.apps.studies.study_sensors import StudySensor, read_sensors, sensor_values
from psiphi.apps.viewer.recorded_motion import rest_configuration
from psiphi.model.contact.ground import Ground
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.sensors.sensor_models import Sensor
from psiphi.simulation.start_checks import step_count, step_size

StudySource: TypeAlias = str | os.PathLike[str] | Mapping[str, object] | Robot | System

CHUNK = 8192  # motions; about one second on one core
CHUNK_MULTIPLE = 32  # the default chunk is a multiple of this
ROLLOUT_OPTIONS = (
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
MAX_MOTIONS = 10**12  # motions
MAX_DEPTH = 8  # levels of nested tables and lists


@dataclass(frozen=True)
class StudyLaw:
    """The controller of a study, as in scenes; gains in 1/s^2 and 1/s."""

    kind: str = "none"
    kp: float = DEFAULT_GAINS["kp"]
    kd: float = DEFAULT_GAINS["kd"]
    gravity: bool = True


@dataclass(frozen=True)
class StudyConfig:
    """The configuration of a study. `spec` is all of it as JSON values."""

    title: str
    system: Robot | System
    q0: np.ndarray
    v0: np.ndarray
    tau: TorqueLaw | None  # of a scene
    law: StudyLaw
    motions: int
    seed: int
    chunk: int
    steps: int
    dt: float
    options: dict[str, Any]
    ground: Ground | None
    starts_on_ground: bool  # the base is moved onto the ground, for each motion
    variations: tuple[Variation, ...]
    every: int
    quantiles: tuple[float, ...]
    fail_limits: bool
    fail_speed: float
    spec: dict[str, Any]
    sensors: tuple[StudySensor, ...] = ()

    @property
    def robot(self) -> Robot:
        return robot_of(self.system)

    @property
    def chunks(self) -> int:
        return -(-self.motions // self.chunk)

    @property
    def samples(self) -> int:
        """Stored states per motion, including the first; 0 if samples are not stored."""
        return 1 + self.steps // self.every if self.every else 0

    def numbers(self, chunk: int) -> np.ndarray:
        """The motion numbers of a chunk."""
        return np.arange(chunk * self.chunk, min(self.motions, (chunk + 1) * self.chunk))


def read_study(source: StudySource, changes: Mapping[str, object]) -> StudyConfig:
    """Read a TOML file, a dict of its keys, or a robot or system; `changes` are further keys."""
    folder = Path()
    if isinstance(source, Robot | System):
        top = Table("pp.study", "", _toml_values("the study", {"robot": source, **changes}))
    elif isinstance(source, Mapping):
        top = Table("pp.study", "", _toml_values("the study", {**source, **changes}))
    elif isinstance(source, str | os.PathLike):
        top, folder = read_toml(source, "study"), Path(os.fsdecode(source)).parent
        top.values.update(_toml_values("the study", dict(changes)))
    else:
        raise StateError(
            f"the study is {shown(source)}, expected a TOML file, a dict of its keys, or a robot",
            'pp.study("study.toml"), or pp.study(robot, motions=1000, duration=1.0, vary={...})',
        )
    config = _read_config(top, folder)
    top.reject_unknown()
    return config


def _toml_values(name: str, value: Any, depth: int = 0) -> Any:
    """Python values as TOML values: arrays become lists."""
    if depth > MAX_DEPTH:
        raise StateError(
            f"{name} has too deeply nested lists or tables",
            "use at most three levels",
        )
    if isinstance(value, Mapping):
        if invalid := [key for key in value if not isinstance(key, str)]:
            raise StateError(
                f"{name} has the key {shown(invalid[0])}, expected text",
                "docs/studies.md lists the keys",
            )
        return {key: _toml_values(key, x, depth + 1) for key, x in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Sensor):
        return _toml_values(name, sensor_values(value), depth + 1)
    if isinstance(value, Ground):
        given = {field.name: getattr(value, field.name) for field in fields(Ground)}
        present = {key: x for key, x in given.items() if x is not None}
        return _toml_values(name, present, depth + 1)
    return (
        [_toml_values(name, x, depth + 1) for x in value]
        if isinstance(value, list | tuple)
        else value
    )


def _read_config(top: Table, folder: Path) -> StudyConfig:
    system, q0, v0, tau, defaults, scene, ground, on_ground = _read_system(top, folder)
    robot = robot_of(system)
    motions, seed = (
        _integer(top, "motions", 1, MAX_MOTIONS),
        _integer(top, "seed", 0, (1 << 64) - 1, 0),
    )
    chunk = _integer(
        top,
        "chunk",
        1,
        MAX_MOTIONS,
        min(CHUNK, CHUNK_MULTIPLE * math.ceil(motions / CHUNK_MULTIPLE / 8)),
    )
    dt = step_size(top.number("dt", defaults.get("dt", 1e-3), 0.0))
    duration = top.number("duration", defaults.get("duration", 1.0), 0.0)
    try:
        steps = step_count(duration, dt)
    except Error as error:
        top.fail("duration", error.cause, error.remedy)
    if not steps:
        top.fail(
            "duration", f"{duration:g} is shorter than one step of {dt:g}", "use a longer duration"
        )
    options = {
        key: top.get(key, defaults.get(key))
        for key in ROLLOUT_OPTIONS
        if key in top or key in defaults
    }
    law = _law(top, "scene" in top)
    at_start = {"q": q0, "v": v0, "kp": law.kp, "kd": law.kd}
    at_start |= {} if ground is None else {"ground_friction": ground.friction}
    variations = read_variations(top.table("vary", {}), system, law.kind, options, at_start)
    keep, fail = top.table("keep", {}), top.table("fail", {})
    every = _integer(keep, "every", 0, steps, 0)
    if every and steps % every:
        keep.fail(
            "every",
            f"is {every}, and {steps} steps are not a multiple of it",
            f"use a divisor of {steps}",
        )
    levels = keep.numbers("quantiles", None, [0.05, 0.25, 0.5, 0.75, 0.95])
    if not levels or not all(0.0 <= x <= 1.0 for x in levels):
        keep.fail(
            "quantiles",
            f"is {shown(levels)}, expected numbers from 0 to 1",
            "write quantiles = [0.05, 0.5, 0.95]",
        )
    limits, speed = fail.flag("limits", False), fail.number("speed", math.inf, 0.0)
    keep.reject_unknown()
    fail.reject_unknown()
    contacts = {"contacts": "hold" if ground is None else ground}
    sensors = read_sensors(top, system, (q0, v0), (steps, dt), {**options, **contacts})
    title = top.text("title", robot.name)
    numbers = {"motions": motions, "seed": seed, "chunk": chunk, "dt": dt, "steps": steps}
    resolved = {"scene": dict(scene), "vary": [astuple(x) for x in variations]}
    spec = _spec(top, system, q0, v0, resolved | numbers, ground is not None)
    return StudyConfig(
        title=title,
        system=system,
        q0=q0,
        v0=v0,
        tau=tau,
        law=law,
        motions=motions,
        seed=seed,
        chunk=chunk,
        steps=steps,
        dt=dt,
        options=options,
        ground=ground,
        starts_on_ground=on_ground,
        variations=variations,
        every=every,
        quantiles=tuple(sorted(levels)),
        fail_limits=limits,
        fail_speed=speed,
        spec=spec,
        sensors=sensors,
    )


class StudySystem(NamedTuple):
    """The system of a study with its start; a robot has no torque, options and scene values."""

    system: Robot | System
    q0: np.ndarray
    v0: np.ndarray
    tau: TorqueLaw | None = None
    options: Mapping[str, Any] = MappingProxyType({})  # of `pp.rollout`
    scene: Mapping[str, Any] = MappingProxyType({})
    ground: Ground | None = None
    on_ground: bool = False  # whether the base was moved onto the ground


def _read_system(top: Table, folder: Path) -> StudySystem:
    """The system of the keys `scene`, or `robot`, `base`, `contacts`, `ground` and `start`."""
    if "scene" in top and "robot" in top:
        top.fail("scene", "contradicts robot", "use one of them")
    if "scene" in top:
        name = top.text("scene")
        setup = load_scene(folder / name if name.endswith(".toml") else name)
        options = {key: x for key, x in setup.options.items() if key != "every"}
        contacts = options.pop("contacts", "hold")
        ground = contacts if isinstance(contacts, Ground) else None
        if "ground" in top:
            top.fail("ground", "a scene has its own ground", "write it into the scene file")
        if ground is None and contacts != "hold":
            top.fail(
                "scene",
                "its contacts can open, but rollouts keep contacts closed",
                'write contacts = "hold" into the scene file',
            )
        row = top.table("start", {})
        if row.values:
            top.fail("start", "a scene has its own start", "write it into the scene file")
        scene = {key: x for key, x in setup.file_values.items() if key != "title"}
        start = setup.system, setup.q0, setup.v0, setup.tau
        return StudySystem(*start, options, scene, ground, setup.on_ground)
    robot_value = top.get("robot")
    system = (
        robot_value if isinstance(robot_value, Robot | System) else robot_from_table(top, folder)
    )
    robot = robot_of(system)
    if robot.freed is not None:
        top.fail(
            "robot",
            f"parameters of {robot.name} are free already",
            "pass the original robot, and list the parameters in [vary]",
        )
    row = top.table("start", {})
    start = (
        rest_configuration(robot)
        if "q" in row or not isinstance(system, System)
        else system.assemble(rest_configuration(robot))
    )
    q, given = joint_coordinates(row, "q", robot, start)
    v, _ = joint_coordinates(row, "v", robot, np.zeros(robot.nv))
    row.reject_unknown()
    ground, placed = read_ground(top), False
    if ground is not None:
        q, placed = start_on_ground(top, system, q, ground, given)
    return StudySystem(system, q, v, ground=ground, on_ground=placed)


def _law(top: Table, has_scene: bool) -> StudyLaw:
    if "controller" not in top:
        return StudyLaw()
    row = top.table("controller")
    if has_scene:
        top.fail("controller", "a scene has its own controller", "write it into the scene file")
    kind = row.text("kind", among=PATH_FREE_LAWS)
    options: dict[str, Any] = (
        {name: _gain(row, name, usual) for name, usual in DEFAULT_GAINS.items()}
        if kind in LAWS_WITH_GAINS
        else {}
    )
    if kind == "pd":
        options["gravity"] = row.flag("gravity", True)
    row.reject_unknown()
    return StudyLaw(kind, **options)


def _gain(row: Table, name: str, usual: float) -> float:
    value = row.number(name, usual)
    if value < 0.0:
        row.fail(name, f"is {value:g}, expected a gain of at least 0", f"write {name} = {usual:g}")
    return value


def _integer(table: Table, key: str, least: int, most: int, *default: int) -> int:
    value = table.get(key, *default)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1e6
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        table.fail(
            key,
            f"is {shown(value)}, expected an integer from {least} to {most}",
            f"write {key} = {least}",
        )
    return value


def _spec(
    top: Table,
    system: Robot | System,
    q0: np.ndarray,
    v0: np.ndarray,
    read: dict[str, Any],
    has_ground: bool,
) -> dict[str, Any]:
    """The configuration as JSON values, so that two studies can be compared.

    `read` holds resolved values that replace those of the keys: the variations in order, since
    grids depend on it, and the values of the scene file.
    """
    robot = robot_of(system)
    values = {
        key: x
        for key, x in top.values.items()
        if key in top.known_keys and key not in ("title", "base")
    }
    identity = [robot.digest, repr(getattr(system, "key", "")), q0.tolist(), v0.tolist()]
    identity += [repr(robot.contact_points)] if has_ground else []
    identity += [repr(robot.contact_pairs)] if has_ground and robot.contact_pairs else []
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    spec = {**values, "robot": robot.name, "robot and start": digest, **read}
    return json.loads(json.dumps(spec, sort_keys=True, default=shown))
