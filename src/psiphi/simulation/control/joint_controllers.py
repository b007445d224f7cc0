"""Built-in controllers, each its equation: steps of a law (`control_law.py`), which arrays and kernels share.

A reference is a constant (nq,), or a function of time that answers q, (q, v) or (q, v, a). Coordinates without a motor get no
torque: floating bases, unless `actuated` or `passive` says otherwise, and those of a closed chain that it names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psiphi._util.errors import Error, StateError
from psiphi._util.validate import coefficients, finite_array, flag, frozen, robot_of
from psiphi.model.state_checks import check_quaternions
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import Controller, Law, Step, Values

GRIP = 1e30  # beside it every inertia is below rounding


class Reference:
    """Where a robot should be: q_ref(t), v_ref(t), a_ref(t)."""

    def __init__(self, robot: Any, given: Any):
        self.robot, self.given = robot, given
        self.constant: Any = None if callable(given) else tuple(map(frozen, self._read(given)))
        if self.constant is None:
            self._read(value_at_start("reference", given))

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.constant if self.constant is not None else self._read(self.given(t))

    def along(self, times: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """The same at many times at once, (..., times, n) each, where what was given can: a `TimedPath`."""
        ask = getattr(self.given, "along", None)
        return None if self.constant is not None or ask is None else self._read(ask(times))

    def _read(self, answer: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        robot = self.robot
        parts = answer if isinstance(answer, tuple) else (answer,)
        if not 1 <= len(parts) <= 3:
            raise StateError(
                f"the reference gave {len(parts)} arrays, expected q, (q, v) or (q, v, a)",
                "give up to three",
            )
        sizes = (("q", robot.nq), ("v", robot.nv), ("a", robot.nv))
        read = [
            finite_array(f"reference {n}", x, (k,), f"give {k} numbers")
            for (n, k), x in zip(sizes, parts, strict=False)
        ]
        check_quaternions(robot, "reference q", read[0])
        return (*read, *(np.zeros(robot.nv) for _ in range(3 - len(read))))  # type: ignore[return-value]


def value_at_start(what: str, given: Any) -> Any:
    """What a function of time answers at its begin: one that fails there is no reference."""
    try:
        return given(0.0)
    except Exception as error:
        if isinstance(error, Error):
            raise
        cause = f"the {what} failed at t = 0: {type(error).__name__}: {error}"
        raise StateError(cause, "give numbers, or a function of t") from error


def read_gains(robot: Any, name: str, value: Any) -> np.ndarray:
    """One gain, or one a velocity coordinate: finite and not negative."""
    return coefficients(name, value, robot.nv)


def read_posture(system: Any, given: Any) -> np.ndarray:
    """A configuration that is kept where a task leaves freedom; the neutral one where none is given."""
    kept = frozen(
        finite_array(
            "posture",
            system.neutral() if given is None else given,
            (system.nq,),
            f"give {system.nq} numbers",
        )
    )
    check_quaternions(robot_of(system), "posture", kept)
    return kept


def feedback(m, q, v, kp, kd, q_ref, v_ref) -> Values:
    return {"tau": kp * m.log(q, q_ref) + kd * (v_ref - v)}


def feedback_with_gravity(m, q, v, kp, kd, q_ref, v_ref, g) -> Values:
    return {"tau": kp * m.log(q, q_ref) + kd * (v_ref - v) + g}


def mask_torque(m, tau, motors) -> Values:
    return {"tau": motors * tau}


def desired_acceleration(m, q, v, kp, kd, q_ref, v_ref, a_ref) -> Values:
    return {"u": kp * m.log(q, q_ref) + kd * (v_ref - v) + a_ref}


def prescribe_acceleration(m, u, motors) -> Values:
    """Joints that accelerate as u says, whatever it takes: the limit of ever larger rotors X under the torques X u."""
    return {"grip": GRIP * motors, "pull": GRIP * motors * u}


def mask_steps(controller: Controller) -> tuple[Step, ...]:
    """The last step where some coordinate has no motor; closed chains see to that themselves."""
    return (
        (Step(mask_torque),)
        if isinstance(controller.robot, Robot) and not controller.drives_all
        else ()
    )


def mask_numbers(controller: Controller) -> dict[str, np.ndarray]:
    """The number that step reads."""
    return {"motors": controller.motors} if mask_steps(controller) else {}


class GravityCompensation(Controller):
    """tau = g(q): the robot floats. A floating base has no motor, and falls.

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> motion = pp.simulate(robot, robot.random(seed=0), tau=GravityCompensation(robot), duration=0.1)
    >>> float(abs(motion.v).max()) < 1e-9
    True
    """

    def __init__(self, robot: Any, *, actuated: Any = None, passive: Any = None):
        super().__init__(robot, actuated, passive)
        self.law, self.numbers = Law((Step("gravity"), *mask_steps(self)), ()), mask_numbers(self)


class PD(Controller):
    """tau = kp (q_ref - q) + kd (v_ref - v) [+ g(q)], the first difference on the configuration manifold."""

    def __init__(
        self,
        robot: Any,
        reference: Any,
        kp: Any,
        kd: Any,
        gravity: bool = False,
        *,
        actuated: Any = None,
        passive: Any = None,
    ):
        super().__init__(robot, actuated, passive)
        floats = flag("gravity", gravity)
        steps = (
            (Step("gravity", {"tau": "g"}), Step(feedback_with_gravity))
            if floats
            else (Step(feedback),)
        )
        motors = (
            {} if self.drives_all else {"motors": self.motors}
        )  # of closed chains too: gains are of every coordinate
        steps += (Step(mask_torque),) if motors else ()
        self.law, self.reference = Law(steps, ("q_ref", "v_ref")), Reference(self.robot, reference)
        self.numbers = {
            name: read_gains(self.robot, name, x) for name, x in (("kp", kp), ("kd", kd))
        } | motors


class ComputedTorque(Controller):
    """tau = M u + C v + g,  u = a_ref + kp (q_ref - q) + kd (v_ref - v): the error obeys e'' + kd e' + kp e = 0.

    Coordinates without a motor (a floating base) accelerate as they must, with tau = 0, and the error of the others obeys
    that equation: tau = M a + C v + g, a = u at the motors. In a closed chain u is the acceleration nearest to that which
    keeps the constraints, by the mass matrix: what the torques M u + C v + g would do to it.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> swing = lambda t: (np.sin(t) * np.ones(6), np.cos(t) * np.ones(6), -np.sin(t) * np.ones(6))
    >>> control = ComputedTorque(robot, swing, kp=100, kd=20)
    >>> motion = pp.simulate(robot, np.zeros(6), np.ones(6), control, duration=0.5)
    >>> float(abs(motion.final.q - np.sin(0.5)).max()) < 1e-8
    True
    """

    def __init__(
        self,
        robot: Any,
        reference: Any,
        kp: Any = 100.0,
        kd: Any = 20.0,
        *,
        actuated: Any = None,
        passive: Any = None,
    ):
        super().__init__(robot, actuated, passive)
        steps = [
            Step(desired_acceleration),
            Step("inverse_dynamics", {"a": "u"}),
            *mask_steps(self),
        ]
        if mask_steps(self):
            steps[1:1] = [
                Step(prescribe_acceleration),
                Step("added_inertia_dynamics", {"tau": "pull", "added": "grip", "a": "u"}),
            ]
        self.law = Law(tuple(steps), ("q_ref", "v_ref", "a_ref"))
        self.reference = Reference(self.robot, reference)
        self.numbers = {
            "kp": read_gains(self.robot, "kp", kp),
            "kd": read_gains(self.robot, "kd", kd),
        } | mask_numbers(self)
