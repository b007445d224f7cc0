"""A robot's primitive shapes as one SVG picture: each shape's outline, far ones first."""

from __future__ import annotations

import numpy as np

from psiphi.bench.agreement import interpreted

SIZE = 220
VIEW = np.array([[-0.58, 0.81, 0.0], [-0.27, -0.19, 0.94], [0.77, 0.55, 0.33]])  # rows: right, up, towards the eye
LIGHT = np.array([0.4, 0.2, 0.9])


POSTURES = {  # the last coordinates, where the middle of the ranges shows little
    "acrobot": [0.4, 0.7],
    "cartpole": [0.3, 0.25],
    "free_flyer": [0.0, -0.9, 1.5, -0.6, -1.2, 0.0] * 2,
    "g1": [0.0] * 29,
    "iiwa14": [0.4, 0.5, 0.0, -1.2, 0.0, 0.9, 0.0],
    "pelican": [1.9, 0.9],
    "ur10": [0.3, -1.1, 1.3, -0.4, 0.0, 0.0],
    "ur5": [0.3, -1.1, 1.3, -0.4, 0.0, 0.0],
}


def posture(robot) -> np.ndarray:
    """The middle of every range, zero where there is none; flying bases upright."""
    q = robot.neutral()
    for joint in robot.joints:
        if joint.row.nq == joint.row.nv and np.isfinite([joint.lower, joint.upper]).all():
            q[joint.q_slice] = (joint.lower + joint.upper) / 2
    tail = POSTURES.get(robot.name, [])
    q[len(q) - len(tail) :] = tail
    return q


def outline(shape) -> np.ndarray:
    """Points of the shape's surface, in its own frame."""
    turn = np.linspace(0, 2 * np.pi, 25)
    ring = np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1)
    if shape.kind == "box":
        return np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.array(shape.size) / 2
    if shape.kind == "cylinder":
        radius, length = shape.size
        return np.concatenate([radius * ring + [0, 0, s * length / 2] for s in (-1, 1)])
    ball = np.concatenate([np.sin(a) * ring + [0, 0, np.cos(a)] for a in np.linspace(0, np.pi, 13)])
    if shape.kind == "sphere":
        return shape.size[0] * ball
    radius, length = shape.size
    return np.concatenate([radius * ball + [0, 0, s * length / 2] for s in (-1, 1)])


def hull(points: np.ndarray) -> np.ndarray:
    """The convex hull of points in the plane (Andrew's chains)."""
    order = sorted(map(tuple, points.tolist()))

    def half(row):
        out: list = []
        for p in row:
            while len(out) > 1 and _turn(out[-2], out[-1], p) <= 1e-12:
                out.pop()
            out.append(p)
        return out[:-1]

    return np.array(half(order) + half(order[::-1]))


def _turn(a, b, c) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def picture(robot) -> str:
    """The robot as SVG text."""
    q, parts = posture(robot), []
    for shape in robot.shapes:
        T = np.asarray(interpreted(robot, "frame_pose", q, frame=shape.link))
        place = T[:3, :3] @ shape.pose.rotation, T[:3, :3] @ shape.pose.translation + T[:3, 3]
        seen = np.round((outline(shape) @ place[0].T + place[1]) @ VIEW.T, 6)  # the same picture whatever the last bits
        shade = 0.72 + 0.28 * abs(float(place[0][:, 2] @ LIGHT)) / float(np.linalg.norm(LIGHT))
        parts.append((round(float(seen[:, 2].mean()), 5), hull(seen[:, :2]), shade, shape.color or (0.6, 0.6, 0.65, 1.0)))
    every = np.concatenate([points for _, points, _, _ in parts])
    low, span = every.min(axis=0), float(np.ptp(every, axis=0).max())
    middle = (every.max(axis=0) + low) / 2
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" height="{SIZE}">']
    for _, points, shade, color in sorted(parts, key=lambda part: part[0]):
        flat = (points - middle) * [1, -1] * (SIZE - 20) / span + SIZE / 2
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in flat)
        rgb = ",".join(str(round(255 * min(1.0, c * shade))) for c in color[:3])
        out.append(f'<polygon points="{corners}" fill="rgb({rgb})" stroke="#333" stroke-width="0.6"/>')
    return "\n".join([*out, "</svg>"]) + "\n"
