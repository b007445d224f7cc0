"""The programs of a tree shape, compiled as loops over the stages, or interpreted.

Code depends on the shape of a tree, not on its numbers. It is compiled once, stored in the cache,
and serves every model of that shape. Similar stages share their code, so a series of a thousand
instants compiles as fast as one of three.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from psiphi.apps.estimation.filter_covariances import covariance_program
from psiphi.apps.estimation.smoother_equations import smoother_program
from psiphi.apps.estimation.stage_links import TreeShape
from psiphi.compiler.equations import Arguments
from psiphi.compiler.passes import RuleRequest
from psiphi.compiler.sweeps.interpreter import interpret
from psiphi.compiler.sweeps.link_loops import LinkLoops, trace_loops
from psiphi.compiler.sweeps.sweep_program import Program
from psiphi.functions.compiled_function import Function, QuantityRequest

PROGRAMS: dict[str, Callable[[TreeShape], Program]] = {
    "covariances": covariance_program,
    "smoother": smoother_program,
}


def _trace(shape: TreeShape, name: str, inputs: Arguments, outputs: Arguments) -> LinkLoops:
    return trace_loops(PROGRAMS[name](shape), shape)


@lru_cache(maxsize=64)
def compiled(shape: TreeShape, name: str) -> Function:
    """The program as a gufunc over batches of models and data."""
    program, equation = PROGRAMS[name](shape), f"the {name} of a linear Gaussian tree"
    # a TreeShape has the attributes of a model that the compiler reads
    model: Any = shape
    rule = partial(_trace, shape, name)
    request = RuleRequest(model, equation, program.inputs, program.outputs, rule, has_loops=True)
    return Function(QuantityRequest(name), request)


def run(
    shape: TreeShape, name: str, use_compiled: bool, *arrays: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The outputs of the program, compiled or interpreted."""
    with np.errstate(all="ignore"):  # the callers check for overflows
        if use_compiled:
            return compiled(shape, name).run(arrays)
        return interpret(PROGRAMS[name](shape), shape, *arrays)
