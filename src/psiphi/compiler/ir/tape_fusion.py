"""Several blocks as one tape: what one writes to a place is what the next one reads there; the places themselves are gone.

Bits stay what they are: a product rides in the sum that it rode in when its block stood alone, and in no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from psiphi._util.errors import StateError
from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.ir.loop_nodes import SingleStep
from psiphi.compiler.ir.segments import riders
from psiphi.compiler.sweeps.sweep_program import Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import BINARY, Op
from psiphi.compiler.tape.tape import Tape


@dataclass(frozen=True)
class FusedTape(StraightCode):
    """Straight-line code in which it is settled which products ride in sums."""

    fused: frozenset[int] = frozenset()


@dataclass
class TapeFusion:
    """A tape that grows block by block. Leaves are (place, index): what is read before any block wrote it."""

    frame: BlockFrame
    tape: Tape = field(default_factory=Tape)
    values: dict[str, list[int]] = field(default_factory=dict)  # what stands in a place, by nodes
    fused: set[int] = field(default_factory=set)

    def run(self, name: str) -> None:
        """One more block."""
        code, at = self.frame.named[name]
        if not isinstance(code, StraightCode):
            cause = "code that runs in loops over links has no kernel for graphics cards"
            raise StateError(cause, "pass arrays of the host, or take a robot of up to 64 bodies")
        inputs, outputs = (
            [at.get(arg.name, arg.name) for arg in group]
            for group in (code.program.inputs, code.program.outputs)
        )
        riding = set(riders(code.tape, code.tape.computed(code.ends), code.ends).values())
        here: dict[int, int] = {}
        for i in code.live:
            op, a, b = code.tape.nodes[i]
            if op is Op.LEAF:
                here[i] = self.value(inputs[int(a)], b)
            elif op is Op.CONST:
                here[i] = self.tape.node(op, a)
            else:
                here[i] = self._node(op, here[a], here[b] if op in BINARY else None, i in riding)
        for number, place in enumerate(outputs):
            self.values[place] = [0] * code.program.outputs[number].size
        for number, index, node in code.stores:
            self.values[outputs[number]][index] = here[node]

    def value(self, place: str, index: int) -> int:
        return (
            self.values[place][index]
            if place in self.values
            else self.tape.node(Op.LEAF, place, index)
        )

    def _node(self, op: Op, a: int, b: int | None, rides: bool) -> int:
        """A node; a product that rides is its sum's alone."""
        if not rides:
            return self.tape.node(op, a, b)
        self.tape.nodes.append((op, a, b))
        self.fused.add(len(self.tape.nodes) - 1)
        return len(self.tape.nodes) - 1


def joined(single: SingleStep) -> FusedTape:
    """One step of a rollout as one tape."""
    one = TapeFusion(single.frame)
    for number, arg in enumerate(single.inputs):
        one.values[arg.name] = [one.tape.node(Op.LEAF, str(number), j) for j in range(arg.size)]
    for name in single.order:
        one.run(name)
    stores = tuple(
        (number, i, node)
        for number, arg in enumerate(single.outputs)
        for i, node in enumerate(one.values[arg.name])
    )
    return FusedTape(
        Program("step", single.inputs, single.outputs, ()), one.tape, stores, frozenset(one.fused)
    )
