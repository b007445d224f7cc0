"""`System`: a closed chain, mechanisms and constraints, with the methods of a robot."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from psiphi._util.array_types import Array, Numbers, Wrenches
from psiphi._util.errors import StateError
from psiphi._util.late_methods import with_late_methods
from psiphi._util.memory_layout import frozen_copy
from psiphi._util.text import nearest, shown
from psiphi._util.validate import flag, is_foreign
from psiphi.algebra.expressions.operators import Operators
from psiphi.functions import argument_checks
from psiphi.functions.arrays.dask_arrays import refuse_lazy
from psiphi.io import save as saving
from psiphi.model.loops import contacts_and_loops
from psiphi.robot import operational_inertia
from psiphi.robot.mechanisms import contact_quantities, loop_closure, system_explanation
from psiphi.robot.mechanisms.closed_functions.closed_call import ClosedCall
from psiphi.robot.mechanisms.closed_functions.closed_function import FORCES, NAMES, ClosedFunction
from psiphi.robot.mechanisms.closed_functions.closed_torque_function import TORQUES, ClosedTorques
from psiphi.robot.mechanisms.dynamics import (
    closed_forward_dynamics,
    external_dynamics,
    load_distribution,
    system_stages,
)
from psiphi.robot.mechanisms.dynamics.external_dynamics import ExternalDynamics, FreeDynamics
from psiphi.robot.mechanisms.solve import dense_saddle
from psiphi.robot.mechanisms.solve.rccfd_methods import method_name
from psiphi.robot.mechanisms.system_programs import SystemPrograms


@with_late_methods
class System(SystemPrograms):
    """Mechanisms held together by constraints.

    `robot` is the forest of all mechanisms; an object is a body with a free joint. q and v are
    those of the mechanisms, concatenated. tau is (..., nv), or (..., na) for the coordinates with
    motors.

    Constraints act on accelerations; `assemble` closes the loops, `project` moves a state back onto
    the constraints.
    """

    # -- dynamics ----------------------------------------------------------------------------------

    def function(self, name: str, frames: Sequence[str] = (), axes: str = "world") -> ClosedCall:
        """A function with derivatives, by the implicit function theorem.

        "forward_dynamics" or "contact_forces" of (q, v, tau), and of the wrenches on `frames` if
        any are named; or "inverse_dynamics" of (q, v, a).

        >>> import psiphi as pp
        >>> pin = pp.Loop("distance", "tool", "world", length=0.3)
        >>> loop = pp.connect(pp.load("pelican"), [pin])
        >>> by_q, by_v = loop.function("forward_dynamics").jacobian("q", "v")(
        ...     loop.assemble([0.5, 1.0]), [0, 0], [1, 0]
        ... )
        >>> by_q.shape, by_v.shape
        ((2, 2), (2, 2))
        """
        if not isinstance(name, str) or name not in (*NAMES, TORQUES):
            raise StateError(
                f"no function {shown(name)} of a closed system", nearest(name, (*NAMES, TORQUES))
            )
        argument_checks.check_axes(axes)
        known = argument_checks.frame_names(self.robot.model, frames)
        if name == TORQUES and known:
            raise StateError(
                f"{name}: wrenches on {', '.join(known)} are not supported",
                f"leave frames out, or call the method {name} with f_ext",
            )
        if name == TORQUES:
            return self.torque_function
        if name == FORCES and not self.contacts:
            raise StateError(
                f"{self.name} has no contacts, only mimic joints", 'use "forward_dynamics"'
            )
        return self.closed_function(name, known, axes)

    def closed_function(
        self, name: str, frames: tuple[str, ...] = (), axes: str = "world", motors: bool = False
    ) -> ClosedFunction:
        """(Internal use only) `function` of checked arguments; cached. With `motors`, tau has shape
        (..., na)."""
        key = name, frames, axes, motors
        if key not in self._closed_functions:
            self._closed_functions[key] = ClosedFunction(self, *key)
        return self._closed_functions[key]

    @cached_property
    def torque_function(self) -> ClosedTorques:
        """(Internal use only) Inverse dynamics as a function with derivatives."""
        return ClosedTorques(self)

    @cached_property
    def _closed_functions(self) -> dict[Any, ClosedFunction]:
        return {}

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

        -> a (..., nv). With `forces` also the contact wrenches [moment; force] (..., l, 6) on the
        body of the second frame (the object), in world axes, at the origin of the first frame. If
        constraints are redundant, the forces of least norm are returned.

        `method` is "RCCFD1", "RCCFD2" or "RCCFD3" of S4, or "KKT" (dense). q and v must satisfy the
        constraints: terms of the bias that are zero then are left out. `check=True` raises a
        `StateError` if they do not; `constraint_residual(q, v)` tells by how much. If no
        acceleration satisfies the constraints, or more than one, the element is NaN; a single
        state, or any with check=True, raises `SingularError`. torch tensors and JAX arrays return
        the same, with gradients.
        """
        loads = {} if f_ext is None else argument_checks.check_wrench_mapping(f_ext)
        if any(map(is_foreign, (q, v, tau, *loads.values()))):
            names = NAMES if flag("forces", forces) else NAMES[:1]
            return self._call_foreign((q, v, tau), names, loads, axes, method, check)
        details = self.forward_dynamics_details(q, v, tau, f_ext, axes, method, check)
        return (details["a"], details["forces"]) if flag("forces", forces) else details["a"]

    def _call_foreign(
        self,
        state: Sequence[Numbers],
        names: Sequence[str],
        loads: Wrenches,
        axes: str,
        method: str | None,
        check: bool,
    ) -> Any:
        """Forward dynamics of torch or JAX arrays, with derivatives of that library."""
        if method is not None or check is not False:
            option = "method" if method is not None else "check"
            raise StateError(
                f"forward_dynamics: {option}= is for NumPy arrays only", f"leave {option}= out"
            )
        more = (argument_checks.stack_wrenches(loads),) if loads else ()
        results = [self.function(name, tuple(loads), axes)(*state, *more) for name in names]
        return results[0] if len(results) == 1 else tuple(results)

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
        """Forward dynamics as a dict: a, forces, multipliers (..., m), and per element `unique`
        (whether the forces are), `rank` and `solvable`."""
        argument_checks.check_axes(axes)
        return closed_forward_dynamics.details(self, q, v, tau, f_ext, axes, method, check)

    if TYPE_CHECKING:  # implemented in a later package

        def step(
            self, q: Numbers, v: Numbers, tau: Numbers, dt: float, method: str = "rk4"
        ) -> tuple[Array, Array]: ...

        def linearize(
            self,
            q: Numbers,
            v: Numbers,
            tau: Numbers,
            dt: float | None = None,
            method: str = "rk4",
            check: bool = False,
        ) -> tuple[Array, Array]: ...

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
        """M a + C v + g = tau + Jc* lambda + J* f_ext, with tau zero at coordinates without motor.

        -> tau (..., nv) for a motion that satisfies the constraints. The contact forces minimize
        sum |f_i|^2 / share_i (`share`: one positive number per contact). `internal` (..., l, 6) are
        wrenches to squeeze with; their part without effect on the motion is added. With `forces`
        also the contact wrenches, as in `forward_dynamics`. With check=True, a state that does not
        satisfy the constraints raises `StateError`. If no torques produce the motion, the
        element is NaN; a single state, or any with check=True, raises `StateError`.
        """
        return load_distribution.inverse_dynamics(
            self, q, v, a, internal, share, forces, f_ext, axes, check
        )

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
        """The acceleration nearest to `a` with Jc a + bias = 0 that the motors can produce.

        Joints named in `exactly` accelerate as in `a`. To move an object along a path, set its part
        of `a` and name its joint: the arms follow. The acceleration of a base without motors
        follows from the momentum balance. An infeasible element is NaN; a single state, or any with
        check=True, raises `StateError`.
        """
        return load_distribution.complete(self, q, v, a, exactly, f_ext, axes, check)

    def split_forces(
        self, q: Numbers, forces: Numbers, share: Numbers | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Contact wrenches (..., l, 6) as a sum (forces that act on bodies without motors, internal
        forces)."""
        return load_distribution.split(self, q, forces, share)

    def effective_compliance(
        self, q: Numbers, frame: str | None = None, axes: str = "world"
    ) -> np.ndarray:
        """J N (N* M N)^-1 N* J*, N = null(Jc): the acceleration of `frame` (default: the object)
        per unit wrench on it, with closed loops. -> (..., 6, 6)"""
        (q,) = self.state_arrays(q=q)
        J = self.robot.jacobian(q, self._frame_or_object(frame), axes=axes)
        return dense_saddle.compliance(self.robot.mass_matrix(q), self.constraint_jacobian(q), J)

    def effective_inertia(
        self, q: Numbers, frame: str | None = None, axes: str = "world", policy: str = "exact"
    ) -> np.ndarray:
        """The inverse of `effective_compliance`: the inertia at `frame` (default: the object).

        If the frame cannot move in all directions: NaN (policy "exact"), or the inertia in the
        directions it can move in ("pseudo").
        """
        return operational_inertia.inverse(self.effective_compliance(q, frame, axes), policy, 1e-12)

    def arm_inertias(self, q: Numbers, axes: str = "world") -> tuple[np.ndarray, np.ndarray]:
        """M(C) and A_i* Lambda_i A_i: the inertia of the object (..., 6, 6) and the inertia that
        each arm adds to it (..., arms, 6, 6), at the link origin of the object.

        Their sum is `effective_inertia`. M(C) is the only part that depends on the object. Arms
        that share a body or a loop count as one. NaN if an arm cannot follow the object in all
        directions.
        """
        return contact_quantities.inertias(self, q, axes)

    @property
    def operators(self) -> Operators:
        """The spatial operators of all mechanisms together, the object included.

        With T the tips of the arms and O the grips of the object, S4's J is s.J(*T), and with
        A = s.J(*O), A M(C)^-1 A* is A @ s.mass.inv @ A.T: Omega = J M^-1 J* + A M(C)^-1 A* (4.7).

        >>> import psiphi as pp
        >>> cell = pp.scenes.load("two_arms").system
        >>> s = cell.operators
        >>> J, A = (s.J(*(getattr(x, side) for x in cell.contacts)) for side in ("first", "second"))
        >>> Omega = J @ s.mass.inv @ J.T + A @ s.mass.inv @ A.T
        >>> free = s.mass.inv - s.mass.inv @ J.T @ Omega.inv @ J @ s.mass.inv
        >>> bool(pp.prove(s.mass @ free + J.T @ Omega.inv @ J @ s.mass.inv, s.I))  # S4 (3.5)
        True
        """
        return self.robot.operators

    def with_dynamics(
        self, mechanisms: Mapping[str, FreeDynamics], batched: bool = False
    ) -> ExternalDynamics:
        """The closed chain with free dynamics of some mechanisms from elsewhere: functions, another
        simulator, a network (S4 section 4).

        `mechanisms` maps names of mechanisms to functions (q, v, tau) -> a of their own
        coordinates, without constraints; with `batched` for many states (..., n) at once. The
        result has `forward_dynamics(q, v, tau, forces=False)` and can be simulated; constraints and
        the other mechanisms are psiphi's. The functions need not be linear in the torques. If no
        contact forces satisfy the constraints, `SingularError`.

        >>> import numpy as np, psiphi as pp
        >>> case = pp.scenes.load("two_arms")
        >>> cell, v, name = case.system, np.zeros(18), case.system.bodies[0].name.split("/")[0]
        >>> puma = pp.load("puma560")
        >>> sticky = lambda q, v, tau: puma.forward_dynamics(q, v, np.sign(tau) * abs(tau) ** 0.9)
        >>> a = cell.with_dynamics({name: sticky}).forward_dynamics(case.q0, v, np.ones(12))
        >>> bool(abs(cell.constraint_jacobian(case.q0) @ a).max() < 1e-6)
        True
        """
        return external_dynamics.with_dynamics(self, mechanisms, batched)

    # -- constraints -------------------------------------------------------------------------------

    def constraint_residual(self, q: Numbers, v: Numbers | None = None) -> np.ndarray:
        """(..., 2, m): position error (metres, radians) and rate of each row. Without v: (..., m),
        the position error alone."""
        velocity = self._zero_velocity(q) if v is None else v
        residual = self._call_on_state(self.residual_function, q=q, v=velocity)
        return residual[..., 0, :] if v is None else residual

    def constraint_jacobian(self, q: Numbers) -> np.ndarray:
        """Jc (..., m, nv), with constraint velocities c = Jc v."""
        return self._call_on_state(self.jacobian_function, q=q)

    def assemble(
        self, q_guess: Numbers, hold: str | Sequence[str] = (), tolerance: float = 1e-11
    ) -> np.ndarray:
        """q with e(q) = 0, all loops closed, near a guess; joints named in `hold` do not move."""
        return loop_closure.assemble(self, q_guess, hold, tolerance)

    def project(
        self, q: Numbers, v: Numbers, tolerance: float = 1e-12
    ) -> tuple[np.ndarray, np.ndarray]:
        """The state projected onto the constraints, with the smallest change in the metric of the
        mass matrix; for states close to the constraints."""
        return loop_closure.project(self, q, v, tolerance)

    def constraint_bias(self, q: Numbers, v: Numbers) -> np.ndarray:
        """dJc/dt v (..., m), so that c' = Jc a + dJc/dt v; for any v."""
        return self._call_on_state(
            self.compiled_function("opening", lambda: system_stages.full_bias(self.algebra)),
            q=q,
            v=v,
        )

    def bias_on_constraints(self, q: Numbers, v: Numbers) -> np.ndarray:
        """(Internal use only) dJc/dt v (..., m) for v that satisfies the constraints, as the
        dynamics use it."""
        return self._call_on_state(
            self.compiled_function("bias", lambda: system_stages.bias(self.algebra)), q=q, v=v
        )

    # -- contacts ----------------------------------------------------------------------------------

    def contact_ratio(self, q: Numbers, forces: Numbers) -> np.ndarray:
        """(..., l): the used fraction of the friction cone; a contact slips above 1, is infinite if
        it pulls off, and 0 without friction."""
        return contact_quantities.ratio(self, q, forces)

    def contact_configuration(self, q: Numbers, contact: int | str = 0) -> np.ndarray:
        """The configuration of a contact: the rotation of frame 1 relative to frame 2, as a
        quaternion x y z w (..., 4)."""
        return contact_quantities.configuration(self, q, contact)

    def contact_configuration_rate(
        self, q: Numbers, v: Numbers, contact: int | str = 0
    ) -> np.ndarray:
        """The time derivative of `contact_configuration` (..., 4): F(theta) W of S4 (a.4), with W
        of `contact_rates`.

        >>> import numpy as np, psiphi as pp
        >>> case = pp.scenes.load("four_bar")
        >>> case.system.contact_configuration_rate(case.q0, np.zeros(case.system.nv)).shape
        (4,)
        """
        return contact_quantities.configuration_rate(self, q, v, contact)

    def contact_rates(self, q: Numbers, v: Numbers) -> np.ndarray:
        """(..., l, 6): W of S4, V- = V+ + H* W: the motion [w; v] of the second frame's body (the
        object) relative to the first frame (the tip of the arm), at the contact, in axes of the
        second frame."""
        return self._motions(q, v, self._zero_velocity(q))[0]

    def contact_accelerations(self, q: Numbers, v: Numbers, a: Numbers) -> np.ndarray:
        """(..., l, 6): W' = [w'; v'] of S4, the derivative of `contact_rates` in the same axes."""
        return self._motions(q, v, a)[1]

    def _motions(self, q: Numbers, v: Numbers, a: Numbers) -> tuple[np.ndarray, ...]:
        """W and W' of all contacts."""
        function = self.compiled_function("motions", lambda: system_stages.motions(self.algebra))
        return tuple(
            x[..., : len(self.contacts), :] for x in self._call_on_state(function, q=q, v=v, a=a)
        )

    # -- operation counts, files, parameters -------------------------------------------------------

    def flops(self, name: str = "forward_dynamics", method: str | None = None) -> int:
        """The exact operation count of one forward_dynamics, by `method` or the method chosen."""
        if not isinstance(name, str) or name != "forward_dynamics":
            raise StateError(
                f"no count of {shown(name)} for a closed system", 'pass "forward_dynamics"'
            )
        return self.dynamics_function(method_name(method), (), "world").count.flops

    def explain(self, method: str | None = None) -> str:
        """The stages of forward dynamics as text: each operator equation, its rewritten form, its
        sweeps and its cost."""
        name = method_name(method)
        return system_explanation.explanation(
            self.algebra,
            self.dynamics_program(name, (), "world"),
            "" if name else self.chosen_method().reason,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mechanisms and their loops to an MJCF .xml file, or to a .urdf file if there is
        one robot; see `robot.save`. `pp.connect(pp.load(path))` reads them again. One-sided
        contacts and the choice of motors are not stored.

        >>> import psiphi as pp
        >>> loop = pp.connect(pp.load("pelican"), [pp.Loop("ball", "tool", "world")])
        >>> loop.save(folder / "loop.xml")  # doctest: +SKIP
        """
        if self.robot.has_loops:
            raise StateError(
                f"{self.name} has embedded loops or gears as well as its own loops, and a file can "
                "store one kind only",
                "save the robots one by one",
            )
        saving.save(
            replace(self.robot, loops=tuple(map(contacts_and_loops.as_loop, self.contacts))), path
        )

    def at(self, parameters: Numbers) -> System:
        """The system with these values (..., n) of its free parameters, concatenated by mechanism.

        One set for all states, or one per element; batch axes broadcast with those of the
        arguments.

        >>> import psiphi as pp
        >>> light = pp.load("pelican").free("mass")
        >>> loop = pp.connect(light, [pp.Loop("ball", light.bodies[-1].name, "world")])
        >>> heavy = loop.at(2.0 * light.parameters())
        >>> round(float(heavy.robot.mass / loop.at(light.parameters()).robot.mass), 9)
        2.0
        """
        robot: Any = self.robot
        if robot.freed is None:
            raise StateError(
                f"{self.name} has no free parameters",
                'free some of a mechanism first: robot.free("inertia")',
            )
        argument_checks.require_numpy(self.name, parameters)
        refuse_lazy(self.name, "a closed chain checks its parameters", parameters)
        return self.bind_parameters(frozen_copy(robot.consistent(parameters)))
