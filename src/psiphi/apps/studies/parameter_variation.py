"""What varies from motion to motion: words of [vary], each one distribution for all it can mean, or a table by name.

    q            joint coordinates, of joints with one; offset: turns and shifts from the start, q0 (+) offset, of any joint
    v            joint velocities
    mass         kg of links; the centre of mass and the inertia about it stay
    inertia      how much of everything a link has, mass and moments: always relative
    com          shifts of the centre of mass, x y z in link axes
    armature, damping, stiffness     of joints
    kp, kd       gains of the controller, one for all joints, or by joint

Names may be patterns ("wrist_*"). Every number is drawn in a stream of its own, named by its word and place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import Error
from psiphi._util.validate import robot_of
from psiphi.apps.scenes.scene_controllers import GAINED, GAINS
from psiphi.apps.scenes.toml_table import Table
from psiphi.apps.studies.distributions import Distribution, is_distribution, read_distribution
from psiphi.model.editing.name_patterns import matching_names
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot

STATE = ("q", "offset", "v")
OF_LINKS = ("mass", "inertia", "com")
OF_JOINTS = ("armature", "damping", "stiffness")
WORDS = (*STATE, *OF_LINKS, *OF_JOINTS, *GAINS)
ACTS = {"damping": "damping", "stiffness": "springs"}  # acts where this key is true
ADDED = ("offset", "com")  # drawn numbers are added: there is nothing to be relative to


@dataclass(frozen=True)
class Variation:
    """One number that varies: `word` of `name` (a joint or link), its coordinate `index` in what the word means."""

    word: str
    name: str
    index: int
    distribution: Distribution
    stride: int = 1  # of a grid: how many motions in a row share a number

    @property
    def label(self) -> str:
        return f"{self.word}:{self.name}:{self.index}"

    def draw(self, seed: int, numbers: np.ndarray) -> np.ndarray:
        """The number of each motion."""
        first = self.stride if self.distribution.is_grid else seed
        return self.distribution.draw(first, self.label, numbers)


def read_variations(
    table: Table, system: Any, law: str, options: dict[str, Any], start: dict[str, Any]
) -> tuple[Variation, ...]:
    """The table [vary], in its order: grids go by that. `start`: q, v, kp and kd where they do not vary."""
    robot = robot_of(system)
    found: dict[str, Variation] = {}
    keys: dict[tuple[str, str], tuple[Table, list[Variation]]] = {}
    for word in sorted((word for word in WORDS if word in table), key=list(table.values).index):
        _check_word(table, word, system, law, options)
        for name, key, row in _named(table, word, robot):
            distribution = read_distribution(row, key)
            if distribution.relative and word in ADDED:
                row.fail(key, f"{word} is added, and cannot be relative", "leave relative out")
            each = [
                Variation(word, name, index, distribution) for index in _places(robot, word, name)
            ]
            found |= {one.label: one for one in each}
            keys.setdefault((word, key), (row, []))[1].extend(each)
    table.done()
    for (_, key), (row, each) in keys.items():
        _check_acts(row, key, each, found, robot, start)
    clash = [x for x in found.values() if x.word == "q" and f"offset:{x.name}:0" in found]
    if clash:
        table.fail("offset", f"and q both vary {clash[0].name!r}", "name one of them")
    return tuple(_strided(list(found.values())))


def _check_acts(
    row: Table, key: str, each: list[Variation], found: dict, robot: Robot, start: dict[str, Any]
) -> None:
    """Refuse a key that changes nothing: keys below it name the same, or its factors are of zeros."""
    if all(found[one.label] is not one for one in each):
        row.fail(
            key,
            "varies nothing: keys below it name the same",
            "put patterns first, and what differs from them below",
        )
    if each[0].distribution.relative and not any(_own(robot, one, start) for one in each):
        cause = (
            f"is relative to the {each[0].word} there is, which is 0, and would vary for nothing"
        )
        row.fail(key, cause, "leave relative out")


def _own(robot: Robot, one: Variation, start: dict[str, Any]) -> float:
    """What a factor is of."""
    if one.word in OF_LINKS:
        return next(body.mass for body in robot.bodies if body.name == one.name)
    if one.word in OF_JOINTS:
        return float(getattr(robot.joint(one.name), one.word)[one.index])
    given = start[one.word]
    if one.word in GAINS:
        return given
    joint = robot.joint(one.name)
    return float(given[(joint.q_slice if one.word == "q" else joint.v_slice).start + one.index])


def _strided(each: list[Variation]) -> Iterator[Variation]:
    stride = 1
    for one in each:
        grid = one.distribution.is_grid
        yield Variation(one.word, one.name, one.index, one.distribution, stride if grid else 1)
        stride *= len(one.distribution.numbers) if grid else 1


def _check_word(table: Table, word: str, system: Any, law: str, options: dict[str, Any]) -> None:
    if word in ACTS and options.get(ACTS[word]) is not True:
        table.fail(
            word,
            f"the joints' own {word} does not act, and would vary for nothing",
            f"add {ACTS[word]} = true",
        )
    if word in GAINS and law not in GAINED:
        table.fail(
            word,
            f"the controller is {law!r}, which has no gains",
            'add [controller] with kind = "pd" or "computed"',
        )
    if word == "q" and isinstance(system, System):
        table.fail(
            word,
            "q of a closed chain has to keep its loops closed",
            "vary offset: the nearest state that keeps them is taken",
        )


def _named(table: Table, word: str, robot: Robot) -> Iterator[tuple[str, str, Table]]:
    """(name, key, table) of what a word varies; a distribution alone is of all names."""
    known = _known(robot, word)
    if word in GAINS and is_distribution(table.get(word)):
        yield "", word, table
        return
    if is_distribution(table.get(word)):
        if not known:
            table.fail(word, f"{robot.name} has nothing that varies so", "leave it out")
        for name in known:
            yield name, word, table
        return
    row = table.table(word)
    for pattern in row.values:
        row.asked.append(pattern)
        try:
            fitting = matching_names(
                "link" if word in OF_LINKS else "joint", pattern, known, robot.name
            )
        except Error as error:
            row.fail(pattern, error.cause, error.remedy)
        for name in fitting:
            yield name, pattern, row


def _known(robot: Robot, word: str) -> list[str]:
    if word in OF_LINKS:
        return [body.name for body in robot.bodies]
    return [
        joint.name for joint in robot.joints if word != "q" or joint.row.nq == joint.row.nv == 1
    ]


def _places(robot: Robot, word: str, name: str) -> range:
    """The coordinates a name stands for."""
    if word in ("mass", "inertia") or (word in GAINS and not name):
        return range(1)
    return range(3) if word == "com" else range(robot.joint(name).row.nv)
