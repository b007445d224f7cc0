"""Numbers of the robot, its controller and its ground that differ from episode to episode.

The words and distributions are those of [vary] in studies (`apps/studies/parameter_variation.py`).
They are inputs of the kernel, so that other values need no compilation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi.apps.environments.state_resets import NEW, sampled
from psiphi.apps.environments.terms.term_state import TermState
from psiphi.apps.scenes.scene_controllers import DEFAULT_GAINS
from psiphi.apps.scenes.toml_table import Table
from psiphi.apps.studies.parameter_variation import (
    GROUND_FRICTION,
    LINK_WORDS,
    Variation,
    read_variations,
)
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.model.contact.ground import Ground
from psiphi.robot.free_robot import FreeRobot
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.contact_blocks import contact_place
from psiphi.simulation.compiled_rollout.rollout_program import law_place
from psiphi.simulation.control.control_law import Controller
from psiphi.simulation.forces.damping_and_friction import ALWAYS_IMPLICIT

ARMATURE, DAMPING, FRICTION = "armature", "damping", contact_place("friction")
WORDS = (*LINK_WORDS, ARMATURE, DAMPING, *DEFAULT_GAINS, GROUND_FRICTION)
NOT_NEGATIVE = ("uniform", "loguniform", "choice")  # distributions whose numbers are samples


@dataclass(frozen=True, eq=False)
class Randomization:
    """`variations` of numbers, and the `nominal` values of the places that have them."""

    robot: Robot  # with free parameters, if some differ
    original: Robot
    variations: tuple[Variation, ...] = ()
    nominal: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, int]:
        """{place: size} of the numbers that differ."""
        return {place: len(x) for place, x in self.nominal.items()}

    def implicit_losses(self, mask: np.ndarray) -> np.ndarray:
        """The mask of implicit losses, 1 also where the damping differs by episode."""
        out = np.array(mask, dtype=float)
        for one in self.variations:
            if one.word == DAMPING:
                out[..., list(self._entries(one)[1])] = 1.0
        return out

    def sample(self, s: TermState) -> dict[str, list[Any]]:
        """The numbers of an episode, by the place of the new value."""
        values = {place: list(map(float, x)) for place, x in self.nominal.items()}
        for one in self.variations:
            place, entries = self._entries(one)
            number, row = sampled(one.distribution, s), values[place]
            for i in entries:
                if one.word == "com":
                    row[i] = row[i] + number
                elif one.word == "inertia" or one.distribution.relative:
                    row[i] = row[i] * number
                else:
                    row[i] = number
        return {NEW + place: row for place, row in values.items()}

    def _entries(self, one: Variation) -> tuple[str, Iterable[int]]:
        """The place of a number, and its entries there."""
        if one.word == GROUND_FRICTION:
            return FRICTION, range(len(self.nominal[FRICTION]))
        if one.word in (DAMPING, *DEFAULT_GAINS):
            place = DAMPING if one.word == DAMPING else law_place(one.word)
            if not one.name:
                return place, range(len(self.nominal[place]))
            return place, [self.robot.joint(one.name).v_slice.start + one.index]
        assert self.robot.freed is not None
        for block in self.robot.freed.blocks:
            parts = self.robot.joints if block.group == ARMATURE else self.robot.bodies
            if (block.group, parts[block.body].name) == (one.word, one.name):
                whole = range(block.start, block.stop)
                return PARAMETERS, whole if one.word == "inertia" else [block.start + one.index]
        raise AssertionError(one)


def read_randomization(
    robot: Robot,
    controller: Controller | None,
    ground: Ground | None,
    value: object,
    damping: object = False,
) -> tuple[Randomization, Controller | None]:
    """The argument `randomize`, and the controller of the robot with free parameters."""
    if value is None:
        return Randomization(robot, robot), controller
    if not isinstance(value, Mapping) or not value or not set(value) <= set(WORDS):
        unknown = [x for x in value if x not in WORDS] if isinstance(value, Mapping) else []
        raise StateError(
            f"randomize is {shown(value)}, expected some of {', '.join(WORDS)}",
            nearest(unknown[0], WORDS) if unknown else 'randomize={"mass": {"base": (5.0, 7.0)}}',
        )
    if DAMPING in value and damping is not True:
        cause = f"randomize: the damping of joints does not act, damping is {shown(damping)}"
        raise StateError(cause, "give damping=True")
    gains = controller is not None and set(DEFAULT_GAINS) <= set(controller.numbers)
    start: dict[str, Any] = dict.fromkeys(DEFAULT_GAINS, 1.0)
    start |= {} if ground is None else {GROUND_FRICTION: ground.friction}
    law = "pd" if gains else "none" if controller is None else type(controller).__name__
    table = Table("pp.environment", "randomize", {k: _plain(x) for k, x in value.items()})
    found = read_variations(table, robot, law, {DAMPING: damping}, start)
    for one in found:
        numbers, kind = one.distribution.numbers, one.distribution.kind
        if one.distribution.is_grid:
            raise StateError(f"{one.word} has a grid, which is for studies", "use choice")
        if one.word != "com" and kind in NOT_NEGATIVE and min(numbers) < 0.0:
            cause = f"randomize: {one.word} of {one.name or 'all'} is negative: {numbers}"
            raise StateError(cause, "give numbers that are not")
    original = robot
    words = [word for word in (*LINK_WORDS, ARMATURE) if any(x.word == word for x in found)]
    nominal: dict[str, np.ndarray] = {}
    if words:
        robot, nominal[PARAMETERS] = _freed(robot, words, found)
        if controller is not None:
            controller = copy(controller)
            controller.robot = robot
    if any(x.word == DAMPING for x in found):
        nominal[DAMPING] = np.array(original.damping, dtype=float)
    for word in DEFAULT_GAINS:
        if controller is not None and any(x.word == word for x in found):
            nominal[law_place(word)] = _row(word, controller.numbers[word], robot.nv)
    if ground is not None and any(x.word == GROUND_FRICTION for x in found):
        nominal[FRICTION] = _row("friction", ground.friction, len(robot.contact_points))
    return Randomization(robot, original, found, nominal), controller


def check_damping(randomization: Randomization, losses: Sequence[str], method: str) -> None:
    """Raise for a damping that differs by episode, and does not act, or may be too stiff."""
    if DAMPING not in randomization.sizes:
        return
    robot = randomization.original
    if DAMPING not in losses:
        cause = f"randomize: the joints of {robot.name} have no damping"
        raise StateError(cause, "use a robot whose file says damping, or leave the word out")
    if method not in ALWAYS_IMPLICIT:
        cause = f"randomize: damping with the method {method!r}, which may diverge"
        raise StateError(cause, 'give method="euler", or a ground: damping is implicit there')


def _freed(
    robot: Robot, words: list[str], found: Iterable[Variation]
) -> tuple[FreeRobot, np.ndarray]:
    """The robot with free parameters at their nominal values, and these values."""
    names = {x.name for x in found if x.word in (*LINK_WORDS, ARMATURE)}
    pairs = zip(robot.bodies, robot.joints, strict=True)
    links = [body.name for body, joint in pairs if {body.name, joint.name} & names]
    free = robot.free(*words, links=links)
    values = np.asarray(free.parameters(), dtype=float)
    return free.at(values), values


def _row(name: str, value: Any, size: int) -> np.ndarray:
    array = np.asarray(value, dtype=float)
    if array.ndim > 1:
        cause = f"randomize: the nominal {name} has shape {array.shape}"
        raise StateError(cause, f"give one number, or {size}")
    return np.array(np.broadcast_to(array, size))


def _plain(value: Any) -> Any:
    """A distribution, or a table of them, as TOML has it; (low, high) is uniform."""
    if isinstance(value, Mapping):
        return {str(k): _plain_list(x) if _is_kind(k) else _plain(x) for k, x in value.items()}
    if isinstance(value, tuple):
        return {"uniform": _plain_list(value)}
    return value.item() if isinstance(value, np.generic) else value


def _is_kind(key: object) -> bool:
    return key in ("uniform", "loguniform", "normal", "choice", "grid")


def _plain_list(value: Any) -> Any:
    return list(np.asarray(value).tolist()) if isinstance(value, tuple | np.ndarray) else value
