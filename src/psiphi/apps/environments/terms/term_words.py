"""Terms that have a name: functions of the state of an environment (`TermState`).

OBSERVATIONS give vectors, REWARDS and TERMINATIONS one number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psiphi.apps.environments.terms.term_state import TermState

TermFunction = Callable[[TermState], Any]
TRACKING = 4.0  # 1 / (0.5 m/s)^2: where the reward of tracking falls to 1/e
LONG_FLIGHT = 0.5  # s: flights that are longer earn a reward, shorter ones a penalty
SLOW = 0.1  # m/s: commands below it ask to stand
FALLEN = -0.5  # the base leans by more than 60 degrees


def squares(x: Any) -> Any:
    """x . x"""
    return (x * x).sum()


def flights(s: TermState) -> Any:
    """The sum of (flight time - 0.5 s) of the contact points that land.

    A contact that is missing in one control step only is no flight. 0 if the command is to stand.
    """
    lands = (s.flight_time > 1.5 * s.step_time) * 1.0
    walks = (squares(s.command[:2]) > SLOW**2) * 1.0
    return walks * (lands * (s.flight_time - LONG_FLIGHT)).sum()


OBSERVATIONS: dict[str, TermFunction] = {
    "q": lambda s: s.q,
    "v": lambda s: s.v,
    "tau": lambda s: s.tau,
    "time": lambda s: s.t,
    "action": lambda s: s.action,
    "previous_action": lambda s: s.previous_action,
    "command": lambda s: s.command,
    "joint_positions": lambda s: s.joint_positions,
    "joint_velocities": lambda s: s.joint_velocities,
    "joint_torques": lambda s: s.tau[s.motors],
    "height": lambda s: s.height,
    "gravity": lambda s: s.gravity,
    "angular_velocity": lambda s: s.angular_velocity,
    "linear_velocity": lambda s: s.linear_velocity,
    "specific_force": lambda s: s.specific_force,
    "contacts": lambda s: s.contacts,
    "contact_forces": lambda s: s.contact_forces,
    "air_time": lambda s: s.air_time,
}

REWARDS: dict[str, TermFunction] = {
    "alive": lambda s: 1.0,
    "track_linear_velocity": lambda s: np.exp(
        -TRACKING * squares(s.command[:2] - s.linear_velocity[:2])
    ),
    "track_angular_velocity": lambda s: np.exp(
        -TRACKING * (s.command[2] - s.angular_velocity[2]) * (s.command[2] - s.angular_velocity[2])
    ),
    "vertical_velocity": lambda s: s.linear_velocity[2] * s.linear_velocity[2],
    "roll_and_pitch_rate": lambda s: squares(s.angular_velocity[:2]),
    "tilt": lambda s: squares(s.gravity[:2]),
    "torques": lambda s: squares(s.tau[s.motors]),
    "accelerations": lambda s: squares(s.a[s.motors]),
    "power": lambda s: np.absolute(s.tau[s.motors] * s.v[s.motors]).sum(),
    "air_time": flights,
    "action": lambda s: squares(s.action),
    "action_rate": lambda s: squares(s.action - s.previous_action),
}

TERMINATIONS: dict[str, TermFunction] = {
    "fallen": lambda s: s.gravity[2] > FALLEN,
    "stopped": lambda s: squares(s.v) < 1e-6,
}
