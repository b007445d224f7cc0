"""Code whose sines depend on other sines, as a step of four stages does: layer by layer.

Within a layer no sine depends on another, so that all come first (`segments.py`). What later layers read of one stands in a
place `<name>.kept<layer>`.
"""

from __future__ import annotations

from psiphi.emitters.joined import BlockFrame, Named
from psiphi.emitters.rollout import Single
from psiphi.emitters.segments import operands
from psiphi.sweeps.drive import Straight
from psiphi.sweeps.program import Argument, Program
from psiphi.tape.ops import BINARY, Op
from psiphi.tape.tape import Tape

OUTSIDE = (Op.LEAF, Op.CONST)


def in_layers(code: Straight) -> Straight | Single:
    """The code itself where one layer will do."""
    if max(_layer_of(code).values(), default=0) == 0:
        return code
    named, order = layers(code, "layer")
    return Single(BlockFrame(named), order, code.program.inputs, code.program.outputs)


def layers(code: Straight, name: str) -> tuple[Named, tuple[str, ...]]:
    """The blocks of some code, and their order; the last one writes the results."""
    tape, layer = code.tape, _layer_of(code)
    last = max(layer.values(), default=0)
    wanted = [(n, o) for n in layer for o in operands(tape, n) if layer[o] < layer[n]]
    crossing = {o for _, o in wanted} | {node for *_, node in code.stores if layer[node] < last}
    kept: list[list[int]] = [[] for _ in range(last + 1)]
    for n in sorted(crossing):
        if tape.nodes[n][0] not in OUTSIDE:
            kept[layer[n]].append(n)
    named: Named = {f"{name}{k}": (_block(code, name, k, layer, kept), {}) for k in range(last + 1)}
    return named, tuple(named)


def _layer_of(code: Straight) -> dict[int, int]:
    """For every node that matters, how many sines of sines it takes, one after the other."""
    tape, depth = code.tape, {}
    for n in code.tape.live(node for *_, node in code.stores):
        below = max((depth[o] for o in operands(tape, n)), default=0)
        depth[n] = below + (tape.nodes[n][0] in (Op.SIN, Op.COS))
    return {n: max(0, d - 1) for n, d in depth.items()}


def _block(code: Straight, name: str, k: int, layer: dict[int, int], kept: list[list[int]]) -> Straight:
    """One layer, on a tape of its own."""
    program, tape, final = code.program, Tape(), k == len(kept) - 1
    before = [Argument(f"{name}.kept{i}", (len(row),)) for i, row in enumerate(kept[:k]) if row]
    inputs = (*program.inputs, *before)
    number = {arg.name: str(i) for i, arg in enumerate(inputs)}
    home = {n: (number[f"{name}.kept{i}"], j) for i, row in enumerate(kept[:k]) for j, n in enumerate(row)}
    here: dict[int, int] = {}

    def node(n: int) -> int:
        """A node of this layer, of one before it, or from outside."""
        if n not in here:
            op, a, b = code.tape.nodes[n]
            here[n] = tape.node(Op.LEAF, *home[n]) if n in home else tape.node(op, a, b)
        return here[n]

    for n, own in layer.items():
        op, a, b = code.tape.nodes[n]
        if own == k and op not in OUTSIDE:
            here[n] = tape.node(op, node(a), node(b) if op in BINARY else None)
    outputs = program.outputs if final else (Argument(f"{name}.kept{k}", (len(kept[k]),)),)
    made = code.stores if final else tuple((0, j, n) for j, n in enumerate(kept[k]))
    stores = tuple((output, index, node(n)) for output, index, n in made)
    return Straight(Program(f"{name}{k}", inputs, outputs, ()), tape, stores)
