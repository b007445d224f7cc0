"""Serial arms from Denavit-Hartenberg rows, in the modified and the standard convention.

    modified (Craig)    T(i-1, i) = Rot(x, alpha) Trans(x, a) Rot(z, theta) Trans(z, d)
                        the link frame is on the axis of its joint
    standard (classic)  T(i-1, i) = Rot(z, theta) Trans(z, d) Trans(x, a) Rot(x, alpha)
                        the link frame is at the far end

The joint coordinate is added to `theta` (revolute) or `d` (prismatic): theta = q + theta_row. A
standard row is a modified row whose alpha and a belong to the next joint, so in both conventions
the link frames are on the joint axes. The mass properties of standard rows are transformed
exactly, and their far-end frames F(i) become the frames "link1_end", ....
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
from psiphi.model.builder.pose_values import read_pose
from psiphi.model.model import IDENTITY, Model, Pose

KINDS = ("revolute", "continuous", "prismatic")
CONVENTIONS = ("modified", "standard")


@dataclass(frozen=True)
class DH:
    """One link and its joint, in metres, radians and kilograms.

    `com` and `inertia` (about the center of mass) are in the link frame of the row. `inertia` is a
    symmetric 3x3 matrix, its six entries (ixx, ixy, ixz, iyy, iyz, izz), or its diagonal.
    `armature` is the inertia of the rotor, reflected to the joint.

    >>> DH(alpha=-1.57, a=0.4318, d=0.15, mass=17.4, com=(0.068, 0.006, -0.016)).kind
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
_JOINT_FIELDS = _FIELDS[_FIELDS.index("armature") : -1]  # the numbers after the inertia


def from_dh(
    rows: Iterable[DH | Mapping[str, Any]],
    *,
    name: str = "arm",
    gravity: Numbers = (0.0, 0.0, -9.81),
    base: str | Mapping[str, Any] = "fixed",
    tool: Pose | Numbers | None = None,
    convention: str = "modified",
) -> Model:
    """The serial arm of Denavit-Hartenberg rows, base to tip.

    Its bodies are "link1", "link2", ..., and it has a frame "tool". A row is a `DH` or a dict of
    its fields; `name` is the name of its joint (default "joint1", ...). `tool` is a `Pose`, a 4x4
    matrix or (x, y, z) in the Denavit-Hartenberg frame of the last link; the default is the
    identity. `base` is "fixed", "free" (a massless floating base), or a dict of mass, com and
    inertia of a floating base "base".

    >>> rows = [DH(mass=1.0, com=(0.5, 0, 0)), DH(a=1.0, mass=1.0, com=(0.5, 0, 0))]
    >>> from_dh(rows, name="acrobot").nv
    2
    """
    links = [_read_row(row, f"row {index}") for index, row in enumerate(_row_list(rows), start=1)]
    ends = [IDENTITY] * len(links)
    if one_of("convention", convention, CONVENTIONS, kind=ModelError) == "standard":
        links, ends = _to_modified(links)

    builder = Builder(name, gravity=gravity)
    parent = _add_base(builder, base)
    for index, (link, end) in enumerate(zip(links, ends, strict=True), start=1):
        child = f"link{index}"
        builder.body(
            child, mass=link.mass, com=link.com, inertia=link.inertia, rotation=end.rotation
        )
        properties = {key: getattr(link, key) for key in _JOINT_FIELDS}
        builder.joint(
            link.name or f"joint{index}",
            link.kind,
            parent,
            child,
            **_joint_frame(link),
            **properties,
        )
        if convention == "standard":
            builder.frame(f"{child}_end", child, xyz=end.translation, rotation=end.rotation)
        parent = child
    tip = ends[-1] @ _tool_pose(tool)
    builder.frame("tool", parent, xyz=tip.translation, rotation=tip.rotation)
    return builder.build(base="free" if base != "fixed" else "fixed")


def _add_base(builder: Builder, base: str | Mapping[str, Any]) -> str:
    """The parent link of the first joint: "world", or a floating base that is added."""
    if isinstance(base, str) and base in ("fixed", "free"):
        mass_properties = {}
    elif isinstance(base, Mapping) and set(base) <= {"mass", "com", "inertia"}:
        mass_properties = base
    else:
        raise ModelError(
            f"base is {_describe(base)}",
            "give 'fixed', 'free' or a dict of mass, com and inertia",
            element="base",
        )
    if base == "fixed":
        return "world"
    builder.body("base", **mass_properties)
    return "base"


