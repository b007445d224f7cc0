"""Postures from poses of frames: configurations that reach them, each near to the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import read_array
from psiphi.apps.ik.reach import reach
from psiphi.model.model import Pose
from psiphi.model.state_checks import batch_element
from psiphi.robot.robot import Robot

REMEDY = 'give {"frame": poses (..., K, 4, 4) or points (..., K, 3)}, K of at least 2'


def postures_from_poses(
    robot: Robot, targets: Mapping[str, Numbers | Sequence[Pose]], near: Numbers | None
) -> np.ndarray:
    """(..., K, nq): the first near to `near`, each other near to the one before.

    So the arm does not change branches between two poses.
    """
    by_frame = {frame: _read_targets(frame, value) for frame, value in targets.items()}
    counts = sorted({len(values) for values in by_frame.values()})
    if len(counts) != 1 or counts[0] < 2:
        numbers = ", ".join(map(str, counts)) or "no"
        raise StateError(
            f"path: the frames have {numbers} poses, expected the same number for each frame",
            REMEDY,
        )
    postures: list[np.ndarray] = []
    for k, values in enumerate(zip(*by_frame.values(), strict=True)):
        start = postures[-1] if postures else near
        result = reach(robot, dict(zip(by_frame, values, strict=True)), near=start)
        if not result.converged.all():
            index = np.argwhere(~result.converged)[0]
            where, error = batch_element(tuple(index.tolist())), float(result.error[tuple(index)])
            raise StateError(
                f"path: pose {k} of {counts[0]}{where} cannot be reached, the smallest error is "
                f"{error:.3g}",
                "move it",
            )
        postures.append(result.q)
    return np.stack(np.broadcast_arrays(*postures), axis=-2)


def _read_targets(frame: object, value: object) -> np.ndarray:
    """(K, ...): the targets of one frame in order."""
    if isinstance(value, list | tuple):
        value = [x.matrix if isinstance(x, Pose) else x for x in value]
    array, fault = read_array(value, None)
    axis = -3 if array.shape[-2:] == (4, 4) else -2
    if fault or array.ndim < -axis or not array.size:
        fault = fault or f"have shape {array.shape}"
        raise StateError(f"path: the targets of {shown(frame)} {fault}", REMEDY)
    return np.moveaxis(array, axis, 0)
