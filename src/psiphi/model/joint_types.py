"""The joint table: one row a kind. Everything else asks the row, never the kind.

A row is written in *canonical axes*: the joint's axis is z (planar: z is the normal). Any other axis is a constant
rotation of the joint frame, applied once where the tree is framed (`compiler/axes/link_axes.py`).

    motion(q, joint)   the displacement parent -> body as a list of `Screw`, `Turn` and `Shift` (`model/spatial`)
    H(q, joint)        the joint map H: nv rows of 6, angular first, in body axes: V_d = H* v
    Hdot(q, v, joint)  d/dt H in body axes, rows like H's; None unless H depends on q
    Hddot(q, x, y, joint)  the derivative of Hdot(q, x) along y, for derivatives of what moves; needed beside Hdot only there

The configuration space of a row, on lists of scalars (numbers, arrays, tape expressions); left out where q is a vector space:

    rate(q, v)         dq/dt
    exp(q, v)          q exp(v): moved along the constant body velocity v for one unit of time
    log(p, q)          v with p exp(v) = q, by the shortest turn
    unit(q)            back onto the manifold: quaternions scaled to unit length

and `neutral` and `random`. Quaternions are x, y, z, w. Spherical and free velocities are in body axes; free: q = [xyz, quat],
v = [w; v]. `manifold.py` is what these are for a whole robot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.model.spatial import rotations
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.scalar_arrays import along
from psiphi.model.spatial.screws import Screw, Shift, Turn, add, cosine, dot, sine, subtract

MapRow = list  # six scalars


def _flat_rate(q: list, v: list) -> list:
    return list(v)


@dataclass(frozen=True)
class JointKind:
    """One kind of joint; see the module's docstring for the columns."""

    nq: int
    nv: int
    motion: Callable
    H: Callable
    slides: tuple[bool, ...]  # per velocity coordinate: metres (True) or radians (False)
    Hdot: Callable | None = None
    Hddot: Callable | None = None
    neutral: tuple[float, ...] | None = None
    rate: Callable = _flat_rate
    exp: Callable = add
    log: Callable = lambda p, q: [y - x for x, y in zip(p, q, strict=True)]
    unit: Callable = list
    random: Callable | None = None
    axes: int = 1  # how many axes the description gives: 0, 1 or 2
    screw: bool = (
        False  # the whole motion is one screw about z: its frame may turn about and slide along z
    )
    blind: str = ""  # the inertia the joint does not feel: a thin "rod" on its axis, a pure "spin" inertia, a "point" mass

    def __post_init__(self):
        if self.neutral is None:
            object.__setattr__(self, "neutral", (0.0,) * self.nq)
        if self.random is None:
            object.__setattr__(self, "random", flat_box(self.slides))

    @property
    def is_flat(self) -> bool:
        """Whether q is a vector space: dq/dt = v, q exp(v) = q + v."""
        return self.rate is _flat_rate


def unit(*indices: int) -> list[MapRow]:
    """Rows of the 6x6 identity: a joint map that selects coordinates."""
    return [[1.0 if i == j else 0.0 for j in range(6)] for i in indices]


def flat_box(slides) -> Callable:
    """Random coordinates of a joint in a vector space: within limits, half a turn, a metre."""
    span = np.where(slides, 1.0, np.pi)

    def random(rng, size, lower, upper):
        low, high = np.maximum(lower, -span), np.minimum(upper, span)
        low, high = (
            np.where(low < high, low, np.maximum(lower, -1e3)),
            np.where(low < high, high, np.minimum(upper, 1e3)),
        )
        return rng.uniform(low, high, (*size, len(span)))

    return random


