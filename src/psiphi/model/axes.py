"""The canonical axes of joints: where the z (and x) of the joint table's rows lie on a robot."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from psiphi.model.model import Joint


@dataclass(frozen=True)
class Axes:
    """A joint's canonical axes: `before` carries the joint's motion (z along its first axis) in the joint frame, `after`
    the body's axes (z along its last axis) in the link frame; `twist` is (cos, sin) between a universal joint's two.

    What a row of the joint table asks of a joint, `pitch` and `twist`, it may ask of these."""

    before: np.ndarray
    after: np.ndarray
    twist: tuple[float, float] = (1.0, 0.0)
    pitch: float = 0.0


def canonical_axes(joint: Joint) -> Axes:
    """z along the joint's axis; planar: x along `axis2`."""
    h1, h2 = np.asarray(joint.axis), np.asarray(joint.axis2)
    if joint.row.axes == 0:
        return Axes(np.eye(3), np.eye(3), pitch=joint.pitch)
    if joint.row.axes == 1:
        Q = np.column_stack([h2, np.cross(h1, h2), h1])
        return Axes(Q, Q, pitch=joint.pitch)
    x = np.cross(h1, h2)
    twist = snap(float(h1 @ h2), float(np.linalg.norm(x)))
    x = x / np.linalg.norm(x)
    before, after = np.column_stack([x, np.cross(h1, x), h1]), np.column_stack([x, np.cross(h2, x), h2])
    return Axes(before, after, twist, joint.pitch)


def snap(c: float, s: float) -> tuple[float, float]:
    """A clean (cos, sin): unit length, multiples of 90 degrees exact."""
    size = math.hypot(c, s)
    c, s = c / size, s / size
    if abs(c) < 1e-15:
        return 0.0, math.copysign(1.0, s)
    if abs(s) < 1e-15:
        return math.copysign(1.0, c), 0.0
    return c, s
