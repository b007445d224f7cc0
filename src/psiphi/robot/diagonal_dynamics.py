"""`robot.diagonalised`: dynamics in quasi-velocities, in which the mass matrix is diagonal.

In nu it is the identity; in xi it is D.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Array, DType, Numbers, Out, Wrenches
from psiphi._util.errors import StateError
from psiphi._util.internal_names import public_names
from psiphi._util.text import nearest
from psiphi._util.validate import flag, is_foreign, is_lazy, nonnegative_number, real_array
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.functions import argument_checks
from psiphi.functions.arrays.array_dispatch import (
    array_module,
    beside,
    constants_beside,
    convert_like,
)
from psiphi.model.state_checks import check_states
from psiphi.robot.catalogue import mass_metric
from psiphi.robot.catalogue.quasi_velocities import PREFIXES, QUASI_QUANTITIES

if TYPE_CHECKING:
    from psiphi.robot.robot import Robot


CONFIGURATION_METHODS = (  # methods of the robot that do not depend on velocities
    *("neutral", "random", "normalize", "difference", "frame_pose", "center_of_mass"),
    *("operational_compliance", "operational_space_inertia"),
)


class UnknownMethodError(StateError, AttributeError):
    """An unknown method: a StateError, and an AttributeError for `hasattr`."""


class Diagonalised:
    """A robot in quasi-velocities nu or xi.

        nu' + C(q, nu) = eps         normalised: the kinetic energy is nu* nu / 2
        D xi' + C(q, xi) = kappa     unnormalised: the kinetic energy is xi* D(q) xi / 2

    The configuration q is that of the robot. nu is not the derivative of coordinates: v = rates(q,
    nu) is. Methods take leading batch axes, `dtype=` and `check=`; compiled ones also take `out=`.
    `unnormalised` is the same robot in xi. Methods of the robot that depend on q only (frame_pose,
    center_of_mass, random, ...) are available here, too.

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
        """The quantity of a method in the catalogue, for `robot.function` and `robot.flops`."""
        name = f"{PREFIXES[self.normalised]}_{verb}"
        if name not in QUASI_QUANTITIES:
            known = {x.split("_", 1)[1]: x for x in QUASI_QUANTITIES}
            raise StateError(f"no function {verb!r} of {self!r}", nearest(verb, known))
        return name

    def flops(self, verb: str) -> int:
        """Exact operation count of one evaluation of a method, such as "motion"."""
        return self.robot.flops(self.name(verb))

    # -- between v and nu, tau and eps

    def velocities(
        self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """nu = (D^1/2)* (I + H phi K)* v; unnormalised xi = (I + H phi K)* v. -> (..., nv)"""
        return self._call_quantity("velocities", dict(q=q, v=v), out, dtype, check)

    def rates(
        self, q: Numbers, nu: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """v = (I - H psi K)* (D^-1/2)* nu: the joint velocity of nu. -> (..., nv)"""
        return self._call_quantity("rates", dict(q=q, nu=nu), out, dtype, check)

    def forces(
        self, q: Numbers, tau: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """eps = D^-1/2 (I - H psi K) tau; unnormalised kappa = (I - H psi K) tau. -> (..., nv)

        eps* nu = tau* v.
        """
        return self._call_quantity("forces", dict(q=q, tau=tau), out, dtype, check)

    def torques(
        self, q: Numbers, eps: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """tau = (I + H phi K) D^1/2 eps: the inverse of `forces`. -> (..., nv)"""
        return self._call_quantity("torques", dict(q=q, eps=eps), out, dtype, check)

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
        return self._call_quantity(
            "acceleration", dict(q=q, nu=nu, nu_dot=nu_dot), out, dtype, check
        )

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
        """(nu_ref, d nu_ref/dt) of a reference velocity and acceleration. -> (..., nv) twice

        nu_ref = m* v_ref, d nu_ref/dt = m* a_ref + (dm/dt)* v_ref, with m and dm/dt at q, nu.
        """
        return self._call_quantity(
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
        """nu' = eps - C(q, nu); unnormalised xi' = D^-1 (kappa - C(q, xi)). -> (..., nv)

        tau and f_ext are those of `robot.forward_dynamics`.
        """
        return self._call_with_wrenches(
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
        """(v, nu'): the equations of motion in (q, nu). -> (..., nv), (..., nv)"""
        return self._call_with_wrenches(
            "motion", dict(q=q, nu=nu, tau=tau), f_ext, axes, out, dtype, check
        )

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
        """tau = (I + H phi K) D^1/2 (nu' + C(q, nu)). -> (..., nv)"""
        return self._call_with_wrenches(
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
        """C(q, nu): the forces eps that keep nu constant, gravity included. -> (..., nv)

        Without gravity nu* C = 0.
        """
        return self._call_with_wrenches("bias", dict(q=q, nu=nu), f_ext, axes, out, dtype, check)

    def gravity(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """C(q, 0) = -D^-1/2 H P g = D^-1/2 (I - H psi K) g(q). -> (..., nv)"""
        return self._call_quantity("gravity", dict(q=q), out, dtype, check)

    def coriolis(
        self, q: Numbers, nu: Numbers, *, dtype: DType = None, check: bool = False
    ) -> Array:
        """c of S1 (48), with C(q, nu) = c nu + D^-1/2 H psi b. -> (..., nv, nv)

        c is skew-symmetric; unnormalised c + c* = dD/dt.
        """
        if is_foreign(q) or is_foreign(nu):  # c x is linear in x: its Jacobian, in one kernel
            function = self.robot.unbound_function(self.name("coriolis_product"))
            x = constants_beside((q, nu), self.nv)
            values = (q, nu, x, *self.robot.parameter_arguments)
            return argument_checks.call_foreign(function.jacobian("x"), values, None, dtype, check)
        q_rows, nu_rows = (x[..., None, :] for x in self._read_state("coriolis", q, nu, check))
        unit = np.eye(self.nv, dtype=constants_beside((q_rows, nu_rows), 1).dtype)
        state = dict(q=q_rows, nu=nu_rows, x=unit)
        columns = self.with_sample_axis()._call_quantity(
            "coriolis_product", state, None, dtype, False
        )
        return np.swapaxes(columns, -1, -2)

    def mass_matrix(self, q: Numbers, *, dtype: DType = None, check: bool = False) -> Array:
        """The identity in nu; D(q), block diagonal, in xi. -> (..., nv, nv)"""
        _, D = self.robot.mass_matrix_factors(q, dtype=dtype, check=check)
        return (
            array_module(D).zeros_like(D) + convert_like(D, np.eye(self.nv))
            if self.normalised
            else D
        )

    def mass_matrix_inverse(self, q: Numbers, *, dtype: DType = None, check: bool = False) -> Array:
        """The identity in nu; D(q)^-1, block diagonal, in xi. -> (..., nv, nv)"""
        D = self.mass_matrix(q, dtype=dtype, check=check)
        if self.normalised:
            return D
        lazy: Any = D
        if is_lazy(D):  # the inverse of Dask takes one matrix
            return lazy.map_blocks(np.linalg.inv, dtype=D.dtype)
        return array_module(D).linalg.inv(D)

    def christoffel_symbols(self, q: Numbers) -> np.ndarray:
        """Gamma_k,ij = (d_i M_kj + d_j M_ki - d_k M_ij) / 2. -> (..., nv, nv, nv)"""
        return mass_metric.christoffel_symbols(self.robot, q)

    def riemann_symbols(self, q: Numbers) -> np.ndarray:
        """R_abcd of the metric M(q): they vanish where nu are rates of coordinates Q(q), with M =
        L* L and dQ = L dq (S1 section 1). -> (..., nv, nv, nv, nv)
        """
        return mass_metric.riemann_symbols(self.robot, q)

    def is_flat(self, q: Numbers, tolerance: float = 1e-9) -> np.ndarray:
        """Whether the Riemann symbols vanish at q: |R| <= tolerance times their terms. -> (...)"""
        return mass_metric.is_flat(self.robot, q, nonnegative_number("tolerance", tolerance))

    def link_accelerations(
        self, q: Numbers, nu: Numbers, nu_dot: Numbers, *, dtype: DType = None, check: bool = False
    ) -> Array:
        """alpha = phi* (H* dv/dt + a): [w'; v'] of each link's origin in link axes, minus gravity.

        -> (..., bodies, 6)
        """
        return self.robot.link_accelerations(
            q, *self._joint_motion(q, nu, nu_dot, dtype, check), dtype=dtype
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
        """f = phi (M alpha + b): the spatial force [moment; force] through each joint on its body.

        -> (..., bodies, 6)
        """
        v, a = self._joint_motion(q, nu, nu_dot, dtype, check)
        return self.robot.joint_forces(q, v, a, f_ext=f_ext, axes=axes, dtype=dtype)

    # -- energy and frames

    def kinetic_energy(
        self, q: Numbers, nu: Numbers, *, dtype: DType = None, check: bool = False
    ) -> Array:
        """nu* nu / 2; unnormalised xi* D xi / 2. -> (...)"""
        is_plain = type(q) is np.ndarray and type(nu) is np.ndarray
        if not is_plain and any(is_foreign(x) or is_lazy(x) for x in (q, nu)):
            return self.robot.kinetic_energy(
                q, self.rates(q, nu, dtype=dtype), dtype=dtype, check=check
            )
        at, speeds = self._read_state("kinetic_energy", q, nu, check)
        if not self.normalised:
            return self.robot.kinetic_energy(at, self.rates(at, speeds, dtype=dtype), dtype=dtype)
        speeds = np.asarray(speeds, dtype=dtype)
        energy = 0.5 * np.einsum("...i,...i->...", speeds, speeds)
        return np.broadcast_to(energy, np.broadcast_shapes(energy.shape, at.shape[:-1])).copy()[()]

    def energy(self, q: Numbers, nu: Numbers, *, dtype: DType = None, check: bool = False) -> Array:
        """Kinetic plus potential energy. -> (...)"""
        return self.kinetic_energy(q, nu, dtype=dtype, check=check) + self.robot.potential_energy(
            q, dtype=dtype, check=check
        )

    def at_energy(self, q: Numbers, nu: Numbers, energy: Numbers) -> Array:
        """nu scaled so that kinetic plus potential energy is `energy`. -> (..., nv)

        A projection that costs one square root, since the mass matrix is the identity. An energy
        that no motion can have raises an error; with arrays of other libraries the result is NaN.
        """
        foreign = any(map(is_foreign, (q, nu, energy)))
        if not foreign:
            q, nu = self._read_state("at_energy", q, nu, False)
        total: Any = energy
        if not is_foreign(energy):
            total = real_array(
                "at_energy: energy", energy, (), "give a number, or one for each batch element"
            )
        if foreign and np.ndim(total) and is_foreign(energy) != is_foreign(q):
            cause = f"at_energy: energy is a {type(energy).__name__}, and q a {type(q).__name__}"
            raise StateError(cause, "give one number, or an array (...) of the library of q")
        total = float(total) if foreign and not is_foreign(energy) else total
        kinetic = self.kinetic_energy(q, nu)
        total = total if foreign else beside(kinetic, total)
        target = total - self.robot.potential_energy(q)
        m, moves = array_module(kinetic), kinetic > 0.0
        if not foreign and not np.all((target >= 0.0) & (moves | (target == 0.0))):
            cause = (
                f"at_energy: the kinetic energy is {np.min(kinetic):.6g}, "
                f"and energy leaves {np.min(target):.6g} for it"
            )
            raise StateError(
                cause, "give at least the potential energy at q, and a nu that is not zero"
            )
        scale = (target / m.where(moves, kinetic, 1.0)) ** 0.5  # NaN for a negative target
        return m.where(moves | (target <= 0.0), scale, m.nan)[..., None] * nu

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
        """J = B* psi* H* (D^-1/2)*: J nu = [w; v] of the frame's origin. -> (..., 6, nv)

        In nu, J J* is the operational-space compliance.
        """
        return self._call_quantity(
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
        return self._call_quantity(
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
            q, *self._joint_motion(q, nu, nu_dot, dtype, check), frame, dtype=dtype
        )

    def integrate(self, q: Numbers, nu: Numbers) -> Array:
        """q after unit time at the constant joint velocity rates(q, nu)."""
        return self.robot.integrate(q, self.rates(q, nu))

    def bind_parameters(self, parameters: Numbers) -> Diagonalised:
        """(Internal use only) As `FreeRobot.bind_parameters`."""
        robot = self.robot.bind_parameters(parameters)  # type: ignore[attr-defined]
        return Diagonalised(robot, self.normalised)

    def with_sample_axis(self) -> Diagonalised:
        """(Internal use only) As `Robot.with_sample_axis`."""
        return Diagonalised(self.robot.with_sample_axis(), self.normalised)

    def _call_quantity(
        self,
        verb: str,
        state: dict[str, Any],
        out: Out,
        dtype: DType,
        check: bool,
        frames: tuple[str, ...] = (),
        axes: str = "world",
    ) -> Any:
        return self.robot.call_quantity(self.name(verb), state, out, dtype, check, frames, axes)

    def _call_with_wrenches(
        self,
        verb: str,
        state: dict[str, Any],
        f_ext: Wrenches | None,
        axes: str,
        out: Out,
        dtype: DType,
        check: bool,
    ) -> Any:
        name = self.name(verb)
        return self.robot.call_with_wrenches(name, state, f_ext, axes, out, dtype, check)

    def _joint_motion(
        self, q: Numbers, nu: Numbers, nu_dot: Numbers, dtype: DType, check: bool
    ) -> tuple[Array, Array]:
        """v and dv/dt."""
        a = self.acceleration(q, nu, nu_dot, dtype=dtype, check=check)
        return self.rates(q, nu, dtype=dtype), a

    def _read_state(self, verb: str, q: Numbers, nu: Numbers, check: bool) -> tuple[Any, ...]:
        """q and nu as arrays, checked for this robot."""
        name, velocity = f"{PREFIXES[self.normalised]}_{verb}", "nu" if self.normalised else "xi"
        inputs = (Argument("q", (self.nq,), "q"), Argument(velocity, (self.nv,), "v"))
        values = argument_checks.plain_arrays(self.robot, name, inputs, (q, nu))
        if flag("check", check):
            check_states(self.robot, name, inputs, values)
        return values

    def __getattr__(self, name: str) -> Any:
        if name in CONFIGURATION_METHODS:
            return getattr(self.robot, name)
        public = [x for x in dir(type(self)) if not x.startswith("_")]
        known = [*public_names(type(self), public), *CONFIGURATION_METHODS]
        raise UnknownMethodError(f"robot.diagonalised has no {name!r}", nearest(name, known))

    def __repr__(self) -> str:
        return f"<{self.robot.name} in {'nu' if self.normalised else 'xi'}>"