def _universal_H(q, joint):
    # R(z, q1) R(x, alpha) R(z, q2): the first axis seen from the body is R(z, -q2) R(x, -alpha) z
    c, s = cosine(q[1]), sine(q[1])
    ca, sa = joint.twist
    return [[sa * s, sa * c, ca, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]


def _universal_Hdot(q, v, joint):
    c, s = cosine(q[1]), sine(q[1])
    _, sa = joint.twist
    return [[(sa * c) * v[1], -((sa * s) * v[1]), 0.0, 0.0, 0.0, 0.0], [0.0] * 6]


def _universal_Hddot(q, x, y, joint):
    c, s = cosine(q[1]), sine(q[1])
    _, sa = joint.twist
    return [
        [-((sa * s) * (x[1] * y[1])), -((sa * c) * (x[1] * y[1])), 0.0, 0.0, 0.0, 0.0],
        [0.0] * 6,
    ]


def _free_rate(q, v):
    # dx/dt = R v, dp/dt = p (w, 0) / 2
    return Turn.from_quaternion(q[3:]).rotate(v[3:]) + rotations.spin(q[3:], v[:3])


def _free_exp(q, v):
    step = Turn.from_quaternion(q[3:]).rotate(rotations.swept(v[:3], v[3:]))
    return add(q[:3], step) + rotations.multiply(q[3:], rotations.exponential(v[:3]))


def _turned(p, q):
    """The rotation vector between quaternions of any length, and what `rotations.logarithm` gives besides; NaN of zeros."""
    turn = rotations.between(p, q)
    w, spread = rotations.logarithm(turn)
    some = less(0.0, dot(turn, turn))
    return [x * (some / some) for x in w], spread


def _free_log(p, q):
    w, spread = _turned(p[3:], q[3:])
    way = Turn.from_quaternion(p[3:]).unrotate(subtract(q[:3], p[:3]))
    return w + rotations.unswept(w, spread, way)


def _planar_rate(q, v):
    c, s = cosine(q[2]), sine(q[2])
    return [c * v[1] - s * v[2], s * v[1] + c * v[2], v[0]]


def _planar_exp(q, v):
    x, y, _ = rotations.swept([0.0, 0.0, v[0]], [v[1], v[2], 0.0])
    return [*add(q[:2], _planar_rate(q, [0.0, x, y])[:2]), q[2] + v[0]]


def _planar_log(p, q):
    # the shortest turn: after a whole one no constant velocity leads from one place to another
    half = 0.5 * (q[2] - p[2])
    w, spread = rotations.logarithm([0.0, 0.0, sine(half), cosine(half)])
    c, s = cosine(p[2]), sine(p[2])
    x, y = q[0] - p[0], q[1] - p[1]
    return [w[2], *rotations.unswept(w, spread, [c * x + s * y, c * y - s * x, 0.0])[:2]]


def _random_rotation(rng, size):
    """Uniform on the unit sphere of R4, that is, uniform over rotations."""
    return along(rotations.unit, rng.standard_normal((*size, 4)))


def _free_random(rng, size, lower, upper):
    place = flat_box((True,) * 3)(rng, size, lower[:3], upper[:3])
    return np.concatenate([place, _random_rotation(rng, size)], axis=-1)


_REVOLUTE: dict[str, Any] = dict(
    nq=1,
    nv=1,
    motion=lambda q, j: [Screw("z", q[0], 0.0)],
    H=lambda q, j: unit(2),
    slides=(False,),
    screw=True,
    blind="rod",
)

JOINTS: dict[str, JointKind] = {
    "revolute": JointKind(**_REVOLUTE),
    "continuous": JointKind(**_REVOLUTE),
    "prismatic": JointKind(
        1,
        1,
        lambda q, j: [Screw("z", None, q[0])],
        lambda q, j: unit(5),
        (True,),
        screw=True,
        blind="spin",
    ),
    "helical": JointKind(
        1,
        1,
        lambda q, j: [Screw("z", q[0], j.pitch * q[0])],
        lambda q, j: [[0.0, 0.0, 1.0, 0.0, 0.0, j.pitch]],
        (False,),
        screw=True,
    ),
    "cylindrical": JointKind(
        2,
        2,
        lambda q, j: [Screw("z", q[0], q[1])],
        lambda q, j: unit(2, 5),
        (False, True),
        screw=True,
    ),
    "universal": JointKind(
        2,
        2,
        lambda q, j: [Screw("z", q[0], 0.0), Screw("x", j.twist, 0.0), Screw("z", q[1], 0.0)],
        _universal_H,
        (False, False),
        Hdot=_universal_Hdot,
        Hddot=_universal_Hddot,
        axes=2,
    ),
    "spherical": JointKind(
        4,
        3,
        lambda q, j: [Turn.from_quaternion(q)],
        lambda q, j: unit(0, 1, 2),
        (False,) * 3,
        neutral=(0.0, 0.0, 0.0, 1.0),
        rate=rotations.spin,
        exp=lambda q, v: rotations.multiply(q, rotations.exponential(v)),
        log=lambda p, q: _turned(p, q)[0],
        unit=rotations.unit,
        random=lambda rng, size, lower, upper: _random_rotation(rng, size),
        axes=0,
        blind="point",
    ),
    "planar": JointKind(
        3,
        3,
        lambda q, j: [Shift([q[0], q[1], 0.0]), Screw("z", q[2], 0.0)],
        lambda q, j: unit(2, 3, 4),
        (False, True, True),
        rate=_planar_rate,
        exp=_planar_exp,
        log=_planar_log,
        random=flat_box((True, True, False)),
    ),
    "free": JointKind(
        7,
        6,
        lambda q, j: [Shift(list(q[:3])), Turn.from_quaternion(q[3:])],
        lambda q, j: unit(0, 1, 2, 3, 4, 5),
        (False,) * 3 + (True,) * 3,
        neutral=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
        rate=_free_rate,
        exp=_free_exp,
        log=_free_log,
        unit=lambda q: [*q[:3], *rotations.unit(q[3:])],
        random=_free_random,
        axes=0,
    ),
}


def sizes(kind: str) -> tuple[int, int]:
    """How many coordinates and velocities a joint of this kind has; a fixed one has none."""
    return (0, 0) if kind == "fixed" else (JOINTS[kind].nq, JOINTS[kind].nv)
