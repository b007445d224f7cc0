"""The closed system at the door: mechanisms and constraints that answer as a robot does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from psiphi.arguments import Array, Numbers, Wrenches, flag, read
from psiphi.closed import carrying, choosing, circuits, closing, contacts, driving, explaining, felt, forward, saddle, sharing
from psiphi.closed.closed_function import FORCES, NAMES, ClosedFunction
from psiphi.closed.constraints import Closure, Constraint
from psiphi.closed.coupling import Algebra
from psiphi.closed.methods import method_name
from psiphi.closed.wiring import Circuit
from psiphi.compiler.source import Function
from psiphi.errors import StateError
from psiphi.functions import guard, operational
from psiphi.functions.robot import Robot
from psiphi.model.model import Body, Frame, Joint
from psiphi.optional import need
from psiphi.wording import nearest, shown


class System:
    """Mechanisms held together by constraints. q and v are those of `robot`, the forest of all mechanisms (an object is a
    body with a free joint), one after the other; tau is (..., nv), or (..., na) for the actuated coordinates alone.

    Constraints act on accelerations; `assemble` closes the loops, `project` puts a state back on the constraints.
    """

    def __init__(self, robot: Robot, constraints, follows=(), passive: tuple[str, ...] = (), object_body: str = ""):
        self.robot = robot
        self.closure = Closure(robot._model, tuple(constraints), tuple(follows))
        self.passive, self.object = passive, object_body
        self._functions: dict[Any, Function] = {}
        self._forms: dict[Any, choosing.Chosen] = {}

    # -- what the system is ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.robot.name

    @property
    def nq(self) -> int:
        return self.robot.nq

    @property
    def nv(self) -> int:
        return self.robot.nv

    @property
    def joints(self) -> tuple[Joint, ...]:
        return self.robot.joints

    @property
    def bodies(self) -> tuple[Body, ...]:
        return self.robot.bodies

    @property
    def frames(self) -> Mapping[str, Frame]:
        return self.robot.frames

    @property
    def contacts(self) -> tuple[Constraint, ...]:
        """The constraints between frames: .name .kind .first .second .friction."""
        return self.closure.constraints

    @property
    def nc(self) -> int:
        """How many constraint rows."""
        return self.closure.size

    @cached_property
    def actuated(self) -> np.ndarray:
        """The velocity coordinates that have motors: all but the object's and those named passive."""
        idle = {i for name in self.passive for i in _coordinates(self.robot.joint(name))}
        return np.array([i for i in range(self.nv) if i not in idle], dtype=int)

    @property
    def na(self) -> int:
        return len(self.actuated)

    @cached_property
    def idle(self) -> np.ndarray:
        """The velocity coordinates without motors."""
        return np.setdiff1d(np.arange(self.nv), self.actuated)

    def frame(self, name: str) -> Frame:
        return self.robot.frame(name)

    def joint(self, name: str) -> Joint:
        return self.robot.joint(name)

    def neutral(self) -> np.ndarray:
        """Every joint at its zero; not assembled."""
        return self.robot.neutral()

    def random(
        self, rng: np.random.Generator | int | None = None, size: int | tuple[int, ...] = (), *, seed: int | None = None
    ) -> np.ndarray:
        """Random joints; not assembled."""
        return self.robot.random(rng, size, seed=seed)

    def integrate(self, q: Numbers, v: Numbers, dt: Numbers = 1.0) -> np.ndarray:
        return self.robot.integrate(q, v, dt)

    def difference(self, q0: Numbers, q1: Numbers) -> np.ndarray:
        return self.robot.difference(q0, q1)

    def normalize(self, q: Numbers) -> np.ndarray:
        return self.robot.normalize(q)

    def energy(self, q: Numbers, v: Numbers) -> Array:
        return self.robot.energy(q, v)

    def frame_pose(self, q: Numbers, frame: str, **options: Any) -> Array:
        return self.robot.frame_pose(q, frame, **options)

    def __reduce__(self):
        """What it is; what was compiled is made anew."""
        c = self.closure
        return type(self), (self.robot, c.constraints, c.follows, self.passive, self.object)

    def __eq__(self, other) -> bool:
        return isinstance(other, System) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self.robot, self.key))

    def html(self, path: str | os.PathLike[str], live: bool = False, **options: Any) -> Path:
        """Write one page that opens in any browser; with `live` the chain runs in it, and can be pulled (`pp.viewer.html`)."""
        return need("psiphi.viewer", "the viewer", "psiphi").html(self, path, live, **options)

    def _repr_html_(self) -> str:
        """What a notebook shows: a picture, and a row a joint."""
        return need("psiphi.viewer.cards", "a picture", "psiphi").robot(self)

    def __repr__(self) -> str:
        held = ", ".join([*(f"{c.name}: {c.kind}" for c in self.contacts), *(f.name for f in self.closure.follows)])
        rows = f"{self.nc} constraint row{'s' if self.nc > 1 else ''}"
        return f"<System {self.name!r}: nq={self.nq}, nv={self.nv}, {rows} ({held})>"

    # -- dynamics ----------------------------------------------------------------------------------------------------------

    def function(self, name: str, frames: Sequence[str] = (), axes: str = "world") -> ClosedFunction:
        """ "forward_dynamics" or "contact_forces" as a function of (q, v, tau), with derivatives: those of what the method
        `forward_dynamics` gives, by the implicit function theorem. Wrenches on `frames` are its last argument.

        >>> import psiphi as pp
        >>> loop = pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3)])
        >>> by_q, by_v = loop.function("forward_dynamics").jacobian("q", "v")(loop.assemble([0.5, 1.0]), [0, 0], [1, 0])
        >>> by_q.shape, by_v.shape
        ((2, 2), (2, 2))
        """
        if not isinstance(name, str) or name not in NAMES:
            raise StateError(f"no function {shown(name)} of a closed system", nearest(name, NAMES))
        guard.check_axes(axes)
        if name == FORCES and not self.contacts:
            raise StateError(f"{self.name} has no contacts: joints follow others", 'ask for "forward_dynamics"')
        return ClosedFunction(self, name, guard.names(self.robot._model, frames), axes)

    @overload
    def forward_dynamics(
        self,
        q: Numbers,
        v: Numbers,
        tau: Numbers,
        forces: Literal[False] = False,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        method: str | None = None,
        check: bool = False,
    ) -> Array: ...

    @overload
    def forward_dynamics(
        self,
        q: Numbers,
        v: Numbers,
        tau: Numbers,
        forces: Literal[True],
        f_ext: Wrenches | None = None,
        axes: str = "world",
        method: str | None = None,
        check: bool = False,
    ) -> tuple[Array, Array]: ...

    def forward_dynamics(
        self,
        q: Numbers,
        v: Numbers,
        tau: Numbers,
        forces: bool = False,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        method: str | None = None,
        check: bool = False,
    ) -> Array | tuple[Array, Array]:
        """Omega lambda = -(Jc a_f + bias);  a = a_f + M^-1 Jc* lambda

        -> a (..., nv); with `forces` also the wrenches [moment; force] (..., l, 6) every contact imparts to the body of its
        second frame (the object), in world axes, at the contact (the origin of the first frame). `method` is "RCCFD1" ..
        "RCCFD3" of S4, or "KKT" (dense). Forces are of least norm where constraints are redundant. An element no acceleration
        fits, or more than one, is NaN; a single state, or any with check=True, raises `SingularError` with the arm, the
        contact and the direction.
        """
        details = self.forward_dynamics_details(q, v, tau, f_ext, axes, method, check)
        return (details["a"], details["forces"]) if flag("forces", forces) else details["a"]

    def forward_dynamics_details(
        self,
        q: Numbers,
        v: Numbers,
        tau: Numbers,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        method: str | None = None,
        check: bool = False,
    ) -> dict[str, Any]:
        """All of it: a, forces, multipliers (..., m), and per element `unique` (the forces are), `rank`, `solvable`."""
        guard.check_axes(axes)
        return forward.details(self, q, v, tau, f_ext, axes, method, check)

    def linearize(self, q: Numbers, v: Numbers, tau: Numbers) -> tuple[Array, Array]:
        """A, B of dx/dt = A x + B dtau, for small changes x = (dq, dv) of the state that keep the constraints.

        (..., 2 nv, 2 nv) and (..., 2 nv, n), n as many torques as came: nv, or na.
        """
        return need("psiphi.rollouts.linearising", "a linearisation", "psiphi").linearize_closed(self, q, v, tau)

    def inverse_dynamics(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        internal: Numbers | None = None,
        share: Numbers | None = None,
        forces: bool = False,
        f_ext: Wrenches | None = None,
        axes: str = "world",
        check: bool = False,
    ) -> Any:
        """M a + C v + g = tau + Jc* lambda + J* f_ext, tau zero where there is no motor.

        Torques (..., nv) for a desired motion that keeps the constraints. What the contacts must carry is shared by least
        sum |f_i|^2 / share_i (`share`: one positive number a contact); `internal` (..., l, 6) are wrenches to squeeze with,
        of which the part that moves nothing is added. With `forces` also the contact wrenches as forward_dynamics gives.
        An element whose motion no torque makes is NaN; a single state, or any with check=True, raises `StateError`.
        """
        return sharing.inverse_dynamics(self, q, v, a, internal, share, forces, f_ext, axes, check)

    def complete(
        self,
        q: Numbers,
        v: Numbers,
        a: Numbers,
        exactly: Sequence[str] = (),
        check: bool = False,
        f_ext: Wrenches | None = None,
        axes: str = "world",
    ) -> np.ndarray:
        """The acceleration nearest to `a` with Jc a + bias = 0 that the motors can drive; joints named in `exactly` accelerate
        as `a` says.

        To drive an object along a path: fill in its part of `a`, name its joint, and let the arms follow. A flying base without
        thrusters moves as momentum asks. An element no motion fits is NaN; a single state, or any with check=True, raises.
        """
        return sharing.complete(self, q, v, a, exactly, f_ext, axes, check)

    def split_forces(self, q: Numbers, forces: Numbers, share: Numbers | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Contact wrenches (..., l, 6) -> (what moves bodies without motors, what only squeezes them); they add up."""
        return sharing.split(self, q, forces, share)

    def effective_compliance(self, q: Numbers, frame: str | None = None, axes: str = "world") -> np.ndarray:
        """J N (N* M N)^-1 N* J*, N = null(Jc): what a wrench on `frame` (the object) does to it, loops closed."""
        (q,) = self._state(q=q)
        J = self.robot.jacobian(q, self._target(frame), axes=axes)
        return saddle.compliance(self.robot.mass_matrix(q), self.constraint_jacobian(q), J)

    def effective_inertia(self, q: Numbers, frame: str | None = None, axes: str = "world", policy: str = "exact") -> np.ndarray:
        """The inverse of `effective_compliance`: the inertia one feels at `frame`.

        Where the frame cannot move freely: NaN ("exact"), or the inertia of the directions it can move in ("pseudo").
        """
        return operational.inverse(self.effective_compliance(q, frame, axes), policy, 1e-12)

    def arm_inertias(self, q: Numbers, axes: str = "world") -> tuple[np.ndarray, np.ndarray]:
        """M(C) and A_i* Lambda_i A_i: the object's own inertia (..., 6, 6), and what each arm adds to it (..., arms, 6, 6).

        Their sum is `effective_inertia`; of another object held in the same places only M(C) is another. At the object's link
        origin; arms that share a body or a loop are one. NaN where an arm cannot follow the object freely: it adds no inertia
        there, it holds.
        """
        return felt.inertias(self, q, axes)

    # -- constraints -------------------------------------------------------------------------------------------------------

    def constraint_residual(self, q: Numbers, v: Numbers | None = None) -> np.ndarray:
        """(..., 2, m): how far each row is open (metres, radians), and how fast it opens. Without v: (..., m), open alone."""
        rest = v is None
        found = self._call(self._residual, self._state(q=q, v=np.zeros(self.nv) if rest else v))
        return found[..., 0, :] if rest else found

    def constraint_jacobian(self, q: Numbers) -> np.ndarray:
        """Jc (..., m, nv): c = Jc v."""
        return self._call(self._jacobian, self._state(q=q))

    def assemble(self, q_guess: Numbers, hold: str | Sequence[str] = (), tolerance: float = 1e-11) -> np.ndarray:
        """q with e(q) = 0, every loop closed, near the guess where there is one; joints named in `hold` stay where they are."""
        return closing.assemble(self, q_guess, hold, tolerance)

    def project(self, q: Numbers, v: Numbers, tolerance: float = 1e-12) -> tuple[np.ndarray, np.ndarray]:
        """The state moved onto the constraints, least in the metric of the mass matrix; for states that are nearly there."""
        return closing.project(self, q, v, tolerance)

    def constraint_bias(self, q: Numbers, v: Numbers) -> np.ndarray:
        """dJc/dt v (..., m): c' = Jc a + this."""
        return self._call(self._function("bias", lambda: circuits.bias(self.algebra)), self._state(q=q, v=v))

    # -- contacts ----------------------------------------------------------------------------------------------------------

    def contact_ratio(self, q: Numbers, forces: Numbers) -> np.ndarray:
        """(..., l): how much of the friction cone a contact uses; above 1 it slips, infinite where it pulls off, 0 if none."""
        return contacts.ratio(self, q, forces)

    def contact_configuration(self, q: Numbers, contact: int | str = 0) -> np.ndarray:
        """The rotation of frame 1 seen from frame 2 as a quaternion x y z w (..., 4): the configuration of a contact."""
        return contacts.configuration(self, q, contact)

    def contact_configuration_rate(self, q: Numbers, v: Numbers, contact: int | str = 0) -> np.ndarray:
        """The derivative of `contact_configuration` in time, F(theta) W of S4 (a.4) with W of `contact_rates` (..., 4)."""
        return contacts.configuration_rate(self, q, v, contact)

    def contact_rates(self, q: Numbers, v: Numbers) -> np.ndarray:
        """(..., l, 6): W of S4, V- = V+ + H* W: the motion [w; v] of the second frame's body (the object) as the first (the
        arm's tip) sees it pass, at the contact, in axes of the second."""
        return self._motions(q, v, np.zeros(self.nv))[0]

    def contact_accelerations(self, q: Numbers, v: Numbers, a: Numbers) -> np.ndarray:
        """(..., l, 6): [w'; v'], the derivative of `contact_rates` in those axes (W' of S4)."""
        return self._motions(q, v, a)[1]

    def _motions(self, q, v, a) -> tuple[np.ndarray, ...]:
        function = self._function("motions", lambda: circuits.motions(self.algebra))
        return tuple(x[..., : len(self.contacts), :] for x in self._call(function, self._state(q=q, v=v, a=a)))

    # -- inside ------------------------------------------------------------------------------------------------------------

    @cached_property
    def algebra(self) -> Algebra:
        return Algebra(self.closure)

    def flops(self, name: str = "forward_dynamics", method: str | None = None) -> int:
        """Exact operation count of one evaluation of forward_dynamics, by the method that would run."""
        if not isinstance(name, str) or name != "forward_dynamics":
            raise StateError(f"no count of {shown(name)} for a closed system", "ask for forward_dynamics")
        return self._dynamics(method_name(method), (), "world").count.flops

    def explain(self, method: str | None = None) -> str:
        """The stages of forward dynamics: each an operator equation, what it was rewritten to, its sweeps, and the cost."""
        name = method_name(method)
        return explaining.text(self.algebra, self._circuit(name, (), "world"), "" if name else self._chosen().why)

    @property
    def key(self) -> str:
        """What code depends on, besides the robot."""
        return f"{self.closure.key} {self.idle.tolist()}"

    @property
    def _residual(self) -> Function:
        return self._function("residual", lambda: circuits.residual(self.algebra))

    @property
    def _jacobian(self) -> Function:
        return self._function("jacobian", lambda: circuits.jacobian(self.algebra))

    def _circuit(self, method: str, frames: tuple[str, ...], axes: str) -> Circuit:
        if not method:
            return self._chosen(frames, axes).circuit
        if self.algebra.is_thin:
            cause = f"{method} needs Omega, and {self.object} has no inertia of its own about some axis"
            raise StateError(cause, "leave method= out, or ask for KKT")
        return circuits.dynamics(self.algebra, method, frames, axes)

    def _chosen(self, frames: tuple[str, ...] = (), axes: str = "world", redundant: bool = False) -> choosing.Chosen:
        """The form with the fewest operations, counted once."""
        key = frames, axes, redundant
        if key not in self._forms:
            self._forms[key] = choosing.cheapest(self.algebra, frames, axes, redundant)
        return self._forms[key]

    def _dynamics(self, method: str, frames: tuple[str, ...], axes: str) -> Function:
        return self._function(("dynamics", method, frames, axes), lambda: self._circuit(method, frames, axes))

    def _terms(self, frames: tuple[str, ...], axes: str) -> Function:
        return self._function(("terms", frames, axes), lambda: circuits.terms(self.algebra, frames, axes))

    def _corrected(self, q, lam) -> tuple[np.ndarray, np.ndarray]:
        """M^-1 Jc* lambda, and the contact forces of lambda."""
        function = self._function("correction", lambda: circuits.correction(self.algebra))
        a, forces = self._call(function, (q, lam))
        return a, forces[..., : len(self.contacts), :]

    @property
    def _projection(self) -> Function:
        return self._function("projection", lambda: circuits.projection(self.algebra, self._chosen().method))

    @property
    def _motion(self) -> Function:
        """Forward dynamics for many steps in a row: rows that follow from others are left out."""
        return self._function("motion", lambda: self._chosen(redundant=True).circuit)

    @property
    def _heavier(self) -> Function:
        """`_motion` with D + X in place of D."""
        return self._function("heavier", lambda: circuits.heavier_dynamics(self.closure, self._chosen(redundant=True).method))

    @property
    def _closing(self) -> Function:
        """`_projection`, rows that follow from others left out."""
        return self._function("closing", lambda: circuits.projection(self.algebra, self._chosen(redundant=True).method, True))

    @property
    def _holding(self) -> Function:
        return self._function("holding", lambda: driving.holding(self.algebra, self.idle.tolist()))

    @property
    def _driving(self) -> Function:
        self._with_inertia("to drive it by")
        return self._function("driving", lambda: driving.driving(self.algebra, self.idle.tolist(), self._is_adrift))

    @property
    def _is_adrift(self) -> bool:
        """Whether joints without motors can move so that no contact feels it, in some posture."""
        return bool(sharing.unfelt(self.constraint_jacobian(self.random(seed=0))[:, self.idle]).any())

    @property
    def _carrying(self) -> Function:
        self._with_inertia("to carry it by")
        return self._function("carrying", lambda: carrying.carrying(self.algebra, carrying.held(self)))

    def _with_inertia(self, wanted: str) -> None:
        """Refuse where a held body is thin: there is no Omega."""
        if self.algebra.is_thin:
            cause = f"{self.object or 'a held body'} has no inertia of its own about some axis: there is no Omega {wanted}"
            raise StateError(cause, "give it inertia, as in pp.Body.box(mass, size)")

    @property
    def _omega(self) -> Function:
        return self._function("omega", lambda: circuits.omega(self.algebra))

    def _function(self, key: Any, make, kind: type[Function] = Function) -> Any:
        if key not in self._functions:
            self._functions[key] = make().compiled(kind)
        return self._functions[key]

    def at(self, parameters: Numbers) -> System:
        """The system with the free numbers of its mechanisms, (n,): one mechanism's after the other's, as they were named.

        One set for all states: batches of parameters are for robots.

        >>> import psiphi as pp
        >>> light = pp.load("pelican").free("mass")
        >>> loop = pp.connect(light, [pp.Loop("ball", light.bodies[-1].name, "world")])
        >>> heavy = loop.at(2.0 * light.parameters())
        >>> round(float(heavy.robot.mass / loop.at(light.parameters()).robot.mass), 9)
        2.0
        """
        robot: Any = self.robot
        if robot.freed is None:
            raise StateError(f"no number of {self.name} is free", 'free some of a mechanism: robot.free("inertia")')
        bound = robot.at(parameters)
        if np.ndim(bound.given) != 1:
            cause = f"parameters of shape {np.shape(bound.given)} came for a closed system, expected one set"
            raise StateError(cause, "call it for one set after the other")
        made = System(bound, self.closure.constraints, self.closure.follows, self.passive, self.object)
        made._functions, made._forms = self._functions, self._forms
        return made

    def _call(self, function: Function, values) -> Any:
        return self._run(function, (*values, *self.robot._more))

    def _run(self, function: Function, values) -> Any:
        try:
            with np.errstate(all="ignore"):  # a singular Omega divides by zero; what came of it is looked at
                return function.run(values)
        except (ValueError, TypeError, NotImplementedError) as error:
            words = guard.in_words(self.robot, self.name, function.source, values, None, None, error)
            if words is error:
                raise
            raise words from error

    def _state(self, **arrays) -> tuple[np.ndarray, ...]:
        """The arrays as the functions take them; torques of the actuated coordinates are filled up with zeros."""
        out = []
        for name, value in arrays.items():
            array, fault = read(value, None)
            if fault:
                raise StateError(f"{name} {fault}", "give an array")
            array = array.astype(float, copy=False)
            size = self.nq if name == "q" else self.nv
            if name == "tau" and array.shape[-1:] == (self.na,) and self.na != self.nv:
                array, part = np.zeros((*array.shape[:-1], self.nv)), array
                array[..., self.actuated] = part
            if array.shape[-1:] != (size,):
                also = f" (or {self.na}, the actuated ones)" if name == "tau" and self.na != self.nv else ""
                what = "nq" if name == "q" else "nv"
                raise StateError(
                    f"{name} has shape {array.shape}, expected (..., {size}){also}", f"{what} of {self!r} is {size}"
                )
            out.append(array)
        return tuple(out)

    def _target(self, frame) -> str:
        if frame is None and not self.object:
            raise StateError("no frame named, and this system holds no object", "name a frame of the robot")
        return self.robot.frame(self.object if frame is None else frame).name


def _coordinates(joint: Joint) -> range:
    return range(joint.v_slice.start, joint.v_slice.stop)
