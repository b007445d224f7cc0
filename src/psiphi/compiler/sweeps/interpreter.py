"""What a program means: the same loop on NumPy arrays, one slice a coordinate."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.compiler.sweeps.sweep_program import Program
from psiphi.compiler.sweeps.tree_loop import drive


def interpret_on_tape(program: Program, tree: Any, *arrays) -> tuple[np.ndarray, ...]:
    """The outputs of the program on arrays of tape expressions (or of numbers), of one state."""
    # one scalar a place: the steps are the same text for numbers and for expressions
    inputs = {
        arg.name: list(np.asarray(a).reshape(arg.size))
        for arg, a in zip(program.inputs, arrays, strict=True)
    }
    written = drive(program, tree, inputs)
    outputs = (
        [written.get((arg.name, i), 0.0) for i in range(arg.size)] for arg in program.outputs
    )
    return tuple(
        np.array(values, dtype=object).reshape(arg.shape)
        for arg, values in zip(program.outputs, outputs, strict=True)
    )


def interpret(program: Program, tree: Any, *arrays) -> tuple[np.ndarray, ...]:
    """The outputs (..., *shape) of the program on inputs (..., n), batch axes broadcast."""
    given = [np.asarray(a, dtype=float) for a in arrays]
    cores = [len(arg.shape) for arg in program.inputs]
    lead = np.broadcast_shapes(*(a.shape[: a.ndim - n] for a, n in zip(given, cores, strict=True)))
    inputs = {
        arg.name: list(
            np.moveaxis(np.broadcast_to(a, lead + arg.shape).reshape(*lead, arg.size), -1, 0)
        )
        for arg, a in zip(program.inputs, given, strict=True)
    }
    # one array a coordinate: a step's arithmetic then means all states of the batch at once
    written = drive(program, tree, inputs)
    # what no step wrote is zero: entries between bodies of which none is on the way to the other
    results = []
    for arg in program.outputs:
        out = np.zeros((*lead, arg.size))
        for index in range(arg.size):
            out[..., index] = written.get((arg.name, index), 0.0)
        results.append(out.reshape((*lead, *arg.shape)))
    return tuple(results)
