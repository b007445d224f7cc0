"""Quantities that are more than words of the algebra, as programs over the tree: where all links are, pivots, regressors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import unmade, with_parameters
from psiphi.compiler.lower.frame_sweeps import locate, place_in_world
from psiphi.compiler.passes import framed
from psiphi.compiler.recursions.body_step import articulate, origin
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
    """A quantity that is more than words: a program over the tree, or what is read off those of a word, of which the rest is no
    code."""

    equation: str
    make: Callable[[Tree, tuple[str, ...]], Program]
    columns: str = ""
    rods: bool = False
    by_body: bool = (
        True  # whether it asks for places alone: then clusters of bodies are as good as open
    )
    word: str = (
        ""  # the quantity that it is read off: of a frame's place, and of the centre of mass
    )

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


def q_of(model: Model) -> Argument:
    return Argument("q", (model.nq,), "q")


def regressor(tree: Tree, frames: tuple[str, ...]) -> Program:
    return torque_regressor.program(tree)


def regressor_blocks(tree: Tree, frames: tuple[str, ...]) -> Program:
    return torque_regressor.program(tree, blocks=True)


def _mark(place: Pose) -> tuple:
    return tuple(map(tuple, place.rotation.tolist())), tuple(place.translation.tolist())


def link_poses(tree: Tree, frames: tuple[str, ...]) -> Program:
    """E_0 phi B of the frames of all links, of which each is written by a step that knows no other: it can run in a loop."""

    def step(site: BodyView) -> None:
        locate(site)
        (R, p), own = site.mark, False  # in its own axes
        R, p = place_in_world(site, own, R, p, 0)
        site.write("R", 9 * site.link.index, small_matrices.flat(R))
        site.write("p", 3 * site.link.index, p)

    n = len(tree.links)
    return Program(
        "link_poses",
        (q_of(tree.model),),
        (Argument("R", (n, 3, 3)), Argument("p", (n, 3))),
        (Sweep(BASE_TO_TIP, step),),
        origin,
        marks={
            k: _mark(gauge.inv) for k, gauge in enumerate(tree.gauge)
        },  # from the working axes to the public link frames
    )


def mass_pivots(tree: Tree, frames: tuple[str, ...]) -> Program:
    def pivots(site: BodyView) -> None:
        articulate(site)
        site.write_joint("d", [1.0 / x for x in site.kept["gain"].factors[1]])

    outputs = (Argument("d", (tree.model.nv,), "v"),)
    return Program("mass_pivots", (q_of(tree.model),), outputs, (Sweep(TIP_TO_BASE, pivots),))
