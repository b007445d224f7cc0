"""The joint table: one row for each kind of joint. Other code uses the row, never the kind.

A row is written in *canonical axes*: z is the joint's axis, or the normal of a planar joint.
Another axis is a constant rotation of the joint frame, applied when link frames are chosen
(`compiler/axes/link_axes.py`).

    motion(q, joint)       the displacement from parent to body, as a list of `Screw`, `Turn` and
                           `Shift` (`model/spatial`)
    H(q, joint)            the joint map H: nv rows of 6, angular first, in body axes; V_d = H* v
    Hdot(q, v, joint)      d/dt H in body axes, rows as those of H; None if H is constant
    Hddot(q, x, y, joint)  the derivative of Hdot(q, x) along y, which only derivatives with respect
                           to q need

The configuration space of a row, on lists of scalars (numbers, arrays, tape expressions). A joint
whose q is a vector space leaves these out:

    rate(q, v)         dq/dt
    exp(q, v)          q exp(v): q moved at the constant body velocity v for one unit of time
    log(p, q)          v with p exp(v) = q, by the shortest rotation
    unit(q)            projection onto the manifold: quaternions scaled to unit length
    straight(q, x)     q moved by x, its origin along a straight line and not along a screw
    transport(v, x)    v in the body axes after that move: the velocity of the origin is constant in
                       the axes of the parent
    turning(v)         w x v: how fast the components of a constant velocity change, with minus sign
    neutral, random    the zero configuration; random configurations

Quaternions are (x, y, z, w). Velocities of spherical and free joints are in body axes; for free
joints, q = [xyz, quaternion] and v = [w; v]. `manifold.py` applies the rows to a whole robot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.model.spatial import rotations
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.scalar_arrays import on_arrays
from psiphi.model.spatial.screws import Screw, Shift, Turn, add, cosine, cross, dot, sine, subtract

MapRow = list  # six scalars


def _flat_rate(q: list, v: list) -> list:
    return list(v)


@dataclass(frozen=True)
class JointKind:
    """One row of the joint table; the module's docstring describes the columns."""

    nq: int
    nv: int
    motion: Callable
    H: Callable
    slides: tuple[bool, ...]  # for each velocity: whether its unit is metres, not radians
    Hdot: Callable | None = None
    Hddot: Callable | None = None
    neutral: tuple[float, ...] | None = None
    rate: Callable = _flat_rate
    exp: Callable = add
    log: Callable = lambda p, q: [y - x for x, y in zip(p, q, strict=True)]
    unit: Callable = list
    # of joints whose linear velocity is in turning axes; others move along `exp`, with v constant
    straight: Callable | None = None
    transport: Callable | None = None
    turning: Callable | None = None
    random: Callable | None = None
    axes: int = 1  # the number of axes in the description: 0, 1 or 2
    # Whether the motion is one screw about z, so that the joint frame may turn about and slide
    # along z.
    is_screw: bool = False
    # The inertia of the body that has no effect on the joint: a thin "rod" on its axis, a
    # rotational inertia ("spin") or a "point" mass.
    null_inertia: str = ""

    def __post_init__(self):
        if self.neutral is None:
            object.__setattr__(self, "neutral", (0.0,) * self.nq)
        if self.random is None:
            object.__setattr__(self, "random", uniform_sampler(self.slides))

    @property
    def is_flat(self) -> bool:
        """Whether q is a vector space: dq/dt = v, q exp(v) = q + v."""
        return self.rate is _flat_rate


def unit_rows(*indices: int) -> list[MapRow]:
    """Rows of the 6x6 identity: the joint map of joints along coordinate axes."""
    return [[1.0 if i == j else 0.0 for j in range(6)] for i in indices]


def uniform_sampler(slides: Sequence[bool]) -> Callable:
    """`random` for a vector space of q: uniform within the limits, half a turn or a metre."""
    span = np.where(slides, 1.0, np.pi)

    def random(
        rng: np.random.Generator, size: tuple[int, ...], lower: np.ndarray, upper: np.ndarray
    ) -> np.ndarray:
        low, high = np.maximum(lower, -span), np.minimum(upper, span)
        within = low < high  # else the limits lie outside the span
        low = np.where(within, low, np.maximum(lower, -1e3))
        high = np.where(within, high, np.minimum(upper, 1e3))
        return rng.uniform(low, high, (*size, len(span)))

    return random


def _universal_H(q, joint):
    # R(z, q1) R(x, alpha) R(z, q2): the first axis in body axes is R(z, -q2) R(x, -alpha) z
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
    return Turn.from_quaternion(q[3:]).rotate(v[3:]) + rotations.quaternion_rate(q[3:], v[:3])


def _free_exp(q, v):
    step = Turn.from_quaternion(q[3:]).rotate(rotations.left_jacobian_product(v[:3], v[3:]))
    return add(q[:3], step) + rotations.multiply(q[3:], rotations.exponential(v[:3]))


def _rotation_between(p, q):
    """`rotations.logarithm` of the rotation from p to q, quaternions of any norm; NaN for zeros."""
    turn = rotations.relative_quaternion(p, q)
    w, spread = rotations.logarithm(turn)
    nonzero = less(0.0, dot(turn, turn))  # 0 / 0 is NaN
    return [x * (nonzero / nonzero) for x in w], spread


