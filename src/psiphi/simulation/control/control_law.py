"""A law of control as data: steps over named places, each a rule on arrays or a quantity of the system's.

    Step(rule)                         rule(m, <places>) -> {place: value}, m the configuration manifold
    Step("inverse_dynamics", ...)      a quantity: its arguments and its result are places

`Controller` runs the steps on arrays; a kernel traces the same rules and takes the same quantities' code
(`simulation/compiled_rollout/rollout_program.py`). In a closed chain g and M u + C v + g are what its own inverse dynamics asks of the motors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.late_methods import with_late_methods
from psiphi._util.text import shown
from psiphi._util.validate import batch_axes, is_foreign, is_lazy, read_array, robot_of
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.model import motors
from psiphi.model.model import Model
from psiphi.robot.mechanisms.dynamics import load_distribution, object_dynamics
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.plant import Plant, parameters_of

Values = dict[str, Any]  # by place
LawRule = Callable[..., Values]  # rule(m, <places>)
Frames = str | tuple[str, ...]


@cache
def rule_places(rule: LawRule) -> tuple[str, ...]:
    """The places a rule reads: the names of its parameters, or those it says itself."""
    return getattr(rule, "places", None) or tuple(signature(rule).parameters)[1:]


class LawQuery(NamedTuple):
    """What a law may ask of a system: its arguments, its result (flat), and how it is asked on arrays."""

    given: tuple[str, ...]
    result: str
    ask: Callable[..., Any]


def named(frame: Frames) -> tuple[str, ...]:
    """The names of frames: none, one or several."""
    return (frame,) if frame and isinstance(frame, str) else tuple(frame)


def holding(system: Any, frame: Frames, q: np.ndarray) -> np.ndarray:
    """g(q): of a robot, or of the motors of a closed chain."""
    if isinstance(system, System):
        return load_distribution.static_torques(system, q)
    rest = np.zeros(system.nv)
    return (
        system.gravity(q) if hasattr(system, "gravity") else system.inverse_dynamics(q, rest, rest)
    )


def driving(
    system: Any,
    frame: Frames,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    f_ext: np.ndarray | None = None,
) -> np.ndarray:
    """M a + C v + g, less what wrenches on the frames do; of a closed chain by the nearest a that keeps the constraints."""
    if isinstance(system, System):
        return load_distribution.nearest_inverse_dynamics(system, q, v, a)
    if not frame or f_ext is None:
        return system.inverse_dynamics(q, v, a)
    return system.inverse_dynamics(
        q, v, a, f_ext={name: f_ext[..., 6 * i : 6 * i + 6] for i, name in enumerate(named(frame))}
    )


def gripped(
    system: Any, frame: Frames, q: np.ndarray, v: np.ndarray, tau: np.ndarray, added: np.ndarray
) -> np.ndarray:
    """(M + X)^-1 (tau - C v - g)."""
    return Plant(system).acceleration(q, v, tau, added)


def _part(robot: Any, name: str, *given: np.ndarray) -> np.ndarray:
    """A quantity of the catalogue's own."""
    return robot.call_quantity(
        name, dict(zip(QUANTITIES[name].given, given, strict=True)), None, None, False
    )


QUANTITIES = {
    "gravity": LawQuery(("q",), "tau", holding),
    "inverse_dynamics": LawQuery(("q", "v", "a"), "tau", driving),
    "bias": LawQuery(("q", "v"), "tau", lambda s, frame, q, v: s.bias(q, v)),
    "mass_half_product": LawQuery(
        ("q", "x"), "y", lambda s, frame, *given: _part(s, "mass_half_product", *given)
    ),
    "mass_half_rate_solve": LawQuery(
        ("q", "v", "x", "y"), "a", lambda s, frame, *given: _part(s, "mass_half_rate_solve", *given)
    ),
    "added_inertia_dynamics": LawQuery(("q", "v", "tau", "added"), "a", gripped),
    "carrying": LawQuery(
        ("q", "v", "u", "w", "wanted", "weights"),
        "tau",
        lambda s, frame, *given: object_dynamics.object_torques(s, *given),
    ),
    "frame_pose": LawQuery(("q",), "T", lambda s, frame, q: s.frame_pose(q, frame)),
    "frame_velocity": LawQuery(
        ("q", "v"), "V", lambda s, frame, q, v: s.frame_velocity(q, v, frame)
    ),
    "frame_acceleration": LawQuery(
        ("q", "v", "a"), "A", lambda s, frame, q, v, a: s.frame_acceleration(q, v, a, frame)
    ),
    "operational_compliance": LawQuery(
        ("q",), "X", lambda s, frame, q: s.operational_compliance(q, frame)
    ),
}


@dataclass(frozen=True)
class Step:
    """One step of a law: a rule, or a quantity by its name in the catalogue, of a frame where it has one."""

    what: LawRule | str
    at: dict[str, str] = field(
        default_factory=dict
    )  # {argument or result of a quantity: place}, others keep their names
    frame: Frames = ""  # or several
    sizes: dict[str, int] = field(
        default_factory=dict
    )  # of a rule's places, where these are not the robot's coordinates
    only: str = (
        ""  # it is needed only where this place is not 0; elsewhere it leaves everything as it is
    )

    @property
    def name(self) -> str:
        return (
            self.what
            if isinstance(self.what, str)
            else getattr(self.what, "__name__", type(self.what).__name__)
        )

    @property
    def is_foreign(self) -> bool:
        """Whether it is a rule of somebody else's."""
        return not isinstance(self.what, str) and self.what.__module__.partition(".")[0] != "psiphi"

    def __call__(self, system: Any, values: Values) -> Values:
        """What it adds to the places, on arrays."""
        if self.only and not values[self.only].any():
            return {}
        if not isinstance(self.what, str):
            return self.what(
                manifold(system), **{name: values[name] for name in rule_places(self.what)}
            )
        given, result, ask = QUANTITIES[self.what]
        names = [self.at.get(name, name) for name in given] + ["f_ext"] * (
            self.what == "inverse_dynamics" and bool(self.frame)
        )
        answer = np.asarray(ask(system, self.frame, *(values[name] for name in names)))
        lead = max((values[name].ndim - 1 for name in names), default=0)
        return {
            self.at.get(result, result): answer.reshape(
                *answer.shape[:lead], math.prod(answer.shape[lead:])
            )
        }


