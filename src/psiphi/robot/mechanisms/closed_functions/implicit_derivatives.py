"""First derivatives of forward dynamics and contact forces, by `implicit_theorem.py`.

    jacobian   d result / d argument
    jvp        (result, its change)
    vjp        (result, gradients of its weighted sum)

and, by the nq numbers of q, pushforward and pullback, which torch and JAX use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.errors import SingularError
from psiphi.compiler.autodiff.equation_derivatives import SIGNATURES
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.compiled_function import Function
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.robot.mechanisms.closed_functions import implicit_theorem
from psiphi.robot.mechanisms.closed_functions.closed_call import ClosedCall
from psiphi.robot.mechanisms.closed_functions.closed_hessian import TapeDerivative
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.closed_functions.closed_function import ClosedFunction
    from psiphi.robot.mechanisms.system import System

NamedArrays = list[tuple[str, np.ndarray]]


@dataclass(frozen=True)
class SolvedBatch:
    """Forward dynamics of one batch."""

    values: tuple[np.ndarray, ...]  # the arguments, a and lambda
    result: np.ndarray
    regular: np.ndarray  # whether K is regular (...)
    solvable: np.ndarray  # whether there is a solution (...)


class ClosedDerivative(ClosedCall):
    """A first derivative, by the implicit function theorem; further derivatives are of the tape."""

    kind = ""

    def __init__(self, of: ClosedFunction, names: tuple[str, ...]):
        self.of, self.names, self.system = of, names, of.system
        known = *of.inputs, Argument(PARAMETERS, (of.free_count,))
        inputs, outputs = SIGNATURES[self.kind](of.system.robot.model, known, of.outputs, names)
        self.extra_inputs = inputs[len(known) :]  # changes or weights, behind the arguments
        super().__init__(
            f"{of.name}: {self.kind} by {', '.join(names)}",
            (*of.inputs, *self.extra_inputs),
            outputs,
        )

    def for_torque_shape(self, shape: tuple[int, ...]) -> ClosedCall:
        of = self.of.for_torque_shape(shape)
        return self if of is self.of else of.derivative_by(self.kind, self.names)

    @cached_property
    def traced(self) -> TapeDerivative:
        """The same derivative of the tape."""
        return TapeDerivative(self.of, ((self.kind, self.names),))

    def make_derivative(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        return self.traced.make_derivative(kind, names)

    def run_on_gpu(self, values: Sequence[Any]) -> Any:
        return self.traced.run_on_gpu(values)

    def evaluate_host(self, values: Sequence[Any]) -> list[np.ndarray]:
        state, extra = self.of.read(values, self.extra_inputs)
        results = self.evaluate(self.of.solve(state), extra)
        motors = np.shape(values[2])[-1] != self.system.nv
        return [
            x[..., self.system.actuated] if motors and name == "tau" else x for name, x in results
        ]

    def evaluate(self, at: SolvedBatch, extra: list[np.ndarray]) -> NamedArrays:
        """(argument, derivative) pairs; the name of a result itself is ""."""
        raise NotImplementedError

    def equations(self) -> DifferentiableFunction:
        """r1, r2 and, for contact forces, the forces, as functions of the arguments, a and
        lambda."""
        of, forces = self.of, self.of.is_forces
        key = "equations of motion", of.frames, of.axes, forces
        return self.system.compiled_function(
            key,
            lambda: implicit_theorem.equations_of_motion(
                self.system.algebra, of.frames, of.axes, forces
            ),
            DifferentiableFunction,
        )

    def run_traced(
        self, function: Function, *values: np.ndarray, system: System | None = None
    ) -> tuple[np.ndarray, ...]:
        """The results of a derivative of `equations`, with the parameters behind its arguments."""
        n, own = len(self.of.inputs) + 2, system or self.system
        results = own.run_function(
            function, (*values[:n], *own.robot.parameter_arguments, *values[n:])
        )
        return results if isinstance(results, tuple) else (results,)

    def sensitivity(
        self, at: SolvedBatch, dr2: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """d result / d(r1, r2, forces) (..., size, nv + m, or more), and the additional derivative
        by q that keeps the multipliers of least norm (..., size, nv).

        `dr2` are changes of r2 that must be consistent.
        """
        system, nv, m = self.system, self.system.nv, self.system.nc
        batch, q, forces = at.regular.shape, at.values[0], self.of.is_forces
        matrix = np.full((*batch, nv + m * forces, nv + m), np.nan)
        by_q, regular = np.zeros((*batch, m, nv)), at.regular
        if regular.any():
            inverse = system.compiled_function(
                ("inverse", forces), lambda: implicit_theorem.saddle_inverse(system.algebra, forces)
            )
            matrix, ill_conditioning = map(np.array, system.call_function(inverse, (q,)))
            regular = regular & (ill_conditioning < ILL_CONDITIONED)
            regular = regular & np.isfinite(matrix).all(axis=(-2, -1))
        rest = ~regular
        if rest.any():
            matrix[rest], by_q[rest] = self._dense_inverse(at, rest, dr2, matrix.shape[-2])
        if not forces:
            return matrix, np.zeros((*batch, nv, nv))
        unit = (
            system.with_sample_axis()
            .multiplier_response(q[..., None, :], np.eye(m))[1]
            .reshape(*batch, m, 6 * len(system.contacts))
        )
        by_lam = np.swapaxes(unit, -1, -2)
        size = by_lam.shape[-2]
        by_forces = np.broadcast_to(np.eye(size), (*batch, size, size))
        return np.concatenate([by_lam @ matrix[..., nv:, :], by_forces], axis=-1), by_lam @ by_q

    def _dense_inverse(
        self, at: SolvedBatch, rest: np.ndarray, dr2: np.ndarray | None, rows: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same of (a, lambda) by dense algebra, for the elements `rest`; the first `rows` rows.
        NaN if there is no derivative."""
        system, q = self.system.at_elements(rest.shape, rest), at.values[0][rest]
        mass, Jc = system.robot.mass_matrix(q), system.constraint_jacobian(q)
        matrix, by_q = np.full((len(q), *[system.nv + system.nc] * 2), np.nan), np.zeros(Jc.shape)
        regular, redundant = at.regular[rest], (at.solvable & ~at.regular)[rest]
        matrix[regular] = implicit_theorem.dense_saddle_inverse(mass[regular], Jc[regular])
        if redundant.any():
            matrix[redundant], by_q[redundant] = self._redundant_inverse(
                at, mass[redundant], Jc[redundant], at.solvable & ~at.regular, dr2
            )
        return matrix[:, :rows], by_q

    def _redundant_inverse(
        self,
        at: SolvedBatch,
        mass: np.ndarray,
        Jc: np.ndarray,
        rest: np.ndarray,
        dr2: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same for the elements `rest`, whose rows are redundant; one rank at a time."""
        system = self.system.at_elements(rest.shape, rest)
        values = tuple(x[rest] for x in at.values)
        jacobian = self.equations().jacobian("q", "v")
        r2_by_q, r2_by_v = self.run_traced(jacobian, *values, system=system)[2:4]
        ranks = implicit_theorem.ranks(Jc)
        matrix = np.full((len(Jc), *[system.nv + system.nc] * 2), np.nan)
        by_q = np.zeros(Jc.shape)
        rate_by_q = system.compiled_function(
            "rates",
            lambda: implicit_theorem.constraint_rates(system.algebra),
            DifferentiableFunction,
        ).jacobian("q")
        for rank in np.unique(ranks):
            here = ranks == rank
            more = system.at_elements(here.shape, here).robot.parameter_arguments

            def rate(q: np.ndarray, x: np.ndarray, more: tuple[Any, ...] = more) -> np.ndarray:
                return system.run_function(rate_by_q, (q, x, *more))

            split = implicit_theorem.RangeNullSplit(Jc[here], int(rank))
            point = implicit_theorem.RankPoint(
                values[0][here],
                values[1][here],
                rate,
                Jc[here],
                split,
                implicit_theorem.position_rows(system.algebra),
            )
            good = np.ones(here.sum(), dtype=bool)
            if {"q", "v"} & set(self.names):
                good = point.has_constant_rank(r2_by_q[here], r2_by_v[here])
            if PARAMETERS in self.names and system.robot.free_blocks("offsets"):
                good[:] = False  # rows are redundant for these joint positions alone
            if dr2 is not None:
                change = dr2[rest][here][..., None]
                good &= split.is_consistent(change, np.abs(change).max(axis=(-2, -1)))
            inverse = split.saddle_inverse(mass[here])
            matrix[here] = np.where(good[:, None, None], inverse, np.nan)
            by_q[here] = point.least_norm_change(values[-1][here])
        if not at.regular.ndim and np.isnan(matrix).any():
            raise SingularError(
                f"{self.name}: no derivative here: redundant constraints do not stay redundant "
                "along this change",
                "change q and v together, as the constraints allow (Jc dq = 0), or start from "
                "another configuration",
            )
        return matrix, by_q


class ClosedJacobian(ClosedDerivative):
    """d result / d argument = sensitivity @ d(equations) / d argument."""

    kind = "jacobian"

    def make_derivative(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        return ClosedCall.make_derivative(self, kind, names)

    def evaluate(self, at: SolvedBatch, extra: list[np.ndarray]) -> NamedArrays:
        sensitivity, by_q = self.sensitivity(at)
        equations = self.run_traced(self.equations().jacobian(*self.names), *at.values)
        results = []
        for i, name in enumerate(self.names):
            total: Any = by_q if name == "q" else 0.0
            start = 0
            for part in equations[i :: len(self.names)]:
                total = total + sensitivity[..., start : start + part.shape[-2]] @ part
                start += part.shape[-2]
            shape = (*at.regular.shape, *self.of.outputs[0].shape, total.shape[-1])
            results.append((name, total.reshape(shape)))
        return results


class ClosedJvp(ClosedDerivative):
    """d result = sensitivity @ d(equations)."""

    kind = "jvp"

    def evaluate(self, at: SolvedBatch, extra: list[np.ndarray]) -> NamedArrays:
        changes = dict(zip(self.names, extra, strict=True))
        jvp = self.equations().jvp(*self.names)
        equations = self.run_traced(jvp, *at.values, *changes.values())
        equations = equations[len(equations) // 2 :]
        sensitivity, by_q = self.sensitivity(at, equations[1])
        total = sensitivity @ np.concatenate(equations, axis=-1)[..., None]
        if "q" in changes:
            total = total + by_q @ changes["q"][..., None]
        return [("", at.result), ("", total.reshape(at.result.shape))]


class ClosedVjp(ClosedDerivative):
    """Gradients of w . result: the vjp of the equations with weights sensitivity* w."""

    kind = "vjp"

    def evaluate(self, at: SolvedBatch, extra: list[np.ndarray]) -> NamedArrays:
        sensitivity, by_q = self.sensitivity(at)
        w = extra[0].reshape(*at.regular.shape, 1, self.of.outputs[0].size)
        weights, nv, m = (w @ sensitivity)[..., 0, :], self.system.nv, self.system.nc
        parts = np.split(weights, [nv, nv + m], axis=-1)[: 3 if self.of.is_forces else 2]
        vjp = self.equations().vjp(*self.names)
        gradients = self.run_traced(vjp, *at.values, *parts)[len(parts) :]
        results = [("", at.result)]
        for name, gradient in zip(self.names, gradients, strict=True):
            results.append((name, gradient + (w @ by_q)[..., 0, :] if name == "q" else gradient))
        return results


# -- derivatives by the nq numbers of q ------------------------------------------------------------


class ClosedPushforward(ClosedJvp):
    """The change of the result alone, for changes of the nq numbers of q."""

    kind = "pushforward"

    def evaluate(self, at: SolvedBatch, extra: list[np.ndarray]) -> NamedArrays:
        velocity = self.system.robot.manifold.velocity
        tangents = [
            velocity(at.values[0], x) if n == "q" else x
            for n, x in zip(self.names, extra, strict=True)
        ]
        return super().evaluate(at, tangents)[1:]


class ClosedPullback(ClosedVjp):
    """The gradients alone, by the nq numbers of q."""

    kind = "pullback"

    def evaluate(self, at: SolvedBatch, extra: list[np.ndarray]) -> NamedArrays:
        results = super().evaluate(at, extra)[1:]
        gradient = self.system.robot.manifold.coordinate_gradient
        return [(n, gradient(at.values[0], x) if n == "q" else x) for n, x in results]


FIRST = {
    x.kind: x for x in (ClosedJacobian, ClosedJvp, ClosedVjp, ClosedPushforward, ClosedPullback)
}
