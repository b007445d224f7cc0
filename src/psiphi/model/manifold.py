"""The configuration manifold of a robot: the laws of its joints on whole arrays q and v.

    rate(q, v)    dq/dt
    exp(q, v)     q exp(v): q moved at the constant velocity v for one unit of time
    log(p, q)     v with p exp(v) = q, by the shortest rotation
    unit(q)       quaternions scaled to unit length

    straight(q, x), transport(v, x), turning(v)
                  exp, the velocity after it, and w x v for bodies whose origins move in straight
                  lines, which conserves their momentum

q is (..., nq), v is (..., nv). The arrays hold numbers, or tape expressions (dtype object), so that
the integrators and the compiled kernels share this code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from psiphi.model.joint_types import JOINTS
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.dual_numbers import rate_of_change
from psiphi.model.spatial.scalar_arrays import on_arrays
from psiphi.model.spatial.screws import dot

Q, V = "q_slice", "v_slice"  # the attribute of a joint that selects its entries of an array


class ManifoldRow(Protocol):
    """The columns of the joint table that define a configuration space."""

    @property
    def nq(self) -> int: ...
    @property
    def nv(self) -> int: ...
    @property
    def is_flat(self) -> bool: ...
    @property
    def rate(self) -> Callable: ...
    @property
    def exp(self) -> Callable: ...
    @property
    def log(self) -> Callable: ...
    @property
    def unit(self) -> Callable: ...
    @property
    def straight(self) -> Callable | None: ...
    @property
    def transport(self) -> Callable | None: ...
    @property
    def turning(self) -> Callable | None: ...


class ManifoldJoint(Protocol):
    """A joint, or the joints of a cluster."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def row(self) -> ManifoldRow: ...
    @property
    def q_slice(self) -> slice: ...
    @property
    def v_slice(self) -> slice: ...


class SingleJoint(NamedTuple):
    """A joint of the joint table, alone."""

    kind: str
    row: ManifoldRow
    q_slice: slice
    v_slice: slice
    name: str = ""


