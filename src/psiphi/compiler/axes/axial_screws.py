"""Placements as products of axial screws: Z(gamma, b) X(alpha, a) Z(delta, d), or plain shifts where that is cheaper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psiphi.model.components import snap
from psiphi.model.model import Pose

NONE = (1.0, 0.0, 0.0)  # a screw (cos, sin, length) that does nothing
TURN_COST, SHIFT_COST = 53, 24  # operations an axial turn or shift costs on an articulated inertia
STEEP = 0.05  # below this sine two axes count as nearly parallel


@dataclass(frozen=True)
class Placement:
    """`fixed`: (axis, cos, sin, length) screws before the joint's motion; `offset`: (cos, sin, length) added to a z-screw
    joint's own coordinate; `gauge`: the z-screw (cos, sin, length) by which the link's own axes were moved."""

    fixed: tuple[tuple, ...] = ()
    offset: tuple[float, float, float] = NONE
    gauge: tuple[float, float, float] = NONE


def place(poses: Sequence[Pose], gauges, screws: Sequence[bool], movable: bool):
    """The children's placements on one parent, and the parent's own z-screw (when its joint allows one).

    `gauges`, `screws`: per child, the z-screw of the child's own axes, and whether its joint is a z-screw.
    """
    own = NONE
    if movable and poses:
        own = max(
            (_absorbed(pose, gauge) for pose, gauge in zip(poses, gauges, strict=True)),
            key=_screw_cost,
        )
    back = _inverse_screw(own)
    placements = [
        _placement(back @ pose, gauge, screw)
        for pose, gauge, screw in zip(poses, gauges, screws, strict=True)
    ]
    return own, placements


def _absorbed(pose: Pose, gauge) -> tuple[float, float, float]:
    """The first screw Z(gamma, b) of the child's placement, which the parent's axes can take."""
    split = denavit_hartenberg(pose, gauge[2])
    return NONE if split is None else split[0]


def _inverse_screw(screw) -> Pose:
    c, s, length = screw
    return Pose(
        np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]), np.array([0.0, 0.0, -length])
    )


def _placement(pose: Pose, gauge, screw: bool) -> Placement:
    options = [_shifts_and_turns(pose)]
    split = denavit_hartenberg(pose, gauge[2])
    if split is not None:
        first, second, last = split
        options.append([("z", *first), ("x", *second), ("z", *last)])
    best = min(
        options, key=lambda path: sum(_screw_cost(step[1:]) for step in path[: len(path) - screw])
    )
    *fixed, (_, c, s, d) = best
    kept = tuple(step for step in fixed if step[1:] != NONE)
    if not screw:
        last = (("z", c, s, d),) if (c, s, d) != NONE else ()
        return Placement(kept + last, NONE, gauge)
    cg, sg, dg = gauge
    turned = snap(c * cg - s * sg, s * cg + c * sg)
    return Placement(kept, (*turned, _clean(d + dg, abs(d) + abs(dg))), gauge)


def _screw_cost(screw) -> int:
    c, s, length = screw
    return (
        TURN_COST * (c != 0.0 and s != 0.0)
        + (0 if s == 0.0 and c == 1.0 else 1)
        + SHIFT_COST * (length != 0.0)
    )


def denavit_hartenberg(pose: Pose, ahead: float):
    """((cg, sg, b), (ca, sa, a), (cd, sd, d)) with pose = Z(gamma, b) X(alpha, a) Z(delta, d), None when ill-conditioned.

    `ahead` is the child's own shift along its axis: with parallel axes the split of the shift between b and d is free,
    and d = -ahead makes the child's total shift vanish.
    """
    (r00, r01, ux), (r10, r11, uy), (r20, r21, uz) = pose.rotation.tolist()
    px, py, pz = pose.translation.tolist()
    scale = abs(px) + abs(py) + abs(pz)
    sine = math.hypot(ux, uy)
    if sine > 1e-14 and sine < STEEP:
        return None
    if sine <= 1e-14:
        a = math.hypot(px, py)
        cg, sg = snap(px, py) if a > 1e-15 * scale and a > 0 else (1.0, 0.0)
        ca, sa, d = math.copysign(1.0, uz), 0.0, -ahead
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


def constant(pose: Pose) -> list[tuple]:
    """A pose as screws (axis, cos, sin, length), those that do nothing left out."""
    return [step for step in _shifts_and_turns(pose) if step[1:] != NONE]


def _shifts_and_turns(pose: Pose) -> list[tuple]:
    """Shifts along x and y, then Z(gamma, pz) X(alpha) Z(delta)."""
    (r00, _, ux), (r10, _, uy), (r20, _, uz) = pose.rotation.tolist()
    px, py, pz = pose.translation.tolist()
    sine = math.hypot(ux, uy)
    cg, sg = snap(-uy, ux) if sine > 1e-15 else (1.0, 0.0)
    ca, sa = snap(uz, sine)
    c0, c1 = cg * r00 + sg * r10, -sg * r00 + cg * r10
    cd, sd = snap(c0, ca * c1 + sa * r20)
    if sa == 0.0 and ca == 1.0:  # one turn, not two
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
    return 0.0 if abs(length) < 1e-15 * scale else length
