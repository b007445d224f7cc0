"""What a trajectory is given: arrays that fit together, and the names of their columns where the robot is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import real_array, robot_of
from psiphi.model.state_checks import check_column_order, check_columns
from psiphi.simulation.plant import Plant
from psiphi.simulation.trajectory.trajectory_tables import SAMPLE_AXES, coordinate_names

COORDINATE_ARRAYS = {"q": ("q",), "v": ("v", "a", "tau")}  # what has a column a coordinate


def check_arrays(given: dict[str, Any]) -> dict[str, np.ndarray | None]:
    """t (n,) and what was sampled at these times, (..., n, *sample), as float64."""
    t = real_array("t", given["t"], (), "give the times of the samples, (n,)")
    if t.ndim != 1:
        raise StateError(
            f"t has shape {t.shape}, expected (n,)", "the order is t, q, v, a, tau: times first"
        )
    if not np.isfinite(t).all() or (np.diff(t) < 0.0).any():
        raise StateError(
            f"t is {shown(given['t'])}, expected n times that do not decrease",
            "sort the samples by their times",
        )
    out: dict[str, np.ndarray | None] = {"t": t}
    lead: tuple[int, ...] | None = None
    for name, axes in SAMPLE_AXES.items():
        if (value := given[name]) is None and name not in ("q", "v"):
            out[name] = None
            continue
        x = real_array(name, value, (), f"give an array {_expected_shape(name, axes)}")
        own = x.shape[: x.ndim - axes]
        if x.ndim <= axes or own[-1:] != t.shape or own != (own if lead is None else lead):
            whole = (
                f"({', '.join(map(str, lead))}, ...)"
                if lead
                else f"{_expected_shape(name, axes)} with n = {len(t)}"
            )
            raise StateError(
                f"{name} has shape {x.shape}, expected {whole}",
                "a row a sample; the axes of a batch stand in front",
            )
        lead, out[name] = own, x
    return out


def _expected_shape(name: str, axes: int) -> str:
    ends = {"q": "nq", "forces": "contacts, 6", "residual": "2"}.get(name, "nv")
    return f"(..., n{', ' + ends if axes else ''})"


def check_orders(system: Any, tables: dict[str, Any]) -> None:
    """Tables of pandas in the order of the system's joints, where it is known."""
    for name, table in tables.items() if system is not None else ():
        check_column_order(robot_of(system), name, table, "q" if name == "q" else "v")


def complete_info(info: Any, system: Any, nq: int, nv: int) -> dict[str, Any]:
    """`info`, with the names of the system, its coordinates and its contacts; a system of other sizes is refused."""
    if not isinstance(info, Mapping) or not all(isinstance(key, str) for key in info):
        raise StateError(f"info is {shown(info)}, expected a dict of names", "leave it out")
    if system is None:
        return dict(info)
    plant = Plant(system)
    if (plant.nq, plant.nv) != (nq, nv):
        cause = f"{plant.name} has nq={plant.nq} and nv={plant.nv}, and the motion has nq={nq} and nv={nv}"
        raise StateError(
            cause, f"give the system that moved: {shown(info.get('system', 'not named'))}"
        )
    for part in ("q", "v"):
        check_columns(plant.robot, part, list(info.get(part, ())), part)
    names: dict[str, Any] = {"system": plant.name, **coordinate_names(plant.robot)}
    if plant.contacts:
        names["contacts"] = [
            str(getattr(contact, "name", i)) for i, contact in enumerate(plant.contacts)
        ]
    return names | dict(info)


def in_joint_order(
    arrays: dict[str, Any], info: dict[str, Any], system: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A file's numbers in the order of the system's coordinates, where its columns bear their names in another one."""
    robot = Plant(system).robot
    for key, names in coordinate_names(robot).items():
        own = info.get(key) if isinstance(info, dict) else None
        if own == names or not isinstance(own, list) or sorted(map(str, own)) != sorted(names):
            continue
        if any(
            arrays[x].shape[-1:] != (len(names),) for x in COORDINATE_ARRAYS[key] if x in arrays
        ):
            continue  # it does not fit the system, which is said elsewhere
        places = [own.index(name) for name in names]
        arrays = arrays | {x: arrays[x][..., places] for x in COORDINATE_ARRAYS[key] if x in arrays}
        info = info | {key: names}
        if key == "v" and isinstance(idle := info.get("passive"), dict):
            info["passive"] = {
                joint.name: [joint.v_slice.start, joint.v_slice.stop]
                for joint in robot.joints
                if joint.name in idle
            }
    return arrays, info


def check_events(events: Any, kind: type) -> tuple:
    """A tuple of events."""
    each = tuple(events) if isinstance(events, list | tuple) else (events,)
    if not all(isinstance(event, kind) for event in each):
        raise StateError(f"events is {shown(events)}, expected events of a motion", "leave it out")
    return each
