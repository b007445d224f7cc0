"""The table [vary]: which parameters vary over the motions.

Each key, called a word here, has one distribution for all its links or joints, or a table by name.

    q            joint coordinates of joints with one coordinate
    offset       initial configuration q0 (+) offset, for any joint
    v            joint velocities
    mass         kg; the centre of mass and the inertia about it do not change
    inertia      a factor of mass and moments of a link; always relative
    com          shift of the centre of mass, x y z in link axes
    armature, damping, stiffness     of joints
    kp, kd       gains of the controller, for all joints or by joint
    ground_friction                  of the ground, at all contacts

Names may be patterns ("wrist_*"). Every number has its own random stream, named after its label.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import Error
from psiphi._util.text import shown
from psiphi._util.validate import matching_names, robot_of
from psiphi.apps.scenes.scene_controllers import DEFAULT_GAINS, LAWS_WITH_GAINS
from psiphi.apps.scenes.toml_table import Table
from psiphi.apps.studies.distributions import Distribution, is_distribution, read_distribution
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot

STATE_WORDS = ("q", "offset", "v")
LINK_WORDS = ("mass", "inertia", "com")
JOINT_WORDS = ("armature", "damping", "stiffness")
GROUND_FRICTION = "ground_friction"
WORDS = (*STATE_WORDS, *LINK_WORDS, *JOINT_WORDS, *DEFAULT_GAINS, GROUND_FRICTION)
REQUIRED_OPTIONS = {
    "damping": "damping",
    "stiffness": "springs",
}  # applied only if this key is true
ADDITIVE = ("offset", "com")  # samples are added, so they cannot be relative


@dataclass(frozen=True)
class Variation:
    """One varied number: entry `index` of `word` (a key of [vary]) of the joint or link `name`."""

    word: str
    name: str
    index: int
    distribution: Distribution
    stride: int = 1  # of a grid: count of consecutive motions with the same number

    @property
    def label(self) -> str:
        return f"{self.word}:{self.name}:{self.index}"

    def draw(self, seed: int, numbers: np.ndarray) -> np.ndarray:
        """The sample of each motion."""
        first = self.stride if self.distribution.is_grid else seed
        return self.distribution.draw(first, self.label, numbers)


def read_variations(
    table: Table,
    system: Robot | System,
    law: str,
    options: dict[str, Any],
    start: dict[str, Any],
) -> tuple[Variation, ...]:
    """Read the table [vary]. Its order is kept, since grids depend on it.

    `start`: nominal q, v, kp, kd, and ground_friction if there is a ground.
    """
    robot = robot_of(system)
    found: dict[str, Variation] = {}
    keys: dict[tuple[str, str], tuple[Table, list[Variation]]] = {}
    for word in sorted((word for word in WORDS if word in table), key=list(table.values).index):
        _check_word(table, word, system, law, options)
        if word == GROUND_FRICTION and word not in start:
            table.fail(word, "there is no ground", "add the table [ground]")
        for name, key, row in _named_rows(table, word, robot):
            distribution = read_distribution(row, key)
            if distribution.relative and word in ADDITIVE:
                row.fail(key, f"{word} is added and cannot be relative", "remove relative")
            each = [
                Variation(word, name, index, distribution)
                for index in _coordinates(robot, word, name)
            ]
            found |= {one.label: one for one in each}
            keys.setdefault((word, key), (row, []))[1].extend(each)
    table.reject_unknown()
    for (_, key), (row, each) in keys.items():
        _check_effect(row, key, each, found, robot, start)
    clash = [x for x in found.values() if x.word == "q" and f"offset:{x.name}:0" in found]
    if clash:
        table.fail("offset", f"and q both vary {clash[0].name!r}", "vary one of them")
    return tuple(_with_strides(list(found.values())))


def _check_effect(
    row: Table, key: str, each: list[Variation], found: dict, robot: Robot, start: dict[str, Any]
) -> None:
    """Reject a key without effect: later keys replace it, or it scales zeros."""
    if all(found[one.label] is not one for one in each):
        row.fail(
            key,
            "has no effect: later keys match the same names",
            "write patterns first and exceptions below them",
        )
    if each[0].distribution.relative and not any(_nominal(robot, one, start) for one in each):
        cause = f"is relative to the nominal {each[0].word}, which is 0, and has no effect"
        row.fail(key, cause, "remove relative")


def _nominal(robot: Robot, one: Variation, start: dict[str, Any]) -> float:
    """The nominal value, which a relative sample multiplies."""
    if one.word in LINK_WORDS:
        return next(body.mass for body in robot.bodies if body.name == one.name)
    if one.word in JOINT_WORDS:
        return float(getattr(robot.joint(one.name), one.word)[one.index])
    nominal = start[one.word]
    if one.word in DEFAULT_GAINS:
        return nominal
    if one.word == GROUND_FRICTION:
        return float(np.max(nominal))
    joint = robot.joint(one.name)
    return float(nominal[(joint.q_slice if one.word == "q" else joint.v_slice).start + one.index])


def _with_strides(each: list[Variation]) -> Iterator[Variation]:
    stride = 1
    for one in each:
        grid = one.distribution.is_grid
        yield Variation(one.word, one.name, one.index, one.distribution, stride if grid else 1)
        stride *= len(one.distribution.numbers) if grid else 1


def _check_word(
    table: Table, word: str, system: Robot | System, law: str, options: dict[str, Any]
) -> None:
    if word in REQUIRED_OPTIONS and options.get(REQUIRED_OPTIONS[word]) is not True:
        table.fail(
            word,
            f"joint {word} is not applied, so its variation has no effect",
            f"add {REQUIRED_OPTIONS[word]} = true",
        )
    if word in DEFAULT_GAINS and law not in LAWS_WITH_GAINS:
        table.fail(
            word,
            f"the controller {law!r} has no gains",
            'add [controller] with kind = "pd" or "computed"',
        )
    if word == "q" and isinstance(system, System):
        table.fail(
            word,
            "q of a closed chain must satisfy its constraints",
            "vary offset: the state is projected onto the constraints",
        )


def _named_rows(table: Table, word: str, robot: Robot) -> Iterator[tuple[str, str, Table]]:
    """(name, key, table) for each link or joint of a word. One distribution is for all names."""
    known = _names(robot, word)
    if word in (*DEFAULT_GAINS, GROUND_FRICTION) and is_distribution(table.get(word)):
        yield "", word, table
        return
    if word == GROUND_FRICTION:
        value = shown(table.get(word))
        table.fail(word, f"is {value}, expected a distribution", "{ uniform = [0.4, 1.0] }")
    if is_distribution(table.get(word)):
        if not known:
            table.fail(word, f"{robot.name} has no joint or link with this parameter", "remove it")
        for name in known:
            yield name, word, table
        return
    row = table.table(word)
    for pattern in row.values:
        row.known_keys.append(pattern)
        try:
            names = matching_names(
                "link" if word in LINK_WORDS else "joint", pattern, known, robot.name
            )
        except Error as error:
            row.fail(pattern, error.cause, error.remedy)
        for name in names:
            yield name, pattern, row


def _names(robot: Robot, word: str) -> list[str]:
    if word in LINK_WORDS:
        return [body.name for body in robot.bodies]
    return [
        joint.name for joint in robot.joints if word != "q" or joint.row.nq == joint.row.nv == 1
    ]


def _coordinates(robot: Robot, word: str, name: str) -> range:
    """The entries of a word for one joint or link."""
    if word in ("mass", "inertia", GROUND_FRICTION) or (word in DEFAULT_GAINS and not name):
        return range(1)
    return range(3) if word == "com" else range(robot.joint(name).row.nv)
