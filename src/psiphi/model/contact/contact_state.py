"""What the contacts of a robot do in one step: the third result of `robot.step(..., contacts=)`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

OPEN, STICK, SLIP = 0, 1, 2  # modes


class ContactState(NamedTuple):
    """The contacts of a robot in one step, c of them.

    forces     (..., c, 3) in N: the mean over the step, in world axes, on the robot
    gaps       (..., c) in m: the distances from the ground at the start, negative inside it
    modes      (..., c): 0 open, 1 sticks, 2 slips
    residual   (..., c) in m/s: by how much the solution violates the laws of contact
    margin     (..., c) in m/s: how far the contact is from another mode, where the derivatives of a
               rigid law jump
    """

    forces: np.ndarray
    gaps: np.ndarray
    modes: np.ndarray
    residual: np.ndarray
    margin: np.ndarray
