"""A trajectory between its samples: q on the manifold, along the cubic that meets q and v at both neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.simulation.plant import Plant, joint_velocity


def interpolate(motion: Any, times: np.ndarray, k: np.ndarray) -> list[Any]:
    """q, v, a, tau, forces, energy, residual at `times`, which lie behind the samples k.

    With z = (t - t_k) / h, d = difference(q_k, q_k+1) and x the cubic with x(0) = 0, x(1) = d, x'(0) = h v_k, and x'(1) what
    h v_k+1 is in these coordinates (on balls not the same):  q = integrate(q_k, x(z)). Of two samples at one time the later.
    """
    robot = motion.robot
    if robot is None:
        raise StateError(
            "this trajectory does not know its system",
            "load it with Trajectory.load(path, system=robot)",
        )
    h = motion.t[k + 1] - motion.t[k]
    z = np.where(h > 0.0, (times - motion.t[k]) / np.where(h > 0.0, h, 1.0), 1.0)

    def ends(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.take(x, k, len(motion.batch)), np.take(x, k + 1, len(motion.batch))

    def linear(x: np.ndarray | None) -> np.ndarray | None:
        if x is None:
            return None
        x0, x1 = ends(x)
        return x0 + z.reshape(z.shape + (1,) * (x.ndim - len(motion.batch) - 1)) * (x1 - x0)

    (q0, q1), (v0, v1) = ends(motion.q), ends(motion.v)
    system = Plant(motion.system).with_sample_axis().system if times.ndim else motion.system
    u0, u1 = joint_velocity(system, q0, v0), joint_velocity(system, q1, v1)
    step, h, s = robot.difference(q0, q1), h[..., None], z[..., None]
    q = robot.integrate(
        q0, cubic(np.zeros_like(step), step, h * u0, h * robot.manifold.log_rate(q0, q1, u1), s)
    )
    if motion.a is None:
        v = linear(motion.v)
    else:
        a0, a1 = ends(motion.a)
        v = cubic(v0, v1, h * a0, h * a1, s)
    return [
        q,
        v,
        *(linear(x) for x in (motion.a, motion.tau, motion.forces, motion.energy, motion.residual)),
    ]


def cubic(x0: Any, x1: Any, d0: Any, d1: Any, z: Any) -> Any:
    """The cubic with these values and slopes at z = 0 and z = 1.

    >>> cubic(1.0, 0.0, 0.0, 0.0, 0.5)
    0.5
    """
    return x0 + z * (d0 + z * (3.0 * (x1 - x0) - 2.0 * d0 - d1 + z * (2.0 * (x0 - x1) + d0 + d1)))
