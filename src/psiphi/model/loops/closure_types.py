"""What two frames may still do relative to each other: a row of the table a kind, loops never ask which.

Frame 1 is seen from frame 2: R = R2* R1, p = R2* (p1 - p2), w and v their rates in the axes of frame 2. A kind is a list of
rows; a row forbids turn.w + slide.v, so that with constraint rows c = S [w; v]

    c' = S [w'; v'] + extra,     extra = (dS/dt) [w; v]

and `error` is how far the row is open (None: the row cannot be integrated, it binds velocities alone).
Errors are 2 tan(angle / 2) about the axis of a rotation: to first order the angle, and never zero at half a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.screws import cross, dot

ZERO = [0.0, 0.0, 0.0]
AXES = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Relative:
    """Frame 1 seen from frame 2, in the axes of frame 2; scalars of any kind."""

    R: list
    p: list
    w: list
    v: list


@dataclass(frozen=True)
class Forbidden:
    """One constraint: turn . w + slide . v = 0."""

    turn: list
    slide: list
    error: Any = None
    extra: Any = 0.0


@dataclass(frozen=True)
class Constants:
    """The constants of one constraint: an axis in frame 2, two directions across it, a second axis in frame 1, a length."""

    axis: list
    across: tuple[list, list]
    axis2: list
    length: float

    @staticmethod
    def of(axis=(0.0, 0.0, 1.0), axis2=(1.0, 0.0, 0.0), length: float = 0.0) -> Constants:
        u = np.asarray(axis, dtype=float)
        first, second = across(u)
        return Constants(
            u.tolist(), (first.tolist(), second.tolist()), [float(x) for x in axis2], float(length)
        )


def _turns(directions, errors) -> list[Forbidden]:
    return [Forbidden(u, ZERO, e) for u, e in zip(directions, errors, strict=True)]


def _slides(directions, at: Relative) -> list[Forbidden]:
    return [Forbidden(ZERO, u, dot(u, at.p)) for u in directions]


def _orientation(at: Relative) -> list:
    """2 tan(angle / 2) u of the rotation R, from R - R* and its trace."""
    R = at.R
    half = 1.0 / (1.0 + R[0][0] + R[1][1] + R[2][2])
    return [2.0 * half * x for x in (R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1])]


def _alignment(shape: Constants, at: Relative) -> list:
    """How far the axis has left itself, across it: 2 (h x R h) / (1 + h . R h)."""
    turned = small_matrices.apply(at.R, shape.axis)
    scale = 2.0 / (1.0 + dot(shape.axis, turned))
    tilt = cross(shape.axis, turned)
    return [scale * dot(u, tilt) for u in shape.across]


def _weld(shape: Constants, at: Relative) -> list[Forbidden]:
    return _turns(AXES, _orientation(at)) + _slides(AXES, at)


def _ball(shape: Constants, at: Relative) -> list[Forbidden]:
    return _slides(AXES, at)


def _hinge(shape: Constants, at: Relative) -> list[Forbidden]:
    return _turns(shape.across, _alignment(shape, at)) + _slides(AXES, at)


def _soft(shape: Constants, at: Relative) -> list[Forbidden]:
    """No spin about the normal, rolling about the two tangents: n . w = 0 has no integral."""
    return [Forbidden(shape.axis, ZERO), *_slides(AXES, at)]


def _universal(shape: Constants, at: Relative) -> list[Forbidden]:
    """The axis h1 of frame 2 stays square to the axis h2 of frame 1: h1 . R h2 = 0."""
    h2 = small_matrices.apply(at.R, shape.axis2)
    extra = dot(cross(cross(at.w, h2), shape.axis), at.w)
    return [Forbidden(cross(h2, shape.axis), ZERO, dot(shape.axis, h2), extra), *_slides(AXES, at)]


def _cylindrical(shape: Constants, at: Relative) -> list[Forbidden]:
    return _turns(shape.across, _alignment(shape, at)) + _slides(shape.across, at)


def _planar(shape: Constants, at: Relative) -> list[Forbidden]:
    return _turns(shape.across, _alignment(shape, at)) + _slides([shape.axis], at)


def _sliding(shape: Constants, at: Relative) -> list[Forbidden]:
    """A point stays on a plane; nothing holds it sideways."""
    return _slides([shape.axis], at)


def _rough(shape: Constants, at: Relative) -> list[Forbidden]:
    """A point stays on a plane and does not slide on it, wherever it is: across the normal velocities alone are bound."""
    return [*_slides([shape.axis], at), *(Forbidden(ZERO, u) for u in shape.across)]


def _distance(shape: Constants, at: Relative) -> list[Forbidden]:
    """|p| = d: p . v / d = 0, open by (p . p - d^2) / 2d."""
    d = shape.length
    return [
        Forbidden(
            ZERO, [x / d for x in at.p], (dot(at.p, at.p) - d * d) * (0.5 / d), dot(at.v, at.v) / d
        )
    ]


@dataclass(frozen=True)
class ClosureType:
    """How two frames are held together. `needs` names what must be given; `slides`: they may move apart.

    `contact` is what a grasp calls it (S4, appendix A), `along` how a `Contact` calls its axis; `loops`: a `Loop` may be one.
    """

    rows: Callable[[Constants, Relative], list[Forbidden]]
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
        _universal, 4, "turns about one axis in each frame, square to each other", ("axis", "axis2")
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


def across(axis: Any) -> tuple[np.ndarray, np.ndarray]:
    """(x, y) with x, y and the unit vector `axis` at right angles, right-handed; x is across the coordinate axis farthest off.

    >>> [x.tolist() for x in across([0.0, 0.0, 1.0])]
    [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]
    """
    z = np.asarray(axis, dtype=float)
    x = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
    x = x / np.linalg.norm(x)
    return x, np.cross(z, x)
