"""A and B of `robot.linearize` as one compiled function: the laws of `linearize.py`, traced.

What these laws do with arrays they do with arrays of numbers that are known only when the code runs: slopes of forward dynamics
and of joints are tapes, run on the numbers of another tape, and zeros of a change cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from psiphi.compiler.passes import Traceable, code, is_large
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.tape import Tape
from psiphi.compiler.tape.tape_evaluation import evaluate
from psiphi.functions.differentiable_function import (
    MAX_HESSIAN,
    DifferentiableFunction,
    traced_function,
)
from psiphi.model.model import Model
from psiphi.simulation.integration.integrators import METHODS

StateMatrices = Callable[..., Any]  # [A B] from (robot, q, v, tau, h, method, parameters)


@dataclass(frozen=True, eq=False)
class LinearSystem(Traceable):
    """A and B of a robot, as the compiler takes them; `method` is that of a step, or "" where a state grows at once."""

    robot: Any
    method: str
    matrices: StateMatrices

    @property
    def model(self) -> Model:
        return self.robot.model

    @property
    def equation(self) -> str:
        return (
            f"A, B with x = A x + B dtau after a step of {self.method}"
            if self.method
            else "A, B with dx/dt = A x + B dtau"
        )

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        n = self.model.nv
        dt = (Argument("dt", (1,)),) if self.method else ()
        inputs = (*self.robot.function("forward_dynamics").source.inputs, *dt)
        return inputs, (Argument("A", (2 * n, 2 * n)), Argument("B", (2 * n, n)))

    def trace(self) -> StraightCode:
        (inputs, outputs), tape, n = self.arguments(), Tape(), self.model.nv
        q, v, tau, *more = (
            [tape.leaf(str(place), i) for i in range(arg.size)] for place, arg in enumerate(inputs)
        )
        h = np.array(more.pop(), object) if self.method else None
        parameters = [np.array(x, object) for x in more]
        grown = self.matrices(
            self.robot, *(np.array(x, object) for x in (q, v, tau)), h, self.method, parameters
        )
        pair = grown[:, : 2 * n], grown[:, 2 * n :]
        stores = (
            (k, i, tape.operand(x))
            for k, matrix in enumerate(pair)
            for i, x in enumerate(matrix.flat)
        )
        return StraightCode(Program("linearize", inputs, outputs, ()), tape, tuple(stores))


def linearize_function(
    robot: Any, name: str, method: str, grown: StateMatrices
) -> DifferentiableFunction | None:
    """The compiled pair; None where it would be long, or a robot is large, and of steps of embedded loops, which leave these
    open."""
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
    return traced_function(robot.function_cache, name, partial(LinearSystem, robot, method, grown))


def _operation_estimate(n: int, method: str) -> int:
    """About how many operations the stages behind the first one take: slopes of accelerations, and products with them. The
    slopes of the first are compiled anyway."""
    stages = sum(isinstance(item, int) for item in METHODS[method])
    return (stages - 1) * (75 * n**2 + 12 * n**3)


def is_traced_array(x: Any) -> bool:
    """Whether an array holds numbers of a tape."""
    return isinstance(x, np.ndarray) and x.dtype == object


def call_traced(function: DifferentiableFunction, arrays: Sequence[np.ndarray]) -> Any:
    """The results of a function, of numbers of a tape: those of its own tape, run on them."""
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
