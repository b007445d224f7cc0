"""Systems that can be simulated: robots, closed chains, and objects with the same methods.

Every system has the first row. The other rows are optional:

    nq, nv, forward_dynamics(q, v, tau)         -> a
    robot                                       the robot that q belongs to; default: the system
    contacts                                    l contacts; forward_dynamics then takes forces=True
    forward_dynamics(q, v, tau, forces=True)    -> (a, forces (..., l, 6))
    project(q, v) -> (q, v)                     projects onto the constraints, after each step
    constraint_residual(q, v)                   (..., 2, m): position errors, velocity errors
    contact_ratio(q, forces)                    (..., l): above 1 the contact slips or pulls off
    energy(q, v)                                (...)
    velocity(q, v) or rates(q, v)               the joint velocity, if v is another velocity
    changes()                                   contact changes since the last call
    impulses()                                  (l, 6), N s: of impacts since the last call
    actuated                                    indices of the velocity coordinates with motors
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Protocol

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import robot_of
from psiphi.model import motors
from psiphi.model.model import Model
from psiphi.model.spatial.scalar_arrays import max_norm
from psiphi.robot.robot import Robot

REQUIRED = ("nq", "nv", "forward_dynamics")


class SimulatedSystem(Protocol):
    """What every system has; the docstring of this module lists the optional methods."""

    @property
    def nq(self) -> int: ...
    @property
    def nv(self) -> int: ...
    @property
    def forward_dynamics(self) -> Any: ...


def parameters_of(robot: Robot) -> tuple[Any, ...]:
    """The free parameters that `at` bound to a robot; () if it has none."""
    return robot.parameter_arguments if getattr(robot, "freed", None) is not None else ()


def model_values(robot: Robot, name: str) -> np.ndarray:
    """The model's numbers `name`, (nv,), or (..., nv) if they are parameters with batch axes."""
    row = np.array(getattr(robot, name))
    for block in robot.free_blocks(name):
        (parameters,) = parameters_of(robot)
        row = np.array(np.broadcast_to(row, (*parameters.shape[:-1], robot.nv)))
        row[..., robot.joints[block.body].v_slice] = parameters[..., block.columns]
    return row


def parameter_mask(robot: Robot, name: str) -> np.ndarray:
    """(nv,): 1 where the number `name` is a free parameter, else 0. A parameter acts even if its
    value is zero, because motions have derivatives with respect to it."""
    found = np.zeros(robot.nv)
    for block in robot.free_blocks(name):
        found[robot.joints[block.body].v_slice] = 1.0
    return found


