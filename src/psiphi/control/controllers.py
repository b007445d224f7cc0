"""Built-in controllers: callables (t, q, v) -> tau (..., nv), over any batch axes, each its equation.

A reference is a constant (nq,), or a function of time that answers q, (q, v) or (q, v, a). In a closed chain g and M u + C v
+ g are what its own inverse dynamics asks of the motors, and coordinates without a motor get no torque.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi.arguments import real
from psiphi.closed import sharing
from psiphi.closed.system import System
from psiphi.control.plant import Plant
from psiphi.control.torques import coefficients
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


def a_system(given: Any) -> Any:
    """A robot or a closed chain, as given."""
    return Plant(given).given


def gains(robot: Any, name: str, value: Any) -> np.ndarray:
    """One gain, or one a velocity coordinate: finite and not negative."""
    return coefficients(name, value, robot.nv)


def holding(robot: Any, q: np.ndarray) -> np.ndarray:
    """g(q): of a robot, or of the motors of a closed chain."""
    if isinstance(robot, System):
        return sharing.hold(robot, q)
    return robot.gravity(q) if hasattr(robot, "gravity") else robot.inverse_dynamics(q, np.zeros(robot.nv), np.zeros(robot.nv))


def motors(robot: Any) -> np.ndarray | None:
    """1 where there is a motor, 0 elsewhere; None: everywhere."""
    actuated = getattr(robot, "actuated", None)
    if actuated is None:
        return None
    mask = np.zeros(robot.nv)
    mask[np.asarray(actuated)] = 1.0
    return mask


class GravityCompensation:
    """tau = g(q): the robot floats.

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> motion = pp.simulate(robot, robot.random(0), tau=GravityCompensation(robot), duration=0.1)
    >>> float(abs(motion.v).max()) < 1e-9
    True
    """

    def __init__(self, robot: Any):
        self.robot = a_system(robot)

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return holding(self.robot, q)


class PD:
    """tau = kp (q_ref - q) + kd (v_ref - v) [+ g(q)], the first difference on the configuration manifold."""

    def __init__(self, robot: Any, reference: Any, kp: Any, kd: Any, gravity: bool = False):
        self.robot, self.reference, self.gravity = a_system(robot), Reference(robot, reference), bool(gravity)
        self.kp, self.kd, self.motors = gains(robot, "kp", kp), gains(robot, "kd", kd), motors(robot)
        self.is_flat = getattr(robot, "robot", robot).manifold.is_flat

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.law(q, v, *self.reference(t))

    def law(self, q: np.ndarray, v: np.ndarray, q_ref: np.ndarray, v_ref: np.ndarray, a_ref: np.ndarray) -> np.ndarray:
        """tau at a state and a reference."""
        tau = self.feedback(q, v, q_ref, v_ref)
        tau = tau if self.motors is None else self.motors * tau
        return tau + holding(self.robot, q) if self.gravity else tau

    def feedback(self, q: np.ndarray, v: np.ndarray, q_ref: np.ndarray, v_ref: np.ndarray) -> np.ndarray:
        """kp (q_ref - q) + kd (v_ref - v)."""
        error = q_ref - q if self.is_flat else self.robot.difference(q, q_ref)
        return self.kp * error + self.kd * (v_ref - v)


class ComputedTorque(PD):
    """tau = M u + C v + g,  u = a_ref + kp (q_ref - q) + kd (v_ref - v): the error obeys e'' + kd e' + kp e = 0.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> swing = lambda t: (np.sin(t) * np.ones(6), np.cos(t) * np.ones(6), -np.sin(t) * np.ones(6))
    >>> control = ComputedTorque(robot, swing, kp=100, kd=20)
    >>> motion = pp.simulate(robot, np.zeros(6), np.ones(6), control, duration=0.5)
    >>> float(abs(motion.final.q - np.sin(0.5)).max()) < 1e-8
    True
    """

    def __init__(self, robot: Any, reference: Any, kp: Any = 100.0, kd: Any = 20.0):
        super().__init__(robot, reference, kp, kd)

    def law(self, q: np.ndarray, v: np.ndarray, q_ref: np.ndarray, v_ref: np.ndarray, a_ref: np.ndarray) -> np.ndarray:
        u = a_ref + self.feedback(q, v, q_ref, v_ref)
        if isinstance(self.robot, System):  # by the nearest u that keeps the constraints
            return sharing.drive(self.robot, q, v, u)
        return self.robot.inverse_dynamics(q, v, u)
