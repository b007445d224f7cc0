"""The operational-space inertia Λ of frames: X = J M⁻¹ J* by sweeps, then its small dense inverse.

    Λ = X⁻¹                            if at least as many coordinates move the frames as X has rows
    Λ = X⁺ = (J₁⁺)* ((M⁻¹)₁₁)⁻¹ J₁⁺    otherwise, the least-norm inverse; J₁ are the columns of the
                                       coordinates that move the frames

If the rank is lower than that, Λ and its derivatives are NaN; `robot/operational_inertia.py` has
policies for that case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import with_parameters
from psiphi.compiler.sweeps.sweep_program import Argument, Program, ProgramStage
from psiphi.model.components import path_to_body
from psiphi.model.model import Model
from psiphi.model.spatial.pseudo_inverse import factor_if_definite
from psiphi.model.spatial.small_matrices import flatten, product, solve, transpose
from psiphi.robot.catalogue.tree_programs import TreeSumOf

RCOND = 1e-9  # least eigenvalue / sum of eigenvalues of a regular matrix


def moving_coordinates(model: Model, frames: tuple[str, ...]) -> list[int]:
    """The coordinates of v that can move one of the frames."""
    if model.embedding is not None:
        return list(range(model.nv))
    carriers = {k for name in frames for k in path_to_body(model.parent, model.frame(name).body)}
    return sorted({i for k in carriers for i in model.joints[k].coordinates})


@dataclass(frozen=True)
class OperationalInertia:
    """The quantity; `program_of(name, tree, frames, axes)` is the program of another quantity."""

    program_of: Callable[..., Program]
    equation: str = "Lambda = (J M^-1 J*)^-1, of full rank"
    columns: str = ""

    def of(
        self, model: Model, frames: tuple[str, ...] = (), axes: str = "world"
    ) -> OperationalInertiaOf:
        return OperationalInertiaOf(self.equation, model, self.program_of, frames, axes=axes)


@dataclass(frozen=True, eq=False)
class OperationalInertiaOf(TreeSumOf):
    """`OperationalInertia` for one robot; its arguments are known without rewriting."""

    axes: str = "world"
    movable_inertia: bool = True
    on_spanning_tree: bool = False

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        size = 6 * len(self.frames)
        return with_parameters((Argument("q", (self.model.nq,), "q"),), self.model), (
            Argument("Lambda", (size, size)),
        )

    def program(self, tree: Tree) -> Program:
        size, moving = 6 * len(self.frames), moving_coordinates(self.model, self.frames)
        is_regular = len(moving) >= size
        names = ("frame_jacobians", "mass_matrix_inverse")
        names = ("operational_compliance",) if is_regular else names

        def invert(values: dict[str, Any]) -> dict[str, Any]:
            if is_regular:
                return {"Lambda": flatten(_inverse(_rows(values["X"], size)))}
            J = [[row[k] for k in moving] for row in _rows(values["J"], size)]
            M_inv = _rows(values["M_inv"], self.model.nv)
            J_pinv = product(_inverse(product(transpose(J), J)), transpose(J))
            inertia = _inverse([[M_inv[i][k] for k in moving] for i in moving])
            return {"Lambda": flatten(product(transpose(J_pinv), product(inertia, J_pinv)))}

        sweeps = (self.build(name, tree, self.frames, self.axes) for name in names)
        stages = map(ProgramStage, names, sweeps)
        stages = (*stages, ProgramStage("invert", invert))
        return Program(
            "operational_space_inertia", *self.arguments(), (), stages=stages, can_loop=False
        )


def _rows(entries: Sequence, count: int) -> list[list]:
    width = len(entries) // count if count else 0
    return [list(entries[i * width : (i + 1) * width]) for i in range(count)]


def _inverse(X: list[list]) -> list[list]:
    """X^-1 for symmetric X; NaN if a pivot of L D L* is below RCOND times the trace."""
    factors, definite = factor_if_definite(X, RCOND * sum((row[k] for k, row in enumerate(X)), 0.0))
    one = definite / definite  # 1, or 0 / 0
    columns = [
        solve(factors, [one if i == j else 0.0 for j in range(len(X))]) for i in range(len(X))
    ]
    return [[columns[min(i, j)][max(i, j)] for j in range(len(X))] for i in range(len(X))]
