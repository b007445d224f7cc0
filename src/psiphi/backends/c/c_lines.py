"""Nodes of a tape as lines of C: one `const double tN = ...;` each, and the stores last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from psiphi.compiler.ir.segments import Segment
from psiphi.compiler.tape.ops import BINARY, Op
from psiphi.compiler.tape.tape import Tape, operands

OPERATORS = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/"}
FUNCTIONS = {Op.SIN: "sin", Op.COS: "cos", Op.SQRT: "sqrt"}
REAL = {"d": ("double", ""), "f": ("float", "f")}  # type, suffix of its constants and functions


class Dialect(NamedTuple):
    """The type of numbers, the suffix of constants, and the names of sin, cos and sqrt."""

    real: str
    suffix: str
    functions: dict[Op, str]

    @staticmethod
    def of(char: str, trig: dict[Op, str] | None = None) -> Dialect:
        """`trig` names functions to use instead of libm's sin and cos."""
        real, suffix = REAL[char]
        return Dialect(
            real, suffix, {op: f"{name}{suffix}" for op, name in FUNCTIONS.items()} | (trig or {})
        )

    def constant(self, x: float) -> str:
        return f"{x!r}{self.suffix}"

    def value(self, op: Op, a: str, b: str = "") -> str:
        """The expression of one operation on the operands a and b."""
        if op is Op.LESS:
            return f"({a} < {b}) ? 1.0{self.suffix} : 0.0{self.suffix}"
        if op in BINARY:
            return f"{a} {OPERATORS[op]} {_parenthesize(b)}"
        return f"-{_parenthesize(a)}" if op is Op.NEG else f"{self.functions[op]}({a})"


def segment_lines(segment: Segment, dialect: Dialect) -> Iterator[str]:
    """The body of a function that runs a segment; bases are pointers of the same names."""
    loads = {node: f"{base}[{at}]" for node, (base, at) in segment.loads.items()}
    stores = [
        (f"{store.base}[{store.offset}]", store.node, store.accumulate) for store in segment.stores
    ]
    return tape_lines(segment.tape, segment.nodes, loads, stores, dialect)


def tape_lines(
    tape: Tape,
    nodes: Iterable[int],
    loads: dict[int, str],
    stores: list[tuple[str, int, bool]],
    dialect: Dialect,
) -> Iterator[str]:
    """The lines that compute `nodes`, then store some of them.

    `loads`: {node: where it is read}; `stores`: (where, node, whether to add to the value there).
    An input that is stored unchanged is read before anything is stored.
    """
    text = dict(loads)

    def operand(node: int) -> str:
        if node not in text:
            op, value, _ = tape.nodes[node]
            assert op is Op.CONST, op
            text[node] = dialect.constant(value)
        return text[node]

    for node in nodes:
        operand_texts = [operand(x) for x in operands(tape, node)]
        value = dialect.value(tape.nodes[node][0], *operand_texts)
        yield f"const {dialect.real} t{node} = {value};"
        text[node] = f"t{node}"
    for node in dict.fromkeys(
        node for _, node, _ in stores if node in loads and text[node] == loads[node]
    ):
        yield f"const {dialect.real} t{node} = {loads[node]};"
        text[node] = f"t{node}"
    for place, node, accumulate in stores:
        yield f"{place} = {f'{place} + ' if accumulate else ''}{operand(node)};"


def max_live_values(tape: Tape, nodes: Iterable[int], stored: Iterable[int]) -> int:
    """How many nodes are live at a time, at most, if computed in this order and stored last."""
    order = list(nodes)
    last_use = {o: i for i, n in enumerate(order) for o in operands(tape, n)}
    last_use |= {node: len(order) for node in stored}
    ends = Counter(last_use[n] for n in order)
    peak = count = 0
    for i in range(len(order)):
        count += 1
        peak = max(peak, count)
        count -= ends[i]
    return peak


def _parenthesize(text: str) -> str:
    return f"({text})" if text.startswith("-") else text
