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

from psiphi.model.joint_types import JOINTS
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.model.spatial.scalar_arrays import along
from psiphi.model.spatial.screws import dot

Q, V = "q_slice", "v_slice"  # whose coordinates an array has, by the name of a joint's share


class Manifold:
    """The configurations of some joints, base to tip."""

    def __init__(self, joints: Iterable[Any]):
        joints = tuple(joints)
        self.nq = max((joint.q_slice.stop for joint in joints), default=0)
        self.nv = max((joint.v_slice.stop for joint in joints), default=0)
        self.bent = tuple(joint for joint in joints if not joint.row.is_flat)
        flat = [joint for joint in joints if joint.row.is_flat]
        self.flat = (
            _places(joint.q_slice for joint in flat),
            _places(joint.v_slice for joint in flat),
        )  # dq/dt = v, there

    @classmethod
    def alone(cls, kind: str) -> Manifold:
        """One joint of a kind."""
        row = JOINTS[kind]
        return cls(
            [
                SimpleNamespace(
                    kind=kind, row=row, q_slice=slice(0, row.nq), v_slice=slice(0, row.nv)
                )
            ]
        )

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
        return (
            v
            if self.is_flat
            else self._each(Q, lambda joint, *x: joint.row.rate(*x), q, v, V, v[..., self.flat[1]])
        )

    def velocity(self, q: np.ndarray, q_dot: np.ndarray) -> np.ndarray:
        """The undoing of `rate`; changes of q that no velocity makes count for nothing."""
        return (
            q_dot
            if self.is_flat
            else self._each(V, velocity_of, q, q_dot, Q, q_dot[..., self.flat[0]])
        )

    def slope(self, q: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The gradient by tangent vectors, of one by the numbers of q."""
        return (
            gradient
            if self.is_flat
            else self._each(V, slope_of, q, gradient, Q, gradient[..., self.flat[0]])
        )

    def gradient(self, q: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """By the numbers of q, of a gradient by tangent vectors: the least one that is the same along every velocity."""
        return (
            slope
            if self.is_flat
            else self._each(Q, gradient_of, q, slope, V, slope[..., self.flat[1]])
        )

    def exp(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if self.is_flat:
            return q + v
        i, k = self.flat
        return self._each(Q, lambda joint, *x: joint.row.exp(*x), q, v, V, q[..., i] + v[..., k])

    def log(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        i, _ = self.flat
        return (
            q - p
            if self.is_flat
            else self._each(V, lambda joint, *x: joint.row.log(*x), p, q, Q, q[..., i] - p[..., i])
        )

    def log_rate(self, p: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """d/dt log(p, q) where q moves at the velocity v."""
        if self.is_flat:
            return v
        found, q_dot = np.array(v), self.rate(q, v)
        for joint in self.bent:
            law, own = partial(_logarithm_rate, joint), joint.q_slice
            found[..., joint.v_slice] = along(law, p[..., own], q[..., own], q_dot[..., own])
        return found

    def _each(
        self, out: str, law: Callable, q: np.ndarray, x: np.ndarray, over: str, flat: np.ndarray
    ) -> np.ndarray:
        """law(joint, q, x) of every curved joint, x being `over` Q or V, as one array over `out`; `flat` where dq/dt = v."""
        lead, size = (
            np.broadcast_shapes(q.shape[:-1], x.shape[:-1]),
            self.nq if out == Q else self.nv,
        )
        found: Any = np.empty((*lead, size), dtype=np.result_type(q, x))
        found[..., self.flat[out == V]] = flat
        for joint in self.bent:
            own = partial(law, joint)
            found[..., getattr(joint, out)] = along(
                own, q[..., joint.q_slice], x[..., getattr(joint, over)]
            )
        return found

    def positions(self, q: np.ndarray) -> np.ndarray:
        """The coordinates in the order of v: q where dq/dt = v, zero where joints turn in space."""
        if self.is_flat:
            return q
        out, (i, k) = np.zeros((*q.shape[:-1], self.nv), dtype=q.dtype), self.flat
        out[..., k] = q[..., i]
        return out

    def transmitted(
        self, q: np.ndarray, v: np.ndarray, law: Callable, steepened: bool = False
    ) -> np.ndarray:
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
        if self.is_flat or all(joint.row.unit is list for joint in self.bent):
            return q
        out = q.copy()
        for joint in self.bent:
            out[..., joint.q_slice] = along(joint.row.unit, q[..., joint.q_slice])
        return out


def _logarithm_rate(joint: Any, p: list, q: list, q_dot: list) -> list:
    """Of one joint."""
    return rate_of_change(lambda x: joint.row.log(p, x), q, q_dot)


def slope_of(joint: Any, q: list, gradient: list) -> list:
    """T* gradient of one joint, where rate(q, v) = T v."""
    return [dot(column, gradient) for column in _rates(joint, q)]


def velocity_of(joint: Any, q: list, q_dot: list) -> list:
    """(T* T)^-1 T* dq/dt."""
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
    return small_matrices.solve(
        small_matrices.factor([small_matrices.apply(T, column) for column in T]), x
    )


def _places(slices: Iterable[slice]) -> np.ndarray:
    return np.array([i for own in slices for i in range(own.start, own.stop)], dtype=int)
