"""Sensors of a study: the tables `[sensors.NAME]`, and the measurements of its motions.

kind = "imu" | "joint_torque" | "contact_force", with frame, joints or contacts
rate, noise, bias, drift    as in `pp.IMU`
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from psiphi._util.errors import Error
from psiphi.apps.scenes.toml_table import Table
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.sensors.measurement import measure_motions, measurement_times
from psiphi.simulation.sensors.sensor_models import IMU, ContactForce, JointTorque, Sensor
from psiphi.simulation.simulate.simulate import simulate
from psiphi.simulation.simulation_errors import MotionWarning
from psiphi.simulation.trajectory.trajectory import Trajectory

KINDS: dict[str, type[Sensor]] = {
    "imu": IMU,
    "joint_torque": JointTorque,
    "contact_force": ContactForce,
}
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class StudySensor:
    """A sensor of a study: its name, and the shapes of its measurements of one motion."""

    name: str
    sensor: Sensor
    times: np.ndarray  # (n,)
    channels: tuple[int, ...]

    @property
    def array(self) -> str:
        """The name of its array in the store."""
        return f"sensor_{self.name}"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its measurements of one motion."""
        return (len(self.times), *self.channels)


def sensor_values(sensor: Sensor) -> dict[str, Any]:
    """A sensor as the values of its table."""
    kind = next(kind for kind, row in KINDS.items() if type(sensor) is row)
    given = {field.name: getattr(sensor, field.name) for field in fields(sensor) if field.init}
    return {"kind": kind, **{name: x for name, x in given.items() if x is not None}}


def read_sensors(
    top: Table,
    system: Robot | System,
    state: tuple[np.ndarray, np.ndarray],
    time: tuple[int, float],
    options: Mapping[str, Any],
) -> tuple[StudySensor, ...]:
    """The sensors of the tables `[sensors.NAME]`. They read one step from the initial state, which
    tells their channels, and unknown names. `time` is the number of steps and their size."""
    if "sensors" not in top:
        return ()
    table, (steps, dt) = top.table("sensors"), time
    if not table.values:
        return ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MotionWarning)
        first = simulate(system, *state, duration=dt, dt=dt, compiled=False, **options)
    found = []
    for name in list(table.values):
        row = table.table(name)
        if not NAME.fullmatch(name):
            table.fail(name, "is not a name for a sensor", "use letters, digits, _ and -")
        kind = KINDS[row.text("kind", among=tuple(KINDS))]
        names = [field.name for field in fields(kind) if field.init]
        given = {key: row.get(key) for key in names if key in row}
        row.reject_unknown()
        try:
            sensor = kind(**given)
            value = measure_motions(first, {name: sensor})[name].value
        except TypeError:
            row.fail("frame", "is missing", 'add frame = "..."')
        except Error as error:
            table.fail(name, error.cause, error.remedy)
        times = measurement_times(dt * np.arange(steps + 1), sensor)
        found.append(StudySensor(name, sensor, times, value.shape[1:]))
    return tuple(found)


def measurements(
    sensors: tuple[StudySensor, ...], motion: Trajectory, numbers: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """The measured values of these motions by the names of their arrays. A motion that stopped has
    NaN from then on."""
    found = measure_motions(motion, {x.name: x.sensor for x in sensors}, seed, motions=numbers)
    out = {}
    for x in sensors:
        values = np.full((len(numbers), *x.shape), np.nan)
        value = found[x.name].value
        values[:, : value.shape[1]] = value
        out[x.array] = values
    return out
