"""A function's code with named parameters: the numbers of a robot's links as symbols.

    m1            mass of link 1
    c1x c1y c1z   its center of mass
    I1xx ...      its inertia about the center of mass
    l1            length of the common normal from the axis of link 1 to that of its child
    d2            offset along the axis of link 2
    r1            rotor inertia at joint 1
    g             gravity, if it acts along a coordinate axis

They refer to the link axes of the compiler: z along the joint, x along the common normal to the
next one. Zeros stay zero, and angles between axes and the placements of frames stay numbers. No
inertia is moved across joints, as is done when numbers are compiled: each symbol is the physical
parameter of its own link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyScalar
from psiphi._util.errors import StateError
from psiphi.compiler import passes
from psiphi.compiler.axes.link import Link
from psiphi.compiler.axes.link_axes import Tree, frame_tree
from psiphi.compiler.sweeps.tree_loop import StraightCode, trace_tape
from psiphi.compiler.tape.tape import Tape
from psiphi.functions.compiled_function import Function
from psiphi.model.model import WORLD

PARAMETER = "parameter"
NOISE = 1e-12  # of the largest number of its kind: rounding errors of a zero


@dataclass(frozen=True)
class NamedTree(Tree):
    """A tree whose links have tape scalars."""

    named_gravity: Sequence[AnyScalar | float] = ()

    @property
    def gravity(self) -> list:
        return list(self.named_gravity)


class ParameterNames:
    """The parameters named so far, and their values."""

    def __init__(self, tape: Tape):
        self.tape, self.values = tape, {}

    def __call__(self, name: str, value: float, size: float = 0.0) -> Any:
        """The symbol of a parameter; 0.0 for a number that is zero up to rounding of `size`."""
        if abs(value) <= NOISE * size or value == 0.0:
            return 0.0
        while name in self.values:
            name += "_"
        self.values[name] = float(value)
        return self.tape.leaf(PARAMETER, name)  # type: ignore[arg-type]


def trace_with_names(function: Function) -> tuple[StraightCode, dict[str, float]]:
    """The code of a function with named parameters as further inputs, and their values."""
    source = function.source
    if passes.is_large(source.model) or isinstance(source.request, passes.Traceable):
        what = f"{source.quantity.name or 'this function'} of {source.model.name}"
        raise StateError(
            f"{what} is not computed by sweeps over a tree of at most 64 bodies, so that its "
            "parameters have no symbols",
            "leave parameters=True out",
        )
    numeric, tape = frame_tree(source.model, movable_inertia=False), Tape()
    if numeric.freed is not None:
        raise StateError(
            f"{source.model.name} has free parameters, which are inputs already",
            "leave parameters=True out: the inputs are symbols",
        )
    names = ParameterNames(tape)
    links = tuple(_named_link(names, numeric, link) for link in numeric.links)
    tree = NamedTree(
        numeric.model,
        links,
        numeric.children,
        numeric.gauge,
        named_gravity=_gravity_symbols(names, numeric.gravity),
    )
    straight = trace_tape(passes.program(source.request, tree), tree, tape=tape)
    used = {name for _, space, name in (tape.nodes[i] for i in straight.live) if space == PARAMETER}
    return straight, {name: x for name, x in names.values.items() if name in used}


def _gravity_symbols(names: ParameterNames, gravity: list) -> tuple:
    """Gravity as +-g if it acts along a coordinate axis, else as numbers."""
    nonzero = [x for x in gravity if x]
    if len(nonzero) != 1:
        return tuple(gravity)
    g = names("g", abs(nonzero[0]))
    return tuple((g if x > 0.0 else -g) if x else 0.0 for x in gravity)


def _named_link(names: ParameterNames, tree: Tree, link: Link) -> Link:
    """The link with symbols for its numbers."""
    k, body = link.index + 1, tree.model.bodies[link.index]
    size = max(float(np.abs(joint.pose.translation).max()) for joint in tree.model.joints)
    size = max(size, max(float(np.abs(body.com).max()) for body in tree.model.bodies))
    gauge = tree.gauge[link.index].inv
    com = (gauge.rotation @ body.com + gauge.translation).tolist()
    inertia = gauge.rotation @ body.inertia @ gauge.rotation.T
    m = names(f"m{k}", body.mass)
    c = [
        names(f"c{k}{x}", value, size) if body.mass else 0.0
        for x, value in zip("xyz", com, strict=True)
    ]
    I = [[0.0] * 3 for _ in range(3)]
    for i in range(3):
        for j in range(i, 3):
            I[i][j] = I[j][i] = names(
                f"I{k}{'xyz'[i]}{'xyz'[j]}", float(inertia[i, j]), float(np.abs(inertia).max())
            )
    half = 0.5 * (I[0][0] + I[1][1] + I[2][2])
    pseudo = [
        [(half if i == j else 0.0) - I[i][j] + m * c[i] * c[j] for j in range(3)] for i in range(3)
    ]
    fixed = list(link.fixed)
    for i, axis in enumerate(link.axes):
        fixed[3 * i + 2] = names(_length_name(tree, link, axis), link.fixed[3 * i + 2], size)
    offset = [link.offset[0], names(f"d{k}", link.offset[1], size)]
    armature = [
        names(f"r{k}" if len(link.armature) == 1 else f"r{k}_{i + 1}", x)
        for i, x in enumerate(link.armature)
    ]
    return replace(
        link,
        mass=m,
        moment=[m * x for x in c],
        pseudo=pseudo,
        fixed=fixed,
        offset=offset,
        armature=armature,
    )


def _length_name(tree: Tree, link: Link, axis: str) -> str:
    """The name of a length in the placement of a link."""
    if axis != "x":
        return f"{'b' if axis == 'y' else 'd'}{link.index + 1}"
    if link.parent == WORLD:
        return "l0" if tree.parent.count(WORLD) == 1 else f"l0_{link.index + 1}"
    return (
        f"l{link.parent + 1}"
        if len(tree.children[link.parent]) == 1
        else f"l{link.parent + 1}_{link.index + 1}"
    )
