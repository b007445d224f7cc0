"""Quantities that are more than words of the algebra, as programs over the tree: places, pivots, regressors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from psiphi.compiler.equations import unmade, with_parameters
from psiphi.compiler.passes import framed
from psiphi.framing.framing import Tree
from psiphi.lowering import regression
from psiphi.model.model import WORLD, Model, Pose
from psiphi.steps import world_poses
from psiphi.steps.local import articulate
from psiphi.sweeps.program import BASE_TO_TIP, TIP_TO_BASE, Argument, Program, Site, Sweep


@dataclass(frozen=True)
class TreeSum:
    """A quantity that is more than words: a program over the tree.

    Where a frame is, is no operator on v: T is a product of displacements, while a word of the algebra is linear in its
    vector. So its sweep is written down, from the step that words use as well (`world_pose`). The centre of mass is read off a
    word, of which the rest is no code.
    """

    equation: str
    make: Callable[[Tree, tuple[str, ...]], Program]
    columns: str = ""
    rods: bool = False
    by_body: bool = True  # whether it asks for places alone: then clusters of bodies are as good as open
    word: str = ""  # the quantity that it is read off

    def of(self, model: Model, frames: tuple[str, ...] = (), axes: str = "world") -> TreeSumOf:
        return TreeSumOf(self.equation, model, self.make, frames, by_body=self.by_body)


@dataclass(frozen=True, eq=False)
class TreeSumOf:
    """A sum on one robot: sweeps already, for the compiler to frame and trace."""

    equation: str
    model: Model
    make: Callable[..., Program]  # of a tree and frames
    frames: tuple[str, ...]
    columns: str = ""
    rods: bool = False
    by_body: bool = True

    def program(self, tree: Tree) -> Program:
        made = self.make(tree, self.frames)
        return replace(made, inputs=with_parameters(made.inputs, self.model))

    def __getstate__(self) -> dict[str, Any]:
        return unmade(self)

    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        made = self.program(framed(self))
        return made.inputs, made.outputs


def _q(model: Model) -> Argument:
    return Argument("q", (model.nq,), "q")


def frame_pose(tree: Tree, frames: tuple[str, ...]) -> Program:
    spot = tree.model.frame(frames[0])
    values = spot.pose.matrix.ravel().tolist()

    def still(site: Site) -> None:
        site.write("T", 0, values)

    place = tree.place(spot.body, spot.pose)
    return Program(
        "frame_pose",
        (_q(tree.model),),
        (Argument("T", (4, 4)),),
        (Sweep(BASE_TO_TIP, world_poses.write_pose),),
        world_poses.world_origin,
        still if spot.body == WORLD else None,
        bodies=tree.path_to(spot.body),
        marks={spot.body: _mark(place)},
    )


def regressor(tree: Tree, frames: tuple[str, ...]) -> Program:
    return regression.program(tree)


def regressor_blocks(tree: Tree, frames: tuple[str, ...]) -> Program:
    return regression.program(tree, blocks=True)


def _mark(place: Pose) -> tuple:
    return tuple(map(tuple, place.rotation.tolist())), tuple(place.translation.tolist())


def link_poses(tree: Tree, frames: tuple[str, ...]) -> Program:
    n = len(tree.links)
    return Program(
        "link_poses",
        (_q(tree.model),),
        (Argument("R", (n, 3, 3)), Argument("p", (n, 3))),
        (Sweep(BASE_TO_TIP, world_poses.write_link_pose),),
        world_poses.world_origin,
        marks={k: _mark(gauge.inv) for k, gauge in enumerate(tree.gauge)},  # from the working axes to the public link frames
    )


def mass_pivots(tree: Tree, frames: tuple[str, ...]) -> Program:
    def pivots(site: Site) -> None:
        articulate(site)
        site.write_joint("d", [1.0 / x for x in site.kept["gain"].factors[1]])

    outputs = (Argument("d", (tree.model.nv,), "v"),)
    return Program("mass_pivots", (_q(tree.model),), outputs, (Sweep(TIP_TO_BASE, pivots),))
