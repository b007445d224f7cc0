"""A trajectory as a small table of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psiphi._util.text import first_names
from psiphi.simulation.trajectory import energy_balance

if TYPE_CHECKING:
    from psiphi.simulation.trajectory.trajectory import Trajectory

LIMIT_TOLERANCE = 1e-6  # joints this close to their limits are within them


def summary_text(motion: Trajectory) -> str:
    """The summary, one line per fact."""
    rows = summary_rows(motion)
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def summary_rows(motion: Trajectory) -> list[tuple[str, str]]:
    """The lines of the summary, (name, value)."""
    rows = [("system", _name(motion)), ("time", _time(motion))]
    if why := motion.info.get("in Python"):
        rows.append(("steps", f"in Python: {why}"))
    if ignored := motion.info.get("left out"):
        rows.append(("left out", ", ".join(ignored)))
    if motion.batch:
        rows.append(("batch", " x ".join(map(str, motion.batch))))
    if not len(motion):
        return [*rows, ("samples", "none")]
    speeds = _by_coordinate(np.abs(motion.v))
    fastest = int(np.argmax(speeds)) if speeds.size else 0
    if speeds.size:
        rows.append(("largest speed", f"{speeds[fastest]:.4g} at {_coordinate(motion, fastest)}"))
    if beyond := _outside_limits(motion):
        rows.append(("beyond limits", first_names(beyond)))
    if motion.tau is not None and motion.tau.size:
        torques = _by_coordinate(np.abs(motion.tau))
        most = int(np.argmax(torques))
        where = f"{torques[most]:.4g} at {_coordinate(motion, most)}" if torques[most] else "0"
        rows.append(("largest torque", where))
        rows += [_unactuated_torques(motion, motion.tau)] if motion.info.get("passive") else []
    if pushed := motion.info.get("f_ext"):
        rows.append(("f_ext", f"on {first_names(pushed)}"))
    if idle := motion.info.get("no effort"):
        rows.append(("effort limit 0", f"{first_names(idle)}: the motors give no torque"))
    rows += energy_balance.balance_rows(motion)
    if "implicit" in motion.info:
        rows.append(("implicit", _implicit(**motion.info["implicit"])))
    if motion.residual is not None:
        position, velocity = _by_coordinate(motion.residual)
        rows.append(("constraint residual", f"{position:.3g} position, {velocity:.3g} velocity"))
    if motion.forces is not None and motion.forces.size:
        largest = np.nanmax(np.linalg.norm(motion.forces[..., -3:], axis=-1))
        rows.append(("largest contact force", f"{largest:.4g} N"))
    if motion.contact_residual is not None:
        largest = np.nanmax(motion.contact_residual, initial=0.0)
        rows.append(("contact residual", f"{largest:.3g} m/s"))
    return [*rows, *_events(motion)]


def _outside_limits(motion: Trajectory) -> list[str]:
    """Names of the coordinates that were outside their limits, which act only if chosen."""
    if not hasattr(motion.robot, "lower"):  # the robot is unknown
        return []
    q, robot = motion.q.reshape(-1, motion.q.shape[-1]), motion.robot
    outside = (q < robot.lower - LIMIT_TOLERANCE) | (q > robot.upper + LIMIT_TOLERANCE)
    named = zip(motion.info["q"], outside.any(axis=0), strict=True)
    return [name for name, is_outside in named if is_outside]


def _unactuated_torques(motion: Trajectory, tau: np.ndarray) -> tuple[str, str]:
    """The torques on coordinates without a motor."""
    tau = np.abs(np.nan_to_num(tau))
    largest = {
        name: float(tau[..., start:stop].max(initial=0.0))
        for name, (start, stop) in motion.info["passive"].items()
    }
    nonzero = [f"{name}: torque up to {most:.4g}" for name, most in largest.items() if most > 0.0]
    if nonzero:
        return "no motor", first_names(nonzero)
    return "no motor", f"{first_names(list(largest))}: no torque"


def _implicit(joints: list[str], order: int, springs: list[str] | None = None) -> str:
    """The joints with implicit losses and springs, and the order of the method with them."""
    parts = [
        f"{what} at {first_names(names)}"
        for what, names in (("damping and friction", joints), ("springs", springs))
        if names
    ]
    return f"{', '.join(parts)}, of order {order}"


def _events(motion: Trajectory) -> list[tuple[str, str]]:
    shown = [("event", str(event)) for event in motion.events[:10]]
    if len(motion.events) > 10:
        shown.append(("", f"and {len(motion.events) - 10} more"))
    return shown or [("events", "none")]


def _name(motion: Trajectory) -> str:
    return motion.info.get("system") or getattr(motion.robot, "name", "") or "unknown"


def _time(motion: Trajectory) -> str:
    if not len(motion):
        return "none"
    info = motion.info
    method = f", {info['method']}" if info.get("method") else ""
    dt = f", dt {info['dt']:g} s" if method and "dt" in info else ""
    return f"{motion.t[0]:g} to {motion.t[-1]:g} s, {len(motion)} samples{method}{dt}"


def _coordinate(motion: Trajectory, k: int) -> str:
    names = motion.info.get("v", [])
    return names[k] if k < len(names) else f"v[{k}]"


def _by_coordinate(x: np.ndarray) -> np.ndarray:
    """The largest value of each column, without NaN."""
    return np.nan_to_num(x, nan=0.0).max(axis=tuple(range(x.ndim - 1)), initial=0.0)
