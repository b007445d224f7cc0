"""`pp.Gear`: a joint that follows others; checks and order of gears."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import shown
from psiphi._util.validate import real_array
from psiphi.model.loops import contacts_and_loops
from psiphi.model.model import Model


@dataclass(frozen=True)
class Gear:
    """A joint that follows others: q(joint) = offset + Σ ratio q(leader).

    `leaders` maps names of joints to ratios, or to the coefficients (c₁, c₂, ...) of the polynomial
    c₁ q + c₂ q² + ...

    >>> Gear("lifter", {"shaft": (0.1, 0.2)}).offset
    0.0
    """

    joint: str
    leaders: Mapping[str, Numbers]
    offset: float = 0.0
    name: str = ""


def check_gear(robot: Model, i: int, gear: Gear) -> Gear:
    """Gear i with its numbers as floats, or an error if a joint or a number is not usable."""
    what = f"gear {i + 1}"
    if not isinstance(gear.leaders, Mapping) or not gear.leaders:
        raise StateError(
            f"{what}: leaders is {shown(gear.leaders)}",
            'name them with their ratios: {"motor": 0.01}',
        )
    terms = {}
    for name in (gear.joint, *gear.leaders):
        joint = robot.joint(name)
        if (joint.row.nq, joint.row.nv) != (1, 1):
            raise ModelError(
                f"{what}: joint {name} is {joint.kind}",
                "only joints of one coordinate can follow or lead",
            )
    for name, ratio in gear.leaders.items():
        values = np.atleast_1d(
            real_array(f"{what}, by {name}", ratio, (), "give a ratio, or coefficients c₁, c₂, ...")
        )
        if values.ndim != 1 or not np.isfinite(values).all():
            raise StateError(
                f"{what}: the ratio of {name} is {shown(ratio)}",
                "give a finite number, or coefficients",
            )
        terms[name] = tuple(values.tolist())
    offset = finite_number(f"the offset of {what}", gear.offset)
    return Gear(
        gear.joint,
        terms,
        offset,
        contacts_and_loops.check_name(f"the name of {what}", gear.name) or f"gear of {gear.joint}",
    )


def sort_gears(gears: list[Gear]) -> list[Gear]:
    """The gears ordered so that leaders come before followers."""
    followers: dict[str, Gear] = {}
    for gear in gears:
        if gear.joint in followers:
            raise ModelError(
                f"joint {gear.joint} is the follower of two gears", "give each follower one gear"
            )
        followers[gear.joint] = gear
    done: list[Gear] = []
    waiting = list(gears)
    while waiting:
        ready = [
            g
            for g in waiting
            if not any(l in followers and followers[l] in waiting for l in g.leaders)
        ]
        if not ready:
            names = ", ".join(g.joint for g in waiting)
            raise ModelError(
                f"the joints {names} follow each other in a cycle",
                "remove the gear of one of them",
            )
        done += ready
        waiting = [g for g in waiting if g not in ready]
    return done


def finite_number(what: str, value: float) -> float:
    """`value` as a finite float, or a StateError."""
    array = real_array(what, value, (), "give a number")
    if array.ndim or not np.isfinite(array):
        raise StateError(f"{what} is {shown(value)}, expected a finite number", "give a number")
    return float(array)
