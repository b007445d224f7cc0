"""First derivatives of what a closed system computes: `implicit_theorem.py` has the mathematics, redundant constraints included.

    jacobian   d result / d argument        jvp   (result, its change)        vjp   (result, gradients of its weighted sum)

and, by the nq numbers of q, pushforward and pullback, which libraries with gradients of their own ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.errors import SingularError
from psiphi.compiler.autodiff.equation_derivatives import KINDS
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions.differentiable_function import DifferentiableFunction
from psiphi.robot.mechanisms.closed_functions import implicit_theorem
from psiphi.robot.mechanisms.closed_functions.closed_call import ClosedCall
from psiphi.robot.mechanisms.closed_functions.closed_hessian import TapeDerivative
from psiphi.robot.mechanisms.solve.redundant_constraints import STRAIN

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.closed_functions.closed_function import ClosedFunction

NamedSlopes = list[tuple[str, np.ndarray]]


@dataclass(frozen=True)
class SolvedBatch:
    """The arguments of the laws, of one batch; what is asked for there; where K has an inverse; where there is an answer."""

    values: tuple[np.ndarray, ...]
    result: np.ndarray
    regular: np.ndarray
    solvable: np.ndarray


class ClosedDerivative(ClosedCall):
    """A derivative of a function of a closed system by the theorem; its own derivatives are those of the traced code."""

    kind = ""

    def __init__(self, of: ClosedFunction, names: tuple[str, ...]):
        self.of, self.names, self.system = of, names, of.system
        known = *of.inputs, Argument(PARAMETERS, (of.free,))
        inputs, outputs = KINDS[self.kind](of.system.robot.model, known, of.outputs, names)
        self.more = inputs[len(known) :]  # what comes behind the arguments
        super().__init__(
            f"{of.name}: {self.kind} by {', '.join(names)}", (*of.inputs, *self.more), outputs
        )

    def taking(self, tau: tuple[int, ...]) -> ClosedCall:
        of = self.of.taking(tau)
        return self if of is self.of else of._derivative(self.kind, self.names)

    @cached_property
    def traced(self) -> TapeDerivative:
        """The same of the traced code."""
        return TapeDerivative(self.of, ((self.kind, self.names),))

    def derived(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        return self.traced.derived(kind, names)

    def on_cards(self, values: Sequence[Any]) -> Any:
        return self.traced.on_cards(values)

    def answers(self, values: Sequence[Any]) -> list[np.ndarray]:
        state, behind = self.of.read(values, self.more)
        found = self.evaluate(self.of.solved(state), behind)
        motors = np.shape(values[2])[-1] != self.system.nv
        return [
            x[..., self.system.actuated] if motors and name == "tau" else x for name, x in found
        ]

    def evaluate(self, at: SolvedBatch, behind: list[np.ndarray]) -> NamedSlopes:
        """(argument, derivative) pairs; results themselves are called ""."""
        raise NotImplementedError

    def laws(self) -> DifferentiableFunction:
        of, forces = self.of, self.of.is_forces
        key = "laws", of.frames, of.axes, forces
        return self.system.compiled_function(
            key,
            lambda: implicit_theorem.laws(self.system.algebra, of.frames, of.axes, forces),
            DifferentiableFunction,
        )

    def run(self, function: Any, *values: np.ndarray, system: Any = None) -> tuple[np.ndarray, ...]:
        """The results of a compiled function; free numbers stand behind its own arguments."""
        n, own = len(self.of.inputs) + 2, system or self.system
        found = own.run_function(
            function, (*values[:n], *own.robot.parameter_arguments, *values[n:])
        )
        return found if isinstance(found, tuple) else (found,)

    def answer(
        self, at: SolvedBatch, dr2: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """How the result changes with the laws (..., size, nv + m + size or less), and besides with q where multipliers of
        least norm are to stay so (..., size, nv). `dr2` are changes of r2 that must be possible."""
        system, nv, m = self.system, self.system.nv, self.system.nc
        lead, q, forces = at.regular.shape, at.values[0], self.of.is_forces
        matrix, slack, good = (
            np.full((*lead, nv + m * forces, nv + m), np.nan),
            np.zeros((*lead, m, nv)),
            at.regular,
        )
        if good.any():
            made = system.compiled_function(
                ("inverse", forces), lambda: implicit_theorem.inverse(system.algebra, forces)
            )
            matrix, strain = map(np.array, system.call_function(made, (q,)))
            good = good & (strain < STRAIN) & np.isfinite(matrix).all(axis=(-2, -1))
        rest = ~good
        if rest.any():
            matrix[rest], slack[rest] = self._looked_at(at, rest, dr2, matrix.shape[-2])
        if not forces:
            return matrix, np.zeros((*lead, nv, nv))
        unit = (
            system.with_sample_axis()
            .multiplier_response(q[..., None, :], np.eye(m))[1]
            .reshape(*lead, m, 6 * len(system.contacts))
        )
        by_lam = np.swapaxes(unit, -1, -2)
        own = np.broadcast_to(np.eye(by_lam.shape[-2]), (*lead, by_lam.shape[-2], by_lam.shape[-2]))
        return np.concatenate([by_lam @ matrix[..., nv:, :], own], axis=-1), by_lam @ slack

    def _looked_at(
        self, at: SolvedBatch, rest: np.ndarray, dr2: np.ndarray | None, rows: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The first rows of -K^-1, or of what takes its place, and the slack, where Omega is of no use; NaN: no answer."""
        system, q = self.system.at_elements(rest.shape, rest), at.values[0][rest]
        mass, Jc = system.robot.mass_matrix(q), system.constraint_jacobian(q)
        matrix, slack = np.full((len(q), *[system.nv + system.nc] * 2), np.nan), np.zeros(Jc.shape)
        whole, loose = at.regular[rest], (at.solvable & ~at.regular)[rest]
        matrix[whole] = implicit_theorem.regular(mass[whole], Jc[whole])
        if loose.any():
            matrix[loose], slack[loose] = self._redundant(
                at, mass[loose], Jc[loose], at.solvable & ~at.regular, dr2
            )
        return matrix[:, :rows], slack

    def _redundant(
        self,
        at: SolvedBatch,
        mass: np.ndarray,
        Jc: np.ndarray,
        rest: np.ndarray,
        dr2: np.ndarray | None,
    ) -> Any:
        """The same of (a, lambda) where rows follow from others: states of one rank at a time."""
        system = self.system.at_elements(rest.shape, rest)
        values = tuple(x[rest] for x in at.values)
        by_q, by_v = self.run(self.laws().jacobian("q", "v"), *values, system=system)[2:4]
        own, found = (
            implicit_theorem.ranks(Jc),
            (np.full((len(Jc), *[system.nv + system.nc] * 2), np.nan), np.zeros(Jc.shape)),
        )
        rate = system.compiled_function(
            "rates", lambda: implicit_theorem.rates(system.algebra), DifferentiableFunction
        ).jacobian("q")
        for rank in np.unique(own):
            here = own == rank
            more = system.at_elements(here.shape, here).robot.parameter_arguments
            turned = lambda q, x, more=more: system.run_function(rate, (q, x, *more))  # noqa: E731
            parts = implicit_theorem.RangeNullSplit(Jc[here], int(rank))
            point = implicit_theorem.RankPoint(
                values[0][here],
                values[1][here],
                turned,
                Jc[here],
                parts,
                implicit_theorem.holding(system.algebra),
            )
            good = np.ones(here.sum(), dtype=bool)
            if {"q", "v"} & set(self.names):
                good = point.smooth(by_q[here], by_v[here])
            if PARAMETERS in self.names and any(
                block.word == "offsets" for block in system.robot.freed.blocks
            ):
                good[:] = False  # a redundant row is kept by these places alone, not beside them
            if dr2 is not None:
                change = dr2[rest][here][..., None]
                good &= parts.keeps(change, np.abs(change).max(axis=(-2, -1)))
            found[0][here] = np.where(good[:, None, None], parts.answer(mass[here]), np.nan)
            found[1][here] = point.slack(values[-1][here])
        if not at.regular.ndim and np.isnan(found[0]).any():
            raise SingularError(
                f"{self.name}: no derivative here: constraints that follow from others do not stay so along this change",
                "change q and v together, as the constraints allow (Jc dq = 0), or start from another configuration",
            )
        return found


