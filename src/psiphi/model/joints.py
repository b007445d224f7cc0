"""The joint table: one row a kind. Everything else asks the row, never the kind.

A row is written in *canonical axes*: the joint's axis is z (planar: z is the normal). Any other axis is a constant
rotation of the joint frame, applied once where the tree is framed (`sweeps/framing.py`).

    motion(q, joint)   the displacement parent -> body as a list of `Screw`, `Turn` and `Shift` (psiphi.spatial)
    H(q, joint)        the joint map H: nv rows of 6, angular first, in body axes: V_d = H* v
    Hdot(q, v, joint)  d/dt H in body axes, rows like H's; None unless H depends on q

The configuration space of a row, vectorised over leading axes: neutral, integrate, difference, normalize, random.
Quaternions are x, y, z, w. Spherical and free velocities are in body axes; free: q = [xyz, quat], v = [w; v].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi.spatial import quaternion as quat
from psiphi.spatial.screws import Screw, Shift, Turn, cosine, sine

Row = list  # six scalars


@dataclass(frozen=True)
class JointKind:
    """One kind of joint; see the module's docstring for the columns."""

    nq: int
    nv: int
    motion: Callable
    H: Callable
    slides: tuple[bool, ...]  # per velocity coordinate: metres (True) or radians (False)
    Hdot: Callable | None = None
    neutral: tuple[float, ...] | None = None
    integrate: Callable = lambda q, v: q + v
    difference: Callable = lambda q0, q1: q1 - q0
    normalize: Callable = lambda q: q
    random: Callable | None = None
    axes: int = 1  # how many axes the description gives: 0, 1 or 2
    screw: bool = False  # the whole motion is one screw about z: its frame may turn about and slide along z
    blind: str = ""  # the inertia the joint does not feel: a thin "rod" on its axis, a pure "spin" inertia, a "point" mass

    def __post_init__(self):
        if self.neutral is None:
            object.__setattr__(self, "neutral", (0.0,) * self.nq)
        if self.random is None:
            object.__setattr__(self, "random", _random_box(self.slides))


def unit(*indices: int) -> list[Row]:
    """Rows of the 6x6 identity: a joint map that selects coordinates."""
    return [[1.0 if i == j else 0.0 for j in range(6)] for i in indices]


def _random_box(slides) -> Callable:
    span = np.where(slides, 1.0, np.pi)

    def random(rng, size, lower, upper):
        low, high = np.maximum(lower, -span), np.minimum(upper, span)
        low, high = np.where(low < high, low, np.maximum(lower, -1e3)), np.where(low < high, high, np.minimum(upper, 1e3))
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


def _free_integrate(q, v):
    q, turn = _free_normalize(q), quat.exp(v[..., :3])
    step = quat.rotate(q[..., 3:], np.einsum("...ij,...j->...i", quat.left_jacobian(v[..., :3]), v[..., 3:]))
    return np.concatenate([q[..., :3] + step, quat.multiply(q[..., 3:], turn)], axis=-1)


def _free_difference(q0, q1):
    q0, q1 = _free_normalize(q0), _free_normalize(q1)
    w = quat.log(quat.multiply(quat.conjugate(q0[..., 3:]), q1[..., 3:]))
    step = quat.rotate(quat.conjugate(q0[..., 3:]), q1[..., :3] - q0[..., :3])
    v = np.linalg.solve(quat.left_jacobian(w), step[..., None])[..., 0]
    return np.concatenate([w, v], axis=-1)


def _planar_integrate(q, v):
    as_free = _free_integrate(_planar_lift(q), _planar_lift_velocity(v))
    return np.concatenate([as_free[..., :2], (q[..., 2] + v[..., 0])[..., None]], axis=-1)


def _planar_difference(q0, q1):
    # the shortest turn: after a whole one no constant velocity leads from one place to another
    angle = np.remainder(q1[..., 2:] - q0[..., 2:] + np.pi, 2.0 * np.pi) - np.pi
    zero = np.zeros_like(angle)
    step = quat.rotate(quat.conjugate(_planar_lift(q0)[..., 3:]), np.concatenate([q1[..., :2] - q0[..., :2], zero], axis=-1))
    w = np.concatenate([zero, zero, angle], axis=-1)
    v = np.linalg.solve(quat.left_jacobian(w)[..., :2, :2], step[..., :2, None])[..., 0]
    return np.concatenate([angle, v], axis=-1)


def _planar_lift(q):
    zero = np.zeros_like(q[..., :1])
    half = q[..., 2:] / 2
    return np.concatenate([q[..., :2], zero, zero, zero, np.sin(half), np.cos(half)], axis=-1)


def _planar_lift_velocity(v):
    zero = np.zeros_like(v[..., :1])
    return np.concatenate([zero, zero, v[..., :1], v[..., 1:], zero], axis=-1)


def _free_normalize(q):
    return np.concatenate([q[..., :3], quat.normalize(q[..., 3:])], axis=-1)


def _free_random(rng, size, lower, upper):
    place = _random_box((True,) * 3)(rng, size, lower[:3], upper[:3])
    return np.concatenate([place, quat.random(rng, size)], axis=-1)


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
        1, 1, lambda q, j: [Screw("z", None, q[0])], lambda q, j: unit(5), (True,), screw=True, blind="spin"
    ),
    "helical": JointKind(
        1,
        1,
        lambda q, j: [Screw("z", q[0], j.pitch * q[0])],
        lambda q, j: [[0.0, 0.0, 1.0, 0.0, 0.0, j.pitch]],
        (False,),
        screw=True,
    ),
    "cylindrical": JointKind(2, 2, lambda q, j: [Screw("z", q[0], q[1])], lambda q, j: unit(2, 5), (False, True), screw=True),
    "universal": JointKind(
        2,
        2,
        lambda q, j: [Screw("z", q[0], 0.0), Screw("x", j.twist, 0.0), Screw("z", q[1], 0.0)],
        _universal_H,
        (False, False),
        Hdot=_universal_Hdot,
        axes=2,
    ),
    "spherical": JointKind(
        4,
        3,
        lambda q, j: [Turn.from_quaternion(q)],
        lambda q, j: unit(0, 1, 2),
        (False,) * 3,
        neutral=(0.0, 0.0, 0.0, 1.0),
        integrate=lambda q, v: quat.multiply(q, quat.exp(v)),
        difference=lambda q0, q1: quat.log(quat.multiply(quat.conjugate(q0), q1)),
        normalize=quat.normalize,
        random=lambda rng, size, lower, upper: quat.random(rng, size),
        axes=0,
        blind="point",
    ),
    "planar": JointKind(
        3,
        3,
        lambda q, j: [Shift([q[0], q[1], 0.0]), Screw("z", q[2], 0.0)],
        lambda q, j: unit(2, 3, 4),
        (False, True, True),
        integrate=_planar_integrate,
        difference=_planar_difference,
        random=_random_box((True, True, False)),
    ),
    "free": JointKind(
        7,
        6,
        lambda q, j: [Shift(list(q[:3])), Turn.from_quaternion(q[3:])],
        lambda q, j: unit(0, 1, 2, 3, 4, 5),
        (False,) * 3 + (True,) * 3,
        neutral=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
        integrate=_free_integrate,
        difference=_free_difference,
        normalize=_free_normalize,
        random=_free_random,
        axes=0,
    ),
}
