"""Compiled functions of configurations: integrate, difference, rate, velocity_of, normalize.

They are traced from `model/manifold.py`, and serve arrays of torch, JAX and GPUs. NumPy arrays call
`manifold.py` directly where that is as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from psiphi.compiler.equations import Arguments
from psiphi.compiler.passes import RuleRequest
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.array_trace import trace_rule
from psiphi.functions.differentiable_function import DifferentiableFunction, traced_function
from psiphi.model.manifold import Manifold
from psiphi.model.model import Model
from psiphi.robot.quantity_methods import QuantityMethods

ARGUMENT_SIZES = {"q": "nq", "q0": "nq", "q1": "nq", "q_dot": "nq", "v": "nv"}
CoordinateRule = Callable[..., Any]
# name: (size of the result, arguments, rule)
LAWS: dict[str, tuple[str, tuple[str, ...], Callable[[Manifold], CoordinateRule]]] = {
    "integrate": ("nq", ("q", "v", "dt"), lambda m: lambda q, v, dt: m.exp(m.unit(q), dt * v)),
    "difference": ("nv", ("q0", "q1"), lambda m: lambda q0, q1: m.log(q0, q1)),
    "rate": ("nq", ("q", "v"), lambda m: lambda q, v: m.rate(m.unit(q), v)),
    "velocity_of": ("nv", ("q", "q_dot"), lambda m: lambda q, q_dot: m.velocity(m.unit(q), q_dot)),
    "normalize": ("nq", ("q",), lambda m: m.unit),
}


def _request(model: Model, law: str) -> RuleRequest:
    """A row of `LAWS` for one model, as a request to the compiler."""
    size, names, _ = LAWS[law]
    sizes = {name: getattr(model, attribute) for name, attribute in ARGUMENT_SIZES.items()}
    inputs = tuple(
        Argument(name, (sizes.get(name, 1),), name[:1] if name in sizes else "") for name in names
    )
    outputs = (Argument("x", (getattr(model, size),)),)
    equation = f"{law}({', '.join(names)})"
    return RuleRequest(model, equation, inputs, outputs, partial(_trace, model, law))


def _trace(model: Model, law: str, inputs: Arguments, outputs: Arguments) -> StraightCode:
    rule = LAWS[law][2](model.manifold)
    return trace_rule(law, inputs, lambda **values: {"x": rule(*values.values())})


def coordinate_function(robot: QuantityMethods, law: str) -> DifferentiableFunction:
    """The compiled function of a robot for a row of `LAWS`."""
    return traced_function(robot.function_cache, law, partial(_request, robot.model, law))
