"""The order in which a tape's numbers are computed: one in which few of them wait.

A number that is read long after it was made is stored and loaded again, and stores are what wide registers are slow at. Sweeps
make all columns of a matrix body by body; column by column each stays in registers on its way through the tree. What bodies are
made of is traced before all sweeps; where it is made of inputs, it is made when a sweep first reads it. Any order gives the
same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Tape, operands

RUN = 200  # nodes within which a number is still at hand

# in which order results are asked for, by their (output, row, column)
ORDERS: tuple[Callable[[tuple[int, int, int]], tuple[int, ...]], ...] = (
    lambda at: (
        -at[2],
        -at[1],
        at[0],
    ),  # columns, the last first: those of the tips are the shortest
    lambda at: (
        -max(at[1:]),
        -min(at[1:]),
        at[0],
    ),  # a row and a column of the same number together
    lambda at: (
        -at[2] // 4,
        at[1],
        at[2],
        at[0],
    ),  # four columns side by side: bodies are read once for all of them
)


def ordered(straight: StraightCode, body: list[int], more: Iterable[int] = ()) -> list[int]:
    """The nodes of `body` in the order, traced or by results, in which fewest wait; `more` is wanted besides the results."""
    tape, inside = straight.tape, set(body)
    shapes = [arg.shape for arg in straight.program.outputs]
    results = [
        ((number, *divmod(index, shapes[number][-1] if shapes[number] else 1)), node)
        for number, index, node in straight.stores
        if node in inside
    ]
    # of the robot's free numbers alone: traced before all sweeps, and read by them one body after the other
    early = _of_parameters(straight, body)
    if early:
        late = list(_needed(tape, [*(node for node in body if node not in early), *body], inside))
        body = min(body, late, key=lambda way: _reads(tape, way))
    ways = [body]
    for order in ORDERS:
        roots = [node for _, node in sorted(results, key=lambda result: order(result[0]))]
        ways.append(list(_needed(tape, [*roots, *more], inside)))
    return min(ways, key=lambda way: waiting(tape, way))


def _of_parameters(straight: StraightCode, body: list[int]) -> set[int]:
    """The nodes that are made of the robot's free numbers alone."""
    inputs = [arg.name for arg in straight.program.inputs]
    if PARAMETERS not in inputs:
        return set()
    nodes, own = straight.tape.nodes, str(inputs.index(PARAMETERS))
    is_one = lambda x: x in found or nodes[x][0] is Op.CONST or nodes[x][:2] == (Op.LEAF, own)  # noqa: E731
    found: set[int] = set()
    for node in body:
        if all(map(is_one, operands(straight.tape, node))):
            found.add(node)
    return found


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
    return len({x for x, _ in _later(tape, order)})


def _reads(tape: Tape, order: list[int]) -> int:
    """How often a run of nodes reads a number that an earlier one has made."""
    return len(_later(tape, order))


def _later(tape: Tape, order: list[int]) -> set[tuple[int, int]]:
    """(number, run): who reads what was made in earlier runs."""
    home = {node: i // RUN for i, node in enumerate(order)}
    return {
        (x, home[node])
        for node in order
        for x in operands(tape, node)
        if home.get(x, home[node]) != home[node]
    }
