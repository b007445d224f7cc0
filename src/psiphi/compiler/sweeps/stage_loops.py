"""Stages of a large robot: sweeps as loops over its links, with straight-line code between them.

The stages run once on one tape, as in `tree_loop.py`, except for sweeps over many bodies: these
become loops (`link_loops.py`), and their outputs are leaves of the tape. The tape is cut
afterwards, so rules between stages may pass any values to each other, factors and solvers included.
Segment k of the straight-line code runs after loop k and computes everything that the first k loops
permit:

    straight 0, loop 1, straight 1, loop 2, ..., straight n

A number is computed once, in the first possible segment; later segments read it from the place
"saved k".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.sweeps.link_loops import LinkLoops, trace_loops
from psiphi.compiler.sweeps.sweep_program import ADDED_INERTIA, Argument, Program, SweepTree
from psiphi.compiler.sweeps.tree_loop import (
    MakeRun,
    ProgramRun,
    StraightCode,
    run_program,
    trace_tape,
)
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Count, Tape, operands

PlacedNodes = dict[str, list[int]]  # nodes, by the place that they are stored in
NamedCode = tuple[str, StraightCode | LinkLoops, dict[str, str]]


@dataclass(frozen=True)
class StagedCode:
    """A program in stages: blocks in order, (name, code, {argument: place}). An argument that is
    not listed has the place of its own name."""

    program: Program
    tree: SweepTree
    blocks: tuple[NamedCode, ...]

    @property
    def count(self) -> Count:
        return sum((code.count for _, code, _ in self.blocks), Count())

    @cached_property
    def straight(self) -> StraightCode:
        """The same program on one tape, for targets without loops."""
        return trace_tape(self.program, self.tree)


class NoLoops(Exception):
    """A stage over many bodies cannot run as a loop: its messages grow on the way."""


def trace_stage_loops(program: Program, tree: SweepTree, limit: int) -> StagedCode | None:
    """The program with its sweeps over more than `limit` bodies as loops.

    None if there are no such sweeps, or if one of them cannot run as a loop.
    """
    if isinstance(tree, Tree) and tree.freed is not None:
        return None
    tape = Tape()
    inputs = {arg.name: [tape.leaf(arg.name, j) for j in range(arg.size)] for arg in program.inputs}
    cut = _StageCut(program, tape, limit, {arg.name: 0 for arg in program.inputs})
    try:
        written = run_program(program, tree, inputs, partial(_StageCutRun, cut))
    except NoLoops:
        return None
    results = {
        arg.name: [tape.operand(written.get((arg.name, i), 0.0)) for i in range(arg.size)]
        for arg in program.outputs
    }
    return StagedCode(program, tree, cut.blocks(results)) if cut.loops else None


class _StageCutRun(ProgramRun):
    """A run whose stages over many bodies are loops."""

    def __init__(
        self, cut: _StageCut, program: Program, tree: SweepTree, inputs: Mapping[str, Any]
    ):
        super().__init__(program, tree, inputs)
        self.cut = cut

    def run_stage(
        self, program: Program, inputs: Mapping[str, Any], make_run: MakeRun
    ) -> dict[tuple[str, int], Any]:
        bodies = len(self.tree.links) if program.bodies is None else len(program.bodies)
        # sweeps over few bodies, such as a hub among arms, are straight-line code
        if program.stages or bodies <= self.cut.limit:
            return super().run_stage(program, inputs, make_run)
        if not program.can_loop:
            raise NoLoops
        return self.cut.add_loop(program, self.tree, inputs)


@dataclass
class _StageCut:
    """One tape and the loops at which it is cut.

    `after` says for each place after how many loops its entries are known.
    """

    program: Program
    tape: Tape
    limit: int
    after: dict[str, int]
    loops: list[tuple[LinkLoops, PlacedNodes]] = field(default_factory=list)
    traced: dict[tuple[int, bool, str], tuple[Program, LinkLoops]] = field(default_factory=dict)

    def add_loop(
        self, program: Program, tree: SweepTree, inputs: Mapping[str, Any]
    ) -> dict[tuple[str, int], Any]:
        """Append a loop, traced once per program; constant inputs become part of its code."""
        # sweeps read D + X in place of D if X is given, also if their inputs do not list it
        known = [
            *program.inputs,
            *([Argument(ADDED_INERTIA, (tree.nv,), "v")] if ADDED_INERTIA in inputs else []),
        ]
        args = {arg.name: arg for arg in known}.values()
        # the zeros of unit vectors fold code away, so that a column stays in its own arm
        constants = {
            arg.name: inputs[arg.name]
            for arg in args
            if not arg.per_joint and _is_constant(inputs[arg.name])
        }
        key = id(program), ADDED_INERTIA in inputs, repr(constants)
        if key not in self.traced:
            variable = tuple(arg for arg in args if arg.name not in constants)
            self.traced[key] = (
                program,
                trace_loops(replace(program, inputs=variable), tree, constants),
            )
        loops = self.traced[key][1]
        read = {
            arg.name: [self.tape.operand(x) for x in inputs[arg.name]]
            for arg in loops.program.inputs
        }
        self.loops.append((loops, read))
        # the outputs are leaves, of places that are known after this loop
        number = len(self.loops)
        for arg in loops.program.outputs:
            self.after[_output_place(number, arg)] = number
        return {
            (arg.name, i): self.tape.leaf(_output_place(number, arg), i)
            for arg in loops.program.outputs
            for i in range(arg.size)
        }

    def blocks(self, results: PlacedNodes) -> tuple[NamedCode, ...]:
        """The segments of straight-line code and the loops, in order."""
        wanted: list[PlacedNodes] = []
        renamed: list[dict[str, str]] = []
        for number, (_, read) in enumerate(self.loops, 1):
            # an input of a loop that is exactly one place is read from there, without a copy
            whole = {name: self._whole_place(nodes) for name, nodes in read.items()}
            own = {name: f"{number} takes {name}" for name in read}
            renamed.append({name: place or own[name] for name, place in whole.items()})
            wanted.append({own[name]: nodes for name, nodes in read.items() if not whole[name]})
        wanted.append(results)
        level = self._levels(
            {node for values in wanted for nodes in values.values() for node in nodes}
        )
        saved = self._saved_nodes(wanted, level)
        out: list[NamedCode] = []
        for number, values in enumerate(wanted):
            stored = values | ({_saved_place(number): saved[number]} if saved[number] else {})
            if stored:
                last = number == len(self.loops)
                code = self._segment(number, stored, level, saved, last)
                out.append((f"straight{number}", code, {}))
            if number < len(self.loops):
                loops = self.loops[number][0]
                places = renamed[number] | {
                    arg.name: _output_place(number + 1, arg) for arg in loops.program.outputs
                }
                out.append((f"loop{number + 1}", loops, places))
        return tuple(out)

    def _whole_place(self, nodes: Sequence[int]) -> str:
        """The place whose entries are these nodes, all of them in order; "" if there is none."""
        leaves = [self.tape.nodes[node] for node in nodes]
        place = str(leaves[0][1]) if leaves and leaves[0][0] is Op.LEAF else ""
        whole = [(Op.LEAF, place, i) for i in range(self._size(place))] if place else []
        return place if whole and leaves == whole else ""

    def _size(self, place: str) -> int:
        if not self.after[place]:
            return next(arg.size for arg in self.program.inputs if arg.name == place)
        number = self.after[place]
        return next(
            arg.size
            for arg in self.loops[number - 1][0].program.outputs
            if _output_place(number, arg) == place
        )

    def _levels(self, outputs: set[int]) -> dict[int, int]:
        """After how many loops each node can be computed."""
        level: dict[int, int] = {}
        for node in self.tape.live(outputs):
            op, place, _ = self.tape.nodes[node]
            level[node] = (
                self.after[place]
                if op is Op.LEAF
                else max((level[x] for x in operands(self.tape, node)), default=0)
            )
        return level

    def _saved_nodes(self, wanted: list[PlacedNodes], level: dict[int, int]) -> list[list[int]]:
        """The nodes of each segment that later segments read."""
        found: list[dict[int, None]] = [{} for _ in wanted]
        reads = [(level[node], x) for node in level for x in operands(self.tape, node)]
        reads += [
            (number, x)
            for number, values in enumerate(wanted)
            for nodes in values.values()
            for x in nodes
        ]
        for number, x in reads:
            # leaves are in memory already, and constants are free
            if level[x] < number and self.tape.nodes[x][0] not in (Op.LEAF, Op.CONST):
                found[level[x]][x] = None
        return [list(nodes) for nodes in found]

    def _segment(
        self,
        number: int,
        stored: PlacedNodes,
        level: dict[int, int],
        saved: list[list[int]],
        last: bool,
    ) -> StraightCode:
        """The nodes of one level as a tape of their own, which stores `stored`."""
        tape, inputs = Tape(), {}
        # the last segment has the arguments of the function: all inputs, read or not
        if last:
            inputs = {arg.name: Argument(arg.name, (arg.size,)) for arg in self.program.inputs}
        # where earlier segments saved nodes: place, index, size of the place
        loads = {
            node: (_saved_place(k), i, len(nodes))
            for k, nodes in enumerate(saved[:number])
            for i, node in enumerate(nodes)
        }
        new: dict[int, int] = {}

        def copy(node: int) -> int:
            if node not in new:
                op, a, b = self.tape.nodes[node]
                if op is Op.CONST:
                    new[node] = tape.node(op, a)
                elif op is Op.LEAF or node in loads:
                    place, index, size = (a, b, self._size(a)) if op is Op.LEAF else loads[node]
                    inputs.setdefault(place, Argument(place, (size,)))
                    new[node] = tape.leaf(str(list(inputs).index(place)), index).index
                else:
                    new[node] = tape.node(op, *(copy(x) for x in operands(self.tape, node)))
            return new[node]

        # in the order of the tape, so that operands are copied before their users
        for node in sorted(level):
            if level[node] == number and self.tape.nodes[node][0] is not Op.LEAF:
                copy(node)
        outputs = tuple(Argument(place, (len(nodes),)) for place, nodes in stored.items())
        stores = tuple(
            (k, i, copy(node))
            for k, nodes in enumerate(stored.values())
            for i, node in enumerate(nodes)
        )
        return StraightCode(
            Program(f"straight {number}", tuple(inputs.values()), outputs, ()), tape, stores
        )


def _is_constant(values: Sequence[object]) -> bool:
    return all(isinstance(x, float) for x in values)


def _output_place(number: int, arg: Argument) -> str:
    """The place of an output of loop `number`."""
    return f"{number} gives {arg.name}"


def _saved_place(number: int) -> str:
    """The place of the nodes that segment `number` saves for later segments."""
    return f"saved {number}"
