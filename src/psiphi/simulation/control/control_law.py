"""Control laws as data: a law is a sequence of steps that read and write named values ("places").

    Step(rule)                     rule(m, <places>) -> {place: value}, m the configuration manifold
    Step("inverse_dynamics", ...)  a quantity of the system; its arguments and its result are places

`Controller` runs the steps on arrays. Kernels trace the same rules and use the code of the same
quantities (`simulation/compiled_rollout/rollout_program.py`). For a closed chain, gravity and
inverse dynamics are the torques that its motors must apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from psiphi._util.array_types import AnyArray
from psiphi._util.errors import SingularError, StateError
from psiphi._util.late_methods import with_late_methods
from psiphi._util.text import shown
from psiphi._util.validate import batch_axes, is_foreign, is_lazy, read_array, robot_of
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.model import motors
from psiphi.model.manifold import Manifold
from psiphi.model.model import Model
from psiphi.robot.mechanisms.dynamics import load_distribution, object_dynamics
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.plant import Plant, SimulatedSystem, parameters_of

Values = dict[str, Any]  # by place
LawRule = Callable[..., Values]  # rule(m, <places>)
OTHERS = "others_"  # begins the places of a law that is part of another (`prescribed_motion.py`)
Frames = str | tuple[str, ...]
JointNames: TypeAlias = str | Iterable[str] | None


@cache
def rule_places(rule: LawRule) -> tuple[str, ...]:
    """The places that a rule reads: its attribute `places`, or the names of its parameters."""
    return getattr(rule, "places", None) or tuple(signature(rule).parameters)[1:]


class LawQuery(NamedTuple):
    """A quantity that laws may use: its arguments, its result (flat), and its value on arrays."""

    arguments: tuple[str, ...]
    result: str | tuple[str, ...]
    evaluate: Callable[..., Any]  # (system, frame, *arguments)

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the results."""
        return (self.result,) if isinstance(self.result, str) else self.result


def frame_names(frame: Frames) -> tuple[str, ...]:
    """The names of no, one or several frames."""
    return (frame,) if frame and isinstance(frame, str) else tuple(frame)


def gravity_torque(system: Robot | System, frame: Frames, q: np.ndarray) -> np.ndarray:
    """g(q) of a robot; of a closed chain, the motor torques that hold it at rest."""
    if isinstance(system, System):
        return load_distribution.static_torques(system, q)
    rest = np.zeros(system.nv)
    return (
        system.gravity(q) if hasattr(system, "gravity") else system.inverse_dynamics(q, rest, rest)
    )


def inverse_dynamics(
    system: Robot | System,
    frame: Frames,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    f_ext: np.ndarray | None = None,
) -> np.ndarray:
    """M a + C v + g - J* f_ext. A closed chain uses the acceleration nearest to a that satisfies
    its constraints."""
    if isinstance(system, System):
        return load_distribution.nearest_inverse_dynamics(system, q, v, a)
    if not frame or f_ext is None:
        return system.inverse_dynamics(q, v, a)
    names = enumerate(frame_names(frame))
    wrenches = {name: f_ext[..., 6 * i : 6 * i + 6] for i, name in names}
    return system.inverse_dynamics(q, v, a, f_ext=wrenches)


def added_inertia_dynamics(
    system: SimulatedSystem,
    frame: Frames,
    q: np.ndarray,
    v: np.ndarray,
    tau: np.ndarray,
    added: np.ndarray,
) -> np.ndarray:
    """(M + X)^-1 (tau - C v - g), X diagonal."""
    return Plant(system).acceleration(q, v, tau, added)


def _catalogue_quantity(robot: Robot, name: str, *arguments: np.ndarray) -> np.ndarray:
    """An internal quantity of the catalogue."""
    state = dict(zip(QUANTITIES[name].arguments, arguments, strict=True))
    return robot.call_quantity(name, state, None, None, False)


