"""States of a trajectory between its samples: cubic interpolation on the manifold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import AnyScalar
from psiphi._util.errors import StateError
from psiphi.simulation.plant import Plant, joint_velocity

if TYPE_CHECKING:
    from psiphi.simulation.trajectory.trajectory import Trajectory


def interpolate(motion: Trajectory, times: np.ndarray, k: np.ndarray) -> list[Any]:
    """The arrays of a sample at `times`, each between samples k and k + 1; modes of contacts are
    those of sample k.

    With z = (t - t_k) / h and d = difference(q_k, q_k+1), q = integrate(q_k, x(z)), where x is the
    cubic with x(0) = 0, x(1) = d, x'(0) = h v_k and x'(1) = h v_k+1 in tangent coordinates at q_k.
    If two samples have the same time, the later one is used.
    """
    robot = motion.robot
    if robot is None:
        raise StateError(
            "the system of this trajectory is not known",
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
    end_slope = h * robot.manifold.log_rate(q0, q1, u1)
    q = robot.integrate(q0, cubic(np.zeros_like(step), step, h * u0, end_slope, s))
    if motion.a is None:
        v = linear(motion.v)
    else:
        a0, a1 = ends(motion.a)
        v = cubic(v0, v1, h * a0, h * a1, s)
    others = motion.a, motion.tau, motion.forces, motion.energy, motion.residual, motion.gaps
    modes = None if motion.modes is None else ends(motion.modes)[0]
    last = motion.contact_residual, motion.stop_forces, motion.stop_work
    return [q, v, *map(linear, others), modes, *map(linear, last)]


def cubic(x0: AnyScalar, x1: AnyScalar, d0: AnyScalar, d1: AnyScalar, z: AnyScalar) -> Any:
    """The cubic in z with values x0, x1 and slopes d0, d1 at z = 0 and z = 1.

    >>> cubic(1.0, 0.0, 0.0, 0.0, 0.5)
    0.5
    """
    return x0 + z * (d0 + z * (3.0 * (x1 - x0) - 2.0 * d0 - d1 + z * (2.0 * (x0 - x1) + d0 + d1)))
