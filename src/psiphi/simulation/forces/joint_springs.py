"""Springs of joints, and the choice of those that a step takes implicitly.

`spring_law.py` has the law; `embedded_loop_forces.py` applies it to joints of embedded loops. A
spring is stiff if h^2 s'(y) (M^-1)_kk > MAX_EXPLICIT_SPRING: it then oscillates by more than half a
radian per step. Explicit steps follow such an oscillation badly, and diverge from two radians per
step on. Stiff springs are implicit, by D + gamma^2 h^2 S instead of D
(`integration/integrators.py`). Which springs are implicit depends on the model, the step and the
springs only.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from psiphi._util.array_types import AnyArray, Numbers
from psiphi._util.errors import ModelWarning, StateError
from psiphi._util.text import shown
from psiphi._util.validate import coefficients
from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.diagnostics import caller_stacklevel
from psiphi.model.manifold import Manifold
from psiphi.model.model import Joint
from psiphi.model.spatial.branch_free import less
from psiphi.robot.robot import Robot
from psiphi.simulation.forces import embedded_loop_forces
from psiphi.simulation.forces.spring_law import (
    NO_SPRING,
    spring_energy,
    spring_slope,
    spring_values,
)
from psiphi.simulation.plant import Plant, model_values, parameter_mask

MAX_EXPLICIT_SPRING = 0.25  # (h omega)^2, omega the frequency of the spring alone
ALWAYS_IMPLICIT = ("implicit", "midpoint")  # methods with all springs implicit


def is_stiff_spring(method: str, h: AnyArray | float, slope: AnyArray, mobility: AnyArray) -> Any:
    """1 where a spring of this slope is implicit, else 0; `mobility` is (M^-1)_kk."""
    acts = less(0.0, slope)
    if method in ALWAYS_IMPLICIT:
        return acts
    return acts * less(MAX_EXPLICIT_SPRING, h * h * slope * mobility)


@dataclass(frozen=True)
class JointSprings:
    """The springs that act.

    `active` are the arguments of `spring_force`, rows of nv numbers; `max_slope` (nv,) the largest
    slope of each spring; `implicit_springs` (nv,) is 1 where the spring is implicit, else 0.
    """

    active: dict[str, np.ndarray] = field(default_factory=dict)
    max_slope: np.ndarray = field(default_factory=lambda: np.zeros(0))
    implicit_springs: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def implicit(self) -> bool:
        """Whether any spring is implicit."""
        return bool(self.implicit_springs.any())

    def for_steps(self, method: str, h: float, mobility: np.ndarray) -> JointSprings:
        """The same springs, with the mask of those that are implicit in steps h."""
        if not self.active:
            return self
        with np.errstate(all="ignore"):
            implicit = is_stiff_spring(method, h, self.max_slope, mobility)
        return replace(self, implicit_springs=implicit)

    def energy(self, m: Manifold, q: np.ndarray) -> Any:
        """The stored energy (...) at q."""
        if not self.active:
            return 0.0
        U = spring_energy(m.positions(q), **self.active)
        return U + embedded_loop_forces.energy(m, q) if "loop_springs" in self.active else U

    def with_sample_axis(self) -> JointSprings:
        """The same springs for states (..., samples, n): batched numbers get a sample axis."""
        active = {name: x[..., None, :] if x.ndim > 1 else x for name, x in self.active.items()}
        return replace(self, active=active)

    def implicit_joints(self, robot: Robot) -> list[str]:
        """The names of the joints with implicit springs."""
        if not self.implicit:
            return []
        return [j.name for j in robot.joints if self.implicit_springs[j.v_slice].any()]


def read_springs(plant: Plant, option: bool | Numbers) -> JointSprings:
    """The springs of the option `springs`.

    True means the model's springs, False none. A number, or nv of them, is the stiffness of linear
    springs with the model's rest positions.
    """
    if isinstance(option, bool | np.bool_) and not option:
        _warn_of_loose_links(plant)
        return JointSprings()
    if plant.robot.has_loops and plant.is_robot:
        return _embedded_springs(plant, option)
    if len(plant.robot.rest) != plant.nv:
        raise StateError(
            "springs is given, but the system's velocities are not the joints'",
            "give their torques by tau=",
        )
    if isinstance(option, bool | np.bool_):
        return _model_springs(plant.robot)
    stiffness = coefficients("springs", option, plant.nv)
    stiffness = _line_stiffness(plant.robot.joints, stiffness, is_row=np.asarray(option).ndim > 0)
    if not stiffness.any():
        return JointSprings()
    return JointSprings({"stiffness": stiffness, "rest": plant.robot.rest}, stiffness)


def _warn_of_loose_links(plant: Plant) -> None:
    """Warn if links are flexible and the springs of their modes do not act."""
    loose = [j.name for j in plant.robot.joints if j.modes is not None and j.shared is None]
    if loose:
        text = (
            f"{plant.name}: links bend ({', '.join(loose)}), but their stiffness does not act: "
            "give springs=True"
        )
        warnings.warn(ModelWarning(text), stacklevel=caller_stacklevel())


def _embedded_springs(plant: Plant, option: bool | Numbers) -> JointSprings:
    """The model's springs, with those of embedded loops."""
    if not isinstance(option, bool | np.bool_):
        raise StateError(
            f"springs is {shown(option)}, but joints of {plant.name} move together (pp.embed)",
            "give springs=True for the springs of the model, those of all joints of a loop; "
            "robot.with_spring sets them",
        )
    robot = plant.robot
    rigid = [cluster for cluster in robot.clusters if not cluster.modes]
    others = _model_springs(robot, without={k for cluster in rigid for k in cluster.bodies})
    if not embedded_loop_forces.has_loop_forces(robot, "springs"):
        return others
    switch = np.ones(1)
    rows = others.active or {"stiffness": np.zeros(robot.nv), "rest": np.zeros(robot.nv)}
    slope = embedded_loop_forces.max_slope_bound(robot, loop_springs=switch)
    slope = (others.max_slope if len(others.max_slope) else 0.0) + slope
    return JointSprings(rows | {"loop_springs": switch}, slope)