QUANTITIES = {
    "gravity": LawQuery(("q",), "tau", gravity_torque),
    "inverse_dynamics": LawQuery(("q", "v", "a"), "tau", inverse_dynamics),
    "free_gravity": LawQuery(("q",), "tau", lambda s, frame, q: robot_of(s).gravity(q)),
    "free_forward_dynamics": LawQuery(
        ("q", "v", "tau"),
        "a",
        lambda s, frame, q, v, tau: robot_of(s).forward_dynamics(q, v, tau),
    ),
    "shared_inverse_dynamics": LawQuery(
        ("q", "v", "a", "share"),
        "tau",
        lambda s, frame, q, v, a, share: load_distribution.nearest_inverse_dynamics(
            s, q, v, a, share
        ),
    ),
    "constraint_rates": LawQuery(
        ("q", "dq"), ("Jc", "dJc"), lambda s, frame, q, dq: s.constraint_rates(q, dq)
    ),
    "bias": LawQuery(("q", "v"), "tau", lambda s, frame, q, v: s.bias(q, v)),
    "mass_matrix": LawQuery(("q",), "M", lambda s, frame, q: robot_of(s).mass_matrix(q)),
    "coriolis": LawQuery(("q", "v"), "C", lambda s, frame, q, v: robot_of(s).coriolis(q, v)),
    "mass_product": LawQuery(
        ("q", "a"), "tau", lambda s, frame, q, a: robot_of(s).mass_product(q, a)
    ),
    "coriolis_product": LawQuery(
        ("q", "v", "x"), "y", lambda s, frame, q, v, x: robot_of(s).coriolis_product(q, v, x)
    ),
    "mass_half_product": LawQuery(
        ("q", "x"),
        "y",
        lambda s, frame, *arguments: _catalogue_quantity(s, "mass_half_product", *arguments),
    ),
    "mass_half_rate_solve": LawQuery(
        ("q", "v", "x", "y"),
        "a",
        lambda s, frame, *arguments: _catalogue_quantity(s, "mass_half_rate_solve", *arguments),
    ),
    "added_inertia_dynamics": LawQuery(("q", "v", "tau", "added"), "a", added_inertia_dynamics),
    "object_torque": LawQuery(
        ("q", "v", "u", "w", "wanted", "weights"),
        "tau",
        lambda s, frame, *arguments: object_dynamics.object_torques(s, *arguments),
    ),
    "frame_pose": LawQuery(("q",), "T", lambda s, frame, q: s.frame_pose(q, frame)),
    "frame_velocity": LawQuery(
        ("q", "v"), "V", lambda s, frame, q, v: robot_of(s).frame_velocity(q, v, frame)
    ),
    "frame_acceleration": LawQuery(
        ("q", "v", "a"),
        "A",
        lambda s, frame, q, v, a: robot_of(s).frame_acceleration(q, v, a, frame),
    ),
    "jacobian": LawQuery(("q",), "J", lambda s, frame, q: robot_of(s).jacobian(q, frame)),
    "frame_imu": LawQuery(
        ("q", "v", "a"), "y", lambda s, frame, q, v, a: s.frame_imu(q, v, a, frame)
    ),
    "joint_torques": LawQuery(
        ("q", "v", "a"), "tau", lambda s, frame, q, v, a: s.joint_torques(q, v, a)
    ),
    "operational_compliance": LawQuery(
        ("q",), "X", lambda s, frame, q: s.operational_compliance(q, frame)
    ),
}


