"""Prescribed motion: some joints follow q(t), v(t), a(t), and the forces that this takes come out.

    u = a_ref + kd (v_ref - v) + kp (q_ref - q) at the joints that follow
    tau = M a + C v + g there, with a = u; at the others tau is given, and a follows from it

This is `robot.hybrid_dynamics` as a law: it runs in compiled motions, on GPUs and in studies, and
has derivatives. kp and kd remove the errors of the integrator only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import check_robot, finite_array, nonnegative_number
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.model.manifold import Manifold
from psiphi.model.motors import velocity_indices
from psiphi.model.state_checks import check_unit_quaternions
from psiphi.robot.parts.hybrid_dynamics import RIGID_INERTIA
from psiphi.robot.robot import Robot
from psiphi.simulation.control.control_law import (
    OTHERS,
    QUANTITIES,
    Controller,
    Law,
    LawRule,
    Step,
    Values,
    is_law_controller,
    rule_places,
)
from psiphi.simulation.control.joint_controllers import value_at
from psiphi.simulation.control.law_trace import as_law
from psiphi.simulation.control.marked_law import unwrap_law

JointMotion: TypeAlias = Numbers | tuple[Numbers, ...] | Callable[[float], Any]
REMEDY = "give q, (q, v) or (q, v, a) of the joint, or a function of t that returns them"


class PrescribedMotion(Controller):
    """tau such that joints follow given motions; `tau` drives the others.

    `motions` maps joints to constants or functions of time that return q, (q, v) or (q, v, a) of
    the joint, one number or its coordinates; v and a that are not given are zero. `tau` is an array
    (nv,), a controller or a function `pp.law` for the other joints; its entries at joints that
    follow are ignored. The motion's `tau` there is the force that the motion takes: of a free base,
    the wrench that carries it. Errors fade as those of e'' + kd e' + kp e = 0.

    >>> import numpy as np, psiphi as pp
    >>> robot = pp.load("ur5", base="free")
    >>> base = robot.joint_names[0]
    >>> q0 = robot.random(seed=0)
    >>> q0[:7] = [0, 0, 1, 0, 0, 0, 1]
    >>> def heave(t):  # the deck of a ship; v and a in axes of the base
    ...     up = lambda x: np.array([0, 0, 0, 0, 0, x])
    ...     place = [0, 0, 1 + 0.1 * np.sin(t), 0, 0, 0, 1]
    ...     return place, up(0.1 * np.cos(t)), up(-0.1 * np.sin(t))
    >>> deck = pp.PrescribedMotion(robot, {base: heave})
    >>> motion = pp.simulate(robot, q0, heave(0)[1].tolist() + [0] * 6, deck, duration=0.5)
    >>> bool(abs(motion.final.q[2] - 1 - 0.1 * np.sin(0.5)) < 1e-9), motion.tau[0, :6].shape
    (True, (6,))
    """

    def __init__(
        self,
        robot: Robot,
        motions: Mapping[str, JointMotion],
        tau: Numbers | Callable[..., Any] | None = None,
        kp: float = 100.0,
        kd: float = 20.0,
    ):
        super().__init__(check_robot("PrescribedMotion", robot, Robot), passive=())
        if not isinstance(motions, Mapping) or not motions:
            raise StateError(
                f"motions is {shown(motions)}, expected motions by joint",
                'give {"base": function_of_t}',
            )
        held = np.zeros(robot.nv)
        reference = JointMotions(robot, motions)
        held[velocity_indices(robot, reference.names)] = 1.0
        numbers = {
            "held": held,
            "free": 1.0 - held,
            "kp": np.full(robot.nv, nonnegative_number("kp", kp)),
            "kd": np.full(robot.nv, nonnegative_number("kd", kd)),
        }
        others = _other_torque(robot, tau)
        places = {"a": "u", "tau": "driving", "added": "rigid"}
        steps = (
            *others.steps,
            Step(follow),
            Step("added_inertia_dynamics", places),
            Step("inverse_dynamics", {"a": "u", "tau": "needed"}),
            Step(held_torque),
        )
        self.law = Law(steps, ("q_ref", "v_ref", "a_ref", *others.places), others.key)
        self.numbers = {**numbers, **others.numbers}
        self.reference = JoinedReference(reference, others.reference)


def follow(m: Manifold, q, v, kp, kd, held, free, others, q_ref, v_ref, a_ref) -> Values:
    """Held joints as joints with rigid rotors, for `added_inertia_dynamics`."""
    u = kp * m.log(q, q_ref) + kd * (v_ref - v) + a_ref
    rigid = RIGID_INERTIA * held
    return {"rigid": rigid, "driving": rigid * u + free * others}


def held_torque(m: Manifold, held, free, needed, others) -> Values:
    return {"tau": held * needed + free * others}


class JointMotions:
    """The motions of some joints: t -> (q_ref, v_ref, a_ref) of the robot, zero elsewhere."""

    def __init__(self, robot: Robot, motions: Mapping[str, JointMotion]):
        self.robot = robot
        self.joints = [(robot.joint(name), source) for name, source in motions.items()]
        self.names = [joint.name for joint, _ in self.joints]
        self.neutral = robot.neutral()
        if robot.embedding is not None and robot.embedding.has_loops:
            raise StateError(
                f"PrescribedMotion: {robot.name} has embedded loops",
                "use pp.ComputedTorque, which follows all coordinates",
            )
        for joint, source in self.joints:
            if not joint.row.nv:
                raise StateError(f"joint {joint.name!r} does not move", "leave it out")
            if callable(source):
                self._read(joint, value_at(f"motion of {joint.name}", source))
        self.constant = None if any(callable(x) for _, x in self.joints) else self._at(0.0)

    def __call__(self, t: float) -> tuple[np.ndarray, ...]:
        return self._at(t) if self.constant is None else self.constant

    def _at(self, t: float) -> tuple[np.ndarray, ...]:
        parts = [self._read(joint, x(t) if callable(x) else x) for joint, x in self.joints]
        lead = np.broadcast_shapes(*(x.shape[:-1] for part in parts for x in part))
        sizes = (self.robot.nq, self.robot.nv, self.robot.nv)
        out = tuple(np.zeros((*lead, size)) for size in sizes)
        out[0][...] = self.neutral
        for (joint, _), part in zip(self.joints, parts, strict=True):
            for array, x, rows in zip(
                out, part, (joint.q_slice, joint.v_slice, joint.v_slice), strict=True
            ):
                array[..., rows] = x
        check_unit_quaternions(self.robot, "prescribed q", out[0])
        return out

    @staticmethod
    def _read(joint: Any, value: object) -> tuple[np.ndarray, ...]:
        parts = value if isinstance(value, tuple) else (value,)
        sizes, name = (joint.row.nq, joint.row.nv, joint.row.nv), f"the motion of {joint.name}"
        if not 1 <= len(parts) <= 3:
            raise StateError(f"{name} gave {len(parts)} arrays, expected one to three", REMEDY)
        arrays = []
        for size, x in zip(sizes, parts, strict=False):
            one = size == 1 and np.ndim(x) == 0  # type: ignore[arg-type]
            shape = () if one else (size,)
            array = finite_array(name, x, shape, REMEDY)
            arrays.append(array[..., None] if one else array)
        return (*arrays, *(np.zeros(joint.row.nv) for _ in range(3 - len(arrays))))


@dataclass(frozen=True)
class OtherTorque:
    """The law of the joints that do not follow: its steps write the place `others`."""

    steps: tuple[Step, ...]
    numbers: dict[str, np.ndarray]
    places: tuple[str, ...] = ()
    reference: Any = None
    key: tuple = ()


def _other_torque(robot: Robot, tau: Any) -> OtherTorque:
    """The torque of the other joints: an array, or a law whose places get a prefix."""
    if not callable(tau):
        value = np.zeros(robot.nv) if tau is None else tau
        row = finite_array("tau", value, (robot.nv,), f"give {robot.nv} numbers, or a controller")
        return OtherTorque((), {"others": row})
    law = as_law(robot, unwrap_law(tau))
    if not is_law_controller(law):
        raise StateError(
            f"tau is {shown(tau)}, which is not a law", "give an array, a controller or a pp.law"
        )
    if law.robot is not robot:
        raise StateError("the controller tau is made for another robot", "make it for this one")
    places = tuple(map(_renamed, law.law.reference_places))
    steps = tuple(map(_renamed_step, law.law.steps))
    if not steps:  # the reference is the torque itself
        raise StateError("the controller tau has no steps", "give its torque as an array")
    numbers = {_renamed(name): value for name, value in law.numbers.items()}
    return OtherTorque(steps, numbers, places, law.reference, law.law.key)


KEPT = ("q", "v", PARAMETERS)  # places that have one meaning in all laws


def _renamed(place: str) -> str:
    """The name of a place of the other law."""
    return place if place in KEPT else "others" if place == "tau" else f"{OTHERS}{place}"


def _renamed_step(step: Step) -> Step:
    """A step of the other law, on renamed places."""
    condition = _renamed(step.condition) if step.condition else ""
    if not isinstance(step.operation, str):
        sizes = {_renamed(name): size for name, size in step.sizes.items()}
        return replace(
            step, operation=RenamedRule(step.operation), sizes=sizes, condition=condition
        )
    query = QUANTITIES[step.operation]
    every = (*query.arguments, *query.results, *step.places, *(("f_ext",) if step.frame else ()))
    places = {name: _renamed(step.places.get(name, name)) for name in dict.fromkeys(every)}
    return replace(step, places=places, condition=condition)


@dataclass(frozen=True)
class RenamedRule:
    """A rule that reads and writes renamed places."""

    rule: LawRule

    @property
    def __name__(self) -> str:
        return f"{OTHERS}{getattr(self.rule, '__name__', type(self.rule).__name__)}"

    @property
    def rule_module(self) -> str:
        return getattr(self.rule, "rule_module", self.rule.__module__)

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(map(_renamed, rule_places(self.rule)))

    def __call__(self, m: Manifold, **values: Any) -> Values:
        own = {name: values[_renamed(name)] for name in rule_places(self.rule)}
        return {_renamed(name): x for name, x in self.rule(m, **own).items()}


class JoinedReference:
    """The reference of the joints that follow, and that of the other law."""

    def __init__(self, first: JointMotions, second: Any):
        self.first, self.second = first, second
        known = getattr(second, "constant", None) if second is not None else ()
        joined = first.constant is not None and known is not None
        self.constant = (*first.constant, *known) if joined else None  # type: ignore[misc]

    def __call__(self, t: float) -> tuple[np.ndarray, ...]:
        second = () if self.second is None else self.second(t)
        return (*self.first(t), *second)
