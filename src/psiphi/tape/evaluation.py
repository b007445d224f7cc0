"""What a tape means: run it on NumPy arrays, or on the expressions of another tape, one node after the other."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from psiphi.spatial.choices import less
from psiphi.tape.ops import BINARY, Op
from psiphi.tape.tape import Tape

MEANING: dict[Op, Callable] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.DIV: operator.truediv,
    Op.SIN: np.sin,
    Op.COS: np.cos,
    Op.SQRT: np.sqrt,
    Op.NEG: operator.neg,
    Op.LESS: less,
}


def evaluate(tape: Tape, outputs: Sequence[int], leaf: Callable[[str, int], object]) -> list:
    """The values of the nodes `outputs`; `leaf(space, index)` gives the values from outside."""
    value: dict[int, object] = {}
    for index in tape.live(outputs):
        op, a, b = tape.nodes[index]
        if op is Op.LEAF:
            value[index] = leaf(a, b)
        elif op is Op.CONST:
            value[index] = a
        elif op in BINARY:
            value[index] = MEANING[op](value[a], value[b])
        else:
            value[index] = MEANING[op](value[a])
    return [value[i] for i in outputs]