@dataclass(frozen=True)
class Step:
    """One step of a law: a rule, or the name of a quantity, of one or several frames if it has any.

    `places` maps arguments and results of a quantity to places; those not listed are stored under
    their own names. `sizes` are the sizes of a rule's places, unless these are coordinates of the
    robot. The step is skipped, and changes nothing, where the place `condition` is 0.
    """

    operation: LawRule | str
    places: dict[str, str] = field(default_factory=dict)
    frame: Frames = ""
    sizes: dict[str, int] = field(default_factory=dict)
    condition: str = ""

    @property
    def name(self) -> str:
        """The name of the quantity or of the rule."""
        if isinstance(self.operation, str):
            return self.operation
        return getattr(self.operation, "__name__", type(self.operation).__name__)

    @property
    def is_foreign(self) -> bool:
        """Whether the step is a rule that is not part of psiphi."""
        if isinstance(self.operation, str):
            return False
        module = getattr(self.operation, "rule_module", self.operation.__module__)
        return module.partition(".")[0] != "psiphi"

    def __call__(self, system: Robot | System, values: Values) -> Values:
        """The places that the step writes, on arrays."""
        if self.condition and not values[self.condition].any():
            return {}
        if not isinstance(self.operation, str):
            places = {name: values[name] for name in rule_places(self.operation)}
            return self.operation(manifold_of(system), **places)
        query = QUANTITIES[self.operation]
        arguments, _, evaluate = query
        names = [self.places.get(name, name) for name in arguments]
        if self.operation == "inverse_dynamics" and self.frame:
            names.append("f_ext")
        found = evaluate(system, self.frame, *(values[name] for name in names))
        lead = max((values[name].ndim - 1 for name in names), default=0)
        values_of = (found,) if isinstance(query.result, str) else found
        out = {}
        for name, value in zip(query.results, values_of, strict=True):
            array = np.asarray(value)
            flat = array.reshape(*array.shape[:lead], math.prod(array.shape[lead:]))
            out[self.places.get(name, name)] = flat
        return out


@dataclass(frozen=True)
class Law:
    """The steps of a law; the last one writes tau. Without steps, the reference is tau itself."""

    steps: tuple[Step, ...] = ()
    reference_places: tuple[str, ...] = ("tau",)  # the arrays that the reference returns, in order
    key: tuple = ()  # what the rules depend on, besides their names

    @property
    def reads_parameters(self) -> bool:
        """Whether a rule reads the parameters of the robot."""
        return any(
            PARAMETERS in rule_places(step.operation)
            for step in self.steps
            if not isinstance(step.operation, str)
        )

    def is_timed(self, step: Step) -> bool:
        """Whether a step reads the reference, which may change with time."""
        if isinstance(step.operation, str):
            return False
        return not set(rule_places(step.operation)).isdisjoint(self.reference_places)