def _free_log(p, q):
    w, spread = _rotation_between(p[3:], q[3:])
    shift = Turn.from_quaternion(p[3:]).unrotate(subtract(q[:3], p[:3]))
    return w + rotations.inverse_left_jacobian_product(w, spread, shift)


def _free_straight(q, x):
    step = Turn.from_quaternion(q[3:]).rotate(x[3:])
    return add(q[:3], step) + rotations.multiply(q[3:], rotations.exponential(x[:3]))


def _free_transport(v, x):
    return [*v[:3], *Turn.from_quaternion(rotations.exponential(x[:3])).unrotate(v[3:])]


def _free_turning(v):
    return [0.0, 0.0, 0.0, *cross(v[:3], v[3:])]


def _planar_straight(q, x):
    return add(q, _planar_rate(q, x))


def _planar_transport(v, x):
    c, s = cosine(x[0]), sine(x[0])
    return [v[0], c * v[1] + s * v[2], c * v[2] - s * v[1]]


def _planar_turning(v):
    return [0.0, -(v[0] * v[2]), v[0] * v[1]]


def _planar_rate(q, v):
    c, s = cosine(q[2]), sine(q[2])
    return [c * v[1] - s * v[2], s * v[1] + c * v[2], v[0]]


def _planar_exp(q, v):
    x, y, _ = rotations.left_jacobian_product([0.0, 0.0, v[0]], [v[1], v[2], 0.0])
    return [*add(q[:2], _planar_rate(q, [0.0, x, y])[:2]), q[2] + v[0]]


def _planar_log(p, q):
    # By the shortest rotation: no constant velocity with a whole turn reaches another position.
    half = 0.5 * (q[2] - p[2])
    w, spread = rotations.logarithm([0.0, 0.0, sine(half), cosine(half)])
    c, s = cosine(p[2]), sine(p[2])
    x, y = q[0] - p[0], q[1] - p[1]
    return [
        w[2],
        *rotations.inverse_left_jacobian_product(w, spread, [c * x + s * y, c * y - s * x, 0.0])[
            :2
        ],
    ]


def _random_rotation(rng, size):
    """Unit quaternions, uniform over all rotations."""
    return on_arrays(rotations.unit, rng.standard_normal((*size, 4)))


def _free_random(rng, size, lower, upper):
    place = uniform_sampler((True,) * 3)(rng, size, lower[:3], upper[:3])
    return np.concatenate([place, _random_rotation(rng, size)], axis=-1)


_REVOLUTE: dict[str, Any] = dict(
    nq=1,
    nv=1,
    motion=lambda q, j: [Screw("z", q[0], 0.0)],
    H=lambda q, j: unit_rows(2),
    slides=(False,),
    is_screw=True,
    null_inertia="rod",
)

JOINTS: dict[str, JointKind] = {
    "revolute": JointKind(**_REVOLUTE),
    "continuous": JointKind(**_REVOLUTE),
    "prismatic": JointKind(
        1,
        1,
        lambda q, j: [Screw("z", None, q[0])],
        lambda q, j: unit_rows(5),
        (True,),
        is_screw=True,
        null_inertia="spin",
    ),
    "helical": JointKind(
        1,
        1,
        lambda q, j: [Screw("z", q[0], j.pitch * q[0])],
        lambda q, j: [[0.0, 0.0, 1.0, 0.0, 0.0, j.pitch]],
        (False,),
        is_screw=True,
    ),
    "cylindrical": JointKind(
        2,
        2,
        lambda q, j: [Screw("z", q[0], q[1])],
        lambda q, j: unit_rows(2, 5),
        (False, True),
        is_screw=True,
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
        lambda q, j: unit_rows(0, 1, 2),
        (False,) * 3,
        neutral=(0.0, 0.0, 0.0, 1.0),
        rate=rotations.quaternion_rate,
        exp=lambda q, v: rotations.multiply(q, rotations.exponential(v)),
        log=lambda p, q: _rotation_between(p, q)[0],
        unit=rotations.unit,
        random=lambda rng, size, lower, upper: _random_rotation(rng, size),
        axes=0,
        null_inertia="point",
    ),
    "planar": JointKind(
        3,
        3,
        lambda q, j: [Shift([q[0], q[1], 0.0]), Screw("z", q[2], 0.0)],
        lambda q, j: unit_rows(2, 3, 4),
        (False, True, True),
        rate=_planar_rate,
        exp=_planar_exp,
        log=_planar_log,
        straight=_planar_straight,
        transport=_planar_transport,
        turning=_planar_turning,
        random=uniform_sampler((True, True, False)),
    ),
    "free": JointKind(
        7,
        6,
        lambda q, j: [Shift(list(q[:3])), Turn.from_quaternion(q[3:])],
        lambda q, j: unit_rows(0, 1, 2, 3, 4, 5),
        (False,) * 3 + (True,) * 3,
        neutral=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
        rate=_free_rate,
        exp=_free_exp,
        log=_free_log,
        unit=lambda q: [*q[:3], *rotations.unit(q[3:])],
        straight=_free_straight,
        transport=_free_transport,
        turning=_free_turning,
        random=_free_random,
        axes=0,
    ),
}


def joint_sizes(kind: str) -> tuple[int, int]:
    """(nq, nv) of a kind of joint; (0, 0) of "fixed"."""
    return (0, 0) if kind == "fixed" else (JOINTS[kind].nq, JOINTS[kind].nv)
