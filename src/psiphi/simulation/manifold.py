"""The configuration manifold, generic over scalars: the same lines run on NumPy arrays and on a tape.

    rate(q, v)           dq/dt: for a quaternion p, dp/dt = p (w, 0) / 2, for a free body also dx/dt = R(p) v
    integrate(q, v)      q exp(v): moved along the constant body velocity v for one unit of time
    normalize(q)         quaternions scaled to unit length

Coordinates that form a vector space (angles, slides, screws) have dq/dt = v and need no row in the table below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from psiphi.model.joints import JointKind
from psiphi.model.model import Model
from psiphi.spatial.screws import Turn, add, cosine, cross, dot, root, sine

TINY = 1e-300  # keeps |w| from being zero: sin(1e-150) / 1e-150 is 1, exactly
_FLAT = next(field.default for field in fields(JointKind) if field.name == "integrate")


def multiply(a: list, b: list) -> list:
    """The product of quaternions x, y, z, w."""
    (ax, ay, az, aw), (bx, by, bz, bw) = a, b
    return [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]


def unit(p: list) -> list:
    """p / |p|."""
    scale = 1.0 / root(dot(p, p))
    return [scale * x for x in p]


def spin(p: list, w: list) -> list:
    """p (w, 0) / 2."""
    x, y, z, s = p
    a, b, c = (0.5 * rate for rate in w)
    return [s * a + y * c - z * b, s * b + z * a - x * c, s * c + x * b - y * a, -(x * a) - y * b - z * c]


def exponential(w: list) -> list:
    """The quaternion of the rotation by |w| about w."""
    half = 0.5 * root(dot(w, w) + TINY)
    scale = 0.5 * (sine(half) / half)
    return [scale * w[0], scale * w[1], scale * w[2], cosine(half)]


def swept(w: list, v: list) -> list:
    """V(w) v = v + (1 - cos t) / t^2 w x v + (t - sin t) / t^3 w x (w x v), t = |w|: where a body at v, turning at w, gets."""
    tt = dot(w, w) + TINY
    t = root(tt)
    half = sine(0.5 * t) / t
    first = cross(w, v)
    second = cross(w, first)
    a, b = 2.0 * (half * half), (1.0 - sine(t) / t) / tt
    return [x + a * y + b * z for x, y, z in zip(v, first, second, strict=True)]


class Row(NamedTuple):
    """One kind whose coordinates are curved: dq/dt, q exp(v), and where its quaternion begins (None: it has none)."""

    rate: Callable[[list, list], list]
    integrate: Callable[[list, list], list]
    quaternion: int | None


def _free_rate(q: list, v: list) -> list:
    return Turn.from_quaternion(q[3:]).rotate(v[3:]) + spin(q[3:], v[:3])


def _free_integrate(q: list, v: list) -> list:
    step = Turn.from_quaternion(q[3:]).rotate(swept(v[:3], v[3:]))
    return add(q[:3], step) + multiply(q[3:], exponential(v[:3]))


def _planar_rate(q: list, v: list) -> list:
    c, s = cosine(q[2]), sine(q[2])
    return [c * v[1] - s * v[2], s * v[1] + c * v[2], v[0]]


def _planar_integrate(q: list, v: list) -> list:
    x, y, _ = swept([0.0, 0.0, v[0]], [v[1], v[2], 0.0])
    return [*add(q[:2], _planar_rate(q, [0.0, x, y])[:2]), q[2] + v[0]]


CURVED: dict[str, Row] = {
    "spherical": Row(spin, lambda q, v: multiply(q, exponential(v)), 0),
    "planar": Row(_planar_rate, _planar_integrate, None),
    "free": Row(_free_rate, _free_integrate, 3),
}


def curved(kind: str, row: JointKind) -> Row | None:
    """The kind's row; None where its coordinates are a vector space."""
    if row.integrate is _FLAT:
        return None
    return CURVED[kind]


class Manifold:
    """The configurations of one model, for arrays (..., nq) and for lists of scalars."""

    def __init__(self, model: Model):
        self.model, self.nq, self.nv = model, model.nq, model.nv
        self.bent = [(joint.q_slice, joint.v_slice, row) for joint in model.joints if (row := curved(joint.kind, joint.row))]

    @cached_property
    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """Places in q and in v of the coordinates with dq/dt = v."""
        pairs = [
            (i, k)
            for joint in self.model.joints
            if curved(joint.kind, joint.row) is None
            for i, k in zip(_places(joint.q_slice), _places(joint.v_slice), strict=True)
        ]
        q, v = np.array(pairs, dtype=int).reshape(-1, 2).T
        return q, v

    @property
    def is_flat(self) -> bool:
        """Whether q is a vector space: then rate(q, v) = v and integrate(q, v) = q + v."""
        return not self.bent

    def rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """dq/dt (..., nq)."""
        if self.is_flat:
            return v
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        out = np.empty((*lead, self.nq))
        out[..., self.flat[0]] = v[..., self.flat[1]]
        return self._fill(out, q, v, 0)

    def integrate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """q exp(v) (..., nq)."""
        if self.is_flat:
            return q + v
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        out = np.empty((*lead, self.nq))
        out[..., self.flat[0]] = q[..., self.flat[0]] + v[..., self.flat[1]]
        return self._fill(out, q, v, 1)

    def normalize(self, q: np.ndarray) -> np.ndarray:
        """q with unit quaternions; q itself where there are none."""
        places = [at.start + row.quaternion for at, _, row in self.bent if row.quaternion is not None]
        if not places:
            return q
        q = q.copy()
        for start in places:
            p = q[..., start : start + 4]
            p *= (1.0 / np.sqrt(np.einsum("...i,...i", p, p)))[..., None]
        return q

    def _fill(self, out: np.ndarray, q: np.ndarray, v: np.ndarray, column: int) -> np.ndarray:
        for at, moving, row in self.bent:
            for i, value in enumerate((row.rate, row.integrate)[column](_columns(q, at), _columns(v, moving))):
                out[..., at.start + i] = value
        return out

    # -- on lists of scalars ----------------------------------------------------------------------------------------------

    def rates(self, q: list, v: list) -> list[Any]:
        """dq/dt, entry by entry."""
        return self._entries(q, v, 0, lambda x, rate: rate)

    def moved(self, q: list, v: list) -> list[Any]:
        """q exp(v), entry by entry."""
        return self._entries(q, v, 1, lambda x, step: x + step)

    def units(self, q: list) -> list[Any]:
        """Unit quaternions."""
        out = list(q)
        for at, _, row in self.bent:
            if row.quaternion is not None:
                start = at.start + row.quaternion
                out[start : start + 4] = unit(q[start : start + 4])
        return out

    def _entries(self, q: list, v: list, column: int, flat: Callable) -> list[Any]:
        out: list[Any] = [None] * self.nq
        for i, k in zip(*self.flat, strict=True):
            out[i] = flat(q[i], v[k])
        for at, moving, row in self.bent:
            out[at] = (row.rate, row.integrate)[column](q[at], v[moving])
        return out


def _places(own: slice) -> range:
    return range(own.start, own.stop)


def _columns(x: np.ndarray, own: slice) -> list:
    return [x[..., i] for i in _places(own)]
