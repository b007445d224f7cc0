"""The meaning of a program: the same loop on NumPy arrays, one slice per coordinate."""

from __future__ import annotations

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi.compiler.sweeps.sweep_program import Program, SweepTree
from psiphi.compiler.sweeps.tree_loop import run_program


def interpret_on_tape(
    program: Program, tree: SweepTree, *arrays: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The outputs of the program at one state, on arrays of tape expressions (or of numbers)."""
    # steps take one scalar per entry, a number or an expression
    inputs = {
        arg.name: list(np.asarray(a).reshape(arg.size))
        for arg, a in zip(program.inputs, arrays, strict=True)
    }
    written = run_program(program, tree, inputs)
    outputs = (
        [written.get((arg.name, i), 0.0) for i in range(arg.size)] for arg in program.outputs
    )
    return tuple(
        np.array(values, dtype=object).reshape(arg.shape)
        for arg, values in zip(program.outputs, outputs, strict=True)
    )


def interpret(program: Program, tree: SweepTree, *arrays: Numbers) -> tuple[np.ndarray, ...]:
    """The outputs (..., *shape) of the program on inputs (..., n); batch axes broadcast."""
    given = [np.asarray(a, dtype=float) for a in arrays]
    cores = [len(arg.shape) for arg in program.inputs]
    lead = np.broadcast_shapes(*(a.shape[: a.ndim - n] for a, n in zip(given, cores, strict=True)))
    inputs = {
        arg.name: list(
            np.moveaxis(np.broadcast_to(a, lead + arg.shape).reshape(*lead, arg.size), -1, 0)
        )
        for arg, a in zip(program.inputs, given, strict=True)
    }
    # one array per coordinate: each operation of a step is done for all states of the batch
    written = run_program(program, tree, inputs)
    # entries that no step writes are zero: neither body is an ancestor of the other
    results = []
    for arg in program.outputs:
        out = np.zeros((*lead, arg.size))
        for index in range(arg.size):
            out[..., index] = written.get((arg.name, index), 0.0)
        results.append(out.reshape((*lead, *arg.shape)))
    return tuple(results)
