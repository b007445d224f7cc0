"""A pose as it may be given: a `Pose`, a 4x4 matrix, x y z, or x y z and roll pitch yaw; and as a place of plain floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import frozen, read, real
from psiphi.model.model import IDENTITY, Pose
from psiphi.model.spatial.transforms import HERE, Computed, Place, from_rpy

FORM = "give a pp.Pose, a 4x4 pose matrix, (x, y, z), or [(x, y, z), (roll, pitch, yaw)]"


def pose(what: str, value: Any) -> Pose:
    """A Pose, a 4x4 matrix, a translation, a translation and roll-pitch-yaw angles (2x3), or None.

    >>> pose("seat", [(0, 0, 1), (0, 0, np.pi / 2)]).rotation.round(9).tolist()
    [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if value is None:
        return IDENTITY
    if isinstance(value, Pose):
        remedy = "give a 3x3 matrix and x y z"
        rotation = real(f"the rotation of {what}", value.rotation, (3, 3), remedy)
        translation = real(f"the translation of {what}", value.translation, (3,), remedy)
    else:
        rotation, translation = _numbers(what, value)
    proper = rotation.shape == (3, 3) and np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6)
    if (
        not proper
        or np.linalg.det(rotation) < 0.0
        or translation.shape != (3,)
        or not np.isfinite(translation).all()
    ):
        raise StateError(
            f"{what} is no pose: its rotation is not orthonormal, or it is not finite",
            "check the matrix",
        )
    U, _, Vt = np.linalg.svd(rotation)
    return Pose(frozen(U @ Vt), frozen(translation))


def _numbers(what: str, value: Any) -> tuple[np.ndarray, np.ndarray]:
    array, fault = read(value, None)
    array = array if fault else array.astype(float)
    if not fault and array.shape == (3,):
        return np.eye(3), array
    if not fault and array.shape == (2, 3) and np.isfinite(array).all():
        return np.reshape(from_rpy(*array[1].tolist()), (3, 3)), array[0]
    if not fault and array.shape == (4, 4) and np.array_equal(array[3], (0.0, 0.0, 0.0, 1.0)):
        return array[:3, :3], array[:3, 3]
    raise StateError(f"{what} is {shown(value)}", FORM)


def place(pose: Pose) -> Place:
    """The pose as plain floats."""
    x, y, z = pose.translation.tolist()
    return HERE if pose is IDENTITY else (Computed(pose.rotation.ravel().tolist()), (x, y, z))
