"""Second and higher derivatives of closed systems, by differentiating the tape of forward dynamics.

Without redundant rows the solve with Omega is differentiated like any other tape, to any order.
With redundant rows the constraints are replaced by W* (Jc a + bias) = 0, with W the range of Jc in
one state, held constant by derivatives (`system_stages.dynamics_of_rank`). As long as the rows stay
redundant, this gives the same accelerations and forces of least norm, and the first derivatives of
`implicit_theorem.py`. Off the constraints it is one of many extensions. Along a curve on the
constraints with velocity x, the second derivative of w . a is x* H x + g . x', if the Hessian H and
the gradient g belong to the same extension.

The same tapes, with or without derivatives, run on the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.errors import SingularError, StateError
from psiphi._util.validate import read_array
from psiphi.backends.cuda.kernel_launch import dtype_and_device
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.functions import argument_checks
from psiphi.functions.differentiable_function import (
    DifferentiableFunction,
    stack_columns,
    with_unit_vectors,
)
from psiphi.robot.mechanisms.closed_functions import implicit_theorem
from psiphi.robot.mechanisms.closed_functions.closed_call import ClosedCall, Steps, TracedCall
from psiphi.robot.mechanisms.dynamics import system_stages
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED
from psiphi.robot.mechanisms.solve.stage_program import StageProgramCode

if TYPE_CHECKING:
    from psiphi.robot.mechanisms.closed_functions.closed_function import ClosedFunction


class TapeDerivative(TracedCall):
    """A function of a closed system, or a derivative of it, by its tape."""

    def __init__(self, of: ClosedFunction, steps: Steps):
        self.of = of
        super().__init__(of.name, of.system, steps)

    def traced(self, rank: int = 0) -> DifferentiableFunction:
        """The function without derivatives; with `rank`, by that many independent rows, given as
        two more inputs."""
        system, of = self.system, self.of
        output, motors = of.outputs[0].name, system.actuated.tolist() if of.motors else None
        # accelerations are unique although rows are redundant; forces and derivatives are not
        skip_redundant = not (self.steps or of.is_forces)

        def dynamics() -> StageProgramCode:
            if rank:
                return system_stages.dynamics_of_rank(
                    system.algebra, rank, of.is_forces, of.frames, of.axes
                )
            return system.chosen_method(of.frames, of.axes, skip_redundant).program

        def make() -> StageProgramCode:
            return system_stages.single_result(dynamics(), output, motors)

        key = "single", output, of.frames, of.axes, of.motors, skip_redundant, rank
        return system.compiled_function(key, make, DifferentiableFunction)

    def for_torque_shape(self, shape: tuple[int, ...]) -> TapeDerivative:
        of = self.of.for_torque_shape(shape)
        return self if of is self.of else TapeDerivative(of, self.steps)

    def make_derivative(self, kind: str, names: tuple[str, ...]) -> ClosedCall:
        if kind in ("jacobian", "hessian"):
            return super().make_derivative(kind, names)
        return TapeDerivative(self.of, (*self.steps, (kind, names)))

    def evaluate_host(self, values: Sequence[Any], any_change: bool = False) -> list[np.ndarray]:
        """The results for NumPy arrays. Changes that violate redundant rows have no derivative,
        unless `any_change` asks for the columns of a matrix."""
        argument_checks.require_numpy(self.name, *values)
        if (matching := self.for_torque_shape(read_array(values[2], None)[0].shape)) is not self:
            return list(matching.evaluate_host(values, any_change))
        system, own, (arrays, batch) = self.system, len(self.of.inputs), self.read_arrays(values)
        batch, state = system.batch_axes(batch), self.of.read(arrays[:own], ())[0]
        results = [np.full((*batch, *arg.shape), np.nan) for arg in self.outputs]
        ill_conditioning = system.call_function(
            system.dynamics_function("", self.of.frames, self.of.axes), state
        )[3]
        singular = np.asarray(np.logical_not(np.less(ill_conditioning, ILL_CONDITIONED)))
        if not singular.all() or not singular.size:
            results = self._run_code(self.code, arrays, ())
        if singular.any() and not system.algebra.is_thin:
            self._solve_redundant(arrays, state, singular, results, any_change)
        if not batch:
            self.check(arrays, results)
        return results

    def check(self, arrays: list[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Refuse a single finite state without a finite result."""
        if not all(np.isfinite(x).all() for x in results) and all(
            np.isfinite(x).all() for x in arrays
        ):
            raise SingularError(
                f"{self.name}: no second derivative here: the mechanism is singular, or redundant "
                "constraints do not stay redundant",
                "change q and v together, as the constraints allow (Jc dq = 0), or start from "
                "another configuration",
            )

    def _run_code(
        self, code: DifferentiableFunction, arrays: list[np.ndarray], rows: tuple[np.ndarray, ...]
    ) -> list[np.ndarray]:
        """The results of `code`, with `rows` and the parameters behind the arguments of `of`."""
        own = len(self.of.inputs)
        results = self.system.run_function(
            code, (*arrays[:own], *rows, *self.system.robot.parameter_arguments, *arrays[own:])
        )
        return list(map(np.array, results)) if isinstance(results, tuple) else [np.array(results)]

    def _solve_redundant(
        self,
        arrays: list[np.ndarray],
        state: tuple[np.ndarray, ...],
        singular: np.ndarray,
        results: list[np.ndarray],
        any_change: bool,
    ) -> None:
        """Replace the results of `singular` states whose rows are redundant, here and nearby; one
        rank at a time."""
        q, v = (x[singular] for x in state[:2])
        system, own = self.system.at_elements(singular.shape, singular), len(self.of.inputs)
        Jc = system.constraint_jacobian(q)
        ranks = implicit_theorem.ranks(Jc)
        for rank in set(ranks.tolist()) - {0, system.nc}:
            here = ranks == rank
            split = implicit_theorem.RangeNullSplit(Jc[here], rank)
            W, V = (np.zeros((*singular.shape, n, rank)) for n in (system.nc, system.nv))
            mask = singular.copy()
            mask[singular] = here
            W[mask], V[mask] = split.W, split.V
            some = system.at_elements(here.shape, here)
            constant = implicit_theorem.rank_is_constant(some, q[here], v[here], Jc[here], split)
            mask[mask] = constant & self._keeps_joint_places
            if not mask.any():
                continue
            new = self._run_code(self.differentiated(self.traced(rank)), arrays, (W, V))
            if not any_change:
                mask = mask & self._allowed(arrays[:own], arrays[own:])
            for k, arg in enumerate(self.outputs):
                by_entry = np.expand_dims(mask, (*range(-len(arg.shape), 0),))
                results[k] = np.where(by_entry, new[k], results[k])

    @property
    def _keeps_joint_places(self) -> bool:
        """Whether no derivative is by positions of joints: rows are redundant for these alone."""
        by = {name for _, names in self.steps for name in names}
        return PARAMETERS not in by or not self.system.robot.free_blocks("offsets")

    def _allowed(self, state: list[np.ndarray], behind: list[np.ndarray]) -> np.ndarray:
        """Whether the changes of every jvp satisfy the constraints, that is, have a first
        derivative."""
        allowed, known = np.array(True), [arg.name for arg in self.of.inputs]
        function = self.traced()
        for kind, names in self.steps:
            before, function = len(function.inputs), function.derivative_by(kind, names)
            count = len(function.inputs) - before
            own, behind = behind[:count], behind[count:]
            changes = {name: x for name, x in zip(names, own, strict=False) if name in known}
            if kind in ("jvp", "pushforward") and changes:
                first = self.of.derivative_by(kind, tuple(changes))(*state, *changes.values())
                change = first[-1] if isinstance(first, tuple) else first
                core_axes = (*range(-len(self.of.outputs[0].shape), 0),)
                allowed = allowed & np.isfinite(change).all(axis=core_axes)
        return allowed

    def run_on_gpu(self, values: Sequence[Any]) -> Any:
        if (matching := self.for_torque_shape(tuple(values[2].shape))) is not self:
            return matching.run_on_gpu(values)
        if self.steps or self.of.is_forces:
            self.check_rows()
        dtype_and_device(self.name, self.inputs, values)
        own = len(self.of.inputs)
        return self.code(*values[:own], *self.system.robot.parameter_arguments, *values[own:])

    def check_rows(self) -> None:
        """Refuse constraints with redundant rows, for which every element would be NaN."""
        if self.system.has_redundant_rows:
            raise StateError(
                f"{self.name}: rows of the constraints of {self.system.name} are redundant, which "
                "is solved on the CPU only",
                "use NumPy arrays; the GPU computes accelerations only",
            )


