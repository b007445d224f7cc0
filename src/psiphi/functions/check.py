"""`check=True`: look at the numbers before and after a call, and name joint and batch element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psiphi.errors import SingularError, StateError
from psiphi.model.model import Joint, Model
from psiphi.sweeps.program import Argument
from psiphi.wording import shown

ROUNDING = 1e-6  # how far from 1 a quaternion's norm may be: rounding of float32, not another scale


def wanted(check: Any) -> bool:
    """True or False, and nothing that only looks like it."""
    if isinstance(check, bool | np.bool_):
        return bool(check)
    raise StateError(f"check is {shown(check)}, expected True or False", "check=True looks at the numbers, False does not")


def before(model: Model, name: str, inputs: Sequence[Argument], values: Sequence[Any], frames: Sequence[str] = ()) -> None:
    """Finite numbers and unit quaternions, else a StateError."""
    for arg, value in zip(inputs, values, strict=True):
        array = np.asarray(value)
        place = _first(~np.isfinite(array)) if array.dtype.kind == "f" else None
        if place is not None:
            whose = f"frame {frames[place[-2]]!r}" if arg.name == "f_ext" else f"joint {_joint(model, arg, place[-1]).name!r}"
            where = f"{arg.name}{list(place)}: {whose}{_element(place[: len(place) - len(arg.shape)])}"
            raise StateError(f"{name}: {where} has {array[place]}, expected finite numbers", "look at where it came from")
        if arg.per_joint == "q":
            _check_quaternions(model, name, array)


def _check_quaternions(model: Model, name: str, q: np.ndarray) -> None:
    for joint in model.joints:
        if joint.row.nq == joint.row.nv:
            continue
        with np.errstate(all="ignore"):
            norm = np.linalg.norm(q[..., joint.q_slice][..., -4:].astype(float), axis=-1)
        place = _first(np.abs(norm - 1.0) > ROUNDING)
        if place is not None:
            cause = f"the quaternion of joint {joint.name!r}{_element(place)} has norm {norm[place]:.9g}, expected 1"
            raise StateError(f"{name}: {cause}", "robot.normalize(q) scales quaternions; their order is x, y, z, w")


def after(robot: Any, name: str, source: Any, values: Sequence[Any], result: Any) -> None:
    """A finite state with an answer that is not: SingularError. Some D(k) vanishes, or numbers overflow."""
    for arg, array in zip(source.outputs, result if isinstance(result, tuple) else (result,), strict=True):
        place = _first(~np.isfinite(np.asarray(array)))
        if place is None:
            continue
        lead = np.shape(array)[: np.ndim(array) - len(arg.shape)]
        element = place[: len(lead)]
        one = [_one(value, core, lead, element) for core, value in zip(source.inputs, values, strict=True)]
        cause, remedy = _singular(robot, one[0]) or _overflow(source.inputs, one)
        raise SingularError(f"{name} is {np.asarray(array)[place]}{_element(element)} of a finite state: {cause}", remedy)


def _one(value: Any, arg: Argument, lead: tuple[int, ...], element: tuple[int, ...]) -> np.ndarray:
    """One batch element's share of an argument."""
    return np.broadcast_to(np.asarray(value, dtype=float), lead + arg.shape)[element]


def _singular(robot: Any, q: np.ndarray) -> tuple[str, str] | None:
    """The outermost joint whose D(k) is not positive definite: all joints beyond it are sound, and yet it resists nothing.

    The columns of all D(k) at once: x_i is the i-th unit vector in every joint.
    """
    x = np.zeros((6, robot.nv))
    for joint in robot.joints:
        own = range(joint.v_slice.start, joint.v_slice.stop)
        x[range(len(own)), own] = 1.0
    with np.errstate(all="ignore"):
        _, columns = robot.function("factor_product").ufunc(q, x)
    for joint in reversed(robot.joints):
        D = columns[: joint.row.nv, joint.v_slice]
        if not np.isfinite(D).all():
            return None
        smallest = np.linalg.eigvalsh(D)[0]
        if smallest <= 0.0:
            cause = f"nothing resists joint {joint.name!r} there, its articulated inertia D is {smallest:.3g}"
            return cause, "leave this configuration, give the links beyond the joint mass, or the joint armature"
    return None


def _overflow(inputs: Sequence[Argument], one: Sequence[np.ndarray]) -> tuple[str, str]:
    sizes = {arg.name: float(np.abs(value).max(initial=0.0)) for arg, value in zip(inputs, one, strict=True)}
    name = max(sizes, key=sizes.__getitem__)
    return f"it is too large for floating point ({name} is up to {sizes[name]:.3g})", "check units and magnitudes, use float64"


def _first(wrong: np.ndarray) -> tuple[int, ...] | None:
    """Where the first True stands."""
    return tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.any() else None


def _element(place: tuple[int, ...]) -> str:
    return f" in batch element {place[0] if len(place) == 1 else place}" if place else ""


def _joint(model: Model, arg: Argument, index: int) -> Joint:
    slices = [joint.q_slice if arg.per_joint == "q" else joint.v_slice for joint in model.joints]
    return next(joint for joint, own in zip(model.joints, slices, strict=True) if own.start <= index < own.stop)
