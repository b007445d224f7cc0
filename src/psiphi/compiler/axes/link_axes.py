"""Frames as a gauge: which axes each link gets, and which link carries which inertia.

Joint torques and accelerations do not depend on the axes in which a body is described, nor on which side of a joint the
inertia sits that the joint does not feel. Both freedoms buy operations:

1. *Modified Denavit-Hartenberg axes.* z along the joint, x along the common normal to one child's axis. A general
   placement Z(gamma, b) X(alpha, a) Z(delta, d) then loses its first screw to the parent's axes and its last one to
   the joint's own coordinate. (Near-parallel axes have a far-away common normal: they keep plain shifts.)
2. *Blind inertia.* A thin rod on the axis of a revolute joint (mass, first and second moment along z) moves with the
   parent just as well as with the child, as does the rotational inertia across a sliding joint, or a point mass at the
   centre of a spherical one. Moved inward, the child keeps seven of ten numbers, or four (the base parameters of Gautier
   and Khalil 1990). D(k) and the joint accelerations are the same; P(k) is that of the moved bodies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from psiphi.compiler.axes.axial_screws import Placement, constant, place
from psiphi.compiler.axes.link import Link
from psiphi.model.components import Axes, canonical_axes, children_of, second_moments, way_to
from psiphi.model.model import WORLD, Body, Joint, Model, Pose
from psiphi.model.parameters.free_parameters import FreeParameters, moments
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.rotations import product
from psiphi.model.spatial.screw_paths import rotate, second_moment
from psiphi.model.spatial.screws import Screw, Turn, add, cosine, sine, vanishes

NOTHING = [[0.0] * 3] * 3
ROD_DEPTH = (
    64  # blind inertia piles up towards the base: in longer chains the piles would cost digits
)


@dataclass(frozen=True)
class Tree:
    """A framed model: links in order, their children, and the pose of each link's axes in its public link frame.

    Where numbers of the model are inputs (`freed`) the links lack them: `at` puts them in."""

    model: Model
    links: tuple[Link, ...]
    children: tuple[tuple[int, ...], ...]
    gauge: tuple[Pose, ...]
    freed: FreeParameters | None = None
    moves: bool = field(default=False)  # whether the inertias that joints do not feel change sides

    @property
    def parent(self) -> tuple[int, ...]:
        return self.model.parent

    @property
    def nv(self) -> int:
        return self.model.nv

    @property
    def gravity(self) -> list:
        return self.model.gravity_vector.tolist()

    def slices(self, k: int) -> dict[str, slice]:
        """Where body k's numbers are in arrays over configurations, velocities and links."""
        joint = self.model.joints[k]
        return {"q": joint.q_read, "v": joint.v_slice, "x": slice(6 * k, 6 * k + 6)}

    @property
    def open(self) -> Tree:
        """The spanning tree, body by body: where loops are embedded, links are clusters (`cluster_axes.py`)."""
        return self

    def home(self, body: int) -> tuple[int, int]:
        """The link that a body belongs to, and its place there."""
        return body, 0

    def seat(self, k: int) -> tuple[int, int] | None:
        """Where link k hangs on a cluster: the place of its parent body there, and how many bodies the cluster has."""
        return None

    def place(self, body: int, pose: Pose) -> Pose:
        """A pose given in body's public link frame, in the body's working axes."""
        return pose if body == WORLD else self.gauge[body].inv @ pose

    def at(self, parameters: Sequence[Any]) -> Tree:
        """The tree with the free numbers in place, floats, arrays or tape scalars."""
        if self.freed is None:
            return self
        links = [
            replace(link, moment=list(link.moment), pseudo=[list(row) for row in link.pseudo])
            for link in self.links
        ]
        parts = [self.freed.parts(k, parameters) for k in range(len(links))]
        for link, own in zip(links, parts, strict=True):
            link.armature = list(own.get("armature", link.armature))
            if "offsets" in own:
                self._put(link, *own["offsets"])
        # what a joint does not feel goes before the rest is raised to the link's origin
        heights = [
            self._height(k) if {"inertia", "com"} & parts[k].keys() else 0.0
            for k in range(len(links))
        ]
        # tip to base, each body when its turn comes: few numbers wait for the others
        fill = lambda link: self._fill(link, parts[link.index], heights[link.index])  # noqa: E731
        if self.moves:
            _move_blind_inertia(links, self.model.joints, heights, fill)
        else:
            for link in links:
                fill(link)
        return replace(self, links=tuple(links), freed=None)

    def _fill(self, link: Link, parts: dict[str, Any], height: float) -> None:
        """The body's mass and moments, of its free numbers: in the working axes, from a point at `height` on z."""
        body, gauge = self.model.bodies[link.index], self.gauge[link.index]
        if (
            "mass" in parts and "com" not in parts
        ):  # what is multiplied by it is known, in whatever axes
            link.mass, link.moment, link.pseudo = moments(_in_axes(body, gauge.inv), parts)
        elif {"inertia", "com"} & parts.keys():
            m, mc, J = moments(body, parts)
            turn = self._turn(link.index)
            link.mass, link.moment, link.pseudo = m, rotate(turn, mc), second_moment(turn, J)
            if not height:
                _raise(link, gauge.inv.translation.tolist())

    def _height(self, k: int) -> float:
        """Where the public origin is on link k's axis, if moments are best moved from there."""
        x, y, z = self.gauge[k].inv.translation.tolist()
        return (
            z if self.moves and self.model.joints[k].row.blind == "rod" and x == y == 0.0 else 0.0
        )

    def _turn(self, k: int) -> list:
        """From link k's public axes to its working ones: turned as its joint's axis is, and then about it."""
        R, after = self.gauge[k].rotation, canonical_axes(self.model.joints[k]).after
        (c, _, _), (s, _, _), _ = product(after.T, R).tolist()
        if c * s == 0.0:
            return [Turn(R.T.tolist())]
        return [Screw("z", (c, -s), 0.0), Turn(after.T.tolist())]

    def _put(self, link: Link, x: Any, y: Any, z: Any, roll: Any, pitch: Any, yaw: Any) -> None:
        """A joint whose place in its parent is given: parent's axes -> parent's link frame -> joint frame -> joint's axes."""
        axes = canonical_axes(self.model.joints[link.index])
        out = [] if link.parent == WORLD else constant(self.gauge[link.parent].inv)
        turns = [
            ("z", cosine(yaw), sine(yaw), z),
            ("y", cosine(pitch), sine(pitch), 0.0),
            ("x", cosine(roll), sine(roll), 0.0),
        ]
        steps = [
            *out,
            ("x", 1.0, 0.0, x),
            ("y", 1.0, 0.0, y),
            *turns,
            *constant(Pose(axes.before, np.zeros(3))),
        ]
        link.axes, link.fixed = (
            tuple(step[0] for step in steps),
            [number for step in steps for number in step[1:]],
        )

    def path_to(self, body: int) -> list[int]:
        """The bodies from the base to `body`."""
        return way_to(self.parent, body)


