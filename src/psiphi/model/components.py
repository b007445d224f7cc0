"""The parts of a model: poses, bodies, joints, frames. Plain immutable data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import shown
from psiphi._util.validate import frozen, real_array
from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.joint_types import JointKind
from psiphi.model.mode_shapes import ModeShape, row_of
from psiphi.model.spatial.rotations import product

C = TypeVar("C", bound=Any)
WORLD = -1  # the parent index of a body whose parent is the world


class Pose(NamedTuple):
    """The pose of an inner frame in an outer one: x_outer = rotation @ x_inner + translation."""

    rotation: np.ndarray = frozen(np.eye(3))
    translation: np.ndarray = frozen(np.zeros(3))

    def __matmul__(self, other: Pose) -> Pose:
        rotation = product(self.rotation, other.rotation)
        return Pose(rotation, product(self.rotation, other.translation) + self.translation)

    @property
    def inv(self) -> Pose:
        return Pose(self.rotation.T, -product(self.rotation.T, self.translation))

    @property
    def matrix(self) -> np.ndarray:
        """The 4x4 homogeneous matrix."""
        top = np.column_stack([self.rotation, self.translation])
        return np.vstack([top, [0.0, 0.0, 0.0, 1.0]])


IDENTITY = Pose()


def immutable(cls: C) -> C:
    """Class decorator for immutable data: a copy is the object itself, and arrays stay read-only
    when it is unpickled."""
    cls.__copy__ = lambda self: self
    cls.__deepcopy__ = lambda self, memo: self
    if "__setstate__" not in vars(cls):
        cls.__setstate__ = restore
    return cls


def restore(instance: object, state: dict) -> None:
    """Set the attributes of an unpickled object, with read-only arrays."""
    for value in state.values():
        for array in value if isinstance(value, Pose) else (value,):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
    vars(instance).update(state)


def nonnegative_values(what: str, values: Numbers, count: int) -> np.ndarray:
    """`count` finite numbers of at least 0, as an array (count,)."""
    array = real_array(
        what, values, (count,), f"give {'a number' if count == 1 else f'{count} numbers'}"
    )
    if array.shape != (count,) or not ((array >= 0.0) & (array < 1e50)).all():
        expected = "a finite number" if count == 1 else f"{count} finite numbers"
        actual = shown(values[0] if count == 1 and isinstance(values, list) else values)
        raise ModelError(f"{what} is {actual}, expected {expected} of at least 0", "correct it")
    return array


class Solid(NamedTuple):
    """A homogeneous shape, centred at the centre of mass.

    `kind` is "box" with size (x, y, z), "sphere" with (radius,), "cylinder" or "capsule" with
    (radius, length) along z.
    """

    kind: str
    size: tuple[float, ...]


@immutable
@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body: mass, centre of mass in the link frame, inertia about it in link axes."""

    name: str = "object"
    mass: float = 0.0
    com: np.ndarray = field(default_factory=lambda: frozen((0.0, 0.0, 0.0)))
    inertia: np.ndarray = field(default_factory=lambda: frozen(np.zeros((3, 3))))
    solid: Solid | None = None  # the shape, if the body was made by one of the methods below

    @classmethod
    def box(
        cls, mass: float, size: Numbers, name: str = "box", com: Numbers = (0.0, 0.0, 0.0)
    ) -> Body:
        """A homogeneous box with edges `size` (x, y, z): m / 12 (y^2 + z^2, ..).

        >>> Body.box(12.0, (1, 2, 3)).inertia.diagonal().tolist()
        [13.0, 10.0, 5.0]
        """
        edges = nonnegative_values("size", size, 3)
        x, y, z = edges**2
        solid = Solid("box", tuple(edges.tolist()))
        return cls._of(solid, name, mass, com, (y + z) / 12.0, (x + z) / 12.0, (x + y) / 12.0)

    @classmethod
    def sphere(
        cls, mass: float, radius: float, name: str = "sphere", com: Numbers = (0.0, 0.0, 0.0)
    ) -> Body:
        """A homogeneous ball: 2/5 m r^2."""
        (r,) = nonnegative_values("radius", [radius], 1)
        return cls._of(Solid("sphere", (float(r),)), name, mass, com, *(0.4 * r * r,) * 3)

    @classmethod
    def cylinder(
        cls,
        mass: float,
        radius: float,
        length: float,
        name: str = "cylinder",
        com: Numbers = (0.0, 0.0, 0.0),
    ) -> Body:
        """A homogeneous cylinder along z: m (3 r^2 + l^2) / 12 across, m r^2 / 2 along."""
        (r,), (l,) = (
            nonnegative_values("radius", [radius], 1),
            nonnegative_values("length", [length], 1),
        )
        across = (3.0 * r * r + l * l) / 12.0
        return cls._of(
            Solid("cylinder", (float(r), float(l))), name, mass, com, across, across, 0.5 * r * r
        )

    @classmethod
    def capsule(
        cls,
        mass: float,
        radius: float,
        length: float,
        name: str = "capsule",
        com: Numbers = (0.0, 0.0, 0.0),
    ) -> Body:
        """A homogeneous cylinder along z with a hemisphere at each end; `length` is the cylinder's.

        >>> ball, capsule = Body.sphere(2.0, 0.1), Body.capsule(2.0, 0.1, 0.0)
        >>> bool(np.allclose(ball.inertia, capsule.inertia))
        True
        """
        (r,), (l,) = (
            nonnegative_values("radius", [radius], 1),
            nonnegative_values("length", [length], 1),
        )
        total = l + 4.0 / 3.0 * r  # volume / (pi r^2)
        share = l / total if total else 0.0  # the cylinder's share of the mass
        along = share * r * r / 2.0 + (1.0 - share) * 0.4 * r * r
        across = share * (3.0 * r * r + l * l) / 12.0 + (1.0 - share) * (
            0.4 * r * r + l * l / 4.0 + 0.375 * l * r
        )
        return cls._of(
            Solid("capsule", (float(r), float(l))), name, mass, com, across, across, along
        )

    @classmethod
    def _of(cls, solid: Solid, name: str, mass: float, com: Numbers, *moments: float) -> Body:
        """A body with principal moments `moments` per unit mass."""
        if not isinstance(name, str):
            raise ModelError(f"the body's name is {shown(name)}, expected text", "give it a name")
        (m,), c = (
            nonnegative_values("mass", [mass], 1),
            real_array("com", com, (3,), "give three numbers"),
        )
        if c.shape != (3,) or not np.isfinite(c).all():
            raise ModelError(f"com is {shown(com)}, expected three finite numbers", "give x, y, z")
        return cls(name, float(m), frozen(c), frozen(np.diag(moments) * m), solid)


