"""The operations of a tape: one enum, and how each counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Op(IntEnum):
    """What a node does with its two operands a, b (node numbers unless said)."""

    LEAF = 0  # a value from outside: a = space (a name), b = index
    CONST = 1  # a = the float
    ADD = 2
    SUB = 3
    MUL = 4
    DIV = 5
    SIN = 6
    COS = 7
    SQRT = 8
    NEG = 9  # only where a negative value leaves the tape
    LESS = 10  # 1 where a < b, else 0


BINARY = frozenset({Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.LESS})
UNARY = frozenset({Op.SIN, Op.COS, Op.SQRT, Op.NEG})


@dataclass(frozen=True)
class Count:
    """Exact operation counts. `flops` is mul + add + div + sqrt; sines, cosines and signs stand apart, as in the papers.
    A comparison counts as the subtraction it is.

    >>> (Count(mul=3, add=2) + Count(div=1)).flops
    6
    """

    mul: int = 0
    add: int = 0
    div: int = 0
    sqrt: int = 0
    trig: int = 0

    @property
    def flops(self) -> int:
        return self.mul + self.add + self.div + self.sqrt

    def __add__(self, other: Count) -> Count:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Count(*(x + y for x, y in pairs))

    def __mul__(self, times: int) -> Count:
        return Count(*(times * x for x in vars(self).values()))


COLUMN = {
    Op.MUL: "mul",
    Op.ADD: "add",
    Op.SUB: "add",
    Op.LESS: "add",
    Op.DIV: "div",
    Op.SQRT: "sqrt",
    Op.SIN: "trig",
    Op.COS: "trig",
}
