"""Built-in controllers, each its equation: steps of a law (`law.py`), which arrays and kernels share.

A reference is a constant (nq,), or a function of time that answers q, (q, v) or (q, v, a). Coordinates of a closed chain
without a motor get no torque.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.arguments import real
from psiphi.control.law import Controller, Law, Step, Values
from psiphi.control.losses import coefficients
from psiphi.errors import StateError


class Reference:
    """Where a robot should be: q_ref(t), v_ref(t), a_ref(t)."""

    def __init__(self, robot: Any, given: Any):
        self.robot, self.given = robot, given
        self.constant = None if callable(given) else self._read(given)
        if self.constant is None:
            self._read(given(0.0))

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.constant if self.constant is not None else self._read(self.given(t))

    def _read(self, answer: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        robot = self.robot
        parts = answer if isinstance(answer, tuple) else (answer,)
        if not 1 <= len(parts) <= 3:
            raise StateError(f"the reference gave {len(parts)} arrays, expected q, (q, v) or (q, v, a)", "give up to three")
        sizes = (("q", robot.nq), ("v", robot.nv), ("a", robot.nv))
        read = [real(f"reference {n}", x, (k,), f"give {k} numbers") for (n, k), x in zip(sizes, parts, strict=False)]
        for (name, _), x in zip(sizes, read, strict=False):
            if not np.isfinite(x).all():
                raise StateError(f"reference {name} holds numbers that are not finite", "look at where they came from")
        return (*read, *(np.zeros(robot.nv) for _ in range(3 - len(read))))  # type: ignore[return-value]


def gains(robot: Any, name: str, value: Any) -> np.ndarray:
    """One gain, or one a velocity coordinate: finite and not negative."""
    return coefficients(name, value, robot.nv)


def motors(robot: Any) -> np.ndarray:
    """1 where there is a motor, 0 elsewhere."""
    actuated = getattr(robot, "actuated", None)
    if actuated is None:
        return np.ones(robot.nv)
    mask = np.zeros(robot.nv)
    mask[np.asarray(actuated)] = 1.0
    return mask


def feedback(m, q, v, kp, kd, q_ref, v_ref) -> Values:
    return {"tau": kp * m.log(q, q_ref) + kd * (v_ref - v)}


def floating_feedback(m, q, v, kp, kd, q_ref, v_ref, g) -> Values:
    return {"tau": kp * m.log(q, q_ref) + kd * (v_ref - v) + g}


def wanted_acceleration(m, q, v, kp, kd, q_ref, v_ref, a_ref) -> Values:
    return {"u": kp * m.log(q, q_ref) + kd * (v_ref - v) + a_ref}


class GravityCompensation(Controller):
    """tau = g(q): the robot floats.

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> motion = pp.simulate(robot, robot.random(0), tau=GravityCompensation(robot), duration=0.1)
    >>> float(abs(motion.v).max()) < 1e-9
    True
    """

    def __init__(self, robot: Any):
        super().__init__(robot)
        self.law = Law((Step("gravity"),), ())


class PD(Controller):
    """tau = kp (q_ref - q) + kd (v_ref - v) [+ g(q)], the first difference on the configuration manifold."""

    def __init__(self, robot: Any, reference: Any, kp: Any, kd: Any, gravity: bool = False):
        super().__init__(robot)
        steps = (Step("gravity", {"tau": "g"}), Step(floating_feedback)) if gravity else (Step(feedback),)
        self.law, self.reference = Law(steps, ("q_ref", "v_ref")), Reference(self.robot, reference)
        self.numbers = {name: motors(self.robot) * gains(self.robot, name, x) for name, x in (("kp", kp), ("kd", kd))}


class ComputedTorque(Controller):
    """tau = M u + C v + g,  u = a_ref + kp (q_ref - q) + kd (v_ref - v): the error obeys e'' + kd e' + kp e = 0.

    In a closed chain u is the acceleration nearest to that which keeps the constraints, by the mass matrix: what the torques
    M u + C v + g would do to it.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> swing = lambda t: (np.sin(t) * np.ones(6), np.cos(t) * np.ones(6), -np.sin(t) * np.ones(6))
    >>> control = ComputedTorque(robot, swing, kp=100, kd=20)
    >>> motion = pp.simulate(robot, np.zeros(6), np.ones(6), control, duration=0.5)
    >>> float(abs(motion.final.q - np.sin(0.5)).max()) < 1e-8
    True
    """

    def __init__(self, robot: Any, reference: Any, kp: Any = 100.0, kd: Any = 20.0):
        super().__init__(robot)
        self.law = Law((Step(wanted_acceleration), Step("inverse_dynamics", {"a": "u"})), ("q_ref", "v_ref", "a_ref"))
        self.reference = Reference(self.robot, reference)
        self.numbers = {"kp": gains(self.robot, "kp", kp), "kd": gains(self.robot, "kd", kd)}
