"""Placements as products of axial screws.

Z(gamma, b) X(alpha, a) Z(delta, d), or shifts followed by rotations, whichever costs less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psiphi.model.components import snap
from psiphi.model.model import Pose

AxialScrew = tuple[float, float, float]  # (cos, sin, length)
IDENTITY: AxialScrew = (1.0, 0.0, 0.0)
TURN_COST, SHIFT_COST = 53, 24  # operations to transform an articulated inertia
PARALLEL_SINE = 0.05  # axes whose angle has a smaller sine count as nearly parallel


@dataclass(frozen=True)
class JointPlacement:
    """Placement of a joint in its parent's working axes.

    fixed    screws (axis, cos, sin, length) before the joint's motion
    offset   z-screw that is added to the coordinate of a z-screw joint
    gauge    z-screw by which the link's own axes were moved
    """

    fixed: tuple[tuple, ...] = ()
    offset: AxialScrew = IDENTITY
    gauge: AxialScrew = IDENTITY


def place(
    poses: Sequence[Pose], gauges: Sequence[AxialScrew], screws: Sequence[bool], movable: bool
) -> tuple[AxialScrew, list[JointPlacement]]:
    """The z-screw of the parent's axes, and the placements of its children.

    `gauges` and `screws` have one entry per child: the z-screw of its own axes, and whether its
    joint is a z-screw. `movable`: whether the parent's joint allows the parent's axes to move.
    """
    parent_gauge = IDENTITY
    if movable and poses:
        parent_gauge = max(
            (_first_screw(pose, gauge) for pose, gauge in zip(poses, gauges, strict=True)),
            key=_screw_cost,
        )
    back = _inverse_screw(parent_gauge)
    placements = [
        _placement(back @ pose, gauge, screw)
        for pose, gauge, screw in zip(poses, gauges, screws, strict=True)
    ]
    return parent_gauge, placements


def _first_screw(pose: Pose, gauge: AxialScrew) -> AxialScrew:
    """The first screw Z(gamma, b) of the child's placement, which the parent's axes can absorb."""
    split = denavit_hartenberg(pose, gauge[2])
    return IDENTITY if split is None else split[0]


def _inverse_screw(screw: AxialScrew) -> Pose:
    c, s, length = screw
    return Pose(
        np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]), np.array([0.0, 0.0, -length])
    )


def _placement(pose: Pose, gauge: AxialScrew, screw: bool) -> JointPlacement:
    options = [_shifts_and_turns(pose)]
    split = denavit_hartenberg(pose, gauge[2])
    if split is not None:
        first, second, last = split
        options.append([("z", *first), ("x", *second), ("z", *last)])
    best = min(
        options, key=lambda path: sum(_screw_cost(step[1:]) for step in path[: len(path) - screw])
    )
    *first, (_, c, s, d) = best
    fixed = tuple(step for step in first if step[1:] != IDENTITY)
    if not screw:
        last = (("z", c, s, d),) if (c, s, d) != IDENTITY else ()
        return JointPlacement(fixed + last, IDENTITY, gauge)
    cg, sg, dg = gauge
    turn = snap(c * cg - s * sg, s * cg + c * sg)
    return JointPlacement(fixed, (*turn, _clean(d + dg, abs(d) + abs(dg))), gauge)


def _screw_cost(screw: Sequence[float]) -> int:
    c, s, length = screw
    return (
        TURN_COST * (c != 0.0 and s != 0.0)
        + (0 if s == 0.0 and c == 1.0 else 1)
        + SHIFT_COST * (length != 0.0)
    )


def denavit_hartenberg(
    pose: Pose, child_shift: float
) -> tuple[AxialScrew, AxialScrew, AxialScrew] | None:
    """((cg, sg, b), (ca, sa, a), (cd, sd, d)) with pose = Z(gamma, b) X(alpha, a) Z(delta, d).

    None if the axes are nearly parallel, where the split is ill-conditioned. If they are exactly
    parallel, the shift can be split freely between b and d: d = -child_shift, minus the child's own
    shift along its axis, makes the child's total shift vanish.
    """
    (r00, r01, ux), (r10, r11, uy), (r20, r21, uz) = pose.rotation.tolist()
    px, py, pz = pose.translation.tolist()
    scale = abs(px) + abs(py) + abs(pz)
    sine = math.hypot(ux, uy)
    if sine > 1e-14 and sine < PARALLEL_SINE:
        return None
    if sine <= 1e-14:
        a = math.hypot(px, py)
        cg, sg = snap(px, py) if a > 1e-15 * scale and a > 0 else (1.0, 0.0)
        ca, sa, d = math.copysign(1.0, uz), 0.0, -child_shift
        b = pz - ca * d
    else:
        cg, sg = snap(-uy, ux)
        ca, sa = snap(uz, sine)
        a = px * cg + py * sg
        d = (px * sg - py * cg) / sine
        b = pz - d * ca
    # delta: the first column of X(-alpha) Z(-gamma) R
    c0, c1 = cg * r00 + sg * r10, -sg * r00 + cg * r10
    cd, sd = snap(c0, ca * c1 + sa * r20)
    return (cg, sg, _clean(b, scale)), (ca, sa, _clean(a, scale)), (cd, sd, _clean(d, scale))


def pose_screws(pose: Pose) -> list[tuple]:
    """A pose as screws (axis, cos, sin, length), without identities."""
    return [step for step in _shifts_and_turns(pose) if step[1:] != IDENTITY]


def _shifts_and_turns(pose: Pose) -> list[tuple]:
    """Shifts along x and y, then Z(gamma, pz) X(alpha) Z(delta)."""
    (r00, _, ux), (r10, _, uy), (r20, _, uz) = pose.rotation.tolist()
    px, py, pz = pose.translation.tolist()
    sine = math.hypot(ux, uy)
    cg, sg = snap(-uy, ux) if sine > 1e-15 else (1.0, 0.0)
    ca, sa = snap(uz, sine)
    c0, c1 = cg * r00 + sg * r10, -sg * r00 + cg * r10
    cd, sd = snap(c0, ca * c1 + sa * r20)
    if sa == 0.0 and ca == 1.0:  # one rotation instead of two
        (cg, sg), (cd, sd) = snap(cg * cd - sg * sd, sg * cd + cg * sd), (1.0, 0.0)
        return [("x", 1.0, 0.0, px), ("y", 1.0, 0.0, py), ("z", cg, sg, pz)]
    return [
        ("x", 1.0, 0.0, px),
        ("y", 1.0, 0.0, py),
        ("z", cg, sg, pz),
        ("x", ca, sa, 0.0),
        ("z", cd, sd, 0.0),
    ]


def _clean(length: float, scale: float) -> float:
    """The length, or zero if it is rounding error of numbers of this scale."""
    return 0.0 if abs(length) < 1e-15 * scale else length
