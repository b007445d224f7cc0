"""Quantities without an expression, as programs over the tree: link poses, pivots, regressors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import with_parameters, without_memo
from psiphi.compiler.lower.frame_sweeps import frame_pose_in_world, store_pose
from psiphi.compiler.passes import tree_of
from psiphi.compiler.recursions.body_step import articulate, store_world_pose
from psiphi.compiler.sweeps.sweep_program import (
    BASE_TO_TIP,
    TIP_TO_BASE,
    Argument,
    BodyView,
    Program,
    Sweep,
)
from psiphi.model.model import Model, Pose
from psiphi.model.spatial import small_matrices
from psiphi.robot.catalogue import torque_regressor


@dataclass(frozen=True)
class TreeSum:
    """A quantity given by a program over the tree, `build(tree, frames)`.

    If it is read from the result of another quantity, `source` names that one.
    """

    equation: str
    build: Callable[[Tree, tuple[str, ...]], Program]
    columns: str = ""
    movable_inertia: bool = False
    # it depends on poses only, so clusters of bodies can be treated as open
    on_spanning_tree: bool = True
    source: str = ""

    def of(self, model: Model, frames: tuple[str, ...] = (), axes: str = "world") -> TreeSumOf:
        return TreeSumOf(
            self.equation, model, self.build, frames, on_spanning_tree=self.on_spanning_tree
        )


@dataclass(frozen=True, eq=False)
class TreeSumOf:
    """A `TreeSum` for one robot, as a request to the compiler."""

    equation: str
    model: Model
    build: Callable[..., Program]
    frames: tuple[str, ...]
    columns: str = ""
    movable_inertia: bool = False
    on_spanning_tree: bool = True

    def program(self, tree: Tree) -> Program:
        program = self.build(tree, self.frames)
        return replace(program, inputs=with_parameters(program.inputs, self.model))

    def __getstate__(self) -> dict[str, Any]:
        return without_memo(self)

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        program = self.program(tree_of(self))
        return program.inputs, program.outputs


def q_argument(model: Model) -> Argument:
    return Argument("q", (model.nq,), "q")


def regressor(tree: Tree, frames: tuple[str, ...]) -> Program:
    return torque_regressor.regressor_program(tree)


def regressor_blocks(tree: Tree, frames: tuple[str, ...]) -> Program:
    return torque_regressor.regressor_program(tree, blocks=True)


def _pose_entries(pose: Pose) -> tuple:
    return tuple(map(tuple, pose.rotation.tolist())), tuple(pose.translation.tolist())


def link_poses(tree: Tree, frames: tuple[str, ...]) -> Program:
    """E_0 phi B of the frames of all links.

    The step of a link writes only its own pose, so the sweep can run in a loop.
    """

    def step(body: BodyView) -> None:
        store_pose(body)
        R, p = body.data
        R, p = frame_pose_in_world(body, False, R, p, 0)
        body.write("R", 9 * body.link.index, small_matrices.flatten(R))
        body.write("p", 3 * body.link.index, p)

    n = len(tree.links)
    # from the working axes to the public link frames
    to_public = {k: _pose_entries(gauge.inv) for k, gauge in enumerate(tree.gauge)}
    return Program(
        "link_poses",
        (q_argument(tree.model),),
        (Argument("R", (n, 3, 3)), Argument("p", (n, 3))),
        (Sweep(BASE_TO_TIP, step),),
        store_world_pose,
        body_data=to_public,
    )


def mass_pivots(tree: Tree, frames: tuple[str, ...]) -> Program:
    """d of D(k) = L diag(d) L* at every joint."""

    def pivots(body: BodyView) -> None:
        articulate(body)
        body.write_joint("d", [1.0 / x for x in body.record["gain"].factors[1]])

    outputs = (Argument("d", (tree.model.nv,), "v"),)
    return Program("mass_pivots", (q_argument(tree.model),), outputs, (Sweep(TIP_TO_BASE, pivots),))
