"""The laws a compiled step can follow, one class each: their equations as blocks, and the numbers a controller puts into them.

    Torque         tau, as given
    Floating       tau = g(q)
    Following      tau = kp (q_ref - q) + kd (v_ref - v) [+ g(q)]
    Computed       tau = M u + C v + g,   u = a_ref + kp (q_ref - q) + kd (v_ref - v)
    Operational    tau = M u + C v + g + J* Lambda (x''_ref - J u - dJ/dt v),   u = kp (q_0 - q) - kd v

In a closed chain g(q) and M u + C v + g are what its motors must do (`closed/driving.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from psiphi.closed.system import System
from psiphi.control.controllers import PD, ComputedTorque, GravityCompensation
from psiphi.control.task_space import OperationalSpace
from psiphi.emitters.joined import Code, Named
from psiphi.functions.robot import Robot
from psiphi.model.manifold import Manifold
from psiphi.rollouts import parts, wrench
from psiphi.sweeps.unroll import Straight

Numbers = dict[str, np.ndarray]
Over = Callable[[Callable[[Manifold], Straight]], Code]  # how a block over the joints becomes code


def place(name: str, j: int) -> str:
    """Where a reference of half step j stands."""
    return name if j == 0 else f"{name}@{j}"


@dataclass(frozen=True)
class Torque:
    """Arrays: no block, only what is put into the frame."""

    follows: ClassVar[tuple[str, ...]] = ("tau",)  # what may change in time, in the order of the controller's reference
    keeps: ClassVar[tuple[str, ...]] = ()  # the controller's numbers
    order: ClassVar[tuple[str, ...]] = ()  # its blocks
    timed: ClassVar[tuple[str, ...]] = ()  # those of them that read what changes in time

    @classmethod
    def of(cls, controller: Any) -> Torque:
        """The law of a controller."""
        return cls()

    @property
    def key(self) -> list:
        """What code depends on."""
        return [type(self).__name__, *vars(self).values()]

    def numbers(self, controller: Any) -> Numbers:
        return {}

    def blocks(self, system: Robot | System, over: Over) -> Named:
        return {}


@dataclass(frozen=True)
class Floating(Torque):
    follows: ClassVar[tuple[str, ...]] = ()
    order: ClassVar[tuple[str, ...]] = ("gravity",)

    def blocks(self, system: Robot | System, over: Over) -> Named:
        return {"gravity": (_gravity(system), {})}


@dataclass(frozen=True)
class Following(Torque):
    gravity: bool

    follows: ClassVar[tuple[str, ...]] = ("q_ref", "v_ref")
    keeps: ClassVar[tuple[str, ...]] = ("kp", "kd")
    order: ClassVar[tuple[str, ...]] = ("gravity", "feedback")
    timed: ClassVar[tuple[str, ...]] = ("feedback",)

    @classmethod
    def of(cls, controller: PD) -> Following:
        return cls(controller.gravity)

    def numbers(self, controller: PD) -> Numbers:
        motors = 1.0 if controller.motors is None else controller.motors
        return {"kp": motors * controller.kp, "kd": motors * controller.kd}

    def blocks(self, system: Robot | System, over: Over) -> Named:
        known: Named = {"feedback": (over(partial(parts.feedback, floats=self.gravity)), {"u": "tau"})}
        return known | ({"gravity": (_gravity(system), {"tau": "g"})} if self.gravity else {})


@dataclass(frozen=True)
class Computed(Torque):
    follows: ClassVar[tuple[str, ...]] = ("q_ref", "v_ref", "a_ref")
    keeps: ClassVar[tuple[str, ...]] = ("kp", "kd")
    order: ClassVar[tuple[str, ...]] = ("feedback", "inverse")
    timed: ClassVar[tuple[str, ...]] = ("feedback",)

    def numbers(self, controller: ComputedTorque) -> Numbers:
        return {"kp": controller.kp, "kd": controller.kd}

    def blocks(self, system: Robot | System, over: Over) -> Named:
        if isinstance(system, System):
            inverse = system._driving.source.code, {}
        else:
            inverse = parts.catalogued(system, "inverse_dynamics"), {"a": "u"}
        return {"feedback": (over(partial(parts.feedback, accelerates=True)), {}), "inverse": inverse}


@dataclass(frozen=True)
class Operational(Torque):
    frame: str
    rows: int
    policy: str

    follows: ClassVar[tuple[str, ...]] = ("x_ref", "r_ref")
    keeps: ClassVar[tuple[str, ...]] = ("kp", "kd", "q_ref", "v_ref", "gains")
    order: ClassVar[tuple[str, ...]] = ("feedback", "pose", "velocity", "acceleration", "compliance", "task", "inverse")
    timed: ClassVar[tuple[str, ...]] = ("task",)

    @classmethod
    def of(cls, controller: OperationalSpace) -> Operational:
        return cls(controller.frame, controller.size, controller.policy)

    def numbers(self, controller: OperationalSpace) -> Numbers:
        return {
            "kp": controller.posture_kp,
            "kd": controller.posture_kd,
            "q_ref": controller.posture,
            "v_ref": np.zeros(controller.robot.nv),
            "gains": controller.gains,
        }

    def blocks(self, system: Robot | System, over: Over) -> Named:
        assert isinstance(system, Robot)

        def of(name: str) -> Code:
            return parts.catalogued(system, name, (self.frame,))

        return {
            "feedback": (over(parts.feedback), {}),
            "pose": (of("frame_pose"), {}),
            "velocity": (of("frame_velocity"), {"V": "twist"}),
            "acceleration": (of("frame_acceleration"), {"a": "u", "A": "drift"}),
            "compliance": (of("operational_compliance"), {}),
            "task": (wrench.task(self.rows, self.policy), {}),
            "inverse": (of("inverse_dynamics"), {"a": "u"}),
        }


def _gravity(system: Robot | System) -> Code:
    """g(q), or what motors must do to hold a closed chain still."""
    if isinstance(system, System):
        return system._holding.source.code
    return parts.catalogued(system, "gravity")


LAWS: dict[type, type[Torque]] = {
    GravityCompensation: Floating,
    PD: Following,
    ComputedTorque: Computed,
    OperationalSpace: Operational,
}
