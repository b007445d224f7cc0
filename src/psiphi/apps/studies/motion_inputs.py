"""From the numbers of motions to what `pp.rollout` takes: the system with its parameters, q, v, and what drives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from psiphi._util.validate import robot_of
from psiphi.apps.scenes.scene_controllers import GAINS, law
from psiphi.apps.studies.parameter_variation import OF_JOINTS, OF_LINKS
from psiphi.apps.studies.study_config import StudyConfig
from psiphi.robot.free_robot import FreeRobot
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.control.joint_controllers import PD, ComputedTorque

CAUSES = (
    "",
    "diverged",
    "limit",
    "speed",
    "parameters that no body has",
    "a gain below zero",
)  # why a motion fails
DIVERGED, LIMIT, SPEED, IMPOSSIBLE, NEGATIVE = range(1, 6)


@dataclass(frozen=True)
class MotionInputs:
    """Motions that are about to begin; `fault` (n,): 0, or why one cannot."""

    system: Any
    q: np.ndarray
    v: np.ndarray
    tau: Any
    fault: np.ndarray


class InputSampler:
    """A study's motions by their numbers; what is the same for all is made once."""

    def __init__(self, asked: StudyConfig):
        self.asked, self.robot = asked, asked.robot
        varied: dict[str, list] = {x.word: [] for x in asked.variations}
        for x in asked.variations:
            varied[x.word].append(x)
        self.by_word = varied
        words = [word for word in (*OF_LINKS, *OF_JOINTS) if word in varied]
        self.light: FreeRobot | None = (
            self.robot.free(*words, links=self._links(words)) if words else None
        )
        self.free_system: Any = self._freed(self.light) if self.light is not None else None
        if self.light is not None:
            self.light.at(self.light.parameters())

    def _freed(self, light: FreeRobot) -> Any:
        """The system with these free numbers: the robot itself, or the same constraints on it."""
        system = self.asked.system
        if not isinstance(system, System):
            return light
        kind, (_, *rest) = cast("tuple[Any, tuple[Any, ...]]", system.__reduce__())
        return kind(light, *rest)

    def _links(self, words: list[str]) -> list[str]:
        """The links that anything is free of: joints' words are of the links they carry."""
        named = {x.name for word in words if word in OF_LINKS for x in self.by_word[word]}
        moved = {x.name for word in words if word in OF_JOINTS for x in self.by_word[word]}
        pairs = zip(self.robot.bodies, self.robot.joints, strict=True)
        return [body.name for body, joint in pairs if body.name in named or joint.name in moved]

    def drawn(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """What varies, by label, (n,) each: as it was drawn."""
        return {x.label: x.draw(self.asked.seed, numbers) for x in self.asked.variations}

    def starts(self, numbers: np.ndarray) -> MotionInputs:
        """The motions of these numbers."""
        drawn = self.drawn(numbers)
        q, v = self._state(drawn, len(numbers))
        system, fault = self.asked.system, np.zeros(len(numbers), dtype=np.uint8)
        if self.light is not None:
            system = self.free_system.at(self._parameters(drawn, len(numbers)))
            fault[~np.isfinite(np.asarray(robot_of(system).given)).all(axis=-1)] = IMPOSSIBLE
        for gain in (x for name in GAINS for x in self.by_word.get(name, ())):
            fault[drawn[gain.label] < 0.0] = NEGATIVE
        return MotionInputs(system, q, v, self._law(system, drawn), fault)

    def alone(self, number: int) -> MotionInputs:
        """One motion, without batch axes."""
        many = self.starts(np.array([number]))
        system, tau = many.system, many.tau
        if self.light is not None and many.fault[0] != IMPOSSIBLE:
            system = self.free_system.at(robot_of(system).given[0])
            tau = self._law(system, self.drawn(np.array([number])))
        if tau is not None and any(x.ndim == 2 for x in getattr(tau, "numbers", {}).values()):
            tau.numbers = {name: x[0] if x.ndim == 2 else x for name, x in tau.numbers.items()}
        return MotionInputs(system, many.q[0], many.v[0], tau, many.fault[0])

    def _state(self, drawn: dict[str, np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
        asked, robot = self.asked, self.robot
        q, v = (np.tile(x, (count, 1)) for x in (asked.q0, asked.v0))
        shift = np.zeros((count, robot.nv))
        for word, room, slices in (
            ("q", q, "q_slice"),
            ("v", v, "v_slice"),
            ("offset", shift, "v_slice"),
        ):
            for x in self.by_word.get(word, ()):
                k = getattr(robot.joint(x.name), slices).start + x.index
                room[:, k] = drawn[x.label] * (room[:, k] if x.distribution.relative else 1.0)
        if "offset" in self.by_word:
            q = np.asarray(robot.integrate(q, shift, 1.0))
        return (
            asked.system.project(q, v)
            if isinstance(asked.system, System) and self.by_word
            else (q, v)
        )

    def _parameters(self, drawn: dict[str, np.ndarray], count: int) -> np.ndarray:
        assert self.light is not None
        own, freed = self.light.parameters(), self.light._free_parameters
        p = np.tile(own, (count, 1))
        blocks = {(block.group, self._owner(block)): block for block in freed.blocks}
        for word in (*OF_LINKS, *OF_JOINTS):
            for x in self.by_word.get(word, ()):
                block = blocks[word, x.name]
                if word == "inertia":
                    p[:, block.columns] *= drawn[x.label][:, None]
                elif word == "com":
                    p[:, block.start + x.index] += drawn[x.label]
                else:
                    k = block.start + x.index
                    p[:, k] = drawn[x.label] * (own[k] if x.distribution.relative else 1.0)
        return p

    def _owner(self, block: Any) -> str:
        of = self.robot.joints if block.group in OF_JOINTS else self.robot.bodies
        return of[block.index].name

    def _law(self, system: Any, drawn: dict[str, np.ndarray]) -> Any:
        asked = self.asked
        kind, motors = (
            asked.law.kind,
            {key: asked.options[key] for key in ("actuated", "passive") if key in asked.options},
        )
        if kind in ("none", "hold"):
            return asked.tau if kind == "none" else law(kind, system, asked.q0, **motors)
        gains = {name: self._gains(name, drawn) for name in GAINS}
        if kind == "computed":
            made: Any = ComputedTorque(system, asked.q0, 1.0, 1.0, **motors)
        else:  # gains in units of the nominal inertia, as in scenes
            unit = np.diagonal(self.robot.mass_matrix(asked.q0))
            made = PD(system, asked.q0, unit, unit, gravity=asked.law.gravity, **motors)
        made.numbers = {
            name: x * gains[name] if name in gains else x for name, x in made.numbers.items()
        }
        return made

    def _gains(self, name: str, drawn: dict[str, np.ndarray]) -> np.ndarray:
        """One for all, or (n, nv)."""
        base = getattr(self.asked.law, name)
        each = self.by_word.get(name, ())
        if not each:
            return np.full(self.robot.nv, base)
        out = np.full((len(drawn[each[0].label]), self.robot.nv), base)
        for x in each:
            own = slice(None) if not x.name else self.robot.joint(x.name).v_slice.start + x.index
            value = drawn[x.label] * (base if x.distribution.relative else 1.0)
            out[:, own] = value[:, None] if not x.name else value
        return out