@dataclass(frozen=True)
class Law:
    """What drives a system: steps, the last of which answers tau; none where tau itself is given."""

    steps: tuple[Step, ...] = ()
    followed: tuple[str, ...] = (
        "tau",
    )  # what may change in time, in the order of the controller's reference
    key: tuple = ()  # what its rules depend on, besides their names

    @property
    def reads_parameters(self) -> bool:
        """Whether a rule reads the parameters of the robot."""
        return any(
            PARAMETERS in rule_places(step.what)
            for step in self.steps
            if not isinstance(step.what, str)
        )

    def is_timed(self, step: Step) -> bool:
        """Whether a step reads what changes in time."""
        return not isinstance(step.what, str) and not set(rule_places(step.what)).isdisjoint(
            self.followed
        )


@with_late_methods
class Controller:
    """A callable (t, q, v) -> tau (..., nv) over any batch axes: a law, the numbers it keeps, and the reference it follows.
    Arrays of torch and JAX in, the same out, with derivatives (`simulation/compiled_rollout/law_function.py`)."""

    law: Law
    reference: Any = None  # of t: what `law.followed` names
    numbers: dict[str, np.ndarray] = {}  # noqa: RUF012

    def __init__(self, system: Any, actuated: Any = None, passive: Any = None):
        """`actuated` names the joints it drives, or `passive` those it does not; where neither is given, the free ones."""
        self.robot = Plant(system).system
        self.motors = _motors(self.robot, actuated, passive)

    @property
    def drives_all(self) -> bool:
        """Whether every coordinate has a motor."""
        return bool(self.motors.all())

    def _check_motors(self, instead: str) -> None:
        """Refuse a robot some of whose joints have none, where the law asks torques of all."""
        if not self.drives_all:
            cause = f"{type(self).__name__} of {self.robot.name}: the law asks torques of every joint, and some have no motor"
            raise StateError(cause, f"say passive=() where all have one, or {instead}")

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.torque(q, v, *(() if self.reference is None else self.reference(t)))

    if TYPE_CHECKING:  # implemented in a later package

        def _compiled_torque(self, values: dict[str, Any]) -> Any: ...

    def torque(self, q: np.ndarray, v: np.ndarray, *followed: np.ndarray) -> np.ndarray:
        """tau at a state, where the reference is as `followed` says."""
        own = (
            {PARAMETERS: parameters_of(robot_of(self.robot))[0]}
            if self.law.reads_parameters
            else {}
        )
        values = {
            "q": q,
            "v": v,
            **own,
            **self.numbers,
            **dict(zip(self.law.followed, followed, strict=False)),
        }
        if any(map(is_foreign, (*values.values(), *parameters_of(self.robot)))):
            return self._compiled_torque(values)
        values |= self._checked(q, v, followed)
        with np.errstate(all="ignore"):
            for step in self.law.steps:
                values |= step(self.robot, values)
        return values["tau"]

    def _checked(self, q: Any, v: Any, followed: tuple[Any, ...]) -> Values:
        """The state as arrays that fit together and to what is followed: rules would stretch one number over all joints."""
        state = {
            "q": _numbers(self, "q", q, self.robot.nq),
            "v": _numbers(self, "v", v, self.robot.nv),
        }
        known = state | dict(zip(self.law.followed, followed, strict=False))
        batch_axes(type(self).__name__, {name: np.shape(x)[:-1] for name, x in known.items()})
        return state


def _numbers(law: Controller, name: str, given: Any, size: int) -> np.ndarray:
    """q or v (..., size), of numbers; lazy ones, and tape expressions where a law is traced, as they are."""
    as_it_is = is_lazy(given) or (isinstance(given, np.ndarray) and given.dtype == object)
    array, fault = (
        (given, "") if as_it_is and given.shape[-1:] == (size,) else read_array(given, (size,))
    )
    if fault:
        raise StateError(
            f"{type(law).__name__}: {name} {fault}",
            f"give {size} numbers, with batch axes in front",
        )
    return array if as_it_is or array.dtype.kind == "f" else array.astype(float)


def is_lawful(tau: Any) -> bool:
    """Whether a torque is a controller that answers by its law, not by Python of its own."""
    return isinstance(tau, Controller) and all(
        getattr(type(tau), x) is getattr(Controller, x) for x in ("__call__", "torque")
    )


def _motors(system: Any, actuated: Any, passive: Any) -> np.ndarray:
    """(nv,): 1 where there is a motor, else 0."""
    if isinstance(system, Model):
        mask = np.ones(system.nv)
        mask[
            motors.velocity_indices(system, motors.unactuated_joints(system, actuated, passive))
        ] = 0.0
        return mask
    if actuated is not None or passive is not None:
        cause = f"the motors of {shown(system)} are its own"
        raise StateError(cause, "pp.connect and pp.grasp take actuated= and passive=")
    mask = np.zeros(system.nv)
    mask[np.asarray(getattr(system, "actuated", np.arange(system.nv)))] = 1.0
    return mask


def manifold(system: Any) -> Any:
    """Where a system's configurations move."""
    return robot_of(system).manifold
