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

from psiphi.closed.system import System
from psiphi.editing.picking import matching
from psiphi.errors import Error
from psiphi.functions.robot import Robot
from psiphi.scenes.keys import Table
from psiphi.scenes.steering import GAINED, GAINS
from psiphi.studies.distributions import Distribution, is_distribution, read_distribution

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


def read_variations(table: Table, system: Any, robot: Robot, law: str, options: dict[str, Any]) -> tuple[Variation, ...]:
    """The table [vary]."""
    found: dict[str, Variation] = {}
    for word in WORDS:
        if word not in table:
            continue
        _check_word(table, word, system, law, options)
        for name, key, row in _named(table, word, robot):
            distribution = read_distribution(row, key)
            if distribution.relative and word in ADDED:
                row.fail(key, f"{word} is added, and cannot be relative", "leave relative out")
            for index in _places(robot, word, name):
                one = Variation(word, name, index, distribution)
                found[one.label] = one
    table.done()
    clash = [x for x in found.values() if x.word == "q" and f"offset:{x.name}:0" in found]
    if clash:
        table.fail("offset", f"and q both vary {clash[0].name!r}", "name one of them")
    return tuple(_strided(list(found.values())))


def _strided(each: list[Variation]) -> Iterator[Variation]:
    stride = 1
    for one in each:
        grid = one.distribution.is_grid
        yield Variation(one.word, one.name, one.index, one.distribution, stride if grid else 1)
        stride *= len(one.distribution.numbers) if grid else 1


def _check_word(table: Table, word: str, system: Any, law: str, options: dict[str, Any]) -> None:
    if word in ACTS and options.get(ACTS[word]) is not True:
        table.fail(word, f"the joints' own {word} does not act, and would vary for nothing", f"add {ACTS[word]} = true")
    if word in GAINS and law not in GAINED:
        table.fail(word, f"the controller is {law!r}, which has no gains", 'add [controller] with kind = "pd" or "computed"')
    if word == "q" and isinstance(system, System):
        table.fail(
            word, "q of a closed chain has to keep its loops closed", "vary offset: the nearest state that keeps them is taken"
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
            fitting = matching("link" if word in OF_LINKS else "joint", pattern, known, robot.name)
        except Error as error:
            row.fail(pattern, error.cause, error.remedy)
        for name in fitting:
            yield name, pattern, row


def _known(robot: Robot, word: str) -> list[str]:
    if word in OF_LINKS:
        return [body.name for body in robot.bodies]
    return [joint.name for joint in robot.joints if word != "q" or joint.row.nq == joint.row.nv == 1]


def _places(robot: Robot, word: str, name: str) -> range:
    """The coordinates a name stands for."""
    if word in ("mass", "inertia") or (word in GAINS and not name):
        return range(1)
    return range(3) if word == "com" else range(robot.joint(name).row.nv)
