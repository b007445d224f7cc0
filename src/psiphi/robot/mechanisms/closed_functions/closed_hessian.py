"""Derivatives of derivatives of closed systems: of the traced code of forward dynamics.

Where no row follows from others the solve with Omega is a sum of products like any other, and has derivatives of every order.
Where rows follow, W* (Jc a + bias) = 0 says it all, W the range of Jc in this state, which stays as it is while q and v change
(`circuits.combined`): wherever the rows follow these are the same accelerations, and forces of least norm, and their first
derivatives are those of `implicit_theorem.py`. Off the constraints it is one continuation of many; along every curve on them, with
velocity x, the second derivative of w . a is x* H x + g . x', whichever it is, if H and the gradient g are both of it.
The same code, with no derivative or some, is what runs on graphics cards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.errors import SingularError, StateError
from psiphi._util.validate import read_array
from psiphi.backends.cuda.kernel_launch import looked_at
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions import argument_checks
from psiphi.functions.differentiable_function import DifferentiableFunction, along_units, in_rows
from psiphi.robot.mechanisms.closed_functions import implicit_theorem
from psiphi.robot.mechanisms.closed_functions.closed_call import ClosedCall, Steps, TracedCall
from psiphi.robot.mechanisms.dynamics import system_stages
from psiphi.robot.mechanisms.solve.redundant_constraints import STRAIN
from psiphi.robot.mechanisms.solve.stage_program import StageProgramCode

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.closed_functions.closed_function import ClosedFunction


class TapeDerivative(TracedCall):
    """The function of a closed system, or a derivative of it."""

    def __init__(self, of: ClosedFunction, steps: Steps):
        self.of = of
        super().__init__(of.name, of.system, steps)

    def traced(self, rank: int = 0) -> DifferentiableFunction:
        """The code; with `rank` by so many rows, which are inputs behind the others."""
        system, of = self.system, self.of
        wanted, motors = of.outputs[0].name, system.actuated.tolist() if of.motors else None
        loose = not (
            self.steps or of.is_forces
        )  # accelerations are unique where rows follow from others

        def made() -> StageProgramCode:
            if rank:
                return system_stages.combined(
                    system.algebra, rank, of.is_forces, of.frames, of.axes
                )
            return system.chosen_method(of.frames, of.axes, loose).circuit

        key = "alone", wanted, of.frames, of.axes, of.motors, loose, rank
        return system.compiled_function(
            key, lambda: system_stages.alone(made(), wanted, motors), DifferentiableFunction
        )

    def taking(self, tau: tuple[int, ...]) -> TapeDerivative:
        of = self.of.taking(tau)
        return self if of is self.of else TapeDerivative(of, self.steps)

    def derived(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        if kind in ("jacobian", "hessian"):
            return super().derived(kind, names)
        return TapeDerivative(self.of, (*self.steps, (kind, names)))

    def answers(self, values: Sequence[Any], every_way: bool = False) -> list[np.ndarray]:
        """The results; changes that rows do not allow are refused but where they are asked `every_way`, as of a matrix."""
        argument_checks.on_host(self.name, *values)
        if (fitting := self.taking(read_array(values[2], None)[0].shape)) is not self:
            return list(fitting.answers(values, every_way))
        system, own, (arrays, lead) = self.system, len(self.of.inputs), self.arrays(values)
        lead, state = system.batch_axes(lead), self.of.read(arrays[:own], ())[0]
        found = [np.full((*lead, *arg.shape), np.nan) for arg in self.outputs]
        strain = system.call_function(
            system.dynamics_function("", self.of.frames, self.of.axes), state
        )[3]
        strained = np.asarray(np.logical_not(np.less(strain, STRAIN)))
        if not strained.all() or not strained.size:
            found = self._ran(self.code, arrays, ())
        if strained.any() and not system.algebra.is_thin:
            self._look_again(arrays, state, strained, found, every_way)
        if not lead:
            self.check(arrays, found)
        return found

    def check(self, arrays: list[np.ndarray], found: Sequence[np.ndarray]) -> None:
        """Refuse a single state that has no answer."""
        if not all(np.isfinite(x).all() for x in found) and all(
            np.isfinite(x).all() for x in arrays
        ):
            raise SingularError(
                f"{self.name}: no second derivative here: the mechanism is singular, or constraints that follow from others do "
                "not stay so",
                "change q and v together, as the constraints allow (Jc dq = 0), or start from another configuration",
            )

    def _ran(
        self, code: DifferentiableFunction, arrays: list[np.ndarray], rows: tuple[np.ndarray, ...]
    ) -> list[np.ndarray]:
        own = len(self.of.inputs)
        found = self.system.run_function(
            code, (*arrays[:own], *rows, *self.system.robot.parameter_arguments, *arrays[own:])
        )
        return list(map(np.array, found)) if isinstance(found, tuple) else [np.array(found)]

    def _look_again(
        self,
        arrays: list[np.ndarray],
        state: tuple[np.ndarray, ...],
        strained: np.ndarray,
        found: list,
        every_way: bool,
    ) -> None:
        """Fill in what is `found` of states where rows follow from others, and go on doing so beside them: rank by rank."""
        q, v = (x[strained] for x in state[:2])
        system, own = self.system.at_elements(strained.shape, strained), len(self.of.inputs)
        Jc = system.constraint_jacobian(q)
        of_each = implicit_theorem.ranks(Jc)
        for rank in set(of_each.tolist()) - {0, system.nc}:
            here = of_each == rank
            parts = implicit_theorem.RangeNullSplit(Jc[here], rank)
            at, (W, V) = (
                strained.copy(),
                (np.zeros((*strained.shape, n, rank)) for n in (system.nc, system.nv)),
            )
            at[strained] = here
            W[at], V[at] = parts.W, parts.V
            at[at] = (
                implicit_theorem.lasts(
                    system.at_elements(here.shape, here), q[here], v[here], Jc[here], parts
                )
                & self._is_of_masses
            )
            if not at.any():
                continue
            results = self._ran(self.differentiated(self.traced(rank)), arrays, (W, V))
            good = at if every_way else at & self._allowed(arrays[:own], arrays[own:])
            for k, arg in enumerate(self.outputs):
                found[k] = np.where(
                    np.expand_dims(good, (*range(-len(arg.shape), 0),)), results[k], found[k]
                )

    @property
    def _is_of_masses(self) -> bool:
        """Not by places of joints: rows follow by these alone, not beside them."""
        freed = self.system.robot.freed
        by = {name for _, names in self.steps for name in names}
        return PARAMETERS not in by or not any(block.word == "offsets" for block in freed.blocks)

    def _allowed(self, state: list[np.ndarray], behind: list[np.ndarray]) -> np.ndarray:
        """Whether the changes of every jvp keep the constraints: those that have a first derivative."""
        good, made, known = np.array(True), self.traced(), [arg.name for arg in self.of.inputs]
        for kind, names in self.steps:
            before, made = len(made.inputs), made._derivative(kind, names)
            own, behind = behind[: len(made.inputs) - before], behind[len(made.inputs) - before :]
            changes = {name: x for name, x in zip(names, own, strict=False) if name in known}
            if kind in ("jvp", "pushforward") and changes:
                found = self.of._derivative(kind, tuple(changes))(*state, *changes.values())
                moved = found[-1] if isinstance(found, tuple) else found
                good = good & np.isfinite(moved).all(
                    axis=(*range(-len(self.of.outputs[0].shape), 0),)
                )
        return good

    def on_cards(self, values: Sequence[Any]) -> Any:
        if (fitting := self.taking(tuple(values[2].shape))) is not self:
            return fitting.on_cards(values)
        if self.steps or self.of.is_forces:
            self.check_rows()
        looked_at(self.name, self.inputs, values)
        own = len(self.of.inputs)
        return self.code(*values[:own], *self.system.robot.parameter_arguments, *values[own:])

    def check_rows(self) -> None:
        """Refuse constraints some of whose rows follow from others wherever one looks: every element would be NaN."""
        if self.system.has_redundant_rows:
            cause = f"{self.name}: rows of the constraints of {self.system.name} follow from others, and that is solved on the host"
            raise StateError(
                cause, "give arrays of the host; accelerations are found on graphics cards, too"
            )


class ClosedHessian(ClosedCall):
    """Second derivatives of the weighted sum of the results: the change of its gradient, along unit vectors in one batch."""

    def __init__(self, of: ClosedFunction, names: tuple[str, ...]):
        self.of, self.names, self.system = of, names, of.system
        self.change = TapeDerivative(of, (("vjp", names), ("jvp", names)))
        self.by = self.change.inputs[len(of.inputs) + 1 :]
        n = sum(arg.size for arg in self.by)
        inputs = self.change.inputs[: len(of.inputs) + 1]
        super().__init__(
            f"{of.name}: hessian by {', '.join(names)}", inputs, (Argument("hessian", (n, n)),)
        )

    def taking(self, tau: tuple[int, ...]) -> ClosedCall:
        of = self.of.taking(tau)
        return self if of is self.of else of.hessian(*self.names)

    def answers(self, values: Sequence[Any]) -> list[np.ndarray]:
        argument_checks.on_host(self.name, *values)
        if (fitting := self.taking(read_array(values[2], None)[0].shape)) is not self:
            return list(fitting.answers(values))
        arrays, lead = self.arrays(values)
        found = self._along().answers(along_units(self.inputs, arrays, self.by), every_way=True)[
            -len(self.names) :
        ]
        if not self.system.batch_axes(lead):
            self.change.check(arrays, found)
        return [in_rows(found, self.by)]

    def _along(self) -> TapeDerivative:
        """`change` for arrays with one more batch axis, behind the others: parameters with batch axes get it, too."""
        of, system = self.of, self.of.system.with_sample_axis()
        return (
            self.change
            if system is of.system
            else TapeDerivative(of.again(system), self.change.steps)
        )
