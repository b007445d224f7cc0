"""Springs of joints, and which of them a step takes implicitly.

    s(y) = preload + k y + c2 y^2 + ... + sum_i bend_i max(y - knot_i, 0),    y = q - rest          what pulls a joint back
    U(y) = preload y + k y^2 / 2 + c2 y^3 / 3 + ... + sum_i bend_i max(y - knot_i, 0)^2 / 2         what it stores

`model/nonlinear.py` says where the numbers come from. A spring is firm where h^2 s'(y) (M^-1)_kk > GENTLE: it swings with more
than half a radian a step, of which explicit steps make a poor picture and, from two radians on, an explosion. Firm springs are
taken implicitly, by D + gamma^2 h^2 S in place of D (`rollouts/integrators.py`); what is firm depends on the model, the step
and the springs alone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from psiphi.arguments import coefficients
from psiphi.control.plant import Plant, numbers_of
from psiphi.errors import ModelWarning, StateError
from psiphi.model.log import outside
from psiphi.model.nonlinear import Spring
from psiphi.spatial.choices import less, most

GENTLE = 0.25  # of (h omega)^2
ALWAYS = ("implicit", "midpoint")  # methods that take every spring implicitly
NO_SPRING = Spring()


def pull(x: Any, stiffness: Any, rest: Any, **more: Any) -> Any:
    """s(y), on arrays of any scalars; `more` are preload, c2, c3, ..., and knot0, bend0, knot1, ..."""
    y = x - rest
    s = _horner(y, [stiffness, *_terms(more)]) + more.get("preload", 0.0)
    for knot, bend in _knots(more):
        s = s + bend * (less(knot, y) * (y - knot))
    return s


def firmness(x: Any, stiffness: Any, rest: Any, **more: Any) -> Any:
    """max(s'(y), 0)."""
    y = x - rest
    slope = stiffness + _horner(y, [n * c for n, c in enumerate(_terms(more), start=2)])
    for knot, bend in _knots(more):
        slope = slope + bend * less(knot, y)
    return most(slope, 0.0) if more else slope


def stored(x: Any, stiffness: Any, rest: Any, **more: Any) -> Any:
    """U(y) - U(0) of all joints together, (...)."""
    y = x - rest
    U = y * _horner(y, [c / n for n, c in enumerate([stiffness, *_terms(more)], start=2)]) + more.get("preload", 0.0) * y
    for knot, bend in _knots(more):
        past, none = most(y - knot, 0.0), most(-knot, 0.0)
        U = U + 0.5 * bend * (past * past - none * none)
    return U.sum(axis=-1)


def is_firm(method: str, h: Any, steepest: Any, mobility: Any) -> Any:
    """1 where a spring of that slope is taken implicitly, else 0; `mobility` is (M^-1)_kk."""
    there = less(0.0, steepest)
    return there if method in ALWAYS else there * less(GENTLE, h * h * steepest * mobility)


def _terms(more: dict[str, Any]) -> list[Any]:
    """c2, c3, ..."""
    return [c for name, c in more.items() if name[0] == "c"]


def _horner(y: Any, terms: list[Any]) -> Any:
    """y (terms[0] + y (terms[1] + ...))."""
    total = 0.0 * y
    for c in reversed(terms):
        total = (total + c) * y
    return total


def _knots(more: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(knot, more[f"bend{name[4:]}"]) for name, knot in more.items() if name.startswith("knot")]


@dataclass(frozen=True)
class Springs:
    """The numbers of all springs, rows of nv by name; `firm`: 1 where one is taken implicitly, else 0."""

    acting: dict[str, np.ndarray] = field(default_factory=dict)
    steepest: np.ndarray = field(default_factory=lambda: np.zeros(0))  # the largest slope within a table's range
    firm: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def implicit(self) -> bool:
        """Whether any is."""
        return bool(self.firm.any())

    def within(self, method: str, h: float, mobility: np.ndarray) -> Springs:
        """With `firm`, for steps of h by that method."""
        if not self.acting:
            return self
        with np.errstate(all="ignore"):
            return replace(self, firm=is_firm(method, h, self.steepest, mobility))

    def energy(self, x: np.ndarray) -> Any:
        """U of all, (...), at the coordinates x in the order of v."""
        return stored(x, **self.acting) if self.acting else 0.0

    def over_samples(self) -> Springs:
        """For samples (..., samples, nv): numbers with batch axes get one for them."""
        return replace(self, acting={name: x[..., None, :] if x.ndim > 1 else x for name, x in self.acting.items()})

    def words(self, robot: Any) -> list[str]:
        """The joints whose springs are taken implicitly."""
        return [joint.name for joint in robot.joints if self.implicit and self.firm[joint.v_slice].any()]


def read_springs(plant: Plant, given: Any) -> Springs:
    """True takes the model's springs, False none; a number or nv of them are stiffness about the model's rest."""
    if isinstance(given, bool | np.bool_) and not given:
        _limp(plant)
        return Springs()
    joints = plant.robot.joints
    if plant.robot.embedding is not None and plant.robot.embedding.loops:
        return _of_an_embedded_robot(plant, given)
    if sum(len(joint.stiffness) for joint in joints) != plant.nv:
        raise StateError("springs came, and the system's velocities are not the joints'", "give their torques by tau=")
    rest = _each(joints, lambda joint: joint.rest)
    if isinstance(given, bool | np.bool_):
        return _own(plant.robot, rest)
    stiffness = coefficients("springs", given, plant.nv)
    stiffness = _on_lines(joints, stiffness, np.ndim(given) > 0)
    return Springs({"stiffness": stiffness, "rest": rest}, stiffness) if stiffness.any() else Springs()


def _limp(plant: Plant) -> None:
    """A ModelWarning where links bend and nothing straightens them."""
    bends = [joint.name for joint in plant.robot.joints if joint.modes is not None and joint.shared is None]
    if bends:
        text = f"{plant.name}: links bend ({', '.join(bends)}), and their stiffness does not act: give springs=True"
        warnings.warn(ModelWarning(text), stacklevel=outside())


def _of_an_embedded_robot(plant: Plant, given: Any) -> Springs:
    """None: a spring there may stretch with joints that follow, and pulls at those that lead."""
    there = any(joint.stiffness.any() or joint.spring for joint in plant.robot.joints)
    if there or not isinstance(given, bool | np.bool_):
        cause = f"springs came, and joints of {plant.name} move together (pp.embed): springs do not act there"
        raise StateError(cause, "close the loops by pp.connect(robot, loops), where springs of all joints act")
    return Springs()


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


def _own(robot: Any, rest: np.ndarray) -> Springs:
    """Those of the model."""
    rows, steepest = {"stiffness": numbers_of(robot, "stiffness"), "rest": rest}, np.zeros(len(rest))
    for joint in robot.joints:
        if joint.shared is not None:
            continue
        own, spring = joint.v_slice, joint.spring or NO_SPRING
        numbers = {"preload": spring.preload} if spring.preload else {}
        numbers |= {f"c{n}": c for n, c in enumerate(spring.polynomial, start=2)}
        for i, (knot, bend) in enumerate(spring.bends):
            numbers |= {f"knot{i}": knot, f"bend{i}": bend}
        for name, x in numbers.items():
            rows.setdefault(name, np.zeros(len(rest)))[own] = x
        if spring.is_table:
            rows["stiffness"][..., own] = spring.slopes[0]
        stiffest = rows["stiffness"][..., own].reshape(-1, joint.row.nv).max(axis=0, initial=0.0)  # of all parameters
        steepest[own] = _steepest(joint, spring, stiffest)
    return Springs(rows, np.maximum(steepest, 0.0)) if len(rows) > 2 or rows["stiffness"].any() else Springs()


def _steepest(joint: Any, spring: Spring, stiffness: np.ndarray) -> Any:
    """The largest slope: of a polynomial within the joint's limits, or half a turn or metre either way where it has none."""
    if spring.is_table:
        return [max(spring.slopes)]
    if not spring.polynomial:
        return stiffness
    low, high = np.clip([joint.lower[0], joint.upper[0]], joint.rest[0] - np.pi, joint.rest[0] + np.pi)
    terms = {f"c{n}": c for n, c in enumerate(spring.polynomial, start=2)}
    return [firmness(np.linspace(low, high, 65), stiffness[0], joint.rest[0], **terms).max()]


def _each(joints: Any, row: Any) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(np.asarray(row(joint), dtype=float) for joint in joints)])
