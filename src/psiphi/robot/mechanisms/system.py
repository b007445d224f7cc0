"""The closed system at the door: mechanisms and constraints that answer as a robot does."""

from __future__ import annotations

import os
from collections.abc import Sequence
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
    load_distribution,
    system_stages,
)
from psiphi.robot.mechanisms.solve import dense_saddle
from psiphi.robot.mechanisms.solve.rccfd_methods import method_name
from psiphi.robot.mechanisms.system_programs import SystemPrograms


@with_late_methods
class System(SystemPrograms):
    """Mechanisms held together by constraints. q and v are those of `robot`, the forest of all mechanisms (an object is a
    body with a free joint), one after the other; tau is (..., nv), or (..., na) for the actuated coordinates alone.

    Constraints act on accelerations; `assemble` closes the loops, `project` puts a state back on the constraints.
    """

    # -- dynamics ----------------------------------------------------------------------------------------------------------

    def function(self, name: str, frames: Sequence[str] = (), axes: str = "world") -> ClosedCall:
        """ "forward_dynamics" or "contact_forces" as a function of (q, v, tau), with derivatives: those of what the method
        `forward_dynamics` gives, by the implicit function theorem. Wrenches on `frames` are its last argument. Or
        "inverse_dynamics" as one of (q, v, a), without wrenches.

        >>> import psiphi as pp
        >>> loop = pp.connect(pp.load("pelican"), [pp.Loop("distance", "tool", "world", length=0.3)])
        >>> by_q, by_v = loop.function("forward_dynamics").jacobian("q", "v")(loop.assemble([0.5, 1.0]), [0, 0], [1, 0])
        >>> by_q.shape, by_v.shape
        ((2, 2), (2, 2))
        """
        if not isinstance(name, str) or name not in (*NAMES, TORQUES):
            raise StateError(
                f"no function {shown(name)} of a closed system", nearest(name, (*NAMES, TORQUES))
            )
        argument_checks.check_axes(axes)
        known = argument_checks.names(self.robot.model, frames)
        if name == TORQUES and known:
            raise StateError(
                f"{name}: wrenches on {', '.join(known)}",
                f"leave frames out: {name} as a function takes none",
            )
        if name == TORQUES:
            return self.torque_function
        if name == FORCES and not self.contacts:
            raise StateError(
                f"{self.name} has no contacts: joints follow others", 'ask for "forward_dynamics"'
            )
        return self.closed_function(name, known, axes)

    def closed_function(
        self, name: str, frames: tuple[str, ...] = (), axes: str = "world", motors: bool = False
    ) -> ClosedFunction:
        """One such function, made once; with `motors` tau is theirs alone."""
        key = name, frames, axes, motors
        if key not in self._closed_functions:
            self._closed_functions[key] = ClosedFunction(self, *key)
        return self._closed_functions[key]

    @cached_property
    def torque_function(self) -> ClosedTorques:
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

        -> a (..., nv); with `forces` also the wrenches [moment; force] (..., l, 6) every contact imparts to the body of its
        second frame (the object), in world axes, at the contact (the origin of the first frame). `method` is "RCCFD1" ..
        "RCCFD3" of S4, or "KKT" (dense). Forces are of least norm where constraints are redundant. An element no acceleration
        fits, or more than one, is NaN; a single state, or any with check=True, raises `SingularError` with the arm, the
        contact and the direction. v is taken to keep the constraints: of the bias what is zero then is left out. Tensors of
        torch and arrays of JAX give the same back, with gradients.
        """
        loads = {} if f_ext is None else argument_checks.mapping(f_ext)
        if any(map(is_foreign, (q, v, tau, *loads.values()))):
            names = NAMES if flag("forces", forces) else NAMES[:1]
            return self._in_their_library((q, v, tau), names, loads, axes, method, check)
        details = self.forward_dynamics_details(q, v, tau, f_ext, axes, method, check)
        return (details["a"], details["forces"]) if flag("forces", forces) else details["a"]

    def _in_their_library(
        self, state, names, loads, axes: str, method: str | None, check: bool
    ) -> Any:
        """Arrays of torch or JAX: the same, with their library's derivatives."""
        if method is not None or check is not False:
            word = "method" if method is not None else "check"
            raise StateError(
                f"forward_dynamics: {word}= is for NumPy arrays, and these are not",
                f"leave {word}= out",
            )
        more = (argument_checks.stack_wrenches(loads),) if loads else ()
        found = [self.function(name, tuple(loads), axes)(*state, *more) for name in names]
        return found[0] if len(found) == 1 else tuple(found)

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
        argument_checks.check_axes(axes)
        return closed_forward_dynamics.details(self, q, v, tau, f_ext, axes, method, check)

    if TYPE_CHECKING:  # implemented in a later package

        def linearize(
            self, q: Numbers, v: Numbers, tau: Numbers, dt: float | None = None, method: str = "rk4"
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
        """M a + C v + g = tau + Jc* lambda + J* f_ext, tau zero where there is no motor.

        Torques (..., nv) for a desired motion that keeps the constraints. What the contacts must carry is shared by least
        sum |f_i|^2 / share_i (`share`: one positive number a contact); `internal` (..., l, 6) are wrenches to squeeze with,
        of which the part that moves nothing is added. With `forces` also the contact wrenches as forward_dynamics gives.
        An element whose motion no torque makes is NaN; a single state, or any with check=True, raises `StateError`.
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
        """The acceleration nearest to `a` with Jc a + bias = 0 that the motors can drive; joints named in `exactly` accelerate
        as `a` says.

        To drive an object along a path: fill in its part of `a`, name its joint, and let the arms follow. A flying base without
        thrusters moves as momentum asks. An element no motion fits is NaN; a single state, or any with check=True, raises.
        """
        return load_distribution.complete(self, q, v, a, exactly, f_ext, axes, check)

    def split_forces(
        self, q: Numbers, forces: Numbers, share: Numbers | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Contact wrenches (..., l, 6) -> (what moves bodies without motors, what only squeezes them); they add up."""
        return load_distribution.split(self, q, forces, share)

    def effective_compliance(
        self, q: Numbers, frame: str | None = None, axes: str = "world"
    ) -> np.ndarray:
        """J N (N* M N)^-1 N* J*, N = null(Jc): what a wrench on `frame` (the object) does to it, loops closed."""
        (q,) = self.state_arrays(q=q)
        J = self.robot.jacobian(q, self._frame_or_object(frame), axes=axes)
        return dense_saddle.compliance(self.robot.mass_matrix(q), self.constraint_jacobian(q), J)

    def effective_inertia(
        self, q: Numbers, frame: str | None = None, axes: str = "world", policy: str = "exact"
    ) -> np.ndarray:
        """The inverse of `effective_compliance`: the inertia one feels at `frame`.

        Where the frame cannot move freely: NaN ("exact"), or the inertia of the directions it can move in ("pseudo").
        """
        return operational_inertia.inverse(self.effective_compliance(q, frame, axes), policy, 1e-12)

    def arm_inertias(self, q: Numbers, axes: str = "world") -> tuple[np.ndarray, np.ndarray]:
        """M(C) and A_i* Lambda_i A_i: the object's own inertia (..., 6, 6), and what each arm adds to it (..., arms, 6, 6).

        Their sum is `effective_inertia`; of another object held in the same places only M(C) is another. At the object's link
        origin; arms that share a body or a loop are one. NaN where an arm cannot follow the object freely: it adds no inertia
        there, it holds.
        """
        return contact_quantities.inertias(self, q, axes)

    # -- constraints -------------------------------------------------------------------------------------------------------

    def constraint_residual(self, q: Numbers, v: Numbers | None = None) -> np.ndarray:
        """(..., 2, m): how far each row is open (metres, radians), and how fast it opens. Without v: (..., m), open alone."""
        rest = v is None
        found = self._call_on_state(self.residual_function, q=q, v=self._at_rest(q) if rest else v)
        return found[..., 0, :] if rest else found

    def constraint_jacobian(self, q: Numbers) -> np.ndarray:
        """Jc (..., m, nv): c = Jc v."""
        return self._call_on_state(self.jacobian_function, q=q)

    def assemble(
        self, q_guess: Numbers, hold: str | Sequence[str] = (), tolerance: float = 1e-11
    ) -> np.ndarray:
        """q with e(q) = 0, every loop closed, near the guess where there is one; joints named in `hold` stay where they are."""
        return loop_closure.assemble(self, q_guess, hold, tolerance)

    def project(
        self, q: Numbers, v: Numbers, tolerance: float = 1e-12
    ) -> tuple[np.ndarray, np.ndarray]:
        """The state moved onto the constraints, least in the metric of the mass matrix; for states that are nearly there."""
        return loop_closure.project(self, q, v, tolerance)

    def constraint_bias(self, q: Numbers, v: Numbers) -> np.ndarray:
        """dJc/dt v (..., m): c' = Jc a + this, whether v keeps the constraints or not."""
        return self._call_on_state(
            self.compiled_function("opening", lambda: system_stages.opening(self.algebra)), q=q, v=v
        )

    def bias_on_constraints(self, q: Numbers, v: Numbers) -> np.ndarray:
        """The same of velocities that keep the constraints: what dynamics take."""
        return self._call_on_state(
            self.compiled_function("bias", lambda: system_stages.bias(self.algebra)), q=q, v=v
        )

    # -- contacts ----------------------------------------------------------------------------------------------------------

    def contact_ratio(self, q: Numbers, forces: Numbers) -> np.ndarray:
        """(..., l): how much of the friction cone a contact uses; above 1 it slips, infinite where it pulls off, 0 if none."""
        return contact_quantities.ratio(self, q, forces)

    def contact_configuration(self, q: Numbers, contact: int | str = 0) -> np.ndarray:
        """The rotation of frame 1 seen from frame 2 as a quaternion x y z w (..., 4): the configuration of a contact."""
        return contact_quantities.configuration(self, q, contact)

    def contact_configuration_rate(
        self, q: Numbers, v: Numbers, contact: int | str = 0
    ) -> np.ndarray:
        """The derivative of `contact_configuration` in time, F(theta) W of S4 (a.4) with W of `contact_rates` (..., 4).

        >>> import numpy as np, psiphi as pp
        >>> case = pp.scenes.load("four_bar")
        >>> case.system.contact_configuration_rate(case.q0, np.zeros(case.system.nv)).shape
        (4,)
        """
        return contact_quantities.configuration_rate(self, q, v, contact)

    def contact_rates(self, q: Numbers, v: Numbers) -> np.ndarray:
        """(..., l, 6): W of S4, V- = V+ + H* W: the motion [w; v] of the second frame's body (the object) as the first (the
        arm's tip) sees it pass, at the contact, in axes of the second."""
        return self._motions(q, v, self._at_rest(q))[0]

    def contact_accelerations(self, q: Numbers, v: Numbers, a: Numbers) -> np.ndarray:
        """(..., l, 6): [w'; v'], the derivative of `contact_rates` in those axes (W' of S4)."""
        return self._motions(q, v, a)[1]

    def _motions(self, q, v, a) -> tuple[np.ndarray, ...]:
        function = self.compiled_function("motions", lambda: system_stages.motions(self.algebra))
        return tuple(
            x[..., : len(self.contacts), :] for x in self._call_on_state(function, q=q, v=v, a=a)
        )

    # -- what it costs, and other numbers -------------------------------------------------------------------------------------

    def flops(self, name: str = "forward_dynamics", method: str | None = None) -> int:
        """Exact operation count of one evaluation of forward_dynamics, by the method that would run."""
        if not isinstance(name, str) or name != "forward_dynamics":
            raise StateError(
                f"no count of {shown(name)} for a closed system", "ask for forward_dynamics"
            )
        return self.dynamics_function(method_name(method), (), "world").count.flops

    def explain(self, method: str | None = None) -> str:
        """The stages of forward dynamics: each an operator equation, what it was rewritten to, its sweeps, and the cost."""
        name = method_name(method)
        return system_explanation.text(
            self.algebra,
            self.dynamics_program(name, (), "world"),
            "" if name else self.chosen_method().why,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mechanisms and their loops to an MJCF .xml file or, where they are one robot, a .urdf file, as `robot.save`
        does: `pp.connect(pp.load(path))` closes them again. One-sided contacts, and which joints have motors, no file says.

        >>> import psiphi as pp
        >>> pp.connect(pp.load("pelican"), [pp.Loop("ball", "tool", "world")]).save(folder / "loop.xml")  # doctest: +SKIP
        """
        if self.robot.embedding is not None and self.robot.embedding.loops:
            cause = f"{self.name}: loops or gears of its mechanisms are embedded, and its own are not: a file has one kind"
            raise StateError(cause, "save the robots it was made of")
        saving.save(
            replace(self.robot, loops=tuple(map(contacts_and_loops.spelled, self.contacts))), path
        )

    def at(self, parameters: Numbers) -> System:
        """The system with the free numbers of its mechanisms, (..., n): one mechanism's after the other's, as they were named.

        One set for all states, or one an element: batch axes are those of all arguments.

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
                f"no number of {self.name} is free",
                'free some of a mechanism: robot.free("inertia")',
            )
        argument_checks.on_host(self.name, parameters)
        refuse_lazy(self.name, "a closed chain looks at its parameters", parameters)
        return self.bind_parameters(frozen_copy(robot.consistent(parameters)))