def frame_tree(model: Model, rods: bool = True) -> Tree:
    """The model in the axes that cost least; `rods=False` leaves the inertias where they are."""
    children = children_of(model.parent)
    canonical = [canonical_axes(joint) for joint in model.joints]
    placed = _place_all(model, children, canonical)
    gauge = tuple(
        Pose(axes.after, np.zeros(3)) @ z_screw(p.gauge)
        for axes, p in zip(canonical, placed, strict=True)
    )
    links = [
        _link(model, k, placed[k], canonical[k].twist, gauge[k]) for k in range(len(model.joints))
    ]
    moves = rods and _depth(model) <= ROD_DEPTH
    if moves and model.freed is None:
        _move_blind_inertia(links, model.joints, [0.0] * len(links))
    return Tree(model, tuple(links), tuple(map(tuple, children)), gauge, model.freed, moves)


def z_screw(turn_and_length: tuple[float, float, float]) -> Pose:
    """The pose of a screw (cos, sin, length) about z."""
    c, s, length = turn_and_length
    return Pose(
        np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), np.array([0.0, 0.0, length])
    )


def _place_all(
    model: Model, children: Sequence[Sequence[int]], canonical: list[Axes]
) -> list[Placement]:
    """Tip to base: each joint's placement in its parent's axes, and the z-screw by which its own axes were moved."""
    placed: list[Placement] = [Placement()] * len(model.joints)
    roots = [joint.index for joint in model.joints if joint.parent == WORLD]
    given = (
        {block.index for block in model.freed.every("offsets")}
        if model.freed is not None
        else set()
    )
    for k in [*reversed(range(len(model.joints))), WORLD]:
        own = [c for c in (children[k] if k != WORLD else roots) if c not in given]
        Q = canonical[k].after if k != WORLD else np.eye(3)
        movable = k != WORLD and model.joints[k].row.screw
        poses = [
            Pose(
                product(product(Q.T, j.pose.rotation), canonical[j.index].before),
                product(Q.T, j.pose.translation),
            )
            for j in (model.joints[c] for c in own)
        ]
        gauge, placements = place(
            poses, [placed[c].gauge for c in own], [model.joints[c].row.screw for c in own], movable
        )
        for c, placement in zip(own, placements, strict=True):
            placed[c] = placement
        if k != WORLD:
            placed[k] = Placement(gauge=gauge)
    for k in given:  # where they are is an input: their own screw stays with their coordinate
        placed[k] = replace(placed[k], offset=placed[k].gauge)
    return placed


