"""The operational-space inertia Λ of frames, as a program in stages: X = J M⁻¹ J* by sweeps, and its small dense inverse.

    Λ = X⁻¹                                     where at least as many coordinates move the frames as they have rows
    Λ = X⁺ = (J₁⁺)* ((M⁻¹)₁₁)⁻¹ J₁⁺             where fewer do: the least-norm one; J₁ are the columns of those that do

Both are of full rank, 6 rows a frame or all of those coordinates; NaN, as their derivatives, where the rank is less. What other
policies do there is in `robot/operational_inertia.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import with_parameters
from psiphi.compiler.sweeps.sweep_program import Argument, Program, ProgramStage
from psiphi.model.components import way_to
from psiphi.model.model import Model
from psiphi.model.spatial.pseudo_inverse import sure_factor
from psiphi.model.spatial.small_matrices import flat, product, solve, transpose
from psiphi.robot.catalogue.tree_quantities import TreeSumOf

RCOND = 1e-9  # of the least eigenvalue to the sum of all: less is none


def moving(model: Model, frames: tuple[str, ...]) -> list[int]:
    """The coordinates of v that may move one of the frames."""
    if model.embedding is not None:
        return list(range(model.nv))
    carriers = {k for name in frames for k in way_to(model.parent, model.frame(name).body)}
    return sorted({i for k in carriers for i in model.joints[k].coordinates})


@dataclass(frozen=True)
class OperationalInertia:
    """The quantity; `part(name, tree, frames, axes)` is the program of another one."""

    part: Callable[..., Program]
    equation: str = "Lambda = (J M^-1 J*)^-1, of full rank"
    columns: str = ""

    def of(
        self, model: Model, frames: tuple[str, ...] = (), axes: str = "world"
    ) -> OperationalInertiaOf:
        return OperationalInertiaOf(self.equation, model, self.part, frames, axes=axes)


@dataclass(frozen=True, eq=False)
class OperationalInertiaOf(TreeSumOf):
    """It on one robot; its arguments are known before anything is rewritten."""

    axes: str = "world"
    rods: bool = True
    by_body: bool = False

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        size = 6 * len(self.frames)
        return with_parameters((Argument("q", (self.model.nq,), "q"),), self.model), (
            Argument("Lambda", (size, size)),
        )

    def program(self, tree: Tree) -> Program:
        size, own = 6 * len(self.frames), moving(self.model, self.frames)
        names = (
            ("operational_compliance",)
            if len(own) >= size
            else ("frame_jacobians", "mass_matrix_inverse")
        )

        def invert(places: dict[str, Any]) -> dict[str, Any]:
            if len(own) >= size:
                return {"Lambda": flat(_inverse(_rows(places["X"], size)))}
            J = [[row[k] for k in own] for row in _rows(places["J"], size)]
            Y = _rows(places["M_inv"], self.model.nv)
            pseudo = product(_inverse(product(transpose(J), J)), transpose(J))
            felt = _inverse([[Y[i][k] for k in own] for i in own])
            return {"Lambda": flat(product(transpose(pseudo), product(felt, pseudo)))}

        parts = [
            ProgramStage(name, self.make(name, tree, self.frames, self.axes)) for name in names
        ]
        stages = (*parts, ProgramStage("invert", invert))
        return Program(
            "operational_space_inertia", *self.arguments(), (), stages=stages, local=False
        )


def _rows(entries: Any, count: int) -> list[list]:
    width = len(entries) // count if count else 0
    return [list(entries[i * width : (i + 1) * width]) for i in range(count)]


def _inverse(X: list[list]) -> list[list]:
    """Of a symmetric matrix, positive with RCOND to spare as the pivots of L D L* tell; else NaN."""
    known, sure = sure_factor(X, RCOND * sum((row[k] for k, row in enumerate(X)), 0.0))
    sound = sure / sure  # 1, or 0 / 0
    columns = [
        solve(known, [sound if i == j else 0.0 for j in range(len(X))]) for i in range(len(X))
    ]
    return [[columns[min(i, j)][max(i, j)] for j in range(len(X))] for i in range(len(X))]
