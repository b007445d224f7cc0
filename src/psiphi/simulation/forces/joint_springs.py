"""Springs of joints, and which of them a step takes implicitly.

The law is in `spring_law.py`, that of springs of embedded loops in `embedded_loop_forces.py`. A spring is firm where h^2 s'(y) (M^-1)_kk >
GENTLE: it swings with more than half a radian a step, of which explicit steps make a poor picture and, from two radians on, an
explosion. Firm springs are taken implicitly, by D + gamma^2 h^2 S in place of D (`simulation/integration/integrators.py`); what is firm
depends on the model, the step and the springs alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from psiphi._util.errors import ModelWarning, StateError
from psiphi._util.text import shown
from psiphi._util.validate import coefficients
from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.diagnostics import outside
from psiphi.model.spatial.branch_free import less
from psiphi.simulation.forces import embedded_loop_forces
from psiphi.simulation.forces.spring_law import NO_SPRING, firmness, numbers, stored
from psiphi.simulation.plant import Plant, freed_among, numbers_of

GENTLE = 0.25  # of (h omega)^2
ALWAYS = ("implicit", "midpoint")  # methods that take every spring implicitly


def is_firm(method: str, h: Any, steepest: Any, mobility: Any) -> Any:
    """1 where a spring of that slope is taken implicitly, else 0; `mobility` is (M^-1)_kk."""
    there = less(0.0, steepest)
    return there if method in ALWAYS else there * less(GENTLE, h * h * steepest * mobility)


@dataclass(frozen=True)
class JointSprings:
    """The numbers of all springs, rows of nv by name; `firm`: 1 where one is taken implicitly, else 0."""

    acting: dict[str, np.ndarray] = field(default_factory=dict)
    steepest: np.ndarray = field(
        default_factory=lambda: np.zeros(0)
    )  # the largest slope within a table's range
    firm: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def implicit(self) -> bool:
        """Whether any is."""
        return bool(self.firm.any())

    def within(self, method: str, h: float, mobility: np.ndarray) -> JointSprings:
        """With `firm`, for steps of h by that method."""
        if not self.acting:
            return self
        with np.errstate(all="ignore"):
            return replace(self, firm=is_firm(method, h, self.steepest, mobility))

    def energy(self, m: Any, q: np.ndarray) -> Any:
        """U of all, (...), at q of the manifold m."""
        if not self.acting:
            return 0.0
        own = stored(m.positions(q), **self.acting)
        return own + embedded_loop_forces.energy(m, q) if "stretch" in self.acting else own

    def over_samples(self) -> JointSprings:
        """For samples (..., samples, nv): numbers with batch axes get one for them."""
        return replace(
            self,
            acting={name: x[..., None, :] if x.ndim > 1 else x for name, x in self.acting.items()},
        )

    def words(self, robot: Any) -> list[str]:
        """The joints whose springs are taken implicitly."""
        return [
            joint.name for joint in robot.joints if self.implicit and self.firm[joint.v_slice].any()
        ]


def read_springs(plant: Plant, given: Any) -> JointSprings:
    """True takes the model's springs, False none; a number or nv of them are stiffness about the model's rest."""
    if isinstance(given, bool | np.bool_) and not given:
        _limp(plant)
        return JointSprings()
    embedding = plant.robot.embedding
    if embedding is not None and embedding.loops and plant.is_plain:
        return _of_an_embedded_robot(plant, given)
    if len(plant.robot.rest) != plant.nv:
        raise StateError(
            "springs came, and the system's velocities are not the joints'",
            "give their torques by tau=",
        )
    if isinstance(given, bool | np.bool_):
        return _own(plant.robot)
    stiffness = coefficients("springs", given, plant.nv)
    stiffness = _on_lines(plant.robot.joints, stiffness, np.ndim(given) > 0)
    return (
        JointSprings({"stiffness": stiffness, "rest": plant.robot.rest}, stiffness)
        if stiffness.any()
        else JointSprings()
    )


def _limp(plant: Plant) -> None:
    """A ModelWarning where links bend and nothing straightens them."""
    bends = [
        joint.name
        for joint in plant.robot.joints
        if joint.modes is not None and joint.shared is None
    ]
    if bends:
        text = f"{plant.name}: links bend ({', '.join(bends)}), and their stiffness does not act: give springs=True"
        warnings.warn(ModelWarning(text), stacklevel=outside())


def _of_an_embedded_robot(plant: Plant, given: Any) -> JointSprings:
    """The model's own: those of joints outside loops as ever, those of loops by what they do to the free coordinates."""
    if not isinstance(given, bool | np.bool_):
        cause = f"springs is {shown(given)}, and joints of {plant.name} move together (pp.embed)"
        raise StateError(
            cause,
            "springs=True: the model's own act, those of all joints of a loop; robot.with_spring sets them",
        )
    robot = plant.robot
    inside = {
        k for cluster in robot.embedding.clusters if not cluster.modes for k in cluster.bodies
    }
    alone = _own(robot, inside)
    if not embedded_loop_forces.has(robot, "springs"):
        return alone
    stretch = np.ones(1)
    rows = alone.acting or {"stiffness": np.zeros(robot.nv), "rest": np.zeros(robot.nv)}
    steepest = (alone.steepest if len(alone.steepest) else 0.0) + embedded_loop_forces.steepest(
        robot, stretch=stretch
    )
    return JointSprings(rows | {"stretch": stretch}, steepest)


