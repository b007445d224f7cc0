"""Pose arguments: a `Pose`, a 4x4 matrix, a translation, or a translation and rpy angles."""

from __future__ import annotations

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import frozen, read_array, real_array
from psiphi.model.model import IDENTITY, Pose
from psiphi.model.spatial.transforms import (
    IDENTITY_PLACEMENT,
    ComputedRotation,
    Placement,
    from_rpy,
)

FORM = "give a pp.Pose, a 4x4 pose matrix, (x, y, z), or [(x, y, z), (roll, pitch, yaw)]"


def read_pose(what: str, value: object) -> Pose:
    """The pose of a Pose, a 4x4 matrix, (x, y, z), [(x, y, z), (roll, pitch, yaw)], or None.

    >>> read_pose("seat", [(0, 0, 1), (0, 0, np.pi / 2)]).rotation.round(9).tolist()
    [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if value is None:
        return IDENTITY
    if isinstance(value, Pose):
        remedy = "give a 3x3 matrix and x y z"
        rotation = real_array(f"the rotation of {what}", value.rotation, (3, 3), remedy)
        translation = real_array(f"the translation of {what}", value.translation, (3,), remedy)
    else:
        rotation, translation = _rotation_and_translation(what, value)
    proper = rotation.shape == (3, 3) and np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6)
    if (
        not proper
        or np.linalg.det(rotation) < 0.0
        or translation.shape != (3,)
        or not np.isfinite(translation).all()
    ):
        raise StateError(
            f"{what} is not a pose: its rotation is not orthonormal, or it is not finite",
            "check the matrix",
        )
    U, _, Vt = np.linalg.svd(rotation)
    return Pose(frozen(U @ Vt), frozen(translation))


def _rotation_and_translation(what: str, value: object) -> tuple[np.ndarray, np.ndarray]:
    array, fault = read_array(value, None)
    array = array if fault else array.astype(float)
    if not fault and array.shape == (3,):
        return np.eye(3), array
    if not fault and array.shape == (2, 3) and np.isfinite(array).all():
        return np.reshape(from_rpy(*array[1].tolist()), (3, 3)), array[0]
    if not fault and array.shape == (4, 4) and np.array_equal(array[3], (0.0, 0.0, 0.0, 1.0)):
        return array[:3, :3], array[:3, 3]
    raise StateError(f"{what} is {shown(value)}", FORM)


def placement(pose: Pose) -> Placement:
    """A pose as a placement, a tuple of floats."""
    if pose is IDENTITY:
        return IDENTITY_PLACEMENT
    x, y, z = pose.translation.tolist()
    return ComputedRotation(pose.rotation.ravel().tolist()), (x, y, z)
