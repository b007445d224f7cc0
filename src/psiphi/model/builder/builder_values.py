"""Arguments of builder calls, read as tuples of floats; `fail(cause, remedy)` raises the error."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, isnan
from typing import Any, NoReturn

import numpy as np

from psiphi._util.text import shown
from psiphi._util.validate import GRADIENT_LOST, contains_grad, requires_grad
from psiphi.model.inertias import ZERO_INERTIA, InertiaTuple, rotate_inertia
from psiphi.model.model import Mimic
from psiphi.model.spatial.transforms import (
    IDENTITY_ROTATION,
    ComputedRotation,
    Rotation,
    Vector,
    from_quaternion,
    from_rpy,
)

LARGEST = 1e50  # of a mass, length or inertia; products of larger numbers may overflow
ROUNDING = 1e-6  # the tolerance of printed rotations and quaternions

Fail = Callable[[str, str], NoReturn]
FORMS = {  # argument: remedy
    "axis": "give a direction: (0, 0, 1)",
    "gravity": "give x, y, z: (0, 0, -9.81)",
    "inertia": "give a 3x3 matrix, (ixx, ixy, ixz, iyy, iyz, izz), or (ixx, iyy, izz)",
}


def number(value: object, what: str, fail: Fail) -> float:
    """One finite number."""
    return _bounded(_floats((value,), value, what, fail), value, what, fail)[0]


def vector(values: object, count: int, what: str, fail: Fail) -> tuple[float, ...]:
    """`count` finite numbers."""
    out = _floats(values, values, what, fail)
    if len(out) != count:
        fail(
            f"{what} is {shown(values)}, expected {count} numbers",
            FORMS.get(what, f"give {count} numbers"),
        )
    return _bounded(out, values, what, fail)


def _bounded(numbers: tuple[float, ...], value: object, what: str, fail: Fail) -> tuple[float, ...]:
    if not all(-LARGEST <= x <= LARGEST for x in numbers):
        fail(
            f"{what} is {shown(value)}, expected finite numbers up to {LARGEST:g}",
            "correct the number",
        )
    return numbers


def triple(values: object, what: str, fail: Fail) -> Vector:
    """Three finite numbers."""
    x, y, z = vector(values, 3, what, fail)
    return (x, y, z)


def _floats(values: Any, value: object, what: str, fail: Fail) -> tuple[float, ...]:
    """The numbers `values` as floats; `value` is the argument, for the message."""
    _check_gradient(values, what, fail)
    try:
        if not isinstance(values, (str, bytes)) and not any(
            isinstance(x, (str, bytes, bool, np.bool_)) for x in values
        ):
            return tuple(map(float, values))
    except (TypeError, ValueError, OverflowError):
        pass
    fail(
        f"{what} is {shown(value)}, expected numbers",
        FORMS.get(what, "give metres, radians or kilograms as numbers"),
    )


def _check_gradient(values: object, what: str, fail: Fail) -> None:
    """Refuse tensors that require a gradient, which would be lost: records contain floats."""
    if requires_grad(values) or contains_grad(values):
        free = (
            'robot.free("mass") makes masses inputs with gradients; inertias, rotors, damping and '
            "joint frames likewise"
        )
        fail(
            f"{what} {GRADIENT_LOST}",
            free
            if what != "gravity"
            else "gravity is no input of compiled code: use finite differences",
        )


def per_coordinate(
    value: object, count: int, default: float, what: str, fail: Fail, sign: bool = True
) -> tuple[float, ...]:
    """One number for each coordinate; None is the default, one number is repeated.

    `sign=False` refuses negative numbers. Infinity is allowed if the default is infinite.
    """
    if value is None:
        return (default,) * count
    out = _floats(value if np.iterable(value) else (value,) * count, value, what, fail)
    if len(out) != count:
        fail(f"{what} has {len(out)} numbers, expected {count}", f"give one number or {count}")
    for x in out:
        if isnan(x) or (not sign and x < 0.0) or (default == 0.0 and not isfinite(x)):
            fail(
                f"{what} is {shown(value)}, expected " + ("numbers" if sign else "0 or more"),
                f"correct the {what}",
            )
    return out


def rotation(rpy: object, matrix: object, fail: Fail) -> Rotation:
    """The rotation of roll-pitch-yaw angles, or of a 3x3 matrix or quaternion (x, y, z, w).

    The identity if both are None.
    """
    if matrix is None:
        return IDENTITY_ROTATION if rpy is None else from_rpy(*vector(rpy, 3, "rpy", fail))
    if rpy is not None:
        fail("both rpy and rotation are given", "give one of them")
    if isinstance(matrix, ComputedRotation):
        return matrix
    _check_gradient(matrix, "rotation", fail)
    flat = np.ravel(np.asarray(matrix, dtype=object))
    out = vector(flat, len(flat), "rotation", fail)
    if len(out) == 4:
        return _from_quaternion(out, fail)
    if len(out) != 9:
        fail(
            f"rotation has {len(out)} numbers, expected a 3x3 matrix or a quaternion x, y, z, w",
            "give 9 or 4 numbers",
        )
    return IDENTITY_ROTATION if out == IDENTITY_ROTATION else _orthonormal(out, fail)


def _from_quaternion(q: tuple[float, ...], fail: Fail) -> Rotation:
    size = sum(x * x for x in q) ** 0.5
    if abs(size - 1.0) > ROUNDING:
        fail(f"the quaternion {shown(q)} has length {size:.9g}, expected 1", "normalize it")
    return from_quaternion(*q)


def _orthonormal(R: tuple[float, ...], fail: Fail) -> Rotation:
    """R, or if R is a rotation up to ROUNDING, the nearest rotation U V* of R = U S V*."""
    U, S, Vt = np.linalg.svd(np.reshape(R, (3, 3)))
    error = np.abs(S - 1.0).max()
    if error > ROUNDING or np.linalg.det(U @ Vt) < 0.0:
        fail(
            f"the rotation matrix has singular values {S.round(9).tolist()} and determinant "
            f"{np.linalg.det(np.reshape(R, (3, 3))):.6g}, expected 1, 1, 1 and 1",
            "give an orthonormal right-handed matrix",
        )
    return R if error < 1e-15 else tuple(float(x) for x in (U @ Vt).ravel())


def inertia(values: object, axes: Rotation, fail: Fail) -> InertiaTuple:
    """The inertia in link axes, from six numbers, the diagonal or a 3x3 matrix in `axes`."""
    if values is None:
        return ZERO_INERTIA
    _check_gradient(values, "inertia", fail)
    flat = (
        values
        if isinstance(values, (tuple, list)) and len(values) == 6
        else np.ravel(np.asarray(values, dtype=object))
    )
    out = vector(flat, len(flat) if len(flat) in (3, 9) else 6, "inertia", fail)
    if len(out) == 3:
        out = (out[0], 0.0, 0.0, out[1], 0.0, out[2])
    if len(out) == 9:
        xx, xy, xz, yx, yy, yz, zx, zy, zz = out
        if max(abs(xy - yx), abs(xz - zx), abs(yz - zy)) > 1e-9 * max(map(abs, out)):
            fail(
                "the inertia matrix is not symmetric",
                "give a symmetric matrix, or ixx, ixy, ixz, iyy, iyz, izz",
            )
        out = (xx, xy, xz, yy, yz, zz)
    xx, xy, xz, yy, yz, zz = out
    return rotate_inertia(axes, (xx, xy, xz, yy, yz, zz))


def name(value: object, fail: Fail) -> str:
    """A name: a string that is not blank."""
    if not isinstance(value, str) or not value.strip():
        fail(f"the name is {shown(value)}, expected text", "give it a name")
    return value


def boolean(value: object, what: str, fail: Fail) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        fail(
            f"{what} is {shown(value)}, expected True or False", f"leave {what} out for its default"
        )
    return bool(value)


def mimic(value: object, fail: Fail) -> Mimic | None:
    """A Mimic from a joint's name, (joint, multiplier) or (joint, multiplier, offset)."""
    if value is None:
        return None
    parts = [value] if isinstance(value, str) else value
    parts = tuple(parts) if isinstance(parts, tuple | list) else ()
    if not 1 <= len(parts) <= 3:
        fail(
            f"mimic is {shown(value)}, expected (joint, multiplier, offset)",
            "give the joint's name, or these three",
        )
    joint, multiplier, offset = (*parts, *(1.0, 0.0)[len(parts) - 1 :])
    return Mimic(
        name(joint, fail),
        number(multiplier, "mimic multiplier", fail),
        number(offset, "mimic offset", fail),
    )