def cos_sin(angle: float) -> tuple[float, float]:
    """(cos, sin) of an angle, exact for multiples of 90 degrees, so that zeros are exact."""
    return _exact_quarter_turn(math.cos(angle)), _exact_quarter_turn(math.sin(angle))


def _exact_quarter_turn(x: float) -> float:
    integer = float(round(x))
    return integer if abs(x - integer) < 1e-15 else x


def _unsigned(values: Sequence) -> np.ndarray:
    """The array without negative zeros, so that equal arms have equal digests."""
    return np.array(values) + 0.0


def _joint_frame(link: DH) -> dict:
    """The joint frame in the parent link: Rot(x, alpha) Trans(x, a) Rot(z, theta) Trans(z, d)."""
    (ca, sa), (ct, st) = cos_sin(link.alpha), cos_sin(link.theta)
    rotation = [[ct, -st, 0.0], [ca * st, ca * ct, -sa], [sa * st, sa * ct, ca]]
    return {"xyz": _unsigned([link.a, -sa * link.d, ca * link.d]), "rotation": _unsigned(rotation)}


def _to_modified(links: list[DH]) -> tuple[list[DH], list[Pose]]:
    """Standard rows as modified rows, and the far-end frames F(i) in the modified link frames Z(i).

    alpha and a move to the next joint: F(i) = Z(i) Trans(x, a) Rot(x, alpha). The center of mass is
    transformed to Z(i); the inertia stays in the axes of F(i).
    """
    rows, ends = [], []
    alpha = a = 0.0
    for link in links:
        c, s = cos_sin(link.alpha)
        R, p = end = Pose(
            frozen(_unsigned([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])),
            frozen([link.a, 0.0, 0.0]),
        )
        rows.append(replace(link, alpha=alpha, a=a, com=R @ link.com + p))
        ends.append(end)
        alpha, a = link.alpha, link.a
    return rows, ends


def _row_list(rows: object) -> list:
    """The rows as a list, not empty."""
    if isinstance(rows, (str, bytes, Mapping, DH)) or not isinstance(rows, Iterable):
        raise ModelError(
            f"rows is {_describe(rows)}, expected a list of rows",
            "give one DH(...) or dict per link, base to tip",
        )
    rows = list(np.atleast_1d(rows) if isinstance(rows, np.ndarray) else rows)
    if not rows:
        raise ModelError(
            "rows is empty, expected at least one link",
            "give one DH(...) or dict per link, base to tip",
        )
    return rows


def _read_row(row: object, where: str) -> DH:
    """The row as a DH with floats for alpha, a, d, theta and com; the builder checks the rest.

    Errors name the row and the field.
    """
    if isinstance(row, Mapping):
        row = DH(**{_check_field(key, where): value for key, value in row.items()})
    if not isinstance(row, DH):
        raise ModelError(
            f"the row is {_describe(row)}, expected a DH or a dict",
            "write DH(alpha=, a=, d=, theta=, ...)",
            element=where,
        )
    one_of("kind", row.kind, KINDS, kind=partial(ModelError, element=where))
    if not (row.name is None or (isinstance(row.name, str) and row.name)):
        raise ModelError(
            f"name={row.name!r}, expected a non-empty string",
            "give the joint a name or omit name",
            element=where,
        )

    def fail(cause: str, remedy: str) -> NoReturn:
        raise ModelError(cause, remedy, element=where)

    frame = {
        key: values.number(getattr(row, key), key, fail) for key in ("alpha", "a", "d", "theta")
    }
    return replace(row, **frame, com=values.triple(row.com, "com", fail))


def _check_field(key: object, where: str) -> str:
    if not isinstance(key, str) or key not in _FIELDS:
        raise ModelError(f"unknown field {key!r}", nearest(key, _FIELDS), element=where)
    return key


def _tool_pose(tool: Pose | Numbers | None) -> Pose:
    try:
        return read_pose("the pose", tool)
    except StateError as error:
        raise ModelError(error.cause, error.remedy, element="tool") from None


def _describe(value: object) -> str:
    """A value and its type, for messages."""
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    return f"{shown(plain)} ({type(value).__name__})"
