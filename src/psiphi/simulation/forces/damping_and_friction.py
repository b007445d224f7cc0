"""Damping and friction of joints, and the choice of those that a step takes implicitly.

    f(v) = b(v) v,    b(v) = damping + friction / sqrt(v^2 + speed^2)

This is viscous damping, and Coulomb friction smoothed below `speed`. (Springs, which store energy,
are in `joint_springs.py`.)

A loss is stiff if it stops its joint within a few steps: h b(0) (M^-1)_kk > MAX_EXPLICIT_LOSS,
where 1 / (M^-1)_kk is the inertia of the joint when all others are free. Explicit steps would
diverge. Stiff losses are therefore implicit, by D + gamma h b instead of D
(`integration/integrators.py`). The others are part of the right-hand side, where the method has its
full order. Which losses are implicit depends on the model, the step and the coefficients only, not
on the state or the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyArray, Numbers
from psiphi._util.errors import StateError
from psiphi._util.validate import coefficients, positive_number
from psiphi.compiler.passes import UNROLL_LIMIT
from psiphi.model.manifold import Manifold
from psiphi.model.spatial.branch_free import less
from psiphi.model.spatial.screws import square_root
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.forces.embedded_loop_forces import (
    LOOP_SWITCHES,
    has_loop_forces,
    loop_forces,
    max_slope_bound,
)
from psiphi.simulation.forces.joint_springs import JointSprings, read_springs
from psiphi.simulation.forces.spring_law import spring_force
from psiphi.simulation.plant import Plant, model_values, parameter_mask, parameters_of

MAX_EXPLICIT_LOSS = 0.1  # steps per stopping time; RK4 then errs by 1e-7 of the speed in a step
FRICTION_SPEED = 0.01  # rad/s, m/s: the default `speed`
CONFIGURATIONS = 8  # at which `mobility` evaluates (M^-1)_kk
ALWAYS_IMPLICIT = ("euler", "moreau", "implicit", "midpoint")  # methods with all losses implicit
TINY = np.finfo(float).tiny  # stands for a damping parameter of 0, so that it is implicit too


def loss_coefficient(
    v: AnyArray,
    damping: AnyArray | None = None,
    friction: AnyArray | None = None,
    floor: AnyArray | float = 0.0,
) -> Any:
    """b(v) of the terms that are given, on arrays of numbers or tape expressions."""
    coulomb = 0.0 * v if friction is None else friction / square_root(v * v + floor)
    return coulomb if damping is None else damping + coulomb


def net_torque(
    tau: AnyArray,
    v: AnyArray,
    x: AnyArray | None = None,
    damping: AnyArray | None = None,
    friction: AnyArray | None = None,
    floor: AnyArray | float = 0.0,
    **springs: Any,
) -> Any:
    """tau - b(v) v - s(x) of the terms that are given; x are the coordinates in the order of v."""
    torque = tau if damping is None else tau - damping * v
    if friction is not None:
        torque = torque - friction * (v / square_root(v * v + floor))
    return torque - spring_force(x, **springs) if x is not None and springs else torque


def net_torque_with_loops(
    m: Manifold, tau: AnyArray, q: np.ndarray | None, v: np.ndarray, **active: Any
) -> Any:
    """`net_torque` at q, less the forces of joints in embedded loops."""
    loops = {name: active.pop(name) for name in LOOP_SWITCHES if name in active}
    x = None if q is None or "stiffness" not in active else m.positions(q)
    torque = net_torque(tau, v, x, **active)
    return (
        torque - loop_forces(m, q, v, **loops, floor=active.get("floor"))
        if loops and q is not None
        else torque
    )


def is_stiff_loss(method: str, h: AnyArray | float, b: AnyArray, mobility: AnyArray) -> Any:
    """1 where a loss with b(0) = b is implicit, else 0; `mobility` is (M^-1)_kk."""
    return less(0.0, b) if method in ALWAYS_IMPLICIT else less(MAX_EXPLICIT_LOSS, h * b * mobility)


def _empty() -> np.ndarray:
    return np.zeros(0)


@dataclass(frozen=True)
class DampingAndFriction:
    """The losses of a motion, rows of nv numbers; `implicit_losses` is 1 where a loss is
    implicit."""

    damping: np.ndarray
    friction: np.ndarray
    speed: float
    implicit_losses: np.ndarray = field(default_factory=_empty)
    springs: JointSprings = field(default_factory=JointSprings)
    from_model: tuple[str, ...] = ()  # names whose numbers are the model's, which may be parameters
    loops: dict[str, np.ndarray] = field(default_factory=dict)  # switches of `loop_forces`
    free_damping: np.ndarray = field(default_factory=_empty)  # 1 where damping is a parameter

    @property
    def floor(self) -> float:
        """speed^2, at least the smallest positive number: a joint at rest has no friction."""
        return max(self.speed * self.speed, np.finfo(float).tiny)

    @cached_property
    def is_empty(self) -> bool:
        """Whether nothing is lost."""
        given = (self.damping, self.free_damping, self.friction)
        return not (any(x.any() for x in given) or self.loops)

    @cached_property
    def implicit(self) -> bool:
        """Whether any loss or spring is implicit."""
        return bool(self.implicit_losses.any()) or self.springs.implicit

    @cached_property
    def active(self) -> dict[str, np.ndarray]:
        """The arguments of `net_torque_with_loops` for the losses that act."""
        found = {}
        if self.damping.any() or self.free_damping.any():
            found["damping"] = self.damping
        if self.friction.any():
            found["friction"] = self.friction
        found |= self.loops
        if {"friction", "loop_friction"} & set(found):
            found["floor"] = np.array([self.floor])
        return found

    def parameter_slices(self, robot: Robot) -> dict[str, list[tuple[slice, slice]]]:
        """The active numbers that are parameters of the robot: {name: [(slice of the row, slice of
        the parameters), ...]}."""
        active, found = self.active | self.springs.active, {}
        for name in self.from_model:
            rows = [
                (robot.joints[block.body].v_slice, block.columns)
                for block in robot.free_blocks(name)
            ]
            if rows and name in active:
                found[name] = rows
        return found

    def for_steps(self, plant: Plant, method: str, h: float) -> DampingAndFriction:
        """The same losses and springs, with the masks of those that are implicit in steps h."""
        if not isinstance(plant.system, Robot | System):
            return self
        if self.is_empty and not self.springs.active:
            return self
        springs = self.springs.for_steps(method, h, mobility(plant.robot))
        if self.is_empty:
            return replace(self, springs=springs)
        rows = {name: x for name, x in self.active.items() if name not in LOOP_SWITCHES}
        b = loss_coefficient(np.zeros(plant.nv), **rows)
        b = b.reshape(-1, plant.nv).max(axis=0, initial=0.0)  # the largest of a batch of parameters
        if len(self.free_damping):
            b = np.maximum(b, TINY * self.free_damping)
        if self.loops:
            b = b + max_slope_bound(plant.robot, **self.loops, floor=np.array([self.floor]))
        with np.errstate(all="ignore"):
            implicit = is_stiff_loss(method, h, b, mobility(plant.robot))
        return replace(self, implicit_losses=implicit, springs=springs)

    def elements(self, rows: Callable[[np.ndarray], np.ndarray]) -> DampingAndFriction:
        """The losses of some elements of a batch; `rows` selects them in an array that may have
        batch axes."""
        active = {name: rows(x) for name, x in self.springs.active.items()}
        return replace(
            self,
            damping=rows(self.damping),
            friction=rows(self.friction),
            springs=replace(self.springs, active=active),
        )

    def implicit_joints(self, robot: Robot) -> list[str]:
        """The names of the joints with implicit losses."""
        if not self.implicit_losses.any():
            return []
        return [j.name for j in robot.joints if self.implicit_losses[j.v_slice].any()]


@lru_cache(maxsize=64)
def mobility(robot: Robot) -> np.ndarray:
    """(nv,): the largest (M^-1)_kk at some configurations; infinite for large robots and for
    batches of parameters, where computing it takes too long."""
    if len(robot.joints) > UNROLL_LIMIT or any(np.ndim(x) > 1 for x in parameters_of(robot)):
        return np.full(robot.nv, np.inf)
    q = np.concatenate([robot.neutral()[None], robot.random(0, CONFIGURATIONS - 1)])[:, None, :]
    unit, rest = np.concatenate([np.zeros((1, robot.nv)), np.eye(robot.nv)]), np.zeros(robot.nv)
    a = robot.forward_dynamics(q, rest, unit)
    return np.abs(np.diagonal(a[:, 1:] - a[:, :1], axis1=-2, axis2=-1)).max(axis=0)


def read_losses(
    plant: Plant,
    damping: bool | Numbers,
    friction: bool | Numbers,
    speed: float | None,
    springs: bool | Numbers = False,
) -> DampingAndFriction:
    """The losses of the options: True means the model's numbers, False none, else the numbers."""
    smooth = positive_number(
        "friction_speed",
        FRICTION_SPEED if speed is None else speed,
        f"{FRICTION_SPEED} is the default",
    )
    if speed is not None and isinstance(friction, bool | np.bool_) and not friction:
        raise StateError(
            "friction_speed is given, but there is no friction", "add friction=True, or a number"
        )
    rows = _coefficients(plant, "damping", damping), _coefficients(plant, "friction", friction)
    options = {"damping": damping, "stiffness": springs}
    from_model = tuple(name for name, option in options.items() if _is_true(option))
    loops = {
        switch: np.ones(1)
        for switch, name, option in (
            ("loop_damping", "damping", damping),
            ("loop_friction", "friction", friction),
        )
        if _is_true(option) and has_loop_forces(plant.robot, name)
    }
    mask = parameter_mask(plant.robot, "damping") if "damping" in from_model else np.zeros(0)
    return DampingAndFriction(
        *rows,
        smooth,
        springs=read_springs(plant, springs),
        from_model=from_model,
        loops=loops,
        free_damping=mask,
    )


def _is_true(option: object) -> bool:
    return isinstance(option, bool | np.bool_) and bool(option)


def _coefficients(plant: Plant, name: str, option: bool | Numbers) -> np.ndarray:
    """The model's numbers or those of the option, (..., nv)."""
    if not isinstance(option, bool | np.bool_):
        return coefficients(name, option, plant.nv)
    row = model_values(plant.robot, name) if option else np.zeros(plant.nv)
    if row.shape[-1:] != (plant.nv,):
        raise StateError(
            f"{name}=True: the system's velocities are not the joints'", f"give {name} as an array"
        )
    return row