@with_late_methods
class Controller:
    """A callable (t, q, v) -> tau (..., nv) over any batch axes: a law, its numbers, its reference.

    Arrays of torch and JAX are accepted; the result is then of the same library, with derivatives
    (`simulation/compiled_rollout/law_function.py`).
    """

    law: Law
    reference: Any = None  # t -> the arrays that `law.reference_places` names; None: no reference
    numbers: dict[str, np.ndarray] = {}  # noqa: RUF012

    def __init__(
        self,
        system: SimulatedSystem | Model,
        actuated: JointNames = None,
        passive: JointNames = None,
    ):
        """`actuated` names the joints with motors, or `passive` those without. If neither is given,
        free joints and joints built with `motor=False` have none."""
        self.robot = Plant(system).system
        self.motors = _motor_mask(self.robot, actuated, passive)

    def __repr__(self) -> str:
        name = getattr(self.robot, "name", type(self.robot).__name__)
        numbers = f": {', '.join(self.numbers)}" if self.numbers else ""
        return f"<{type(self).__name__} of {name!r}{numbers}>"

    @property
    def drives_all(self) -> bool:
        """Whether every coordinate has a motor."""
        return bool(self.motors.all())

    def check_motors(self, remedy: str) -> None:
        """(Internal use only) Raise an error unless every coordinate has a motor."""
        if not self.drives_all:
            raise StateError(
                f"{type(self).__name__} of {self.robot.name}: the law needs a motor at every "
                "joint, and some have no motor",
                f"give passive=() if all joints have motors, or {remedy}",
            )

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.torque(q, v, *(() if self.reference is None else self.reference(t)))

    if TYPE_CHECKING:  # implemented in a later package

        def _compiled_torque(self, values: Mapping[str, AnyArray]) -> Any: ...

    def torque(self, q: np.ndarray, v: np.ndarray, *reference: np.ndarray) -> np.ndarray:
        """tau at a state, for these values of the reference."""
        reads_parameters = self.law.reads_parameters
        parameters = (
            {PARAMETERS: parameters_of(robot_of(self.robot))[0]} if reads_parameters else {}
        )
        values = {
            "q": q,
            "v": v,
            **parameters,
            **self.numbers,
            **dict(zip(self.law.reference_places, reference, strict=False)),
        }
        if any(map(is_foreign, (*values.values(), *parameters_of(self.robot)))):
            return self._compiled_torque(values)
        values |= self._checked_state(q, v, reference)
        with np.errstate(all="ignore"):
            for step in self.law.steps:
                values |= step(self.robot, values)
        _check_solved(values)
        # in a law that is being traced, tau is an array of the same class as the state
        is_traced = isinstance(q, np.ndarray) and q.dtype == object
        return values["tau"].view(type(q)) if is_traced else values["tau"]

    def _checked_state(self, q: AnyArray, v: AnyArray, reference: tuple[AnyArray, ...]) -> Values:
        """The state as arrays whose batch axes fit each other and the reference. Without this
        check, rules would broadcast one number over all joints."""
        state = {
            "q": self._read_coordinates("q", q, self.robot.nq),
            "v": self._read_coordinates("v", v, self.robot.nv),
        }
        known = state | dict(zip(self.law.reference_places, reference, strict=False))
        batch_axes(type(self).__name__, {name: np.shape(x)[:-1] for name, x in known.items()})
        return state

    def _read_coordinates(self, name: str, value: AnyArray, size: int) -> AnyArray:
        """q or v (..., size) as floats; lazy arrays and tape expressions are returned unchanged."""
        keeps_type = is_lazy(value) or (isinstance(value, np.ndarray) and value.dtype == object)
        if keeps_type and value.shape[-1:] == (size,):
            return value.view(np.ndarray) if isinstance(value, np.ndarray) else value
        array, fault = read_array(value, (size,))
        if fault:
            raise StateError(
                f"{type(self).__name__}: {name} {fault}",
                f"give {size} numbers, with batch axes in front",
            )
        return array if array.dtype.kind == "f" else array.astype(float)


def _check_solved(values: Values) -> None:
    """Raise an error if a solve of the law is ill-conditioned at a single state."""
    ill_conditioning = values.get("ill_conditioning")
    if ill_conditioning is None or ill_conditioning.shape != (1,):
        return
    if ill_conditioning.dtype.kind == "f" and not np.isfinite(values["tau"]).all():
        raise SingularError(
            "the law has no torques at this state: the closed chain is singular there, or cannot "
            "move as desired",
            "choose another posture, other independent joints, or another target",
        )


def is_law_controller(tau: object) -> bool:
    """Whether a torque is a controller that its law defines: no subclass overrides the call."""
    return isinstance(tau, Controller) and all(
        getattr(type(tau), x) is getattr(Controller, x) for x in ("__call__", "torque")
    )


def _motor_mask(system: Any, actuated: JointNames, passive: JointNames) -> np.ndarray:
    """(nv,): 1 where there is a motor, else 0."""
    if isinstance(system, Model):
        unactuated = motors.unactuated_joints(system, actuated, passive)
        mask = np.ones(system.nv)
        mask[motors.velocity_indices(system, unactuated)] = 0.0
        return mask
    if actuated is not None or passive is not None:
        cause = f"actuated or passive is given, but the motors of {shown(system)} are fixed"
        raise StateError(cause, "give actuated= or passive= to pp.connect or pp.grasp")
    mask = np.zeros(system.nv)
    mask[np.asarray(getattr(system, "actuated", np.arange(system.nv)))] = 1.0
    return mask


def manifold_of(system: object) -> Manifold:
    """The configuration manifold of a system."""
    return robot_of(system).manifold
