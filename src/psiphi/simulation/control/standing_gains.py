"""Gains of a controller that holds a robot on its feet, whose legs carry more than their inertia.

A rigid robot of weight W, whose centre of mass is h above its feet, topples against W h: the torque
per radian that its n feet must exceed together. The joints of a leg are in series, and bend too.
"""

from __future__ import annotations

import numpy as np

from psiphi.model.contact.contact_points import on_shared_frames
from psiphi.robot.robot import Robot

MARGIN = 4.0  # n kp over W h
DAMPING_TIME = 0.025  # s: kd / kp
FOOT_HEIGHT = 0.01  # m: links whose points are at most this much above the lowest one are feet


def standing_gains(robot: Robot, q: np.ndarray) -> tuple[float, float]:
    """kp in N m/rad and kd in N m s/rad of each joint of a robot that stands at q (nq,).

    >>> import psiphi as pp
    >>> quadruped, humanoid = pp.load("anymal_c"), pp.load("g1")
    >>> [round(standing_gains(x, x.neutral())[0]) for x in (quadruped, humanoid)]
    [287, 460]
    """
    gravity = np.asarray(robot.gravity_vector, dtype=float)
    size = float(np.linalg.norm(gravity))
    if not size:
        return 0.0, 0.0
    up = -gravity / size
    lowest: dict[int, float] = {}  # of each link
    for frame, height in _heights(robot, q, up):
        body = robot.frame(frame).body
        lowest[body] = min(lowest.get(body, np.inf), height)
    ground = min(lowest.values())
    feet = sum(height < ground + FOOT_HEIGHT for height in lowest.values())
    toppling = robot.mass * size * (float(robot.center_of_mass(q) @ up) - ground)
    kp = MARGIN * max(toppling, 0.0) / feet
    return kp, DAMPING_TIME * kp


def _heights(robot: Robot, q: np.ndarray, up: np.ndarray) -> list[tuple[str, float]]:
    """The heights of the contact points with their frames; without any, of the links' origins."""
    points = on_shared_frames(robot.contact_points, robot.frames)
    if not points:
        names = [body.name for body in robot.bodies]
        return [(name, float(robot.frame_pose(q, name)[:3, 3] @ up)) for name in names]
    poses = {name: robot.frame_pose(q, name) for name in {point.frame for point in points}}
    return [
        (point.frame, float((T[:3, 3] + point.lever(T[:3, :3].tolist(), up.tolist())) @ up))
        for point in points
        for T in [poses[point.frame]]
    ]


def largest_gains(robot: Robot, q: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """The largest kp and kd (nv,) with which an explicit step is stable for each joint alone: a
    joint moves at least the inertia 1 / (M^-1)_kk."""
    inertia = 1.0 / np.diagonal(robot.mass_matrix_inverse(q))
    return inertia / (2 * step**2), inertia / (2 * step)
