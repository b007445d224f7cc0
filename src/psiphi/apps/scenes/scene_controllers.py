"""Controllers a scene can name, for robots and for closed chains.

    hold       gravity compensation g(q), or the static torques of a closed chain; if some joints
               have no motor, zero acceleration of the joints that have one
    pd         diag M(q0) (kp (q0 - q) - kd v) + g(q); kp in 1/s^2 and kd in 1/s fit heavy and
               light joints
    computed   M (kp (q0 - q) - kd v) + C v + g
    stand      kp (q0 - q) - kd v; kp in N m/rad and kd in N m s/rad, for robots on their feet,
               whose legs carry more than their own inertia. By default kp is 4 times the weight
               times the height of the centre of mass over the number of feet, kd 0.025 s times kp.
               Joints too light for them at steps of 2 ms get less
    carry      the held object follows a path: `pp.ObjectControl`
    mpc        `pp.MPC` of the problem in [optimal_control] (`scene_optimal_control.py`)

All but the last are `pp` controllers that compile. The first three work for robots and closed
chains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from psiphi._util.validate import robot_of
from psiphi.apps.scenes.toml_table import Table
from psiphi.model.spatial.rotations import conjugate, exponential, logarithm, multiply
from psiphi.model.spatial.screws import Turn
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.control.joint_controllers import PD, ComputedTorque, GravityCompensation
from psiphi.simulation.control.object_controller import ObjectControl
from psiphi.simulation.control.standing_gains import DAMPING_TIME, largest_gains, standing_gains

TorqueLaw = Callable[[float, np.ndarray, np.ndarray], np.ndarray]
PathStop = tuple[float, Sequence[float], Sequence[float]]  # time, move, turn
PATH_FREE_LAWS = ("none", "hold", "pd", "computed")  # laws that need no path
CONTROLLERS = (*PATH_FREE_LAWS, "stand", "carry", "mpc")
LAWS_WITH_GAINS, DEFAULT_GAINS = (
    ("pd", "computed"),
    {"kp": 100.0, "kd": 20.0},
)  # laws with gains, in 1/s^2 and 1/s
STANDING_STEP = 2e-3  # s: up to this step the gains of standing are stable for each joint alone


def controller(
    kind: str, row: Table, system: Robot | System, q0: np.ndarray, motors: dict[str, Any]
) -> TorqueLaw | None:
    """The control law of a [controller] table. `motors` names actuated or passive joints."""
    if kind == "none":
        return None
    if kind == "carry":
        return _carrying_law(row, system, q0)
    if kind == "stand":
        if not isinstance(system, Robot):
            row.fail("kind", "stand is for robots", "use hold, pd or computed")
        given = {name: row.number(name, above=0.0) for name in DEFAULT_GAINS if name in row}
        return standing_law(system, q0, **given, **motors)
    gains = (
        {name: row.number(name, default, 0.0) for name, default in DEFAULT_GAINS.items()}
        if kind in LAWS_WITH_GAINS
        else {}
    )
    return law(kind, system, q0, **gains, **motors)


def law(
    kind: str,
    system: Robot | System,
    q0: np.ndarray,
    kp: float = DEFAULT_GAINS["kp"],
    kd: float = DEFAULT_GAINS["kd"],
    **motors: Any,  # actuated= or passive=
) -> TorqueLaw | None:
    """A law that needs no path: "none", "hold", "pd" or "computed"."""
    if kind == "none":
        return None
    return {
        "hold": lambda: _holding_law(system, q0, motors),
        "pd": lambda: PD(system, q0, *_scaled_gains(system, q0, kp, kd), gravity=True, **motors),
        "computed": lambda: ComputedTorque(system, q0, kp, kd, **motors),
    }[kind]()


def standing_law(
    robot: Robot,
    q0: np.ndarray,
    kp: float | None = None,
    kd: float | None = None,
    **motors: Any,
) -> PD:
    """kp (q0 - q) - kd v of a robot on its feet, in N m/rad and N m s/rad, at most those gains that
    are stable for each joint alone."""
    start = np.asarray(q0, dtype=float).reshape(-1, robot.nq)[0]
    kp = standing_gains(robot, start)[0] if kp is None else kp
    kd = DAMPING_TIME * kp if kd is None else kd
    most_kp, most_kd = largest_gains(robot, start, STANDING_STEP)
    return PD(robot, q0, np.minimum(kp, most_kp), np.minimum(kd, most_kd), **motors)


def _holding_law(system: Robot | System, q0: np.ndarray, motors: dict[str, Any]) -> TorqueLaw:
    """g(q). If a robot has joints without motor, zero acceleration of the other joints."""
    still = GravityCompensation(system, **motors)
    return (
        still
        if still.drives_all or not isinstance(system, Robot)
        else ComputedTorque(system, q0, 0.0, 0.0, **motors)
    )


def _scaled_gains(
    system: Robot | System, q0: np.ndarray, kp: float, kd: float
) -> tuple[np.ndarray, np.ndarray]:
    """Gains times the diagonal of the mass matrix at the start, or at the first of a batch."""
    robot = robot_of(system)
    inertia = np.diagonal(robot.mass_matrix(np.asarray(q0, dtype=float).reshape(-1, robot.nq)[0]))
    return kp * inertia, kd * inertia


def _carrying_law(row: Table, system: Robot | System, q0: np.ndarray) -> ObjectControl:
    if not isinstance(system, System) or not system.object:
        row.fail(
            "kind",
            "carry needs an object that is held",
            "add [object] and [[grasps]], or name another controller",
        )
    path: list[PathStop] = []
    for stop in row.tables("path"):
        t = stop.number("t", above=0.0)
        path.append((t, *(stop.numbers(key, 3, [0.0] * 3) for key in ("move", "turn"))))
        stop.reject_unknown()
    if any(b[0] <= a[0] for a, b in pairwise(path)):
        row.fail("path", "its times do not increase", "order the stops by t")
    gains = (row.number(name, default, 0.0) for name, default in DEFAULT_GAINS.items())
    target = ReferenceMotion(system.frame_pose(q0, system.object), path)
    return ObjectControl(
        system, target, *gains, squeeze=row.number("squeeze", 0.0, -1e-300), posture_kd=4.0
    )


def smooth_share(x: float, span: float) -> tuple[float, float, float]:
    """s(x), and its first and second derivative by time, if x in [0, 1] is the share of `span`
    seconds: the profile of minimum jerk."""
    return (
        x**3 * (10 - 15 * x + 6 * x * x),
        30 * x**2 * (1 - x) ** 2 / span,
        60 * x * (1 - x) * (1 - 2 * x) / span**2,
    )


class ReferenceMotion:
    """Pose, velocity and acceleration of an object over time: a target of `ObjectControl`.

    `path` lists (time, move, turn): displacement in world axes and rotation vector in the object's
    axes, both from the start. Between two stops the object has moved by the fraction
    s(x) = 10 x^3 - 15 x^4 + 6 x^5 of the way, with x in [0, 1]: the minimum-jerk profile between
    two states of rest (Flash and Hogan 1985).
    """

    def __init__(self, start: np.ndarray, path: Sequence[PathStop]):
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
        s, s1, s2 = smooth_share(min(max((t - begin[0]) / span, 0.0), 1.0), span)
        first, last = (exponential(list(stop[2])) for stop in (begin, end))
        # rotation vector from one stop to the next, about an axis that is fixed in the body
        turn = np.array(logarithm(multiply(conjugate(first), last))[0])
        turned = np.array(Turn.from_quaternion(multiply(first, exponential(list(s * turn)))).R)
        way = np.concatenate([self.start[:3, :3] @ turned @ turn, end[1] - begin[1]])
        pose = self.start.copy()
        pose[:3, :3] = pose[:3, :3] @ turned
        pose[:3, 3] += begin[1] + s * way[3:]
        return pose, s1 * way, s2 * way
