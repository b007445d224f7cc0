"""The interpreter of tapes: run one, node by node, on floats, NumPy arrays, the expressions of
another tape, or the scalars of another library."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from psiphi.compiler.tape.ops import BINARY, CONST, LEAF, Op
from psiphi.compiler.tape.tape import Tape
from psiphi.model.spatial.branch_free import less

OP_FUNCTIONS: dict[Op, Callable] = {
    Op.CONST: lambda x: x,
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


def evaluate(
    tape: Tape,
    outputs: Sequence[int],
    leaf: Callable[[str, int], object],
    functions: Mapping[Op, Callable] = OP_FUNCTIONS,
    substitute: Callable[[int, Any], Any] = lambda node, value: value,
) -> list:
    """The values of the nodes `outputs`; `leaf(space, index)` is the value of an input.

    `functions` defines operations and constants on the scalars of another library.
    `substitute(node, value)` is used instead of each value that was computed.
    """
    value: dict[int, object] = {}
    for index in tape.live(outputs):
        op, a, b = tape.nodes[index]
        if op is LEAF:
            value[index] = leaf(a, b)
        elif op in BINARY:
            value[index] = substitute(index, functions[op](value[a], value[b]))
        else:
            value[index] = substitute(index, functions[op](a if op is CONST else value[a]))
    return [value[i] for i in outputs]
