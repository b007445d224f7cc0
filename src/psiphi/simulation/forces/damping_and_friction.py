"""What joints lose to their motion, and which of it a step takes implicitly. (Springs, which lose nothing: `joint_springs.py`.)

    f(v) = b(v) v,    b(v) = damping + friction / sqrt(v^2 + speed^2)      viscous, and Coulomb friction smoothed below `speed`

A loss that stops its joint in less than a few steps is stiff: h b(0) (M^-1)_kk > SOFT, with 1 / (M^-1)_kk the inertia the joint
has when all others are free. Explicit steps of such a motion grow without bound. Stiff losses are therefore taken implicitly,
by D + gamma h b in place of D (`simulation/integration/integrators.py` says how); soft ones are part of the right side, and keep the order.
What is stiff depends on the model, the step and the losses alone, never on the state or the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import coefficients, positive
from psiphi.compiler.passes import UNROLLED
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.screws import root
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.forces.embedded_loop_forces import SWITCHES, carried, has, steepest
from psiphi.simulation.forces.joint_springs import JointSprings, read_springs
from psiphi.simulation.forces.spring_law import pull
from psiphi.simulation.plant import Plant, freed_among, numbers_of, parameters_of

SOFT = 0.1  # of the time a joint takes to stop: the error of RK4 is then below 1e-7 of the speed in a step
SPEED = 0.01  # rad/s, m/s: below it friction fades
SEEN = 8  # configurations at which (M^-1)_kk is looked at
ALWAYS = ("euler", "implicit", "midpoint")  # methods that take every loss implicitly
TINY = np.finfo(float).tiny  # of a parameter that is zero: it is taken as those beside it


def slope(v: Any, damping: Any = None, friction: Any = None, floor: Any = 0.0) -> Any:
    """b(v), of the losses there are, on arrays of any scalars."""
    rubbing = 0.0 * v if friction is None else friction / root(v * v + floor)
    return rubbing if damping is None else damping + rubbing


def resisted(
    tau: Any,
    v: Any,
    x: Any = None,
    damping: Any = None,
    friction: Any = None,
    floor: Any = 0.0,
    **springs: Any,
) -> Any:
    """tau - b(v) v - s(x), of the losses and springs there are; x are the coordinates in the order of v."""
    force = tau if damping is None else tau - damping * v
    force = force if friction is None else force - friction * (v / root(v * v + floor))
    return force - pull(x, **springs) if springs else force


def opposed(m: Any, tau: Any, q: Any, v: Any, **at: Any) -> Any:
    """`resisted` at q of the manifold m, with what joints of embedded loops lose and pull."""
    loops = {name: at.pop(name) for name in SWITCHES if name in at}
    left = resisted(tau, v, m.positions(q) if "stiffness" in at else None, **at)
    return left - carried(m, q, v, **loops, floor=at.get("floor")) if loops else left


def is_stiff(method: str, h: Any, b: Any, mobility: Any) -> Any:
    """1 where a loss of b(0) is taken implicitly, else 0; `mobility` is (M^-1)_kk."""
    return less(0.0, b) if method in ALWAYS else less(SOFT, h * b * mobility)


@dataclass(frozen=True)
class DampingAndFriction:
    """What joints lose, each a row of nv numbers; `stiff`: 1 where it is taken implicitly, else 0."""

    damping: np.ndarray
    friction: np.ndarray
    speed: float
    stiff: np.ndarray = field(default_factory=lambda: np.zeros(0))
    springs: JointSprings = field(default_factory=JointSprings)
    asked: tuple[str, ...] = ()  # those that are the model's own, which may be parameters
    loops: dict[str, np.ndarray] = field(
        default_factory=dict
    )  # what joints lose that follow in embedded loops
    open: np.ndarray = field(
        default_factory=lambda: np.zeros(0)
    )  # 1 where damping is a parameter, else 0

    @property
    def floor(self) -> float:
        """speed^2, and not 0 where that is too small for a number: a joint at rest has no friction."""
        return max(self.speed * self.speed, np.finfo(float).tiny)

    @property
    def none(self) -> bool:
        return not (self.damping.any() or self.open.any() or self.friction.any() or self.loops)

    @property
    def implicit(self) -> bool:
        """Whether any is, or some spring."""
        return bool(self.stiff.any()) or self.springs.implicit

    @property
    def acting(self) -> dict[str, np.ndarray]:
        """The numbers of those that act, as `opposed` takes them."""
        there = {"damping": self.damping.any() or self.open.any(), "friction": self.friction.any()}
        found = {name: getattr(self, name) for name, acts in there.items() if acts} | self.loops
        return found | (
            {"floor": np.array([self.floor])} if {"friction", "rub"} & set(found) else {}
        )

    def parameters(self, robot: Any) -> dict[str, list[tuple[slice, slice]]]:
        """Numbers that are parameters of the robot: by place, where they stand in it and among the parameters."""
        known = (
            {} if robot.freed is None else {name: robot.freed.every(name) for name in self.asked}
        )
        acting = self.acting | self.springs.acting
        found = {
            name: [(robot.joints[block.index].v_slice, block.own) for block in known[name]]
            for name in known
        }
        return {name: rows for name, rows in found.items() if rows and name in acting}

    def within(self, plant: Plant, method: str, h: float) -> DampingAndFriction:
        """With `stiff`, and the springs with `firm`, for steps of h by that method."""
        if (self.none and not self.springs.acting) or not isinstance(plant.given, Robot | System):
            return self
        springs = self.springs.within(method, h, mobility(plant.robot))
        if self.none:
            return replace(self, springs=springs)
        most = slope(
            np.zeros(plant.nv),
            **{name: x for name, x in self.acting.items() if name not in SWITCHES},
        )
        most = most.reshape(-1, plant.nv).max(axis=0, initial=0.0)  # of all parameters
        most = np.maximum(most, TINY * self.open) if len(self.open) else most
        most = (
            most + steepest(plant.robot, **self.loops, floor=np.array([self.floor]))
            if self.loops
            else most
        )
        with np.errstate(all="ignore"):
            return replace(
                self, stiff=is_stiff(method, h, most, mobility(plant.robot)), springs=springs
            )

    def some(self, rows: Callable[[np.ndarray], np.ndarray]) -> DampingAndFriction:
        """Those of some elements of a batch: `rows` takes their part of what may have its axes."""
        springs = replace(
            self.springs, acting={name: rows(x) for name, x in self.springs.acting.items()}
        )
        return replace(
            self, damping=rows(self.damping), friction=rows(self.friction), springs=springs
        )

    def words(self, robot: Any) -> list[str]:
        """The joints whose losses are taken implicitly."""
        return [
            joint.name
            for joint in robot.joints
            if self.stiff.any() and self.stiff[joint.v_slice].any()
        ]


@lru_cache(maxsize=64)
def mobility(robot: Robot) -> np.ndarray:
    """(nv,): the largest (M^-1)_kk among some configurations; infinite for robots too large to ask, or of many parameters."""
    if len(robot.joints) > UNROLLED or any(np.ndim(x) > 1 for x in parameters_of(robot)):
        return np.full(robot.nv, np.inf)
    q = np.concatenate([robot.neutral()[None], robot.random(0, SEEN - 1)])[:, None, :]
    unit, rest = np.concatenate([np.zeros((1, robot.nv)), np.eye(robot.nv)]), np.zeros(robot.nv)
    a = robot.forward_dynamics(q, rest, unit)
    return np.abs(np.diagonal(a[:, 1:] - a[:, :1], axis1=-2, axis2=-1)).max(axis=0)


def read_losses(
    system: Plant, damping: Any, friction: Any, speed: Any, springs: Any = False
) -> DampingAndFriction:
    """True takes the model's numbers, False none, an array is taken as it is."""
    smooth = positive(
        "friction_speed", SPEED if speed is None else speed, f"{SPEED} is the default"
    )
    if speed is not None and isinstance(friction, bool | np.bool_) and not friction:
        raise StateError(
            "friction_speed came, and there is no friction", "add friction=True, or a number"
        )
    brakes = (
        _per_velocity(system, "damping", damping),
        _per_velocity(system, "friction", friction),
        smooth,
    )
    own = {"damping": damping, "stiffness": springs}
    asked = tuple(name for name, given in own.items() if _is_true(given))
    loops = {
        name: np.ones(1)
        for name, word, given in (("drag", "damping", damping), ("rub", "friction", friction))
        if _is_true(given) and has(system.robot, word)
    }
    free = freed_among(system.robot, "damping") if "damping" in asked else np.zeros(0)
    return DampingAndFriction(
        *brakes, springs=read_springs(system, springs), asked=asked, loops=loops, open=free
    )


def _is_true(given: Any) -> bool:
    return isinstance(given, bool | np.bool_) and bool(given)


def _per_velocity(system: Plant, name: str, given: Any) -> np.ndarray:
    if isinstance(given, bool | np.bool_):
        row = numbers_of(system.robot, name) if given else np.zeros(system.nv)
        if row.shape[-1:] != (system.nv,):
            raise StateError(
                f"{name}=True: the system's velocities are not the joints'",
                f"give {name} as an array",
            )
        return row
    return coefficients(name, given, system.nv)
