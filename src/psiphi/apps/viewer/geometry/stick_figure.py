"""Solids of a robot without shapes, from its kinematics and inertias.

A link is a rod from its joint to each child joint: first along the joint axis, then perpendicular
to it. A revolute joint is a cylinder about its axis, a prismatic joint a box along it. A free body
without children is the solid it was defined as, or else the uniform box with its mass and inertia.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psiphi.apps.viewer.geometry.link_poses import rotation_with_z_along
from psiphi.apps.viewer.geometry.solids import (
    JOINT_COLOR,
    OBJECT_COLOR,
    PALETTE,
    RAIL_COLOR,
    DrawnSolid,
    box,
    capsule,
    cylinder,
    pose_at,
    sphere,
)
from psiphi.model.components import children_of
from psiphi.model.model import WORLD, Body, Joint, Model, Pose

ROD_RADIUS = 0.13  # of a rod, over the typical link length


def stick_figure_solids(model: Model) -> list[DrawnSolid]:
    """The solids of a model."""
    children = children_of(model.parent)
    scale, tree, depth = typical_length(model), tree_numbers(model), _depths(model)
    deepest = max(depth, default=0) or 1
    out: list[DrawnSolid] = []
    for k in range(len(model.bodies)):
        color = PALETTE[tree[k] % len(PALETTE)]
        radius = ROD_RADIUS * scale * (1.0 - 0.45 * depth[k] / deepest)
        if model.joints[k].kind == "free" and not children[k]:
            out += free_body_solids(model, k, scale)
        elif model.joints[k].modes is not None:
            out += _flexible_rods(model, k, 0.5 * radius, color)
            out += _link_rods(model, k, children[k], radius, color) if children[k] else []
        else:
            out += _joint_solids(model, k, radius)
            out += _link_rods(model, k, children[k], radius, color)
    return out


def typical_length(model: Model) -> float:
    """The median distance between neighbouring joints, and from joints to frames."""
    steps = [
        np.linalg.norm(j.pose.translation)
        for j in model.joints
        if j.parent != WORLD and j.modes is None
    ]
    steps += [
        np.linalg.norm(frame.pose.translation)
        for frame in model.frames.values()
        if frame.body != WORLD
    ]
    steps += [max(np.linalg.norm(j.pose.translation) for j in run) for run in _flexible_runs(model)]
    steps = [s for s in steps if s > 1e-3] or [
        2 * np.linalg.norm(b.com) for b in model.bodies if np.any(b.com)
    ]
    return float(np.median(steps)) if steps else 0.3


def _flexible_runs(model: Model) -> list[list[Joint]]:
    """For each flexible link, the joints between its nodes."""
    return [[model.joints[k] for k in c.bodies] for c in model.clusters if c.modes]


def flexible_bodies(model: Model) -> set[int]:
    """The indices of bodies that are drawn nodes of a flexible link."""
    return {
        j.index
        for run in _flexible_runs(model)
        for j in run
        if j.modes is not None and j.modes.is_drawn
    }


def tree_numbers(model: Model) -> list[int]:
    """For each body, the number of its tree."""
    out: list[int] = []
    for joint in model.joints:
        out.append(max(out, default=-1) + 1 if joint.parent == WORLD else out[joint.parent])
    return out


def free_body_solids(model: Model, k: int, scale: float) -> list[DrawnSolid]:
    """A free body: the solid it was defined as, else the uniform box with its mass and inertia,
    else a sphere."""
    if (solid := model.bodies[k].solid) is not None:
        return [DrawnSolid(k, solid.kind, solid.size, pose_at(model.bodies[k].com), OBJECT_COLOR)]
    found = inertia_box(model.bodies[k])
    if found is None:
        return [sphere(k, 0.3 * scale, model.bodies[k].com, OBJECT_COLOR)]
    return [box(k, found[0], found[1], OBJECT_COLOR)]


def inertia_box(body: Body) -> tuple[np.ndarray, Pose] | None:
    """Sides a of the uniform box with a body's inertia, and its pose: the principal axes at the
    centre of mass. a_x^2 = 6 (I_y + I_z - I_x) / m."""
    if body.mass <= 0.0:
        return None
    moments, axes = np.linalg.eigh(body.inertia)
    squares = 6.0 * (moments.sum() - 2.0 * moments) / body.mass
    if squares.max() <= 0.0:
        return None
    axes = axes * np.sign(np.linalg.det(axes))
    sides = np.sqrt(np.maximum(squares, 1e-3 * squares.max()))
    return sides, Pose(axes, np.asarray(body.com))


def _depths(model: Model) -> list[int]:
    out: list[int] = []
    for joint in model.joints:
        out.append(0 if joint.parent == WORLD else out[joint.parent] + 1)
    return out


def _joint_solids(model: Model, k: int, r: float) -> Iterator[DrawnSolid]:
    joint, here = model.joints[k], np.zeros(3)
    if joint.kind in ("revolute", "continuous", "helical"):
        yield cylinder(k, 1.3 * r, 2.9 * r, here, joint.axis, JOINT_COLOR)
    elif joint.kind == "cylindrical":
        yield cylinder(k, 1.15 * r, 4.5 * r, here, joint.axis, JOINT_COLOR)
    elif joint.kind == "prismatic":
        yield box(
            k,
            (2.3 * r, 2.3 * r, 3.6 * r),
            Pose(rotation_with_z_along(joint.axis), here),
            JOINT_COLOR,
        )
        yield _rail(joint, r)
    elif joint.kind == "universal":
        yield cylinder(k, 0.9 * r, 3.2 * r, here, joint.axis, JOINT_COLOR)
        yield cylinder(k, 0.9 * r, 3.2 * r, here, joint.axis2, JOINT_COLOR)
    elif joint.kind == "planar":
        yield cylinder(k, 1.8 * r, 0.9 * r, here, joint.axis, JOINT_COLOR)
    else:
        yield sphere(k, 1.5 * r, here, JOINT_COLOR)


def _flexible_rods(model: Model, k: int, r: float, color: str) -> Iterator[DrawnSolid]:
    """Rods from a node of a flexible link half way to the neighbouring nodes. The first and the
    last node also have a rod away from their neighbour."""
    run = next(run for run in _flexible_runs(model) if k in {joint.index for joint in run})
    line = [joint for joint in run if joint.modes is not None and joint.modes.is_drawn]
    if k not in {joint.index for joint in line}:
        return
    i = [joint.index for joint in line].index(k)
    R, p = line[i].pose.rotation, line[i].pose.translation
    ends = [0.5 * (line[j].pose.translation - p) for j in (i - 1, i + 1) if 0 <= j < len(line)]
    if i == 0 and len(line) > 1:
        ends.append(-0.5 * (line[1].pose.translation - p))
    if i == len(line) - 1 and len(line) > 1:
        ends.append(-0.5 * (line[i - 1].pose.translation - p))
    for end in ends:
        yield capsule(k, r, np.zeros(3), R.T @ end, color)


def _rail(joint: Joint, r: float) -> DrawnSolid:
    """The rail of a prismatic joint, fixed to the parent: it spans zero and the limits."""
    low, high = max(float(joint.lower[0]), -40 * r), min(float(joint.upper[0]), 40 * r)
    direction = joint.pose.rotation @ joint.axis
    start, end = (joint.pose.translation + x * direction for x in (min(low, 0.0), max(high, 0.0)))
    return capsule(joint.parent, 0.5 * r, start, end, RAIL_COLOR)


def _link_rods(
    model: Model, k: int, children: list[int], r: float, color: str
) -> Iterator[DrawnSolid]:
    joint, body = model.joints[k], model.bodies[k]
    for end in _link_ends(model, k, children, r):
        elbow = (end @ joint.axis) * joint.axis if joint.row.axes else np.zeros(3)
        if np.linalg.norm(elbow) < 0.4 * r or np.linalg.norm(end - elbow) < 0.4 * r:
            yield capsule(k, r, np.zeros(3), end, color)
        else:
            yield capsule(k, r, np.zeros(3), elbow, color)
            yield capsule(k, r, elbow, end, color)
    if not children and not _link_ends(model, k, children, r):
        found = inertia_box(body)
        if found is not None and found[0].max() > 0.5 * r:
            yield box(k, np.clip(found[0], 0.5 * r, 8 * r), found[1], color)


def _link_ends(model: Model, k: int, children: list[int], r: float) -> list[np.ndarray]:
    """End points of a link: its child joints, else its frames, else a point on the line through
    the centre of mass."""
    ends = [model.joints[c].pose.translation for c in children if model.joints[c].modes is None]
    if not any(np.linalg.norm(end) > 0.5 * r for end in ends):
        ends += [f.pose.translation for f in model.frames.values() if f.body == k]
    if not children and not any(np.linalg.norm(end) > 0.5 * r for end in ends):
        ends.append(2.0 * np.asarray(model.bodies[k].com))
    out: list[np.ndarray] = []
    for end in ends:
        if np.linalg.norm(end) > 0.5 * r and not any(np.allclose(end, other) for other in out):
            out.append(np.asarray(end))
    return out


def pedestals(model: Model, ground: float, trees: set[int], up: np.ndarray) -> Iterator[DrawnSolid]:
    """Columns from the ground to the first joints of these trees."""
    r, tree = ROD_RADIUS * typical_length(model), tree_numbers(model)
    for joint in model.joints:
        if (
            joint.parent == WORLD
            and tree[joint.index] in trees
            and joint.kind not in ("free", "planar", "prismatic")
        ):
            top = np.asarray(joint.pose.translation)
            height = float(top @ up) - ground
            if height > 0.3 * r:
                yield cylinder(WORLD, 1.5 * r, height, top - height / 2 * up, up, JOINT_COLOR)
            plate = max(0.35 * r, 1e-3)
            yield cylinder(WORLD, 2.8 * r, plate, top - (height - plate / 2) * up, up, JOINT_COLOR)
