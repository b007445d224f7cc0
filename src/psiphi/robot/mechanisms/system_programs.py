"""What a closed system has compiled: a program a function, the cheapest form of those that have several."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.validate import on_gpu
from psiphi.functions import argument_checks
from psiphi.functions.arrays.array_dispatch import full
from psiphi.functions.compiled_function import Function
from psiphi.robot.mechanisms.dynamics import (
    closed_inverse_dynamics,
    load_distribution,
    method_choice,
    object_dynamics,
    system_stages,
)
from psiphi.robot.mechanisms.forest import Forest
from psiphi.robot.mechanisms.solve.delassus_operator import Algebra
from psiphi.robot.mechanisms.solve.stage_program import StageProgramCode
from psiphi.robot.robot import Robot

SPARE = 1e-9  # a singular value of Jc below it is none


class SystemPrograms(Forest):
    """A forest whose functions are compiled when they are first asked for."""

    def __init__(
        self,
        robot: Robot,
        constraints,
        follows=(),
        passive: tuple[str, ...] = (),
        object_body: str = "",
    ):
        super().__init__(robot, constraints, follows, passive, object_body)
        self._functions: dict[Any, Function] = {}
        self._forms: dict[Any, method_choice.MethodChoice] = {}

    @cached_property
    def algebra(self) -> Algebra:
        return Algebra(self.closure)

    @property
    def residual_function(self) -> Function:
        return self.compiled_function("residual", lambda: system_stages.residual(self.algebra))

    @property
    def jacobian_function(self) -> Function:
        return self.compiled_function("jacobian", lambda: system_stages.jacobian(self.algebra))

    def dynamics_program(self, method: str, frames: tuple[str, ...], axes: str) -> StageProgramCode:
        if not method:
            return self.chosen_method(frames, axes).circuit
        if self.algebra.is_thin:
            cause = (
                f"{method} needs Omega, and {self.object} has no inertia of its own about some axis"
            )
            raise StateError(cause, "leave method= out, or ask for KKT")
        return system_stages.dynamics(self.algebra, method, frames, axes)

    def chosen_method(
        self, frames: tuple[str, ...] = (), axes: str = "world", redundant: bool = False
    ) -> method_choice.MethodChoice:
        """The form with the fewest operations, counted once."""
        key = frames, axes, redundant
        if key not in self._forms:

            def make(method):
                return system_stages.dynamics(self.algebra, method, frames, axes, redundant)

            self._forms[key] = method_choice.cheapest(self.algebra, make)
        return self._forms[key]

    def dynamics_function(self, method: str, frames: tuple[str, ...], axes: str) -> Function:
        return self.compiled_function(
            ("dynamics", method, frames, axes), lambda: self.dynamics_program(method, frames, axes)
        )

    def terms_function(self, frames: tuple[str, ...], axes: str) -> Function:
        return self.compiled_function(
            ("terms", frames, axes), lambda: system_stages.terms(self.algebra, frames, axes)
        )

    def multiplier_response(self, q, lam) -> tuple[np.ndarray, np.ndarray]:
        """M^-1 Jc* lambda, and the contact forces of lambda."""
        function = self.compiled_function(
            "correction", lambda: system_stages.correction(self.algebra)
        )
        a, forces = self.call_function(function, (q, lam))
        return a, forces[..., : len(self.contacts), :]

    @property
    def projection_function(self) -> Function:
        return self.compiled_function(
            "projection",
            lambda: system_stages.projection(self.algebra, self.chosen_method().method),
        )

    @property
    def redundant_dynamics_function(self) -> Function:
        """Forward dynamics for many steps in a row: rows that follow from others are left out."""
        return self.compiled_function("motion", lambda: self.chosen_method(redundant=True).circuit)

    @property
    def added_inertia_dynamics_function(self) -> Function:
        """`_motion` with D + X in place of D."""
        return self.compiled_function(
            "heavier",
            lambda: system_stages.heavier_dynamics(
                self.closure, self.chosen_method(redundant=True).method
            ),
        )

    @property
    def redundant_projection_function(self) -> Function:
        """`_projection`, rows that follow from others left out."""
        return self.compiled_function(
            "closing",
            lambda: system_stages.projection(
                self.algebra, self.chosen_method(redundant=True).method, True
            ),
        )

    @property
    def static_torque_function(self) -> Function:
        return self.compiled_function(
            "holding", lambda: closed_inverse_dynamics.holding(self.algebra, self.idle.tolist())
        )

    @property
    def inverse_dynamics_function(self) -> Function:
        def make(method: str) -> StageProgramCode:
            return closed_inverse_dynamics.driving(
                self.algebra, self.idle.tolist(), self._is_adrift, method
            )

        return self.compiled_function(
            "driving", lambda: method_choice.cheapest(self.algebra, make, ("free",)).circuit
        )

    @property
    def _is_adrift(self) -> bool:
        """Whether joints without motors can move so that no contact feels it, in some posture."""
        return bool(
            load_distribution.unfelt(
                self.call_function(self.jacobian_function, (self.random(seed=0),))[..., self.idle]
            ).any()
        )

    @cached_property
    def has_redundant_rows(self) -> bool:
        """Whether rows of the constraints follow from others where the mechanism is closed."""
        try:
            q = self.assemble(self.neutral())  # type: ignore[attr-defined]
        except Error:  # nobody knows, then
            return False
        return bool(
            np.linalg.matrix_rank(self.call_function(self.jacobian_function, (q,)), tol=SPARE)
            < self.nc
        )

    @property
    def object_torque_function(self) -> Function:
        holding = object_dynamics.held(self)

        def make(method: str) -> StageProgramCode:
            return object_dynamics.carrying(self.algebra, holding, method)

        if object_dynamics.GROUND not in holding.roles:  # arm by arm: nothing to choose
            return self.compiled_function("carrying", lambda: make("free"))
        return self.compiled_function(
            "carrying", lambda: method_choice.cheapest(self.algebra, make, ("free",)).circuit
        )

    @property
    def delassus_function(self) -> Function:
        return self.compiled_function("omega", lambda: system_stages.omega(self.algebra))

    def compiled_function(self, key: Any, make, kind: type[Function] = Function) -> Any:
        if key not in self._functions:
            self._functions[key] = make().compiled(kind)
        return self._functions[key]

    def call_function(self, function: Function, values) -> Any:
        return self.run_function(function, (*values, *self.robot.parameter_arguments))

    def _call_on_state(self, function: Function, **arrays: Any) -> Any:
        """A compiled function of the state and nothing behind it: arrays of a graphics card stay there."""
        if any(map(on_gpu, arrays.values())):
            return function.run((*arrays.values(), *self.robot.parameter_arguments))
        return self.call_function(function, self.state_arrays(**arrays))

    def _at_rest(self, q: Any) -> Any:
        """No velocity, where q is."""
        return full(q, self.nv, 0.0) if on_gpu(q) else np.zeros(self.nv)

    def run_function(self, function: Function, values) -> Any:
        try:
            with np.errstate(
                all="ignore"
            ):  # a singular Omega divides by zero; what came of it is looked at
                return function.run(values)
        except (ValueError, TypeError, NotImplementedError) as error:
            argument_checks.retell(
                self.robot, self.name, function.source, values, None, None, error
            )
