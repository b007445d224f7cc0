"""`robot.diagonalised`: the robot's verbs in the velocities nu, in which the mass matrix is the identity; in xi, it is D."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Array, DType, Numbers, Out, Wrenches
from psiphi._util.errors import StateError
from psiphi._util.text import nearest
from psiphi._util.validate import flag, is_foreign, real_array
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions import argument_checks
from psiphi.functions.arrays.array_dispatch import constant, full, mathematics
from psiphi.model.state_checks import check_states
from psiphi.robot.catalogue.quasi_velocities import DIAGONAL, NAMES

if TYPE_CHECKING:
    from psiphi.robot.robot import Robot


OF_PLACES = (  # what velocities have no part in
    *("neutral", "random", "normalize", "difference", "frame_pose", "center_of_mass"),
    *("operational_compliance", "operational_space_inertia"),
)


class VerbError(StateError, AttributeError):
    """A verb that is not there: a StateError, and what `hasattr` expects."""


class Diagonalised:
    """A robot in quasi-velocities: nu (normalised: kinetic energy nu* nu / 2) or xi (unnormalised: xi* D(q) xi / 2).

        nu' + C(q, nu) = eps         D xi' + C(q, xi) = kappa

    Configurations q stay what they are; nu is no derivative of coordinates, v = rates(q, nu) is. Everything takes leading
    batch axes, `dtype=` and `check=`, and what is compiled `out=`, as the robot does. `unnormalised` is the same robot in
    xi. What speaks of q alone (frame_pose, center_of_mass, random, ...) is the robot's, and may be asked here too.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> q, v = robot.random(seed=0), np.ones(6)
    >>> d = robot.diagonalised
    >>> nu = d.velocities(q, v)
    >>> bool(np.isclose(0.5 * nu @ nu, robot.kinetic_energy(q, v)))
    True
    """

    def __init__(self, robot: Robot, normalised: bool = True):
        self.robot, self.normalised = robot, normalised

    @cached_property
    def unnormalised(self) -> Diagonalised:
        """The same robot in xi = D^-1/2* nu: no square roots, D on the left."""
        return Diagonalised(self.robot, False) if self.normalised else self

    @property
    def nq(self) -> int:
        return self.robot.nq

    @property
    def nv(self) -> int:
        return self.robot.nv

    def name(self, verb: str) -> str:
        """The quantity behind a verb: robot.function(d.name("forward_dynamics")), robot.flops(...)."""
        name = f"{NAMES[self.normalised]}_{verb}"
        if name not in DIAGONAL:
            raise StateError(
                f"no function {verb!r} in {self!r}",
                nearest(verb, [x.split("_", 1)[1] for x in DIAGONAL]),
            )
        return name

    def flops(self, verb: str) -> int:
        """Exact operation count of one evaluation: d.flops("motion") is what one step of a simulation costs."""
        return self.robot.flops(self.name(verb))

    # -- between v and nu, tau and eps

    def velocities(
        self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """nu = (D^1/2)* (I + H phi K)* v; unnormalised xi = (I + H phi K)* v. -> (..., nv)"""
        return self._call("velocities", dict(q=q, v=v), out, dtype, check)

    def rates(
        self, q: Numbers, nu: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """v = (I - H psi K)* (D^-1/2)* nu: what `robot.integrate` takes. -> (..., nv)"""
        return self._call("rates", dict(q=q, nu=nu), out, dtype, check)

    def forces(
        self, q: Numbers, tau: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """eps = D^-1/2 (I - H psi K) tau; unnormalised kappa = (I - H psi K) tau: eps* nu = tau* v. -> (..., nv)"""
        return self._call("forces", dict(q=q, tau=tau), out, dtype, check)

    def torques(
        self, q: Numbers, eps: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """tau = (I + H phi K) D^1/2 eps: the undoing of `forces`. -> (..., nv)"""
        return self._call("torques", dict(q=q, eps=eps), out, dtype, check)

    def acceleration(
        self,
        q: Numbers,
        nu: Numbers,
        nu_dot: Numbers,
        *,
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """dv/dt of a motion with nu and d nu/dt. -> (..., nv)"""
        return self._call("acceleration", dict(q=q, nu=nu, nu_dot=nu_dot), out, dtype, check)

    def reference(
        self,
        q: Numbers,
        nu: Numbers,
        v_ref: Numbers,
        a_ref: Numbers,
        *,
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """(nu_ref, d nu_ref/dt) for a joint velocity and acceleration wanted at the robot's own q, moving with nu:
        nu_ref = m* v_ref, d nu_ref/dt = m* a_ref + (dm/dt)* v_ref. -> (..., nv) twice"""
        return self._call(
            "reference", dict(q=q, nu=nu, v_ref=v_ref, v_ref_dot=a_ref), out, dtype, check
        )

    # -- dynamics

    def forward_dynamics(
        self,
        q: Numbers,
        nu: Numbers,
        tau: Numbers,
        *,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """nu' = eps - C(q, nu); unnormalised xi' = D^-1 (kappa - C(q, xi)); tau and f_ext as the robot's. -> (..., nv)"""
        return self._loaded(
            "forward_dynamics", dict(q=q, nu=nu, tau=tau), f_ext, axes, out, dtype, check
        )

    def motion(
        self,
        q: Numbers,
        nu: Numbers,
        tau: Numbers,
        *,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> tuple[Array, Array]:
        """(v, nu') in one go: everything a simulation in (q, nu) asks for. -> (..., nv), (..., nv)"""
        return self._loaded("motion", dict(q=q, nu=nu, tau=tau), f_ext, axes, out, dtype, check)

    def inverse_dynamics(
        self,
        q: Numbers,
        nu: Numbers,
        nu_dot: Numbers,
        *,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """tau of the motion: tau = (I + H phi K) D^1/2 (nu' + C(q, nu)). -> (..., nv)"""
        return self._loaded(
            "inverse_dynamics", dict(q=q, nu=nu, nu_dot=nu_dot), f_ext, axes, out, dtype, check
        )

    def bias(
        self,
        q: Numbers,
        nu: Numbers,
        *,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """C(q, nu): the forces eps that keep nu constant, gravity included. Without gravity nu* C = 0. -> (..., nv)"""
        return self._loaded("bias", dict(q=q, nu=nu), f_ext, axes, out, dtype, check)

    def gravity(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """C(q, 0) = -D^-1/2 H P g = D^-1/2 (I - H psi K) g(q). -> (..., nv)"""
        return self._call("gravity", dict(q=q), out, dtype, check)

    def coriolis(
        self, q: Numbers, nu: Numbers, *, dtype: DType = None, check: bool = False
    ) -> Array:
        """c of S1 (48), with C(q, nu) = c nu + D^-1/2 H psi b: skew; unnormalised c + c* = dD/dt. -> (..., nv, nv)"""
        if is_foreign(q) or is_foreign(nu):  # linear in x: its derivative, in one kernel
            function, x = (
                self.robot.function(self.name("coriolis_product")),
                full(q if is_foreign(q) else nu, self.nv, 0.0),
            )
            return function.jacobian("x")(q, nu, x, *self.robot.parameter_arguments)
        each = [value[..., None, :] for value in self._state("coriolis", q, nu, check)]
        state = dict(q=each[0], nu=each[1], x=np.eye(self.nv))
        columns = self.with_sample_axis()._call("coriolis_product", state, None, dtype, False)
        return np.swapaxes(columns, -1, -2)

    def mass_matrix(self, q: Numbers, *, dtype: DType = None, check: bool = False) -> Array:
        """The identity in nu; D(q), block diagonal, in xi. -> (..., nv, nv)"""
        _, D = self.robot.mass_matrix_factors(q, dtype=dtype, check=check)
        return mathematics(D).zeros_like(D) + constant(D, np.eye(self.nv)) if self.normalised else D

    def mass_matrix_inverse(self, q: Numbers, *, dtype: DType = None, check: bool = False) -> Array:
        """The identity in nu; D(q)^-1, block diagonal, in xi. -> (..., nv, nv)"""
        D = self.mass_matrix(q, dtype=dtype, check=check)
        return D if self.normalised else mathematics(D).linalg.inv(D)

    def link_accelerations(
        self, q: Numbers, nu: Numbers, nu_dot: Numbers, *, dtype: DType = None, check: bool = False
    ) -> Array:
        """alpha = phi* (H* dv/dt + a): [w'; v'] of each link's origin in link axes, less gravity. -> (..., bodies, 6)"""
        return self.robot.link_accelerations(
            q, *self._motion(q, nu, nu_dot, dtype, check), dtype=dtype
        )

    def joint_forces(
        self,
        q: Numbers,
        nu: Numbers,
        nu_dot: Numbers,
        *,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """f = phi (M alpha + b): the spatial force [moment; force] through each joint on its body. -> (..., bodies, 6)"""
        v, a = self._motion(q, nu, nu_dot, dtype, check)
        return self.robot.joint_forces(q, v, a, f_ext=f_ext, axes=axes, dtype=dtype)

    # -- energy and frames

    def kinetic_energy(
        self, q: Numbers, nu: Numbers, *, dtype: DType = None, check: bool = False
    ) -> Array:
        """nu* nu / 2; unnormalised xi* D xi / 2. -> (...)"""
        if is_foreign(q) or is_foreign(nu):
            return self.robot.kinetic_energy(
                q, self.rates(q, nu, dtype=dtype), dtype=dtype, check=check
            )
        at, speeds = self._state("kinetic_energy", q, nu, check)
        if not self.normalised:
            return self.robot.kinetic_energy(at, self.rates(at, speeds, dtype=dtype), dtype=dtype)
        speeds = np.asarray(speeds, dtype=dtype)
        half = 0.5 * np.einsum("...i,...i->...", speeds, speeds)
        return np.broadcast_to(half, np.broadcast_shapes(half.shape, at.shape[:-1])).copy()[()]

    def energy(self, q: Numbers, nu: Numbers, *, dtype: DType = None, check: bool = False) -> Array:
        """Kinetic and potential energy together. -> (...)"""
        return self.kinetic_energy(q, nu, dtype=dtype, check=check) + self.robot.potential_energy(
            q, dtype=dtype, check=check
        )

    def at_energy(self, q: Numbers, nu: Numbers, energy: Numbers) -> Array:
        """nu scaled so that kinetic and potential energy together are `energy`: a projection that costs one square root,
        since the mass matrix is the identity. What no motion can have is refused; of arrays of other libraries it is NaN.
        -> (..., nv)"""
        theirs = any(map(is_foreign, (q, nu, energy)))
        if not theirs:
            q, nu = self._state("at_energy", q, nu, False)
        wanted: Any = energy
        if not is_foreign(energy):
            wanted = real_array(
                "at_energy: energy", energy, (), "give a number, or one for each batch element"
            )
        if theirs and np.ndim(wanted) and is_foreign(energy) != is_foreign(q):
            cause = f"at_energy: energy is a {type(energy).__name__}, and q a {type(q).__name__}"
            raise StateError(cause, "give one number, or an array (...) of the library of q")
        wanted = float(wanted) if theirs and not is_foreign(energy) else wanted
        kinetic, left = self.kinetic_energy(q, nu), wanted - self.robot.potential_energy(q)
        m, moves = mathematics(kinetic), kinetic > 0.0
        if not theirs and not np.all((left >= 0.0) & (moves | (left == 0.0))):
            cause = f"at_energy: {np.min(left):.6g} is left for motion with kinetic energy {np.min(kinetic):.6g}"
            raise StateError(
                cause, "ask for an energy this configuration can have, of a robot that moves"
            )
        scale = (
            left / m.where(moves, kinetic, 1.0)
        ) ** 0.5  # of less than nothing there is no root
        return m.where(moves | (left <= 0.0), scale, m.nan)[..., None] * nu

    def potential_energy(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """- sum m g.c. -> (...)"""
        return self.robot.potential_energy(q, out=out, dtype=dtype, check=check)

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
        """B* psi* H* (D^-1/2)*: [w; v] of the frame's origin per nu. In nu, J J* is the operational-space compliance.
        -> (..., 6, nv)"""
        return self._call(
            "jacobian", dict(q=q), out, dtype, check, (self.robot.frame(frame).name,), axes
        )

    def frame_velocity(
        self,
        q: Numbers,
        nu: Numbers,
        frame: str,
        *,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """V = [w; v] of the frame's origin. -> (..., 6)"""
        return self._call(
            "frame_velocity",
            dict(q=q, nu=nu),
            out,
            dtype,
            check,
            (self.robot.frame(frame).name,),
            axes,
        )

    def frame_acceleration(
        self,
        q: Numbers,
        nu: Numbers,
        nu_dot: Numbers,
        frame: str,
        *,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """J dv/dt + dJ/dt v: [w'; v'] of the frame's origin in world axes. -> (..., 6)"""
        return self.robot.frame_acceleration(
            q, *self._motion(q, nu, nu_dot, dtype, check), frame, dtype=dtype
        )

    def integrate(self, q: Numbers, nu: Numbers) -> Array:
        """q after unit time at the constant joint velocity that nu is at q."""
        return self.robot.integrate(q, self.rates(q, nu))

    def bind_parameters(self, parameters: Any) -> Diagonalised:
        return Diagonalised(self.robot.bind_parameters(parameters), self.normalised)  # type: ignore[attr-defined]

    def with_sample_axis(self) -> Diagonalised:
        return Diagonalised(self.robot.with_sample_axis(), self.normalised)

    def _call(
        self,
        verb: str,
        state: dict[str, Any],
        out,
        dtype,
        check,
        frames: tuple[str, ...] = (),
        axes: str = "world",
    ):
        return self.robot._call(self.name(verb), state, out, dtype, check, frames, axes)

    def _loaded(self, verb: str, state: dict[str, Any], f_ext, axes: str, out, dtype, check):
        return self.robot._loaded(self.name(verb), state, f_ext, axes, out, dtype, check)

    def _motion(self, q, nu, nu_dot, dtype, check) -> tuple[np.ndarray, np.ndarray]:
        """v and dv/dt."""
        return self.rates(q, nu, dtype=dtype), self.acceleration(
            q, nu, nu_dot, dtype=dtype, check=check
        )

    def _state(self, verb: str, q, nu, check) -> tuple[Any, ...]:
        """q and nu as arrays of this robot."""
        name, velocity = f"{NAMES[self.normalised]}_{verb}", "nu" if self.normalised else "xi"
        inputs = (Argument("q", (self.nq,), "q"), Argument(velocity, (self.nv,), "v"))
        values = argument_checks.plain(self.robot, name, inputs, (q, nu))
        if flag("check", check):
            check_states(self.robot, name, inputs, values)
        return values

    def __getattr__(self, name: str) -> Any:
        if name in OF_PLACES:
            return getattr(self.robot, name)
        known = [x for x in (*dir(type(self)), *OF_PLACES) if not x.startswith("_")]
        raise VerbError(f"robot.diagonalised has no {name!r}", nearest(name, known))

    def __repr__(self) -> str:
        return f"<{self.robot.name} in {'nu' if self.normalised else 'xi'}>"
