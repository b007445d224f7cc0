"""The energy balance of a trajectory: E(t) - E(0) = work of the torques - losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psiphi._util.validate import robot_of
from psiphi.robot.robot import Robot
from psiphi.simulation.plant import Plant, joint_velocity

if TYPE_CHECKING:
    from psiphi.simulation.trajectory.trajectory import Trajectory

ROUNDING = 1e-13  # of an energy, relative: hundreds of roundings


def drift(motion: Trajectory) -> np.ndarray:
    """max |E(t) - E(0)| / max kinetic energy of each motion; NaN without energies."""
    if motion.energy is None or not len(motion):
        return np.full(motion.batch, np.nan)
    change = _largest(motion.energy - motion.energy[..., :1])
    system = None if motion.system is None else Plant(motion.system).with_sample_axis().system
    robot = robot_of(system)
    kinetic_energy = getattr(robot, "kinetic_energy", None)
    scale = _largest(
        motion.energy
        if kinetic_energy is None
        else kinetic_energy(motion.q, joint_velocity(system, motion.q, motion.v))
    )
    if isinstance(robot, Robot) and (change > scale).any():
        change = np.where(change > _rounding(motion, robot), change, 0.0)
    return np.divide(change, scale, out=np.where(change > 0.0, np.inf, 0.0), where=scale > 0.0)


def _rounding(motion: Trajectory, robot: Robot) -> np.ndarray:
    """The rounding error of the energies of each motion. A body at rest has no other drift."""
    assert motion.energy is not None
    size, g = _largest(motion.energy), np.linalg.norm(robot.gravity_vector)
    if robot.mass > 0.0 and g > 0.0:
        size = size + robot.mass * g * _largest(np.abs(robot.center_of_mass(motion.q)).max(axis=-1))
    return ROUNDING * size


def work(motion: Trajectory) -> np.ndarray | None:
    """W(t) = sum over the steps of h tau . v, with the mean v of both ends.

    tau is that of the start of the step if it is held within a step; else the mean of tau . v is
    used. None if tau does not belong to v, because v is not the joint velocity.
    """
    if (
        motion.tau is None
        or not len(motion)
        or motion.tau.shape != motion.v.shape
        or _has_other_velocities(motion.system)
    ):
        return None
    tau, v, h = motion.tau, motion.v, np.diff(motion.t)
    if motion.info.get("held") and _samples_are_steps(motion, h):
        power = 0.5 * np.einsum("...i,...i->...", tau[..., :-1, :], v[..., 1:, :] + v[..., :-1, :])
    else:
        each = np.einsum("...i,...i->...", tau, v)
        power = 0.5 * (each[..., 1:] + each[..., :-1])
    return np.concatenate([np.zeros((*motion.batch, 1)), np.cumsum(h * power, axis=-1)], axis=-1)


def balance_rows(motion: Trajectory) -> list[tuple[str, str]]:
    """The lines of the summary about energy: the drift if it should be zero, else the work of the
    torques and the losses."""
    if motion.energy is None or not np.isfinite(motion.energy).any():
        return []
    mean = "mean energy" if motion.batch else "energy"
    first, last = np.nanmean(motion.energy[..., 0]), _last_finite(motion.energy)
    rows = [(mean, f"{first:.6g} J to {last:.6g} J")]
    if motion.info.get("f_ext"):  # whose work is not recorded
        return rows
    is_driven = motion.tau is None or bool(np.any(np.nan_to_num(motion.tau)))
    has_losses = bool(motion.info.get("losses"))
    if motion.stop_work is not None:
        label = "mean work of stops" if motion.batch else "work of stops"
        rows.append((label, f"{_last_finite(motion.stop_work):.4g} J"))
    if not is_driven and not has_losses and motion.stop_work is None:
        worst = float(np.max(drift(motion), initial=0.0))
        return [*rows, ("energy drift", f"{worst:.3g} of the largest kinetic energy")]
    done = work(motion)
    if done is None:
        return rows
    stops = 0.0 if motion.stop_work is None else motion.stop_work
    gap = motion.energy - motion.energy[..., :1] - done - stops
    mean = "mean " if motion.batch else ""
    if is_driven:
        steps = np.nan_to_num(np.diff(done, axis=-1)).reshape(-1, len(motion) - 1)
        work_in, work_out = (
            float(x.sum(axis=-1).mean()) for x in (np.maximum(steps, 0.0), np.maximum(-steps, 0.0))
        )
        rows.append((f"{mean}work of torques", f"{work_in:.4g} J in, {work_out:.4g} J out"))
    if has_losses:
        loss = f"{0.0 - _last_finite(gap):.4g} J, by friction, damping or contacts"
        return [*rows, (f"{mean}loss", loss)]
    worst = np.nan_to_num(np.abs(gap)).max(initial=0.0)
    return [*rows, ("energy balance", f"energy less work is off by {worst:.2g} J at most")]


def _has_other_velocities(system: object) -> bool:
    """Whether v of a system is not the joint velocity of its robot."""
    return (
        system is not None
        and robot_of(system) is not system
        and (hasattr(system, "velocity") or hasattr(system, "rates"))
    )


def _samples_are_steps(motion: Trajectory, h: np.ndarray) -> bool:
    """Whether every step has a sample, so that tau is constant between two of them."""
    dt = motion.info.get("dt")
    return dt is not None and bool(np.allclose(h, dt, rtol=1e-6))


def _last_finite(x: np.ndarray) -> float:
    """The last finite number of each row, mean over the rows: a motion that stopped ends in NaN."""
    last = [
        row[np.isfinite(row)][-1] for row in x.reshape(-1, x.shape[-1]) if np.isfinite(row).any()
    ]
    return float(np.mean(last)) if last else np.nan


def _largest(x: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.abs(x), nan=0.0).max(axis=-1, initial=0.0)
