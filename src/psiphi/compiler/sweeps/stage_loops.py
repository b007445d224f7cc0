"""Stages of a large robot: sweeps as loops over its links, and what stands between them as straight lines.

The stages run once on one tape, as `tree_loop.py` runs them, but for those over many bodies: these become loops (`link_loops.py`), and
what they give stands on the tape as leaves. So rules between stages hand on what they like, factors and solvers included; the
tape is cut afterwards. Number k of the lines runs behind loop k, and makes all that the loops up to there let it make:

    lines 0, loop 1, lines 1, loop 2, ..., lines n

A number is made once, in the first lines that can, and later lines read it from the place "kept k".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from psiphi.compiler.sweeps.link_loops import LinkLoops, roll
from psiphi.compiler.sweeps.sweep_program import ADDED, Argument, Program
from psiphi.compiler.sweeps.tree_loop import ProgramRun, StraightCode, drive, unroll
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Count, Tape, operands

PlacedNodes = dict[str, list[int]]  # nodes, by the place that they go to


@dataclass(frozen=True)
class StagedCode:
    """A program in stages: blocks in order, (name, code, {its argument: place}); others keep their names."""

    program: Program
    tree: Any
    blocks: tuple[tuple[str, StraightCode | LinkLoops, dict[str, str]], ...]

    @property
    def count(self) -> Count:
        return sum((code.count for _, code, _ in self.blocks), Count())

    @cached_property
    def straight(self) -> StraightCode:
        """The same on one tape, for whom loops are nothing."""
        return unroll(self.program, self.tree)


class NoLoops(Exception):
    """A stage over many bodies whose messages grow on their way."""


def roll_stages(program: Program, tree: Any, many: int) -> StagedCode | None:
    """The program with its sweeps over more than `many` bodies as loops; None where one of these has none."""
    if getattr(tree, "freed", None) is not None:
        return None
    tape = Tape()
    # Leaves are (place, index): here of the inputs, in `loop` of what a loop gives.
    inputs = {arg.name: [tape.leaf(arg.name, j) for j in range(arg.size)] for arg in program.inputs}
    work = _Cut(program, tape, many, {arg.name: 0 for arg in program.inputs})
    try:
        written = drive(program, tree, inputs, partial(_CutRun, work))
    except NoLoops:
        return None
    # nodes of the results, whether lines make them or a loop gives them
    results = {
        arg.name: [tape.operand(written.get((arg.name, i), 0.0)) for i in range(arg.size)]
        for arg in program.outputs
    }
    return StagedCode(program, tree, work.blocks(results)) if work.loops else None


class _CutRun(ProgramRun):
    """A run whose stages over many bodies are loops."""

    def __init__(self, work: _Cut, program: Program, tree: Any, inputs: Mapping[str, Any]):
        super().__init__(program, tree, inputs)
        self.work = work

    def stage(
        self, what: Program, inputs: Mapping[str, Any], under: Any
    ) -> dict[tuple[str, int], Any]:
        bodies = len(self.tree.links) if what.bodies is None else len(what.bodies)
        # few bodies are lines: a hub of one body among arms is no loop
        if what.stages or bodies <= self.work.many:
            return super().stage(what, inputs, under)
        if not what.local:
            raise NoLoops
        return self.work.loop(what, self.tree, inputs)


@dataclass
class _Cut:
    """One tape, the loops that it was cut at, and after which of them the leaves of a place are known."""

    program: Program
    tape: Tape
    many: int
    after: dict[str, int]
    loops: list[tuple[LinkLoops, PlacedNodes]] = field(default_factory=list)
    rolled: dict[tuple[int, bool, str], tuple[Program, LinkLoops]] = field(default_factory=dict)

    def loop(
        self, what: Program, tree: Any, inputs: Mapping[str, Any]
    ) -> dict[tuple[str, int], Any]:
        """One more loop, or one of those again, on other numbers; whole inputs that are constants are part of it."""
        # D + X for D: sweeps read X beside the rotors, whether they name it or not
        known = [*what.inputs, *([Argument(ADDED, (tree.nv,), "v")] if ADDED in inputs else [])]
        args = {arg.name: arg for arg in known}.values()
        # unit vectors fold away where they are zero: a column climbs its own arm alone
        fixed = {
            arg.name: inputs[arg.name]
            for arg in args
            if not arg.per_joint and _is_constant(inputs[arg.name])
        }
        key = id(what), ADDED in inputs, repr(fixed)
        if key not in self.rolled:
            taken = tuple(arg for arg in args if arg.name not in fixed)
            self.rolled[key] = what, roll(replace(what, inputs=taken), tree, fixed)
        rolled = self.rolled[key][1]
        self.loops.append(
            (
                rolled,
                {
                    arg.name: [self.tape.operand(x) for x in inputs[arg.name]]
                    for arg in rolled.program.inputs
                },
            )
        )
        # what it gives stands on the tape as leaves of a place that is full once this loop has run
        number = len(self.loops)
        for arg in rolled.program.outputs:
            self.after[_given(number, arg)] = number
        return {
            (arg.name, i): self.tape.leaf(_given(number, arg), i)
            for arg in rolled.program.outputs
            for i in range(arg.size)
        }

    def blocks(
        self, results: PlacedNodes
    ) -> tuple[tuple[str, StraightCode | LinkLoops, dict[str, str]], ...]:
        """The lines and the loops in their order."""
        wanted: list[PlacedNodes] = []
        named: list[dict[str, str]] = []
        for number, (_, taken) in enumerate(self.loops, 1):
            # what a loop takes whole from a place is not written once more
            whole = {name: self._whole(nodes) for name, nodes in taken.items()}
            named.append({name: place or f"{number} takes {name}" for name, place in whole.items()})
            wanted.append(
                {
                    f"{number} takes {name}": nodes
                    for name, nodes in taken.items()
                    if not whole[name]
                }
            )
        wanted.append(results)
        # The tape as it was traced, cut by what each number must wait for.
        level = self._levels(
            {node for values in wanted for nodes in values.values() for node in nodes}
        )
        kept = self._crossing(wanted, level)
        out: list[tuple[str, StraightCode | LinkLoops, dict[str, str]]] = []
        for number, values in enumerate(wanted):
            stored = values | ({f"kept {number}": kept[number]} if kept[number] else {})
            if stored:
                out.append(
                    (
                        f"lines{number}",
                        self._lines(number, stored, level, kept, number == len(self.loops)),
                        {},
                    )
                )
            if number < len(self.loops):
                rolled = self.loops[number][0]
                at = named[number] | {
                    arg.name: _given(number + 1, arg) for arg in rolled.program.outputs
                }
                out.append((f"loop{number + 1}", rolled, at))
        return tuple(out)

    def _whole(self, nodes: Sequence[int]) -> str:
        """The place that these nodes are, all of it in its order."""
        # leaf by leaf in the order of the place, and all of it: then the place itself is handed over
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
            if _given(number, arg) == place
        )

    def _levels(self, outputs: set[int]) -> dict[int, int]:
        """Behind how many loops a node can be made."""
        level: dict[int, int] = {}
        for node in self.tape.live(outputs):
            op, place, _ = self.tape.nodes[node]
            # leaves wait for their loop, all else for the last of its operands
            level[node] = (
                self.after[place]
                if op is Op.LEAF
                else max((level[x] for x in operands(self.tape, node)), default=0)
            )
        return level

    def _crossing(self, wanted: list[PlacedNodes], level: dict[int, int]) -> list[list[int]]:
        """The numbers that lines leave for later ones, by lines."""
        found: list[dict[int, None]] = [{} for _ in wanted]
        reads = [(level[node], x) for node in level for x in operands(self.tape, node)]
        reads += [
            (number, x)
            for number, values in enumerate(wanted)
            for nodes in values.values()
            for x in nodes
        ]
        for number, x in reads:
            # places of arguments stand in the frame anyway, and constants cost nothing to say again
            if level[x] < number and self.tape.nodes[x][0] not in (Op.LEAF, Op.CONST):
                found[level[x]][x] = None
        return [list(nodes) for nodes in found]

    def _lines(
        self,
        number: int,
        stored: PlacedNodes,
        level: dict[int, int],
        kept: list[list[int]],
        last: bool,
    ) -> StraightCode:
        """The nodes of one level as a tape of its own, which leaves `stored`."""
        tape, inputs = Tape(), {}
        # the last lines have every input of the program, read or not: their arguments are those of the function
        if last:
            inputs = {arg.name: Argument(arg.name, (arg.size,)) for arg in self.program.inputs}
        waiting = {
            node: (f"kept {k}", i)
            for k, nodes in enumerate(kept[:number])
            for i, node in enumerate(nodes)
        }
        new: dict[int, int] = {}

        def made(node: int) -> int:
            if node not in new:
                op, a, b = self.tape.nodes[node]
                place, index = (a, b) if op is Op.LEAF else waiting.get(node, ("", 0))
                if op is Op.CONST:
                    new[node] = tape.node(op, a)
                elif place:
                    size = len(kept[int(place[5:])]) if op is not Op.LEAF else self._size(place)
                    inputs.setdefault(place, Argument(place, (size,)))
                    new[node] = tape.leaf(str(list(inputs).index(place)), index).index
                else:
                    own = [made(x) for x in operands(self.tape, node)]
                    new[node] = tape.node(op, *own)
            return new[node]

        # operands come first on a tape, so that each finds its own made
        for node in sorted(
            node
            for node, at in level.items()
            if at == number and self.tape.nodes[node][0] is not Op.LEAF
        ):
            made(node)
        outputs = tuple(Argument(place, (len(nodes),)) for place, nodes in stored.items())
        stores = tuple(
            (k, i, made(node))
            for k, nodes in enumerate(stored.values())
            for i, node in enumerate(nodes)
        )
        return StraightCode(
            Program(f"lines {number}", tuple(inputs.values()), outputs, ()), tape, stores
        )


def _is_constant(values: Sequence[Any]) -> bool:
    return all(isinstance(x, float) for x in values)


def _given(number: int, arg: Argument) -> str:
    """The place of what a loop gives."""
    return f"{number} gives {arg.name}"
