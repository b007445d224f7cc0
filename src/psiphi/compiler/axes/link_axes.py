"""The choice of link frames: the axes of each link, and the link that carries each inertia.

Frames are a gauge: joint torques and accelerations depend neither on the axes in which a body is
described, nor on the side of a joint to which inertia belongs that the joint does not feel. Both
freedoms save operations:

1. *Modified Denavit-Hartenberg axes.* z is along the joint, x along the common normal to the axis
   of one child. In a general placement Z(gamma, b) X(alpha, a) Z(delta, d), the parent's axes then
   absorb the first screw, and the joint's own coordinate the last one. Axes that are nearly
   parallel have a common normal far away: their placements remain shifts and rotations.
2. *Blind inertia.* Inertia that a joint does not feel may belong to the parent as well as to the
   child: a thin rod on the axis of a revolute joint (mass, first and second moment along z), the
   rotational inertia across a prismatic joint, a point mass at the centre of a spherical joint.
   If it is moved to the parent, seven of the child's ten numbers remain, or four (the base
   parameters of Gautier and Khalil 1990). D(k) and the joint accelerations do not change; P(k) is
   that of the modified bodies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyScalar
from psiphi.compiler.axes.axial_screws import AxialScrew, JointPlacement, place, pose_screws
from psiphi.compiler.axes.link import Link
from psiphi.model.components import Axes, canonical_axes, children_of, path_to_body, second_moments
from psiphi.model.model import WORLD, Body, Joint, Model, Pose
from psiphi.model.parameters.free_parameters import FreeParameters, mass_moments
from psiphi.model.spatial import small_matrices
from psiphi.model.spatial.rotations import product
from psiphi.model.spatial.screw_paths import rotate, second_moment
from psiphi.model.spatial.screws import Screw, Turn, add, cosine, is_zero_constant, sine

ZERO_MOMENT = [[0.0] * 3] * 3
# Blind inertia accumulates towards the base: in longer chains the sums would lose digits.
ROD_DEPTH = 64


@dataclass(frozen=True)
class Tree:
    """A model in working axes: its links, their children, and the pose of each link's working axes
    in its public link frame (`gauge`).

    If numbers of the model are inputs, the links do not contain them: `with_parameters` sets them.
    """

    model: Model
    links: tuple[Link, ...]
    children: tuple[tuple[int, ...], ...]
    gauge: tuple[Pose, ...]
    freed: FreeParameters | None = None
    moves_inertia: bool = field(default=False)  # whether blind inertia is moved to the parents

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
        """Body k's part of arrays over configurations (q), velocities (v) and links (x)."""
        joint = self.model.joints[k]
        return {"q": joint.motion_slice, "v": joint.v_slice, "x": slice(6 * k, 6 * k + 6)}

    @property
    def spanning_tree(self) -> Tree:
        """The tree with one link per body. With embedded loops, links of this tree are clusters
        (`cluster_axes.py`)."""
        return self

    def link_of(self, body: int) -> tuple[int, int]:
        """The link that contains a body, and the index of the body in that link."""
        return body, 0

    def parent_slot(self, k: int) -> tuple[int, int] | None:
        """If the parent of link k is a cluster: the index of the parent body in it, and the number
        of bodies of the cluster."""
        return None

    def working_pose(self, body: int, pose: Pose) -> Pose:
        """A pose in the body's public link frame, expressed in its working axes."""
        return pose if body == WORLD else self.gauge[body].inv @ pose

    def with_parameters(self, parameters: Sequence[AnyScalar] | np.ndarray) -> Tree:
        """The tree with the free parameters set: floats, arrays or tape scalars."""
        if self.freed is None:
            return self
        links = [
            replace(link, moment=list(link.moment), pseudo=[list(row) for row in link.pseudo])
            for link in self.links
        ]
        parts = [self.freed.parts(k, parameters) for k in range(len(links))]
        for link, part in zip(links, parts, strict=True):
            link.armature = list(part.get("armature", link.armature))
            if "offsets" in part:
                self._set_joint_origin(link, *part["offsets"])
        # blind inertia is moved first, then the rest is shifted to the link's origin
        heights = [
            self._axis_height(k) if {"inertia", "com"} & parts[k].keys() else 0.0
            for k in range(len(links))
        ]

        def set_moments(link: Link) -> None:
            self._set_moments(link, parts[link.index], heights[link.index])

        # tip to base, body by body, so that few numbers are live at a time
        if self.moves_inertia:
            _move_blind_inertia(links, self.model.joints, heights, set_moments)
        else:
            for link in links:
                set_moments(link)
        return replace(self, links=tuple(links), freed=None)

    def _set_moments(self, link: Link, parts: dict[str, Any], height: float) -> None:
        """Mass and moments of a body with free parameters: in working axes, about the point at
        `height` on z."""
        body, gauge = self.model.bodies[link.index], self.gauge[link.index]
        if "mass" in parts and "com" not in parts:  # the moments per unit of mass are constants
            link.mass, link.moment, link.pseudo = mass_moments(_in_axes(body, gauge.inv), parts)
        elif {"inertia", "com"} & parts.keys():
            m, mc, J = mass_moments(body, parts)
            turn = self._rotation_to_working(link.index)
            link.mass, link.moment, link.pseudo = m, rotate(turn, mc), second_moment(turn, J)
            if not height:
                _shift_origin(link, gauge.inv.translation.tolist())

    def _axis_height(self, k: int) -> float:
        """The height of the public origin on link k's axis, if its moments are those about it."""
        x, y, z = self.gauge[k].inv.translation.tolist()
        return (
            z
            if self.moves_inertia
            and self.model.joints[k].row.null_inertia == "rod"
            and x == y == 0.0
            else 0.0
        )

    def _rotation_to_working(self, k: int) -> list:
        """The rotation from link k's public axes to its working axes: to the joint's axis, then
        about it."""
        R, after = self.gauge[k].rotation, canonical_axes(self.model.joints[k]).after
        (c, _, _), (s, _, _), _ = product(after.T, R).tolist()
        if c * s == 0.0:
            return [Turn(R.T.tolist())]
        return [Screw("z", (c, -s), 0.0), Turn(after.T.tolist())]

    def _set_joint_origin(
        self,
        link: Link,
        x: AnyScalar,
        y: AnyScalar,
        z: AnyScalar,
        roll: AnyScalar,
        pitch: AnyScalar,
        yaw: AnyScalar,
    ) -> None:
        """Set the placement of a joint whose origin in its parent is a free parameter:
        parent's axes -> parent's link frame -> joint frame -> joint's axes."""
        axes = canonical_axes(self.model.joints[link.index])
        to_link_frame = [] if link.parent == WORLD else pose_screws(self.gauge[link.parent].inv)
        turns = [
            ("z", cosine(yaw), sine(yaw), z),
            ("y", cosine(pitch), sine(pitch), 0.0),
            ("x", cosine(roll), sine(roll), 0.0),
        ]
        steps = [
            *to_link_frame,
            ("x", 1.0, 0.0, x),
            ("y", 1.0, 0.0, y),
            *turns,
            *pose_screws(Pose(axes.before, np.zeros(3))),
        ]
        link.axes, link.fixed = (
            tuple(step[0] for step in steps),
            [number for step in steps for number in step[1:]],
        )

    def path_to(self, body: int) -> list[int]:
        """The bodies from the base to `body`."""
        return path_to_body(self.parent, body)


