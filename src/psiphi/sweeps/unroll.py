"""Small robots: run the program once on a tape; what comes out is straight-line code for this robot alone."""

from __future__ import annotations

from dataclasses import dataclass

from psiphi.sweeps.drive import drive
from psiphi.sweeps.framing import Tree
from psiphi.sweeps.program import Program
from psiphi.tape.ops import Count
from psiphi.tape.tape import Tape


@dataclass(frozen=True)
class Straight:
    """A tape and where its results go: `stores` are (output number, flat index, node)."""

    program: Program
    tape: Tape
    stores: tuple[tuple[int, int, int], ...]

    @property
    def count(self) -> Count:
        return self.tape.count(node for *_, node in self.stores)


def unroll(program: Program, tree: Tree) -> Straight:
    """The whole program as one tape; outputs no step wrote are zero."""
    tape = Tape()
    inputs = {arg.name: [tape.leaf(str(i), j) for j in range(arg.size)] for i, arg in enumerate(program.inputs)}
    written = drive(program, tree, inputs)
    stores = tuple(
        (number, index, tape.operand(written.get((arg.name, index), 0.0)))
        for number, arg in enumerate(program.outputs)
        for index in range(arg.size)
    )
    return Straight(program, tape, stores)
