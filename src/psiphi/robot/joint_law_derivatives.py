"""The laws of one joint with their derivatives, as compiled functions for arrays of any library.

rate, exp   x, dx/dq, dx/dv
unit        x, dx/dq
tangent     T⁺ = (T* T)^-1 T*: maps a change of q along the manifold to a tangent vector, where
            T(q) δ = rate(q, δ)
bracket     -ad_v: T(q) (δ' - δv) = d rate(q, v)[T δ] - d rate(q, δ)[T v], since d/ds and d/dt of q
            commute
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from psiphi.compiler.autodiff.tape_derivatives import push_forward
from psiphi.compiler.equations import Arguments
from psiphi.compiler.passes import RuleRequest
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.tape import Tape
from psiphi.functions.differentiable_function import DifferentiableFunction, traced_function
from psiphi.model.manifold import ManifoldRow
from psiphi.model.model import Model
from psiphi.model.spatial import small_matrices
from psiphi.robot.robot import Robot

ARGUMENTS = {"rate": "qv", "exp": "qv", "unit": "q", "tangent": "q", "bracket": "qv"}


def _request(model: Model, number: int, law: str) -> RuleRequest:
    """A law of one joint, as a request to the compiler.

    `number` counts the joints whose configuration space is curved (`model.manifold.curved`).
    """
    row = model.manifold.curved[number].row
    sizes = {"q": row.nq, "v": row.nv}
    inputs = tuple(Argument(name, (sizes[name],)) for name in ARGUMENTS[law])
    if law in ("tangent", "bracket"):
        columns = sizes["q" if law == "tangent" else "v"]
        outputs = (Argument("x", (sizes["v"], columns)),)
    else:
        jacobians = (Argument(f"by_{arg.name}", (sizes["q"], arg.size)) for arg in inputs)
        outputs = (Argument("x", (sizes["q"],)), *jacobians)
    equation = f"{law}({', '.join(ARGUMENTS[law])}) of a joint, with derivatives"
    return RuleRequest(model, equation, inputs, outputs, partial(_trace, model, number, law))


def _trace(
    model: Model, number: int, law: str, inputs: Arguments, outputs: Arguments
) -> StraightCode:
    tape, row = Tape(), model.manifold.curved[number].row
    leaves = [
        [tape.leaf(str(place), i) for i in range(arg.size)] for place, arg in enumerate(inputs)
    ]
    rules: dict[str, Callable[..., list[list[Any]]]] = {"tangent": _tangent, "bracket": _bracket}
    rows = rules.get(law, partial(_with_jacobians, law))(row, tape, *leaves)
    stores = tuple(
        (k, i, tape.operand(x)) for k, values in enumerate(rows) for i, x in enumerate(values)
    )
    return StraightCode(Program(law, inputs, outputs, ()), tape, stores)


def _with_jacobians(
    law: str, row: ManifoldRow, tape: Tape, *arguments: list[Any]
) -> list[list[Any]]:
    """The result of the law, then its Jacobian by each argument."""
    x, jacobians = getattr(row, law)(*arguments), []
    for leaves in arguments:
        columns = [_directional_derivative(tape, x, [leaf], [1.0]) for leaf in leaves]
        jacobians.append(small_matrices.flatten(small_matrices.transpose(columns)))
    return [x, *jacobians]


def _tangent(row: ManifoldRow, tape: Tape, q: list[Any]) -> list[list[Any]]:
    T = _rate_columns(row, q)
    factors = _factor_gram(T)
    columns = [small_matrices.solve(factors, [x[i] for x in T]) for i in range(len(q))]
    return [small_matrices.flatten(small_matrices.transpose(columns))]


def _bracket(row: ManifoldRow, tape: Tape, q: list[Any], v: list[Any]) -> list[list[Any]]:
    T, q_dot = _rate_columns(row, q), row.rate(q, v)
    factors, columns = _factor_gram(T), []
    for column in T:
        forth = _directional_derivative(tape, q_dot, q, column)
        back = _directional_derivative(tape, column, q, q_dot)
        change = [x - y for x, y in zip(forth, back, strict=True)]
        columns.append(small_matrices.solve(factors, small_matrices.apply(T, change)))
    return [small_matrices.flatten(small_matrices.transpose(columns))]


def _rate_columns(row: ManifoldRow, q: list[Any]) -> list[list[Any]]:
    """The columns of T(q)."""
    return [row.rate(q, unit) for unit in np.eye(row.nv).tolist()]


def _directional_derivative(
    tape: Tape, x: list[Any], leaves: list[Any], changes: list[Any]
) -> list[Any]:
    """The derivative of x along a change of the leaves."""
    seeds = {leaf.index: dx for leaf, dx in zip(leaves, changes, strict=True)}
    return push_forward(tape, [tape.operand(y) for y in x], seeds)


def _factor_gram(T: list[list[Any]]) -> tuple[list, list]:
    """The factors of T* T."""
    return small_matrices.factor([small_matrices.apply(T, row) for row in T])


def joint_law_function(robot: Robot, number: int, law: str) -> DifferentiableFunction:
    """The compiled law of a joint with its derivatives; joints of one kind share it."""
    joint = robot.manifold.curved[number]
    kind = f"compound {number}" if joint.kind == "compound" else joint.kind
    make = partial(_request, robot.model, number, law)
    return traced_function(robot.function_cache, f"{law} of {kind} with derivatives", make)
