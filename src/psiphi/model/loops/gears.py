"""Joints that follow others: what is given, read with care, and put in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import shown
from psiphi._util.validate import real
from psiphi.model.loops import contacts_and_loops
from psiphi.model.model import Model


@dataclass(frozen=True)
class Gear:
    """A joint that follows others: q(joint) = offset + Σ ratio q(leader).

    `leaders` maps names of joints to ratios, or to the coefficients (c₁, c₂, ...) of c₁ q + c₂ q² + ...

    >>> Gear("lifter", {"shaft": (0.1, 0.2)}).offset
    0.0
    """

    joint: str
    leaders: Mapping[str, Any]
    offset: float = 0.0
    name: str = ""


def checked(robot: Model, i: int, gear: Gear) -> Gear:
    """A gear whose joints are there, with one coordinate each, and whose numbers are numbers."""
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
            real(f"{what}, by {name}", ratio, (), "give a ratio, or coefficients c₁, c₂, ...")
        )
        if values.ndim != 1 or not np.isfinite(values).all():
            raise StateError(
                f"{what}: the ratio of {name} is {shown(ratio)}",
                "give a finite number, or coefficients",
            )
        terms[name] = tuple(values.tolist())
    offset = number(f"the offset of {what}", gear.offset)
    return Gear(
        gear.joint,
        terms,
        offset,
        contacts_and_loops.called(f"the name of {what}", gear.name) or f"gear of {gear.joint}",
    )


def in_order(gears: list[Gear]) -> list[Gear]:
    """Leaders before followers."""
    followers: dict[str, Gear] = {}
    for gear in gears:
        if gear.joint in followers:
            raise ModelError(f"joint {gear.joint} follows twice", "a joint follows one gear")
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
                f"the joints {names} follow each other in a circle",
                "leave one of them without a gear",
            )
        done += ready
        waiting = [g for g in waiting if g not in ready]
    return done


def number(what: str, value: Any) -> float:
    """One finite number, or a StateError."""
    array = real(what, value, (), "give a number")
    if array.ndim or not np.isfinite(array):
        raise StateError(f"{what} is {shown(value)}, expected a finite number", "give a number")
    return float(array)
