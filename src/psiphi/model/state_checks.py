"""What a state must be: finite numbers, quaternions of unit length. What is not so is named by joint and batch element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi.model.components import joint_at, names_of_entries
from psiphi.model.loops.cluster_kinematics import OPEN
from psiphi.model.model import Model
from psiphi.model.spatial.scalar_arrays import along

ROUNDING = 1e-6  # how far from 1 a quaternion's norm may be: rounding of float32, not another scale


def check_states(
    model: Model,
    name: str,
    inputs: Sequence[Any],
    values: Sequence[Any],
    frames: Sequence[str] = (),
) -> None:
    """The values of some arguments (`sweeps.program.Argument`), else a StateError."""
    for arg, value in zip(inputs, values, strict=True):
        array = np.asarray(value)
        place = first(~np.isfinite(array)) if array.dtype.kind == "f" else None
        if place is not None:
            whose = _whose(model, arg, place, frames)
            where = (
                f"{arg.name}{list(place)}: {whose}{element(place[: len(place) - len(arg.shape)])}"
            )
            raise StateError(
                f"{name}: {where} has {array[place]}, expected finite numbers",
                "look at where it came from",
            )
        if arg.per_joint == "q":
            check_quaternions(model, name, array)
            check_loops(model, name, array)


def check_order(model: Model, name: str, value: Any, of: str) -> None:
    """Refuse a table (pandas, xarray) of q or v whose columns are this model's in another order: it is read by position.

    Columns may have a prefix, as "q:elbow" of a motion has.
    """
    if type(value) is np.ndarray or not hasattr(value, "to_numpy"):
        return
    dims = getattr(value, "dims", ())
    own = (
        value.indexes.get(dims[-1], ())
        if dims
        else getattr(value, "columns", getattr(value, "index", ()))
    )
    check_columns(model, name, [str(label).rpartition(":")[2] for label in own], of)


def check_columns(model: Model, name: str, columns: list[str], of: str) -> None:
    """Refuse the names of all entries of q or v in another order than the model's; others say nothing about it."""
    expected = names_of_entries(model.joints, of)
    if columns != expected and sorted(columns) == sorted(expected):
        cause = f"{name} has the columns {shown(columns)}, in another order than {model.name}"
        names = "robot.coordinate_names" if of == "q" else "robot.velocity_names"
        raise StateError(cause, f"numbers are read by position: sort columns by {names}")


def check_loops(model: Model, name: str, q: np.ndarray) -> None:
    """Loops that are embedded are closed, to rounding."""
    for joint in model.units if model.embedding is not None else ():
        if joint.kind == "compound":
            gap = np.abs(along(joint.laws.gaps, q[..., joint.q_slice].astype(float))).max(axis=-1)
            place = first(~(gap < OPEN))
            if place is not None:
                cause = f"{name}: the loop of {joint.name}{element(place)} is open by {gap[place]:.3g} (m or rad)"
                raise StateError(
                    cause,
                    "robot.normalize(q) closes it; robot.neutral() and robot.random() are closed",
                )


def check_quaternions(model: Model, name: str, q: np.ndarray) -> None:
    """Unit quaternions, to rounding."""
    for joint in model.joints:
        if joint.row.nq == joint.row.nv:
            continue
        with np.errstate(all="ignore"):
            norm = np.linalg.norm(q[..., joint.q_slice][..., -4:].astype(float), axis=-1)
        place = first(np.abs(norm - 1.0) > ROUNDING)
        if place is not None:
            cause = f"the quaternion of joint {joint.name!r}{element(place)} has norm {norm[place]:.9g}, expected 1"
            raise StateError(
                f"{name}: {cause}",
                "robot.normalize(q) scales quaternions; their order is x, y, z, w",
            )


def first(wrong: np.ndarray) -> tuple[int, ...] | None:
    """Where the first True stands."""
    return tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.any() else None


def element(place: tuple[int, ...]) -> str:
    """A batch element, in words; nothing where there is no batch."""
    return f" in batch element {place[0] if len(place) == 1 else place}" if place else ""


def _whose(model: Model, arg: Any, place: tuple[int, ...], frames: Sequence[str]) -> str:
    """Whose number it is, in words."""
    if arg.name == "f_ext":
        return f"frame {frames[place[-2]]!r}"
    if arg.name == "parameters" and model.freed is not None:
        return repr(model.freed.names[place[-1]])
    return f"joint {joint_at(model.joints, place[-1], arg.per_joint).name!r}"
