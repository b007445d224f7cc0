"""Poses instead of postures: configurations that take frames through them, each found near the one before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import read_array
from psiphi.apps.ik.reach import reach
from psiphi.model.model import Pose
from psiphi.model.state_checks import batch_element
from psiphi.robot.robot import Robot

FORM = 'give {"frame": poses (..., K, 4, 4) or points (..., K, 3)}, K of at least 2'


def through_poses(robot: Robot, targets: Mapping, near: Any) -> np.ndarray:
    """(..., K, nq): the first near to `near`, every other near to the one before, so that no arm turns over between two."""
    ways = {frame: _way(frame, value) for frame, value in targets.items()}
    counts = sorted({len(way) for way in ways.values()})
    if len(counts) != 1 or counts[0] < 2:
        raise StateError(
            f"path: the frames have {', '.join(map(str, counts)) or 'no'} poses, expected as many each",
            FORM,
        )
    found: list[np.ndarray] = []
    for k, wanted in enumerate(zip(*ways.values(), strict=True)):
        answer = reach(
            robot, dict(zip(ways, wanted, strict=True)), near=found[-1] if found else near
        )
        if not answer.converged.all():
            lost = np.argwhere(~answer.converged)[0]
            where, by = batch_element(tuple(lost.tolist())), float(answer.error[tuple(lost)])
            raise StateError(
                f"path: pose {k} of {counts[0]}{where} is not reached, the nearest misses it by {by:.3g}",
                "move it",
            )
        found.append(answer.q)
    return np.stack(np.broadcast_arrays(*found), axis=-2)


def _way(frame: Any, value: Any) -> np.ndarray:
    """(K, ...): the targets of one frame, one after the other."""
    if isinstance(value, list | tuple):
        value = [x.matrix if isinstance(x, Pose) else x for x in value]
    array, fault = read_array(value, None)
    axis = -3 if array.shape[-2:] == (4, 4) else -2
    if fault or array.ndim < -axis or not array.size:
        raise StateError(
            f"path: the targets of {shown(frame)} {fault or f'have shape {array.shape}'}", FORM
        )
    return np.moveaxis(array, axis, 0)