def _link(
    model: Model, k: int, placement: Placement, twist: tuple[float, float], gauge: Pose
) -> Link:
    body, joint = _in_axes(model.bodies[k], gauge.inv), model.joints[k]
    pseudo = second_moments(body.inertia) + body.mass * np.outer(body.com, body.com)
    return Link(
        index=k,
        parent=joint.parent,
        kind=joint.kind,
        axes=tuple(axis for axis, *_ in placement.fixed),
        fixed=[number for _, *numbers in placement.fixed for number in numbers],
        offset=[math.atan2(placement.offset[1], placement.offset[0]), placement.offset[2]],
        shape=[joint.pitch, *twist],
        mass=body.mass,
        moment=[body.mass * x for x in body.com.tolist()],
        pseudo=pseudo.tolist(),
        armature=joint.armature.tolist(),
        modes=joint.modes,
    )


def _in_axes(body: Body, to: Pose) -> Body:
    """The body in its working axes."""
    R = to.rotation
    inertia = product(product(R, body.inertia), R.T)
    inertia = (inertia + inertia.T) / 2  # symmetric to the last bit: six numbers, not nine
    return replace(body, com=product(R, body.com) + to.translation, inertia=inertia)


def _raise(link: Link, t: list) -> None:
    """First and second moment from where the origin is at t: m c + m t,  J + t (m c)* + (m c) t* + m t t*."""
    m, first = link.mass, link.moment
    link.moment, link.pseudo = (
        [x + m * y for x, y in zip(first, t, strict=True)],
        small_matrices.steiner(link.pseudo, m, first, t),
    )


def _depth(model: Model) -> int:
    depth = [0] * len(model.joints)
    for joint in model.joints:
        depth[joint.index] = 1 + (depth[joint.parent] if joint.parent != WORLD else 0)
    return max(depth, default=0)


def _move_blind_inertia(
    links: list[Link],
    joints: Sequence[Joint],
    heights: Sequence[float],
    fill: Callable[[Link], None] = lambda link: None,
) -> None:
    """Tip to base: what joint k does not feel goes to its parent (or into the ground). `fill` gives a link its own numbers.

    The numbers of link k are those about a point at `heights[k]` on its joint's axis: what goes need not come to its origin."""
    handed: list[list[tuple]] = [[] for _ in links]
    for link in reversed(links):
        fill(link)
        for mass, first, second in handed[link.index]:
            link.mass, link.moment = link.mass + mass, add(link.moment, first)
            link.pseudo = [add(x, y) for x, y in zip(link.pseudo, second, strict=True)]
        blind, h = joints[link.index].row.blind, heights[link.index]
        if not blind:
            continue
        m, mz, J = link.mass, link.moment[2], link.pseudo  # floats, or tape scalars
        R, l = link.rest_pose()
        u = small_matrices.apply(R, [0.0, 0.0, 1.0])  # the joint's axis, as the parent sees it
        l = [x + h * y for x, y in zip(l, u, strict=True)]
        if link.parent != WORLD:
            l[2] = l[2] - heights[link.parent]
        if blind == "rod":
            first = [m * x + mz * y for x, y in zip(l, u, strict=True)]
            second = _of_rod(l, u, first, mz, J[2][2])
            link.mass, link.moment[2] = 0.0, 0.0
            xz, yz = (J[2][i] + h * link.moment[i] for i in range(2))
            link.pseudo = [[*J[0][:2], xz], [*J[1][:2], yz], [xz, yz, 0.0]]
        elif blind == "point":
            second, first = [[m * (x * y) for y in l] for x in l], [m * x for x in l]
            link.mass = 0.0
        else:
            m, second, first = 0.0, Turn(R).turned(J), [0.0] * 3
            link.pseudo = NOTHING
        if link.parent != WORLD:
            handed[link.parent].append((m, first, second))


def _of_rod(l: list, u: list, first: list, mz: Any, zz: Any) -> list:
    """l first* + u (mz l + zz u)*, first = m l + mz u: the second moment of a rod along u from l on.

    It is symmetric: a row where u has nothing is the shorter way to an entry."""

    def entry(i: int, j: int) -> Any:
        if vanishes(u[i]) or vanishes(u[j]):
            return l[i] * first[j] if vanishes(u[i]) else l[j] * first[i]
        if i == j:
            return l[i] * (first[i] + mz * u[i]) + zz * (u[i] * u[i])
        return l[i] * first[j] + u[i] * (mz * l[j] + zz * u[j])

    return [[entry(min(i, j), max(i, j)) for j in range(3)] for i in range(3)]
