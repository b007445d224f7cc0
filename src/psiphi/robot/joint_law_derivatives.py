"""The laws of one joint with their slopes, as compiled functions for arrays of every library.

rate, exp   x, dx/dq, dx/dv           unit   x, dx/dq
tangent     T⁺ = (T* T)^-1 T*: a change of q along the manifold as a tangent vector, where T(q) δ = rate(q, δ)
bracket     -ad_v: T(q) (δ' - δv) = d rate(q, v)[T δ] - d rate(q, δ)[T v], since d/ds and d/dt of q commute
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from psiphi.compiler.autodiff.tape_derivatives import push
from psiphi.compiler.passes import Traceable
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.tape import Tape
from psiphi.functions.differentiable_function import DifferentiableFunction, ready
from psiphi.model.model import Model
from psiphi.model.spatial import small_matrices

TAKES = {"rate": "qv", "exp": "qv", "unit": "q", "tangent": "q", "bracket": "qv"}


@dataclass(frozen=True, eq=False)
class JointLawDerivative(Traceable):
    """A law of a joint of a model, the one of this number among those where q is no vector."""

    model: Model
    number: int
    law: str

    @property
    def row(self) -> Any:
        return self.model.manifold.bent[self.number].row

    @property
    def equation(self) -> str:
        return f"{self.law}({', '.join(TAKES[self.law])}) of a joint, and its slopes"

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        sizes = {"q": self.row.nq, "v": self.row.nv}
        inputs = tuple(Argument(name, (sizes[name],)) for name in TAKES[self.law])
        if self.law in ("tangent", "bracket"):
            return inputs, (
                Argument("x", (sizes["v"], sizes["q" if self.law == "tangent" else "v"])),
            )
        by = tuple(Argument(f"by_{name}", (sizes["q"], sizes[name])) for name in TAKES[self.law])
        return inputs, (Argument("x", (sizes["q"],)), *by)

    def ready(self) -> StraightCode:
        inputs, outputs = self.arguments()
        tape = Tape()
        given = [
            [tape.leaf(str(place), i) for i in range(arg.size)] for place, arg in enumerate(inputs)
        ]
        rows = getattr(self, f"_{self.law}", self._sloped)(tape, *given)
        stores = tuple(
            (k, i, tape.operand(x)) for k, row in enumerate(rows) for i, x in enumerate(row)
        )
        return StraightCode(Program(self.law, inputs, outputs, ()), tape, stores)

    def _sloped(self, tape: Tape, *given: list[Any]) -> list[list[Any]]:
        """The law itself, and its columns by every leaf."""
        x = getattr(self.row, self.law)(*given)
        return [
            x,
            *(
                small_matrices.flat(
                    small_matrices.transpose([_along(tape, x, [leaf], [1.0]) for leaf in row])
                )
                for row in given
            ),
        ]

    def _tangent(self, tape: Tape, q: list[Any]) -> list[list[Any]]:
        T = self._rates(q)
        factors = _gram(T)
        columns = [small_matrices.solve(factors, [x[i] for x in T]) for i in range(len(q))]
        return [small_matrices.flat(small_matrices.transpose(columns))]

    def _bracket(self, tape: Tape, q: list[Any], v: list[Any]) -> list[list[Any]]:
        T, moved = self._rates(q), self.row.rate(q, v)
        factors, columns = _gram(T), []
        for rate in T:
            change = [
                x - y
                for x, y in zip(
                    _along(tape, moved, q, rate), _along(tape, rate, q, moved), strict=True
                )
            ]
            columns.append(small_matrices.solve(factors, small_matrices.apply(T, change)))
        return [small_matrices.flat(small_matrices.transpose(columns))]

    def _rates(self, q: list[Any]) -> list[list[Any]]:
        """The columns of T(q)."""
        return [self.row.rate(q, unit) for unit in np.eye(self.row.nv).tolist()]


def _along(tape: Tape, x: list[Any], leaves: list[Any], changes: list[Any]) -> list[Any]:
    """What results change by when leaves change so."""
    return push(
        tape,
        [tape.operand(y) for y in x],
        {leaf.index: dx for leaf, dx in zip(leaves, changes, strict=True)},
    )


def _gram(T: list[list[Any]]) -> tuple[list, list]:
    """T* T, factored."""
    return small_matrices.factor([small_matrices.apply(T, row) for row in T])


def function(robot: Any, number: int, law: str) -> DifferentiableFunction:
    """The compiled law of a joint of a robot; joints of one kind share it."""
    joint = robot.manifold.bent[number]
    own = f"compound {number}" if joint.kind == "compound" else joint.kind
    made = partial(JointLawDerivative, robot._model, number, law)
    return ready(robot._functions, f"{law} of {own}, sloped", made)
