"""What a closed system has compiled: a program a function, the cheapest form of those that have several."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.validate import on_card
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
    def _residual(self) -> Function:
        return self._function("residual", lambda: system_stages.residual(self.algebra))

    @property
    def _jacobian(self) -> Function:
        return self._function("jacobian", lambda: system_stages.jacobian(self.algebra))

    def _circuit(self, method: str, frames: tuple[str, ...], axes: str) -> StageProgramCode:
        if not method:
            return self._chosen(frames, axes).circuit
        if self.algebra.is_thin:
            cause = (
                f"{method} needs Omega, and {self.object} has no inertia of its own about some axis"
            )
            raise StateError(cause, "leave method= out, or ask for KKT")
        return system_stages.dynamics(self.algebra, method, frames, axes)

    def _chosen(
        self, frames: tuple[str, ...] = (), axes: str = "world", redundant: bool = False
    ) -> method_choice.MethodChoice:
        """The form with the fewest operations, counted once."""
        key = frames, axes, redundant
        if key not in self._forms:

            def make(method):
                return system_stages.dynamics(self.algebra, method, frames, axes, redundant)

            self._forms[key] = method_choice.cheapest(self.algebra, make)
        return self._forms[key]

    def _dynamics(self, method: str, frames: tuple[str, ...], axes: str) -> Function:
        return self._function(
            ("dynamics", method, frames, axes), lambda: self._circuit(method, frames, axes)
        )

    def _terms(self, frames: tuple[str, ...], axes: str) -> Function:
        return self._function(
            ("terms", frames, axes), lambda: system_stages.terms(self.algebra, frames, axes)
        )

    def _corrected(self, q, lam) -> tuple[np.ndarray, np.ndarray]:
        """M^-1 Jc* lambda, and the contact forces of lambda."""
        function = self._function("correction", lambda: system_stages.correction(self.algebra))
        a, forces = self._call(function, (q, lam))
        return a, forces[..., : len(self.contacts), :]

    @property
    def _projection(self) -> Function:
        return self._function(
            "projection", lambda: system_stages.projection(self.algebra, self._chosen().method)
        )

    @property
    def _motion(self) -> Function:
        """Forward dynamics for many steps in a row: rows that follow from others are left out."""
        return self._function("motion", lambda: self._chosen(redundant=True).circuit)

    @property
    def _heavier(self) -> Function:
        """`_motion` with D + X in place of D."""
        return self._function(
            "heavier",
            lambda: system_stages.heavier_dynamics(
                self.closure, self._chosen(redundant=True).method
            ),
        )

    @property
    def _closing(self) -> Function:
        """`_projection`, rows that follow from others left out."""
        return self._function(
            "closing",
            lambda: system_stages.projection(
                self.algebra, self._chosen(redundant=True).method, True
            ),
        )

    @property
    def _holding(self) -> Function:
        return self._function(
            "holding", lambda: closed_inverse_dynamics.holding(self.algebra, self.idle.tolist())
        )

    @property
    def _driving(self) -> Function:
        def make(method: str) -> StageProgramCode:
            return closed_inverse_dynamics.driving(
                self.algebra, self.idle.tolist(), self._is_adrift, method
            )

        return self._function(
            "driving", lambda: method_choice.cheapest(self.algebra, make, ("free",)).circuit
        )

    @property
    def _is_adrift(self) -> bool:
        """Whether joints without motors can move so that no contact feels it, in some posture."""
        return bool(
            load_distribution.unfelt(
                self._call(self._jacobian, (self.random(seed=0),))[..., self.idle]
            ).any()
        )

    @cached_property
    def _has_spare_rows(self) -> bool:
        """Whether rows of the constraints follow from others where the mechanism is closed."""
        try:
            q = self.assemble(self.neutral())  # type: ignore[attr-defined]
        except Error:  # nobody knows, then
            return False
        return bool(np.linalg.matrix_rank(self._call(self._jacobian, (q,)), tol=SPARE) < self.nc)

    @property
    def _carrying(self) -> Function:
        holding = object_dynamics.held(self)

        def make(method: str) -> StageProgramCode:
            return object_dynamics.carrying(self.algebra, holding, method)

        if object_dynamics.GROUND not in holding.roles:  # arm by arm: nothing to choose
            return self._function("carrying", lambda: make("free"))
        return self._function(
            "carrying", lambda: method_choice.cheapest(self.algebra, make, ("free",)).circuit
        )

    @property
    def _omega(self) -> Function:
        return self._function("omega", lambda: system_stages.omega(self.algebra))

    def _function(self, key: Any, make, kind: type[Function] = Function) -> Any:
        if key not in self._functions:
            self._functions[key] = make().compiled(kind)
        return self._functions[key]

    def _call(self, function: Function, values) -> Any:
        return self._run(function, (*values, *self.robot._more))

    def _alone(self, function: Function, **arrays: Any) -> Any:
        """A compiled function of the state and nothing behind it: arrays of a graphics card stay there."""
        if any(map(on_card, arrays.values())):
            return function.run((*arrays.values(), *self.robot._more))
        return self._call(function, self._state(**arrays))

    def _at_rest(self, q: Any) -> Any:
        """No velocity, where q is."""
        return full(q, self.nv, 0.0) if on_card(q) else np.zeros(self.nv)

    def _run(self, function: Function, values) -> Any:
        try:
            with np.errstate(
                all="ignore"
            ):  # a singular Omega divides by zero; what came of it is looked at
                return function.run(values)
        except (ValueError, TypeError, NotImplementedError) as error:
            argument_checks.retell(
                self.robot, self.name, function.source, values, None, None, error
            )
