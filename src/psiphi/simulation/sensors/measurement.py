"""`motion.measure(sensors)`: sensors along a recorded motion, each at its own rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import robot_of, whole_number
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.forces.external_forces import ExternalForces, Push
from psiphi.simulation.plant import Plant
from psiphi.simulation.sensors.contact_wrenches import contact_wrenches
from psiphi.simulation.sensors.sensor_models import (
    ContactForce,
    JointTorque,
    MotionSamples,
    Sensor,
)
from psiphi.simulation.trajectory.trajectory import Trajectory

MOST_SAMPLES = 1 << 31


class Measurement(NamedTuple):
    """What a sensor measured: times t (n,), values (..., n, *channels), and the exact values."""

    t: np.ndarray
    value: np.ndarray
    exact: np.ndarray


def measure(
    motion: Trajectory, sensors: Mapping[str, Sensor], seed: int = 0, *, f_ext: Push | None = None
) -> dict[str, Measurement]:
    """The measurements of sensors along the motion: {name: (t, value, exact)}.

    A sensor with a `rate` measures at t0, t0 + 1/rate, ...; q and v between samples follow `at`. On
    a ground, a and forces are those of the step. Errors of sensors depend on the seed, the name,
    the number of the motion in the batch, and the sample. Pass the same `f_ext` as to
    `pp.simulate`.

    >>> import numpy as np, psiphi as pp
    >>> motion = pp.simulate(pp.load("ur5"), np.zeros(6), duration=0.1)
    >>> sensors = {"imu": pp.IMU("tool0", rate=200), "joints": pp.JointTorque(rate=1000, noise=0.1)}
    >>> found = motion.measure(sensors, seed=3)
    >>> {name: x.value.shape for name, x in found.items()}
    {'imu': (21, 6), 'joints': (101, 6)}
    """
    return measure_motions(motion, sensors, seed, f_ext)


def measure_motions(
    motion: Trajectory,
    sensors: Mapping[str, Sensor],
    seed: int = 0,
    f_ext: Push | None = None,
    motions: np.ndarray | None = None,
) -> dict[str, Measurement]:
    """(Internal use only) `measure` of motions with these numbers, which their errors depend on."""
    if not isinstance(sensors, Mapping) or not all(
        isinstance(name, str) and isinstance(x, Sensor) for name, x in sensors.items()
    ):
        raise StateError(
            f"sensors is {shown(sensors)}, expected sensors by name",
            'give {"imu": pp.IMU("tool")}',
        )
    if motion.system is None or not isinstance(motion.system, Robot | System):
        raise StateError(
            "measure: the robot of this motion is not known",
            "load it with Trajectory.load(path, system=robot)",
        )
    seed = whole_number("seed", seed)
    if seed >= 1 << 64:
        raise StateError(f"seed is {seed}", "give a number below 2^64")
    pushes = None if f_ext is None else ExternalForces(Plant(motion.system), motion.batch, f_ext)
    return {name: _read(motion, name, x, seed, pushes, motions) for name, x in sensors.items()}


def _read(
    motion: Trajectory,
    name: str,
    sensor: Sensor,
    seed: int,
    pushes: ExternalForces | None,
    motions: np.ndarray | None,
) -> Measurement:
    """What one sensor measures."""
    if not len(motion):
        raise StateError("measure: the motion has no samples", "give a motion with some")
    t = measurement_times(motion.t, sensor)
    with np.errstate(invalid="ignore"):
        exact = sensor.sample(_samples(motion, sensor, t, pushes))
    flat = exact.reshape(int(np.prod(motion.batch)), len(t), -1)
    step = 1.0 / sensor.rate if sensor.rate else _mean_step(t)
    value = sensor.errors.disturb(flat, step, seed, name, motions).reshape(exact.shape)
    return Measurement(t, value, exact)


def _mean_step(t: np.ndarray) -> float:
    return float(t[-1] - t[0]) / max(len(t) - 1, 1)


def measurement_times(t: np.ndarray, sensor: Sensor) -> np.ndarray:
    """(Internal use only) The times of the measurements of a motion with samples at t."""
    if sensor.rate is None:
        return t
    span = float(t[-1] - t[0])
    count = np.floor(span * sensor.rate * (1.0 + 1e-12) + 1e-9) + 1.0
    if not count < MOST_SAMPLES:
        raise StateError(f"rate={sensor.rate:g} gives {count:g} measurements", "give a lower rate")
    return np.minimum(t[0] + np.arange(int(count)) / sensor.rate, t[-1])


def _samples(
    motion: Trajectory, sensor: Sensor, t: np.ndarray, pushes: ExternalForces | None
) -> MotionSamples:
    """What the sensor reads of the motion at these times."""
    if motion.a is None and not isinstance(sensor, ContactForce):
        raise StateError(
            f"{type(sensor).__name__}: the motion has no accelerations",
            "give them to the trajectory, a=..., or use the motion that pp.simulate returned",
        )
    q, v, a, forces = _state(motion, sensor, t)
    robot = robot_of(Plant(motion.system).with_sample_axis().system)
    wrenches = {}
    if isinstance(sensor, JointTorque):
        if pushes is None and motion.info.get("f_ext"):
            raise StateError(
                "JointTorque: pushes acted in this motion, and they are not recorded",
                "pass the same f_ext= to measure",
            )
        wrenches = contact_wrenches(motion, robot, q, forces)
        if pushes is not None:
            for frame, wrench in pushes.sampled_wrenches(t).items():
                wrenches[frame] = wrenches.get(frame, 0.0) + wrench
    return MotionSamples(robot, q, v, a, wrenches, forces, _contact_names(motion))


def _state(motion: Trajectory, sensor: Sensor, t: np.ndarray) -> tuple[Any, ...]:
    """q, v, a and the contact forces at these times; v in place of unknown a."""
    a = motion.v if motion.a is None else motion.a
    if sensor.rate is None:
        return motion.q, motion.v, a, motion.forces
    sample = motion.at(t)
    if "ground" not in motion.info:
        return sample.q, sample.v, sample.v if sample.a is None else sample.a, sample.forces
    # on a ground, a and forces are means over the step that follows a sample
    last = np.searchsorted(motion.t, t + 1e-9 * (1.0 + np.abs(t)), side="right") - 1
    axis, forces = len(motion.batch), motion.forces
    forces = None if forces is None else np.take(forces, last, axis)
    return sample.q, sample.v, np.take(a, last, axis), forces


def _contact_names(motion: Trajectory) -> tuple[str, ...]:
    if "contacts" in motion.info:
        return tuple(motion.info["contacts"])
    contacts = getattr(motion.system, "contacts", ())
    return tuple(contact.name for contact in contacts)