class Mimic(NamedTuple):
    """q = multiplier * q(joint) + offset. Stored with the model; applied only on request."""

    joint: str
    multiplier: float
    offset: float


@immutable
@dataclass(frozen=True, eq=False)
class Joint:
    """The joint that carries body `index`.

    `pose` is the joint frame in the parent's link frame; `axis` is in the joint frame. `lower` and
    `upper` have nq entries; `velocity`, `effort`, `damping`, `friction`, `armature`, `stiffness`
    and `rest` have nv. `spring` is the nonlinear part of a spring, `motor` whether the joint has a
    motor.

    `modes` belongs to a node of a flexible body. The joint of its first node has the modal
    coordinates; the others have none of their own and read them from q at `shared`.
    """

    name: str
    kind: str
    index: int
    parent: int
    pose: Pose
    axis: np.ndarray
    axis2: np.ndarray
    pitch: float
    q_slice: slice
    v_slice: slice
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    damping: np.ndarray
    friction: np.ndarray
    armature: np.ndarray
    stiffness: np.ndarray
    rest: np.ndarray
    spring: Spring | None = None
    motor: bool = True
    mimic: Mimic | None = None
    modes: ModeShape | None = None
    shared: slice | None = None

    @property
    def row(self) -> JointKind:
        """The joint's row of the joint table."""
        return row_of(self.kind, self.modes)

    @property
    def coordinates(self) -> range:
        """The indices of its velocities in v."""
        return range(self.v_slice.start, self.v_slice.stop)

    @property
    def motion_slice(self) -> slice:
        """The slice of q that its motion depends on: its own coordinates, or the shared ones."""
        return self.q_slice if self.shared is None else self.shared

    @property
    def canonical(self) -> Axes:
        return canonical_axes(self)


