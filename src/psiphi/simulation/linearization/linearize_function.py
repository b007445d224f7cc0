"""A and B of `robot.linearize` as one compiled function: the equations of `linearize.py`, traced.

The equations run on arrays of tape expressions. Jacobians of forward dynamics and of joints are
evaluated by running their own tapes on these expressions; zeros in the tangents cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from psiphi.compiler.equations import Arguments
from psiphi.compiler.passes import RuleRequest, code, is_large
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.tape import Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.functions.differentiable_function import (
    MAX_HESSIAN,
    DifferentiableFunction,
    traced_function,
)
from psiphi.robot.robot import Robot
from psiphi.simulation.integration.integrators import METHODS

StateMatrices = Callable[..., np.ndarray]  # (robot, q, v, tau, h, method, parameters) -> [A B]


def _linear_system(robot: Robot, method: str, matrices: StateMatrices) -> RuleRequest:
    """A and B of a robot as a request to the compiler; `method` is "" in continuous time."""
    n = robot.model.nv
    after = f"x = A x + B dtau after a step of {method}"
    equation = f"A, B with {after if method else 'dx/dt = A x + B dtau'}"
    dt = (Argument("dt", (1,)),) if method else ()
    inputs = (*robot.unbound_function("forward_dynamics").source.inputs, *dt)
    outputs = Argument("A", (2 * n, 2 * n)), Argument("B", (2 * n, n))
    rule = partial(_trace, robot, method, matrices)
    return RuleRequest(robot.model, equation, inputs, outputs, rule)


def _trace(
    robot: Robot, method: str, matrices: StateMatrices, inputs: Arguments, outputs: Arguments
) -> StraightCode:
    tape, n = Tape(), robot.model.nv
    q, v, tau, *others = (
        np.array([tape.leaf(str(place), i) for i in range(arg.size)], object)
        for place, arg in enumerate(inputs)
    )
    h = others.pop() if method else None
    pair = matrices(robot, q, v, tau, h, method, others)
    stores = (
        (k, i, tape.operand(x))
        for k, matrix in enumerate((pair[:, : 2 * n], pair[:, 2 * n :]))
        for i, x in enumerate(matrix.flat)
    )
    return StraightCode(Program("linearize", inputs, outputs, ()), tape, tuple(stores))


def linearize_function(
    robot: Robot, name: str, method: str, matrices: StateMatrices
) -> DifferentiableFunction | None:
    """The compiled function, or None.

    There is none for large robots, for functions that would be too long, and for steps of robots
    with embedded loops, whose stages do not satisfy the loops.
    """
    if (
        not robot.nv
        or is_large(robot.model)
        or (
            method
            and (
                robot.manifold.cluster_joints or _operation_estimate(robot.nv, method) > MAX_HESSIAN
            )
        )
    ):
        return None
    return traced_function(
        robot.function_cache, name, partial(_linear_system, robot, method, matrices)
    )


def _operation_estimate(n: int, method: str) -> int:
    """An estimate of the operations of the stages after the first: Jacobians of accelerations, and
    products with them. Those of the first stage are compiled in any case."""
    stages = sum(isinstance(item, int) for item in METHODS[method])
    return (stages - 1) * (75 * n**2 + 12 * n**3)


def is_traced_array(x: object) -> TypeGuard[np.ndarray]:
    """Whether x is an array of tape expressions."""
    return isinstance(x, np.ndarray) and x.dtype == object


def call_traced(function: DifferentiableFunction, arrays: Sequence[np.ndarray]) -> Any:
    """The results of a function for arrays of tape expressions: its own tape, run on these."""
    straight = code(function.source.request)
    values = evaluate(
        straight.tape,
        [node for *_, node in straight.stores],
        lambda place, i: arrays[int(place)].flat[i],
    )
    results = [np.zeros(arg.shape, object) for arg in straight.program.outputs]
    for (number, index, _), value in zip(straight.stores, values, strict=True):
        results[number].flat[index] = value
    return tuple(results) if len(results) > 1 else results[0]
