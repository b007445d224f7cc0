"""`pp.Contact` and `pp.Loop`, and the functions that check them and turn them into constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import positive_number, read_array
from psiphi.model.loops.closure_types import CONTACTS, KINDS, LOOPS, Constants
from psiphi.model.loops.constraints import Constraint, Friction
from psiphi.model.model import Model


@dataclass(frozen=True)
class Contact:
    """A contact of an arm with the object of a grasp.

    `kind` is "rigid", "line" (needs `axis`), "soft" (needs `normal`), "point" or "sliding" (needs
    `normal`); directions are in axes of the grasp frame. With `friction` the contact is one-sided:
    it pushes along `normal` (into the object), and its tangential force is at most `friction`
    times the normal force; `torsion` (metres) bounds the moment about the normal in the same way.
    A sliding contact has no tangential force; friction=0 makes it one-sided. For contacts that
    open and close, `restitution` (0 to 1) is the ratio of normal speeds after and before an
    impact.
    """

    kind: str
    axis: Numbers | None = None
    normal: Numbers | None = None
    friction: float | None = None
    torsion: float | None = None
    restitution: float = 0.0


@dataclass(frozen=True)
class Loop:
    """A joint between two frames that closes a loop.

    `kind` is "weld", "ball", "hinge", "universal", "cylindrical", "planar", "sliding", "rough" or
    "distance". `first` and `second` are frame names of the system ("world" for the world). `axis`
    is in axes of the second frame; for "planar", "sliding" and "rough" it is the normal of the
    plane. `axis2` of a universal joint is in axes of the first frame; `length` is the constant
    distance. A sliding loop with friction=0 is one-sided: the first frame stays on the side to
    which the normal points. A rough loop, a point that does not slide on its plane, is one-sided
    with friction=mu. For loops that open and close, `restitution` (0 to 1) is the ratio of normal
    speeds after and before an impact.
    """

    kind: str
    first: str
    second: str
    axis: Numbers | None = None
    axis2: Numbers | None = None
    length: float | None = None
    name: str = ""
    friction: float | None = None
    restitution: float = 0.0


def check_name(what: str, value: object) -> str:
    """The name `value`, or a StateError if it is not text."""
    if not isinstance(value, str):
        raise StateError(f"{what} is {shown(value)}, expected text", "leave it out, or give a name")
    return value


def unit_vector(what: str, axis: Numbers | None) -> list[float]:
    """`axis` normalized to length one."""
    array, fault = read_array(axis, (3,))
    length = 0.0 if fault or array.ndim != 1 else float(np.linalg.norm(array))
    if not 0.0 < length < np.inf:
        raise StateError(f"{what} has the axis {shown(axis)}", "give three numbers, not all zero")
    return (array / length).tolist()


def read_contact(i: int, value: str | Contact, first: str, second: str) -> Constraint:
    """Contact i of a grasp as a constraint between a hand frame and a grip frame."""
    what = f"contacts[{i}]"
    value = Contact(value) if isinstance(value, str) else value
    if not isinstance(value, Contact):
        raise StateError(f"{what} is {shown(value)}", f"give {', '.join(CONTACTS)} or a pp.Contact")
    if not isinstance(value.kind, str) or value.kind not in CONTACTS:
        raise StateError(f"{what} is of kind {shown(value.kind)}", nearest(value.kind, CONTACTS))
    kind = CONTACTS[value.kind]
    directed, word = "axis" in KINDS[kind].needs, KINDS[kind].along
    if value.axis is not None and not (directed and word == "axis"):
        having = " or ".join(
            name
            for name, k in CONTACTS.items()
            if "axis" in KINDS[k].needs and KINDS[k].along == "axis"
        )
        raise StateError(
            f"{what}, a {value.kind} contact, has the axis {shown(value.axis)}",
            f"only a {having} contact has one",
        )
    direction = getattr(value, word) if directed else None
    if directed and direction is None:
        raise StateError(
            f"{what} is a {value.kind} contact without {word}",
            f"pp.Contact({value.kind!r}, {word}=(0, 0, 1))",
        )
    shape = Constants.of() if direction is None else Constants.of(unit_vector(what, direction))
    return Constraint(
        f"contact {i + 1}", kind, first, second, shape, _friction(what, value, KINDS[kind].slides)
    )


def _friction(what: str, value: Contact, slides: bool) -> Friction | None:
    if value.friction is None:
        if value.torsion is not None:
            raise StateError(
                f"{what} has torsion {shown(value.torsion)} and no friction",
                "give friction=, the coefficient mu",
            )
        return _check_no_restitution(what, value.restitution)
    restitution = _restitution(what, value.restitution)
    if slides:
        mu, fault = read_array(value.friction, ())
        if fault or mu.ndim or mu != 0.0 or value.torsion is not None:
            raise StateError(
                f"{what}, a {value.kind} contact, has friction {shown(value.friction)} "
                f"or torsion {shown(value.torsion)}",
                "it has no tangential force: use friction=0 (one-sided) or a point contact",
            )
        return Friction(0.0, tuple(unit_vector(what, value.normal)), restitution=restitution)
    mu = positive_number(
        f"the friction of {what}", value.friction, "give the coefficient mu, e.g. friction=0.5"
    )
    if value.normal is None:
        raise StateError(
            f"{what} has friction and no normal",
            "a one-sided contact needs the normal along which it pushes the object",
        )
    torsion = value.torsion
    if torsion is not None:
        torsion = positive_number(
            f"the torsion of {what}", torsion, "give the ratio of moment to force, in metres"
        )
    return Friction(mu, tuple(unit_vector(what, value.normal)), torsion, restitution)


def _restitution(what: str, value: object) -> float:
    number, fault = read_array(value, ())
    if fault or number.ndim or not 0.0 <= number <= 1.0:
        raise StateError(
            f"the restitution of {what} is {shown(value)}, expected a number from 0 to 1",
            "for example restitution=0.5",
        )
    return float(number)


def _check_no_restitution(what: str, value: object) -> None:
    """Check that a bilateral constraint has no restitution."""
    if _restitution(what, value):
        raise StateError(
            f"{what} has restitution {shown(value)} and no friction",
            "only a one-sided constraint can have restitution: give friction=",
        )


def read_loop(i: int, value: Loop, forest: Model) -> Constraint:
    """Loop i of a system as a constraint."""
    what = f"loops[{i}]"
    if not isinstance(value, Loop):
        raise StateError(
            f"{what} is {shown(value)}, expected a pp.Loop",
            'pp.Loop("weld", "frame", "other frame")',
        )
    if not isinstance(value.kind, str) or value.kind not in LOOPS:
        raise StateError(f"{what} is of kind {shown(value.kind)}", nearest(value.kind, LOOPS))
    _check_needs(what, value)
    first, second = forest.frame(value.first), forest.frame(value.second)
    if first.name == second.name:
        raise StateError(f"{what} connects {value.first} to itself", "name two frames")
    if first.body == second.body:
        raise StateError(
            f"{what}: {value.first} and {value.second} are on one body", "a loop joins two bodies"
        )
    length = 0.0
    if value.length is not None:
        length = positive_number(
            f"the length of {what}", value.length, 'for two coincident points use "ball"'
        )
    axis = (0.0, 0.0, 1.0) if value.axis is None else unit_vector(what, value.axis)
    axis2 = (1.0, 0.0, 0.0) if value.axis2 is None else unit_vector(what, value.axis2)
    return Constraint(
        check_name(f"the name of {what}", value.name) or f"loop {i + 1}",
        value.kind,
        first.name,
        second.name,
        Constants.of(axis, axis2, length),
        _one_sided(what, value, axis),
    )


def as_loop(c: Constraint) -> Loop:
    """The loop of a constraint, for writing files."""
    restitution, mu = (0.0, None) if c.friction is None else (c.friction.restitution, c.friction.mu)
    axis, axis2, length = c.shape.axis, c.shape.axis2, c.shape.length or None
    return Loop(c.kind, c.first, c.second, axis, axis2, length, c.name, mu, restitution)


def _one_sided(what: str, value: Loop, axis: Sequence[float]) -> Friction | None:
    """The friction of a one-sided loop; its force on the plane is against the normal."""
    if value.friction is None:
        return _check_no_restitution(what, value.restitution)
    restitution, into = _restitution(what, value.restitution), tuple(-x for x in axis)
    mu, fault = read_array(value.friction, ())
    if value.kind == "rough":
        mu = positive_number(f"the friction of {what}", value.friction, "for example friction=0.5")
        return Friction(mu, into, restitution=restitution)
    if value.kind != "sliding" or fault or mu.ndim or mu != 0.0:
        cause = f"{what}, a {value.kind}, has friction {shown(value.friction)}"
        raise StateError(
            cause,
            "a sliding loop takes friction=0, a rough one e.g. friction=0.5; others take none",
        )
    return Friction(0.0, into, restitution=restitution)


def _check_needs(what: str, loop: Loop) -> None:
    """Check that a loop has the constants of its type, and no others."""
    needs = KINDS[loop.kind].needs
    for name in ("axis", "axis2", "length"):
        value = getattr(loop, name)
        if name in needs and value is None:
            raise StateError(
                f"{what}, a {loop.kind}, has no {name}",
                f"pp.Loop({loop.kind!r}, ..., {name}=...)",
            )
        if name not in needs and value is not None:
            takes = f"it takes {' and '.join(needs)}" if needs else "it takes only two frames"
            raise StateError(
                f"{what}, a {loop.kind}, has the {name} {shown(value)}", f"leave it out: {takes}"
            )
