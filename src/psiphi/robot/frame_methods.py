"""A robot's frames, and the momenta of its bodies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import Array, DType, Numbers, Out
from psiphi._util.errors import StateError
from psiphi._util.validate import is_foreign, is_lazy
from psiphi.compiler.passes import is_large
from psiphi.functions import argument_checks
from psiphi.functions.arrays.array_dispatch import full, mathematics
from psiphi.robot import operational_inertia
from psiphi.robot.catalogue.frame_inertia import moving
from psiphi.robot.coordinate_methods import CoordinateMethods


class FrameMethods(CoordinateMethods):
    """A robot that says where its frames are, how they move, what wrenches on them do, and with what momentum."""

    forward_dynamics: Any

    def frame_pose(
        self, q: Numbers, frame: str, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """T: the 4x4 pose of a frame in the world. -> (..., 4, 4)"""
        return self._call("frame_pose", dict(q=q), out, dtype, check, (self._named(frame),))

    def frame_velocity(
        self,
        q: Numbers,
        v: Numbers,
        frame: str,
        *,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """V = [w; v] = J v of the frame's origin, in world axes (`axes="frame"`: the frame's own). -> (..., 6)"""
        return self._call(
            "frame_velocity", dict(q=q, v=v), out, dtype, check, (self._named(frame),), axes
        )

    def operational_space_inertia(
        self,
        q: Numbers,
        frames: str | Sequence[str],
        *,
        policy: str = "pseudo",
        rcond: float = 1e-9,
        damping: float = 1e-3,
        axes: str = "world",
        check: bool = False,
    ) -> Array:
        """Lambda = (J M^-1 J*)^-1 of one frame or of several on any branches. -> (..., 6 frames, 6 frames)

        Where J M^-1 J* = B* psi* H* D^-1 H psi B is singular, `policy` decides, for each batch element by itself: "pseudo"
        (least norm), "damped", or "exact" (NaN there, and only there).
        """
        names, Lam = argument_checks.names(self, frames), None
        if (
            type(q) is np.ndarray and q.dtype == np.float32
        ):  # whose digits do not tell small eigenvalues from none
            own = dict(policy=policy, rcond=rcond, damping=damping, axes=axes, check=check)
            return self.operational_space_inertia(q.astype(float), names, **own).astype(q.dtype)
        if (
            operational_inertia.is_regular(policy, rcond, damping)
            and self._is_whole(names)
            and not (is_foreign(q) or is_lazy(q))
        ):
            with np.errstate(invalid="ignore"):  # NaN where there is none
                Lam = self._call(
                    "operational_space_inertia", dict(q=q), None, None, check, names, axes
                )
            if operational_inertia.is_found(Lam):
                return Lam
        X = self.operational_compliance(q, names, axes=axes, check=check)
        if is_foreign(q):
            return operational_inertia.inverse_in_their_library(X, policy, rcond, damping)
        return operational_inertia.inverse(X, policy, rcond, damping, Lam)

    def _is_whole(self, frames: tuple[str, ...]) -> bool:
        """Whether J M^-1 J* of these frames may have an inverse, which is short enough to be written out as code."""
        if frames not in self._whole:
            few = 0 < len(frames) <= operational_inertia.WRITTEN and not is_large(self)
            self._whole[frames] = few and len(moving(self, frames)) >= 6 * len(frames)
        return self._whole[frames]

    @cached_property
    def _whole(self) -> dict[tuple[str, ...], bool]:
        return {}

    def operational_compliance(
        self,
        q: Numbers,
        frames: str | Sequence[str],
        *,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """J M^-1 J* = B* psi* H* D^-1 H psi B: accelerations of frames per wrench on them. -> (..., 6 frames, 6 frames)"""
        return self._call(
            "operational_compliance",
            dict(q=q),
            out,
            dtype,
            check,
            argument_checks.names(self, frames),
            axes,
        )

    def operational_space_bias(
        self,
        q: Numbers,
        v: Numbers,
        frames: str | Sequence[str],
        *,
        policy: str = "pseudo",
        rcond: float = 1e-9,
        damping: float = 1e-3,
        check: bool = False,
    ) -> Array:
        """mu = Lambda (J M^-1 (C v + g) - dJ/dt v): Lambda x'' + mu = the torques' wrenches. -> (..., 6 frames)"""
        names = argument_checks.names(self, frames)
        if not names:
            raise StateError(
                "operational_space_bias: no frame is given, expected at least one",
                'name it: frames=("tool",)',
            )
        rest = full(q, self.nv, 0.0) if is_foreign(q) else np.zeros(self.nv)
        free = self.forward_dynamics(q, v, rest, check=check)
        m, each = mathematics(free), [self.frame_acceleration(q, v, free, frame) for frame in names]
        Lam = self.operational_space_inertia(q, names, policy=policy, rcond=rcond, damping=damping)
        return -m.einsum("...ij,...j->...i", Lam, m.concatenate(each, -1))

    def frame_acceleration(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        frame: str,
        *,
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """J a + dJ/dt v: [w'; v'] of the frame's origin in world axes; a = 0 gives dJ/dt v. -> (..., 6)"""
        return self._call(
            "frame_acceleration", dict(q=q, v=v, a=a), out, dtype, check, (self._named(frame),)
        )

    def jacobian(
        self,
        q: Numbers,
        frame: str,
        *,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """J = B* phi* H*: [w; v] of the frame's origin per joint velocity, in world axes or the frame's own. -> (..., 6, nv)"""
        return self._call("jacobian", dict(q=q), out, dtype, check, (self._named(frame),), axes)

    def center_of_mass(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """c = sum m p / sum m, p the centres of mass of all moving bodies, in the world. -> (..., 3)"""
        self._heavy("center_of_mass", "use frame_pose for places")
        return self._call("center_of_mass", dict(q=q), out, dtype, check)

    def momentum(
        self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """h = E_0 phi M phi* H* v: [angular; linear] momentum of all moving bodies about the world's origin, in world axes.

        Rotors are no bodies: their inertia (`armature`) has no part in it. -> (..., 6)
        """
        return self._call("momentum", dict(q=q, v=v), out, dtype, check)

    def centroidal_momentum(
        self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """h = E_c phi M phi* H* v: [angular; linear] momentum about the centre of mass, in world axes. -> (..., 6)"""
        self._heavy("centroidal_momentum", "use momentum, about the world's origin")
        return self._call("centroidal_momentum", dict(q=q, v=v), out, dtype, check)

    def centroidal_momentum_matrix(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """A = E_c phi M phi* H* with `centroidal_momentum` = A v: rows [angular; linear]. -> (..., 6, nv)"""
        self._heavy("centroidal_momentum_matrix", "use momentum, about the world's origin")
        return self._matrix("centroidal_momentum_matrix", q, out, dtype, check)