def _line_stiffness(joints: Iterable[Joint], stiffness: np.ndarray, is_row: bool) -> np.ndarray:
    """Stiffness of revolute and prismatic joints. Of nv numbers (`is_row`), those of joints that
    turn in space must be zero; one number for all does not apply to them."""
    turning = [joint for joint in joints if not joint.row.is_flat]
    wrong = [joint.name for joint in turning if stiffness[joint.v_slice].any()]
    if is_row and wrong:
        raise StateError(
            f"springs has a stiffness for joint {wrong[0]!r}, which turns in space",
            "give 0 there: only revolute and prismatic joints have springs",
        )
    for joint in turning:
        stiffness[joint.v_slice] = 0.0
    return stiffness


def _model_springs(robot: Robot, without: Collection[int] = ()) -> JointSprings:
    """The springs of the model, except those of the joints with the indices `without`."""
    mask = parameter_mask(robot, "stiffness")
    stiffness = model_values(robot, "stiffness")
    rows, slope = {"stiffness": stiffness, "rest": robot.rest}, np.zeros(robot.nv)
    for joint in robot.joints:
        if joint.shared is not None:
            continue
        columns = joint.v_slice
        if joint.index in without:
            stiffness[..., columns] = 0.0
            continue
        spring = joint.spring or NO_SPRING
        values = spring_values(stiffness[..., columns], joint.rest, spring)
        stiffness[..., columns] = values.pop("stiffness")
        del values["rest"]
        for name, x in values.items():
            rows.setdefault(name, np.zeros(robot.nv))[columns] = x
        batch = stiffness[..., columns].reshape(-1, joint.row.nv)
        slope[columns] = _max_slope(joint, spring, batch.max(axis=0, initial=0.0))
    if len(rows) == 2 and not stiffness.any() and not mask.any():
        return JointSprings()
    return JointSprings(rows, np.maximum(slope, np.finfo(float).tiny * mask))


def _max_slope(joint: Joint, spring: Spring, stiffness: np.ndarray) -> Any:
    """The largest slope of a spring. That of a polynomial is taken within the joint's limits, at
    most pi rad or m from the rest position."""
    if spring.is_table:
        return [spring.max_slope]
    if not spring.polynomial:
        return stiffness
    rest = joint.rest[0]
    low, high = np.clip([joint.lower[0], joint.upper[0]], rest - np.pi, rest + np.pi)
    terms = {f"c{n}": c for n, c in enumerate(spring.polynomial, start=2)}
    return [spring_slope(np.linspace(low, high, 65), stiffness[0], rest, **terms).max()]
