"""`Robot`: a model with its dynamics functions.

Each method names its quantity and its arguments; `quantity_methods.py` finds and calls the compiled
function.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from psiphi._util.array_types import Array, DType, Numbers, Out, Wrenches
from psiphi._util.errors import StateError
from psiphi._util.internal_names import public_names
from psiphi._util.late_methods import with_late_methods
from psiphi._util.validate import is_lazy, on_gpu, one_of
from psiphi.algebra.expressions.operators import Operators
from psiphi.compiler.passes import is_large
from psiphi.functions import argument_checks, scalar_fast_path
from psiphi.functions.arrays.array_dispatch import array_module
from psiphi.robot import coordinate_methods as coordinates
from psiphi.robot.catalogue.catalogue import BY_METHOD, METHODS
from psiphi.robot.diagonal_dynamics import Diagonalised
from psiphi.robot.frame_methods import FrameMethods
from psiphi.robot.identification import regressor_methods as regressors
from psiphi.robot.parts import hybrid_dynamics, robot_part

if TYPE_CHECKING:
    from psiphi.model.contact.contact_state import ContactState
    from psiphi.model.contact.ground import Ground
    from psiphi.robot.free_robot import FreeRobot

_ndarray, _WORLD = np.ndarray, "world"


@with_late_methods
@dataclass(frozen=True, eq=False, repr=False)
class Robot(FrameMethods):
    """A model with its dynamics functions.

    Arrays have any leading batch axes; every function takes `out=`, `dtype=` and `check=`.

    `check=True` checks the numbers first and raises a `StateError` that names the joint. Without
    it, a NaN in the input gives NaN in that batch element only. Gravity acts; damping, friction,
    limits and mimic joints act only if an argument turns them on.
    """

    # forward dynamics of one state without NumPy's overhead, set by the first call
    _fast_forward_dynamics: ClassVar[Callable[..., Array]]

    if TYPE_CHECKING:  # implemented in later packages

        def free(self, *words: str, links: str | Sequence[str] | None = None) -> FreeRobot: ...

        @overload
        def step(
            self, q: Numbers, v: Numbers, tau: Numbers, dt: Numbers, method: str = "rk4"
        ) -> tuple[Array, Array]: ...
        @overload
        def step(
            self, q: Numbers, v: Numbers, tau: Numbers, dt: Numbers, *, contacts: Ground
        ) -> tuple[np.ndarray, np.ndarray, ContactState]: ...
        def step(
            self,
            q: Numbers,
            v: Numbers,
            tau: Numbers,
            dt: Numbers,
            method: str | None = None,
            *,
            contacts: Ground | None = None,
        ) -> tuple[Array, Array] | tuple[np.ndarray, np.ndarray, ContactState]: ...

        def on_ground(self, q: Numbers, ground: Ground | None = None) -> np.ndarray: ...

        def explain(self, contacts: Ground) -> str: ...

        def linearize(
            self,
            q: Numbers,
            v: Numbers,
            tau: Numbers,
            dt: Numbers | None = None,
            method: str = "rk4",
        ) -> tuple[Array, Array]: ...

        def html(
            self, path: str | os.PathLike[str], live: bool = False, **options: Any
        ) -> Path: ...

        def _repr_html_(self) -> str: ...

    # coordinate_methods.py
    fast_calls = coordinates.fast_calls
    if not TYPE_CHECKING:  # type checkers see the methods of `Model`, which these replace
        integrate = coordinates.integrate
        difference = coordinates.difference
        rate = coordinates.rate
        velocity_of = coordinates.velocity_of
        normalize = coordinates.normalize
        _apply_law = coordinates.apply_law

    # parts/
    hybrid_dynamics = hybrid_dynamics.hybrid_dynamics
    part = robot_part.part

    # identification/regressor_methods.py
    regressor = regressors.regressor
    regressor_blocks = regressors.regressor_blocks
    regressor_places = regressors.regressor_places
    wrench_regressor = regressors.wrench_regressor
    energy_regressor = regressors.energy_regressor
    excitation = regressors.excitation
    inertial_parameters = regressors.inertial_parameters
    base_parameters = regressors.base_parameters
    with_free_inertia = regressors.with_free_inertia

    def __dir__(self) -> list[str]:
        """The names, without those for internal use."""
        return public_names(type(self), super().__dir__())

    @cached_property
    def operators(self) -> Operators:
        """The spatial operators of this robot: s.H, s.phi, s.psi, s.M, s.B("tool"), s.mass, ..."""
        return Operators(self.model)

    @property
    def diagonalised(self) -> Diagonalised:
        """This robot in quasi-velocities nu, in which the mass matrix is the identity.

        `.unnormalised` uses xi, in which the mass matrix is D.
        """
        return Diagonalised(self)

    def forward_dynamics(
        self,
        q: Numbers,
        v: Numbers,
        tau: Numbers,
        f_ext: Wrenches | None = None,
        axes: str = _WORLD,
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
        method: str | None = None,
    ) -> Array:
        """a = M^-1 (tau - C v - g + J* f_ext)

        q (..., nq), v and tau (..., nv) -> a (..., nv). `f_ext` maps frame names to wrenches
        [moment; force] (..., 6) that act on the robot at the frame's origin, in world axes
        (`axes="frame"`: in frame axes). `method` selects an algorithm of the papers, "FD1" ..
        "FD4" or "kalman"; `forward_dynamics_details` also returns its intermediate results.

        >>> import psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> q = robot.neutral()
        >>> robot.forward_dynamics(q, [0] * 6, robot.gravity(q)).round(9) + 0.0
        array([0., 0., 0., 0., 0., 0.])
        """
        if (
            f_ext is None
            and out is None
            and dtype is None
            and check is False
            and method is None
            and axes is _WORLD
        ):
            try:
                # one state: the path of control loops
                if type(q) is _ndarray and q.ndim == 1:
                    a = self._fast_forward_dynamics(q, v, tau)
                    # pandas and xarray arguments give labelled results: take the general path
                    if type(a) is _ndarray:
                        return a
            except Exception:
                pass  # the first call, a list, or a wrong argument: the general path handles it
        if method is not None:
            a = self.call_with_wrenches(
                BY_METHOD[self._check_method(method)],
                dict(q=q, v=v, tau=tau),
                f_ext,
                axes,
                None,
                dtype,
                check,
            )
            return a if out is None else argument_checks.store_result("forward_dynamics", a, out)
        result = self.call_with_wrenches(
            "forward_dynamics", dict(q=q, v=v, tau=tau), f_ext, axes, out, dtype, check
        )
        known = "_fast_forward_dynamics" in self.__dict__
        if not known and self.freed is None and self.nv and np.ndim(result) == 1:
            function = self.unbound_function("forward_dynamics")
            self.__dict__["_fast_forward_dynamics"] = scalar_fast_path.checked_call(
                self.model, function.scalar_call(scalar_fast_path.no_fast_path)
            )
        return result

    def forward_dynamics_details(
        self,
        q: Numbers,
        v: Numbers,
        tau: Numbers,
        method: str = "FD2",
        *,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        dtype: DType = None,
        check: bool = False,
    ) -> dict[str, Array]:
        """All results of one of the papers' algorithms, by name.

        Every method: the joint accelerations `a` (..., nv).

        FD1 to FD4: the quantities of S0 (4.17)-(5.17). Over joints: `epsilon` (innovations), `nu` =
        D^-1 epsilon and, of FD1 and FD2, `T` = tau - C v - g. Over links (..., bodies, 6), at link
        origins in link axes: `z` and, except FD4, `lam` = psi* H* nu; of FD2 and FD3 `zeta` = phi*
        a. FD2, FD4: `link_accelerations` alpha, [w'; v'] of link origins in link axes, minus
        gravity.

        kalman: the quantities of S2 (8.2)-(8.13). Over joints (..., nv): `innovations` e- = tau -
        H z-, `residuals` e+ = D^-1 e-. Over links (..., bodies, 6), at link origins in link axes:
        `z_minus`, `z_plus` (predicted and filtered forces), `lambda_minus`, `lambda_plus`
        (accelerations outside and inside the joint), `forces` x = z- + P- lambda- = z+ + P+
        lambda+, and the input biases `eta`, `xi`. With the batch axes of q only: `P_minus`,
        `P_plus` (..., bodies, 6, 6) and `gains` (..., 6, nv), G(k) in the columns of joint k. As
        in S2, derivatives are those of body coordinates and gravity is a force: lambda- = [w';
        v' - w x v], whereas FD2 and FD4 return [w'; v' - g].
        """
        if self._check_method(method) == "kalman":
            name = "forward_dynamics_details"
            free = () if self.freed is None else (self._parameter_values(name),)
            argument_checks.require_numpy(name, q, v, tau, *free)
        state = dict(q=q, v=v, tau=tau)
        results = self.call_with_wrenches(method, state, f_ext, axes, None, dtype, check)
        names = [arg.name for arg in self.unbound_function(method).source.outputs]
        arrays = results if isinstance(results, tuple) else (results,)
        named = dict(zip(names, arrays, strict=True))
        return {**named, **self._kalman_gains(q, dtype)} if method == "kalman" else named

    def _check_method(self, method: object) -> str:
        return one_of("method", method, METHODS, "leave it out for the fastest")

    def _kalman_gains(self, q: Any, dtype: DType) -> dict[str, np.ndarray]:
        """P-, P+ and G of the Kalman form.

        The operators are block diagonal: one product gives a column for all bodies.
        """
        if self.embedding is not None:
            cause = f"{self.embedding.describe(self.name)}: P and G exist per cluster, not per body"
            raise StateError(cause, "use robot.operators.P.dense(q), which has a block per cluster")
        q = q if is_lazy(q) else np.asarray(q)
        kind = dtype or (q.dtype if q.dtype == np.float32 else np.float64)
        # row i: the i-th unit vector at every body
        columns = np.tile(np.eye(6, dtype=kind), len(self.joints))
        rates = np.zeros((6, self.nv), dtype=kind)  # row i: the i-th coordinate of every joint
        for joint in self.joints:
            rates[: joint.row.nv, joint.v_slice] = np.eye(joint.row.nv)
        before, after, gains = self.with_sample_axis().call_quantity(
            "kalman_gains", dict(q=q[..., None, :], X=columns, x=rates), None, dtype, False
        )
        G_columns = [gains[..., i, j.index, :] for j in self.joints for i in range(j.row.nv)]
        G = np.stack(G_columns, axis=-1) if G_columns else np.zeros((*q.shape[:-1], 6, 0), kind)
        return {
            "P_minus": np.moveaxis(before, -3, -1),
            "P_plus": np.moveaxis(after, -3, -1),
            "gains": G,
        }

    def inverse_dynamics(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        *,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """tau = M a + C v + g - J* f_ext

        q (..., nq), v and a (..., nv) -> tau (..., nv); `f_ext` as in `forward_dynamics`.
        """
        return self.call_with_wrenches(
            "inverse_dynamics", dict(q=q, v=v, a=a), f_ext, axes, out, dtype, check
        )

    def bias(
        self,
        q: Numbers,
        v: Numbers,
        *,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """C v + g - J* f_ext: the torques that keep the velocity v constant. -> (..., nv)"""
        return self.call_with_wrenches("bias", dict(q=q, v=v), f_ext, axes, out, dtype, check)

    def gravity(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """g(q): the torques that hold the robot at rest. -> (..., nv)"""
        return self.call_quantity("gravity", dict(q=q), out, dtype, check)

    def coriolis(
        self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """C = H phi (M phi* ((V x) H* + dH*/dt) + B_V phi* H*). -> (..., nv, nv)

        C v = bias - gravity, and dM/dt - 2 C is skew-symmetric.
        """
        if not is_large(self):
            return self.call_quantity("coriolis", dict(q=q, v=v), out, dtype, check)
        argument_checks.require_numpy("coriolis", q, v)
        q, v = np.asarray(q)[..., None, :], np.asarray(v)[..., None, :]
        columns = self.call_quantity(
            "coriolis_product", dict(q=q, v=v, x=np.eye(self.nv)), None, dtype, check
        )
        return np.swapaxes(columns, -1, -2)

    def coriolis_product(
        self,
        q: Numbers,
        v: Numbers,
        x: Numbers,
        *,
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """C(q, v) x in O(N), without forming the matrix. -> (..., nv)"""
        return self.call_quantity("coriolis_product", dict(q=q, v=v, x=x), out, dtype, check)

    def link_accelerations(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        *,
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """alpha = phi* (H* dv/dt + a): [w'; v'] of each link's origin in link axes, minus gravity.

        -> (..., bodies, 6)
        """
        return self.call_quantity("link_accelerations", dict(q=q, v=v, a=a), out, dtype, check)

    def joint_forces(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        *,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """f = phi (M alpha + b): the spatial force [moment; force] through each joint on its body.

        At the link's origin in link axes; H f is the joint torque. -> (..., bodies, 6)
        """
        return self.call_with_wrenches(
            "joint_forces", dict(q=q, v=v, a=a), f_ext, axes, out, dtype, check
        )

    def joint_torques(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        *,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        out: Out = None,
        dtype: DType = None,
        check: bool = False,
    ) -> Array:
        """H f = H phi (M alpha + b): the torques and forces that joints pass to their links along
        their axes. -> (..., nv)

        `inverse_dynamics` less what accelerates the rotors; joint friction, springs and stops are
        part of it. `pp.JointTorque` is a sensor of it.
        """
        return self.call_with_wrenches(
            "joint_torques", dict(q=q, v=v, a=a), f_ext, axes, out, dtype, check
        )

    def mass_log_det(self, q: Numbers, *, dtype: DType = None, check: bool = False) -> Array:
        """log det M = sum log det D(k). -> (...)

        Computed from the pivots of D; `function("mass_pivots")` has their derivatives.
        """
        if not self.joints and not on_gpu(q):
            return np.zeros(np.asarray(q).shape[:-1])
        d = self.call_quantity("mass_pivots", dict(q=q), None, dtype, check)
        with np.errstate(divide="ignore", invalid="ignore"):
            return array_module(d).log(d).sum(-1)

    def mass_matrix(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """M = H phi M phi* H* (+ rotor inertia). -> (..., nv, nv)"""
        return self._call_matrix("mass_matrix", q, out, dtype, check)

    def mass_matrix_inverse(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """M^-1 = (I - H psi K)* D^-1 (I - H psi K). -> (..., nv, nv)"""
        return self._call_matrix("mass_matrix_inverse", q, out, dtype, check)

    def mass_matrix_factors(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> tuple[Array, Array]:
        """(L, D) with M = L D L*, L = I + H phi K, D block diagonal. -> (..., nv, nv) twice

        D has one block per joint. Bodies are numbered base to tip, so L is upper triangular: entry
        (k, j) is zero unless k is an ancestor of j.
        """
        return self._call_matrix("mass_matrix_factors", q, out, dtype, check)

    def mass_product(
        self, q: Numbers, a: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """M a in O(N), without forming the matrix. -> (..., nv)"""
        return self.call_quantity("mass_product", dict(q=q, a=a), out, dtype, check)

    def factor_product(
        self, q: Numbers, x: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> tuple[Array, Array]:
        """(L x, D x) with M = L D L*, in O(N), without forming the matrices. -> (..., nv) twice"""
        return self.call_quantity("factor_product", dict(q=q, x=x), out, dtype, check)

    def mass_solve(
        self, q: Numbers, tau: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """M^-1 tau in O(N), without forming the matrix. -> (..., nv)"""
        return self.call_quantity("mass_solve", dict(q=q, tau=tau), out, dtype, check)

    def energy(
        self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """v* M v / 2 - sum m g.c: kinetic plus potential energy. -> (...)

        Zero at rest with all mass at the world's origin.
        """
        return self.call_quantity("energy", dict(q=q, v=v), out, dtype, check)

    def kinetic_energy(
        self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """v* M v / 2. -> (...)"""
        return self.call_quantity("kinetic_energy", dict(q=q, v=v), out, dtype, check)

    def potential_energy(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """- sum m g.c. -> (...)"""
        return self.call_quantity("potential_energy", dict(q=q), out, dtype, check)
