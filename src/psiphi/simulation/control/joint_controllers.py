"""Controllers of joints: steps of a law (`control_law.py`), which run on arrays and in kernels.

A reference is a constant (nq,), or a function of time that returns q, (q, v) or (q, v, a).
Coordinates without a motor get no torque. These are floating bases, unless `actuated` or `passive`
says otherwise, and the passive joints of a closed chain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import Error, StateError
from psiphi._util.validate import coefficients, finite_array, flag, frozen, robot_of
from psiphi.model.manifold import Manifold
from psiphi.model.model import Model
from psiphi.model.state_checks import check_unit_quaternions
from psiphi.robot.mechanisms.system import System
from psiphi.robot.parts.hybrid_dynamics import RIGID_INERTIA
from psiphi.robot.robot import Robot
from psiphi.simulation.control.closed_chains.torque_shares import inverse_dynamics_step, read_share
from psiphi.simulation.control.control_law import Controller, JointNames, Law, Step, Values
from psiphi.simulation.plant import SimulatedSystem

# numbers, several arrays (such as q, v, a), or a function of time that returns either
Source: TypeAlias = Numbers | tuple[Numbers, ...] | Callable[[float], Any]


class Reference:
    """The reference motion of a robot: t -> (q_ref, v_ref, a_ref)."""

    def __init__(self, robot: Robot | System, source: Source):
        self.robot, self.source = robot, source
        self.constant: tuple[np.ndarray, ...] | None = None
        if callable(source):
            self._read(value_at("reference", source))
        else:
            self.constant = tuple(map(frozen, self._read(source)))

    def __call__(self, t: float) -> tuple[np.ndarray, ...]:
        if self.constant is not None:
            return self.constant
        assert callable(self.source)
        return self._read(self.source(t))

    def along(self, times: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """The reference at many times, (..., times, n) each, read at once; None if it is constant,
        or if its values have to be read one by one: those that are not arrays of one shape, or
        that are not valid."""
        if self.constant is not None or not callable(self.source):
            return None
        evaluate = getattr(self.source, "along", None)
        if evaluate is not None:
            return self._read(evaluate(times))
        rows: list[list[np.ndarray]] = []
        for t in times:
            value = self.source(float(t))
            parts = value if isinstance(value, tuple) else (value,)
            if not all(type(x) is np.ndarray and x.dtype == float and x.ndim for x in parts):
                return None
            # copies: a reference may return the same array at each call
            rows.append([np.array(x) for x in parts])
        if len({tuple(x.shape for x in row) for row in rows}) > 1:
            return None
        try:
            found = self._read(tuple(np.stack(x, axis=-2) for x in zip(*rows, strict=True)))
        except Error:
            return None
        zero = np.zeros((len(times), self.robot.nv))
        return tuple(x if k < len(rows[0]) else zero for k, x in enumerate(found))

    def _read(self, value: object) -> tuple[np.ndarray, ...]:
        robot = self.robot
        # a tuple of numbers is q
        parts = value if isinstance(value, tuple) and any(map(np.ndim, value)) else (value,)
        if not 1 <= len(parts) <= 3:
            raise StateError(
                f"the reference gave {len(parts)} arrays, expected q, (q, v) or (q, v, a)",
                "give one to three",
            )
        sizes = (("q", robot.nq), ("v", robot.nv), ("a", robot.nv))
        arrays = [
            finite_array(f"reference {name}", x, (size,), f"give {size} numbers")
            for (name, size), x in zip(sizes, parts, strict=False)
        ]
        check_unit_quaternions(robot_of(robot), "reference q", arrays[0])
        return (*arrays, *(np.zeros(robot.nv) for _ in range(3 - len(arrays))))


def value_at(name: str, function: Callable[[float], Any], t: float = 0.0) -> Any:
    """The value of a function of time; an error names the function if it fails."""
    try:
        return function(t)
    except Exception as error:
        if isinstance(error, Error):
            raise
        cause = f"the {name} failed at t = {t:g}: {type(error).__name__}: {error}"
        raise StateError(cause, "give numbers, or a function of t") from error


def read_gains(robot: Robot | System, name: str, value: Numbers) -> np.ndarray:
    """Gains (nv,) from one number or nv of them, finite and not negative."""
    return coefficients(name, value, robot.nv)


def read_posture(system: Robot | System, value: Numbers | None) -> np.ndarray:
    """A posture (nq,); the neutral configuration if none is given."""
    q = system.neutral() if value is None else value
    posture = frozen(finite_array("posture", q, (system.nq,), f"give {system.nq} numbers"))
    check_unit_quaternions(robot_of(system), "posture", posture)
    return posture


def feedback(m: Manifold, q, v, kp, kd, q_ref, v_ref) -> Values:
    return {"tau": kp * m.log(q, q_ref) + kd * (v_ref - v)}


def feedback_with_gravity(m: Manifold, q, v, kp, kd, q_ref, v_ref, g) -> Values:
    return {"tau": kp * m.log(q, q_ref) + kd * (v_ref - v) + g}


def mask_torque(m: Manifold, tau, motors) -> Values:
    """tau = 0 at coordinates without a motor."""
    return {"tau": motors * tau}


def desired_acceleration(m: Manifold, q, v, kp, kd, q_ref, v_ref, a_ref) -> Values:
    return {"u": kp * m.log(q, q_ref) + kd * (v_ref - v) + a_ref}


def prescribe_acceleration(m: Manifold, u, motors) -> Values:
    """An added inertia X, and the torques X u. As X grows, the acceleration of joints with motors
    tends to u; the others move freely."""
    return {"rigid_inertia": RIGID_INERTIA * motors, "rigid_torque": RIGID_INERTIA * motors * u}


def mask_steps(controller: Controller) -> tuple[Step, ...]:
    """`mask_torque` as the last step, if some coordinates of a robot have no motor. Inverse
    dynamics of closed chains uses the motors only."""
    masked = isinstance(controller.robot, Robot) and not controller.drives_all
    return (Step(mask_torque),) if masked else ()


def mask_numbers(controller: Controller) -> dict[str, np.ndarray]:
    """The number that `mask_steps` reads."""
    return {"motors": controller.motors} if mask_steps(controller) else {}


class GravityCompensation(Controller):
    """tau = g(q): the robot does not fall, except at coordinates without a motor (a floating base).

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> control = GravityCompensation(robot)
    >>> motion = pp.simulate(robot, robot.random(seed=0), tau=control, duration=0.1)
    >>> float(abs(motion.v).max()) < 1e-9
    True
    """

    def __init__(
        self,
        robot: SimulatedSystem | Model,
        *,
        actuated: JointNames = None,
        passive: JointNames = None,
    ):
        super().__init__(robot, actuated, passive)
        self.law, self.numbers = Law((Step("gravity"), *mask_steps(self)), ()), mask_numbers(self)


class PD(Controller):
    """tau = kp (q_ref - q) + kd (v_ref - v) [+ g(q)].

    The first difference is taken on the configuration manifold.
    """

    def __init__(
        self,
        robot: SimulatedSystem | Model,
        reference: Source,
        kp: Numbers,
        kd: Numbers,
        gravity: bool = False,
        *,
        actuated: JointNames = None,
        passive: JointNames = None,
    ):
        super().__init__(robot, actuated, passive)
        steps = (Step(feedback),)
        if flag("gravity", gravity):
            steps = (Step("gravity", {"tau": "g"}), Step(feedback_with_gravity))
        # closed chains need the mask too: gains apply to every coordinate
        motors = {} if self.drives_all else {"motors": self.motors}
        steps += (Step(mask_torque),) if motors else ()
        self.law, self.reference = Law(steps, ("q_ref", "v_ref")), Reference(self.robot, reference)
        self.numbers = {
            "kp": read_gains(self.robot, "kp", kp),
            "kd": read_gains(self.robot, "kd", kd),
        } | motors


class ComputedTorque(Controller):
    """tau = M u + C v + g,  u = a_ref + kp (q_ref - q) + kd (v_ref - v).

    The error obeys e'' + kd e' + kp e = 0. If some coordinates have no motor (a floating base),
    tau = M a + C v + g with tau = 0 at these coordinates and a = u at the others, whose error obeys
    that equation. A closed chain uses the acceleration nearest to u, by the mass matrix, that
    satisfies the constraints: the one that the torques M u + C v + g would cause. Its contact
    forces minimize sum |f_i|^2 / share_i (`share`: one positive number per contact).

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
        robot: SimulatedSystem | Model,
        reference: Source,
        kp: Numbers = 100.0,
        kd: Numbers = 20.0,
        *,
        share: Numbers | None = None,
        actuated: JointNames = None,
        passive: JointNames = None,
    ):
        super().__init__(robot, actuated, passive)
        mask, shares = mask_steps(self), read_share(self.robot, share)
        steps = [Step(desired_acceleration), inverse_dynamics_step(bool(shares)), *mask]
        if mask:
            places = {"tau": "rigid_torque", "added": "rigid_inertia", "a": "u"}
            steps[1:1] = [Step(prescribe_acceleration), Step("added_inertia_dynamics", places)]
        self.law = Law(tuple(steps), ("q_ref", "v_ref", "a_ref"))
        self.reference = Reference(self.robot, reference)
        self.numbers = {
            "kp": read_gains(self.robot, "kp", kp),
            "kd": read_gains(self.robot, "kd", kd),
            **mask_numbers(self),
            **shares,
        }
