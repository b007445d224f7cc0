"""Joint types between two frames: `KINDS` has one row for each.

R = R2* R1 and p = R2* (p1 - p2) are the pose of frame 1 relative to frame 2; w and v are its
velocities; all are in the axes of frame 2. A type is a list of constraint rows,
turn . w + slide . v = 0. With c = S [w; v] for all rows,

    c' = S [w'; v'] + extra,     extra = (dS/dt) [w; v]

`error` is the position error of the row. It is None for a nonholonomic row, which constrains
velocities only. The error of a rotation is 2 tan(angle / 2) along its axis: the angle to first
order, and not zero at half a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from psiphi._util.array_types import AnyScalar, Numbers
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screws import cross, dot

ZERO = [0.0, 0.0, 0.0]
AXES = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])


@dataclass(frozen=True)
class RelativeMotion:
    """Pose and velocity of frame 1 relative to frame 2, in the axes of frame 2; any scalars."""

    R: list
    p: list
    w: list
    v: list


@dataclass(frozen=True)
class ConstraintRow:
    """One constraint: turn . w + slide . v = 0."""

    turn: list
    slide: list
    error: AnyScalar | None = None
    extra: AnyScalar = 0.0


@dataclass(frozen=True)
class Constants:
    """Constants of one constraint.

    `axis` is in frame 2, `perpendicular` are two directions perpendicular to it; `axis2` is in
    frame 1.
    """

    axis: list
    perpendicular: tuple[list, list]
    axis2: list
    length: float

    @staticmethod
    def of(
        axis: Numbers = (0.0, 0.0, 1.0),
        axis2: Sequence[float] = (1.0, 0.0, 0.0),
        length: float = 0.0,
    ) -> Constants:
        u = np.asarray(axis, dtype=float)
        first, second = perpendicular_axes(u)
        return Constants(
            u.tolist(), (first.tolist(), second.tolist()), [float(x) for x in axis2], float(length)
        )


def _angular_rows(directions: Sequence[list], errors: list) -> list[ConstraintRow]:
    return [ConstraintRow(u, ZERO, e) for u, e in zip(directions, errors, strict=True)]


def _linear_rows(directions: Sequence[list], motion: RelativeMotion) -> list[ConstraintRow]:
    return [ConstraintRow(ZERO, u, dot(u, motion.p)) for u in directions]


def _orientation_error(motion: RelativeMotion) -> list:
    """2 tan(angle / 2) u for the rotation R about the unit vector u, from R - R* and the trace."""
    R = motion.R
    half = 1.0 / (1.0 + R[0][0] + R[1][1] + R[2][2])
    return [2.0 * half * x for x in (R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1])]


def _alignment_error(shape: Constants, motion: RelativeMotion) -> list:
    """2 (h x R h) / (1 + h . R h), the tilt of the axis h, in the two perpendicular directions."""
    rotated = small_matrices.apply(motion.R, shape.axis)
    scale = 2.0 / (1.0 + dot(shape.axis, rotated))
    tilt = cross(shape.axis, rotated)
    return [scale * dot(u, tilt) for u in shape.perpendicular]


def _weld(shape: Constants, motion: RelativeMotion) -> list[ConstraintRow]:
    return _angular_rows(AXES, _orientation_error(motion)) + _linear_rows(AXES, motion)


def _ball(shape: Constants, motion: RelativeMotion) -> list[ConstraintRow]:
    return _linear_rows(AXES, motion)


def _hinge(shape: Constants, motion: RelativeMotion) -> list[ConstraintRow]:
    return _angular_rows(shape.perpendicular, _alignment_error(shape, motion)) + _linear_rows(
        AXES, motion
    )


def _soft(shape: Constants, motion: RelativeMotion) -> list[ConstraintRow]:
    """No spin about the normal, but rolling about the tangents: n . w = 0 is nonholonomic."""
    return [ConstraintRow(shape.axis, ZERO), *_linear_rows(AXES, motion)]


def _universal(shape: Constants, motion: RelativeMotion) -> list[ConstraintRow]:
    """The axis h1 of frame 2 stays perpendicular to the axis h2 of frame 1: h1 . R h2 = 0."""
    h2 = small_matrices.apply(motion.R, shape.axis2)
    extra = dot(cross(cross(motion.w, h2), shape.axis), motion.w)
    return [
        ConstraintRow(cross(h2, shape.axis), ZERO, dot(shape.axis, h2), extra),
        *_linear_rows(AXES, motion),
    ]


def _cylindrical(shape: Constants, motion: RelativeMotion) -> list[ConstraintRow]:
    return _angular_rows(shape.perpendicular, _alignment_error(shape, motion)) + _linear_rows(
        shape.perpendicular, motion
    )


def _planar(shape: Constants, motion: RelativeMotion) -> list[ConstraintRow]:
    return _angular_rows(shape.perpendicular, _alignment_error(shape, motion)) + _linear_rows(
        [shape.axis], motion
    )


def _sliding(shape: Constants, motion: RelativeMotion) -> list[ConstraintRow]:
    """A point stays on a plane and slides on it."""
    return _linear_rows([shape.axis], motion)


def _rough(shape: Constants, motion: RelativeMotion) -> list[ConstraintRow]:
    """A point stays on a plane and does not slide, wherever it is on the plane.

    The tangential rows are nonholonomic.
    """
    return [
        *_linear_rows([shape.axis], motion),
        *(ConstraintRow(ZERO, u) for u in shape.perpendicular),
    ]


def _distance(shape: Constants, motion: RelativeMotion) -> list[ConstraintRow]:
    """|p| = d: p . v / d = 0, error (p . p - d^2) / 2d."""
    d = shape.length
    return [
        ConstraintRow(
            ZERO,
            [x / d for x in motion.p],
            (dot(motion.p, motion.p) - d * d) * (0.5 / d),
            dot(motion.v, motion.v) / d,
        )
    ]


@dataclass(frozen=True)
class ClosureType:
    """A joint type between two frames.

    `needs` names the constants that the user gives. `slides` and `turns` say whether the frames may
    translate and rotate relative to each other. `contact` is the name of the type in a grasp (S4,
    appendix A), `along` the field of `Contact` that holds its axis. `loops`: a `Loop` may have it.
    """

    rows: Callable[[Constants, RelativeMotion], list[ConstraintRow]]
    size: int
    meaning: str
    needs: tuple[str, ...] = ()
    slides: bool = False
    turns: bool = True
    contact: str = ""
    along: str = "axis"
    loops: bool = True


KINDS: dict[str, ClosureType] = {
    "weld": ClosureType(_weld, 6, "no relative motion", turns=False, contact="rigid"),
    "ball": ClosureType(_ball, 3, "turns about a point", contact="point"),
    "hinge": ClosureType(_hinge, 5, "turns about an axis", ("axis",), contact="line"),
    "universal": ClosureType(
        _universal,
        4,
        "turns about one axis in each frame, perpendicular to each other",
        ("axis", "axis2"),
    ),
    "cylindrical": ClosureType(
        _cylindrical, 4, "turns about and slides along an axis", ("axis",), slides=True
    ),
    "planar": ClosureType(
        _planar, 3, "slides in a plane and turns about its normal", ("axis",), slides=True
    ),
    "distance": ClosureType(
        _distance, 1, "two points stay at one distance", ("length",), slides=True
    ),
    "soft": ClosureType(
        _soft,
        4,
        "turns about a point, but not about the normal",
        ("axis",),
        contact="soft",
        along="normal",
        loops=False,
    ),
    "sliding": ClosureType(
        _sliding,
        1,
        "a point slides on a plane",
        ("axis",),
        slides=True,
        contact="sliding",
        along="normal",
    ),
    "rough": ClosureType(
        _rough, 3, "a point rests on a plane, anywhere on it, and turns", ("axis",), slides=True
    ),
}
LOOPS = tuple(name for name, kind in KINDS.items() if kind.loops)
CONTACTS = {kind.contact: name for name, kind in KINDS.items() if kind.contact}


def perpendicular_axes(axis: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """(x, y) that complete the unit vector `axis` = z to a right-handed orthonormal basis.

    x is perpendicular to z and to the coordinate axis that is farthest from z.

    >>> [x.tolist() for x in perpendicular_axes([0.0, 0.0, 1.0])]
    [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    """
    z = np.asarray(axis, dtype=float)
    x = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
    x = x / np.linalg.norm(x)
    return x, np.cross(z, x)
