"""What a model is made of besides bodies: poses, joints, frames. Plain immutable data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psiphi._util.validate import frozen
from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.joint_types import JointKind
from psiphi.model.mode_shapes import ModeShape, row_of
from psiphi.model.spatial.rotations import product

WORLD = -1  # the parent index of a body that hangs on the world


class Pose(NamedTuple):
    """A frame seen from another: x_outer = rotation @ x_inner + translation."""

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


class Immutable:
    """Data that never changes: a copy is the thing itself, and what comes out of a pickle is read-only again."""

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __setstate__(self, state: dict) -> None:
        for value in state.values():
            for array in value if isinstance(value, Pose) else (value,):
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False
        self.__dict__.update(state)


class Mimic(NamedTuple):
    """q = multiplier * q(joint) + offset: kept as data, acts only where a call asks for it."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True, eq=False)
class Joint(Immutable):
    """The joint that carries body `index`: `pose` is its frame in the parent's link frame, `axis` in the joint frame.

    Per coordinate: `lower`, `upper` (nq entries); `velocity`, `effort`, `damping`, `friction`, `armature`, `stiffness`, `rest`
    (nv entries). `spring` is what a spring has that is not linear; `motor` says whether anything drives the joint.
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
    modes: ModeShape | None = (
        None  # of a place on a body that bends; all its places move by the coordinates of the first,
    )
    shared: slice | None = (
        None  # which the others, without coordinates of their own, find here in q
    )

    @property
    def row(self) -> JointKind:
        return row_of(self.kind, self.modes)

    @property
    def coordinates(self) -> range:
        """Where its velocities stand in v."""
        return range(self.v_slice.start, self.v_slice.stop)

    @property
    def q_read(self) -> slice:
        """Where its motion's coordinates stand in q: its own, or those it shares."""
        return self.q_slice if self.shared is None else self.shared

    @property
    def canonical(self) -> Axes:
        return canonical_axes(self)


def way_to(parent: Sequence[int], body: int) -> list[int]:
    """The bodies from the world to one, itself last; none to the world."""
    way = []
    while body != WORLD:
        way.append(body)
        body = parent[body]
    return way[::-1]


def shared_way(parent: Sequence[int], bodies: Iterable[int]) -> list[int]:
    """Where the ways to all these bodies are one, from the world on."""
    shared = []
    for step in zip(*(way_to(parent, body) for body in bodies), strict=False):
        if len(set(step)) > 1:
            break
        shared.append(step[0])
    return shared


def children_of(parent: Sequence[int]) -> list[list[int]]:
    """Of each body those that hang on it."""
    found: list[list[int]] = [[] for _ in parent]
    for k, on in enumerate(parent):
        if on != WORLD:
            found[on].append(k)
    return found


def part_of(joint: Joint, of: str) -> range:
    """Where a joint's entries stand in q or in v."""
    own = joint.q_slice if of == "q" else joint.v_slice
    return range(own.start, own.stop)


def joint_at(joints: Iterable[Joint], k: int, of: str = "v") -> Joint:
    """The joint that has entry k of v, or of q."""
    return next(joint for joint in joints if k in part_of(joint, of))


def names_of_entries(joints: Iterable[Joint], of: str) -> list[str]:
    """Of the entries of q or v: a joint's name, numbered where it has several."""
    own = [(joint.name, len(part_of(joint, of))) for joint in joints]
    return [name if size == 1 else f"{name}.{i}" for name, size in own for i in range(size)]


@dataclass(frozen=True)
class Axes:
    """A joint's canonical axes: `before` carries the joint's motion (z along its first axis) in the joint frame, `after`
    the body's axes (z along its last axis) in the link frame; `twist` is (cos, sin) between a universal joint's two.

    What a row of the joint table asks of a joint, `pitch`, `twist` and `modes`, it may ask of these."""

    before: np.ndarray
    after: np.ndarray
    twist: tuple[float, float] = (1.0, 0.0)
    pitch: float = 0.0
    modes: ModeShape | None = None


def canonical_axes(joint: Joint) -> Axes:
    """z along the joint's axis; planar: x along `axis2`."""
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
    """A clean (cos, sin): unit length, multiples of 90 degrees exact."""
    size = math.hypot(c, s)
    c, s = c / size, s / size
    if abs(c) < 1e-15:
        return 0.0, math.copysign(1.0, s)
    if abs(s) < 1e-15:
        return math.copysign(1.0, c), 0.0
    return c, s


@dataclass(frozen=True, eq=False)
class Frame(Immutable):
    """A named place on body `body` (WORLD for the world): `pose` in that body's link frame."""

    name: str
    body: int
    pose: Pose


def second_moments(I: np.ndarray) -> np.ndarray:
    """J = tr(I) 1 / 2 - I."""
    return 0.5 * np.trace(I, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - I
