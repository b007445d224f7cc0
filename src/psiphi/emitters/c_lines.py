"""Nodes of a tape as lines of C: one `const double tN = ...;` each; loads where they are first needed, stores last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from psiphi.emitters.segments import Segment
from psiphi.tape.ops import BINARY, Op
from psiphi.tape.tape import Tape, operands

SIGN = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/"}
FUNCTION = {Op.SIN: "sin", Op.COS: "cos", Op.SQRT: "sqrt"}
REAL = {"d": ("double", ""), "f": ("float", "f")}  # the type, and the suffix of its constants and functions


class Dialect(NamedTuple):
    """How numbers are written: their type, the suffix of constants, and what sines, cosines and roots are called."""

    real: str
    suffix: str
    called: dict[Op, str]

    @staticmethod
    def of(char: str, trig: dict[Op, str] | None = None) -> Dialect:
        """`trig` names other sines and cosines than the library's."""
        real, suffix = REAL[char]
        return Dialect(real, suffix, {op: f"{word}{suffix}" for op, word in FUNCTION.items()} | (trig or {}))

    def constant(self, x: float) -> str:
        return f"{x!r}{self.suffix}"

    def value(self, op: Op, a: str, b: str) -> str:
        """One operation on two operands as they are written."""
        if op is Op.LESS:
            return f"({a} < {b}) ? 1.0{self.suffix} : 0.0{self.suffix}"
        if op in BINARY:
            return f"{a} {SIGN[op]} {_operand(b)}"
        return f"-{_operand(a)}" if op is Op.NEG else f"{self.called[op]}({a})"


def segment_lines(segment: Segment, dialect: Dialect) -> Iterator[str]:
    """The body of a function that runs a segment; its bases are pointers of their names."""
    tape, text = segment.tape, {}

    def loaded(node: int) -> Iterator[str]:
        if node in text:
            return
        if node in segment.given:
            base, at = segment.given[node]
            text[node] = f"t{node}"
            yield f"const {dialect.real} t{node} = {base}[{at}];"
        else:
            op, a, _ = tape.nodes[node]
            assert op is Op.CONST, op
            text[node] = dialect.constant(a)

    for node in segment.nodes:
        op, a, b = tape.nodes[node]
        own = operands(tape, node)
        for operand in own:
            yield from loaded(operand)
        yield f"const {dialect.real} t{node} = {dialect.value(op, text[a], text[b] if len(own) > 1 else '')};"
        text[node] = f"t{node}"
    for store in segment.stores:
        yield from loaded(store.node)
    for store in segment.stores:
        place = f"{store.base}[{store.offset}]"
        yield f"{place} = {f'{place} + ' if store.accumulate else ''}{text[store.node]};"


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
