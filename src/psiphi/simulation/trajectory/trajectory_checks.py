"""Checks of the arrays, names and events that a trajectory is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import real_array, robot_of
from psiphi.model.model import Model
from psiphi.model.state_checks import check_column_order, check_columns
from psiphi.simulation.plant import Plant, SimulatedSystem
from psiphi.simulation.trajectory.trajectory_tables import SAMPLE_AXES, coordinate_names

COORDINATE_ARRAYS = {
    "q": ("q",),
    "v": ("v", "a", "tau", "stop_forces"),
}  # arrays with one column per coordinate
E = TypeVar("E")


def check_arrays(values: Mapping[str, object]) -> dict[str, np.ndarray | None]:
    """t (n,) and the samples (..., n, *sample), as float64."""
    t = real_array("t", values["t"], (), "give the times of the samples, (n,)")
    if t.ndim != 1:
        raise StateError(f"t has shape {t.shape}, expected (n,)", "the order is t, q, v, a, tau")
    if not np.isfinite(t).all() or (np.diff(t) < 0.0).any():
        raise StateError(
            f"t is {shown(values['t'])}, expected n times that do not decrease",
            "sort the samples by their times",
        )
    out: dict[str, np.ndarray | None] = {"t": t}
    lead: tuple[int, ...] | None = None
    for name, axes in SAMPLE_AXES.items():
        if (value := values[name]) is None and name not in ("q", "v"):
            out[name] = None
            continue
        x = real_array(name, value, (), f"give an array {_expected_shape(name, axes)}")
        lead_axes = x.shape[: x.ndim - axes]
        fits_times = x.ndim > axes and lead_axes[-1:] == t.shape
        if not fits_times or lead_axes != (lead_axes if lead is None else lead):
            expected = (
                f"({', '.join(map(str, lead))}, ...)"
                if lead
                else f"{_expected_shape(name, axes)} with n = {len(t)}"
            )
            raise StateError(
                f"{name} has shape {x.shape}, expected {expected}",
                "give one row per sample, with batch axes in front",
            )
        lead, out[name] = lead_axes, x
    return out


def _expected_shape(name: str, axes: int) -> str:
    contacts = {"forces": "contacts, 6 or 3", "gaps": "contacts", "modes": "contacts"}
    ends = {"q": "nq", "residual": "2", **contacts}.get(name, "nv")
    return f"(..., n{', ' + ends if axes else ''})"


def check_orders(system: object, tables: Mapping[str, object]) -> None:
    """Raise an error if a table of pandas has its columns in another order than the system."""
    for name, table in tables.items() if system is not None else ():
        check_column_order(robot_of(system), name, table, "q" if name == "q" else "v")


def complete_info(info: object, system: Any, nq: int, nv: int) -> dict[str, Any]:
    """`info` with the names of the system, its coordinates and contacts; checks nq and nv."""
    if not isinstance(info, Mapping) or not all(isinstance(key, str) for key in info):
        raise StateError(f"info is {shown(info)}, expected a dict of names", "leave it out")
    if system is None:
        return dict(info)
    plant = Plant(system)
    if (plant.nq, plant.nv) != (nq, nv):
        sizes = f"nq={plant.nq} and nv={plant.nv}"
        moved = f": {shown(info['system'])}" if "system" in info else ""
        raise StateError(
            f"{plant.name} has {sizes}, but the motion has nq={nq} and nv={nv}",
            f"give the system that moved{moved}",
        )
    for part in ("q", "v"):
        check_columns(plant.robot, part, list(info.get(part, ())), part)
    names: dict[str, Any] = {"system": plant.name, **coordinate_names(plant.robot)}
    if plant.contacts:
        contacts = enumerate(plant.contacts)
        names["contacts"] = [str(getattr(contact, "name", i)) for i, contact in contacts]
    return names | dict(info)


def in_joint_order(
    arrays: dict[str, np.ndarray], info: dict[str, Any], system: Model | SimulatedSystem
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays of a file in the order of the system's coordinates, if its columns have their names in
    another order."""
    robot = Plant(system).robot
    for key, names in coordinate_names(robot).items():
        found = info.get(key) if isinstance(info, dict) else None
        if found == names or not isinstance(found, list):
            continue
        if sorted(map(str, found)) != sorted(names):
            continue
        columns = [name for name in COORDINATE_ARRAYS[key] if name in arrays]
        if any(arrays[name].shape[-1:] != (len(names),) for name in columns):
            continue  # other sizes: `complete_info` raises the error
        order = [found.index(name) for name in names]
        arrays = arrays | {name: arrays[name][..., order] for name in columns}
        info = info | {key: names}
        if key == "v" and isinstance(passive := info.get("passive"), dict):
            info["passive"] = {
                joint.name: [joint.v_slice.start, joint.v_slice.stop]
                for joint in robot.joints
                if joint.name in passive
            }
    return arrays, info


def check_events(events: object, kind: type[E]) -> tuple[E, ...]:
    """The events as a tuple."""
    each = tuple(events) if isinstance(events, list | tuple) else (events,)
    found = tuple(event for event in each if isinstance(event, kind))
    if len(found) < len(each):
        raise StateError(f"events is {shown(events)}, expected events of a motion", "leave it out")
    return found
