"""Controllers a scene can name, for robots and for closed chains.

    hold       the torques that keep the start: g(q), or what holds the closed chain still, or the joints of a robot that falls
    pd         diag M(q0) (kp (q0 - q) - kd v) + g(q): gains in 1/s^2 and 1/s fit heavy and light joints alike
    computed   M (kp (q0 - q) - kd v) + C v + g
    carry      the held object follows a path: `pp.ObjectControl`

All are `pp` controllers, and so compile; the first three are of robots and closed chains alike.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from psiphi._util.validate import robot_of
from psiphi.apps.scenes.toml_table import Table
from psiphi.model.spatial.rotations import conjugate, exponential, logarithm, multiply
from psiphi.model.spatial.screws import Turn
from psiphi.robot.robot import Robot
from psiphi.simulation.control.joint_controllers import PD, ComputedTorque, GravityCompensation
from psiphi.simulation.control.object_controller import ObjectControl

TorqueLaw = Callable[[float, np.ndarray, np.ndarray], np.ndarray]
LAWS = ("none", "hold", "pd", "computed")  # those that need no path
CONTROLLERS = (*LAWS, "carry")
GAINED, GAINS = ("pd", "computed"), {"kp": 100.0, "kd": 20.0}  # laws with gains, in 1/s^2 and 1/s


def controller(
    kind: str, row: Table, system: Any, q0: np.ndarray, motors: dict[str, Any]
) -> TorqueLaw | None:
    """The control law of a [controller] table; `motors`: actuated or passive joints of a robot."""
    if kind == "none":
        return None
    if kind == "carry":
        return _carry(row, system, q0)
    gains = (
        {name: row.number(name, usual, 0.0) for name, usual in GAINS.items()}
        if kind in GAINED
        else {}
    )
    return law(kind, system, q0, **gains, **motors)


def law(
    kind: str,
    system: Any,
    q0: np.ndarray,
    kp: float = GAINS["kp"],
    kd: float = GAINS["kd"],
    **motors: Any,
) -> TorqueLaw | None:
    """A law that needs no path: "none", "hold", "pd" or "computed"."""
    if kind == "none":
        return None
    return {
        "hold": lambda: _hold(system, q0, motors),
        "pd": lambda: PD(system, q0, *_scaled(system, q0, kp, kd), gravity=True, **motors),
        "computed": lambda: ComputedTorque(system, q0, kp, kd, **motors),
    }[kind]()


def _hold(system: Any, q0: np.ndarray, motors: dict[str, Any]) -> TorqueLaw:
    """g(q); where some joints have no motor, what keeps the others from accelerating while these fall."""
    still = GravityCompensation(system, **motors)
    return (
        still
        if still.drives_all or not isinstance(system, Robot)
        else ComputedTorque(system, q0, 0.0, 0.0, **motors)
    )


def _scaled(robot: Any, q0: np.ndarray, kp: float, kd: float) -> tuple[np.ndarray, np.ndarray]:
    """Gains times the diagonal of the mass matrix at the (first) start."""
    robot = robot_of(robot)
    inertia = np.diagonal(robot.mass_matrix(np.asarray(q0, dtype=float).reshape(-1, robot.nq)[0]))
    return kp * inertia, kd * inertia


def _carry(row: Table, system: Any, q0: np.ndarray) -> ObjectControl:
    if not getattr(system, "object", ""):
        row.fail(
            "kind",
            "carry needs an object that is held",
            "add [object] and [[grasps]], or name another controller",
        )
    path = []
    for stop in row.tables("path"):
        path.append(
            (
                stop.number("t", above=0.0),
                stop.numbers("move", 3, [0.0] * 3),
                stop.numbers("turn", 3, [0.0] * 3),
            )
        )
        stop.done()
    if any(b[0] <= a[0] for a, b in pairwise(path)):
        row.fail("path", "its times do not grow", "order the stops by t")
    gains = (row.number(name, usual, 0.0) for name, usual in GAINS.items())
    target = ReferenceMotion(system.frame_pose(q0, system.object), path)
    return ObjectControl(
        system, target, *gains, squeeze=row.number("squeeze", 0.0, -1e-300), posture_kd=4.0
    )


class ReferenceMotion:
    """The pose, velocity and acceleration of an object on its way, by time: a target of `ObjectControl`.

    `path` is a list of (time, move, turn): displacement in world axes and rotation vector, in its own axes, from the start.
    Between two stops the motion is s = 10 x^3 - 15 x^4 + 6 x^5 of the way: at rest at both, of least jerk (Flash, Hogan 1985).
    """

    def __init__(self, start: np.ndarray, path):
        self.start = start
        self.stops = [
            (0.0, np.zeros(3), np.zeros(3)),
            *((t, np.array(m, float), np.array(r, float)) for t, m, r in path),
        ]

    def __call__(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        later = [k for k, stop in enumerate(self.stops) if stop[0] > t]
        end = self.stops[later[0]] if later else self.stops[-1]
        begin = self.stops[later[0] - 1] if later else end
        span = (end[0] - begin[0]) or 1.0
        x = min(max((t - begin[0]) / span, 0.0), 1.0)
        s, s1, s2 = (
            x**3 * (10 - 15 * x + 6 * x * x),
            30 * x**2 * (1 - x) ** 2 / span,
            60 * x * (1 - x) * (1 - 2 * x) / span**2,
        )
        first, last = (exponential(list(stop[2])) for stop in (begin, end))
        turn = np.array(
            logarithm(multiply(conjugate(first), last))[0]
        )  # about an axis that stays, seen from the body
        turned = np.array(Turn.from_quaternion(multiply(first, exponential(list(s * turn)))).R)
        way = np.concatenate([self.start[:3, :3] @ turned @ turn, end[1] - begin[1]])
        pose = self.start.copy()
        pose[:3, :3] = pose[:3, :3] @ turned
        pose[:3, 3] += begin[1] + s * way[3:]
        return pose, s1 * way, s2 * way
