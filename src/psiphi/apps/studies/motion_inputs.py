"""From motion numbers to the arguments of `pp.rollout`.

These are the system with its parameters, q, v, and the torque law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from psiphi._util.validate import robot_of
from psiphi.apps.scenes.scene_controllers import DEFAULT_GAINS, law
from psiphi.apps.studies.parameter_variation import (
    GROUND_FRICTION,
    JOINT_WORDS,
    LINK_WORDS,
    Variation,
)
from psiphi.apps.studies.study_config import StudyConfig
from psiphi.model.contact.ground import Ground
from psiphi.model.parameters.free_parameters import ParameterBlock
from psiphi.robot.free_robot import FreeRobot
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.contact.placement import on_ground
from psiphi.simulation.control.joint_controllers import PD, ComputedTorque

CAUSES = (  # of failures
    "",
    "diverged",
    "limit",
    "speed",
    "infeasible parameters",
    "negative gain",
    "negative friction",
    "contact not solved",
)
DIVERGED, LIMIT, SPEED, INFEASIBLE, NEGATIVE_GAIN, NEGATIVE_FRICTION, NOT_SOLVED = range(1, 8)


@dataclass(frozen=True)
class MotionInputs:
    """Initial states and inputs of motions. `fault` (n,): 0, or the cause why one cannot start."""

    system: Robot | System
    q: np.ndarray
    v: np.ndarray
    tau: Any
    fault: np.ndarray
    ground: Ground | None = None


class InputSampler:
    """Makes the inputs of motions from their numbers. Data common to all motions is built once."""

    def __init__(self, config: StudyConfig):
        self.config, self.robot = config, config.robot
        by_word: dict[str, list[Variation]] = {x.word: [] for x in config.variations}
        for x in config.variations:
            by_word[x.word].append(x)
        self.by_word = by_word
        words = [word for word in (*LINK_WORDS, *JOINT_WORDS) if word in by_word]
        self.free_robot: FreeRobot | None = (
            self.robot.free(*words, links=self._links(words)) if words else None
        )
        self.free_system: Any = (
            self._with_robot(self.free_robot) if self.free_robot is not None else None
        )
        if self.free_robot is not None:
            self.free_robot.at(self.free_robot.parameters())

    def _with_robot(self, free_robot: FreeRobot) -> Any:
        """The free robot, or the system with the same constraints on it."""
        system = self.config.system
        if not isinstance(system, System):
            return free_robot
        kind, (_, *rest) = cast("tuple[Any, tuple[Any, ...]]", system.__reduce__())
        return kind(free_robot, *rest)

    def _links(self, words: list[str]) -> list[str]:
        """The links with free parameters. Parameters of a joint belong to its child link."""
        named = {x.name for word in words if word in LINK_WORDS for x in self.by_word[word]}
        moved = {x.name for word in words if word in JOINT_WORDS for x in self.by_word[word]}
        pairs = zip(self.robot.bodies, self.robot.joints, strict=True)
        return [body.name for body, joint in pairs if body.name in named or joint.name in moved]

    def drawn(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The samples of each variation by label, (n,) each."""
        return {x.label: x.draw(self.config.seed, numbers) for x in self.config.variations}

    def motions(self, numbers: np.ndarray) -> MotionInputs:
        """The inputs of these motions."""
        drawn = self.drawn(numbers)
        q, v = self._state(drawn, len(numbers))
        system, fault = self.config.system, np.zeros(len(numbers), dtype=np.uint8)
        if self.free_robot is not None:
            system = self.free_system.at(self._parameters(drawn, len(numbers)))
            fault[~np.isfinite(np.asarray(robot_of(system).given)).all(axis=-1)] = INFEASIBLE
        for gain in (x for name in DEFAULT_GAINS for x in self.by_word.get(name, ())):
            fault[drawn[gain.label] < 0.0] = NEGATIVE_GAIN
        ground = self.config.ground
        for x in self.by_word.get(GROUND_FRICTION, ()):
            assert ground is not None
            nominal = (
                np.atleast_1d(np.asarray(ground.friction))
                if x.distribution.relative
                else np.ones(1)
            )
            friction = drawn[x.label][:, None] * nominal
            fault[(friction < 0.0).any(axis=-1)] = NEGATIVE_FRICTION
            ground = replace(ground, friction=np.maximum(friction, 0.0))
        return MotionInputs(system, q, v, self._law(system, drawn), fault, ground)

    def single(self, number: int) -> MotionInputs:
        """The inputs of one motion, without batch axes."""
        batch = self.motions(np.array([number]))
        system, tau = batch.system, batch.tau
        if self.free_robot is not None and batch.fault[0] != INFEASIBLE:
            system = self.free_system.at(robot_of(system).given[0])
            tau = self._law(system, self.drawn(np.array([number])))
        if tau is not None and any(x.ndim == 2 for x in getattr(tau, "numbers", {}).values()):
            tau.numbers = {name: x[0] if x.ndim == 2 else x for name, x in tau.numbers.items()}
        ground = batch.ground
        if ground is not None and GROUND_FRICTION in self.by_word:
            ground = replace(ground, friction=np.asarray(ground.friction)[0])
        return MotionInputs(system, batch.q[0], batch.v[0], tau, batch.fault[0], ground)

    def _state(self, drawn: dict[str, np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
        config, robot = self.config, self.robot
        q, v = (np.tile(x, (count, 1)) for x in (config.q0, config.v0))
        shift = np.zeros((count, robot.nv))
        for word, array, slices in (
            ("q", q, "q_slice"),
            ("v", v, "v_slice"),
            ("offset", shift, "v_slice"),
        ):
            for x in self.by_word.get(word, ()):
                k = getattr(robot.joint(x.name), slices).start + x.index
                array[:, k] = drawn[x.label] * (array[:, k] if x.distribution.relative else 1.0)
        if "offset" in self.by_word:
            q = np.asarray(robot.integrate(q, shift, 1.0))
        if config.starts_on_ground and self.by_word:
            q = on_ground(robot, q, config.ground)
        return (
            config.system.project(q, v)
            if isinstance(config.system, System) and self.by_word
            else (q, v)
        )

    def _parameters(self, drawn: dict[str, np.ndarray], count: int) -> np.ndarray:
        assert self.free_robot is not None and self.free_robot.freed is not None
        nominal, freed = self.free_robot.parameters(), self.free_robot.freed
        p = np.tile(nominal, (count, 1))
        blocks = {(block.group, self._owner(block)): block for block in freed.blocks}
        for word in (*LINK_WORDS, *JOINT_WORDS):
            for x in self.by_word.get(word, ()):
                block = blocks[word, x.name]
                if word == "inertia":
                    p[:, block.columns] *= drawn[x.label][:, None]
                elif word == "com":
                    p[:, block.start + x.index] += drawn[x.label]
                else:
                    k = block.start + x.index
                    p[:, k] = drawn[x.label] * (nominal[k] if x.distribution.relative else 1.0)
        return p

    def _owner(self, block: ParameterBlock) -> str:
        """The name of the joint or link of a block of parameters."""
        parts = self.robot.joints if block.group in JOINT_WORDS else self.robot.bodies
        return parts[block.body].name

    def _law(self, system: Robot | System, drawn: dict[str, np.ndarray]) -> Any:
        config = self.config
        kind, options = config.law.kind, config.options
        motors = {key: options[key] for key in ("actuated", "passive") if key in options}
        if kind in ("none", "hold"):
            return config.tau if kind == "none" else law(kind, system, config.q0, **motors)
        gains = {name: self._gains(name, drawn) for name in DEFAULT_GAINS}
        if kind == "computed":
            controller: Any = ComputedTorque(system, config.q0, 1.0, 1.0, **motors)
        else:  # gains scaled by the diagonal of the nominal mass matrix, as in scenes
            unit = np.diagonal(self.robot.mass_matrix(config.q0))
            controller = PD(system, config.q0, unit, unit, gravity=config.law.gravity, **motors)
        controller.numbers = {
            name: x * gains[name] if name in gains else x for name, x in controller.numbers.items()
        }
        return controller

    def _gains(self, name: str, drawn: dict[str, np.ndarray]) -> np.ndarray:
        """The gains of all motions (nv,), or of each motion (n, nv)."""
        base = getattr(self.config.law, name)
        each = self.by_word.get(name, ())
        if not each:
            return np.full(self.robot.nv, base)
        out = np.full((len(drawn[each[0].label]), self.robot.nv), base)
        for x in each:
            entries = (
                slice(None) if not x.name else self.robot.joint(x.name).v_slice.start + x.index
            )
            value = drawn[x.label] * (base if x.distribution.relative else 1.0)
            out[:, entries] = value[:, None] if not x.name else value
        return out
