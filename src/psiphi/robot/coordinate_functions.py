"""Configurations moved, compared and scaled as compiled functions: for arrays of torch, JAX and graphics cards.

The laws are those of `model/manifold.py`, traced; NumPy's arrays go there directly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from psiphi.compiler.passes import Traceable
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.array_trace import trace_rule
from psiphi.functions.differentiable_function import DifferentiableFunction, ready
from psiphi.model.manifold import Manifold
from psiphi.model.model import Model

SIZES = {"q": "nq", "q0": "nq", "q1": "nq", "q_dot": "nq", "v": "nv"}
CoordinateRule = Callable[..., Any]
# the result's size, the arguments, the law
LAWS: dict[str, tuple[str, tuple[str, ...], Callable[[Manifold], CoordinateRule]]] = {
    "integrate": ("nq", ("q", "v", "dt"), lambda m: lambda q, v, dt: m.exp(m.unit(q), dt * v)),
    "difference": ("nv", ("q0", "q1"), lambda m: lambda q0, q1: m.log(q0, q1)),
    "rate": ("nq", ("q", "v"), lambda m: lambda q, v: m.rate(m.unit(q), v)),
    "velocity_of": ("nv", ("q", "q_dot"), lambda m: lambda q, q_dot: m.velocity(m.unit(q), q_dot)),
    "normalize": ("nq", ("q",), lambda m: m.unit),
}


@dataclass(frozen=True, eq=False)
class CoordinateLaw(Traceable):
    """One of these laws, as the compiler takes it."""

    model: Model
    law: str

    @property
    def equation(self) -> str:
        return f"{self.law}({', '.join(LAWS[self.law][1])})"

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        size, names, _ = LAWS[self.law]
        given = (
            Argument(name, (getattr(self.model, SIZES[name]) if name in SIZES else 1,), name[:1])
            for name in names
        )
        return tuple(given), (Argument("x", (getattr(self.model, size),)),)

    def ready(self) -> StraightCode:
        inputs, _ = self.arguments()
        law = LAWS[self.law][2](self.model.manifold)
        return trace_rule(self.law, inputs, lambda **at: {"x": law(*at.values())})


def function(robot: Any, law: str) -> DifferentiableFunction:
    """The compiled law of a robot."""
    return ready(robot._functions, law, partial(CoordinateLaw, robot._model, law))
