"""Derivatives of what is asked, as something that is asked: exact, of the equation where it has sweeps of its own for them
(`analytic_rules.py`), of the traced code, or whichever costs less.

    jvp        (value, change) for changes of some arguments
    vjp        (value, gradients) of the results' weighted sum
    jacobian   the matrices d result / d argument
    hessian    the derivative of that gradient: second derivatives contracted with the weights

Changes of q are tangent vectors, as v is: dq/dt = rate(q, v) for a change v. A curved joint has so many as it has velocities.
Libraries that differentiate by the numbers of an array ask for two others, in which q is nq numbers, and the value is left out:

    pushforward   the change of the results for changes of some arguments
    pullback      the gradients of the results' weighted sum
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.algebra.derivatives.configuration_derivative import derivative
from psiphi.compiler.autodiff.analytic_rules import derivatives
from psiphi.compiler.autodiff.tape_derivatives import copied, pull, push
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import Equation
from psiphi.compiler.ir.loop_nodes import SingleStep
from psiphi.compiler.ir.segments import riders
from psiphi.compiler.ir.tape_fusion import FusedTape, joined
from psiphi.compiler.passes import (
    Traceable,
    code,
    frame,
    framed,
    is_large,
    kept,
    program,
    trace,
    unrolled,
)
from psiphi.compiler.sweeps.link_loops import LinkLoops, last_outputs
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.tape import Count, Scalar, Tape
from psiphi.model.model import Model
from psiphi.model.universal_joints import hinged

Arguments = tuple[Argument, ...]
WRITTEN = 256  # bodies up to which derivatives without loops are written out
COUNTED = 20_000  # flops of composites up to which both ways are counted; trees of long code are deep, and there these win


@dataclass(frozen=True, eq=False)
class Derivative(Traceable):
    """One derivative of something asked, with respect to some of its inputs."""

    of: Any
    kind: str
    names: tuple[str, ...]

    @property
    def model(self) -> Model:
        return self.of.model

    @property
    def equation(self) -> str:
        return f"{self.kind} by {', '.join(self.names)} of {self.of.equation or 'an expression'}"

    @property
    def key(self) -> str:
        """What the code depends on, besides the model."""
        return f"{getattr(self.of, 'key', '')} {self.kind} {self.names}"

    def arguments(self) -> tuple[Arguments, Arguments]:
        inputs, outputs = self.of.arguments()
        return KINDS[self.kind](self.model, inputs, outputs, self.names)

    def ready(self) -> StraightCode | LinkLoops:
        return self._in_loops() if is_large(self.model) else self._straight()

    def _straight(self) -> StraightCode:
        if self.kind in TANGENT:
            return self._by_coordinates()
        return min(self._ways(), key=lambda way: way[1].count.flops)[1]

    def _in_loops(self) -> StraightCode | LinkLoops:
        """Of a large robot: sweeps of its own, as loops; without such, written out as a small one's, if it is not too long."""
        if self.kind in TANGENT and ("q" not in self.names or self.model.manifold.is_flat):
            whole = Derivative(self.of, TANGENT[self.kind], self.names)._rolled()
            if whole is not None:
                return last_outputs(whole[1], len(self.arguments()[1]))
        made = self._rolled()
        if made is not None:
            return made[1]
        if len(self.model.bodies) > WRITTEN:
            cause = f"{self.model.name} has {len(self.model.bodies)} bodies, and {self.equation} has no loops over them"
            raise StateError(
                cause,
                f"take derivatives of forward or inverse dynamics, or a robot of up to {WRITTEN} bodies",
            )
        return self._straight()

    def _rolled(self) -> tuple[Any, LinkLoops] | None:
        """(sweeps, loops) of a derivative of which every message has a fixed size."""
        for lowered, sweeps, tree in self._lowered():
            if isinstance(loops := trace(sweeps, tree), LinkLoops):
                return lowered, loops
        return None

    def _by_coordinates(self) -> StraightCode:
        """What its tangent sibling gives, without the values; by the tape where a configuration is more than a vector."""
        turned = "q" in self.names or any(
            arg.per_joint == "q" for arg in _chosen(self.of.arguments()[0], self.names)
        )
        if turned and not self.model.manifold.is_flat:
            return self._by_tape(self._traced())
        whole = Derivative(self.of, TANGENT[self.kind], self.names)._straight()
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

    def _traced(self) -> StraightCode:
        """The code of what is differentiated, on one tape."""
        traced = written(self.of) if is_large(self.model) else code(self.of)
        return joined(traced) if isinstance(traced, SingleStep) else traced

    @kept
    def _ways(self) -> list[tuple[Any, StraightCode]]:
        """(sweeps, code) of every way that is counted; sweeps None: the traced code, operation by operation."""
        own = [(lowered, unrolled(sweeps, tree)) for lowered, sweeps, tree in self._lowered()]
        if own and min(lines.count.flops for _, lines in own) > COUNTED:
            return own
        traced = self._traced()
        inputs, outputs = self.arguments()
        rows = (
            sum(arg.size // max(1, arg.shape[-1]) for arg in outputs[:: len(self.names)])
            if self.kind == "jacobian"
            else 0
        )
        few = rows and rows < sum(
            tangent(self.model, arg, arg.name).size for arg in _chosen(inputs, self.names)
        )
        return [
            *own,
            *(
                (None, self._by_tape(traced, way))
                for way in ((self.kind, "gradient_rows") if few else (self.kind,))
            ),
        ]

    def _lowered(self) -> Iterator[tuple[Any, Program, Tree]]:
        """Its own sweeps by operators, each over a tree, where an equation has some: `analytic_rules.py`."""
        for lowered in derivatives(self.of, self.kind):
            if set(self.names) <= set(lowered.names):
                tree = frame(hinged(self.model), lowered.rods)
                yield lowered, lowered.program(self.kind, tree, *self.arguments(), self.names), tree

    def explain(self) -> str:
        """The derivative as an expression, where it has one, the way that was chosen, and what it costs."""
        text = [self.equation, *self._expressions(), ""]
        if is_large(self.model):
            lowered, lines = self._rolled() or (None, self._in_loops())
            loops = [f"  {x}" for x in getattr(lowered, "loops", ())]
            way = (
                "sweeps of its own, in loops over the links"
                if isinstance(lines, LinkLoops)
                else "written out, body by body"
            )
            return "\n".join([*text, f"choose: {way}", *loops, "", _priced(lines.count)])
        lowered, lines = min(self._ways(), key=lambda way: way[1].count.flops)
        if lowered is None:
            text.append(
                "choose: the traced code of the value, differentiated operation by operation"
            )
        else:
            others = ", ".join(str(way.count.flops) for _, way in self._ways() if way is not lines)
            text.append(
                f"choose: sweeps of its own{f' (other ways: {others} flops)' if others else ''}"
            )
            text += [f"  {line}" for line in lowered.loops]
        return "\n".join([*text, "", _priced(lines.count)])

    def _expressions(self) -> list[str]:
        """The derivatives by operators, of an equation that they are known of."""
        found = []
        for result, e in self.of.results.items() if isinstance(self.of, Equation) else ():
            for name in self.names:
                with suppress(StateError):
                    found.append(f"d {result}/d {name} = {derivative(e, name)}")
        return found

    def _by_tape(self, traced: StraightCode, way: str = "") -> StraightCode:
        """The traced code, differentiated operation by operation."""
        work = TapeArrays(self.model, traced, self.names, self.kind in TANGENT)
        values = getattr(work, way or self.kind)()
        inputs, outputs = self.arguments()
        stores = tuple(
            (number, index, work.tape.operand(x))
            for number, row in enumerate(values)
            for index, x in enumerate(row)
        )
        program, last = Program(self.kind, inputs, outputs, ()), [node for *_, node in stores]
        if not isinstance(traced, FusedTape):
            return StraightCode(program, work.tape, stores, tree=traced.tree)
        riding = riders(work.tape, work.tape.computed(last), last)
        return FusedTape(program, work.tape, stores, frozenset(riding.values()))


def written(asked: Any) -> Any:
    """The code of a large robot as straight lines all the same."""
    if isinstance(asked, Derivative):
        return asked._straight()
    if getattr(asked, "columns", ""):
        cause = f"{asked.model.name} has {len(asked.model.bodies)} bodies: {asked.equation} is made of columns"
        raise StateError(
            cause, f"take derivatives of {asked.columns}, which multiplies it with a vector"
        )
    if isinstance(asked, Traceable):
        return code(asked)
    tree = framed(asked)
    return unrolled(program(asked, tree), tree)


def _priced(c: Count) -> str:
    return f"trace: {c.flops} flops ({c.mul} mul, {c.add} add, {c.div} div, {c.sqrt} sqrt; {c.trig} sin/cos)"


def tangent(model: Model, arg: Argument, name: str) -> Argument:
    """The argument of an input's changes: of q as many as there are velocities."""
    return (
        Argument(name, (model.nv,), "v")
        if arg.per_joint == "q"
        else Argument(name, arg.shape, arg.per_joint)
    )


def _followed(known: Arguments, more: Iterable[Argument]) -> Arguments:
    """Arguments, and others behind them; a name that is taken is numbered: dq, dq_2. Derivatives are asked for by name."""
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
    changes = (tangent(model, arg, f"d{arg.name}") for arg in _chosen(inputs, names))
    changed = (Argument(f"d{arg.name}", arg.shape, arg.per_joint) for arg in outputs)
    return _followed(inputs, changes), _followed(outputs, changed)


def _vjp(
    model: Model, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
) -> tuple[Arguments, Arguments]:
    weights = (Argument(f"{arg.name}_weight", arg.shape, arg.per_joint) for arg in outputs)
    return _followed(inputs, weights), _followed(
        outputs, (tangent(model, arg, f"{arg.name}_bar") for arg in _chosen(inputs, names))
    )


def _jacobian(
    model: Model, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
) -> tuple[Arguments, Arguments]:
    columns = [tangent(model, arg, arg.name) for arg in _chosen(inputs, names)]
    slopes = (
        Argument(f"d{out.name}_d{arg.name}", (*out.shape, arg.size))
        for out in outputs
        for arg in columns
    )
    return inputs, _followed((), slopes)


def _hessian(
    model: Model, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
) -> tuple[Arguments, Arguments]:
    total = sum(tangent(model, arg, arg.name).size for arg in _chosen(inputs, names))
    return _vjp(model, inputs, outputs, names)[0], (Argument("hessian", (total, total)),)


def _pushforward(
    model: Model, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
) -> tuple[Arguments, Arguments]:
    changes = tuple(_fresh(inputs, arg, "_dot") for arg in _chosen(inputs, names))
    return (*inputs, *changes), tuple(_fresh((), arg, "_dot") for arg in outputs)


def _pullback(
    model: Model, inputs: Arguments, outputs: Arguments, names: tuple[str, ...]
) -> tuple[Arguments, Arguments]:
    weights = tuple(_fresh(inputs, arg, "_weight") for arg in outputs)
    return (*inputs, *weights), tuple(_fresh((), arg, "_bar") for arg in _chosen(inputs, names))


def _fresh(taken: Arguments, arg: Argument, more: str) -> Argument:
    """An argument like another, under a name that none of `taken` has; q is nq numbers, which are no configuration."""
    name = arg.name + more
    while any(name == other.name for other in taken):
        name += more
    return Argument(name, arg.shape, "" if arg.per_joint == "q" else arg.per_joint)


KINDS = {
    "jvp": _jvp,
    "vjp": _vjp,
    "jacobian": _jacobian,
    "hessian": _hessian,
    "pushforward": _pushforward,
    "pullback": _pullback,
}
TANGENT = {"pushforward": "jvp", "pullback": "vjp"}  # in which q changes by tangent vectors


def _chosen(inputs: Arguments, names: tuple[str, ...]) -> list[Argument]:
    return [next(arg for arg in inputs if arg.name == name) for name in names]


class TapeArrays:
    """The tape of some code, on its way to a derivative: `args` are its inputs, `results` its outputs, as arrays."""

    def __init__(
        self,
        model: Model,
        traced: StraightCode,
        names: tuple[str, ...],
        by_coordinates: bool = False,
    ):
        self.model, self.names, self.program = model, names, traced.program
        self.flat = (
            by_coordinates or model.manifold.is_flat
        )  # whether a change of q is one of its numbers
        self.tape: Tape = copied(traced.tape)
        self.nodes: dict[int, list[int]] = {
            number: [] for number in range(len(self.program.outputs))
        }
        for number, _, node in sorted(traced.stores):
            self.nodes[number].append(node)
        self.numbers = {arg.name: i for i, arg in enumerate(self.program.inputs)}
        self.more = len(self.program.inputs)  # of the next input

    @property
    def every(self) -> list[int]:
        return [node for row in self.nodes.values() for node in row]

    @property
    def values(self) -> list[list[Any]]:
        return [[Scalar(self.tape, node, False) for node in row] for row in self.nodes.values()]

    @cached_property
    def q(self) -> np.ndarray:
        return self._leaves(self.numbers["q"], self.model.nq)

    def _leaves(self, number: int, size: int) -> np.ndarray:
        return np.array([self.tape.leaf(str(number), j) for j in range(size)], dtype=object)

    def given(self, size: int) -> np.ndarray:
        """A new input."""
        self.more += 1
        return self._leaves(self.more - 1, size)

    def _size(self, name: str) -> int:
        return (
            self.model.nv
            if name == "q" and not self.flat
            else self.program.inputs[self.numbers[name]].size
        )

    def seeds(self, name: str, change: np.ndarray) -> dict[int, Any]:
        """What the leaves of an input change by, for a change of it."""
        if name == "q" and not self.flat:
            change = self.model.manifold.rate(self.q, change)
        return self.leaf_seeds(self.numbers[name], change)

    def leaf_seeds(self, number: int, change: Any) -> dict[int, Any]:
        """The same of the input with that number, a new one perhaps."""
        return {
            leaf.index: x for leaf, x in zip(self._leaves(number, len(change)), change, strict=True)
        }

    def _units(self, name: str) -> list[np.ndarray]:
        return list(np.eye(self._size(name)).astype(object))

    def jvp(self) -> list[list[Any]]:
        return [*self.values, *self.pushforward()]

    def pushforward(self) -> list[list[Any]]:
        """The changes of the results."""
        seeds: dict[int, Any] = {}
        for name in self.names:
            seeds |= self.seeds(name, self.given(self._size(name)))
        changes = iter(push(self.tape, self.every, seeds))
        return [[next(changes) for _ in row] for row in self.nodes.values()]

    def pullback(self) -> list[list[Any]]:
        """Of the results' weighted sum, one a name."""
        weights: dict[int, Any] = {}
        for row in self.nodes.values():
            for node, w in zip(row, self.given(len(row)), strict=True):
                weights[node] = weights[node] + w if node in weights else w
        return self._gradients(weights)

    def _gradients(self, weights: dict[int, Any]) -> list[list[Any]]:
        bar = pull(self.tape, weights)
        found = []
        for name in self.names:
            leaves = self._leaves(self.numbers[name], self.program.inputs[self.numbers[name]].size)
            own = [bar.get(leaf.index, 0.0) for leaf in leaves]
            if name == "q" and not self.flat:
                own = self.model.manifold.slope(self.q, np.array(own, dtype=object)).tolist()
            found.append(own)
        return found

    def vjp(self) -> list[list[Any]]:
        return [*self.values, *self.pullback()]

    def jacobian(self) -> list[list[Any]]:
        columns = {
            name: [
                push(self.tape, self.every, self.seeds(name, unit)) for unit in self._units(name)
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
        """The Jacobian row by row: for results that are fewer than what they depend on."""
        found = []
        for row in self.nodes.values():
            gradients = [self._gradients({node: 1.0}) for node in row]
            found += [
                [x for gradient in gradients for x in gradient[i]] for i in range(len(self.names))
            ]
        return found

    def hessian(self) -> list[list[Any]]:
        """Column by column; each down from the diagonal alone, where the matrix is symmetric: not among curved joints' q."""
        gradient = [self.tape.operand(x) for row in self.pullback() for x in row]
        found, seen = {}, 0
        for name in self.names:
            curved = name == "q" and not self.flat
            for k, unit in enumerate(self._units(name), seen):
                first = seen if curved else k
                changes = push(self.tape, gradient[first:], self.seeds(name, unit))
                found |= {(row, k): x for row, x in enumerate(changes, first)}
            seen += len(self._units(name))
        return [
            [
                found[at] if (at := (row, k)) in found else found[k, row]
                for row in range(seen)
                for k in range(seen)
            ]
        ]