def path_to_body(parent: Sequence[int], body: int) -> list[int]:
    """The bodies on the path from the world to `body`, which comes last; [] for the world."""
    path = []
    while body != WORLD:
        path.append(body)
        body = parent[body]
    return path[::-1]


def shared_path(parent: Sequence[int], bodies: Iterable[int]) -> list[int]:
    """The bodies that the paths from the world to all of `bodies` have in common."""
    shared = []
    for step in zip(*(path_to_body(parent, body) for body in bodies), strict=False):
        if len(set(step)) > 1:
            break
        shared.append(step[0])
    return shared


def bodies_between(parent: Sequence[int], bodies: Sequence[int]) -> set[int]:
    """The bodies on the paths between `bodies`: those from the world, less what they share."""
    paths = {k for body in bodies for k in path_to_body(parent, body)}
    return paths - set(shared_path(parent, bodies))


def children_of(parent: Sequence[int]) -> list[list[int]]:
    """The children of each body."""
    children: list[list[int]] = [[] for _ in parent]
    for k, p in enumerate(parent):
        if p != WORLD:
            children[p].append(k)
    return children


def coordinate_range(joint: Joint, of: str) -> range:
    """The indices of a joint's entries in q or v; `of` is "q" or "v"."""
    entries = joint.q_slice if of == "q" else joint.v_slice
    return range(entries.start, entries.stop)


def joint_of_entry(joints: Iterable[Joint], k: int, of: str = "v") -> Joint:
    """The joint that entry k of v, or of q, belongs to."""
    return next(joint for joint in joints if k in coordinate_range(joint, of))


def entry_names(joints: Iterable[Joint], of: str) -> list[str]:
    """Names of the entries of q or v: the joint's name, with a number if it has several entries."""
    sizes = [(joint.name, len(coordinate_range(joint, of))) for joint in joints]
    return [name if size == 1 else f"{name}.{i}" for name, size in sizes for i in range(size)]


@dataclass(frozen=True)
class Axes:
    """A joint's canonical axes: z along its axis.

    `before` are the axes in the joint frame (z along the first axis), `after` those in the link
    frame (z along the last axis). `twist` is (cos, sin) of the angle between the two axes of a
    universal joint. Rows of the joint table read `pitch`, `twist` and `modes` from here.
    """

    before: np.ndarray
    after: np.ndarray
    twist: tuple[float, float] = (1.0, 0.0)
    pitch: float = 0.0
    modes: ModeShape | None = None


def canonical_axes(joint: Joint) -> Axes:
    """The canonical axes: z along the joint's axis; x along `axis2` for a planar joint."""
    h1, h2 = np.asarray(joint.axis), np.asarray(joint.axis2)
    if joint.row.axes == 0:
        return Axes(np.eye(3), np.eye(3), pitch=joint.pitch, modes=joint.modes)
    if joint.row.axes == 1:
        Q = np.column_stack([h2, np.cross(h1, h2), h1])
        return Axes(Q, Q, pitch=joint.pitch)
    x = np.cross(h1, h2)
    twist = snap(float(h1 @ h2), float(np.linalg.norm(x)))
    x = x / np.linalg.norm(x)
    before, after = (
        np.column_stack([x, np.cross(h1, x), h1]),
        np.column_stack([x, np.cross(h2, x), h2]),
    )
    return Axes(before, after, twist, joint.pitch)


def snap(c: float, s: float) -> tuple[float, float]:
    """(cos, sin) of unit length, exact at multiples of 90 degrees."""
    size = math.hypot(c, s)
    c, s = c / size, s / size
    if abs(c) < 1e-15:
        return 0.0, math.copysign(1.0, s)
    if abs(s) < 1e-15:
        return math.copysign(1.0, c), 0.0
    return c, s


@immutable
@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame on body `body` (WORLD for the world); `pose` is in that body's link frame."""

    name: str
    body: int
    pose: Pose


def second_moments(I: np.ndarray) -> np.ndarray:
    """J = tr(I) 1 / 2 - I."""
    return 0.5 * np.trace(I, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - I
