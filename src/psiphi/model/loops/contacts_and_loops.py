"""What the ways to a closed system are given, read with care: poses, directions, names, contacts and loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import positive, read
from psiphi.model.loops.closure_types import CONTACTS, KINDS, LOOPS, Constants
from psiphi.model.loops.constraints import Constraint, Friction
from psiphi.model.model import Model


@dataclass(frozen=True)
class Contact:
    """How an arm touches the object: "rigid", "line" (axis), "soft" (normal), "point" or "sliding" (normal); axes in the grasp
    frame.

    With `friction` the contact is one-sided: it pushes along `normal` (into the object) and holds sideways up to friction
    times that; `torsion` (metres) bounds the moment about the normal likewise. A sliding contact holds nothing sideways: with
    friction=0 it is one-sided. Where they open and close, `restitution` (0 to 1) is the part of the speed a blow gives back.
    """

    kind: str
    axis: Any = None
    normal: Any = None
    friction: float | None = None
    torsion: float | None = None
    restitution: float = 0.0


@dataclass(frozen=True)
class Loop:
    """Two frames held together: kind "weld", "ball", "hinge", "universal", "cylindrical", "planar", "sliding", "rough",
    "distance".

    `first` and `second` are frame names of the system ("world" for the world). `axis` is in axes of the second frame (of a
    plane, and of what slides on one: its normal), `axis2` of a universal in axes of the first; `length` is the distance kept.
    A sliding loop with friction=0 is one-sided: the first frame stays on the side to which the normal points. A rough one, a
    point that does not slide on its plane, is one-sided with friction=mu. Where these open and close, `restitution` (0 to 1) is
    the part of its speed a blow gives back.
    """

    kind: str
    first: str
    second: str
    axis: Any = None
    axis2: Any = None
    length: float | None = None
    name: str = ""
    friction: float | None = None
    restitution: float = 0.0


def called(what: str, value) -> str:
    """One name."""
    if not isinstance(value, str):
        raise StateError(f"{what} is {shown(value)}, expected text", "leave it out, or give a name")
    return value


def unit(what: str, axis) -> list[float]:
    """The direction, of length one."""
    array, fault = read(axis, (3,))
    length = 0.0 if fault or array.ndim != 1 else float(np.linalg.norm(array))
    if not 0.0 < length < np.inf:
        raise StateError(f"{what} has the axis {shown(axis)}", "give three numbers, not all zero")
    return (array / length).tolist()


def contact(i: int, given, first: str, second: str) -> Constraint:
    """The i-th contact of a grasp, between a hand and a grip."""
    what = f"contacts[{i}]"
    given = Contact(given) if isinstance(given, str) else given
    if not isinstance(given, Contact):
        raise StateError(f"{what} is {shown(given)}", f"give {', '.join(CONTACTS)} or a pp.Contact")
    if not isinstance(given.kind, str) or given.kind not in CONTACTS:
        raise StateError(f"{what} is of kind {shown(given.kind)}", nearest(given.kind, CONTACTS))
    kind = CONTACTS[given.kind]
    directed, word = "axis" in KINDS[kind].needs, KINDS[kind].along
    if given.axis is not None and not (directed and word == "axis"):
        having = " or ".join(
            name
            for name, k in CONTACTS.items()
            if "axis" in KINDS[k].needs and KINDS[k].along == "axis"
        )
        raise StateError(
            f"{what}, a {given.kind} contact, has the axis {shown(given.axis)}",
            f"only a {having} contact has one",
        )
    direction = getattr(given, word) if directed else None
    if directed and direction is None:
        raise StateError(
            f"{what} is a {given.kind} contact without {word}",
            f"pp.Contact({given.kind!r}, {word}=(0, 0, 1))",
        )
    shape = Constants.of() if direction is None else Constants.of(unit(what, direction))
    return Constraint(
        f"contact {i + 1}", kind, first, second, shape, _friction(what, given, KINDS[kind].slides)
    )


def _friction(what: str, given: Contact, slides: bool) -> Friction | None:
    if given.friction is None:
        if given.torsion is not None:
            raise StateError(
                f"{what} has torsion {shown(given.torsion)} and no friction",
                "give friction=, the coefficient mu",
            )
        return _no_bounce(what, given.restitution)
    bounces = _restitution(what, given.restitution)
    if slides:
        mu, fault = read(given.friction, ())
        if fault or mu.ndim or mu != 0.0 or given.torsion is not None:
            cause = f"{what}, a {given.kind} contact, has friction {shown(given.friction)} or torsion {shown(given.torsion)}"
            raise StateError(
                cause,
                "nothing holds it sideways: friction=0 makes it one-sided, a point contact holds",
            )
        return Friction(0.0, tuple(unit(what, given.normal)), restitution=bounces)
    mu = positive(
        f"the friction of {what}", given.friction, "give the coefficient mu, say friction=0.5"
    )
    if given.normal is None:
        raise StateError(
            f"{what} has friction and no normal",
            "a one-sided contact needs the normal along which it pushes the object",
        )
    torsion = given.torsion
    if torsion is not None:
        torsion = positive(
            f"the torsion of {what}", torsion, "give the length (metres) of moment over force"
        )
    return Friction(mu, tuple(unit(what, given.normal)), torsion, bounces)


def _restitution(what: str, value: Any) -> float:
    number, fault = read(value, ())
    if fault or number.ndim or not 0.0 <= number <= 1.0:
        raise StateError(
            f"the restitution of {what} is {shown(value)}, expected a number from 0 to 1",
            "say restitution=0.5",
        )
    return float(number)


def _no_bounce(what: str, value: Any) -> None:
    """What does not open does not bounce."""
    if _restitution(what, value):
        raise StateError(
            f"{what} has restitution {shown(value)} and no friction",
            "only what may open bounces: give friction=",
        )


def loop(i: int, given, forest: Model) -> Constraint:
    """The i-th loop of a system."""
    what = f"loops[{i}]"
    if not isinstance(given, Loop):
        raise StateError(
            f"{what} is {shown(given)}, expected a pp.Loop",
            'pp.Loop("weld", "frame", "other frame")',
        )
    if not isinstance(given.kind, str) or given.kind not in LOOPS:
        raise StateError(f"{what} is of kind {shown(given.kind)}", nearest(given.kind, LOOPS))
    _check_needs(what, given)
    first, second = forest.frame(given.first), forest.frame(given.second)
    if first.name == second.name:
        raise StateError(f"{what} holds {given.first} to itself", "name two frames")
    if first.body == second.body:
        raise StateError(
            f"{what}: {given.first} and {given.second} are on one body", "a loop joins two bodies"
        )
    length = 0.0
    if given.length is not None:
        length = positive(
            f"the distance {what} keeps", given.length, 'two points in one place are a "ball"'
        )
    axis = (0.0, 0.0, 1.0) if given.axis is None else unit(what, given.axis)
    axis2 = (1.0, 0.0, 0.0) if given.axis2 is None else unit(what, given.axis2)
    return Constraint(
        called(f"the name of {what}", given.name) or f"loop {i + 1}",
        given.kind,
        first.name,
        second.name,
        Constants.of(axis, axis2, length),
        _one_sided(what, given, axis),
    )


def spelled(held: Constraint) -> Loop:
    """A constraint as a loop again, for files."""
    one_sided = held.friction
    bounces, mu = (0.0, None) if one_sided is None else (one_sided.restitution, one_sided.mu)
    axis, axis2, length = held.shape.axis, held.shape.axis2, held.shape.length
    return Loop(
        held.kind, held.first, held.second, axis, axis2, length or None, held.name, mu, bounces
    )


def _one_sided(what: str, given: Loop, axis) -> Friction | None:
    """A point on a plane pushes it against its normal."""
    if given.friction is None:
        return _no_bounce(what, given.restitution)
    bounces, into = _restitution(what, given.restitution), tuple(-x for x in axis)
    mu, fault = read(given.friction, ())
    if given.kind == "rough":
        mu = positive(f"the friction of {what}", given.friction, "say friction=0.5")
        return Friction(mu, into, restitution=bounces)
    if given.kind != "sliding" or fault or mu.ndim or mu != 0.0:
        cause = f"{what}, a {given.kind}, has friction {shown(given.friction)}"
        raise StateError(
            cause,
            "friction=0 makes a sliding loop one-sided, friction=0.5 a rough one; no other loop is",
        )
    return Friction(0.0, into, restitution=bounces)


def _check_needs(what: str, given: Loop) -> None:
    """A kind has its constants, and no others."""
    needs = KINDS[given.kind].needs
    for name in ("axis", "axis2", "length"):
        value = getattr(given, name)
        if name in needs and value is None:
            raise StateError(
                f"{what}, a {given.kind}, has no {name}",
                f"pp.Loop({given.kind!r}, ..., {name}=...)",
            )
        if name not in needs and value is not None:
            takes = (
                f"it takes {' and '.join(needs)}" if needs else "it takes nothing but two frames"
            )
            raise StateError(
                f"{what}, a {given.kind}, has the {name} {shown(value)}", f"leave it out: {takes}"
            )
