"""The operations of a tape, and their columns in a count."""

from __future__ import annotations

from enum import IntEnum


class Op(IntEnum):
    """The operation of a node (op, a, b); the operands a and b are node numbers unless noted."""

    LEAF = 0  # an input: a = space (a name), b = index
    CONST = 1  # a = the float
    ADD = 2
    SUB = 3
    MUL = 4
    DIV = 5
    SIN = 6
    COS = 7
    SQRT = 8
    NEG = 9  # only for outputs with a negative sign
    LESS = 10  # 1 where a < b, else 0


# the members as names of this module: Python 3.11 looks up `Op.ADD` in half a microsecond
LEAF, CONST, ADD, SUB, MUL, DIV, SIN, COS, SQRT, NEG, LESS = Op

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
