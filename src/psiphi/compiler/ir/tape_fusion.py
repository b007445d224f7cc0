"""Fuse several blocks into one tape: values that one block writes and the next one reads become
nodes, and need no place in a frame.

The results are the same to the last bit: a product is fused into the same sum (FMA) as in the code
of its block alone, and into no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from psiphi._util.errors import StateError
from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.ir.loop_nodes import SingleStep
from psiphi.compiler.ir.segments import fused_products
from psiphi.compiler.sweeps.sweep_program import Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import BINARY, Op
from psiphi.compiler.tape.tape import Tape


@dataclass(frozen=True)
class FusedTape(StraightCode):
    """Straight-line code with a fixed set of products that are fused into sums (FMA)."""

    fused: frozenset[int] = frozenset()


@dataclass
class TapeFusion:
    """A tape that grows block by block. Leaves are (place, index): values that a block reads and
    none before it has written."""

    frame: BlockFrame
    tape: Tape = field(default_factory=Tape)
    values: dict[str, list[int]] = field(default_factory=dict)  # the nodes in each place
    fused: set[int] = field(default_factory=set)

    def run(self, name: str) -> None:
        """Append a block."""
        code, at = self.frame.named[name]
        if not isinstance(code, StraightCode):
            cause = "code that runs in loops over links has no kernel for the GPU"
            raise StateError(cause, "pass arrays on the CPU, or use a robot of up to 64 bodies")
        inputs, outputs = (
            [at.get(arg.name, arg.name) for arg in group]
            for group in (code.program.inputs, code.program.outputs)
        )
        products = set(
            fused_products(
                code.tape, code.tape.operations(code.output_nodes), code.output_nodes
            ).values()
        )
        new: dict[int, int] = {}  # {node of the block: node of the fused tape}
        for i in code.live:
            op, a, b = code.tape.nodes[i]
            if op is Op.LEAF:
                new[i] = self.value(inputs[int(a)], b)
            elif op is Op.CONST:
                new[i] = self.tape.node(op, a)
            else:
                new[i] = self._node(op, new[a], new[b] if op in BINARY else None, i in products)
        for number, place in enumerate(outputs):
            self.values[place] = [0] * code.program.outputs[number].size
        for number, index, node in code.stores:
            self.values[outputs[number]][index] = new[node]

    def value(self, place: str, index: int) -> int:
        return (
            self.values[place][index]
            if place in self.values
            else self.tape.node(Op.LEAF, place, index)
        )

    def _node(self, op: Op, a: int, b: int | None, is_fused: bool) -> int:
        """The node; a fused product is a new node, which only its sum reads."""
        if not is_fused:
            return self.tape.node(op, a, b)
        self.tape.nodes.append((op, a, b))
        self.fused.add(len(self.tape.nodes) - 1)
        return len(self.tape.nodes) - 1


def fuse_blocks(single: SingleStep) -> FusedTape:
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