def joint_velocity(system: object, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The robot's joint velocity: v, unless the system has other velocities."""
    if isinstance(system, Model):
        return v
    convert = getattr(system, "velocity", None) or getattr(system, "rates", None)
    return v if convert is None else np.asarray(convert(q, v), dtype=float)


def _remedy(value: object) -> str:
    """What to give instead of a value that is not a system."""
    if isinstance(value, str):
        return f"give the robot itself: pp.load({shown(value)})"
    if hasattr(value, "system") and hasattr(value, "run"):
        return "a scene runs by itself: case.run(); its system is case.system"
    return "give a robot (pp.load, pp.Builder) or a closed-chain system"


class Plant:
    """One interface to every kind of system. Optional methods that the system lacks return None."""

    def __init__(self, system: SimulatedSystem | Model):
        if isinstance(system, Model) and not isinstance(system, Robot):
            system = Robot.of(system)
        missing = [name for name in REQUIRED if not hasattr(system, name)]
        if missing:
            cause = f"the system is {shown(system)}, which has no {', '.join(missing)}"
            raise StateError(cause, _remedy(system))
        self.system: Any = system
        self.nq, self.nv = int(system.nq), int(system.nv)
        robot = robot_of(system)
        if not isinstance(robot, Model):
            raise StateError(
                f"the system {shown(system)} has no robot",
                "give it an attribute `robot`, a pp.Robot",
            )
        self.robot: Any = robot if isinstance(robot, Robot) else Robot.of(robot)
        self.manifold = robot.manifold
        self.contacts = tuple(getattr(system, "contacts", ()))
        self.project = getattr(system, "project", None)
        self.is_robot = system is robot
        self.unactuated_joints: tuple[str, ...] = ()
        if self.is_robot:
            self.unactuated_joints = motors.unactuated_joints(robot)
        elif isinstance(passive := getattr(system, "passive", ()), tuple):  # of a closed chain
            self.unactuated_joints = passive
        self.springs: Any = None  # the JointSprings that act; `energy` includes theirs
        self.motors_given = False  # whether `set_motors` was called with names

    @property
    def has_unilateral_contacts(self) -> bool:
        """Whether some contact can slip or separate."""
        return any(getattr(contact, "friction", None) is not None for contact in self.contacts)

    @property
    def name(self) -> str:
        name = getattr(self.system, "name", None)
        return name if isinstance(name, str) else self.robot.name

    def set_motors(
        self, actuated: str | Sequence[str] | None, passive: str | Sequence[str] | None
    ) -> None:
        """Set which joints of a robot have motors, by the names of either kind."""
        if actuated is None and passive is None:
            return
        if not self.is_robot:
            cause = f"actuated or passive is given, but the motors of {self.name} are fixed"
            raise StateError(cause, "give actuated= or passive= to pp.connect or pp.grasp")
        self.unactuated_joints, self.motors_given = (
            motors.unactuated_joints(self.robot, actuated, passive),
            True,
        )

    @property
    def unactuated_indices(self) -> np.ndarray:
        """Indices of the velocity coordinates without motors."""
        return motors.velocity_indices(self.robot, self.unactuated_joints)

    def with_sample_axis(self) -> Plant:
        """The same system for states (..., samples, n): batched parameters get a sample axis."""
        if not any(np.ndim(x) > 1 for x in parameters_of(self.robot)):
            return self
        plant = copy(self)
        plant.system = self.system.with_sample_axis()
        plant.robot = robot_of(plant.system)
        plant.springs = None if self.springs is None else self.springs.with_sample_axis()
        return plant

    def element(self, batch: tuple[int, ...], where: tuple[int | np.ndarray, ...]) -> Any:
        """The system of one motion of a batch, with the parameters of that motion; with arrays of
        indices, that of several motions."""
        batched = next((x for x in parameters_of(self.robot) if np.ndim(x) > 1), None)
        if batched is None:
            return self.system
        every = np.broadcast_to(batched, (*batch, batched.shape[-1]))
        return self.system.bind_parameters(every[where])

    def elements(self, lead: tuple[int, ...], which: np.ndarray) -> Plant:
        """The same closed chain with the parameters of the elements `which` of a flattened batch;
        `lead` are the batch axes."""
        plant = copy(self)
        every = self.system.at_elements(lead, np.ones(lead, dtype=bool))
        plant.system = every.at_elements((int(np.prod(lead)),), which)
        plant.robot, plant.project = plant.system.robot, plant.system.project
        return plant

    def acceleration(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, added: np.ndarray | None = None
    ) -> np.ndarray:
        """a (..., nv); `added` (nv,) is added to the rotor inertia (robots and closed chains)."""
        if added is None:
            return self.system.forward_dynamics(q, v, tau)
        if isinstance(self.system, Robot):
            return self.system.call_quantity(
                "added_inertia_dynamics", dict(q=q, v=v, tau=tau, added=added), None, None, False
            )
        return self.system.call_function(
            self.system.added_inertia_dynamics_function, (q, v, tau, added)
        )[0]

    def forces(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """a, and the contact forces (..., l, 6), or None without contacts."""
        if not self.contacts:
            return self.acceleration(q, v, tau), None
        return self.system.forward_dynamics(q, v, tau, forces=True)

    def expand_torque(self, tau: np.ndarray) -> np.ndarray:
        """Torques of the motors only, (..., na), as (..., nv); other shapes are returned as is."""
        if tau.shape[-1:] == (self.nv,):
            return tau
        actuated = np.setdiff1d(np.arange(self.nv), self.unactuated_indices)
        return motors.expand_torques(tau, actuated, self.nv)

    def expand_law_torque(self, tau: np.ndarray) -> np.ndarray:
        """`expand_torque` of what a law returns. One number is the torque of a single motor; the
        number 0 is zero torque for every motor."""
        if not tau.ndim and self.nv - len(self.unactuated_indices) == 1:
            return self.expand_torque(tau.reshape(1))
        is_zero = not tau.ndim and isinstance(tau[()], int | float | np.number) and not tau[()]
        return np.zeros(self.nv) if is_zero else self.expand_torque(tau)

    def velocity(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The robot's joint velocity."""
        return joint_velocity(self.system, q, v)

    def energy(self, q: np.ndarray, v: np.ndarray) -> np.ndarray | None:
        """The energy (...), with that of the springs that act."""
        energy = getattr(self.system, "energy", None)
        if energy is None:
            return None
        stored = 0.0 if self.springs is None else self.springs.energy(self.manifold, q)
        return np.asarray(energy(q, v), dtype=float) + stored

    def residual(self, q: np.ndarray, v: np.ndarray) -> np.ndarray | None:
        """(..., 2): the largest position and velocity error of the constraints, if any."""
        residual = getattr(self.system, "constraint_residual", None)
        return None if residual is None else max_norm(np.asarray(residual(q, v), dtype=float))

    def changes(self) -> list[Any]:
        """The contact changes since the last call: (name, what, value, ago) each."""
        changes = getattr(self.system, "changes", None)
        return [] if changes is None else changes()

    def impulses(self) -> np.ndarray | None:
        """The impulses (l, 6) of contacts in impacts since the last call, if there can be any."""
        impulses = getattr(self.system, "impulses", None)
        return None if impulses is None else impulses()

    def contact_ratio(self, q: np.ndarray, forces: np.ndarray | None) -> np.ndarray | None:
        """(..., l): how much of its friction cone each contact uses; above 1 it slips."""
        ratio = getattr(self.system, "contact_ratio", None)
        if ratio is None or forces is None:
            return None
        return np.asarray(ratio(q, forces), dtype=float)
