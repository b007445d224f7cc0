"""The configuration manifold of a robot: what the rows of its joints say, for whole arrays q (..., nq) and v (..., nv).

    rate(q, v)    dq/dt
    exp(q, v)     q exp(v): moved along the constant velocity v for one unit of time
    log(p, q)     v with p exp(v) = q, by the shortest turn
    unit(q)       quaternions scaled to unit length

Arrays hold numbers, or (with dtype object) tape expressions: the integrators and their kernels use the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from psiphi.model.joints import JOINTS
from psiphi.spatial import small
from psiphi.spatial.entries import along
from psiphi.spatial.screws import dot


class Manifold:
    """The configurations of some joints, base to tip."""

    def __init__(self, joints: Iterable[Any]):
        joints = tuple(joints)
        self.nq, self.nv = (max((own.stop for own in own_slices), default=0) for own_slices in _slices(joints))
        self.bent = tuple(joint for joint in joints if not joint.row.is_flat)
        flat = [joint for joint in joints if joint.row.is_flat]
        self.flat = _places(joint.q_slice for joint in flat), _places(joint.v_slice for joint in flat)  # dq/dt = v, there

    @classmethod
    def alone(cls, kind: str) -> Manifold:
        """One joint of a kind."""
        row = JOINTS[kind]
        return cls([SimpleNamespace(kind=kind, row=row, q_slice=slice(0, row.nq), v_slice=slice(0, row.nv))])

    @cached_property
    def kinds(self) -> list[tuple[Manifold, tuple[tuple[int, int], ...]]]:
        """The manifold of one joint of each kind (of one coordinate where these are flat), and where all stand in q and v."""
        found = {"revolute": list(zip(*(x.tolist() for x in self.flat), strict=True))}
        for joint in self.bent:
            found.setdefault(joint.kind, []).append((joint.q_slice.start, joint.v_slice.start))
        return [(Manifold.alone(kind), tuple(places)) for kind, places in found.items() if places]

    @property
    def is_flat(self) -> bool:
        """Whether q is a vector space: then rate(q, v) = v and exp(q, v) = q + v."""
        return not self.bent

    def rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if self.is_flat:
            return v
        out, (i, k) = _room(self.nq, q, v), self.flat
        out[..., i] = v[..., k]
        for joint in self.bent:
            out[..., joint.q_slice] = along(joint.row.rate, q[..., joint.q_slice], v[..., joint.v_slice])
        return out

    def velocity(self, q: np.ndarray, q_dot: np.ndarray) -> np.ndarray:
        """The undoing of `rate`; changes of q that no velocity makes count for nothing."""
        if self.is_flat:
            return q_dot
        out, (i, k) = _room(self.nv, q, q_dot), self.flat
        out[..., k] = q_dot[..., i]
        for joint in self.bent:
            out[..., joint.v_slice] = along(partial(velocity_of, joint), q[..., joint.q_slice], q_dot[..., joint.q_slice])
        return out

    def gradient(self, q: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """By the numbers of q, of a gradient by tangent vectors: the least one that is the same along every velocity."""
        if self.is_flat:
            return slope
        out, (i, k) = _room(self.nq, q, slope), self.flat
        out[..., i] = slope[..., k]
        for joint in self.bent:
            out[..., joint.q_slice] = along(partial(gradient_of, joint), q[..., joint.q_slice], slope[..., joint.v_slice])
        return out

    def exp(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if self.is_flat:
            return q + v
        out, (i, k) = _room(self.nq, q, v), self.flat
        out[..., i] = q[..., i] + v[..., k]
        for joint in self.bent:
            out[..., joint.q_slice] = along(joint.row.exp, q[..., joint.q_slice], v[..., joint.v_slice])
        return out

    def log(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        if self.is_flat:
            return q - p
        out, (i, k) = _room(self.nv, p, q), self.flat
        out[..., k] = q[..., i] - p[..., i]
        for joint in self.bent:
            out[..., joint.v_slice] = along(joint.row.log, p[..., joint.q_slice], q[..., joint.q_slice])
        return out

    def positions(self, q: np.ndarray) -> np.ndarray:
        """The coordinates in the order of v: q where dq/dt = v, zero where joints turn in space."""
        if self.is_flat:
            return q
        out, (i, k) = np.zeros((*q.shape[:-1], self.nv), dtype=q.dtype), self.flat
        out[..., k] = q[..., i]
        return out

    def transmitted(self, q: np.ndarray, v: np.ndarray, law: Callable, steepened: bool = False) -> np.ndarray:
        """What forces at all joints of embedded loops, law(cluster, x, rates), are at the free coordinates; zero elsewhere.
        `steepened`: what slopes are there, a diagonal that is never less."""
        out = 0.0 * v + np.zeros((*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), self.nv))
        for joint in self.compound:
            own = partial(joint.laws.steepened if steepened else joint.laws.transmitted, law=law)
            out[..., joint.v_slice] = along(own, q[..., joint.q_slice], v[..., joint.v_slice])
        return out

    @property
    def compound(self) -> list[Any]:
        """The joints of embedded loops, each loop one."""
        return [joint for joint in self.bent if joint.kind == "compound"]

    def unit(self, q: np.ndarray) -> np.ndarray:
        """q itself where there is nothing to scale."""
        if all(joint.row.unit is list for joint in self.bent):
            return q
        out = q.copy()
        for joint in self.bent:
            out[..., joint.q_slice] = along(joint.row.unit, q[..., joint.q_slice])
        return out


def velocity_of(joint: Any, q: list, q_dot: list) -> list:
    """(T* T)^-1 T* dq/dt of one joint, where rate(q, v) = T v."""
    T = _rates(joint, q)
    return _divided(joint, T, [dot(column, q_dot) for column in T])


def gradient_of(joint: Any, q: list, slope: list) -> list:
    """T (T* T)^-1 slope."""
    return joint.row.rate(q, _divided(joint, _rates(joint, q), slope))


def _rates(joint: Any, q: list) -> list[list]:
    """The columns of T."""
    return [joint.row.rate(q, unit) for unit in np.eye(joint.row.nv).tolist()]


def _divided(joint: Any, T: list[list], x: list) -> list:
    """(T* T)^-1 x: columns of a joint of the table are at right angles, those of an embedded loop need not be."""
    if joint.kind != "compound":
        return [y / dot(column, column) for column, y in zip(T, x, strict=True)]
    return small.solve(small.factor([small.apply(T, column) for column in T]), x)


def _slices(joints: tuple[Any, ...]) -> tuple[list[slice], list[slice]]:
    return [joint.q_slice for joint in joints], [joint.v_slice for joint in joints]


def _places(slices: Iterable[slice]) -> np.ndarray:
    return np.array([i for own in slices for i in range(own.start, own.stop)], dtype=int)


def _room(size: int, x: np.ndarray, y: np.ndarray) -> Any:
    """An empty array of the batch and the scalars of both."""
    return np.empty((*np.broadcast_shapes(x.shape[:-1], y.shape[:-1]), size), dtype=np.result_type(x, y))
