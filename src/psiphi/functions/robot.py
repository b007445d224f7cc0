"""The robot at the door: a model that answers. Its methods pick a gufunc, call it, and turn its errors into words."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from psiphi.arguments import Array, DType, Numbers, Out, Wrenches, flag, is_foreign
from psiphi.catalogue.dynamics import BY_METHOD, METHODS, PARTS, catalogued
from psiphi.compiler.passes import is_large
from psiphi.compiler.source import Function
from psiphi.errors import Error, SingularError, StateError
from psiphi.functions import by_columns, guard, operational
from psiphi.functions import check as checked
from psiphi.functions.diagonalised import Diagonalised
from psiphi.functions.differentiable import Differentiable
from psiphi.functions.identified import Identified
from psiphi.model.states import check_states
from psiphi.operators import Operators
from psiphi.optional import need
from psiphi.runtime.lazy_arrays import refuse_lazy
from psiphi.spatial.choices import on_tape
from psiphi.sweeps.interpreter import interpret, interpret_on_tape
from psiphi.sweeps.program import PARAMETERS, Argument
from psiphi.wording import shown

if TYPE_CHECKING:
    from psiphi.functions.free import FreeRobot

_ndarray, _WORLD = np.ndarray, "world"


def _traced(inputs: tuple[Argument, ...], values: tuple[Any, ...]) -> bool:
    """Whether these are arrays of one state, tape expressions among their numbers."""
    shaped = all(np.shape(value) == arg.shape for arg, value in zip(inputs, values, strict=True))
    return shaped and any(on_tape(x) for value in values for x in np.ravel(value))


def _stepping() -> Any:
    """Integrators stand downstream, with what drives a robot; a step of one is asked of the robot."""
    return need("psiphi.rollouts.stepping", "a step", "psiphi")


@dataclass(frozen=True, eq=False, repr=False)
class Robot(Identified):
    """A model with its dynamics. Arrays have any leading batch axes; every function takes `out=`, `dtype=` and `check=`.

    `check=True` looks at the numbers first and raises a `StateError` that names the joint; without it, NaN in gives NaN
    out, in that batch element alone. Gravity acts; damping, friction, limits and mimic do not, unless an argument says so.
    """

    _one_step: ClassVar[Any]  # forward dynamics of one state without NumPy's overhead, after the first call

    @cached_property
    def _functions(self) -> dict[tuple, Differentiable]:
        return {}

    @cached_property
    def operators(self) -> Operators:
        """The spatial operators of this robot: s.H, s.phi, s.psi, s.M, s.P, s.D, s.G, s.K, s.B("tool"), s.mass, ..."""
        return Operators(self._model)

    def _repr_html_(self) -> str:
        """What a notebook shows: a picture, and a row a joint."""
        return need("psiphi.viewer.cards", "a picture", "psiphi").robot(self)

    def html(self, path: str | os.PathLike[str], live: bool = False, **options: Any) -> Path:
        """Write one page that opens in any browser; with `live` the robot runs in it, and can be pulled (`pp.viewer.html`)."""
        return need("psiphi.viewer", "the viewer", "psiphi").html(self, path, live, **options)

    @property
    def diagonalised(self) -> Diagonalised:
        """This robot in the velocities nu, where the mass matrix is the identity (`.unnormalised`: xi, where it is D)."""
        return Diagonalised(self)

    def function(self, name: str, frames: tuple[str, ...] = (), axes: str = "world") -> Differentiable:
        """The compiled quantity `name` of the catalogue, to be called, with its derivatives; its `.ufunc` is a NumPy gufunc."""
        try:
            return self._functions[name, frames, axes]
        except (KeyError, TypeError):
            request = guard.request(self, name, frames, axes)
        key = request.name, request.frames, request.axes
        return self._functions.setdefault(key, catalogued(self._model, request, kind=Differentiable))

    def free(self, *words: str, links: str | Sequence[str] | None = None) -> FreeRobot:
        """This robot with some of its numbers as inputs: `parameters` (..., n) of every function, one set or one an element.

        `words` are "inertia" (ten numbers a body, as in `regressor`), "mass", "com", "armature", "damping", "stiffness" and
        "offsets" (where joints are); `links` names or patterns, all moving ones when left out. Nothing is compiled again for
        other numbers.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.load("ur5")
        >>> light = robot.free("inertia", links="wrist_3_link")
        >>> q, v, tau = robot.random(seed=0), np.zeros(6), np.zeros(6)
        >>> heavier = light.parameters() * np.linspace(1.0, 2.0, 5)[:, None]
        >>> a = light.forward_dynamics(q, v, tau, parameters=heavier)
        >>> a.shape, bool(np.allclose(a[0], robot.forward_dynamics(q, v, tau)))
        ((5, 6), True)
        """
        return need("psiphi.functions.free", "parameters", "psiphi").free(self, words, links)

    def symbolic(self, name: str, frames: Any = (), axes: str = "world", *, parameters: bool = False) -> Any:
        """The quantity `name` of the catalogue as SymPy expressions, with shared parts or written out (extra `symbolic`).

        The answer has `shared` and `results`, as `sympy.cse` gives them, `matrix` (written out), `textbook()` and `latex()`;
        `parameters=True` makes masses, centres, inertias, lengths and gravity symbols, m1, c1x, I1zz, l1, g.

        >>> import psiphi as pp
        >>> arm = pp.from_dh([pp.DH(mass=1.0, com=(0.5, 0, 0)), pp.DH(a=1.0, mass=1.0, com=(0.5, 0, 0))])
        >>> arm.symbolic("mass_matrix", parameters=True).textbook()[0, 1]
        c2x**2*m2 + c2x*l1*m2*cos(q2)
        """
        return self.function(name, frames, axes).symbolic(parameters)

    def to_casadi(self, name: str, frames: Any = (), axes: str = "world") -> Any:
        """The quantity `name` of the catalogue as a `casadi.Function` on SX, with CasADi's exact derivatives (extra `casadi`).

        Vectors are columns; CasADi's derivatives by q are by its nq numbers, quaternions among them.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> f = robot.to_casadi("gravity")
        >>> bool(np.allclose(np.array(f(np.ones(6))).ravel(), robot.gravity(np.ones(6))))
        True
        """
        return self.function(name, frames, axes).to_casadi()

    def flops(self, name: str, **options: Any) -> int:
        """Exact operation count (mul, add, div, sqrt) of one evaluation, sines and cosines apart."""
        return self.function(name, **options).count.flops

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

        q (..., nq), v and tau (..., nv) -> a (..., nv). `f_ext` maps frame names to wrenches [moment; force] (..., 6) that
        act on the robot at the frame's origin, in world axes (`axes="frame"`: in the frame's own). `method` runs the papers'
        own algorithms, "FD1" .. "FD4" and "kalman"; `forward_dynamics_details` returns all they compute.

        >>> import psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> robot.forward_dynamics(robot.neutral(), [0] * 6, robot.gravity(robot.neutral())).round(9) + 0.0
        array([0., 0., 0., 0., 0., 0.])
        """
        if f_ext is None and out is None and dtype is None and check is False and method is None and axes is _WORLD:
            try:
                if type(q) is _ndarray and q.ndim == 1:  # one state: control loops come here a thousand times a second
                    a = self._one_step(q, v, tau)
                    if type(a) is _ndarray:  # a table would have lined its labels up
                        return a
            except Exception:
                pass  # a first call, a list, or a mistake: the door below finds the words
        if method is not None:
            a = self._loaded(BY_METHOD[self._method(method)], dict(q=q, v=v, tau=tau), f_ext, axes, None, dtype, check)
            return a if out is None else guard.put("forward_dynamics", a, out)
        result = self._loaded("forward_dynamics", dict(q=q, v=v, tau=tau), f_ext, axes, out, dtype, check)
        if self.nv and "_one_step" not in self.__dict__ and self.freed is None:
            self.__dict__["_one_step"] = guard.upright(self._model, self.function("forward_dynamics").single())
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
        """All that one of the papers' algorithms computes, by name: the joint accelerations `a` (..., nv), and what they need.

        FD2, FD4: `link_accelerations` (..., bodies, 6), [w'; v'] of link origins in link axes, less gravity.

        kalman: what S2 (8.2)-(8.13) defines. Over joints (..., nv): `innovations` e- = tau - H z-, `residuals` e+ = D^-1 e-.
        Over links (..., bodies, 6), at link origins in link axes: `z_minus`, `z_plus` (forces predicted and filtered),
        `lambda_minus`, `lambda_plus` (accelerations outside and inside the joint), `forces` x = z- + P- lambda- = z+ + P+
        lambda+, and the biases `eta`, `xi` that were put in. With the batch axes of q alone: `P_minus`, `P_plus` (..., bodies,
        6, 6) and `gains` (..., 6, nv), G(k) in the columns of joint k. As in S2 derivatives are those of body coordinates and
        gravity is a force: lambda- = [w'; v' - w x v], where FD2 and FD4 give [w'; v' - g].
        """
        if self._method(method) == "kalman":
            guard.on_host("forward_dynamics_details", q, v, tau)
        state = dict(q=q, v=v, tau=tau)
        results = self._loaded(method, state, f_ext, axes, None, dtype, check)
        names = [arg.name for arg in self.function(method).source.outputs]
        found = dict(zip(names, results if isinstance(results, tuple) else (results,), strict=True))
        return {**found, **self._gains(q, dtype)} if method == "kalman" else found

    def _method(self, method) -> str:
        if isinstance(method, str) and method in METHODS:
            return method
        raise StateError(f"method is {shown(method)}, expected one of {', '.join(METHODS)}", "leave it out for the fastest")

    def _gains(self, q, dtype) -> dict[str, np.ndarray]:
        """P-, P+ and G of the Kalman form: each column of all bodies at once, since the operators are block diagonal."""
        if self.embedding is not None:
            cause = f"{self.embedding.words(self.name)}: its P and G are of clusters, not of single bodies"
            raise StateError(cause, "robot.operators.P.dense(q) has them, cluster by cluster")
        q = np.asarray(q)
        kind = dtype or (q.dtype if q.dtype == np.float32 else np.float64)
        columns = np.tile(np.eye(6, dtype=kind), len(self.joints))  # row i: the i-th unit vector at every body
        own = np.zeros((6, self.nv), dtype=kind)  # row i: the i-th coordinate of every joint
        for joint in self.joints:
            own[: joint.row.nv, joint.v_slice] = np.eye(joint.row.nv)
        before, after, gains = self._over_samples()._call(
            "kalman_gains", dict(q=q[..., None, :], X=columns, x=own), None, dtype, False
        )
        place = [(j.row.nv, j.index) for j in self.joints]
        picked = [gains[..., i, k, :] for n, k in place for i in range(n)]
        G = np.stack(picked, axis=-1) if picked else np.zeros((*q.shape[:-1], 6, 0), kind)
        return {"P_minus": np.moveaxis(before, -3, -1), "P_plus": np.moveaxis(after, -3, -1), "gains": G}

    def step(self, q: Numbers, v: Numbers, tau: Numbers, dt: Numbers, method: str = "rk4") -> tuple[Array, Array]:
        """(q, v) after one step of dt under the torque tau, which is held: compiled, one call.

        q (..., nq), v and tau (..., nv), dt in seconds, one or one an element; `method` is "rk4", "lie", "implicit" or "euler"
        as in `pp.simulate`. float32 in, float32 out.

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> q, v = robot.step(robot.neutral(), np.zeros(6), np.zeros(6), 1e-3)
        >>> q.shape, v.shape
        ((6,), (6,))
        """
        try:
            return self._steppers[method](q, v, tau, dt)
        except Exception as error:  # a first call, a list, a batch, or a mistake: which is found out once more, slowly
            if isinstance(error, Error):
                raise
        return self._steppers[_stepping().checked(method)].careful(q, v, tau, dt)

    def linearize(
        self, q: Numbers, v: Numbers, tau: Numbers, dt: Numbers | None = None, method: str = "rk4"
    ) -> tuple[Array, Array]:
        """(A, B): how small changes x = (δ, δv) of the state grow, dx/dt = A x + B δtau; with dt, x after one step by `method`.

        δ is a tangent vector, as v is (`integrate(q, δ)` is the changed q): A (..., 2 nv, 2 nv), B (..., 2 nv, nv).

        >>> import numpy as np, psiphi as pp
        >>> robot = pp.robots.puma560()
        >>> A, B = robot.linearize(robot.neutral(), np.zeros(6), robot.gravity(robot.neutral()))
        >>> A.shape, B.shape
        ((12, 12), (12, 6))
        """
        return need("psiphi.rollouts.linearising", "a linearisation", "psiphi").linearize(self, q, v, tau, dt, method)

    @cached_property
    def _steppers(self) -> Any:
        return _stepping().Steppers(self)

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
        return self._loaded("inverse_dynamics", dict(q=q, v=v, a=a), f_ext, axes, out, dtype, check)

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
        """C v + g - J* f_ext: the torques that hold the velocity v. -> (..., nv)"""
        return self._loaded("bias", dict(q=q, v=v), f_ext, axes, out, dtype, check)

    def gravity(self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
        """g(q): the torques that hold the robot still. -> (..., nv)"""
        return self._call("gravity", dict(q=q), out, dtype, check)

    def coriolis(self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
        """C = H phi (M phi* ((V x) H* + dH*/dt) + B_V phi* H*): C v = bias - gravity, dM/dt - 2 C skew. -> (..., nv, nv)"""
        if not is_large(self):
            return self._call("coriolis", dict(q=q, v=v), out, dtype, check)
        guard.on_host("coriolis", q, v)
        q, v = np.asarray(q)[..., None, :], np.asarray(v)[..., None, :]
        columns = self._call("coriolis_product", dict(q=q, v=v, x=np.eye(self.nv)), None, dtype, check)
        return np.swapaxes(columns, -1, -2)

    def coriolis_product(
        self, q: Numbers, v: Numbers, x: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """C(q, v) x in O(N), without the matrix. -> (..., nv)"""
        return self._call("coriolis_product", dict(q=q, v=v, x=x), out, dtype, check)

    def link_accelerations(
        self, q: Numbers, v: Numbers, a: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """alpha = phi* (H* dv/dt + a): [w'; v'] of each link's origin in link axes, less gravity. -> (..., bodies, 6)"""
        return self._call("link_accelerations", dict(q=q, v=v, a=a), out, dtype, check)

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
        """f = phi (M alpha + b): the spatial force [moment; force] through each joint on its body, at the link's origin in
        link axes; H f is the joint torque. -> (..., bodies, 6)"""
        return self._loaded("joint_forces", dict(q=q, v=v, a=a), f_ext, axes, out, dtype, check)

    def mass_log_det(self, q: Numbers, *, dtype: DType = None, check: bool = False) -> Array:
        """log det M = sum log det D(k). -> (...)"""
        guard.on_host("mass_log_det", q)
        _, D = self.mass_matrix_factors(q, dtype=dtype, check=check)
        blocks = [np.linalg.slogdet(D[..., j.v_slice, j.v_slice])[1] for j in self.joints]
        return np.sum(blocks, axis=0) if blocks else np.zeros(np.asarray(q).shape[:-1])

    def mass_matrix(self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
        """M = H phi M phi* H* (+ rotor inertia). -> (..., nv, nv)"""
        return self._matrix("mass_matrix", q, out, dtype, check)

    def mass_matrix_inverse(self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
        """M^-1 = (I - H psi K)* D^-1 (I - H psi K). -> (..., nv, nv)"""
        return self._matrix("mass_matrix_inverse", q, out, dtype, check)

    def mass_matrix_factors(
        self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> tuple[Array, Array]:
        """(L, D) with M = L D L*, L = I + H phi K, D block diagonal (a block a joint). -> (..., nv, nv) twice

        Bodies are numbered base to tip, so L is upper triangular: entry (k, j) is zero unless k is an ancestor of j.
        """
        return self._matrix("mass_matrix_factors", q, out, dtype, check)

    def mass_product(self, q: Numbers, a: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
        """M a in O(N), without the matrix. -> (..., nv)"""
        return self._call("mass_product", dict(q=q, a=a), out, dtype, check)

    def factor_product(
        self, q: Numbers, x: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> tuple[Array, Array]:
        """(L x, D x) with M = L D L*, in O(N), without the matrices. -> (..., nv) twice"""
        return self._call("factor_product", dict(q=q, x=x), out, dtype, check)

    def mass_solve(self, q: Numbers, tau: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
        """M^-1 tau in O(N), without the matrix. -> (..., nv)"""
        return self._call("mass_solve", dict(q=q, tau=tau), out, dtype, check)

    def frame_pose(self, q: Numbers, frame: str, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
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
        return self._call("frame_velocity", dict(q=q, v=v), out, dtype, check, (self._named(frame),), axes)

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
        guard.on_host("operational_space_inertia", q)
        X = self.operational_compliance(q, frames, axes=axes, check=check)
        return operational.inverse(X, policy, rcond, damping)

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
        return self._call("operational_compliance", dict(q=q), out, dtype, check, guard.names(self, frames), axes)

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
        guard.on_host("operational_space_bias", q, v)
        names = guard.names(self, frames)
        if not names:
            raise StateError("operational_space_bias: no frame is given, expected at least one", 'name it: frames=("tool",)')
        free = self.forward_dynamics(q, v, np.zeros(self.nv), check=check)
        drift = np.concatenate([self.frame_acceleration(q, v, free, frame) for frame in names], axis=-1)
        Lam = self.operational_space_inertia(q, names, policy=policy, rcond=rcond, damping=damping)
        return -np.einsum("...ij,...j->...i", Lam, drift)

    def frame_acceleration(
        self, q: Numbers, v: Numbers, a: Numbers, frame: str, *, out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """J a + dJ/dt v: [w'; v'] of the frame's origin in world axes; a = 0 gives dJ/dt v. -> (..., 6)"""
        return self._call("frame_acceleration", dict(q=q, v=v, a=a), out, dtype, check, (self._named(frame),))

    def jacobian(
        self, q: Numbers, frame: str, *, axes: str = "world", out: Out = None, dtype: DType = None, check: bool = False
    ) -> Array:
        """J = B* phi* H*: [w; v] of the frame's origin per joint velocity, in world axes or the frame's own. -> (..., 6, nv)"""
        return self._call("jacobian", dict(q=q), out, dtype, check, (self._named(frame),), axes)

    def energy(self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
        """v* M v / 2 - sum m g.c: kinetic and potential energy together, zero at rest at the world's origin. -> (...)"""
        return self._call("energy", dict(q=q, v=v), out, dtype, check)

    def kinetic_energy(self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
        """v* M v / 2. -> (...)"""
        return self._call("kinetic_energy", dict(q=q, v=v), out, dtype, check)

    def potential_energy(self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
        """- sum m g.c. -> (...)"""
        return self._call("potential_energy", dict(q=q), out, dtype, check)

    def center_of_mass(self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
        """c = sum m c / sum m of all moving bodies, in the world. -> (..., 3)"""
        self._heavy("center_of_mass", "use frame_pose for places")
        return self._call("center_of_mass", dict(q=q), out, dtype, check)

    def momentum(self, q: Numbers, v: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
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

    def centroidal_momentum_matrix(self, q: Numbers, *, out: Out = None, dtype: DType = None, check: bool = False) -> Array:
        """A = E_c phi M phi* H* with `centroidal_momentum` = A v: rows [angular; linear]. -> (..., 6, nv)"""
        self._heavy("centroidal_momentum_matrix", "use momentum, about the world's origin")
        return self._matrix("centroidal_momentum_matrix", q, out, dtype, check)

    def _heavy(self, name: str, remedy: str) -> None:
        """Refuse what needs a centre of mass on a robot that has none."""
        if not self.mass > 0.0:
            raise SingularError(f"{name}: no moving body of {self.name} has mass", remedy)

    @cached_property
    def mass(self) -> float:
        """The mass of all moving bodies."""
        return sum(body.mass for body in self.bodies)

    def _named(self, frame) -> str:
        return self.frame(frame).name

    def _loaded(self, name: str, state: dict[str, Any], f_ext, axes: str, out, dtype, check):
        guard.check_axes(axes)
        if f_ext is None or not guard.mapping(f_ext):
            return self._call(name, state, out, dtype, check)
        frames = tuple(self._named(frame) for frame in f_ext)
        state["f_ext"] = guard.stack_wrenches(f_ext)
        return self._call(name, state, out, dtype, check, frames, axes)

    def _matrix(self, name: str, q, out, dtype, check):
        if self.function(name).written_out:
            return self._call(name, dict(q=q), out, dtype, check)
        return by_columns.matrix(self, name, q, out, dtype, check)

    def _parameters(self, name: str) -> Any:
        """The numbers that are free; a robot that has some is a `FreeRobot`, which knows them."""
        return guard.parameters(self, name, None)

    def _over_samples(self) -> Robot:
        """The robot for arrays with one batch axis more: what has batch axes of its own gets it, too."""
        return self

    @property
    def _more(self) -> tuple[Any, ...]:
        """What its functions take behind their own arguments."""
        return () if self.freed is None else (self._parameters(""),)

    def _call(self, name: str, state: dict[str, Any], out, dtype, check, frames: tuple[str, ...] = (), axes: str = "world"):
        if self.freed is not None and PARAMETERS not in state:
            state = {**state, PARAMETERS: self._parameters(name)}
        function, values = self.function(name, frames, axes), tuple(state.values())
        for value in values:
            if type(value) is not _ndarray or not self.joints:
                if any(map(is_foreign, values)):
                    return guard.entered(function, values, out, dtype, check)
                values = guard.plain(self, name, function.source.inputs, values)
                break
        if self.quaternions and type(values[0]) is _ndarray and values[0].shape == (self.nq,) and values[0].dtype.kind == "f":
            self.upright(name, values[0])
        if check is not False and flag("check", check):
            refuse_lazy(name, "check=True looks at numbers", *values)
            values = guard.plain(self, name, function.source.inputs, values)
            check_states(self, name, function.source.inputs, values, frames)
            with np.errstate(all="ignore"):
                result = self._call(name, dict(zip(state, values, strict=True)), out, dtype, False, frames, axes)
            checked.after(self, name, function.source, values, result)
            return result
        if out is not None and (type(out) is not _ndarray or out.dtype.kind != "f"):
            out = guard.fitting_out(self, name, function.source, values, out)
        elif out is None and dtype is not None:
            out = (None,) * function.ufunc.nout
        try:
            if is_large(self) and (name in METHODS or name in PARTS) and not function.program.local:
                refuse_lazy(name, "on a robot of so many bodies its sweeps are interpreted", *values)
                return self._interpreted(function, values, dtype)
            return function.run(values, out, dtype)
        except (ValueError, TypeError, NotImplementedError) as error:
            if not is_large(self) and _traced(function.source.inputs, values):  # a user's law of control
                results: Any = interpret_on_tape(function.program, function.tree, *values)
                return results[0] if len(results) == 1 else results
            words = guard.in_words(self, name, function.source, values, out, dtype, error)
            if words is error:
                raise
            raise words from error

    @staticmethod
    def _interpreted(function: Function, values, dtype) -> Any:
        """The sweeps as they are: what is kept of every link of a large robot fits no loop over classes of links."""
        source = function.source
        with np.errstate(all="ignore"):
            results = interpret(source.program, source.tree, *values)
        results = tuple(x.astype(dtype or np.result_type(np.float32, *values), copy=False) for x in results)
        return results[0] if len(results) == 1 else results
