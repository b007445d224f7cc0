"""The derivative of a request, as a request: exact, from analytic sweeps (`analytic_rules.py`) or
from the tape of the value, whichever costs less.

    jvp        (value, change) for changes of some arguments
    vjp        (value, gradients) of the weighted sum of the results
    jacobian   the matrices d result / d argument
    hessian    the derivative of that gradient: second derivatives contracted with the weights

Changes of q are tangent vectors, like v: dq/dt = rate(q, v); their size is nv. The two others are
for array libraries: they omit the value, and q is an array of nq numbers.

    pushforward   the change of the results for changes of some arguments
    pullback      the gradients of the weighted sum of the results
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.algebra.derivatives.configuration_derivative import derivative
from psiphi.compiler.autodiff.analytic_rules import DerivativeSweeps, analytic_derivatives
from psiphi.compiler.autodiff.tape_derivatives import pull_back, push_forward
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import Arguments, CompileRequest, Equation
from psiphi.compiler.ir.loop_nodes import SingleStep
from psiphi.compiler.ir.segments import fused_products
from psiphi.compiler.ir.tape_fusion import FusedTape, fuse_blocks
from psiphi.compiler.passes import (
    Traceable,
    code,
    frame,
    is_large,
    memoized_pass,
    program,
    straight_code,
    trace,
    tree_of,
)
from psiphi.compiler.sweeps.link_loops import LinkLoops, last_outputs
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.tape import Count, Scalar, Tape
from psiphi.model.model import Model
from psiphi.model.universal_joints import split_universal

MAX_UNROLLED = 256  # bodies up to which derivatives without loops are written out
MAX_COUNTED = (
    20_000  # flops up to which analytic sweeps are compared with the tape; above, they win
)


@dataclass(frozen=True, eq=False)
class Derivative(Traceable):
    """A derivative of a request, with respect to the inputs `names`."""

    request: CompileRequest
    kind: str
    names: tuple[str, ...]

    @property
    def model(self) -> Model:
        return self.request.model

    @property
    def equation(self) -> str:
        return (
            f"{self.kind} by {', '.join(self.names)} of {self.request.equation or 'an expression'}"
        )

    @property
    def key(self) -> str:
        """Everything besides the model on which the code depends."""
        return f"{getattr(self.request, 'key', '')} {self.kind} {self.names}"

    def arguments(self) -> tuple[Arguments, Arguments]:
        inputs, outputs = self.request.arguments()
        return SIGNATURES[self.kind](self.model, inputs, outputs, self.names)

    def trace(self) -> StraightCode | LinkLoops:
        return self._loop_code() if is_large(self.model) else self._straight_code()

    def _straight_code(self) -> StraightCode:
        if self.kind in TANGENT:
            return self._coordinate_code()
        return min(self.candidates(), key=lambda candidate: candidate[1].count.flops)[1]

    def _loop_code(self) -> StraightCode | LinkLoops:
        """The code for a large robot: analytic sweeps as loops over links, or else straight-line
        code, if it is not too long."""
        if self.kind in TANGENT and ("q" not in self.names or self.model.manifold.is_flat):
            whole = Derivative(self.request, TANGENT[self.kind], self.names)._analytic_loops()
            if whole is not None:
                return last_outputs(whole[1], len(self.arguments()[1]))
        found = self._analytic_loops()
        if found is not None:
            return found[1]
        if len(self.model.bodies) > MAX_UNROLLED:
            raise StateError(
                f"{self.model.name} has {len(self.model.bodies)} bodies, and {self.equation} "
                "cannot run in loops over links",
                "take derivatives of forward or inverse dynamics, or use a robot of up to "
                f"{MAX_UNROLLED} bodies",
            )
        return self._straight_code()

    def _analytic_loops(self) -> tuple[DerivativeSweeps, LinkLoops] | None:
        """(sweeps, loops) of a derivative that can run in loops: its messages have fixed sizes."""
        for sweeps, sweep_program, tree in self.analytic_programs():
            if isinstance(loops := trace(sweep_program, tree), LinkLoops):
                return sweeps, loops
        return None

    def _coordinate_code(self) -> StraightCode:
        """The code of pushforward or pullback: that of jvp or vjp without the values; if q has
        quaternions, the derivative of the tape."""
        by_q = "q" in self.names or any(
            arg.per_joint == "q" for arg in _select(self.request.arguments()[0], self.names)
        )
        if by_q and not self.model.manifold.is_flat:
            return self.tape_code(self._value_code())
        whole = Derivative(self.request, TANGENT[self.kind], self.names)._straight_code()
        inputs, outputs = self.arguments()
        values = len(whole.program.outputs) - len(outputs)
        stores = tuple(
            (number - values, index, node)
            for number, index, node in whole.stores
            if number >= values
        )
        return replace(
            whole, program=replace(whole.program, inputs=inputs, outputs=outputs), stores=stores
        )

    def _value_code(self) -> StraightCode:
        """The code of the value, on one tape."""
        traced = unrolled_code(self.request) if is_large(self.model) else code(self.request)
        return fuse_blocks(traced) if isinstance(traced, SingleStep) else traced

    @memoized_pass
    def candidates(self) -> list[tuple[DerivativeSweeps | None, StraightCode]]:
        """(sweeps, code) of each candidate; sweeps is None for the derivative of the tape."""
        analytic: list[tuple[DerivativeSweeps | None, StraightCode]] = [
            (sweeps, straight_code(sweep_program, tree))
            for sweeps, sweep_program, tree in self.analytic_programs()
        ]
        if analytic and min(lines.count.flops for _, lines in analytic) > MAX_COUNTED:
            return analytic
        traced = self._value_code()
        inputs, outputs = self.arguments()
        rows = (
            sum(arg.size // max(1, arg.shape[-1]) for arg in outputs[:: len(self.names)])
            if self.kind == "jacobian"
            else 0
        )
        few_rows = rows and rows < sum(
            tangent_argument(self.model, arg, arg.name).size for arg in _select(inputs, self.names)
        )
        methods = (self.kind, "gradient_rows") if few_rows else (self.kind,)
        return [*analytic, *((None, self.tape_code(traced, method)) for method in methods)]

    def analytic_programs(self) -> Iterator[tuple[DerivativeSweeps, Program, Tree]]:
        """The analytic sweeps of the derivative, each with its program and its tree."""
        for sweeps in analytic_derivatives(self.request, self.kind):
            if set(self.names) <= set(sweeps.names):
                tree = frame(split_universal(self.model), sweeps.movable_inertia)
                yield sweeps, sweeps.program(self.kind, tree, *self.arguments(), self.names), tree

    def explain(self) -> str:
        """The derivative as an expression, if it has one, the method chosen, and its cost."""
        text = [self.equation, *self._expressions(), ""]
        if is_large(self.model):
            sweeps, lines = self._analytic_loops() or (None, self._loop_code())
            loops = [f"  {x}" for x in sweeps.loops] if sweeps is not None else []
            method = (
                "analytic sweeps, in loops over the links"
                if isinstance(lines, LinkLoops)
                else "straight-line code, body by body"
            )
            return "\n".join([*text, f"choose: {method}", *loops, "", _cost_line(lines.count)])
        sweeps, lines = min(self.candidates(), key=lambda candidate: candidate[1].count.flops)
        if sweeps is None:
            text.append("choose: the traced code of the value, differentiated node by node")
        else:
            others = ", ".join(
                str(other.count.flops) for _, other in self.candidates() if other is not lines
            )
            text.append(f"choose: analytic sweeps{f' (others: {others} flops)' if others else ''}")
            text += [f"  {line}" for line in sweeps.loops]
        return "\n".join([*text, "", _cost_line(lines.count)])

    def _expressions(self) -> list[str]:
        """The derivatives as expressions, if they are known."""
        found = []
        for result, e in self.request.results.items() if isinstance(self.request, Equation) else ():
            for name in self.names:
                with suppress(StateError):
                    found.append(f"d {result}/d {name} = {derivative(e, name)}")
        return found

    def tape_code(self, traced: StraightCode, method: str = "") -> StraightCode:
        """The derivative of a tape; `method` names that of `TapeArrays`, by default the kind."""
        work = TapeArrays(self.model, traced, self.names, self.kind in TANGENT)
        values = getattr(work, method or self.kind)()
        inputs, outputs = self.arguments()
        stores = tuple(
            (number, index, work.tape.operand(x))
            for number, row in enumerate(values)
            for index, x in enumerate(row)
        )
        program, last = Program(self.kind, inputs, outputs, ()), [node for *_, node in stores]
        if not isinstance(traced, FusedTape):
            return StraightCode(program, work.tape, stores, tree=traced.tree)
        fused = fused_products(work.tape, work.tape.operations(last), last)
        return FusedTape(program, work.tape, stores, frozenset(fused.values()))


def unrolled_code(request: CompileRequest) -> Any:
    """The straight-line code of a request, even of a large robot."""
    if isinstance(request, Derivative):
        return request._straight_code()
    if getattr(request, "columns", ""):
        raise StateError(
            f"{request.model.name} has {len(request.model.bodies)} bodies: {request.equation} is "
            "computed column by column",
            f"take derivatives of {request.columns}, which multiplies it with a vector",
        )
    if isinstance(request, Traceable):
        return code(request)
    tree = tree_of(request)
    return straight_code(program(request, tree), tree)


def _cost_line(c: Count) -> str:
    operations = f"{c.mul} mul, {c.add} add, {c.div} div, {c.sqrt} sqrt; {c.trig} sin/cos"
    return f"trace: {c.flops} flops ({operations})"


def tangent_argument(model: Model, arg: Argument, name: str) -> Argument:
    """The argument for changes of an input; changes of q have size nv."""
    return (
        Argument(name, (model.nv,), "v")
        if arg.per_joint == "q"
        else Argument(name, arg.shape, arg.per_joint)
    )


def _append_arguments(known: Arguments, more: Iterable[Argument]) -> Arguments:
    """The arguments `known`, followed by `more`. Names that are taken get a number: dq, dq_2."""
    found = list(known)
    for arg in more:
        taken, name, n = {other.name for other in found}, arg.name, 1
        while name in taken:
            n += 1
            name = f"{arg.name}_{n}"
        found.append(replace(arg, name=name))
    return tuple(found)


def _jvp(
    model: Model, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
) -> tuple[Arguments, Arguments]:
    changes = (tangent_argument(model, arg, f"d{arg.name}") for arg in _select(inputs, names))
    changed = (Argument(f"d{arg.name}", arg.shape, arg.per_joint) for arg in outputs)
    return _append_arguments(inputs, changes), _append_arguments(outputs, changed)


def _vjp(
    model: Model, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
) -> tuple[Arguments, Arguments]:
    weights = (Argument(f"{arg.name}_weight", arg.shape, arg.per_joint) for arg in outputs)
    return _append_arguments(inputs, weights), _append_arguments(
        outputs, (tangent_argument(model, arg, f"{arg.name}_bar") for arg in _select(inputs, names))
    )


def _jacobian(
    model: Model, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
) -> tuple[Arguments, Arguments]:
    columns = [tangent_argument(model, arg, arg.name) for arg in _select(inputs, names)]
    slopes = (
        Argument(f"d{out.name}_d{arg.name}", (*out.shape, arg.size))
        for out in outputs
        for arg in columns
    )
    return inputs, _append_arguments((), slopes)


def _hessian(
    model: Model, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
) -> tuple[Arguments, Arguments]:
    total = sum(tangent_argument(model, arg, arg.name).size for arg in _select(inputs, names))
    return _vjp(model, inputs, outputs, names)[0], (Argument("hessian", (total, total)),)


def _pushforward(
    model: Model, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
) -> tuple[Arguments, Arguments]:
    changes = tuple(_new_argument(inputs, arg, "_dot") for arg in _select(inputs, names))
    return (*inputs, *changes), tuple(_new_argument((), arg, "_dot") for arg in outputs)


def _pullback(
    model: Model, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
) -> tuple[Arguments, Arguments]:
    weights = tuple(_new_argument(inputs, arg, "_weight") for arg in outputs)
    return (*inputs, *weights), tuple(
        _new_argument((), arg, "_bar") for arg in _select(inputs, names)
    )


def _new_argument(taken: Arguments, arg: Argument, suffix: str) -> Argument:
    """An argument like `arg`, with a name that none of `taken` has. Changes of q are nq numbers,
    not a configuration."""
    name = arg.name + suffix
    while any(name == other.name for other in taken):
        name += suffix
    return Argument(name, arg.shape, "" if arg.per_joint == "q" else arg.per_joint)


SIGNATURES = {
    "jvp": _jvp,
    "vjp": _vjp,
    "jacobian": _jacobian,
    "hessian": _hessian,
    "pushforward": _pushforward,
    "pullback": _pullback,
}
TANGENT = {"pushforward": "jvp", "pullback": "vjp"}  # the same derivative with tangent vectors of q


def _select(inputs: Arguments, names: tuple[str, ...]) -> list[Argument]:
    return [next(arg for arg in inputs if arg.name == name) for name in names]


class TapeArrays:
    """A copy of the tape of some code, to which derivatives are appended.

    Inputs and outputs are arrays of tape expressions. `by_coordinates`: changes of q are nq
    numbers instead of tangent vectors.
    """

    def __init__(
        self,
        model: Model,
        traced: StraightCode,
        names: tuple[str, ...],
        by_coordinates: bool = False,
    ):
        self.model, self.names, self.program = model, names, traced.program
        self.changes_are_flat = by_coordinates or model.manifold.is_flat
        self.tape: Tape = traced.tape.copy()
        self.nodes: dict[int, list[int]] = {
            number: [] for number in range(len(self.program.outputs))
        }
        for number, _, node in sorted(traced.stores):
            self.nodes[number].append(node)
        self.input_numbers = {arg.name: i for i, arg in enumerate(self.program.inputs)}
        self.next_input = len(self.program.inputs)

    @property
    def output_nodes(self) -> list[int]:
        """The nodes of all outputs in a row."""
        return [node for row in self.nodes.values() for node in row]

    @property
    def output_values(self) -> list[list[Any]]:
        """The expressions of each output."""
        return [[Scalar(self.tape, node, False) for node in row] for row in self.nodes.values()]

    @cached_property
    def q(self) -> np.ndarray:
        return self._leaves(self.input_numbers["q"], self.model.nq)

    def _leaves(self, number: int, size: int) -> np.ndarray:
        return np.array([self.tape.leaf(str(number), j) for j in range(size)], dtype=object)

    def add_input(self, size: int) -> np.ndarray:
        """The leaves of a new input."""
        self.next_input += 1
        return self._leaves(self.next_input - 1, size)

    def _change_size(self, name: str) -> int:
        return (
            self.model.nv
            if name == "q" and not self.changes_are_flat
            else self.program.inputs[self.input_numbers[name]].size
        )

    def seeds(self, name: str, change: np.ndarray) -> dict[int, Any]:
        """{leaf: its change} for a change of the input `name`."""
        if name == "q" and not self.changes_are_flat:
            change = self.model.manifold.rate(self.q, change)
        return self.leaf_seeds(self.input_numbers[name], change)

    def leaf_seeds(self, number: int, change: np.ndarray | Sequence[Any]) -> dict[int, Any]:
        """{leaf: its change} for a change of the input with this number."""
        return {
            leaf.index: x for leaf, x in zip(self._leaves(number, len(change)), change, strict=True)
        }

    def _units(self, name: str) -> list[np.ndarray]:
        return list(np.eye(self._change_size(name)).astype(object))

    def jvp(self) -> list[list[Any]]:
        """The results and their changes."""
        return [*self.output_values, *self.pushforward()]

    def pushforward(self) -> list[list[Any]]:
        """The changes of the results."""
        seeds: dict[int, Any] = {}
        for name in self.names:
            seeds |= self.seeds(name, self.add_input(self._change_size(name)))
        changes = iter(push_forward(self.tape, self.output_nodes, seeds))
        return [[next(changes) for _ in row] for row in self.nodes.values()]

    def pullback(self) -> list[list[Any]]:
        """The gradients of the weighted sum of the results, one per name."""
        weights: dict[int, Any] = {}
        for row in self.nodes.values():
            for node, w in zip(row, self.add_input(len(row)), strict=True):
                weights[node] = weights[node] + w if node in weights else w
        return self._gradients(weights)

    def _gradients(self, weights: dict[int, Any]) -> list[list[Any]]:
        bar = pull_back(self.tape, weights)
        gradients = []
        for name in self.names:
            leaves = self._leaves(
                self.input_numbers[name], self.program.inputs[self.input_numbers[name]].size
            )
            gradient = [bar.get(leaf.index, 0.0) for leaf in leaves]
            if name == "q" and not self.changes_are_flat:
                gradient = self.model.manifold.tangent_gradient(
                    self.q, np.array(gradient, dtype=object)
                ).tolist()
            gradients.append(gradient)
        return gradients

    def vjp(self) -> list[list[Any]]:
        """The results, and the gradients of their weighted sum."""
        return [*self.output_values, *self.pullback()]

    def jacobian(self) -> list[list[Any]]:
        """d result / d argument, by result, then by name."""
        columns = {
            name: [
                push_forward(self.tape, self.output_nodes, self.seeds(name, unit))
                for unit in self._units(name)
            ]
            for name in self.names
        }
        rows, start = [], 0
        for row in self.nodes.values():
            for name in self.names:
                rows.append(
                    [column[start + i] for i in range(len(row)) for column in columns[name]]
                )
            start += len(row)
        return rows

    def gradient_rows(self) -> list[list[Any]]:
        """The Jacobian row by row: cheaper if the results are fewer than the arguments."""
        found = []
        for row in self.nodes.values():
            gradients = [self._gradients({node: 1.0}) for node in row]
            found += [
                [x for gradient in gradients for x in gradient[i]] for i in range(len(self.names))
            ]
        return found

    def hessian(self) -> list[list[Any]]:
        """The derivative of the gradient, column by column. Only the lower half is computed, except
        for the block of a q with quaternions, which is not symmetric."""
        gradient = [self.tape.operand(x) for row in self.pullback() for x in row]
        entries, start = {}, 0
        for name in self.names:
            curved = name == "q" and not self.changes_are_flat
            for k, unit in enumerate(self._units(name), start):
                first = start if curved else k
                changes = push_forward(self.tape, gradient[first:], self.seeds(name, unit))
                entries |= {(row, k): x for row, x in enumerate(changes, first)}
            start += len(self._units(name))
        return [
            [
                entries[row, k] if (row, k) in entries else entries[k, row]
                for row in range(start)
                for k in range(start)
            ]
        ]
