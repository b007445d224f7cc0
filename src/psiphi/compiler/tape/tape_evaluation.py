"""What a tape means: run it on NumPy arrays, on the expressions of another tape, or on anybody's scalars, node by node."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from psiphi.compiler.tape.ops import BINARY, Op
from psiphi.compiler.tape.tape import Tape
from psiphi.model.spatial.branch_free import less

MEANING: dict[Op, Callable] = {
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
    meaning: Mapping[Op, Callable] = MEANING,
    kept: Callable[[int, Any], Any] = lambda node, value: value,
) -> list:
    """The values of the nodes `outputs`; `leaf(space, index)` gives the values from outside.

    `meaning` says what operations and constants are on other scalars, `kept` what stands for a value once it is known."""
    value: dict[int, object] = {}
    for index in tape.live(outputs):
        op, a, b = tape.nodes[index]
        if op is Op.LEAF:
            value[index] = leaf(a, b)
        elif op in BINARY:
            value[index] = kept(index, meaning[op](value[a], value[b]))
        else:
            value[index] = kept(index, meaning[op](a if op is Op.CONST else value[a]))
    return [value[i] for i in outputs]