def frame_tree(model: Model, movable_inertia: bool = True) -> Tree:
    """The model in the axes that cost least; with `rods=False`, no inertia is moved to a parent."""
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
    moves = movable_inertia and _depth(model) <= ROD_DEPTH
    if moves and model.freed is None:
        _move_blind_inertia(links, model.joints, [0.0] * len(links))
    return Tree(model, tuple(links), tuple(map(tuple, children)), gauge, model.freed, moves)


def z_screw(screw: AxialScrew) -> Pose:
    """The pose of a screw (cos, sin, length) about z."""
    c, s, length = screw
    return Pose(
        np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), np.array([0.0, 0.0, length])
    )


def _place_all(
    model: Model, children: Sequence[Sequence[int]], canonical: list[Axes]
) -> list[JointPlacement]:
    """Tip to base: each joint's placement in its parent's axes, and the z-screw by which its own
    axes were moved."""
    placed: list[JointPlacement] = [JointPlacement()] * len(model.joints)
    roots = [joint.index for joint in model.joints if joint.parent == WORLD]
    # joints whose origin in the parent is a free parameter
    free = {block.body for block in model.free_blocks("offsets")}
    for k in [*reversed(range(len(model.joints))), WORLD]:
        fixed = [c for c in (children[k] if k != WORLD else roots) if c not in free]
        Q = canonical[k].after if k != WORLD else np.eye(3)
        movable = k != WORLD and model.joints[k].row.is_screw
        poses = [
            Pose(
                product(product(Q.T, j.pose.rotation), canonical[j.index].before),
                product(Q.T, j.pose.translation),
            )
            for j in (model.joints[c] for c in fixed)
        ]
        gauge, placements = place(
            poses,
            [placed[c].gauge for c in fixed],
            [model.joints[c].row.is_screw for c in fixed],
            movable,
        )
        for c, placement in zip(fixed, placements, strict=True):
            placed[c] = placement
        if k != WORLD:
            placed[k] = JointPlacement(gauge=gauge)
    for k in free:  # no fixed placement absorbs their own screw: it remains in the coordinate
        placed[k] = replace(placed[k], offset=placed[k].gauge)
    return placed


