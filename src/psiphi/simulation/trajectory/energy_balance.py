"""Where a trajectory's energy comes from and goes: E(t) - E(0) = work of the torques - losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.validate import robot_of
from psiphi.simulation.plant import Plant, joint_velocity


def drift(motion: Any) -> np.ndarray:
    """max |E(t) - E(0)| / max kinetic energy, of each motion; NaN where energies are not known."""
    if motion.energy is None or not len(motion):
        return np.full(motion.batch, np.nan)
    change = _largest(motion.energy - motion.energy[..., :1])
    system = None if motion.system is None else Plant(motion.system).with_sample_axis().system
    kinetic = getattr(robot_of(system), "kinetic_energy", None)
    scale = _largest(
        motion.energy
        if kinetic is None
        else kinetic(motion.q, joint_velocity(system, motion.q, motion.v))
    )
    return np.divide(change, scale, out=np.where(change > 0.0, np.inf, 0.0), where=scale > 0.0)


def work(motion: Any) -> np.ndarray | None:
    """W(t) = sum over the steps of h tau . v, v the mean of both ends; tau that of the beginning where it is held within a
    step, else the mean of tau . v. None where tau does not belong to v (other velocities than the joints')."""
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


def balance_rows(motion: Any) -> list[tuple[str, str]]:
    """The summary's lines about energy: a drift where it should be zero, else what drove and what braked the motion."""
    if motion.energy is None or not np.isfinite(motion.energy).any():
        return []
    mean = "mean energy" if motion.batch else "energy"
    out = [
        (mean, f"{np.nanmean(motion.energy[..., 0]):.6g} J to {_last_finite(motion.energy):.6g} J")
    ]
    driven = motion.tau is None or bool(np.any(np.nan_to_num(motion.tau)))
    lossy = bool(motion.info.get("losses"))
    if not driven and not lossy:
        worst = float(np.max(drift(motion), initial=0.0))
        return [*out, ("energy drift", f"{worst:.3g} of the largest kinetic energy")]
    done = work(motion)
    if done is None:
        return out
    gap = motion.energy - motion.energy[..., :1] - done
    mean = "mean " if motion.batch else ""
    if driven:
        steps = np.nan_to_num(np.diff(done, axis=-1)).reshape(-1, len(motion) - 1)
        put, taken = (
            float(x.sum(axis=-1).mean()) for x in (np.maximum(steps, 0.0), np.maximum(-steps, 0.0))
        )
        out.append((f"{mean}work of torques", f"{put:.4g} J in, {taken:.4g} J out"))
    if lossy:
        return [
            *out,
            (f"{mean}loss", f"{0.0 - _last_finite(gap):.4g} J, by friction, damping or stops"),
        ]
    most = np.nan_to_num(np.abs(gap)).max(initial=0.0)
    return [*out, ("energy balance", f"energy less work is off by {most:.2g} J at most")]


def _has_other_velocities(system: Any) -> bool:
    return (
        system is not None
        and robot_of(system) is not system
        and (hasattr(system, "velocity") or hasattr(system, "rates"))
    )


def _samples_are_steps(motion: Any, h: np.ndarray) -> bool:
    """Whether the samples are the steps, so that tau is constant between two of them."""
    dt = motion.info.get("dt")
    return dt is not None and bool(np.allclose(h, dt, rtol=1e-6))


def _last_finite(x: np.ndarray) -> float:
    """The last number there is, mean over the batch: a motion that stopped has NaN from then on."""
    each = [row[np.isfinite(row)] for row in x.reshape(-1, x.shape[-1])]
    return (
        float(np.mean([row[-1] for row in each if row.size]))
        if any(row.size for row in each)
        else np.nan
    )


def _largest(x: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.abs(x), nan=0.0).max(axis=-1, initial=0.0)
