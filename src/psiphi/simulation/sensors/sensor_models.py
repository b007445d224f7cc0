"""Sensors: what they measure at a state, and the errors they make.

    pp.IMU("imu_link", rate=400)    [w; f]: angular velocity and specific force of a frame
    pp.JointTorque("elbow")         the torques that joints pass to their links
    pp.ContactForce("*_FOOT")       the forces of contacts

`motion.measure({"imu": sensor})` reads sensors along a motion. Called with a robot and arrays, an
`IMU` or a `JointTorque` returns exact values, with derivatives if these are torch or JAX arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from psiphi._util.array_types import Array, Numbers, Wrenches
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import (
    check_robot,
    finite_array,
    matching_names,
    positive_number,
)
from psiphi.model.motors import velocity_indices
from psiphi.robot.robot import Robot
from psiphi.simulation.sensors.sensor_noise import SensorNoise

SensorNames = str | Iterable[str]


class MotionSamples(NamedTuple):
    """What sensors read of a motion, at their own times: (..., n, size) each."""

    robot: Robot
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    wrenches: Wrenches  # on the frames of the robot
    forces: np.ndarray | None  # of the contacts: (..., n, contacts, 3 or 6)
    contacts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Sensor:
    """A sensor with `rate` measurements a second; None: one for each sample of the motion.

    noise  standard deviation of the white noise of each measurement
    bias   a constant error
    drift  the error's random walk: its standard deviation after one second

    Each is one number, or one for each channel, in the units of the sensor.
    """

    _: KW_ONLY
    rate: float | None = None
    noise: Numbers = 0.0
    bias: Numbers = 0.0
    drift: Numbers = 0.0

    def __post_init__(self) -> None:
        if self.rate is not None:
            positive_number("rate", self.rate, "give measurements per second, such as rate=400")
        for name in ("noise", "bias", "drift"):
            _ = self._error(name)

    @cached_property
    def errors(self) -> SensorNoise:
        """(Internal use only) The errors that the sensor makes."""
        return SensorNoise(*(self._error(name) for name in ("noise", "bias", "drift")))

    def _error(self, name: str) -> np.ndarray:
        value = finite_array(name, getattr(self, name), (), "give one number, or one per channel")
        if value.ndim > 1 or (name != "bias" and (value < 0.0).any()):
            raise StateError(
                f"{name} is {shown(getattr(self, name))}",
                "give one number of at least 0, or one for each channel",
            )
        return value

    def sample(self, samples: MotionSamples) -> np.ndarray:
        """(Internal use only) The exact values (..., n, *channels) along a motion."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class IMU(Sensor):
    """An inertial measurement unit at a frame: y = [w; f] (6,), in axes of the frame.

    w is the angular velocity (rad/s), f = R* (p'' - g) the specific force (m/s^2): an accelerometer
    at rest shows 9.81 upwards. The numbers are those of an instant, not means over an interval.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5")
    >>> motion = pp.simulate(robot, np.zeros(6), duration=0.1)
    >>> imu = pp.IMU("tool0", rate=200, noise=[1e-3] * 3 + [0.02] * 3, bias=[0.01, 0, 0, 0, 0, 0])
    >>> measured = motion.measure({"wrist": imu}, seed=1)["wrist"]
    >>> measured.t.shape, measured.value.shape
    ((21,), (21, 6))
    """

    frame: str

    def __call__(self, robot: Robot, q: Numbers, v: Numbers, a: Numbers) -> Array:
        """The exact values (..., 6) at states with accelerations a."""
        return check_robot("IMU", robot, Robot).frame_imu(q, v, a, self.frame)

    def sample(self, samples: MotionSamples) -> np.ndarray:
        return np.asarray(self(samples.robot, samples.q, samples.v, samples.a))


@dataclass(frozen=True, eq=False)
class JointTorque(Sensor):
    """The torques (N m) and forces (N) that joints pass to their links along their axes, on the
    link side of the gear: `robot.joint_torques`. Friction, springs and stops of the joint are part
    of it; what accelerates the rotor (`armature`) is not.

    `joints` are names or patterns; the default is all joints.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5")
    >>> q, rest = robot.random(seed=0), np.zeros(6)
    >>> torque = pp.JointTorque(["elbow_joint"])(robot, q, rest, rest)
    >>> bool(abs(torque[0] - robot.gravity(q)[2]) < 1e-9)
    True
    """

    joints: SensorNames = "*"

    def __call__(
        self, robot: Robot, q: Numbers, v: Numbers, a: Numbers, f_ext: Wrenches | None = None
    ) -> Array:
        """The exact values (..., coordinates) at states with accelerations a."""
        names = check_robot("JointTorque", robot, Robot).joint_names
        if robot.embedding is not None and robot.embedding.has_loops:
            raise StateError(
                f"JointTorque: {robot.name} has embedded loops, and v has no torque for each joint",
                "measure the closed chain instead: pp.connect(robot, loops)",
            )
        chosen = matching_names("joints", self.joints, names, robot.name)
        rows = velocity_indices(robot, chosen)
        return robot.joint_torques(q, v, a, f_ext=f_ext or None)[..., rows]

    def sample(self, samples: MotionSamples) -> np.ndarray:
        robot, q, v, a, wrenches, *_ = samples
        return np.asarray(self(robot, q, v, a, wrenches))


@dataclass(frozen=True, eq=False)
class ContactForce(Sensor):
    """The forces of contacts, in world axes, as the motion records them (`motion.forces`).

    Of a ground: forces on the robot (..., contacts, 3), the means of the step that follows. Of a
    closed chain: wrenches (..., contacts, 6). `contacts` are names or patterns; the default is all.

    >>> import psiphi as pp
    >>> robot = pp.load("anymal_c").with_contacts({"*_FOOT": pp.Sphere(0.03)})
    >>> q = robot.on_ground(robot.neutral())
    >>> motion = pp.simulate(robot, q, contacts=pp.Ground(), duration=0.01)
    >>> feet = pp.ContactForce("L*_FOOT", rate=500, noise=0.5)
    >>> motion.measure({"feet": feet})["feet"].value.shape
    (6, 2, 3)
    """

    contacts: SensorNames = "*"

    def sample(self, samples: MotionSamples) -> np.ndarray:
        if samples.forces is None:
            raise StateError(
                "ContactForce: this motion has no contacts",
                "simulate it with contacts=pp.Ground(...), or measure a closed chain",
            )
        name = samples.robot.name
        chosen = matching_names("contacts", self.contacts, samples.contacts, name)
        return samples.forces[..., [samples.contacts.index(x) for x in chosen], :]
