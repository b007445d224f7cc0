"""Where to cut a tape into an early and a late part, so that the late part reads few numbers.

A value that is one operation away from numbers that are read anyway is computed again: an operation
is faster than a cache line. Products that are fused into a sum stay with the sum.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from psiphi.compiler.ir.segments import fused_products
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Tape, operands

RECOMPUTED = (Op.ADD, Op.SUB, Op.NEG, Op.MUL)


def find_cut(tape: Tape, live: list[int], results: list[int], early: Collection[int]) -> set[int]:
    """The nodes that the late part reads: those of the early part that are results or operands of
    late nodes. `live` are the nodes that the results depend on."""
    nodes = tape.nodes
    readers: dict[int, list[int]] = {}
    for i in live:
        for o in operands(tape, i):
            readers.setdefault(o, []).append(i)
    inside = [i for i in live if nodes[i][0] not in (Op.LEAF, Op.CONST)]
    fused = set(fused_products(tape, inside, results).values())
    late_operands = (o for i in inside if i not in early for o in operands(tape, i))
    needed = {i for i in chain(results, late_operands) if i in early}
    # fused products stay with their sums, in the late part
    cut = (needed - fused) | {o for i in needed & fused for o in operands(tape, i) if o in early}
    stored = set(results)
    for i in sorted(cut, reverse=True):
        only_late = i not in stored and not any(r in early for r in readers.get(i, ()))
        if (
            nodes[i][0] in RECOMPUTED
            and (nodes[i][0] is not Op.MUL or only_late)
            and _is_cheap(tape, i, cut, fused)
        ):
            cut.remove(i)
    return cut


def _is_cheap(tape: Tape, node: int, cut: Collection[int], fused: Collection[int]) -> bool:
    """Whether a node is one operation on numbers that are read anyway and constants, fused products
    included."""
    needed = [x for o in operands(tape, node) for x in (operands(tape, o) if o in fused else (o,))]
    return all(x in cut or tape.nodes[x][0] is Op.CONST for x in needed)


def replace_nodes(tape: Tape, leaves: dict[int, tuple]) -> Tape:
    """The tape with leaves in place of some nodes. Other nodes keep their numbers, hence their
    order."""
    out = Tape()
    out.nodes = [leaves.get(i, node) for i, node in enumerate(tape.nodes)]
    return out