class Manifold:
    """The configuration space of some joints, base to tip.

    `curved` are the joints whose q is not a vector space. `flat` are the indices in q and in v of
    all other coordinates, where dq/dt = v.
    """

    def __init__(self, joints: Iterable[ManifoldJoint]):
        joints = tuple(joints)
        self.nq = max((joint.q_slice.stop for joint in joints), default=0)
        self.nv = max((joint.v_slice.stop for joint in joints), default=0)
        self.curved = tuple(joint for joint in joints if not joint.row.is_flat)
        flat = [joint for joint in joints if joint.row.is_flat]
        self.flat = (
            _indices(joint.q_slice for joint in flat),
            _indices(joint.v_slice for joint in flat),
        )

    @classmethod
    def of_kind(cls, kind: str) -> Manifold:
        """The manifold of one joint."""
        row = JOINTS[kind]
        return cls([SingleJoint(kind, row, slice(0, row.nq), slice(0, row.nv))])

    @cached_property
    def by_kind(self) -> list[tuple[Manifold, tuple[tuple[int, int], ...]]]:
        """For each kind of joint, its manifold and where each such joint starts in q and v.

        Flat coordinates count as one-coordinate joints of one kind.
        """
        found = {"revolute": list(zip(*(x.tolist() for x in self.flat), strict=True))}
        for joint in self.curved:
            found.setdefault(joint.kind, []).append((joint.q_slice.start, joint.v_slice.start))
        return [(Manifold.of_kind(kind), tuple(places)) for kind, places in found.items() if places]

    @property
    def is_flat(self) -> bool:
        """Whether q is a vector space: then rate(q, v) = v and exp(q, v) = q + v."""
        return not self.curved

    def rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """dq/dt = T(q) v."""
        if self.is_flat:
            return v
        return self._each(Q, lambda joint, *x: joint.row.rate(*x), q, v, V, v[..., self.flat[1]])

    def velocity(self, q: np.ndarray, q_dot: np.ndarray) -> np.ndarray:
        """The inverse of `rate`, (T* T)⁻¹ T* q_dot, which drops changes of a quaternion's norm."""
        if self.is_flat:
            return q_dot
        return self._each(V, velocity_of, q, q_dot, Q, q_dot[..., self.flat[0]])

    def tangent_gradient(self, q: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """T* gradient (..., nv), from the gradient with respect to q (..., nq)."""
        if self.is_flat:
            return gradient
        return self._each(V, tangent_gradient_of, q, gradient, Q, gradient[..., self.flat[0]])

    def coordinate_gradient(self, q: np.ndarray, tangent: np.ndarray) -> np.ndarray:
        """T (T* T)⁻¹ tangent (..., nq): the least gradient with respect to q for a tangent one."""
        if self.is_flat:
            return tangent
        return self._each(Q, coordinate_gradient_of, q, tangent, V, tangent[..., self.flat[1]])

    def exp(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """q moved at the constant velocity v for one unit of time."""
        if self.is_flat:
            return q + v
        i, k = self.flat
        return self._each(Q, lambda joint, *x: joint.row.exp(*x), q, v, V, q[..., i] + v[..., k])

    def straight(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        """q moved by x, the origins of free and planar joints along straight lines."""
        if self.is_flat:
            return q + x
        i, k = self.flat

        def move(joint: ManifoldJoint, q: list, x: list) -> list:
            return (joint.row.straight or joint.row.exp)(q, x)

        return self._each(Q, move, q, x, V, q[..., i] + x[..., k])

    def transport(self, v: np.ndarray, x: np.ndarray) -> np.ndarray:
        """v in the body axes after the move x: linear velocities are constant in fixed axes."""
        return self._turned("transport", v, v, x)

    def turning(self, v: np.ndarray) -> np.ndarray:
        """w x v for the linear velocities of free and planar joints, else 0."""
        return self._turned("turning", 0.0 * v, v)

    def _turned(self, column: str, others: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
        """The law in this column of the joint table, of joints that have one, else `others`."""
        lead = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
        out = np.array(np.broadcast_to(others, (*lead, self.nv)))
        for joint in self.curved:
            if (law := getattr(joint.row, column)) is not None:
                rows = joint.v_slice
                out[..., rows] = on_arrays(law, *(x[..., rows] for x in arrays))
        return out

    def log(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """v with p exp(v) = q, by the shortest rotation."""
        if self.is_flat:
            return q - p
        i, _ = self.flat
        return self._each(V, lambda joint, *x: joint.row.log(*x), p, q, Q, q[..., i] - p[..., i])

    def log_rate(self, p: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """d/dt log(p, q), where q moves at the velocity v."""
        return (
            v if self.is_flat else self._curved(v, _log_rate, (p, Q), (q, Q), (self.rate(q, v), Q))
        )

    def carried(self, q: np.ndarray, p: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Ad v: the velocity of q with which log(q, p) stays constant, where p moves at v."""
        return self._curved(v, _carried, (q, Q), (p, Q), (v, V))

    def carried_rate(
        self, q: np.ndarray, u: np.ndarray, p: np.ndarray, v: np.ndarray, a: np.ndarray
    ) -> np.ndarray:
        """d/dt carried(q, p, v), where q moves at u, p at v, and dv/dt = a."""
        return self._curved(a, _carried_rate, (q, Q), (u, V), (p, Q), (v, V), (a, V))

    def log_gradient(self, q: np.ndarray, p: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The gradient of - y . log(q, p) with respect to motions of q."""
        return self._curved(y, _log_gradient, (q, Q), (p, Q), (y, V))

    def _curved(
        self, others: np.ndarray, law: Callable, *arguments: tuple[np.ndarray, str]
    ) -> np.ndarray:
        """law(joint, *arguments) (..., nv) of curved joints; `others` at all other coordinates."""
        if self.is_flat:
            return others
        lead = np.broadcast_shapes(*(x.shape[:-1] for x, _ in arguments))
        out: Any = np.array(np.broadcast_to(others, (*lead, self.nv)))
        for joint in self.curved:
            parts = (x[..., getattr(joint, over)] for x, over in arguments)
            out[..., joint.v_slice] = on_arrays(partial(law, joint), *parts)
        return out

    def _each(
        self, over: str, law: Callable, q: np.ndarray, x: np.ndarray, x_over: str, flat: np.ndarray
    ) -> np.ndarray:
        """law(joint, q, x) of each curved joint and `flat` for the flat coordinates, as one array.

        `over` (Q or V) says which entries the result has, `x_over` which ones x has.
        """
        lead = np.broadcast_shapes(q.shape[:-1], x.shape[:-1])
        size = self.nq if over == Q else self.nv
        out: Any = np.empty((*lead, size), dtype=np.result_type(q, x))
        out[..., self.flat[over == V]] = flat
        for joint in self.curved:
            out[..., getattr(joint, over)] = on_arrays(
                partial(law, joint), q[..., joint.q_slice], x[..., getattr(joint, x_over)]
            )
        return out

    def positions(self, q: np.ndarray) -> np.ndarray:
        """q in the order of v (..., nv), with zeros for curved joints."""
        if self.is_flat:
            return q
        out, (i, k) = np.zeros((*q.shape[:-1], self.nv), dtype=q.dtype), self.flat
        out[..., k] = q[..., i]
        return out

    def cluster_forces(
        self, q: np.ndarray, v: np.ndarray, law: Callable, slope_bound: bool = False
    ) -> np.ndarray:
        """Forces law(cluster, x, rates) at the joints of clusters, projected on free coordinates.

        (..., nv), zero elsewhere. With `slope_bound`, the law gives slopes, and the result is the
        diagonal of a matrix that bounds the projected slopes from above.
        """
        out = 0.0 * v + np.zeros((*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), self.nv))
        for joint in self.cluster_joints:
            kinematics = joint.kinematics
            project = kinematics.slope_bound if slope_bound else kinematics.project_forces
            out[..., joint.v_slice] = on_arrays(
                partial(project, law=law), q[..., joint.q_slice], v[..., joint.v_slice]
            )
        return out

    @property
    def cluster_joints(self) -> list[Any]:
        """The clusters of embedded loops, each as one `ClusterJoint`."""
        return [joint for joint in self.curved if joint.kind == "compound"]

    def unit(self, q: np.ndarray) -> np.ndarray:
        """q with unit quaternions; q itself, not a copy, for a robot without quaternions."""
        if self.is_flat or all(joint.row.unit is list for joint in self.curved):
            return q
        out = q.copy()
        for joint in self.curved:
            out[..., joint.q_slice] = on_arrays(joint.row.unit, q[..., joint.q_slice])
        return out


# The laws of one joint, on lists of scalars; rate(q, v) = T v.


def _log_rate(joint: ManifoldJoint, p: list, q: list, q_dot: list) -> list:
    return rate_of_change(lambda x: joint.row.log(p, x), q, q_dot)


def _carried(joint: ManifoldJoint, q: list, p: list, v: list) -> list:
    """q = p exp(-e): its velocity as p moves at v, with e = log(q, p)."""
    row, back = joint.row, [-x for x in joint.row.log(q, p)]
    # `back` is among the arguments, so that it may be dual numbers of another derivative
    q_dot = rate_of_change(
        lambda x: row.exp(x[: row.nq], x[row.nq :]),
        [*p, *back],
        [*row.rate(p, v), *(0.0 for _ in back)],
    )
    return velocity_of(joint, row.exp(p, back), q_dot)


def _carried_rate(joint: ManifoldJoint, q: list, u: list, p: list, v: list, a: list) -> list:
    row = joint.row
    state, change = [*q, *p, *v], [*row.rate(q, u), *row.rate(p, v), *a]

    def at(x: list) -> list:
        return _carried(joint, x[: row.nq], x[row.nq : 2 * row.nq], x[2 * row.nq :])

    return rate_of_change(at, state, change)


def _log_gradient(joint: ManifoldJoint, q: list, p: list, y: list) -> list:
    """d/dt log(p, q) = -d/dt log(q, p) as q moves along each coordinate, times y."""
    columns = (_log_rate(joint, p, q, x) for x in _rate_columns(joint, q))
    return [dot(column, y) for column in columns]


def tangent_gradient_of(joint: ManifoldJoint, q: list, gradient: list) -> list:
    """T* gradient."""
    return [dot(column, gradient) for column in _rate_columns(joint, q)]


def velocity_of(joint: ManifoldJoint, q: list, q_dot: list) -> list:
    """(T* T)⁻¹ T* q_dot."""
    T = _rate_columns(joint, q)
    return _gram_solve(joint, T, [dot(column, q_dot) for column in T])


def coordinate_gradient_of(joint: ManifoldJoint, q: list, tangent: list) -> list:
    """T (T* T)⁻¹ tangent."""
    return joint.row.rate(q, _gram_solve(joint, _rate_columns(joint, q), tangent))


def _rate_columns(joint: ManifoldJoint, q: list) -> list[list]:
    """The columns of T."""
    return [joint.row.rate(q, unit) for unit in np.eye(joint.row.nv).tolist()]


def _gram_solve(joint: ManifoldJoint, T: list[list], x: list) -> list:
    """(T* T)⁻¹ x. The columns of T are orthogonal for joints of the table, but not for clusters."""
    if joint.kind != "compound":
        return [y / dot(column, column) for column, y in zip(T, x, strict=True)]
    return small_matrices.solve(
        small_matrices.factor([small_matrices.apply(T, column) for column in T]), x
    )


def _indices(slices: Iterable[slice]) -> np.ndarray:
    return np.array(
        [i for entries in slices for i in range(entries.start, entries.stop)], dtype=int
    )
