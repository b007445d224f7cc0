"""What can be simulated: a robot, a closed-chain system, or anything that answers the same questions.

The first row is asked of every system, the others where it has them:

    nq, nv, forward_dynamics(q, v, tau)          -> a
    robot                                        the robot underneath, whose q it is; the system itself when absent
    forward_dynamics(q, v, tau, forces=True)     -> (a, forces (..., l, 6)), where there are `contacts`
    project(q, v) -> (q, v)                      back onto the constraints, after each step
    constraint_residual(q, v)                    (..., 2, m): position errors, velocity errors
    contact_ratio(q, forces)                     (..., l): above 1 the contact slips or pulls off
    energy(q, v)                                 (...)
    velocity(q, v) or rates(q, v)                the robot's joint velocity, where v is something else (quasi-velocities)
    changes()                                    what happened to contacts since it was asked
    actuated                                     the velocity coordinates with motors: torques may be given for these alone
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import robot_of
from psiphi.model import motors
from psiphi.model.model import Model
from psiphi.model.spatial.scalar_arrays import max_norm
from psiphi.robot.robot import Robot

ASKED = ("nq", "nv", "forward_dynamics")


def parameters_of(robot: Any) -> tuple[Any, ...]:
    """The parameters that `at` put into a robot some of whose numbers are inputs, or ()."""
    return robot.parameter_arguments if getattr(robot, "freed", None) is not None else ()


def numbers_of(robot: Any, name: str) -> np.ndarray:
    """The model's numbers of that name, (nv,), or (..., nv) where they are parameters with batch axes."""
    row = np.array(getattr(robot, name))
    for block in robot.freed.every(name) if robot.freed is not None else ():
        (parameters,) = parameters_of(robot)
        row = np.array(np.broadcast_to(row, (*parameters.shape[:-1], robot.nv)))
        row[..., robot.joints[block.index].v_slice] = parameters[..., block.own]
    return row


def freed_among(robot: Any, name: str) -> np.ndarray:
    """1 where the number of that name is a parameter, else 0, (nv,): such act where they are zero, too, since motions change
    with them."""
    found = np.zeros(robot.nv)
    for block in robot.freed.every(name) if robot.freed is not None else ():
        found[robot.joints[block.index].v_slice] = 1.0
    return found


