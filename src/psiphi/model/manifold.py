"""The configuration manifold, generic over scalars: the same lines run on NumPy arrays and on a tape.

    rate(q, v)           dq/dt: for a quaternion p, dp/dt = p (w, 0) / 2, for a free body also dx/dt = R(p) v
    integrate(q, v)      q exp(v): moved along the constant body velocity v for one unit of time
    difference(p, q)     v with p exp(v) = q, by the shortest turn
    normalize(q)         quaternions scaled to unit length

Coordinates that form a vector space (angles, slides, screws) have dq/dt = v and need no row in the table below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from psiphi.model.joints import JOINTS, JointKind
from psiphi.model.model import Model
from psiphi.spatial.rotations import exponential, logarithm, multiply, spin, swept, unit, unswept
from psiphi.spatial.screws import Turn, add, cosine, sine

_FLAT = next(field.default for field in fields(JointKind) if field.name == "integrate")


class Row(NamedTuple):
    """One kind whose coordinates are curved: dq/dt, q exp(v), its inverse, and where its quaternion begins (None: none)."""

    rate: Callable[[list, list], list]
    integrate: Callable[[list, list], list]
    difference: Callable[[list, list], list]
    quaternion: int | None


def _free_rate(q: list, v: list) -> list:
    return Turn.from_quaternion(q[3:]).rotate(v[3:]) + spin(q[3:], v[:3])


def _free_integrate(q: list, v: list) -> list:
    step = Turn.from_quaternion(q[3:]).rotate(swept(v[:3], v[3:]))
    return add(q[:3], step) + multiply(q[3:], exponential(v[:3]))


def _between(p: list, q: list) -> list:
    """p^-1 q of quaternions."""
    return multiply([-p[0], -p[1], -p[2], p[3]], q)


def _free_difference(p: list, q: list) -> list:
    w, spread = logarithm(_between(p[3:], q[3:]))
    way = Turn.from_quaternion(p[3:]).unrotate([x1 - x0 for x0, x1 in zip(p[:3], q[:3], strict=True)])
    return w + unswept(w, spread, way)


def _planar_rate(q: list, v: list) -> list:
    c, s = cosine(q[2]), sine(q[2])
    return [c * v[1] - s * v[2], s * v[1] + c * v[2], v[0]]


def _planar_integrate(q: list, v: list) -> list:
    x, y, _ = swept([0.0, 0.0, v[0]], [v[1], v[2], 0.0])
    return [*add(q[:2], _planar_rate(q, [0.0, x, y])[:2]), q[2] + v[0]]


def _planar_difference(p: list, q: list) -> list:
    half = 0.5 * (q[2] - p[2])
    w, spread = logarithm([0.0, 0.0, sine(half), cosine(half)])
    c, s = cosine(p[2]), sine(p[2])
    x, y = q[0] - p[0], q[1] - p[1]
    return [w[2], *unswept(w, spread, [c * x + s * y, c * y - s * x, 0.0])[:2]]


CURVED: dict[str, Row] = {
    "spherical": Row(spin, lambda q, v: multiply(q, exponential(v)), lambda p, q: logarithm(_between(p, q))[0], 0),
    "planar": Row(_planar_rate, _planar_integrate, _planar_difference, None),
    "free": Row(_free_rate, _free_integrate, _free_difference, 3),
}


def curved(kind: str, row: JointKind) -> Row | None:
    """The kind's row; None where its coordinates are a vector space."""
    if row.integrate is _FLAT:
        return None
    return CURVED[kind]


class Alone(NamedTuple):
    """A model of one joint, as far as a manifold looks at it."""

    kind: str

    @property
    def row(self) -> JointKind:
        return JOINTS[self.kind]

    @property
    def joints(self) -> tuple[Alone, ...]:
        return (self,)

    @property
    def nq(self) -> int:
        return self.row.nq

    @property
    def nv(self) -> int:
        return self.row.nv

    @property
    def q_slice(self) -> slice:
        return slice(0, self.nq)

    @property
    def v_slice(self) -> slice:
        return slice(0, self.nv)


class Manifold:
    """The configurations of one model, for arrays (..., nq) and for lists of scalars."""

    def __init__(self, model: Model | Alone):
        self.nq, self.nv = model.nq, model.nv
        self.bent = [(joint.q_slice, joint.v_slice, row) for joint in model.joints if (row := curved(joint.kind, joint.row))]
        straight = [joint for joint in model.joints if curved(joint.kind, joint.row) is None]
        pairs = [pair for j in straight for pair in zip(_places(j.q_slice), _places(j.v_slice), strict=True)]
        self.flat = tuple(np.array(pairs, dtype=int).reshape(-1, 2).T)  # places in q and in v of coordinates with dq/dt = v
        self._joints = model.joints

    @cached_property
    def kinds(self) -> list[tuple[Manifold, tuple[tuple[int, int], ...]]]:
        """The manifold of one joint of each kind (of one coordinate where these are flat), and where all stand in q and v."""
        found = {"revolute": list(zip(*(x.tolist() for x in self.flat), strict=True))}
        for joint in self._joints:
            if curved(joint.kind, joint.row):
                found.setdefault(joint.kind, []).append((joint.q_slice.start, joint.v_slice.start))
        return [(Manifold(Alone(kind)), tuple(places)) for kind, places in found.items() if places]

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

    def apart(self, p: list, q: list) -> list[Any]:
        """v with p exp(v) = q, entry by entry."""
        out: list[Any] = [None] * self.nv
        for i, k in zip(*self.flat, strict=True):
            out[k] = q[i] - p[i]
        for at, moving, row in self.bent:
            out[moving] = row.difference(p[at], q[at])
        return out

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
