"""`Layout`: converts arrays of one model between psiphi and a peer library, joint by joint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import real_array
from psiphi.io.conventions.joint_coordinate_maps import PeerJoint
from psiphi.model.model import Joint, Model


class Slot(NamedTuple):
    """A psiphi joint, the peer's row for its type, and the peer's slices of q and v."""

    joint: Joint
    row: PeerJoint
    q: slice
    v: slice


class Layout:
    """Conversions for one model and one peer; arrays may have any leading batch axes.

    `to_x` converts psiphi's arrays to the peer's. `from_x` converts back; *all* its arguments,
    also q and v, are the peer's. If the velocity map does not depend on q (always for Pinocchio),
    q and v are optional.

    >>> from psiphi import interop
    >>> from psiphi.model.builder.builder import Builder
    >>> b = Builder("wheel")
    >>> b.body("disc", mass=1.0, inertia=(0.5, 0, 0, 0.5, 0, 1.0))
    >>> b.joint("axle", "continuous", parent="world", child="disc")
    >>> interop.pinocchio(b.build()).to_q([0.0])
    array([1., 0.])
    """

    def __init__(self, model: Model, peer: str, slots: Sequence[Slot], spatial_linear_first: bool):
        if model.embedding is not None:
            cause = f"{model.embedding.describe(model.name)}: {peer} has only single joints"
            raise StateError(cause, f"convert for {model.embedding.remedy}")
        self.model, self.peer, self.slots = model, peer, tuple(slots)
        self.nq = sum(slot.row.nq for slot in self.slots)
        self.nv = sum(slot.row.nv for slot in self.slots)
        self.spatial_linear_first = spatial_linear_first

    def to_q(self, q: Numbers) -> np.ndarray:
        """Configurations (..., nq) in the peer's coordinates."""
        q = self._check("q", q, self.model.nq)
        out = np.empty((*q.shape[:-1], self.nq))
        for s in self.slots:
            out[..., s.q] = s.row.to_q(q[..., s.joint.q_slice], s.joint)
        return out

    def from_q(self, q: Numbers) -> np.ndarray:
        """Configurations (..., nq) from the peer's; angles from (cos, sin) are in (-pi, pi]."""
        q = self._check("q", q, self.nq)
        out = np.empty((*q.shape[:-1], self.model.nq))
        for s in self.slots:
            out[..., s.joint.q_slice] = s.row.from_q(q[..., s.q], s.joint)
        return out

    def to_v(self, v: Numbers, q: Numbers | None = None) -> np.ndarray:
        """Velocities v' = T(q) v."""
        return self._apply_T(self._check("v", v, self.nv), self._check_q(q))

    def from_v(self, v: Numbers, q: Numbers | None = None) -> np.ndarray:
        """Velocities v = T(q)* v'."""
        return self._apply_T_transposed(self._check("v", v, self.nv), self._q_from_peer(q))

    def to_a(self, a: Numbers, q: Numbers | None = None, v: Numbers | None = None) -> np.ndarray:
        """Accelerations a' = T a + (dT/dt) v, the time derivative of v'."""
        q, v = self._check_q(q), None if v is None else self._check("v", v, self.nv)
        return self._apply_T(self._check("a", a, self.nv), q) + self._rate(q, v)

    def from_a(self, a: Numbers, q: Numbers | None = None, v: Numbers | None = None) -> np.ndarray:
        """Accelerations a = T* (a' - (dT/dt) v)."""
        q = self._q_from_peer(q)
        v = None if v is None else self._apply_T_transposed(self._check("v", v, self.nv), q)
        return self._apply_T_transposed(self._check("a", a, self.nv) - self._rate(q, v), q)

    def to_tau(self, tau: Numbers, q: Numbers | None = None) -> np.ndarray:
        """Joint forces tau' = T tau; the power tau . v does not change."""
        return self._apply_T(self._check("tau", tau, self.nv), self._check_q(q))

    def from_tau(self, tau: Numbers, q: Numbers | None = None) -> np.ndarray:
        """Joint forces tau = T* tau'."""
        return self._apply_T_transposed(self._check("tau", tau, self.nv), self._q_from_peer(q))

    def to_bias(
        self,
        bias: Numbers,
        mass_matrix: Numbers,
        q: Numbers | None = None,
        v: Numbers | None = None,
    ) -> np.ndarray:
        """bias' = T bias - M' (dT/dt) v, so that tau' = M' a' + bias'."""
        rate = self._rate(self._check_q(q), None if v is None else self._check("v", v, self.nv))
        return self.to_tau(bias, q) - np.einsum(
            "...ij,...j->...i", self.to_mass_matrix(mass_matrix, q), rate
        )

    def from_bias(
        self,
        bias: Numbers,
        mass_matrix: Numbers,
        q: Numbers | None = None,
        v: Numbers | None = None,
    ) -> np.ndarray:
        """The inverse of `to_bias`: T* (bias' + M' (dT/dt) v)."""
        M = self._check("mass_matrix", mass_matrix, self.nv, self.nv)
        rate = self._rate(self._q_from_peer(q), None if v is None else self.from_v(v, q))
        return self.from_tau(
            self._check("bias", bias, self.nv) + np.einsum("...ij,...j->...i", M, rate), q
        )

    def to_mass_matrix(self, M: Numbers, q: Numbers | None = None) -> np.ndarray:
        """M' = T M T*; also for the inverse mass matrix and other quadratic forms."""
        return self._both_sides(
            self._apply_T, self._check("mass_matrix", M, self.nv, self.nv), self._check_q(q)
        )

    def from_mass_matrix(self, M: Numbers, q: Numbers | None = None) -> np.ndarray:
        """M = T* M' T."""
        return self._both_sides(
            self._apply_T_transposed,
            self._check("mass_matrix", M, self.nv, self.nv),
            self._q_from_peer(q),
        )

    def to_jacobian(self, J: Numbers, q: Numbers | None = None) -> np.ndarray:
        """The peer's frame Jacobian, rows [v; w] (in MuJoCo jacp, jacr), from rows [w; v]."""
        return _swap_rows(
            self._apply_T(self._check("jacobian", J, 6, self.nv), _with_row_axis(self._check_q(q)))
        )

    def from_jacobian(self, J: Numbers, q: Numbers | None = None) -> np.ndarray:
        """A frame Jacobian, rows [w; v], from the peer's, rows [v; w]."""
        return _swap_rows(
            self._apply_T_transposed(
                self._check("jacobian", J, 6, self.nv), _with_row_axis(self._q_from_peer(q))
            )
        )

    def to_spatial(self, x: Numbers) -> np.ndarray:
        """Motions [w; v] or wrenches [n; f] (..., 6) in the peer's order: [v; w] for Pinocchio.

        MuJoCo has the same order as psiphi, except for `xfrc_applied`, which is [f; n] at the
        center of mass of the body in world axes.
        """
        x = self._check("x", x, 6)
        return np.roll(x, 3, axis=-1) if self.spatial_linear_first else x.copy()

    from_spatial = to_spatial  # swapping halves is its own inverse

    def _apply_T(self, x: np.ndarray, q: np.ndarray | None) -> np.ndarray:
        """T(q) x."""
        out = np.empty((*self._batch_shape(x, q), self.nv))
        for s in self.slots:
            T, block = self._velocity_map(s, q), x[..., s.joint.v_slice]
            out[..., s.v] = block if T is None else np.einsum("...ij,...j->...i", T, block)
        return out

    def _apply_T_transposed(self, x: np.ndarray, q: np.ndarray | None) -> np.ndarray:
        """T(q)* x."""
        out = np.empty((*self._batch_shape(x, q), self.nv))
        for s in self.slots:
            T, block = self._velocity_map(s, q), x[..., s.v]
            out[..., s.joint.v_slice] = (
                block if T is None else np.einsum("...ji,...j->...i", T, block)
            )
        return out

    def _velocity_map(self, s: Slot, q: np.ndarray | None) -> np.ndarray | None:
        """T of one joint, or None for the identity."""
        if callable(s.row.T):
            return s.row.T(self._require("q", q, s)[..., s.joint.q_slice], s.joint)
        return s.row.T

    def _rate(self, q: np.ndarray | None, v: np.ndarray | None) -> np.ndarray:
        """(dT/dt) v, ordered as the peer's velocities; q and v are psiphi's."""
        varying = [s for s in self.slots if s.row.rate is not None]
        if not varying:
            return np.zeros(self.nv)
        q, v = self._require("q", q, varying[0]), self._require("v", v, varying[0])
        out = np.zeros((*self._batch_shape(q, v), self.nv))
        for s in varying:
            qj, vj = q[..., s.joint.q_slice], v[..., s.joint.v_slice]
            out[..., s.v] = s.row.rate(qj, vj, s.joint) if s.row.rate else 0.0
        return out

    def _both_sides(self, apply: Callable, M: np.ndarray, q: np.ndarray | None) -> np.ndarray:
        """T M T* or T* M T."""
        half = apply(M, _with_row_axis(q))
        return apply(np.swapaxes(half, -1, -2), _with_row_axis(q)).swapaxes(-1, -2)

    def _check_q(self, q: Numbers | None) -> np.ndarray | None:
        return None if q is None else self._check("q", q, self.model.nq)

    def _q_from_peer(self, q: Numbers | None) -> np.ndarray | None:
        return None if q is None else self.from_q(q)

    def _batch_shape(self, x: np.ndarray, q: np.ndarray | None) -> tuple[int, ...]:
        return x.shape[:-1] if q is None else np.broadcast_shapes(x.shape[:-1], q.shape[:-1])

    def _require(self, name: str, value: np.ndarray | None, s: Slot) -> np.ndarray:
        if value is None:
            raise StateError(
                f"{name} is missing: the velocity of joint {s.joint.name!r} ({s.joint.kind}) "
                f"in {self.peer} depends on it",
                f"pass {name}= in the convention of the other arguments",
            )
        return value

    def _check(self, name: str, value: Numbers, *shape: int) -> np.ndarray:
        size = " x ".join(map(str, shape))
        return real_array(
            name,
            value,
            shape,
            f"give {size} numbers in the last axes, to convert {self.model.name} for {self.peer}",
        )

    def __repr__(self) -> str:
        return f"<Layout of {self.model.name!r} for {self.peer}: nq={self.nq}, nv={self.nv}>"


def _with_row_axis(q: np.ndarray | None) -> np.ndarray | None:
    """q with one more axis, which broadcasts over the rows of a matrix."""
    return None if q is None else q[..., None, :]


def _swap_rows(J: np.ndarray) -> np.ndarray:
    return np.roll(J, 3, axis=-2)
