"""`TermState`: what an observation, a reward or a termination reads of one environment.

The same properties work while a term is traced, on tape expressions, and on numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest
from psiphi.model.spatial.branch_free import natural_logarithm
from psiphi.model.spatial.screws import Turn, cross
from psiphi.robot.robot import Robot
from psiphi.simulation.contact.ground_contact import GroundContact
from psiphi.simulation.control.law_arrays import LawArray

COUNTER, KEY = "env.counter", "env.key"  # environment, episode and step; two words of the seed
ACTION, PREVIOUS, COMMAND = "env.action", "env.previous_action", "env.command"
LAST_V = "env.last_v"  # before the last step of the simulation
AIR, FLIGHT = "env.air_time", "env.flight_time"  # of each contact point
EPISODE, STEP = 1, 2  # entries of the counter


@dataclass(frozen=True, eq=False)
class TermSetup:
    """What does not change: the robot, and the numbers that words refer to."""

    robot: Robot
    contacts: GroundContact | None
    q0: np.ndarray
    v0: np.ndarray
    dt: float  # of the simulation
    step_time: float  # of a control step
    motors: np.ndarray  # indices of the velocities with motors
    commands: tuple[str, ...] = ()
    scale: np.ndarray = field(default_factory=lambda: np.ones(1))

    @property
    def base(self) -> slice:
        """The entries of q of the free base."""
        joint = next(iter(self.robot.joints), None)
        if joint is None or joint.kind != "free":
            raise StateError(
                f"{self.robot.name} has no free base, and a term asks for its motion",
                "use frames: robot.frame_pose(s.q, name), robot.frame_velocity(s.q, s.v, name)",
            )
        return joint.q_slice


class RandomDraws:
    """Random numbers for a term: `uniform` in (0, 1) and `normal`, one after the other."""

    def __init__(self, draw: Callable[[], Any]):
        self.draw = draw

    def uniform(self) -> Any:
        return LawArray.of(self.draw())

    def normal(self) -> Any:
        """sqrt(-2 log u) cos(2 pi w)."""
        u, w = self.draw(), self.draw()
        radius = np.sqrt(LawArray.of(-2.0 * natural_logarithm(u)))
        return radius * np.cos(LawArray.of(2.0 * np.pi * w))

    def index(self, count: int) -> Any:
        raise StateError("a grid is for studies", 'use {"choice": [...]}')


class TermState:
    """One environment after a control step, as a term reads it.

    q (nq,), v (nv,), a (nv,): the change of v in the last step of the simulation by its duration;
    tau (nv,); action, previous_action (na,), within the limit; t: seconds since the episode began;
    command (n,); contact_forces (c, 3) in world axes, contacts (c,): 1 where a contact acts;
    air_time (c,): seconds since a contact point left the ground, 0 where it touches; flight_time
    (c,): the duration of the flight that ended in this step, 0 where none did; of the base,
    if it is free: rotation (3, 3), height, angular_velocity and linear_velocity in body axes,
    gravity: the unit vector of gravity in body axes, specific_force: that of an accelerometer.

    `uniform(low, high, size)` and `normal(mean, deviation, size)` are random numbers of this
    environment, episode and step.
    """

    def __init__(
        self, setup: TermSetup, place: Callable[[str], Any], draw: Callable[[], Any] | None = None
    ):
        self._setup, self._place, self._draw = setup, place, draw

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        known = [x for x in dir(type(self)) if not x.startswith("_")]
        raise StateError(f"the state of an environment has no {name!r}", nearest(name, known))

    @property
    def q(self) -> Any:
        return self._place("Q")

    @property
    def v(self) -> Any:
        return self._place("V")

    @property
    def a(self) -> Any:
        return (self.v - self._place(LAST_V)) * (1.0 / self._setup.dt)

    @property
    def tau(self) -> Any:
        return self._place("tau")

    @property
    def t(self) -> Any:
        return self._place(COUNTER)[STEP] * self._setup.step_time

    @property
    def step_time(self) -> float:
        """The duration of a control step in seconds."""
        return self._setup.step_time

    @property
    def action(self) -> Any:
        return self._place(ACTION)

    @property
    def previous_action(self) -> Any:
        return self._place(PREVIOUS)

    @property
    def command(self) -> Any:
        if not self._setup.commands:
            raise StateError("a term reads s.command, and there are no commands", "give commands=")
        return self._place(COMMAND)

    @property
    def q0(self) -> np.ndarray:
        """The nominal posture."""
        return self._setup.q0

    @property
    def v0(self) -> np.ndarray:
        return self._setup.v0

    @property
    def motors(self) -> np.ndarray:
        """The indices in v of the coordinates with motors."""
        return self._setup.motors

    # -- contacts ----------------------------------------------------------------------------------

    def _ground(self) -> GroundContact:
        if self._setup.contacts is None:
            raise StateError("a term reads contacts, and there is no ground", "give pp.Ground()")
        return self._setup.contacts

    @property
    def contact_forces(self) -> Any:
        contact = self._ground()
        impulses = self._place("contact.impulse").reshape(contact.count, 3)
        axes = np.array(contact.ground.axes) * (1.0 / self._setup.dt)
        if contact.space.ground_count == contact.count:
            return impulses @ axes
        places = contact.space.unpack(np.asarray(self._place("contact.place"))).contacts
        own = [axes if x.axes is None else np.array(x.axes) / self._setup.dt for x in places]
        forces = [
            [sum(x * axis[k] for x, axis in zip(row, each, strict=True)) for k in range(3)]
            for row, each in zip(impulses, own, strict=True)
        ]
        return LawArray.of(forces)

    @property
    def contacts(self) -> Any:
        self._ground()
        return (self._place("contact.mode") > 0.0) * 1.0

    @property
    def air_time(self) -> Any:
        self._ground()
        return self._place(AIR)

    @property
    def flight_time(self) -> Any:
        self._ground()
        return self._place(FLIGHT)

    # -- the free base -----------------------------------------------------------------------------

    @property
    def rotation(self) -> Any:
        x = self.q[self._setup.base]
        return LawArray.of(np.array(Turn.from_quaternion(list(x[3:7])).R, dtype=object))

    @property
    def gravity(self) -> Any:
        g = np.asarray(self._setup.robot.gravity_vector, dtype=float)
        return (g / np.linalg.norm(g)) @ self.rotation

    @property
    def height(self) -> Any:
        return self.q[self._setup.base][2]

    @property
    def angular_velocity(self) -> Any:
        return self.v[self._base_velocity][:3]

    @property
    def linear_velocity(self) -> Any:
        return self.v[self._base_velocity][3:]

    @property
    def specific_force(self) -> Any:
        """What an accelerometer at the origin of the base measures: a + w x v - g."""
        rows = self._base_velocity
        w, v, a = self.v[rows][:3], self.v[rows][3:], self.a[rows][3:]
        g = float(np.linalg.norm(self._setup.robot.gravity_vector))
        return a + LawArray.of(cross(list(w), list(v))) - g * self.gravity

    @property
    def _base_velocity(self) -> slice:
        start = self._setup.base.start
        return slice(start, start + 6)

    # -- joints with motors ------------------------------------------------------------------------

    @property
    def joint_positions(self) -> Any:
        """The displacements of the joints with motors from the nominal posture."""
        robot = self._setup.robot
        shift = robot.manifold.log(np.asarray(self.q0, dtype=object), np.asarray(self.q))
        return LawArray.of(shift[self.motors])

    @property
    def joint_velocities(self) -> Any:
        return self.v[self.motors]

    # -- random numbers ----------------------------------------------------------------------------

    @property
    def random(self) -> RandomDraws:
        if self._draw is None:
            raise StateError(
                "a reward or a termination draws random numbers",
                "draw them in observations, resets or commands",
            )
        return RandomDraws(self._draw)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: int | None = None) -> Any:
        """Numbers between low and high; without size, one number, or as many as bounds have."""
        return self._numbers(lambda source, a, b: a + (b - a) * source.uniform(), low, high, size)

    def normal(self, mean: Any = 0.0, deviation: Any = 1.0, size: int | None = None) -> Any:
        return self._numbers(lambda source, a, b: a + b * source.normal(), mean, deviation, size)

    def _numbers(self, rule: Callable[..., Any], a: Any, b: Any, size: int | None) -> Any:
        source = self.random
        if size is None and not np.shape(a) and not np.shape(b):
            return rule(source, a, b)
        shape = np.broadcast_shapes(np.shape(a), np.shape(b), () if size is None else (size,))
        pairs = zip(*(np.broadcast_to(x, shape).ravel() for x in (a, b)), strict=True)
        return LawArray.of([rule(source, *pair) for pair in pairs]).reshape(shape)
