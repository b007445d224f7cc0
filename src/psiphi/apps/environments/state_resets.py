"""The state at the start of an episode: a nominal state with random parts, or a function's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import is_list, matching_names, whole_number
from psiphi.apps.environments.terms.term_state import COMMAND, TermState
from psiphi.apps.environments.terms.term_trace import TermTrace
from psiphi.apps.studies.distributions import Distribution, as_distribution
from psiphi.compiler.ir.lane_blocks import WORD
from psiphi.robot.robot import Robot
from psiphi.simulation.control.law_arrays import LawArray

BASE_NAMES = ("roll", "pitch", "yaw", "x", "y", "z")  # of the velocities of a free base
OFFSET, VELOCITY = "offset", "v"
MAX_SEED, SEED_LISTS = 2**64 - 1, list | tuple | np.ndarray
NEW = "env.new."  # the prefix of places with the numbers of the next episode


class EpisodeNumbers(Protocol):
    """Numbers that differ from episode to episode (`randomization.py`)."""

    def sample(self, s: TermState) -> dict[str, list[Any]]: ...


@dataclass(frozen=True, eq=False)
class Resets:
    """`parts`: {"offset" or "v": {index in v: distribution}}, or a function that returns q and v;
    `commands`: their distributions."""

    parts: Mapping[str, Mapping[int, Distribution]] = field(default_factory=dict)
    function: Callable[[TermState], Any] | None = None
    commands: Mapping[str, Distribution] = field(default_factory=dict)
    randomization: EpisodeNumbers | None = None

    def store(self, trace: TermTrace, robot: Robot) -> None:
        """Add the state at the start of an episode to the outputs of a trace."""
        state = trace.state
        found = self._of_function(trace, robot) if self.function else self._of_parts(state, robot)
        trace.outputs |= {f"{NEW}{name}": list(x) for name, x in found.items()}
        if self.randomization is not None:
            trace.outputs |= self.randomization.sample(state)
        if self.commands:
            trace.outputs[NEW + COMMAND] = commands(self.commands, state)

    def _of_parts(self, s: TermState, robot: Robot) -> dict[str, list[Any]]:
        shift = np.zeros(robot.nv, dtype=object)
        v = np.array(s.v0, dtype=object)
        for index, distribution in self.parts.get(OFFSET, {}).items():
            shift[index] = sampled(distribution, s)
        for index, distribution in self.parts.get(VELOCITY, {}).items():
            v[index] = v[index] + sampled(distribution, s)
        q = np.array(s.q0, dtype=object)
        if self.parts.get(OFFSET):
            q = robot.manifold.straight(q, shift)
        return {"q": list(q), "v": list(v)}

    def _of_function(self, trace: TermTrace, robot: Robot) -> dict[str, list[Any]]:
        assert self.function is not None
        found: Any = self.function(trace.state)
        if not isinstance(found, dict) or not {"q", "v"} >= set(found):
            cause = f"resets returns {shown(found)}, expected a dict with q, v or both"
            raise StateError(cause, 'return {"q": q, "v": v}')
        sizes = {"q": robot.nq, "v": robot.nv}
        nominal: dict[str, Any] = {"q": trace.state.q0, "v": trace.state.v0}
        for name, value in found.items():
            nominal[name] = np.array(trace.value(f"resets: {name}", lambda s, x=value: x))
            if len(nominal[name]) != sizes[name]:
                raise StateError(
                    f"resets returns {len(nominal[name])} numbers as {name}, "
                    f"and {robot.name} has {sizes[name]}",
                    f"return {sizes[name]} numbers; s.{name}0 has the nominal ones",
                )
        q = np.array(nominal["q"], dtype=object)
        return {"q": list(robot.manifold.unit(q)), "v": list(nominal["v"])}


def sampled(distribution: Distribution, s: TermState) -> Any:
    """A sample as one tape expression."""
    if distribution.constant is not None:
        return distribution.constant
    value = distribution.sample(s.random)
    return value.item() if isinstance(value, LawArray) else value


def commands(distributions: Mapping[str, Distribution], s: TermState) -> list[Any]:
    """A sample of each command."""
    return [sampled(distribution, s) for distribution in distributions.values()]


def read_resets(
    robot: Robot,
    value: object,
    commands: Mapping[str, Distribution],
    randomization: EpisodeNumbers | None = None,
) -> Resets:
    """The argument `resets`: None, a function, or {"offset": {name: distribution}, "v": ...}."""
    if value is None:
        return Resets(commands=commands, randomization=randomization)
    if callable(value):
        return Resets({}, value, commands, randomization)
    words = (OFFSET, VELOCITY)
    if not isinstance(value, Mapping) or not set(value) <= set(words):
        unknown = [x for x in value if x not in words] if isinstance(value, Mapping) else []
        raise StateError(
            f"resets is {shown(value)}, expected a function, or a dict with "
            f"{' and '.join(map(repr, words))}",
            nearest(unknown[0], words) if unknown else 'resets={"offset": {"*": (-0.1, 0.1)}}',
        )
    parts = {
        word: named_distributions(robot, f"resets: {word}", row) for word, row in value.items()
    }
    return Resets(parts, None, commands, randomization)


def named_distributions(robot: Robot, what: str, row: object) -> dict[int, Distribution]:
    """{index in v: distribution}; names may be patterns, later ones replace earlier ones."""
    known = list(robot.velocity_names)
    first = robot.joints[0]
    if first.kind == "free":
        known[first.v_slice.start : first.v_slice.stop] = BASE_NAMES
    rows = row if isinstance(row, Mapping) else {"*": row}
    found = {}
    for pattern, value in rows.items():
        distribution = as_distribution(f"{what} of {pattern!r}", value)
        for name in matching_names("coordinate", pattern, known, robot.name):
            found[known.index(name)] = distribution
    return found


def _is_seed(x: object) -> bool:
    if not isinstance(x, int | np.integer) or isinstance(x, bool):
        return False
    return 0 <= int(x) <= MAX_SEED


def read_word(name: str, value: object) -> int:
    """The number of an environment or an episode: random numbers depend on 32 bits of it."""
    number = whole_number(name, value)
    if number > WORD:
        raise StateError(f"{name} is {shown(number)}, expected at most {WORD}", "give 0, 1, 2, ...")
    return number


def seed_words(seed: object, count: int) -> np.ndarray:
    """The words of a seed (2,), or of one for each environment (count, 2)."""
    seeds: list[Any] = list(seed) if is_list(seed) and isinstance(seed, SEED_LISTS) else [seed]
    if not all(map(_is_seed, seeds)) or len(seeds) not in (1, count):
        raise StateError(
            f"seed is {shown(seed)}, expected a whole number below 2**64, or {count} of them",
            "give seed=0, for instance",
        )
    return np.array([[int(x) & WORD, (int(x) >> 32) & WORD] for x in seeds], dtype=float)
