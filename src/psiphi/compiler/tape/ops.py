"""The operations of a tape, and the column of a count each belongs to."""

from __future__ import annotations

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