class ClosedHessian(ClosedCall):
    """The Hessian of the weighted sum of the results: the jvp of its gradient along all unit
    vectors, in one batch."""

    def __init__(self, of: ClosedFunction, names: tuple[str, ...]):
        self.of, self.names, self.system = of, names, of.system
        self.change = TapeDerivative(of, (("vjp", names), ("jvp", names)))
        self.by = self.change.inputs[len(of.inputs) + 1 :]
        n = sum(arg.size for arg in self.by)
        inputs = self.change.inputs[: len(of.inputs) + 1]
        super().__init__(
            f"{of.name}: hessian by {', '.join(names)}", inputs, (Argument("hessian", (n, n)),)
        )

    def for_torque_shape(self, shape: tuple[int, ...]) -> ClosedCall:
        of = self.of.for_torque_shape(shape)
        return self if of is self.of else of.hessian(*self.names)

    def evaluate_host(self, values: Sequence[Any]) -> list[np.ndarray]:
        argument_checks.require_numpy(self.name, *values)
        if (matching := self.for_torque_shape(read_array(values[2], None)[0].shape)) is not self:
            return list(matching.evaluate_host(values))
        arrays, batch = self.read_arrays(values)
        columns = self._batched_change().evaluate_host(
            with_unit_vectors(self.inputs, arrays, self.by), any_change=True
        )[-len(self.names) :]
        if not self.system.batch_axes(batch):
            self.change.check(arrays, columns)
        return [stack_columns(columns, self.by)]

    def _batched_change(self) -> TapeDerivative:
        """`change` for arrays with one more batch axis, the last one, also for the parameters."""
        of, system = self.of, self.of.system.with_sample_axis()
        return (
            self.change
            if system is of.system
            else TapeDerivative(of.for_system(system), self.change.steps)
        )
