"""Nodes of a tape as lines of C: one `const double tN = ...;` each; what is given is read where it is needed, stores last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from psiphi.compiler.ir.segments import Segment
from psiphi.compiler.tape.ops import BINARY, Op
from psiphi.compiler.tape.tape import Tape, operands

SIGN = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/"}
FUNCTION = {Op.SIN: "sin", Op.COS: "cos", Op.SQRT: "sqrt"}
REAL = {
    "d": ("double", ""),
    "f": ("float", "f"),
}  # the type, and the suffix of its constants and functions


class Dialect(NamedTuple):
    """How numbers are written: their type, the suffix of constants, and what sines, cosines and roots are called."""

    real: str
    suffix: str
    called: dict[Op, str]

    @staticmethod
    def of(char: str, trig: dict[Op, str] | None = None) -> Dialect:
        """`trig` names other sines and cosines than the library's."""
        real, suffix = REAL[char]
        return Dialect(
            real, suffix, {op: f"{word}{suffix}" for op, word in FUNCTION.items()} | (trig or {})
        )

    def constant(self, x: float) -> str:
        return f"{x!r}{self.suffix}"

    def value(self, op: Op, a: str, b: str = "") -> str:
        """One operation on two operands as they are written."""
        if op is Op.LESS:
            return f"({a} < {b}) ? 1.0{self.suffix} : 0.0{self.suffix}"
        if op in BINARY:
            return f"{a} {SIGN[op]} {_operand(b)}"
        return f"-{_operand(a)}" if op is Op.NEG else f"{self.called[op]}({a})"


def segment_lines(segment: Segment, dialect: Dialect) -> Iterator[str]:
    """The body of a function that runs a segment; its bases are pointers of their names."""
    given = {node: f"{base}[{at}]" for node, (base, at) in segment.given.items()}
    stores = [
        (f"{store.base}[{store.offset}]", store.node, store.accumulate) for store in segment.stores
    ]
    return tape_lines(segment.tape, segment.nodes, given, stores, dialect)


def tape_lines(
    tape: Tape,
    nodes: Iterable[int],
    given: dict[int, str],
    stores: list[tuple[str, int, bool]],
    dialect: Dialect,
) -> Iterator[str]:
    """The lines that compute nodes from what is `given` in the memory of these names, and then store some: (where, node,
    whether it is added to what is there). What goes out as it came in is read before anything is written."""
    text = dict(given)

    def written(node: int) -> str:
        if node not in text:
            op, value, _ = tape.nodes[node]
            assert op is Op.CONST, op
            text[node] = dialect.constant(value)
        return text[node]

    for node in nodes:
        own = [written(x) for x in operands(tape, node)]
        yield f"const {dialect.real} t{node} = {dialect.value(tape.nodes[node][0], *own)};"
        text[node] = f"t{node}"
    for node in dict.fromkeys(
        node for _, node, _ in stores if node in given and text[node] == given[node]
    ):
        yield f"const {dialect.real} t{node} = {given[node]};"
        text[node] = f"t{node}"
    for place, node, adds in stores:
        yield f"{place} = {f'{place} + ' if adds else ''}{written(node)};"


def alive(tape: Tape, nodes: Iterable[int], stored: Iterable[int]) -> int:
    """How many of the nodes a machine must hold at once, when it computes in this order and stores last."""
    order = list(nodes)
    last = {o: i for i, n in enumerate(order) for o in operands(tape, n)}
    last |= {node: len(order) for node in stored}
    ends = Counter(last[n] for n in order)
    most = now = 0
    for i in range(len(order)):
        now += 1
        most = max(most, now)
        now -= ends[i]
    return most


def _operand(text: str) -> str:
    return f"({text})" if text.startswith("-") else text
