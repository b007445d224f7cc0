"""A trajectory in words: a small table."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.text import first_names
from psiphi.simulation.trajectory import energy_balance

LIMIT_TOLERANCE = 1e-6  # how far a joint that stands at its limit may be beyond it


def summary_text(motion: Any) -> str:
    """One line a fact."""
    rows = summary_rows(motion)
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def summary_rows(motion: Any) -> list[tuple[str, str]]:
    """(name, value) of everything worth a line."""
    rows = [("system", _name(motion)), ("time", _time(motion))]
    if why := motion.info.get("in Python"):
        rows.append(("steps", f"in Python: {why}"))
    if left := motion.info.get("left out"):
        rows.append(("left out", ", ".join(left)))
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
        rows.append(
            (
                "largest torque",
                f"{torques[most]:.4g} at {_coordinate(motion, most)}" if torques[most] else "0",
            )
        )
        rows += [_unactuated_torques(motion)] if motion.info.get("passive") else []
    rows += energy_balance.balance_rows(motion)
    if "implicit" in motion.info:
        rows.append(("implicit", _implicit(**motion.info["implicit"])))
    if motion.residual is not None:
        position, velocity = _by_coordinate(motion.residual)
        rows.append(("constraint residual", f"{position:.3g} position, {velocity:.3g} velocity"))
    if motion.forces is not None and motion.forces.size:
        rows.append(
            (
                "largest contact force",
                f"{np.nanmax(np.linalg.norm(motion.forces[..., 3:], axis=-1)):.4g} N",
            )
        )
    return [*rows, *_events(motion)]


def _outside_limits(motion: Any) -> list[str]:
    """Coordinates that were outside the limits of their joints, which do not act unless that is asked for."""
    if not hasattr(motion.robot, "lower"):  # the robot is not known
        return []
    q, names = motion.q.reshape(-1, motion.q.shape[-1]), motion.info["q"]
    outside = (
        (q < motion.robot.lower - LIMIT_TOLERANCE) | (q > motion.robot.upper + LIMIT_TOLERANCE)
    ).any(axis=0)
    return [name for name, out in zip(names, outside, strict=True) if out]


def _unactuated_torques(motion: Any) -> tuple[str, str]:
    """What coordinates without a motor were given."""
    tau = np.abs(np.nan_to_num(motion.tau))
    largest = {
        name: float(tau[..., a:b].max(initial=0.0))
        for name, (a, b) in motion.info["passive"].items()
    }
    pushed = {name: most for name, most in largest.items() if most > 0.0}
    if not pushed:
        return "no motor", f"{first_names(list(largest))}: given nothing"
    return "no motor", first_names(
        [f"{name} was given up to {most:.4g}" for name, most in pushed.items()]
    )


def _implicit(joints: list[str], order: int, springs: list[str] | None = None) -> str:
    """Whose losses and springs were taken implicitly, and what order that leaves."""
    words = [
        f"{what} at {first_names(names)}"
        for what, names in (("damping and friction", joints), ("springs", springs))
        if names
    ]
    return f"{', '.join(words)}, of order {order}"


def _events(motion: Any) -> list[tuple[str, str]]:
    shown = [("event", str(event)) for event in motion.events[:10]]
    if len(motion.events) > 10:
        shown.append(("", f"and {len(motion.events) - 10} more"))
    return shown or [("events", "none")]


def _name(motion: Any) -> str:
    return motion.info.get("system") or getattr(motion.robot, "name", "") or "not known"


def _time(motion: Any) -> str:
    method = motion.info.get("method", "")
    how = (
        f", {method}" + (f", dt {motion.info['dt']:g} s" if "dt" in motion.info else "")
        if method
        else ""
    )
    return (
        f"{motion.t[0]:g} to {motion.t[-1]:g} s, {len(motion)} samples{how}"
        if len(motion)
        else "none"
    )


def _coordinate(motion: Any, k: int) -> str:
    names = motion.info.get("v", [])
    return names[k] if k < len(names) else f"v[{k}]"


def _by_coordinate(x: np.ndarray) -> np.ndarray:
    """The largest of each column; NaN left out."""
    return np.nan_to_num(x, nan=0.0).max(axis=tuple(range(x.ndim - 1)), initial=0.0)
