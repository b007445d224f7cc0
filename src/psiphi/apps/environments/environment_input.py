"""The arguments of `pp.environment`, read and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import (
    finite_array,
    is_list,
    positive_count,
    positive_number,
    read_array,
    real_array,
    robot_of,
)
from psiphi.apps.environments.randomization import Randomization, check_damping, read_randomization
from psiphi.apps.environments.state_resets import Resets, read_resets, sampled
from psiphi.apps.environments.step_events import Events, read_events, step_count
from psiphi.apps.environments.terms.term_state import TermSetup, TermState
from psiphi.apps.environments.terms.term_trace import TermTrace, term_name
from psiphi.apps.environments.terms.term_words import OBSERVATIONS, REWARDS, TERMINATIONS
from psiphi.apps.studies.distributions import Distribution, as_distribution
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.model.contact.ground import Ground, check_ground
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.contact_step import choose_method
from psiphi.simulation.compiled_rollout.rollout_program import (
    RolloutOptions,
    RolloutProgram,
)
from psiphi.simulation.control.control_law import Controller, is_law_controller
from psiphi.simulation.control.joint_controllers import read_posture
from psiphi.simulation.forces.joint_limit_impact import JointStops
from psiphi.simulation.plant import Plant, parameters_of
from psiphi.simulation.rollout.rollout import RolloutArguments

NamedTerm = str | Callable[[TermState], Any]
POLICY = "policy"  # the group of observations that a policy gets
OPTIONS = ("scale", "noise")  # of an observation
MAX_DECIMATION = 100_000
IMPLICIT_LOSSES = "implicit_losses"  # the place of their mask


@dataclass(frozen=True, eq=False)
class ObservationTerm:
    """scale * (term + noise), with a sample of `noise` for each entry."""

    name: str
    term: Callable[[TermState], Any]
    scale: np.ndarray = field(default_factory=lambda: np.ones(1))
    noise: Distribution | None = None

    def values(self, trace: TermTrace) -> list[Any]:
        """The entries, on the tape of a trace."""
        what = f"the observation {self.name!r}"
        found = trace.value(what, self.term)
        if self.noise is not None:
            found = [x + sampled(self.noise, trace.state) for x in found]
        if len(self.scale) not in (1, len(found)):
            cause = f"the scale of {what} has {len(self.scale)} numbers, the term {len(found)}"
            raise StateError(cause, "give one number, or one for each entry")
        scale = np.broadcast_to(self.scale, len(found))
        return [x * float(y) for x, y in zip(found, scale, strict=True)]


@dataclass(frozen=True, eq=False)
class EnvironmentInput:
    """The checked arguments: what a control step computes."""

    setup: TermSetup
    program: RolloutProgram
    constants: Mapping[str, np.ndarray]  # by place
    decimation: int
    action_limit: np.ndarray
    posture: np.ndarray  # that actions move, if they are targets
    is_torque: bool
    groups: Mapping[str, tuple[ObservationTerm, ...]]
    rewards: Mapping[str, tuple[float, Callable[[TermState], Any]]]
    terminations: Mapping[str, Callable[[TermState], Any]]
    resets: Resets
    most_steps: int  # of an episode; 0 for no limit
    randomization: Randomization
    events: Events

    @property
    def robot(self) -> Robot:
        return self.setup.robot

    @property
    def options(self) -> RolloutOptions:
        return self.program.options

    @property
    def action_size(self) -> int:
        return len(self.setup.motors)


def read_input(
    robot: Robot,
    ground: Ground | None,
    actuation: Controller | None,
    action_scale: Numbers | None,
    action_limit: Numbers,
    dt: float,
    decimation: int,
    observations: object,
    rewards: object,
    terminations: object,
    resets: object,
    commands: object,
    randomize: object,
    events: Mapping[str, Any],
    q0: Numbers | None,
    v0: Numbers | None,
    episode_length: float | None,
    simulation: Mapping[str, Any],
) -> EnvironmentInput:
    """The arguments of `pp.environment`; `simulation` are those of `pp.rollout`."""
    plant = Plant(robot)
    if not plant.is_robot:
        raise StateError(
            f"environment: {plant.name} is {shown(plant.system)}, expected a robot",
            "use pp.embed for mechanisms with loops",
        )
    if ground is not None:
        check_ground("environment: ground", ground)
    posture = _posture(plant, actuation, q0)
    randomization, actuation = read_randomization(
        plant.robot, actuation, ground, randomize, simulation["damping"]
    )
    plant = Plant(randomization.robot)
    h = positive_number("dt", dt, "give seconds, such as 0.005")
    count = positive_count("decimation", decimation, MAX_DECIMATION)
    if not np.isfinite(h * count):
        raise StateError(f"dt is {h:g}, and {count} steps are not finite", "give a smaller dt")
    method = choose_method(simulation["method"], ground, "environment")
    arguments = RolloutArguments(
        **{"dt": h, "steps": 1, **simulation, "method": method, "contacts": ground}
    )
    plant.set_motors(arguments.actuated, arguments.passive)
    law = arguments.rollout_input(plant, actuation, (), 1, h, None)
    stops = JointStops(plant) if arguments.has_stops else None
    options = law.options(plant, method, False, stops)
    check_damping(randomization, options.losses, method)
    motors = np.setdiff1d(np.arange(plant.nv), plant.unactuated_indices)
    if actuation is not None:
        motors = np.flatnonzero(actuation.motors)
    if not len(motors):
        raise StateError(
            f"environment: {plant.name} has no motors", 'name some: actuated=["joint", ...]'
        )
    named = _commands(commands)
    setup = TermSetup(
        plant.robot,
        options.contacts,
        posture if q0 is None else read_posture(plant.robot, q0),
        np.zeros(plant.nv)
        if v0 is None
        else finite_array("v0", v0, (plant.nv,), "give nv numbers"),
        h,
        h * count,
        motors,
        tuple(named),
        _scale(plant.robot, actuation, motors, action_scale),
    )
    constants = {**law.constants(), "h": np.array([h])}
    constants |= dict(zip((PARAMETERS,), parameters_of(plant.robot), strict=False))
    _check_one_set(constants)
    if IMPLICIT_LOSSES in constants:
        mask = randomization.implicit_losses(constants[IMPLICIT_LOSSES])
        constants[IMPLICIT_LOSSES] = mask
    return EnvironmentInput(
        setup,
        RolloutProgram(plant.system, options),
        constants,
        count,
        _per_motor("action_limit", action_limit, len(motors)),
        posture,
        actuation is None,
        _observations(observations),
        _rewards(rewards),
        _terminations(terminations),
        read_resets(plant.robot, resets, named, randomization),
        _most_steps(episode_length, h * count),
        randomization,
        read_events(plant.robot, named, dt=h, decimation=count, **events),
    )


def _posture(plant: Plant, actuation: Controller | None, q0: Numbers | None) -> np.ndarray:
    """The posture that actions move: the reference of the controller."""
    if actuation is None:
        return read_posture(plant.robot, q0)
    if not is_law_controller(actuation):
        raise StateError(
            f"actuation is {shown(actuation)}, expected a controller or None",
            "give pp.PD(robot, posture, kp=..., kd=...); None: actions are torques",
        )
    if robot_of(actuation.robot) != plant.robot:
        raise StateError("actuation is a controller of another robot", "make it for this one")
    constant = getattr(actuation.reference, "constant", None)
    if "q_ref" not in actuation.law.reference_places or constant is None:
        raise StateError(
            f"actuation is {type(actuation).__name__}, without a constant posture q_ref",
            "give pp.PD(robot, posture, ...), whose posture the actions move",
        )
    _check_one_set({"q_ref": constant[0]})
    return constant[0].reshape(-1)


def _scale(
    robot: Robot, actuation: Controller | None, motors: np.ndarray, value: Numbers | None
) -> np.ndarray:
    """What an action of 1 stands for: by default the effort limit, or one radian or metre."""
    if value is not None:
        return _per_motor("action_scale", value, len(motors))
    if actuation is not None:
        return np.ones(len(motors))
    limits = np.asarray(robot.effort)[motors]
    return np.where(np.isfinite(limits) & (limits > 0.0), limits, 1.0)


def _per_motor(name: str, value: Numbers, count: int) -> np.ndarray:
    array, fault = read_array(value, None)
    if fault or array.shape not in ((), (1,), (count,)):
        cause = f"{name} is {shown(value)}, expected one number or {count}, one for each motor"
        raise StateError(cause, "robot.actuated has the motors" if not fault else "give numbers")
    if isinstance(value, bool) or not (np.isfinite(array) & (array > 0.0)).all():
        raise StateError(f"{name} is {shown(value)}, expected positive numbers", "give others")
    return np.array(np.broadcast_to(array.astype(float), count))


def _check_one_set(constants: Mapping[str, np.ndarray]) -> None:
    """Refuse numbers with batch axes: an environment is the same alone as in any batch, which
    numbers by the place in a batch would change."""
    for name, x in constants.items():
        if x.ndim > 1 and x.size > x.shape[-1]:
            raise StateError(
                f"environment: the batch axes of {name.rpartition('.')[2]} are {x.shape[:-1]}, "
                "expected one set of numbers for all environments",
                "randomize= varies masses, gains and friction by episode; for several terrains "
                "make an environment for each",
            )


def _most_steps(length: float | None, step_time: float) -> int:
    if length is None:
        return 0
    seconds = positive_number("episode_length", length, "give seconds, or None for no limit")
    return max(1, step_count("episode_length", seconds, step_time))


def _commands(value: object) -> dict[str, Distribution]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not value:
        cause = f"commands is {shown(value)}, expected a dict"
        raise StateError(cause, 'commands={"vx": (-1.0, 1.0), "vy": 0.0, "turn": (-1.0, 1.0)}')
    return {str(name): as_distribution(f"the command {name!r}", x) for name, x in value.items()}


def _term(what: str, term: object, words: Mapping[str, Callable]) -> Callable[[TermState], Any]:
    """The function of a term: a word, or the function itself."""
    if isinstance(term, str):
        if term not in words:
            raise StateError(f"{what} {term!r} is unknown", nearest(term, words))
        return words[term]
    if not callable(term):
        raise StateError(
            f"{what} is {shown(term)}, expected a word or a function of the state",
            f"the words are {', '.join(words)}",
        )
    return term


def _observations(value: object) -> dict[str, tuple[ObservationTerm, ...]]:
    """Groups of terms; a list is the group "policy"."""
    groups = value if isinstance(value, Mapping) else {POLICY: value}
    if not groups:
        raise StateError("observations is empty", 'observations=["q", "v"]')
    found = {}
    for name, terms in groups.items():
        if not isinstance(name, str) or isinstance(terms, str) or not is_list(terms):
            raise StateError(
                f"observations of {shown(name)} is {shown(terms)}, expected a list of terms",
                'observations=["q", "v"], or {"policy": ["q", "v"], "critic": [...]}',
            )
        found[name] = tuple(map(_observation, terms))
        if not found[name]:
            raise StateError(f"the group {name!r} of observations is empty", "give some terms")
    return found


def _observation(value: Any) -> ObservationTerm:
    """A word, a function, or a pair of one and its options."""
    term, options = value, {}
    if isinstance(value, tuple):
        if len(value) != 2 or not isinstance(value[1], Mapping) or not set(value[1]) <= {*OPTIONS}:
            raise StateError(
                f"the observation {shown(value)} is not a term with options",
                'give (term, {"scale": 0.1, "noise": (-0.05, 0.05)})',
            )
        term, options = value
    name = term_name(term)
    found = ObservationTerm(name, _term("the observation", term, OBSERVATIONS))
    if "scale" in options:
        row = real_array("scale", options["scale"], np.shape(options["scale"]), "give numbers")
        found = replace(found, scale=np.atleast_1d(row).astype(float))
    if "noise" in options:
        found = replace(found, noise=as_distribution(f"noise of {name!r}", options["noise"]))
    return found


def _rewards(value: object) -> dict[str, tuple[float, Callable[[TermState], Any]]]:
    """{name: weight of a word, a function of weight 1, or (weight, term)}."""
    if callable(value):
        return {term_name(value): (1.0, value)}
    if not isinstance(value, Mapping) or not value:
        raise StateError(
            f"rewards is {shown(value)}, expected a dict or a function",
            'rewards={"alive": 1.0, "speed": (0.5, lambda s: s.linear_velocity[0])}',
        )
    found = {}
    for name, row in value.items():
        weight, term = row if isinstance(row, tuple) and len(row) == 2 else (row, name)
        if callable(weight):
            weight, term = 1.0, weight
        array, fault = read_array(weight, ())
        if fault or not np.isfinite(array):
            cause = f"the weight of the reward {name!r} is {shown(weight)}, expected a number"
            raise StateError(cause, "give a weight, a function, or (weight, function)")
        found[str(name)] = float(array), _term("the reward", term, REWARDS)
    return found


def _terminations(value: object) -> dict[str, Callable[[TermState], Any]]:
    """Words, functions, or {name: function}."""
    if value is None:
        return {}
    if callable(value) or isinstance(value, str):
        value = [value]
    if isinstance(value, Mapping):
        rows = dict(value)
    elif is_list(value):
        rows = {term_name(term): term for term in value}
    else:
        raise StateError(
            f"terminations is {shown(value)}, expected words or functions",
            'terminations=["fallen"], or {"low": lambda s: s.height < 0.3}',
        )
    return {str(name): _term("the termination", x, TERMINATIONS) for name, x in rows.items()}
