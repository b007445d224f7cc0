"""Trace a rule on arrays to straight-line code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.tape import Tape


def trace_rule(
    name: str,
    inputs: Sequence[Argument],
    rule: Callable[..., Mapping[str, Any]],
    output: Callable[[str, int], Argument] = lambda name, size: Argument(name, (size,)),
) -> StraightCode:
    """The code of `rule(**inputs)`, which maps arrays of tape expressions to a dict of such arrays.

    `output(name, size)` is the argument that describes a result.
    """
    tape = Tape()
    leaves = {
        arg.name: np.array([tape.leaf(str(i), j) for j in range(arg.size)])
        for i, arg in enumerate(inputs)
    }
    results = rule(**leaves)
    outputs = tuple(output(key, len(values)) for key, values in results.items())
    stores = tuple(
        (number, index, tape.operand(value))
        for number, values in enumerate(results.values())
        for index, value in enumerate(values)
    )
    return StraightCode(Program(name, tuple(inputs), outputs, ()), tape, stores)