def joint_velocity(system: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The joint velocity of the robot underneath: v itself, unless the system has other velocities."""
    if isinstance(system, Model):
        return v
    own = getattr(system, "velocity", None) or getattr(system, "rates", None)
    return v if own is None else np.asarray(own(q, v), dtype=float)


def _instead(given: Any) -> str:
    """What was meant by something that is no system."""
    if isinstance(given, str):
        return f"give the robot itself: pp.load({shown(given)})"
    if hasattr(given, "system") and hasattr(given, "run"):
        return "a scene runs by itself: case.run(); its system is case.system"
    return "give a robot (pp.load, pp.Builder) or a closed-chain system"


class Plant:
    """A system's answers behind one set of names."""

    def __init__(self, given: Any):
        if isinstance(given, Model) and not isinstance(given, Robot):
            given = Robot.of(given)
        missing = [name for name in ASKED if not hasattr(given, name)]
        if missing:
            cause = f"the system is {shown(given)}, which has no {', '.join(missing)}"
            raise StateError(cause, _instead(given))
        self.given: Any = given
        self.nq, self.nv = int(given.nq), int(given.nv)
        robot = robot_of(given)
        if not isinstance(robot, Model):
            raise StateError(
                f"the system {shown(given)} has no robot underneath",
                "give it an attribute `robot`, a pp.Robot",
            )
        self.robot: Any = robot if isinstance(robot, Robot) else Robot.of(robot)
        self.manifold = robot.manifold
        self.contacts = tuple(getattr(given, "contacts", ()))
        self.project = getattr(given, "project", None)
        self.is_plain = given is robot
        own = getattr(given, "passive", ())  # of a closed chain
        self.idle: tuple[str, ...] = (
            motors.idle(robot) if self.is_plain else own if isinstance(own, tuple) else ()
        )
        self.springs: Any = None  # those that act: their energy is part of the system's
        self.told = False  # whether it was said which joints have motors

    @property
    def is_one_sided(self) -> bool:
        """Whether some contact can slip or pull off."""
        return any(getattr(contact, "friction", None) is not None for contact in self.contacts)

    @property
    def name(self) -> str:
        own = getattr(self.given, "name", None)
        return own if isinstance(own, str) else self.robot.name

    def with_motors(self, actuated: Any, passive: Any) -> None:
        """Say which joints of a robot have motors."""
        if actuated is None and passive is None:
            return
        if not self.is_plain:
            cause = f"actuated or passive came, and the motors of {self.name} are its own"
            raise StateError(cause, "pp.connect and pp.grasp take actuated= and passive=")
        self.idle, self.told = motors.idle(self.robot, actuated, passive), True

    @property
    def undriven(self) -> np.ndarray:
        """The velocity coordinates without motors."""
        return motors.coordinates(self.robot, self.idle)

    def over_samples(self) -> Plant:
        """The same system, asked about samples (..., samples, n): parameters with batch axes get one for them."""
        if not any(np.ndim(x) > 1 for x in parameters_of(self.robot)):
            return self
        plant = copy(self)
        plant.given = self.given.with_sample_axis()
        plant.robot = robot_of(plant.given)
        plant.springs = None if self.springs is None else self.springs.over_samples()
        return plant

    def one(self, batch: tuple[int, ...], where: tuple[int, ...]) -> Any:
        """The system of one motion of a batch: where parameters have batch axes, with its own."""
        own = next((x for x in parameters_of(self.robot) if np.ndim(x) > 1), None)
        return (
            self.given
            if own is None
            else self.given.bind_parameters(np.broadcast_to(own, (*batch, own.shape[-1]))[where])
        )

    def some(self, lead: tuple[int, ...], which: np.ndarray) -> Plant:
        """The same closed chain, of the elements `which` of a flattened batch with axes `lead`: parameters are theirs."""
        plant = copy(self)
        every = self.given.at_elements(lead, np.ones(lead, dtype=bool))
        plant.given = every.at_elements((int(np.prod(lead)),), which)
        plant.robot, plant.project = plant.given.robot, plant.given.project
        return plant

    def acceleration(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, added: np.ndarray | None = None
    ) -> np.ndarray:
        """a (..., nv); with `added`, as if the joints had so much more rotor inertia (robots and closed chains)."""
        if added is None:
            return self.given.forward_dynamics(q, v, tau)
        if isinstance(self.given, Robot):
            return self.given.call_quantity(
                "heavier_dynamics", dict(q=q, v=v, tau=tau, added=added), None, None, False
            )
        return self.given.call_function(
            self.given.added_inertia_dynamics_function, (q, v, tau, added)
        )[0]

    def forces(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """a, and the contacts' forces (..., l, 6) where there are contacts."""
        if not self.contacts:
            return self.acceleration(q, v, tau), None
        return self.given.forward_dynamics(q, v, tau, forces=True)

    def filled(self, tau: np.ndarray) -> np.ndarray:
        """Torques of the motors alone, (..., na), as (..., nv); others as they are."""
        return motors.filled(tau, np.setdiff1d(np.arange(self.nv), self.undriven), self.nv)

    def answered(self, tau: np.ndarray) -> np.ndarray:
        """The same of what a law answers: a number alone is the torque of the only motor, and 0 that of every one."""
        if not tau.ndim and self.nv - len(self.undriven) == 1:
            return self.filled(tau.reshape(1))
        is_zero = not tau.ndim and isinstance(tau[()], int | float | np.number) and not tau[()]
        return np.zeros(self.nv) if is_zero else self.filled(tau)

    def velocity(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The robot's joint velocity."""
        return joint_velocity(self.given, q, v)

    def energy(self, q: np.ndarray, v: np.ndarray) -> np.ndarray | None:
        own = getattr(self.given, "energy", None)
        if own is None:
            return None
        stored = 0.0 if self.springs is None else self.springs.energy(self.manifold, q)
        return np.asarray(own(q, v), dtype=float) + stored

    def residual(self, q: np.ndarray, v: np.ndarray) -> np.ndarray | None:
        """(..., 2): the largest position and velocity error of the constraints; None where there are none."""
        own = getattr(self.given, "constraint_residual", None)
        return None if own is None else max_norm(np.asarray(own(q, v), dtype=float))

    def changes(self) -> list[Any]:
        """Contacts made and lost since this was asked: (name, what, value, ago) each."""
        own = getattr(self.given, "changes", None)
        return [] if own is None else own()

    def ratio(self, q: np.ndarray, forces: np.ndarray | None) -> np.ndarray | None:
        """(..., l): how much of each contact's hold is used."""
        own = getattr(self.given, "contact_ratio", None)
        return None if own is None or forces is None else np.asarray(own(q, forces), dtype=float)
