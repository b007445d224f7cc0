"""Checks of states: finite numbers, unit quaternions, closed loops, columns in order.

Errors name the joint and the batch element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import ArgumentSpec
from psiphi.model.components import entry_names, joint_of_entry
from psiphi.model.loops.cluster_kinematics import MAX_GAP
from psiphi.model.model import Model
from psiphi.model.spatial.scalar_arrays import on_arrays

ROUNDING = 1e-6  # tolerance of a quaternion's norm: allows float32 rounding, not another scale


class StateArgument(ArgumentSpec, Protocol):
    """An argument of a compiled function; `per_joint` is "q", "v" or "", by its last axis."""

    @property
    def per_joint(self) -> str: ...


def check_states(
    model: Model,
    name: str,
    inputs: Sequence[StateArgument],
    values: Sequence[object],
    frames: Sequence[str] = (),
) -> None:
    """Check the arguments of the function `name`: finite; q with unit quaternions, closed loops."""
    for arg, value in zip(inputs, values, strict=True):
        array = np.asarray(value)
        place = first_true(~np.isfinite(array)) if array.dtype.kind == "f" else None
        if place is not None:
            element = batch_element(place[: len(place) - len(arg.shape)])
            where = f"{arg.name}{list(place)}: {_entry_label(model, arg, place, frames)}{element}"
            raise StateError(
                f"{name}: {where} has {array[place]}, expected finite numbers",
                "check where it comes from",
            )
        if arg.per_joint == "q":
            check_unit_quaternions(model, name, array)
            check_loops(model, name, array)


def check_column_order(model: Model, name: str, value: Any, of: str) -> None:
    """Check the columns of a table (pandas, xarray) of q or v, which is read by position.

    Labels may have a prefix, such as "q:elbow". Raises an error if the columns are the model's in
    another order.
    """
    if type(value) is np.ndarray or not hasattr(value, "to_numpy"):
        return
    dims = getattr(value, "dims", ())
    if dims:
        labels = value.indexes.get(dims[-1], ())
    else:
        labels = getattr(value, "columns", getattr(value, "index", ()))
    check_columns(model, name, [str(label).rpartition(":")[2] for label in labels], of)


def check_columns(model: Model, name: str, columns: list[str], of: str) -> None:
    """Raise an error if `columns` are the names of q or v in another order; ignore other names."""
    if not columns:
        return
    expected = entry_names(model.joints, of)
    if columns != expected and sorted(columns) == sorted(expected):
        cause = f"{name} has the columns {shown(columns)}, in another order than {model.name}"
        names = "robot.coordinate_names" if of == "q" else "robot.velocity_names"
        raise StateError(cause, f"numbers are read by position: sort columns by {names}")


def check_loops(model: Model, name: str, q: np.ndarray) -> None:
    """Check that embedded loops are closed to rounding."""
    for joint in model.units if model.embedding is not None else ():
        if joint.kind == "compound":
            coordinates = q[..., joint.q_slice].astype(float)
            gap = np.abs(on_arrays(joint.kinematics.closure_errors, coordinates)).max(axis=-1)
            place = first_true(~(gap < MAX_GAP))
            if place is not None:
                loop = f"the loop of {joint.name}{batch_element(place)}"
                raise StateError(
                    f"{name}: {loop} is open by {gap[place]:.3g} (m or rad)",
                    "robot.normalize(q) closes it; robot.neutral() and robot.random() are closed",
                )


def check_unit_quaternions(model: Model, name: str, q: np.ndarray) -> None:
    """Check that quaternions have unit length to rounding."""
    for name_of_joint, numbers in model.unit_vectors:
        with np.errstate(all="ignore"):
            norm = np.linalg.norm(q[..., numbers].astype(float), axis=-1)
        place = first_true(np.abs(norm - 1.0) > ROUNDING)
        if place is not None:
            quaternion = f"the quaternion of joint {name_of_joint!r}{batch_element(place)}"
            raise StateError(
                f"{name}: {quaternion} has norm {norm[place]:.9g}, expected 1",
                "robot.normalize(q) scales quaternions; their order is x, y, z, w",
            )


def first_true(mask: np.ndarray) -> tuple[int, ...] | None:
    """The index of the first True, or None."""
    return tuple(int(i) for i in np.argwhere(mask)[0]) if mask.any() else None


def batch_element(place: tuple[int, ...]) -> str:
    """ " in batch element 3" for messages; "" for an empty index, without a batch."""
    return f" in batch element {place[0] if len(place) == 1 else place}" if place else ""


def _entry_label(
    model: Model, arg: StateArgument, place: tuple[int, ...], frames: Sequence[str]
) -> str:
    """The frame, parameter or joint that an entry of an argument belongs to."""
    if arg.name == "f_ext":
        return f"frame {frames[place[-2]]!r}"
    if arg.name == "parameters" and model.freed is not None:
        return repr(model.freed.names[place[-1]])
    return f"joint {joint_of_entry(model.joints, place[-1], arg.per_joint).name!r}"
