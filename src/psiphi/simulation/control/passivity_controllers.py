"""Laws made from the energy of the error, not from cancelling the dynamics (Wen and Bayard 1988; Slotine and Li 1987).

    e = q_ref - q,   v_r = v_ref + pull e,   a_r = a_ref + pull (v_ref - v),   s = v - v_r

C(q, v) x with the robot's own v and another velocity x is what Newton and Euler's recursion has no place for (S3
section 6). It is bilinear and, by Christoffel's symbols, symmetric in v and x. So it is a difference of two Coriolis
torques C(q, w) w:

    C(q, v) x = C(q, w) w - C(q, u) u,    w = (v + x) / 2,   u = (v - x) / 2

and the law is an inverse dynamics with w, less the bias with u. All of it O(N), on arrays and in rollouts.
"""

from __future__ import annotations

from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.validate import check_robot
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import Controller, Law, Step, Values
from psiphi.simulation.control.joint_controllers import Reference, read_gains


class ReferenceVelocityLaw(Controller):
    """A law about v_r and a_r, which pull the error in: for robots whose q is a vector and whose joints all have motors."""

    def __init__(
        self,
        robot: Any,
        reference: Any,
        steps: tuple[Step, ...],
        numbers: Values,
        actuated: Any,
        passive: Any,
    ):
        name = type(self).__name__
        check_robot(name, robot, Robot)
        if not robot.manifold.is_flat:
            cause = f"{name} of {robot.name}: it has joints whose q is no vector (free, spherical, planar)"
            raise StateError(
                cause,
                'give its arm: base="fixed", or robot.lock(...); pp.ComputedTorque takes every joint',
            )
        super().__init__(robot, actuated, passive)
        self.check_motors("use pp.ComputedTorque")
        self.law = Law((Step(wanted_motion), *steps), ("q_ref", "v_ref", "a_ref"))
        self.reference = Reference(self.robot, reference)
        self.numbers = {gain: read_gains(self.robot, gain, x) for gain, x in numbers.items()}


class Lyapunov(ReferenceVelocityLaw):
    """tau = M a_r + C(q, v) v_r + g + kp e + kd (v_r - v),    v_r = v_ref + pull e

    The energy s* M s / 2 + e* kp e / 2 falls at the rate s* kd s + pull e* kp e, since dM/dt - 2 C is skew: nothing has to be
    cancelled exactly. `pull` 0 is the law of Wen and Bayard, kp 0 that of Slotine and Li. Gains are one number, or nv of them.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> swing = lambda t: (np.sin(t) * np.ones(6), np.cos(t) * np.ones(6), -np.sin(t) * np.ones(6))
    >>> control = Lyapunov(robot, swing, kp=200, kd=50)
    >>> motion = pp.simulate(robot, np.zeros(6), np.ones(6), control, duration=0.5)
    >>> float(abs(motion.final.q - np.sin(0.5)).max()) < 1e-8
    True
    """

    def __init__(
        self,
        robot: Robot,
        reference: Any,
        kp: Any = 100.0,
        kd: Any = 20.0,
        pull: Any = 0.0,
        *,
        actuated: Any = None,
        passive: Any = None,
    ):
        steps = (
            Step(halves),
            Step("inverse_dynamics", {"v": "mean", "a": "a_r", "tau": "pushed"}),
            Step("bias", {"v": "half", "tau": "turned"}),
            Step("gravity", {"tau": "g"}),
            Step(shaped),
        )
        super().__init__(
            robot, reference, steps, {"kp": kp, "kd": kd, "pull": pull}, actuated, passive
        )


class Decoupled(ReferenceVelocityLaw):
    """tau = M a + C v + g,    a = a_r + m^-* (k m* + (dm/dt)*) (v_r - v),    M = m m*,   v_r = v_ref + pull e

    In the velocities nu = m* v the mass matrix is the identity, and their error s = m* (v - v_r) obeys s' = -k s: every number
    of it by itself, at the rate its own k says, at every speed and in every posture (docs/diagonalised.md). `k` and `pull`,
    1/s, are one number or nv of them.
    """

    def __init__(
        self,
        robot: Robot,
        reference: Any,
        k: Any = 10.0,
        pull: Any = 5.0,
        *,
        actuated: Any = None,
        passive: Any = None,
    ):
        steps = (
            Step(missing_velocity),
            Step("mass_half_product", {"y": "s"}),
            Step(faded),
            Step("mass_half_rate_solve", {"a": "change"}),
            Step(corrected),
            Step("inverse_dynamics", {"a": "u"}),
        )
        super().__init__(robot, reference, steps, {"k": k, "pull": pull}, actuated, passive)


def wanted_motion(m, q, v, pull, q_ref, v_ref, a_ref) -> Values:
    e = m.log(q, q_ref)
    return {"e": e, "v_r": v_ref + pull * e, "a_r": a_ref + pull * (v_ref - v)}


def halves(m, v, v_r) -> Values:
    return {"mean": 0.5 * (v + v_r), "half": 0.5 * (v - v_r)}


def shaped(m, pushed, turned, g, e, v, v_r, kp, kd) -> Values:
    return {"tau": pushed - turned + g + kp * e + kd * (v_r - v)}


def missing_velocity(m, v, v_r) -> Values:
    return {"x": v_r - v}


def faded(m, s, k) -> Values:
    return {"y": k * s}


def corrected(m, a_r, change) -> Values:
    return {"u": a_r + change}