class ClosedJacobian(ClosedDerivative):
    """d result / d argument = answer d(laws)/d argument."""

    kind = "jacobian"

    def derived(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        return ClosedCall.derived(self, kind, names)

    def evaluate(self, at: SolvedBatch, behind: list[np.ndarray]) -> NamedSlopes:
        answer, slack = self.answer(at)
        laws = self.run(self.laws().jacobian(*self.names), *at.values)
        found = []
        for i, name in enumerate(self.names):
            whole: Any = slack if name == "q" else 0.0
            start = 0
            for part in laws[i :: len(self.names)]:
                whole = whole + answer[..., start : start + part.shape[-2]] @ part
                start += part.shape[-2]
            found.append(
                (name, whole.reshape(*at.regular.shape, *self.of.outputs[0].shape, whole.shape[-1]))
            )
        return found


class ClosedJvp(ClosedDerivative):
    """d result = answer d(laws)."""

    kind = "jvp"

    def evaluate(self, at: SolvedBatch, behind: list[np.ndarray]) -> NamedSlopes:
        changes = dict(zip(self.names, behind, strict=True))
        laws = self.run(self.laws().jvp(*self.names), *at.values, *changes.values())
        laws = laws[len(laws) // 2 :]
        answer, slack = self.answer(at, laws[1])
        whole = answer @ np.concatenate(laws, axis=-1)[..., None]
        if "q" in changes:
            whole = whole + slack @ changes["q"][..., None]
        return [("", at.result), ("", whole.reshape(at.result.shape))]


class ClosedVjp(ClosedDerivative):
    """Gradients: the laws', of weights answer* w."""

    kind = "vjp"

    def evaluate(self, at: SolvedBatch, behind: list[np.ndarray]) -> NamedSlopes:
        answer, slack = self.answer(at)
        w = behind[0].reshape(*at.regular.shape, 1, self.of.outputs[0].size)
        weights, nv, m = (w @ answer)[..., 0, :], self.system.nv, self.system.nc
        parts = np.split(weights, [nv, nv + m], axis=-1)[: 3 if self.of.is_forces else 2]
        gradients = self.run(self.laws().vjp(*self.names), *at.values, *parts)[len(parts) :]
        found = [("", at.result)]
        for name, gradient in zip(self.names, gradients, strict=True):
            found.append((name, gradient + (w @ slack)[..., 0, :] if name == "q" else gradient))
        return found


# -- by the numbers of q ------------------------------------------------------------------------------------------------------


class ClosedPushforward(ClosedJvp):
    """The change of the result alone, for changes of the nq numbers of q."""

    kind = "pushforward"

    def evaluate(self, at: SolvedBatch, behind: list[np.ndarray]) -> NamedSlopes:
        velocity = self.system.robot.manifold.velocity
        tangents = [
            velocity(at.values[0], x) if n == "q" else x
            for n, x in zip(self.names, behind, strict=True)
        ]
        return super().evaluate(at, tangents)[1:]


class ClosedPullback(ClosedVjp):
    """Gradients alone, that of q by its nq numbers."""

    kind = "pullback"

    def evaluate(self, at: SolvedBatch, behind: list[np.ndarray]) -> NamedSlopes:
        found, gradient = super().evaluate(at, behind)[1:], self.system.robot.manifold.gradient
        return [(n, gradient(at.values[0], x) if n == "q" else x) for n, x in found]


FIRST = {
    x.kind: x for x in (ClosedJacobian, ClosedJvp, ClosedVjp, ClosedPushforward, ClosedPullback)
}