def _link(
    model: Model, k: int, placement: JointPlacement, twist: tuple[float, float], gauge: Pose
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


def _in_axes(body: Body, pose: Pose) -> Body:
    """The body in its working axes, `pose` being that of its link frame in them."""
    R = pose.rotation
    inertia = product(product(R, body.inertia), R.T)
    inertia = (inertia + inertia.T) / 2  # symmetric to the last bit: six numbers, not nine
    return replace(body, com=product(R, body.com) + pose.translation, inertia=inertia)


def _shift_origin(link: Link, t: list) -> None:
    """First and second moment about a point that sees the old origin at t:
    m c + m t,  J + t (m c)* + (m c) t* + m t t*."""
    m, first = link.mass, link.moment
    link.moment, link.pseudo = (
        [x + m * y for x, y in zip(first, t, strict=True)],
        small_matrices.shifted_second_moment(link.pseudo, m, first, t),
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
    set_moments: Callable[[Link], None] = lambda link: None,
) -> None:
    """Tip to base: inertia that joint k does not feel is moved to its parent, or dropped if that is
    the world. `set_moments` is called first on each link, and sets its own moments.

    The moments of link k are those about the point at `heights[k]` on its joint's axis, so that
    blind inertia need not be shifted to the link's origin first.
    """
    received: list[list[tuple]] = [[] for _ in links]
    for link in reversed(links):
        set_moments(link)
        for mass, first, second in received[link.index]:
            link.mass, link.moment = link.mass + mass, add(link.moment, first)
            link.pseudo = [add(x, y) for x, y in zip(link.pseudo, second, strict=True)]
        blind, h = joints[link.index].row.null_inertia, heights[link.index]
        if not blind:
            continue
        m, mz, J = link.mass, link.moment[2], link.pseudo  # floats, or tape scalars
        R, l = link.rest_pose()
        u = small_matrices.apply(R, [0.0, 0.0, 1.0])  # the joint's axis in the parent's axes
        l = [x + h * y for x, y in zip(l, u, strict=True)]
        if link.parent != WORLD:
            l[2] = l[2] - heights[link.parent]
        if blind == "rod":
            first = [m * x + mz * y for x, y in zip(l, u, strict=True)]
            second = _rod_second_moment(l, u, first, mz, J[2][2])
            link.mass, link.moment[2] = 0.0, 0.0
            xz, yz = (J[2][i] + h * link.moment[i] for i in range(2))
            link.pseudo = [[*J[0][:2], xz], [*J[1][:2], yz], [xz, yz, 0.0]]
        elif blind == "point":
            second, first = [[m * (x * y) for y in l] for x in l], [m * x for x in l]
            link.mass = 0.0
        else:
            m, second, first = 0.0, Turn(R).rotate_tensor(J), [0.0] * 3
            link.pseudo = ZERO_MOMENT
        if link.parent != WORLD:
            received[link.parent].append((m, first, second))


def _rod_second_moment(l: list, u: list, first: list, mz: AnyScalar, zz: AnyScalar) -> list:
    """l first* + u (mz l + zz u)*, first = m l + mz u: the second moment of a rod from l along u.

    It is symmetric. An entry (i, j) costs less from the row in which u is zero.
    """

    def entry(i: int, j: int) -> AnyScalar:
        if is_zero_constant(u[i]) or is_zero_constant(u[j]):
            return l[i] * first[j] if is_zero_constant(u[i]) else l[j] * first[i]
        if i == j:
            return l[i] * (first[i] + mz * u[i]) + zz * (u[i] * u[i])
        return l[i] * first[j] + u[i] * (mz * l[j] + zz * u[j])

    return [[entry(min(i, j), max(i, j)) for j in range(3)] for i in range(3)]
