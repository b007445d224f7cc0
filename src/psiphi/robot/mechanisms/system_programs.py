"""The compiled functions of a closed system, each by the method with the fewest operations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

from psiphi._util.array_types import AnyArray, Numbers
from psiphi._util.errors import Error, StateError
from psiphi._util.validate import on_gpu
from psiphi.functions import argument_checks
from psiphi.functions.arrays.array_dispatch import full_like
from psiphi.functions.compiled_function import Function
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.model.loops.constraints import Constraint, MimicConstraint
from psiphi.robot.mechanisms.dynamics import (
    closed_inverse_dynamics,
    load_distribution,
    method_choice,
    object_dynamics,
    system_stages,
)
from psiphi.robot.mechanisms.forest import Forest
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra
from psiphi.robot.mechanisms.solve.stage_program import FunctionType, StageProgramCode
from psiphi.robot.robot import Robot

RANK_TOLERANCE = 1e-9  # singular values of Jc below this count as zero


class SystemPrograms(Forest):
    """A forest with compiled functions; each is compiled on its first use."""

    def __init__(
        self,
        robot: Robot,
        constraints: Iterable[Constraint],
        mimics: Iterable[MimicConstraint] = (),
        passive: tuple[str, ...] = (),
        object_body: str = "",
    ):
        super().__init__(robot, constraints, mimics, passive, object_body)
        self._functions: dict[Hashable, Any] = {}
        self._methods: dict[Hashable, method_choice.MethodChoice] = {}

    @cached_property
    def algebra(self) -> Algebra:
        """The operator expressions of the system."""
        return Algebra(self.closure)

    @property
    def residual_function(self) -> Function:
        """(Internal use only) q, v -> [e(q); Jc v]."""
        return self.compiled_function("residual", lambda: system_stages.residual(self.algebra))

    @property
    def jacobian_function(self) -> Function:
        """(Internal use only) q -> Jc."""
        return self.compiled_function("jacobian", lambda: system_stages.jacobian(self.algebra))

    def dynamics_program(self, method: str, frames: tuple[str, ...], axes: str) -> StageProgramCode:
        """(Internal use only) Forward dynamics by a method; "" is the method with the fewest
        operations."""
        if not method:
            return self.chosen_method(frames, axes).program
        if self.algebra.is_thin:
            raise StateError(
                f"{method} needs Omega, which does not exist: the inertia of {self.object} is "
                "singular",
                'leave method= out, or pass method="KKT"',
            )
        return system_stages.dynamics(self.algebra, method, frames, axes)

    def chosen_method(
        self, frames: tuple[str, ...] = (), axes: str = "world", redundant: bool = False
    ) -> method_choice.MethodChoice:
        """(Internal use only) The method of forward dynamics with the fewest operations; cached."""
        key = frames, axes, redundant
        if key not in self._methods:

            def make(method: str) -> StageProgramCode:
                return system_stages.dynamics(self.algebra, method, frames, axes, redundant)

            self._methods[key] = method_choice.choose_method(self.algebra, make)
        return self._methods[key]

    def dynamics_function(self, method: str, frames: tuple[str, ...], axes: str) -> Function:
        """(Internal use only) `dynamics_program`, compiled."""
        return self.compiled_function(
            ("dynamics", method, frames, axes), lambda: self.dynamics_program(method, frames, axes)
        )

    def terms_function(self, frames: tuple[str, ...], axes: str) -> Function:
        """(Internal use only) q, v, tau -> a_f, Omega, Jc a_f + bias."""
        return self.compiled_function(
            ("terms", frames, axes), lambda: system_stages.terms(self.algebra, frames, axes)
        )

    def multiplier_response(self, q: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(Internal use only) M^-1 Jc* lambda (..., nv), and the contact wrenches of lambda (...,
        l, 6)."""
        function = self.compiled_function(
            "correction", lambda: system_stages.correction(self.algebra)
        )
        a, forces = self.call_function(function, (q, lam))
        return a, forces[..., : len(self.contacts), :]

    @property
    def projection_function(self) -> Function:
        """(Internal use only) q, v -> one Newton step of q and of v onto the constraints."""
        return self.compiled_function(
            "projection",
            lambda: system_stages.projection(self.algebra, self.chosen_method().method),
        )

    @property
    def redundant_dynamics_function(self) -> Function:
        """(Internal use only) Forward dynamics that skips redundant rows, for many steps in a
        row."""
        return self.compiled_function(
            "redundant dynamics", lambda: self.chosen_method(redundant=True).program
        )

    @property
    def added_inertia_dynamics_function(self) -> Function:
        """(Internal use only) `redundant_dynamics_function` with D + X in place of D."""
        return self.compiled_function(
            "added inertia dynamics",
            lambda: system_stages.added_inertia_dynamics(
                self.closure, self.chosen_method(redundant=True).method
            ),
        )

    @property
    def redundant_projection_function(self) -> Function:
        """(Internal use only) `projection_function` that skips redundant rows."""
        return self.compiled_function(
            "redundant projection",
            lambda: system_stages.projection(
                self.algebra, self.chosen_method(redundant=True).method, True
            ),
        )

    @property
    def static_torque_function(self) -> Function:
        """(Internal use only) q -> tau that holds the system at rest."""
        return self.compiled_function(
            "static torques",
            lambda: closed_inverse_dynamics.static_torques(self.algebra, self.idle.tolist()),
        )

    @property
    def inverse_dynamics_function(self) -> Function:
        """(Internal use only) q, v, u -> tau of the feasible acceleration nearest to u."""
        return self._inverse_dynamics_function("inverse dynamics", is_shared=False)

    @property
    def shared_inverse_dynamics_function(self) -> Function:
        """(Internal use only) q, v, u, share -> tau as `inverse_dynamics_function`, the load shared
        among the contacts."""
        return self._inverse_dynamics_function("shared inverse dynamics", is_shared=True)

    def _inverse_dynamics_function(self, key: str, is_shared: bool) -> Function:
        def make(method: str) -> StageProgramCode:
            return closed_inverse_dynamics.inverse_dynamics(
                self.algebra, self.idle.tolist(), self._has_floating_motion, method, is_shared
            )

        return self.compiled_function(
            key, lambda: method_choice.choose_method(self.algebra, make, ("free",)).program
        )

    @property
    def constraint_rates_function(self) -> Function:
        """(Internal use only) q, dq -> Jc, dJc: its derivative along dq, for any dq."""
        jacobian = self.compiled_function(
            "differentiable jacobian",
            lambda: system_stages.jacobian(self.algebra),
            DifferentiableFunction,
        )
        return jacobian.jvp("q")

    def constraint_rates(self, q: Numbers, v: Numbers) -> tuple[np.ndarray, np.ndarray]:
        """(Internal use only) Jc and dJc/dt (..., m, nv), for any velocities."""
        q, v = self.state_arrays(q=q, v=v)
        parameters = self.robot.parameter_arguments
        Jc, rate = self.run_function(self.constraint_rates_function, (q, *parameters, v))
        return Jc, rate

    @property
    def _has_floating_motion(self) -> bool:
        """Whether coordinates without motors can move without a contact force (a flying base), in a
        random configuration."""
        Jc = self.call_function(self.jacobian_function, (self.random(seed=0),))
        return bool(load_distribution.unconstrained_motions(Jc[..., self.idle]).any())

    @cached_property
    def has_redundant_rows(self) -> bool:
        """(Internal use only) Whether rows of Jc are dependent in an assembled configuration; False
        without one."""
        try:
            q = self.assemble(self.neutral())  # type: ignore[attr-defined]
        except Error:
            return False
        Jc = self.call_function(self.jacobian_function, (q,))
        return bool(np.linalg.matrix_rank(Jc, tol=RANK_TOLERANCE) < self.nc)

    @property
    def object_torque_function(self) -> Function:
        """(Internal use only) Torques for the desired motion of the held object."""
        grasp = object_dynamics.grasp_map(self)

        def make(method: str) -> StageProgramCode:
            return object_dynamics.object_inverse_dynamics(self.algebra, grasp, method)

        if object_dynamics.GROUND not in grasp.roles:  # no solve with all rows, so one method
            return self.compiled_function("object torques", lambda: make("free"))
        return self.compiled_function(
            "object torques",
            lambda: method_choice.choose_method(self.algebra, make, ("free",)).program,
        )

    @property
    def delassus_function(self) -> Function:
        """(Internal use only) q -> Omega = Jc M^-1 Jc*."""
        return self.compiled_function("omega", lambda: system_stages.omega(self.algebra))

    def compiled_function(
        self,
        key: Hashable,
        make: Callable[[], StageProgramCode],
        kind: type[FunctionType] = Function,
    ) -> FunctionType:
        """(Internal use only) The compiled program of `make`, cached by `key`."""
        if key not in self._functions:
            self._functions[key] = make().compiled(kind)
        return self._functions[key]

    def call_function(self, function: Function, values: Sequence[Any]) -> Any:
        """(Internal use only) The results of a compiled function; bound parameters are appended to
        `values`."""
        return self.run_function(function, (*values, *self.robot.parameter_arguments))

    def _call_on_state(self, function: Function, **arrays: Numbers) -> Any:
        """The results of a compiled function of q, v, a; GPU arrays stay on the GPU."""
        if any(map(on_gpu, arrays.values())):
            return function.run((*arrays.values(), *self.robot.parameter_arguments))
        return self.call_function(function, self.state_arrays(**arrays))

    def _zero_velocity(self, q: Numbers) -> Any:
        """v = 0, in the library of q."""
        return full_like(cast("AnyArray", q), self.nv, 0.0)

    def run_function(self, function: Function, values: Sequence[Any]) -> Any:
        """(Internal use only) The results of a compiled function; its errors become errors about
        the arguments."""
        try:
            with np.errstate(
                all="ignore"
            ):  # callers check the ill-conditioning of a singular Omega
                return function.run(values)
        except (ValueError, TypeError, NotImplementedError) as error:
            argument_checks.raise_state_error(
                self.robot, self.name, function.source, values, None, None, error
            )
