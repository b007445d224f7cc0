"""Serial arms from Denavit-Hartenberg rows, in either convention.

    modified (Craig)    T(i-1, i) = Rot(x, alpha) Trans(x, a) Rot(z, theta) Trans(z, d)    link frame on the joint's axis
    standard (classic)  T(i-1, i) = Rot(z, theta) Trans(z, d) Trans(x, a) Rot(x, alpha)    link frame at the far end

A joint moves `theta` (revolute) or `d` (prismatic), and the row's own value is its offset: theta = q + theta_row. A standard
row is a modified row whose alpha and a are served one joint later, so both give bodies with frames on their joint axes; the
mass properties of standard rows are carried over exactly, and their far-end frames F(i) are kept as "link1_end", ....
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from psiphi.arguments import Numbers, frozen, one_of
from psiphi.errors import ModelError
from psiphi.model.builder import Builder
from psiphi.model.model import IDENTITY, Model, Pose
from psiphi.wording import nearest, shown

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
_FINITE = ("alpha", "a", "d", "theta", "mass", "armature", "damping", "friction", "stiffness", "rest")
_LIMITS = ("lower", "upper", "velocity", "effort")
_INERTIA = "give a 3x3 matrix, (ixx, ixy, ixz, iyy, iyz, izz) or (ixx, iyy, izz)"


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
    `Pose` or a 4x4 matrix in the last link's Denavit-Hartenberg frame, the identity unless given. `base` is "fixed", or a
    dict of mass, com and inertia: a free-flying body "base" on which the arm stands ("free": one without mass).

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
        builder.body(child, mass=link.mass, com=link.com, inertia=link.inertia)
        own = {key: getattr(link, key) for key in (*_LIMITS, "damping", "friction", "armature", "stiffness", "rest")}
        builder.joint(link.name or f"joint{index}", link.kind, parent, child, **_placed(link), **own)
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
        raise ModelError(f"base is {_seen(base)}", "give 'fixed', 'free' or a dict of mass, com and inertia", element="base")
    if base == "fixed":
        return "world"
    body = _checked(given, "base")
    builder.body("base", mass=body.mass, com=body.com, inertia=body.inertia)
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
    """Standard rows as modified ones: alpha and a move one joint on, F(i) = Z(i) Trans(x, a) Rot(x, alpha) carries the mass."""
    moved, ends = [], []
    alpha = a = 0.0
    for link in links:
        c, s = turn(link.alpha)
        R, p = end = Pose(frozen(_unsigned([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])), frozen([link.a, 0.0, 0.0]))
        moved.append(replace(link, alpha=alpha, a=a, com=R @ link.com + p, inertia=R @ link.inertia @ R.T))
        ends.append(end)
        alpha, a = link.alpha, link.a
    return moved, ends


def _listed(rows) -> list:
    if isinstance(rows, (str, bytes, Mapping, DH)) or not isinstance(rows, Iterable):
        raise ModelError(f"rows is {_seen(rows)}, expected a list of rows", "give one DH(...) or dict a link, base to tip")
    rows = list(np.atleast_1d(rows) if isinstance(rows, np.ndarray) else rows)
    if not rows:
        raise ModelError("rows is empty, expected at least one link", "give one DH(...) or dict a link, base to tip")
    return rows


def _checked(row, where: str) -> DH:
    """The row as a DH with plain floats, a 3-vector com and a 3x3 inertia; or an error that names the row and the field."""
    if isinstance(row, Mapping):
        row = DH(**{_known(key, where): value for key, value in row.items()})
    if not isinstance(row, DH):
        raise ModelError(
            f"the row is {_seen(row)}, expected a DH or a dict", "write DH(alpha=, a=, d=, theta=, ...)", element=where
        )
    one_of("kind", row.kind, KINDS, kind=partial(ModelError, element=where))
    if not (row.name is None or (isinstance(row.name, str) and row.name)):
        raise ModelError(f"name={row.name!r}, expected a non-empty string", "name the joint or leave name out", element=where)
    plain = {key: _number(getattr(row, key), key, where) for key in _FINITE}
    plain |= {key: _number(getattr(row, key), key, where, finite=False) for key in _LIMITS}
    com = _numbers(row.com, "com", where, ((3,),), "give x, y, z in the row's link frame")
    return DH(**plain, kind=row.kind, com=com, inertia=_inertia(row.inertia, where), name=row.name)


def _known(key, where: str) -> str:
    if key not in _FIELDS:
        raise ModelError(f"unknown field {key!r}", nearest(key, _FIELDS), element=where)
    return key


def _number(value, key: str, where: str, finite: bool = True) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ModelError(f"{key} is {_seen(value)}, expected a number", "give radians, metres or kilograms", element=where)
    try:
        value = float(value)
    except OverflowError:  # a whole number of more than 308 digits
        value = math.inf
    if math.isnan(value) or (finite and math.isinf(value)):
        raise ModelError(f"{key} is {value}, expected a {'finite ' if finite else ''}number", f"correct {key}", element=where)
    return value


def _numbers(value, key: str, where: str, shapes: tuple[tuple[int, ...], ...], remedy: str) -> np.ndarray:
    try:
        array = np.asarray(value)
        array = array.astype(float) if array.dtype.kind in "iuf" else np.array(None)
    except ValueError:  # ragged
        array = np.array(None)
    if array.shape not in shapes:
        raise ModelError(f"{key} is {_seen(value)}, expected {' or '.join(map(str, shapes))} numbers", remedy, element=where)
    if not np.isfinite(array).all():
        raise ModelError(f"{key} is {_seen(value)}, expected finite numbers", f"correct {key}", element=where)
    return array


def _inertia(value, where: str) -> np.ndarray:
    array = _numbers(value, "inertia", where, ((3, 3), (6,), (3,)), _INERTIA)
    if array.ndim == 2:
        return array
    xx, xy, xz, yy, yz, zz = array if array.size == 6 else (array[0], 0.0, 0.0, array[1], 0.0, array[2])
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _pose(tool) -> Pose:
    """A tool pose from None, a Pose or a 4x4 homogeneous matrix."""
    if tool is None:
        return IDENTITY
    if isinstance(tool, Pose):
        tool = tool.matrix
    matrix = _numbers(tool, "pose", "tool", ((4, 4),), "give a psiphi Pose or a 4x4 homogeneous matrix")
    rotation = matrix[:3, :3]
    rigid = np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6) and np.linalg.det(rotation) > 0
    if not rigid or not np.array_equal(matrix[3], [0, 0, 0, 1]):
        raise ModelError(
            "the matrix is not a rigid displacement", "its rows must be [R p; 0 0 0 1], R a rotation", element="tool"
        )
    return Pose(rotation, matrix[:3, 3])


def _seen(value) -> str:
    return f"{shown(value.tolist() if isinstance(value, np.ndarray) else value)} ({type(value).__name__})"
