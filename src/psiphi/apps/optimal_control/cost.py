"""Costs of optimal control, `pp.cost`: each is w |r|^2 / 2 of some rows r(q, v, u).

    cost                  rows
    posture(w)            log(q_d^-1 q), (nv,)
    speed(w)              v - v_d, (nv,)
    torque(w)             u - u_d, one row for each motor
    point(frame, w)       p - p_d, (3,)
    orientation(frame, w) log(R_d* R), (3,)
    pose(frame, (w_R, w_p))   both, (6,)
    direction(frame, axis, w) the rotation from the frame's axis to a direction, (2,)
    center_of_mass(w)     c - c_d, (3,)
    momentum(w)           centroidal momentum [angular; linear] - h_d, (6,)
    force(w)              f - f_d of each contact of the schedule, (3,) each
    friction(w, mu)       max(0, +-f_x - mu f_n / sqrt 2), and with f_y, of each contact
    ground(w, z)          the height over the ground of a contact that holds; of others, max(0, -it)
    of(function, w)       function(q, v, u), any number of rows

`at` is the desired value. Without it, the cost has a goal: `solve(..., tool=poses)` gives it by the
name of the frame, or of the cost ("posture", "center_of_mass", ...); `name=` gives another name.
With `along=True` the goal has a row for each node, steps + 1 of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import flag, nonnegative_number, positive_number, real_array
from psiphi.model.model import Pose

__all__ = [
    "center_of_mass",
    "direction",
    "force",
    "friction",
    "ground",
    "momentum",
    "of",
    "orientation",
    "point",
    "pose",
    "posture",
    "speed",
    "torque",
]
Weight: TypeAlias = Numbers | Sequence[float]
Goal: TypeAlias = Numbers | Pose | None


@dataclass(frozen=True, eq=False)
class Cost:
    """One cost, as it is written; `psiphi.apps.optimal_control.cost_terms` binds it to a robot."""

    kind: str
    weight: np.ndarray
    name: str = ""
    at: Any = None
    along: bool = False
    frame: str = ""
    axis: tuple[float, ...] = ()
    function: Callable[..., Any] | None = None
    number: float = 0.0  # the coefficient of friction, or the clearance

    def __repr__(self) -> str:
        where = f"{self.frame!r}, " if self.frame else ""
        weights = np.unique(self.weight)
        weight = f"{weights[0]:g}" if len(weights) == 1 else "..."
        return f"pp.cost.{self.kind}({where}{weight})"


def _cost(
    kind: str, weight: Weight, name: str, at: Goal = None, along: bool = False, **options: Any
) -> Cost:
    remedy = "give a positive number, or one for each row"
    weights = real_array(f"the weight of pp.cost.{kind}", weight, (), remedy)
    is_positive = weights.ndim <= 1 and ((weights >= 0.0) & (weights < np.inf)).all()
    if not is_positive or isinstance(weight, bool | np.bool_):
        cause = f"the weight of pp.cost.{kind} is {shown(weight)}, expected numbers of at least 0"
        raise StateError(cause, remedy)
    if not weights.any():
        raise StateError(f"the weight of pp.cost.{kind} is 0", "leave the cost out")
    frame = options.get("frame", "")
    if not isinstance(frame, str):
        cause = f"the frame of pp.cost.{kind} is {shown(frame)}, expected a name"
        raise StateError(cause, "robot.frames lists the names")
    name = frame if isinstance(name, str) and not name else name
    if not isinstance(name, str) or not name:
        raise StateError(f"name is {shown(name)}, expected text", 'give name="left", for instance')
    if flag("along", along) and isinstance(at, float) and at == 0.0:
        at = None  # the default of speeds, torques and momenta
    if along and at is not None:
        cause = f"pp.cost.{kind} has along=True and a desired value"
        raise StateError(cause, "leave at= out, and give the goal to solve()")
    return Cost(kind, np.array(weights), name, at, along, **options)


def posture(weight: Weight, at: Goal = None, *, name: str = "posture", along: bool = False) -> Cost:
    """w |log(q_d^-1 q)|^2 / 2: the distance from a configuration; one weight, or nv of them.

    >>> import numpy as np, psiphi as pp
    >>> pp.cost.posture(10.0, at=np.zeros(6))
    pp.cost.posture(10)
    """
    return _cost("posture", weight, name, at, along)


def speed(weight: Weight, at: Goal = 0.0, *, name: str = "speed", along: bool = False) -> Cost:
    """w |v - v_d|^2 / 2, v_d = 0 by default; one weight, or nv of them. `at=None` makes v_d a goal.

    >>> import psiphi as pp
    >>> pp.cost.speed([1.0, 2.0])
    pp.cost.speed(...)
    """
    return _cost("speed", weight, name, at, along)


def torque(weight: Weight, at: Goal = 0.0, *, name: str = "torque", along: bool = False) -> Cost:
    """w |u - u_d|^2 / 2 of the torques of the motors, u_d = 0 by default; one weight, or one for
    each motor. `at=None` makes u_d a goal.

    >>> import psiphi as pp
    >>> pp.cost.torque(1e-4)
    pp.cost.torque(0.0001)
    """
    return _cost("torque", weight, name, at, along)


def point(
    frame: str, weight: Weight, at: Goal = None, *, name: str = "", along: bool = False
) -> Cost:
    """w |p - p_d|^2 / 2 of the origin p of a frame; one weight, or one for each of x, y and z.

    >>> import psiphi as pp
    >>> pp.cost.point("tool", 1e4)
    pp.cost.point('tool', 10000)
    """
    return _cost("point", weight, name, at, along, frame=frame)


def orientation(
    frame: str, weight: Weight, at: Goal = None, *, name: str = "", along: bool = False
) -> Cost:
    """w |log(R_d* R)|^2 / 2 of the orientation R (3, 3) of a frame.

    >>> import psiphi as pp
    >>> pp.cost.orientation("tool", 1e3)
    pp.cost.orientation('tool', 1000)
    """
    return _cost("orientation", weight, name, at, along, frame=frame)


def pose(
    frame: str, weight: Weight, at: Goal = None, *, name: str = "", along: bool = False
) -> Cost:
    """(w_R |log(R_d* R)|^2 + w_p |p - p_d|^2) / 2 of the pose (4, 4) of a frame; the weight is
    (w_R, w_p), or one number for both.

    >>> import psiphi as pp
    >>> pp.cost.pose("tool", (1e3, 1e4))
    pp.cost.pose('tool', ...)
    """
    return _cost("pose", weight, name, at, along, frame=frame)


def direction(
    frame: str,
    axis: Numbers,
    weight: Weight,
    at: Goal = None,
    *,
    name: str = "",
    along: bool = False,
) -> Cost:
    """w angle^2 / 2, the angle between an axis of a frame and a direction (3,) in the world.

    >>> import psiphi as pp
    >>> pp.cost.direction("tool", (0, 0, 1), 10.0, at=(0, 0, -1))
    pp.cost.direction('tool', 10)
    """
    remedy = "give three numbers in the axes of the frame"
    row = real_array("axis", axis, (3,), remedy)
    length = np.linalg.norm(row)
    if row.ndim != 1 or not 1e-12 < length < 1e150:
        raise StateError(f"axis is {shown(axis)}, expected one axis", remedy)
    unit = tuple((row / length).tolist())
    return _cost("direction", weight, name, at, along, frame=frame, axis=unit)


def center_of_mass(
    weight: Weight, at: Goal = None, *, name: str = "center_of_mass", along: bool = False
) -> Cost:
    """w |c - c_d|^2 / 2 of the centre of mass c.

    >>> import psiphi as pp
    >>> pp.cost.center_of_mass((1.0, 1.0, 0.0), at=(0, 0, 0))
    pp.cost.center_of_mass(...)
    """
    return _cost("center_of_mass", weight, name, at, along)


def momentum(
    weight: Weight, at: Goal = 0.0, *, name: str = "momentum", along: bool = False
) -> Cost:
    """w |h - h_d|^2 / 2 of the centroidal momentum h = [angular; linear], h_d = 0 by default.

    >>> import psiphi as pp
    >>> pp.cost.momentum(0.1)
    pp.cost.momentum(0.1)
    """
    return _cost("momentum", weight, name, at, along)


def force(weight: Weight, at: Goal = 0.0, *, name: str = "force") -> Cost:
    """w |f - f_d|^2 / 2 of the force f (3,) on each contact that holds, in world axes, f_d = 0 by
    default; one weight, or three for each contact. Impacts count as forces during one step.

    >>> import psiphi as pp
    >>> pp.cost.force(1e-5)
    pp.cost.force(1e-05)
    """
    return _cost("force", weight, name, at)


def friction(weight: Weight, friction: float = 0.7, *, name: str = "friction") -> Cost:
    """w max(0, +-f_t - mu f_n / sqrt 2)^2 / 2 of the force f on each contact that holds, for two
    axes t across the ground: four rows of a pyramid within the friction cone of `friction` = mu.
    Outside the cone, the contact slips or pulls. f_n is the part of f against gravity.

    >>> import psiphi as pp
    >>> pp.cost.friction(1e-2, friction=0.8)
    pp.cost.friction(0.01)
    """
    mu = positive_number("friction", friction, "give a coefficient, 0.7 for instance")
    return _cost("friction", weight, name, 0.0, number=mu)


def ground(
    weight: Weight, height: float | None = 0.0, *, clearance: float = 0.0, name: str = "ground"
) -> Cost:
    """w d^2 / 2 for each contact, d = its height above the ground in steps in which it holds, and
    max(0, clearance - its height) in the others. The ground is at `height`; None makes it a goal.

    >>> import psiphi as pp
    >>> pp.cost.ground(1e3, clearance=0.05)
    pp.cost.ground(1000)
    """
    least = nonnegative_number("clearance", clearance)
    return _cost("ground", weight, name, height, number=least)


def of(function: Callable[..., Any], weight: Weight = 1.0, *, name: str = "") -> Cost:
    """w |function(q, v, u)|^2 / 2: a function of your own that returns rows.

    q (nq,), v (nv,) and u, the torques of the motors. The function is traced once, as `pp.law`
    describes: arithmetic, NumPy's elementary functions, the functions of the robot.

    >>> import numpy as np, psiphi as pp
    >>> pp.cost.of(lambda q, v, u: [0.3 * q[0], np.sin(q[1] / 2)], 1.0)
    pp.cost.of(1)
    """
    if not callable(function):
        raise StateError(f"pp.cost.of {shown(function)}", "give a function of (q, v, u)")
    default = getattr(function, "__name__", "of")
    name = default if isinstance(name, str) and not name else name
    return _cost("of", weight, name, 0.0, False, function=function)
