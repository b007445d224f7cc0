"""The controller of an optimal motion: u = u_k + K_k dx, within the bounds of the torques."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi.apps.optimal_control.control_blocks import METHOD
from psiphi.model.manifold import Manifold
from psiphi.model.spatial.branch_free import maximum, minimum
from psiphi.model.spatial.scalar_arrays import entries, stack_entries
from psiphi.model.spatial.screws import dot
from psiphi.simulation.control.control_law import Controller, Law, Step, Values
from psiphi.simulation.control.torque_input import UNBOUND

if TYPE_CHECKING:
    from psiphi.apps.optimal_control.optimal_motion import OptimalMotion

PLACES = ("u_ref", "gain", "q_near", "v_near")


class FeedbackRule:
    """tau of the motors `motors`, zero elsewhere."""

    places = ("q", "v", *PLACES, "low", "high")
    __name__ = "feedback_about_motion"

    def __init__(self, motors: tuple[int, ...], nv: int):
        self.motors, self.nv = motors, nv

    def __call__(self, m: Manifold, **values: np.ndarray) -> Values:
        q, v = values["q"], values["v"]
        dx = [*entries(m.log(values["q_near"], q)), *entries(v - values["v_near"])]
        u, low, high, gain = (entries(values[name]) for name in ("u_ref", "low", "high", "gain"))
        n = len(dx)
        tau: list[Any] = [0.0 * dx[0]] * self.nv
        for i, k in enumerate(self.motors):
            wanted = u[i] + dot(gain[n * i : n * (i + 1)], dx)
            tau[k] = minimum(maximum(wanted, low[i]), high[i])
        return {"tau": stack_entries(tau)}


class MotionReference:
    """t -> (u, K, q, v) of an optimal motion; q and v move between the nodes as in a step."""

    def __init__(self, motion: OptimalMotion):
        self.motion = motion

    def __call__(self, t: float) -> tuple[np.ndarray, ...]:
        return tuple(x[..., 0, :] for x in self.along(np.array([t])))

    def along(self, times: np.ndarray) -> tuple[np.ndarray, ...]:
        """The reference at times (n,), (..., n, size) each. After the last node, its last step."""
        motion, dt = self.motion, self.motion.problem.dt
        steps, manifold = motion.u.shape[-2], motion.problem.robot.manifold
        k = np.clip(np.floor(times / dt + 1e-9).astype(int), 0, steps - 1)
        share = np.clip(times / dt - k, 0.0, 1.0)[:, None]
        v0, v1 = motion.v[..., k, :], motion.v[..., k + 1, :]
        q = manifold.unit(manifold.exp(motion.q[..., k, :], (share * dt) * v1))
        K = motion.K.reshape(*motion.K.shape[:-2], -1)
        return motion.u[..., k, :], K[..., k, :], q, v0 + share * (v1 - v0)


class MotionController(Controller):
    """u_k + K_k [log(q_k^-1 q); v - v_k] at time t, for `pp.simulate` and `pp.rollout`.

    The motion is one of an `OptimalMotion`. Between two nodes, the reference moves as in a step of
    the problem; after the last node, the torque of the last step and its gains are kept.
    """

    def __init__(self, motion: OptimalMotion):
        problem = motion.problem
        super().__init__(problem.robot)
        nv, count = problem.robot.nv, len(problem.motors)
        self.motors = np.zeros(nv)
        self.motors[list(problem.motors)] = 1.0
        sizes = {"q": problem.robot.nq, "v": nv, "u_ref": count, "gain": 2 * nv * count}
        sizes |= {"q_near": problem.robot.nq, "v_near": nv, "low": count, "high": count}
        rule = FeedbackRule(problem.motors, nv)
        self.law = Law((Step(rule, sizes=sizes),), PLACES, (METHOD, *problem.motors))
        low, high = problem.bounds or (np.full(count, -UNBOUND), np.full(count, UNBOUND))
        self.numbers = {"low": low, "high": high}
        self.reference = MotionReference(motion)
