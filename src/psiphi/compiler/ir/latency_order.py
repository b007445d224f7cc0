"""Reorder neighbouring instructions to hide their latency: list scheduling by critical path.

Along a limb, each value depends on the one before, and each takes some cycles. Meanwhile a
processor runs other instructions, if they are near, within a WINDOW of the order. Farther
instructions are not moved, since their results would occupy registers. The order does not change
the results, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from psiphi.compiler.tape.ops import ADD, DIV, MUL, SQRT, SUB
from psiphi.compiler.tape.tape import Tape, operands

WINDOW = 40  # nodes
ISSUE_WIDTH = 1  # instructions per cycle
CYCLES = {ADD: 3, SUB: 3, MUL: 3, DIV: 14, SQRT: 20}  # latency of an instruction
FMA_CYCLES = 4  # latency of a sum with a fused product


def hide_latency(tape: Tape, body: list[int], fused: Mapping[int, int]) -> list[int]:
    """The nodes of `body` reordered: of the ready nodes within a window, the one with the longest
    critical path first. Fused products, {sum: product}, come right before their sums."""
    products = set(fused.values())
    order = [node for node in body if node not in products]
    place = {node: i for i, node in enumerate(order)}
    reads = {
        node: [x for x in _instruction_operands(tape, node, fused) if x in place] for node in order
    }
    readers: dict[int, list[int]] = {node: [] for node in order}
    for node in order:
        for read in reads[node]:
            readers[read].append(node)
    cycles = {
        node: FMA_CYCLES if node in fused else CYCLES.get(tape.nodes[node][0], 1) for node in order
    }
    path: dict[int, int] = {}  # cycles from the issue of a node to the last result that needs it
    for node in reversed(order):
        path[node] = cycles[node] + max([path[reader] for reader in readers[node]], default=0)
    out: list[int] = []
    for node in _issue_order(order, place, reads, readers, cycles, path):
        out += [fused[node], node] if node in fused else [node]
    return out


def _instruction_operands(tape: Tape, node: int, fused: Mapping[int, int]) -> set[int]:
    """The operands of a node's instruction; of an FMA, also those of the fused product."""
    found = set(operands(tape, node))
    if node in fused:
        found = (found - {fused[node]}) | set(operands(tape, fused[node]))
    return found


def _issue_order(
    order: list[int],
    place: Mapping[int, int],
    reads: Mapping[int, list[int]],
    readers: Mapping[int, list[int]],
    cycles: Mapping[int, int],
    path: Mapping[int, int],
) -> Iterator[int]:
    """The nodes in the order of their issue, ISSUE_WIDTH per cycle."""
    missing = {node: len(reads[node]) for node in order}
    done: dict[int, int] = {}  # the cycle in which a node's result is available
    # three heaps: ready nodes by place; ready nodes in the window, longest path first; nodes whose
    # operands are issued, by the cycle in which these are available
    ready = [(place[node], node) for node in order if not missing[node]]
    window: list[tuple[int, int, int]] = []
    pending: list[tuple[int, int, int]] = []
    first = cycle = 0
    while first < len(order):
        while pending and pending[0][0] <= cycle:
            heappush(ready, heappop(pending)[1:])
        while ready and ready[0][0] < first + WINDOW:
            at, node = heappop(ready)
            heappush(window, (-path[node], at, node))
        for _ in range(min(ISSUE_WIDTH, len(window))):
            node = heappop(window)[2]
            done[node] = cycle + cycles[node]
            yield node
            for reader in readers[node]:
                missing[reader] -= 1
                if not missing[reader]:
                    available = max([done[read] for read in reads[reader]])
                    heappush(pending, (available, place[reader], reader))
        while first < len(order) and order[first] in done:
            first += 1
        cycle += 1
