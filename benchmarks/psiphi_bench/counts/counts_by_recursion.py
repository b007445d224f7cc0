"""Assigns each operation of a traced program to one recursion.

A recursion is named after its values at each body: P, G, V, ... Its cost is the number of
operations that compute these values from those of the others, and from its own at neighbouring
bodies. Operations that no recursion needs belong to the results. The costs add up exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.sweeps.sweep_program import BASE_TO_TIP, BodyView, Program, Sweep
from psiphi.compiler.sweeps.tree_loop import run_program
from psiphi.compiler.tape.ops import BINARY, COLUMN, UNARY
from psiphi.compiler.tape.tape import Count, Scalar, Tape

Recursion = tuple[
    str, Callable[[BodyView], Any]
]  # name, and function that returns its values at one body
REST = "rest"


def by_recursion(program: Program, tree: Tree, recursions: Sequence[Recursion]) -> dict[str, Count]:
    """The cost of each recursion and of the "rest". A shared value counts for the first one."""
    tape, values = Tape(), {name: [] for name, _ in recursions}

    def remember(site: BodyView) -> None:
        for name, read in recursions:
            values[name] += [x.index for x in _scalars(read(site))]

    inputs = {
        arg.name: [tape.leaf(str(i), j) for j in range(arg.size)]
        for i, arg in enumerate(program.inputs)
    }
    watched = replace(program, sweeps=(*program.sweeps, Sweep(BASE_TO_TIP, remember)))
    results = [tape.operand(x) for x in run_program(watched, tree, inputs).values()]
    needed = set(tape.live(results))
    owner: dict[int, str] = {}
    for name in values:
        for node in values[name]:
            if node in needed:
                owner.setdefault(node, name)
    for name in values:
        _claim(tape, name, [node for node, whose in owner.items() if whose == name], owner)
    _claim(tape, REST, results, owner)
    return {name: _count(tape, (i for i in needed if owner[i] == name)) for name in (*values, REST)}


def _claim(tape: Tape, name: str, nodes: list[int], owner: dict[int, str]) -> None:
    """Assign the operands of the nodes to `name`, unless they have an owner."""
    for node in nodes:
        owner.setdefault(node, name)
    stack = list(nodes)
    while stack:
        op, a, b = tape.nodes[stack.pop()]
        for below in (a, b) if op in BINARY else (a,) if op in UNARY else ():
            if below not in owner:
                owner[below] = name
                stack.append(below)


def _count(tape: Tape, nodes: Iterable[int]) -> Count:
    found = Counter(COLUMN.get(tape.nodes[i][0]) for i in nodes)
    return Count(**{name: found[name] for name in ("mul", "add", "div", "sqrt", "trig")})


def _scalars(value: Any) -> Iterator[Scalar]:
    """Every scalar inside nested lists and dataclasses."""
    if isinstance(value, Scalar):
        yield value
    elif isinstance(value, (list, tuple)):
        for x in value:
            yield from _scalars(x)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            yield from _scalars(getattr(value, f.name))
