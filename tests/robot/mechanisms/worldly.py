"""Constraints once more, in world axes and with rows to spare: twice differentiated by hand,
nothing of psiphi.

A frame moves as (R, p, w, v, w', v'), all in world axes; u'' of a direction u on it is w' x u + w x
(w x u).
"""

from __future__ import annotations

import numpy as np


def _axis(frame, u) -> tuple:
    R, _, w, _, wd, _ = frame
    u = R @ np.asarray(u, dtype=float)
    return u, np.cross(w, u), np.cross(wd, u) + np.cross(w, np.cross(w, u))


def _cross(a, b) -> np.ndarray:
    return np.cross(a[2], b[0]) + 2 * np.cross(a[1], b[1]) + np.cross(a[0], b[2])


def _dot(a, b) -> np.ndarray:
    return np.array([a[2] @ b[0] + 2 * a[1] @ b[1] + a[0] @ b[2]])


def second_derivative(kind: str, shape, one, two) -> np.ndarray:
    """d2/dt2 of what the kind keeps at zero (a soft finger: d/dt of its spin)."""
    d = tuple(
        x - y for x, y in zip(one[1::2], two[1::2], strict=True)
    )  # p, v, v' between the frames
    h1, h2 = _axis(one, shape.axis), _axis(two, shape.axis)
    if kind == "weld":
        turns = [_cross(_axis(two, e), _axis(one, one[0].T @ (two[0] @ e))) for e in np.eye(3)]
        return np.concatenate([d[2], *turns])
    if kind == "soft":
        return np.append(d[2], h2[1] @ (one[2] - two[2]) + h2[0] @ (one[4] - two[4]))
    return {
        "ball": lambda: d[2],
        "hinge": lambda: np.concatenate([d[2], _cross(h2, h1)]),
        "universal": lambda: np.concatenate([d[2], _dot(h2, _axis(one, shape.axis2))]),
        "cylindrical": lambda: np.concatenate([_cross(h2, d), _cross(h2, h1)]),
        "planar": lambda: np.concatenate([_dot(h2, d), _cross(h2, h1)]),
        "distance": lambda: _dot(d, d),
    }[kind]()


def accelerations(system, q, v, tau) -> np.ndarray:
    """Gauss' principle by least squares: a = a_f + M^-1/2 (J M^-1/2)^+ (-(J a_f + bias))."""
    robot, nv = system.robot, system.nv

    def frame(a, name):
        T, V, A = (
            robot.frame_pose(q, name),
            robot.frame_velocity(q, v, name),
            robot.frame_acceleration(q, v, a, name),
        )
        return T[:3, :3], T[:3, 3], V[:3], V[3:], A[:3], A[3:]

    def opened(a):
        rows = [
            second_derivative(c.kind, c.shape, frame(a, c.first), frame(a, c.second))
            for c in system.contacts
        ]
        for f in system.closure.mimics:
            own, leader = (a[robot.joint(name).v_slice] for name in (f.joint, f.leader))
            rows.append(own - f.multiplier * leader)
        return np.concatenate(rows)

    bias = opened(np.zeros(nv))
    J = np.stack([opened(unit) - bias for unit in np.eye(nv)], axis=1)
    mass = robot.mass_matrix(q)
    free = np.linalg.solve(mass, tau - robot.bias(q, v))
    root = np.linalg.cholesky(mass)
    y = np.linalg.lstsq(np.linalg.solve(root, J.T).T, -(J @ free + bias), rcond=1e-9)[0]
    return free + np.linalg.solve(root.T, y)
