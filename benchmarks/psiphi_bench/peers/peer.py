"""The common base of Pinocchio and MuJoCo: psiphi's names, arrays and axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from psiphi.io.conventions.vector_layout import Layout
from psiphi.model.model import Model

Wrenches: TypeAlias = Mapping[str, np.ndarray] | None  # frame name -> wrench (..., 6)


class Unsupported(Exception):
    """The library has no such joint or body."""


class Peer:
    """Converts a batch, loops over it, and converts the results back.

    Subclasses define the calls for one state in their own coordinates. Poses, velocities and points
    use psiphi's conventions.
    """

    _forward: Callable  # q, v, tau, wrenches, their frames -> a
    _inverse: Callable  # q, v, a, wrenches, their frames -> tau
    _mass: Callable  # q -> (nv, nv)
    _inverse_mass: Callable  # q -> (nv, nv)
    _pose: Callable  # q, frame -> R, p
    _velocity: Callable  # q, v, frame, axes -> [w; v]
    _jacobian: Callable  # q, frame -> (6, nv), linear rows first
    _energy: Callable  # q, v -> number
    _center: Callable  # q -> point

    def __init__(self, model: Model, layout: Layout):
        self.model, self.layout = model, layout

    def forward_dynamics(
        self,
        q: np.ndarray,
        v: np.ndarray,
        tau: np.ndarray,
        f_ext: Wrenches = None,
        axes: str = "world",
    ) -> np.ndarray:
        Q, V, a = self._dynamics(self._forward, q, v, self.layout.to_tau(tau, q), f_ext, axes)
        return self.layout.from_a(a, Q, V)

    def inverse_dynamics(
        self,
        q: np.ndarray,
        v: np.ndarray,
        a: np.ndarray,
        f_ext: Wrenches = None,
        axes: str = "world",
    ) -> np.ndarray:
        Q, _, tau = self._dynamics(self._inverse, q, v, self.layout.to_a(a, q, v), f_ext, axes)
        return self.layout.from_tau(tau, Q)

    def _dynamics(
        self,
        call: Callable,
        q: np.ndarray,
        v: np.ndarray,
        x: np.ndarray,
        f_ext: Wrenches,
        axes: str,
    ) -> tuple[np.ndarray, ...]:
        """q and v in the coordinates of the library, and its result."""
        Q, V, (names, wrenches) = (
            self.layout.to_q(q),
            self.layout.to_v(v, q),
            self._in_world(q, f_ext, axes),
        )
        return (
            Q,
            V,
            _looped(lambda *args: call(*args, names), "(q),(v),(v),(k,s)->(v)")(Q, V, x, wrenches),
        )

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        Q = self.layout.to_q(q)
        return self.layout.from_mass_matrix(self._masses(Q), Q)

    def mass_matrix_inverse(self, q: np.ndarray) -> np.ndarray:
        Q = self.layout.to_q(q)
        return self.layout.from_mass_matrix(_looped(self._inverse_mass, "(q)->(v,v)")(Q), Q)

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        Q, V = self.layout.to_q(q), self.layout.to_v(v, q)
        call = _looped(
            lambda q, v: self._inverse(q, v, 0 * v, np.zeros((0, 6)), []), "(q),(v)->(v)"
        )
        return self.layout.from_bias(call(Q, V), self._masses(Q), Q, V)

    def gravity(self, q: np.ndarray) -> np.ndarray:
        return self.bias(q, np.zeros(self.model.nv))

    def frame_pose(self, q: np.ndarray, frame: str) -> np.ndarray:
        R, p = _looped(lambda q: self._pose(q, frame), "(q)->(r,r),(r)")(self.layout.to_q(q))
        top = np.concatenate([R, p[..., None]], axis=-1)
        return np.concatenate(
            [top, np.broadcast_to([0.0, 0.0, 0.0, 1.0], (*p.shape[:-1], 1, 4))], axis=-2
        )

    def frame_velocity(
        self, q: np.ndarray, v: np.ndarray, frame: str, axes: str = "world"
    ) -> np.ndarray:
        call = _looped(lambda q, v: self._velocity(q, v, frame, axes), "(q),(v)->(s)")
        return call(self.layout.to_q(q), self.layout.to_v(v, q))

    def jacobian(self, q: np.ndarray, frame: str, axes: str = "world") -> np.ndarray:
        Q, call = self.layout.to_q(q), _looped(lambda q: self._jacobian(q, frame), "(q)->(s,v)")
        J = self.layout.from_jacobian(call(Q), Q)
        R = np.swapaxes(self.frame_pose(q, frame)[..., :3, :3], -1, -2)
        return (
            J
            if axes == "world"
            else np.concatenate([R @ J[..., :3, :], R @ J[..., 3:, :]], axis=-2)
        )

    def energy(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return _looped(self._energy, "(q),(v)->()")(self.layout.to_q(q), self.layout.to_v(v, q))

    def center_of_mass(self, q: np.ndarray) -> np.ndarray:
        return _looped(self._center, "(q)->(r)")(self.layout.to_q(q))

    def _masses(self, Q: np.ndarray) -> np.ndarray:
        return _looped(self._mass, "(q)->(v,v)")(Q)

    def _in_world(self, q: np.ndarray, f_ext: Wrenches, axes: str) -> tuple[list[str], np.ndarray]:
        """{frame: (..., 6)} as the frames' names and one array (..., k, 6) in world axes."""
        if not f_ext:
            return [], np.zeros((0, 6))
        wrenches = [np.asarray(wrench, dtype=float) for wrench in f_ext.values()]
        if axes == "frame":
            rotations = [self.frame_pose(q, frame)[..., :3, :3] for frame in f_ext]
            wrenches = [_rotated(R, wrench) for R, wrench in zip(rotations, wrenches, strict=True)]
        return list(f_ext), np.stack(np.broadcast_arrays(*wrenches), axis=-2)


def _rotated(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Both halves of a spatial vector rotated by R."""
    return np.einsum("...ij,...kj->...ki", R, x.reshape(*x.shape[:-1], 2, 3)).reshape(x.shape)


def _looped(function: Callable, signature: str) -> Callable:
    """The function as a Python loop over the batch axes."""
    return np.vectorize(function, signature=signature)