def _on_lines(joints: Any, stiffness: np.ndarray, said: bool) -> np.ndarray:
    """One number serves hinges and slides; of nv numbers those of joints that turn in space must be zero."""
    turning = [joint for joint in joints if not joint.row.is_flat]
    wrong = [joint.name for joint in turning if stiffness[joint.v_slice].any()]
    if said and wrong:
        cause = f"springs has a stiffness for joint {wrong[0]!r}, which turns in space"
        raise StateError(cause, "give 0 there: springs are of hinges and slides")
    for joint in turning:
        stiffness[joint.v_slice] = 0.0
    return stiffness


def _own(robot: Any, but: Collection[int] = ()) -> JointSprings:
    """Those of the model, but of some joints."""
    free = freed_among(robot, "stiffness")
    rows, steepest = (
        {"stiffness": numbers_of(robot, "stiffness"), "rest": robot.rest},
        np.zeros(robot.nv),
    )
    for joint in robot.joints:
        if joint.shared is not None:
            continue
        if joint.index in but:
            rows["stiffness"][..., joint.v_slice] = 0.0
            continue
        own, spring = joint.v_slice, joint.spring or NO_SPRING
        known = numbers(rows["stiffness"][..., own], joint.rest, spring)
        rows["stiffness"][..., own] = known.pop("stiffness")
        del known["rest"]
        for name, x in known.items():
            rows.setdefault(name, np.zeros(robot.nv))[own] = x
        stiffest = (
            rows["stiffness"][..., own].reshape(-1, joint.row.nv).max(axis=0, initial=0.0)
        )  # of all parameters
        steepest[own] = _steepest(joint, spring, stiffest)
    act = len(rows) > 2 or rows["stiffness"].any() or free.any()
    return (
        JointSprings(rows, np.maximum(steepest, np.finfo(float).tiny * free))
        if act
        else JointSprings()
    )


def _steepest(joint: Any, spring: Spring, stiffness: np.ndarray) -> Any:
    """The largest slope: of a polynomial within the joint's limits, or half a turn or metre either way where it has none."""
    if spring.is_table:
        return [spring.steepest]
    if not spring.polynomial:
        return stiffness
    low, high = np.clip(
        [joint.lower[0], joint.upper[0]], joint.rest[0] - np.pi, joint.rest[0] + np.pi
    )
    terms = {f"c{n}": c for n, c in enumerate(spring.polynomial, start=2)}
    return [firmness(np.linspace(low, high, 65), stiffness[0], joint.rest[0], **terms).max()]
