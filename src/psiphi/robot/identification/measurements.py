"""Measured motions as rows of a linear system: tau = Y pi, and wrenches through joints.

A row is the torque of a joint or a component of a wrench, with its own noise; a sample has all
rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import batch_axes, read_array
from psiphi.model.parameters.free_parameters import INERTIA
from psiphi.model.state_checks import check_column_order
from psiphi.robot.identification.base_parameters import (
    BaseParameters,
    all_parameters,
    base_from_rows,
    check_groups,
    parameter_names,
    random_motions,
)
from psiphi.robot.robot import Robot

WRENCH = ("Mx", "My", "Mz", "Fx", "Fy", "Fz")


@dataclass(frozen=True)
class MeasuredRows:
    """Y (samples, rows, n) and y (samples, rows) with y = Y pi, and the names of the rows.

    `groups` are the joint parameters among pi.
    """

    Y: np.ndarray
    y: np.ndarray
    rows: tuple[str, ...]
    base: BaseParameters
    groups: tuple[str, ...]


def rms(x: np.ndarray) -> np.ndarray:
    """The root mean square of each row over the samples, without overflow of squares."""
    largest = np.abs(x).max(axis=0)
    return largest * np.sqrt(((x / np.where(largest > 0.0, largest, 1.0)) ** 2).mean(axis=0))


def read_measurements(
    robot: Robot,
    motion: Mapping[str, Numbers],
    more: str | Sequence[str],
    wrenches: Mapping[str, Numbers] | None,
) -> MeasuredRows:
    """Check and stack the data; `motion` has q, v, a and tau."""
    if robot.freed is not None:
        raise StateError(f"identify: {robot.name} has free parameters", "use it before `free`")
    if not robot.nv:
        raise StateError(
            f"identify: {robot.name} has no moving joint",
            'pp.load(..., base="free") makes its base free',
        )
    groups, links = check_groups(more), _check_links(robot, wrenches)
    samples = _read_samples(robot, motion, wrenches)
    q, v, a, tau = (samples.pop(name) for name in ("q", "v", "a", "tau"))
    Y, y = [robot.regressor(q, v, a, more=groups)], [tau - _rotor_torques(robot, q, v, a, groups)]
    names = [*robot.velocity_names]
    for link, wrench in samples.items():
        Y.append(_pad_columns(robot.wrench_regressor(q, v, a, link), Y[0].shape[-1]))
        y.append(wrench)
        names += [f"{link}.{x}" for x in WRENCH]
    return MeasuredRows(
        np.concatenate(Y, axis=-2),
        np.concatenate(y, axis=-1),
        tuple(names),
        identifiable_parameters(robot, groups, links),
        groups,
    )


def _rotor_torques(
    robot: Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray, groups: tuple[str, ...]
) -> np.ndarray:
    """The torques of rotors that do not depend on pi.

    These are the torques of the robot without mass, minus the armature columns of Y.
    """
    if not robot.has_loops:
        return np.zeros_like(a) if "armature" in groups else robot.armature * a
    free = robot.free("inertia")
    without_mass = free.inverse_dynamics(q, v, a, parameters=np.zeros(len(free.parameter_names)))
    return without_mass - robot.armature * a if "armature" in groups else without_mass


def identifiable_parameters(
    robot: Robot, groups: tuple[str, ...], links: tuple[str, ...]
) -> BaseParameters:
    """The base parameters of joint torques and of wrenches through the joints of these links."""
    if not links:
        return robot.base_parameters(more=groups)
    names, rng = parameter_names(robot, groups), np.random.default_rng(0)
    q, v, a = random_motions(robot, rng, 2 + 2 * len(names) // max(1, robot.nv))
    Y = [robot.regressor(q, v, a, more=groups)]
    Y += [_pad_columns(robot.wrench_regressor(q, v, a, link), len(names)) for link in links]
    rows = np.concatenate(Y, axis=-2).reshape(-1, len(names))
    return base_from_rows(names, rows, all_parameters(robot, groups))


def _pad_columns(W: np.ndarray, width: int) -> np.ndarray:
    """W with zero columns for joint parameters, on which wrenches do not depend."""
    return np.concatenate([W, np.zeros((*W.shape[:-1], width - W.shape[-1]))], axis=-1)


def _check_links(robot: Robot, wrenches: object) -> tuple[str, ...]:
    if wrenches is None:
        return ()
    if not isinstance(wrenches, Mapping):
        raise StateError(
            f"wrenches is {shown(wrenches)}, expected {{link: (..., 6)}}", "give a dict"
        )
    known = [body.name for body in robot.bodies]
    for link in wrenches:
        if link not in known:
            raise StateError(
                f"identify: wrenches names {shown(link)}, which is not a moving link",
                nearest(link, known),
            )
    return tuple(wrenches)


def _read_samples(
    robot: Robot, motion: Mapping[str, Numbers], wrenches: Mapping[str, Numbers] | None
) -> dict[str, np.ndarray]:
    """All data as arrays (samples, n) of finite numbers."""
    arrays = {}
    for name, values in (*motion.items(), *(wrenches or {}).items()):
        size = 6 if name not in motion else robot.nq if name == "q" else robot.nv
        array, fault = read_array(values, (size,))
        if fault:
            raise StateError(
                f"identify: {name} {fault}",
                f"give {size} numbers in the last axis, after the axis of samples",
            )
        check_column_order(robot, f"identify: {name}", values, "q" if name == "q" else "v")
        arrays[name] = array.astype(float, copy=False)
    lead = batch_axes("identify, samples", {name: x.shape[:-1] for name, x in arrays.items()})
    for name in arrays.keys() - {"q", "v", "a"}:  # these may be constant, measurements may not
        if (shape := arrays[name].shape)[:-1] != lead:
            cause = f"identify: {name} has shape {shape}, expected {(*lead, shape[-1])}"
            raise StateError(cause, "give a measurement for every sample")
    samples = {
        name: np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1])
        for name, x in arrays.items()
    }
    for name, x in samples.items():
        bad = np.flatnonzero(~np.isfinite(x).all(axis=-1))
        if len(bad):
            raise StateError(
                f"identify: {name} of sample {bad[0]} is not finite", "remove such samples"
            )
    count, least = len(samples["q"]), len(INERTIA) * len(robot.bodies) // max(1, robot.nv) + 1
    if count < least:
        raise StateError(
            f"identify: got {count} samples, expected at least {least}", "measure longer"
        )
    return samples
