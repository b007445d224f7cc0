"""Neighbours in an order change places, so that a processor need not wait: what most depends on comes first.

Along a limb every number waits for the one before, some cycles each. A processor goes on with others meanwhile, if they stand
near: within a WINDOW of the order. Farther away they would have to wait in registers themselves. Any order gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Tape, operands

WINDOW = 40  # nodes
WIDTH = 1  # nodes that are begun in a cycle
CYCLES = {Op.ADD: 3, Op.SUB: 3, Op.MUL: 3, Op.DIV: 14, Op.SQRT: 20}  # until a result is there
FUSED = 4  # of a product that rides in a sum


def interleaved(tape: Tape, body: list[int], riding: Mapping[int, int]) -> list[int]:
    """The nodes of `body`, of those that could be begun within a window always the one that most cycles depend on; products
    that ride in a sum (`riding`) stand right before it."""
    passengers = set(riding.values())
    order = [node for node in body if node not in passengers]
    place = {node: i for i, node in enumerate(order)}
    reads = {node: [x for x in _read(tape, node, riding) if x in place] for node in order}
    readers: dict[int, list[int]] = {node: [] for node in order}
    for node in order:
        for read in reads[node]:
            readers[read].append(node)
    cycles = {
        node: FUSED if node in riding else CYCLES.get(tape.nodes[node][0], 1) for node in order
    }
    behind: dict[int, int] = {}  # cycles from the begin of a node to the last result that needs it
    for node in reversed(order):
        behind[node] = cycles[node] + max((behind[reader] for reader in readers[node]), default=0)
    out: list[int] = []
    for node in _begun(order, place, reads, readers, cycles, behind):
        out += [riding[node], node] if node in riding else [node]
    return out


def _read(tape: Tape, node: int, riding: Mapping[int, int]) -> set[int]:
    """What the instruction of a node reads, through the product that rides in it."""
    found = set(operands(tape, node))
    if node in riding:
        found = (found - {riding[node]}) | set(operands(tape, riding[node]))
    return found


def _begun(
    order: list[int],
    place: Mapping[int, int],
    reads: Mapping[int, list[int]],
    readers: Mapping[int, list[int]],
    cycles: Mapping[int, int],
    behind: Mapping[int, int],
) -> Iterator[int]:
    """The nodes as they are begun, cycle by cycle, WIDTH at a time."""
    missing = {node: len(reads[node]) for node in order}
    done: dict[int, int] = {}  # the cycle in which a node's result is there
    far = [
        (place[node], node) for node in order if not missing[node]
    ]  # could be begun, by their places
    near: list[
        tuple[int, int, int]
    ] = []  # and stand in the window, those first on which most depends
    coming: list[
        tuple[int, int, int]
    ] = []  # will be, by the cycle in which all that they read is there
    first = cycle = 0
    while first < len(order):
        while coming and coming[0][0] <= cycle:
            heappush(far, heappop(coming)[1:])
        while far and far[0][0] < first + WINDOW:
            at, node = heappop(far)
            heappush(near, (-behind[node], at, node))
        for _ in range(min(WIDTH, len(near))):
            node = heappop(near)[2]
            done[node] = cycle + cycles[node]
            yield node
            for reader in readers[node]:
                missing[reader] -= 1
                if not missing[reader]:
                    heappush(
                        coming, (max(done[read] for read in reads[reader]), place[reader], reader)
                    )
        while first < len(order) and order[first] in done:
            first += 1
        cycle += 1
