"""Frames of a robot: poses, velocities, Jacobians, operational-space inertia; and momenta."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import Array, DType, Numbers, Out
from psiphi._util.errors import StateError
from psiphi._util.validate import is_foreign, is_lazy
from psiphi.compiler.passes import is_large
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions import argument_checks
from psiphi.functions.arrays.array_dispatch import (
    array_module,
    cast_array,
    constants_beside,
    in_double,
    in_one_library,
)
from psiphi.robot import operational_inertia
from psiphi.robot.catalogue.frame_inertia import moving_coordinates
from psiphi.robot.quantity_methods import QuantityMethods


class FrameMethods(QuantityMethods):
    """The methods of `Robot` for frames and momenta."""

    forward_dynamics: Callable[..., Array]

    def frame_pose(
        self,
        q: Numbers,
        frame: str | Sequence[str],
        *,
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """T: the 4x4 pose of a frame in the world. -> (..., 4, 4)

        Of several frames, ["left", "right"]: (..., frames, 4, 4), likewise in the next methods.
        """
        return self._at_frames("frame_pose", dict(q=q), frame, out, dtype, check)

    def frame_velocity(
        self,
        q: Numbers,
        v: Numbers,
        frame: str | Sequence[str],
        *,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """V = [w; v] = J v of the frame's origin, in world axes or frame axes. -> (..., 6)"""
        return self._at_frames("frame_velocity", dict(q=q, v=v), frame, out, dtype, check, axes)

    def _at_frames(
        self,
        name: str,
        state: dict[str, Any],
        frame: str | Sequence[str],
        out: Out,
        dtype: DType,
        check: bool,
        axes: str = "world",
    ) -> Any:
        """A quantity at one frame, or at several: (..., frames, *shape)."""
        if isinstance(frame, str) or not isinstance(frame, list | tuple):
            one: Any = frame  # a name or a `Frame`
            frames = (self._frame_name(one),)
            return self.call_quantity(name, state, out, dtype, check, frames, axes)
        if not frame or out is not None:
            fault = "out= is given with several frames" if frame else "no frame is given"
            raise StateError(f"{name}: {fault}", 'give ["left", "right"], without out=')
        each = [
            self.call_quantity(name, dict(state), None, dtype, check, (x,), axes)
            for x in argument_checks.frame_names(self, frame)
        ]
        core = len(self.function(name, (self._frame_name(frame[0]),), axes).outputs[0].shape)
        return array_module(each[0]).stack(each, -1 - core)

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
        """Lambda = (J M^-1 J*)^-1 of one or several frames. -> (..., 6 frames, 6 frames)

        Where J M^-1 J* = B* psi* H* D^-1 H psi B is singular, `policy` selects the result for that
        batch element: "pseudo" (least norm), "damped", or "exact" (NaN).
        """
        names, Lam = argument_checks.frame_names(self, frames), None
        # float32 cannot tell small eigenvalues from zero
        if (type(q) is not np.ndarray or q.dtype != float) and (wide := in_double(q)) is not q:
            options: dict[str, Any] = dict(policy=policy, rcond=rcond, damping=damping)
            options |= dict(axes=axes, check=check)
            found = self.operational_space_inertia(wide, names, **options)
            return cast_array(found, "float32")
        if (
            operational_inertia.uses_inverse(policy, rcond, damping)
            and self._may_be_invertible(names)
            and not (is_foreign(q) or is_lazy(q))
        ):
            with np.errstate(invalid="ignore"):  # NaN where X is singular
                Lam = self.call_quantity(
                    "operational_space_inertia", dict(q=q), None, None, check, names, axes
                )
            if operational_inertia.has_no_nan(Lam):
                return Lam
        X = self.operational_compliance(q, names, axes=axes, check=check)
        if is_foreign(q):
            return operational_inertia.foreign_inverse(X, policy, rcond, damping)
        return operational_inertia.inverse(X, policy, rcond, damping, Lam)

    def _may_be_invertible(self, frames: tuple[str, ...]) -> bool:
        """Whether J M^-1 J* of these frames can be regular, and its inverse straight-line code."""
        if frames not in self._invertible_frames:
            few = 0 < len(frames) <= operational_inertia.UNROLLED_FRAMES and not is_large(self)
            enough = few and len(moving_coordinates(self, frames)) >= 6 * len(frames)
            self._invertible_frames[frames] = enough
        return self._invertible_frames[frames]

    @cached_property
    def _invertible_frames(self) -> dict[tuple[str, ...], bool]:
        """{frames: `_may_be_invertible(frames)`}"""
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
        """J M^-1 J* = B* psi* H* D^-1 H psi B: frame accelerations per wrench on the frames.

        -> (..., 6 frames, 6 frames)
        """
        return self.call_quantity(
            "operational_compliance",
            dict(q=q),
            out,
            dtype,
            check,
            argument_checks.frame_names(self, frames),
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
        """mu = Lambda (J M^-1 (C v + g) - dJ/dt v). -> (..., 6 frames)

        Lambda x'' + mu = F for torques tau = J* F.
        """
        names = argument_checks.frame_names(self, frames)
        if not names:
            raise StateError(
                "operational_space_bias: frames is empty, expected at least one frame",
                'give frames=("tool",)',
            )
        if type(q) is not np.ndarray or type(v) is not np.ndarray:
            inputs = Argument("q", (self.nq,), "q"), Argument("v", (self.nv,), "v")
            q, v = in_one_library("operational_space_bias", inputs, (q, v))
        a = self.forward_dynamics(q, v, constants_beside((q, v), self.nv), check=check)
        m, drift = array_module(a), [self.frame_acceleration(q, v, a, frame) for frame in names]
        Lam = self.operational_space_inertia(q, names, policy=policy, rcond=rcond, damping=damping)
        return -m.einsum("...ij,...j->...i", Lam, m.concatenate(drift, -1))

    def frame_acceleration(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        frame: str | Sequence[str],
        *,
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """J a + dJ/dt v: [w'; v'] of the frame's origin in world axes. -> (..., 6)

        With a = 0 the result is dJ/dt v.
        """
        return self._at_frames("frame_acceleration", dict(q=q, v=v, a=a), frame, out, dtype, check)

    def frame_imu(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        frame: str | Sequence[str],
        *,
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """[w; R* (p'' - g)]: angular velocity and specific force of a frame, in its own axes, as an
        ideal inertial measurement unit there gives them. -> (..., 6)

        `pp.IMU` adds a rate and noise.

        >>> import psiphi as pp
        >>> robot = pp.load("ur5").with_frame("imu", "tool0")
        >>> rest = [0.0] * 6
        >>> y = robot.frame_imu(robot.neutral(), rest, rest, "imu")
        >>> round(float((y[3:] ** 2).sum() ** 0.5), 9)
        9.81
        """
        return self._at_frames("frame_imu", dict(q=q, v=v, a=a), frame, out, dtype, check)

    def jacobian(
        self,
        q: Numbers,
        frame: str | Sequence[str],
        *,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """J = B* phi* H*: J v is `frame_velocity`, in world axes or frame axes. -> (..., 6, nv)"""
        return self._at_frames("jacobian", dict(q=q), frame, out, dtype, check, axes)

    def center_of_mass(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """c = sum m p / sum m over the moving bodies, in the world. -> (..., 3)"""
        self.require_mass("center_of_mass", "use frame_pose for positions")
        return self.call_quantity("center_of_mass", dict(q=q), out, dtype, check)

    def momentum(
        self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """h = E_0 phi M phi* H* v: [angular; linear] momentum of the moving bodies. -> (..., 6)

        About the world's origin, in world axes. Rotor inertia (`armature`) does not contribute.
        """
        return self.call_quantity("momentum", dict(q=q, v=v), out, dtype, check)

    def centroidal_momentum(
        self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """h = E_c phi M phi* H* v: [angular; linear] momentum about the centre of mass. -> (..., 6)

        In world axes.
        """
        self.require_mass("centroidal_momentum", "use momentum, about the world's origin")
        return self.call_quantity("centroidal_momentum", dict(q=q, v=v), out, dtype, check)

    def centroidal_momentum_matrix(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """A = E_c phi M phi* H*: A v is `centroidal_momentum`. -> (..., 6, nv)"""
        self.require_mass("centroidal_momentum_matrix", "use momentum, about the world's origin")
        return self._call_matrix("centroidal_momentum_matrix", q, out, dtype, check)
