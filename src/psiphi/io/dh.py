"""Serial arms from Denavit-Hartenberg rows, in either convention.

    modified (Craig)    T(i-1, i) = Rot(x, alpha) Trans(x, a) Rot(z, theta) Trans(z, d)    link frame on the joint's axis
    standard (classic)  T(i-1, i) = Rot(z, theta) Trans(z, d) Trans(x, a) Rot(x, alpha)    link frame at the far end

A joint moves `theta` (revolute) or `d` (prismatic), and the row's own value is its offset: theta = q + theta_row. A standard
row is a modified row whose alpha and a are served one joint later, so both give bodies with frames on their joint axes; the
mass properties of standard rows are carried over exactly, and their far-end frames F(i) are kept as "link1_end", ....
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import frozen, one_of
from psiphi.model.builder import builder_values as values
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.pose_values import pose
from psiphi.model.model import IDENTITY, Model, Pose

KINDS = ("revolute", "continuous", "prismatic")
CONVENTIONS = ("modified", "standard")


@dataclass(frozen=True)
class DH:
    """One link and the joint that carries it: metres, radians, kilograms.

    `com` and `inertia` (about the centre of mass) are in the row's own link frame. `inertia` is a symmetric 3x3 matrix, its
    six entries (ixx, ixy, ixz, iyy, iyz, izz), or its diagonal. `armature` is the rotor's inertia seen at the joint.

    >>> DH(alpha=-1.5707963267948966, a=0.4318, d=0.15, mass=17.4, com=(0.068, 0.006, -0.016), name="shoulder").kind
    'revolute'
    """

    alpha: float = 0.0
    a: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    kind: str = "revolute"
    mass: float = 0.0
    com: Numbers = (0.0, 0.0, 0.0)
    inertia: Numbers = (0.0, 0.0, 0.0)
    armature: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf
    name: str | None = None


_FIELDS = tuple(f.name for f in fields(DH))
_OF_THE_JOINT = _FIELDS[
    _FIELDS.index("armature") : -1
]  # what the builder reads: all numbers behind the inertia


def from_dh(
    rows: Iterable[DH | Mapping[str, Any]],
    *,
    name: str = "arm",
    gravity: Numbers = (0.0, 0.0, -9.81),
    base: str | Mapping[str, Any] = "fixed",
    tool: Pose | Numbers | None = None,
    convention: str = "modified",
) -> Model:
    """The serial arm of Denavit-Hartenberg rows, base to tip: bodies "link1", "link2", ... and a frame "tool".

    A row is a `DH` or a dict of its fields; a row's `name` names its joint ("joint1", ... where it has none). `tool` is a
    `Pose`, a 4x4 matrix or (x, y, z) in the last link's Denavit-Hartenberg frame, the identity unless given. `base` is "fixed",
    or a dict of mass, com and inertia: a free-flying body "base" on which the arm stands ("free": one without mass).

    >>> from_dh([DH(mass=1.0, com=(0.5, 0, 0)), DH(a=1.0, mass=1.0, com=(0.5, 0, 0))], name="acrobot").nv
    2
    """
    links = [_checked(row, f"row {index}") for index, row in enumerate(_listed(rows), start=1)]
    ends = [IDENTITY] * len(links)
    if one_of("convention", convention, CONVENTIONS, kind=ModelError) == "standard":
        links, ends = _to_modified(links)

    builder = Builder(name, gravity=gravity)
    parent = _stand(builder, base)
    for index, (link, end) in enumerate(zip(links, ends, strict=True), start=1):
        child = f"link{index}"
        builder.body(
            child, mass=link.mass, com=link.com, inertia=link.inertia, rotation=end.rotation
        )
        own = {key: getattr(link, key) for key in _OF_THE_JOINT}
        builder.joint(
            link.name or f"joint{index}", link.kind, parent, child, **_placed(link), **own
        )
        if convention == "standard":
            builder.frame(f"{child}_end", child, xyz=end.translation, rotation=end.rotation)
        parent = child
    tip = ends[-1] @ _pose(tool)
    builder.frame("tool", parent, xyz=tip.translation, rotation=tip.rotation)
    return builder.build(base="free" if base != "fixed" else "fixed")


def _stand(builder: Builder, base) -> str:
    """The link that the first joint stands on: the world, or a free-flying base."""
    if isinstance(base, str) and base in ("fixed", "free"):
        given = {}
    elif isinstance(base, Mapping) and set(base) <= {"mass", "com", "inertia"}:
        given = base
    else:
        raise ModelError(
            f"base is {_seen(base)}",
            "give 'fixed', 'free' or a dict of mass, com and inertia",
            element="base",
        )
    if base == "fixed":
        return "world"
    builder.body("base", **given)
    return "base"


def turn(angle: float) -> tuple[float, float]:
    """(cos, sin) of an angle; quarter turns come out exact, so that zeros stay zeros."""
    return _snapped(math.cos(angle)), _snapped(math.sin(angle))


def _snapped(x: float) -> float:
    near = float(round(x))
    return near if abs(x - near) < 1e-15 else x


def _unsigned(values) -> np.ndarray:
    """The same numbers without negative zeros, so that equal arms have equal digests."""
    return np.array(values) + 0.0


def _placed(link: DH) -> dict:
    """The joint's frame in the parent link's: Rot(x, alpha) Trans(x, a) Rot(z, theta) Trans(z, d) at q = 0."""
    (ca, sa), (ct, st) = turn(link.alpha), turn(link.theta)
    rotation = [[ct, -st, 0.0], [ca * st, ca * ct, -sa], [sa * st, sa * ct, ca]]
    return {"xyz": _unsigned([link.a, -sa * link.d, ca * link.d]), "rotation": _unsigned(rotation)}


def _to_modified(links: list[DH]) -> tuple[list[DH], list[Pose]]:
    """Standard rows as modified ones: alpha and a move one joint on, F(i) = Z(i) Trans(x, a) Rot(x, alpha) carries the mass.

    The centre of mass moves with it; the inertia stays in the axes of F(i)."""
    moved, ends = [], []
    alpha = a = 0.0
    for link in links:
        c, s = turn(link.alpha)
        R, p = end = Pose(
            frozen(_unsigned([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])),
            frozen([link.a, 0.0, 0.0]),
        )
        moved.append(replace(link, alpha=alpha, a=a, com=R @ link.com + p))
        ends.append(end)
        alpha, a = link.alpha, link.a
    return moved, ends


def _listed(rows) -> list:
    if isinstance(rows, (str, bytes, Mapping, DH)) or not isinstance(rows, Iterable):
        raise ModelError(
            f"rows is {_seen(rows)}, expected a list of rows",
            "give one DH(...) or dict a link, base to tip",
        )
    rows = list(np.atleast_1d(rows) if isinstance(rows, np.ndarray) else rows)
    if not rows:
        raise ModelError(
            "rows is empty, expected at least one link",
            "give one DH(...) or dict a link, base to tip",
        )
    return rows


def _checked(row, where: str) -> DH:
    """The row as a DH whose place and com are plain floats, or an error that names the row and the field; the builder reads
    the rest."""
    if isinstance(row, Mapping):
        row = DH(**{_known(key, where): value for key, value in row.items()})
    if not isinstance(row, DH):
        raise ModelError(
            f"the row is {_seen(row)}, expected a DH or a dict",
            "write DH(alpha=, a=, d=, theta=, ...)",
            element=where,
        )
    one_of("kind", row.kind, KINDS, kind=partial(ModelError, element=where))
    if not (row.name is None or (isinstance(row.name, str) and row.name)):
        raise ModelError(
            f"name={row.name!r}, expected a non-empty string",
            "name the joint or leave name out",
            element=where,
        )

    def fail(cause: str, remedy: str) -> NoReturn:
        raise ModelError(cause, remedy, element=where)

    place = {
        key: values.number(getattr(row, key), key, fail) for key in ("alpha", "a", "d", "theta")
    }
    return replace(row, **place, com=values.triple(row.com, "com", fail))


def _known(key, where: str) -> str:
    if key not in _FIELDS:
        raise ModelError(f"unknown field {key!r}", nearest(key, _FIELDS), element=where)
    return key


def _pose(tool) -> Pose:
    try:
        return pose("the pose", tool)
    except StateError as error:
        raise ModelError(error.cause, error.remedy, element="tool") from None


def _seen(value) -> str:
    return f"{shown(value.tolist() if isinstance(value, np.ndarray) else value)} ({type(value).__name__})"
