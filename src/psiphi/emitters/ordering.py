"""The order in which a tape's numbers are computed: one in which few of them wait.

A number that is read long after it was made is stored and loaded again, and stores are what wide registers are slow at. Sweeps
make all columns of a matrix body by body; column by column each stays in registers on its way through the tree. Any order gives
the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from psiphi.sweeps.drive import Straight
from psiphi.tape.tape import Tape, operands

RUN = 200  # nodes within which a number is still at hand

# in which order results are asked for, by their (output, row, column)
ORDERS: tuple[Callable[[tuple[int, int, int]], tuple[int, ...]], ...] = (
    lambda at: (-at[2], -at[1], at[0]),  # columns, the last first: those of the tips are the shortest
    lambda at: (-max(at[1:]), -min(at[1:]), at[0]),  # a row and a column of the same number together
)


def ordered(straight: Straight, body: list[int], more: Iterable[int] = ()) -> list[int]:
    """The nodes of `body` in the order, traced or by results, in which fewest wait; `more` is wanted besides the results."""
    tape, inside = straight.tape, set(body)
    shapes = [arg.shape for arg in straight.program.outputs]
    results = [
        ((number, *divmod(index, shapes[number][-1] if shapes[number] else 1)), node)
        for number, index, node in straight.stores
        if node in inside
    ]
    ways = [body]
    for order in ORDERS:
        roots = [node for _, node in sorted(results, key=lambda result: order(result[0]))]
        ways.append(list(_needed(tape, [*roots, *more], inside)))
    return min(ways, key=lambda way: waiting(tape, way))


def _needed(tape: Tape, roots: Iterable[int], inside: set[int]) -> Iterator[int]:
    """Every node after what it reads, each as late as the root that first needs it."""
    done: set[int] = set()
    for root in roots:
        path = [(root, iter(operands(tape, root)))] if root in inside and root not in done else []
        while path:
            node, rest = path[-1]
            lower = next((x for x in rest if x in inside and x not in done), None)
            if lower is not None:
                path.append((lower, iter(operands(tape, lower))))
                continue
            path.pop()
            if node not in done:
                done.add(node)
                yield node


def waiting(tape: Tape, order: list[int]) -> int:
    """How many numbers are read in a later run of nodes than they are made in."""
    home = {node: i // RUN for i, node in enumerate(order)}
    return len({x for node in order for x in operands(tape, node) if home.get(x, home[node]) != home[node]})
