"""The order of a tape's instructions: one with few long-lived values.

A value that is read long after its computation is spilled to memory, and stores are slow with wide
registers. Sweeps compute all columns of a matrix body by body; if the order is column by column,
each column stays in registers on its way through the tree. Values that depend only on free
parameters are traced before all sweeps; they are better computed where a sweep first reads them.
The order does not change the results, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Tape, operands

Reads = Mapping[int, Sequence[int]]  # {node: the nodes that it reads}
RUN = 200  # nodes within which a value is likely to stay in a register

# orders in which the results are computed, as sort keys of (output, row, column)
ORDERS: tuple[Callable[[tuple[int, int, int]], tuple[int, ...]], ...] = (
    # columns, the last one first: columns of the tips are the shortest
    lambda place: (-place[2], -place[1], place[0]),
    # row i and column i together
    lambda place: (-max(place[1:]), -min(place[1:]), place[0]),
    # four columns at a time: they share the reads of each body
    lambda place: (-place[2] // 4, place[1], place[2], place[0]),
)


def choose_order(straight: StraightCode, body: list[int], more: Iterable[int] = ()) -> list[int]:
    """The nodes of `body` in the order with the fewest long-lived values: as traced, or by results.

    `more` are nodes that are needed besides the results.
    """
    tape, inside = straight.tape, set(body)
    reads = {node: [x for x in operands(tape, node) if x in inside] for node in body}
    shapes = [arg.shape for arg in straight.program.outputs]
    results = [
        ((number, *divmod(index, shapes[number][-1] if shapes[number] else 1)), node)
        for number, index, node in straight.stores
        if node in inside
    ]
    # traced before all sweeps, but read by them body by body
    early = _parameter_nodes(straight, body)
    if early:
        late = _demand_order([*(node for node in body if node not in early), *body], reads)
        body = min(body, late, key=lambda order: len(_distant_reads(reads, order)))
    orders = [body]
    for key in ORDERS:
        roots = [node for _, node in sorted(results, key=lambda result: key(result[0]))]
        orders.append(_demand_order([*roots, *more], reads))
    return min(orders, key=lambda order: len({x for x, _ in _distant_reads(reads, order)}))


def _parameter_nodes(straight: StraightCode, body: list[int]) -> set[int]:
    """The nodes that depend only on the robot's free parameters."""
    inputs = [arg.name for arg in straight.program.inputs]
    if PARAMETERS not in inputs:
        return set()
    nodes, space = straight.tape.nodes, str(inputs.index(PARAMETERS))
    found: set[int] = set()

    def is_parameter(x: int) -> bool:
        return x in found or nodes[x][0] is Op.CONST or nodes[x][:2] == (Op.LEAF, space)

    for node in body:
        if all(map(is_parameter, operands(straight.tape, node))):
            found.add(node)
    return found


def _demand_order(roots: Iterable[int], reads: Reads) -> list[int]:
    """The nodes after their operands, each as late as the first root that needs it."""
    done: set[int] = set()
    order: list[int] = []
    for root in roots:
        path = [root] if root in reads and root not in done else []
        while path:
            node = path[-1]
            for x in reads[node]:
                if x not in done:
                    path.append(x)
                    break
            else:
                done.add(path.pop())
                order.append(node)
    return order


def long_lived_count(tape: Tape, order: list[int]) -> int:
    """The number of values that a later run of nodes reads."""
    reads = {node: operands(tape, node) for node in order}
    return len({x for x, _ in _distant_reads(reads, order)})


def _distant_reads(reads: Reads, order: list[int]) -> set[tuple[int, int]]:
    """(value, run) if the run of nodes reads a value of an earlier run."""
    run = {node: i // RUN for i, node in enumerate(order)}
    found: set[tuple[int, int]] = set()
    for node, own in run.items():
        for x in reads[node]:
            if run.get(x, own) != own:
                found.add((x, own))
    return found
