"""Controllers a scene can name, for robots and for closed chains.

    hold       the torques that keep the start: g(q), or what holds the closed chain still, or the joints of a robot that falls
    pd         diag M(q0) (kp (q0 - q) - kd v) + g(q): gains in 1/s^2 and 1/s fit heavy and light joints alike
    computed   M (kp (q0 - q) - kd v) + C v + g
    carry      the held object follows a path; see `Carry`

The first three are `pp` controllers, of robots and closed chains alike, and so compile.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from psiphi.control.controllers import PD, ComputedTorque, GravityCompensation
from psiphi.errors import StateError
from psiphi.functions.robot import Robot
from psiphi.scenes.keys import Table
from psiphi.spatial.entries import along
from psiphi.spatial.rotations import conjugate, exponential, logarithm, multiply
from psiphi.spatial.screws import Turn

Law = Callable[[float, np.ndarray, np.ndarray], np.ndarray]
CONTROLLERS = ("none", "hold", "pd", "computed", "carry")


def controller(kind: str, row: Table, system: Any, q0: np.ndarray, motors: dict[str, Any]) -> Law | None:
    """The control law of a [controller] table; `motors`: actuated or passive joints of a robot."""
    if kind == "none":
        return None
    if kind == "carry":
        return _carry(row, system, q0)
    return law(kind, system, q0, row.number("kp", 100.0, 0.0), row.number("kd", 20.0, 0.0), **motors)


def law(kind: str, system: Any, q0: np.ndarray, kp: float = 100.0, kd: float = 20.0, **motors: Any) -> Law | None:
    """A law that needs no path: "none", "hold", "pd" or "computed"."""
    if kind == "none":
        return None
    return {
        "hold": lambda: _hold(system, q0, motors),
        "pd": lambda: PD(system, q0, *_scaled(system, q0, kp, kd), gravity=True, **motors),
        "computed": lambda: ComputedTorque(system, q0, kp, kd, **motors),
    }[kind]()


def _hold(system: Any, q0: np.ndarray, motors: dict[str, Any]) -> Law:
    """g(q); where some joints have no motor, what keeps the others from accelerating while these fall."""
    still = GravityCompensation(system, **motors)
    return still if still.drives_all or not isinstance(system, Robot) else ComputedTorque(system, q0, 0.0, 0.0, **motors)


def _scaled(robot: Any, q0: np.ndarray, kp: float, kd: float) -> tuple[np.ndarray, np.ndarray]:
    """Gains times the diagonal of the mass matrix at the (first) start."""
    robot = getattr(robot, "robot", robot)
    inertia = np.diagonal(robot.mass_matrix(np.asarray(q0, dtype=float).reshape(-1, robot.nq)[0]))
    return kp * inertia, kd * inertia


def _carry(row: Table, system: Any, q0: np.ndarray) -> Carry:
    if not getattr(system, "object", ""):
        row.fail("kind", "carry needs an object that is held", "add [object] and [[grasps]], or name another controller")
    path = []
    for stop in row.tables("path"):
        path.append((stop.number("t", above=0.0), stop.numbers("move", 3, [0.0] * 3), stop.numbers("turn", 3, [0.0] * 3)))
        stop.done()
    if any(b[0] <= a[0] for a, b in pairwise(path)):
        row.fail("path", "its times do not grow", "order the stops by t")
    gains = (row.number("kp", 100.0, 0.0), row.number("kd", 20.0, 0.0), row.number("squeeze", 0.0, -1e-300))
    return Carry(system, q0, path, *gains)


class Carry:
    """The object follows a path, the arms do what that takes:

        a_o = a_ref + kd (v_ref - v_o) + kp (q_ref - q_o)            the object, on its configuration manifold
        Jc a = -bias                                                 the joints: least squares, damped where they are free
        tau = inverse dynamics of (q, v, a), and an internal force `squeeze` towards the middle of the contacts

    `path` is a list of (time, move, turn): displacement in world axes and rotation vector from the start. Between two stops
    the motion is s = 10 x^3 - 15 x^4 + 6 x^5 of the way: at rest at both, of least jerk (Flash and Hogan 1985).
    """

    def __init__(self, system: Any, q0, path, kp: float = 100.0, kd: float = 20.0, squeeze: float = 0.0, damping: float = 4.0):
        self.system, self.kp, self.kd, self.squeeze, self.damping = system, kp, kd, squeeze, damping
        robot = system.robot
        self.joint = next(joint for joint in robot.joints if robot.bodies[joint.index].name == system.object)
        self.own = self.joint.v_slice
        self.start = np.asarray(q0, dtype=float)[self.joint.q_slice]
        if self.joint.kind != "free":
            raise StateError(f"the object hangs on a {self.joint.kind} joint, expected a free one", "hold it with pp.grasp")
        self.stops = [(0.0, np.zeros(3), np.zeros(3)), *((t, np.array(m, float), np.array(r, float)) for t, m, r in path)]

    def reference(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a of the object's free joint at time t."""
        later = [k for k, stop in enumerate(self.stops) if stop[0] > t]
        end = self.stops[later[0]] if later else self.stops[-1]
        begin = self.stops[later[0] - 1] if later else end
        span = (end[0] - begin[0]) or 1.0
        x = min(max((t - begin[0]) / span, 0.0), 1.0)
        s, s1, s2 = x**3 * (10 - 15 * x + 6 * x * x), 30 * x**2 * (1 - x) ** 2 / span, 60 * x * (1 - x) * (1 - 2 * x) / span**2
        first, last = (multiply(list(self.start[3:]), exponential(stop[2])) for stop in (begin, end))
        way = np.array(logarithm(multiply(conjugate(first), last))[0])
        turned, back = multiply(first, exponential(list(s * way))), end[1] - begin[1]
        w, dw = s1 * way, s2 * way  # in body axes: a turn about a fixed axis
        v, dv = (np.array(Turn.from_quaternion(turned).unrotate(rate * back)) for rate in (s1, s2))
        place = self.start[:3] + begin[1] + s * back
        return np.concatenate([place, turned]), np.concatenate([w, v]), np.concatenate([dw, dv - np.cross(w, v)])

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        system, own = self.system, self.own
        a = self.acceleration(t, q, v)
        squeeze = self._squeeze(q) if self.squeeze else None
        tau = np.array(system.inverse_dynamics(q, v, a, internal=squeeze))
        tau[..., own] = 0.0
        return tau

    def acceleration(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Accelerations of all coordinates that keep the constraints and move the object as wanted."""
        system, own = self.system, self.own
        q_ref, v_ref, a_ref = self.reference(t)
        error = along(self.joint.row.log, q[..., self.joint.q_slice], q_ref)
        wanted = a_ref + self.kd * (v_ref - v[..., own]) + self.kp * error
        arms = np.setdiff1d(np.arange(system.nv), np.arange(own.start, own.stop))
        Jc = system.constraint_jacobian(q)
        free = system.forward_dynamics(q, v, np.zeros(system.nv))  # any motion that keeps the constraints: Jc a = -bias
        gap = np.einsum("...mi,...i->...m", Jc, free) - np.einsum("...mi,...i->...m", Jc[..., own], wanted)
        slow = -self.damping * v[..., arms]
        gap = gap - np.einsum("...mi,...i->...m", Jc[..., arms], slow)
        a = np.zeros(np.shape(v))
        a[..., own] = wanted
        a[..., arms] = slow + np.einsum("...im,...m->...i", np.linalg.pinv(Jc[..., arms], rcond=1e-8), gap)
        return a

    def _squeeze(self, q: np.ndarray) -> np.ndarray:
        """Forces of the given size from each contact to the middle of all."""
        points = [self.system.robot.frame_pose(q, contact.second)[..., :3, 3] for contact in self.system.contacts]
        inward = np.mean(points, axis=0) - np.stack(points, axis=-2)
        force = self.squeeze * inward / np.maximum(np.linalg.norm(inward, axis=-1, keepdims=True), 1e-12)
        return np.concatenate([np.zeros_like(force), force], axis=-1)
