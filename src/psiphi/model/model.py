"""`Model`: bodies, joints with `parent[k] < k`, and frames. Plain immutable data.

`components.py` has its parts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.array_types import Array, Numbers
from psiphi._util.deprecation import RenamedMember
from psiphi._util.errors import StateError
from psiphi._util.text import count_of, nearest, shown
from psiphi._util.validate import (
    batch_axes,
    frozen,
    generator,
    matching_names,
    one_of,
    real_array,
    whole_number,
)
from psiphi.model.components import (
    IDENTITY,
    WORLD,
    Body,
    Frame,
    Joint,
    Mimic,
    Pose,
    coordinate_range,
    entry_names,
    immutable,
    restore,
)
from psiphi.model.loops.cluster_joints import closed_configurations, joints_with_clusters
from psiphi.model.manifold import Manifold
from psiphi.model.motors import unactuated_joints, velocity_indices
from psiphi.model.named_parts import NamedParts, read_only

if TYPE_CHECKING:
    from psiphi.model.builder.records import Description
    from psiphi.model.loops.clusters import Cluster, Embedding
    from psiphi.model.parameters.free_parameters import FreeParameters, ParameterBlock

__all__ = [
    "IDENTITY",
    "WORLD",
    "Body",
    "Frame",
    "Joint",
    "Mimic",
    "Model",
    "Pose",
]  # Model and its parts
MAPPINGS = ("frames", "postures")
TINY = 1e-160  # its square underflows to 0


@immutable
@dataclass(frozen=True, eq=False)
class Model:
    """A tree or forest of bodies. Joint k carries body k, and parents come before children.

    Vectors of the joints' data (`lower`, `effort`, `damping`, ...) are in the order of q or v;
    missing limits are infinite, other missing data are zero.

    >>> from psiphi.model.builder.builder import Builder
    >>> b = Builder("pendulum")
    >>> b.body("rod", mass=1.0, com=(0, 0, -0.5))
    >>> b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
    >>> b.build().nv
    1
    """

    name: str
    bodies: NamedParts[Body]  # by number or name
    joints: NamedParts[Joint]
    frames: Mapping[str, Frame]
    gravity_vector: np.ndarray = field(default_factory=lambda: frozen((0.0, 0.0, -9.81)))
    report: tuple[str, ...] = ()
    postures: Mapping[str, np.ndarray] = field(default_factory=dict)  # named configurations
    description: Description | None = None  # the records it was built from, for editing
    freed: FreeParameters | None = None  # the numbers that are inputs (`free_parameters.py`)
    embedding: Embedding | None = None  # the joints of embedded loops (`clusters.py`)

    def __post_init__(self):
        self.__dict__.update(_with_names(self.__dict__))

    def __getstate__(self) -> dict:
        """The fields only; results that were cached or compiled are not pickled."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {
            name: dict(getattr(self, name)) for name in MAPPINGS
        }

    def __setstate__(self, state: dict) -> None:
        postures = {name: frozen(q) for name, q in state["postures"].items()}
        restore(self, state | _with_names(state | {"postures": postures}))

    @cached_property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.joints[-1].q_slice.stop if self.joints else 0

    @cached_property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return self.joints[-1].v_slice.stop if self.joints else 0

    @property
    def body_count(self) -> int:
        """The number of bodies, without the nodes of flexible links."""
        flexible = (cluster for cluster in self.clusters if cluster.modes)
        return len(self.bodies) - sum(len(cluster.bodies) for cluster in flexible)

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """(Internal use only) The embedded loops and the flexible links; () if there are none."""
        return () if self.embedding is None else self.embedding.clusters

    @property
    def has_loops(self) -> bool:
        """(Internal use only) Whether embedded loops make joints depend on others."""
        return not all(cluster.modes for cluster in self.clusters)

    def free_blocks(self, group: str) -> list[ParameterBlock]:
        """(Internal use only) The free parameters of a group, "mass" or "offsets" for instance."""
        return [] if self.freed is None else self.freed.blocks_of(group)

    @cached_property
    def manifold(self) -> Manifold:
        """The configuration manifold."""
        return Manifold(self.units)

    @cached_property
    def units(self) -> tuple[Any, ...]:
        """The joints, base to tip; the joints of an embedded loop count as one `ClusterJoint`."""
        return self.joints if self.embedding is None else tuple(joints_with_clusters(self))

    @cached_property
    def parent(self) -> tuple[int, ...]:
        """The parent of each body; -1 is the world."""
        return tuple(joint.parent for joint in self.joints)

    @cached_property
    def quaternions(self) -> tuple[int, ...]:
        """The index in q of the last number of each quaternion."""
        return tuple(
            joint.q_slice.stop - 1 for joint in self.joints if joint.row.nq != joint.row.nv
        )

    @cached_property
    def unit_vectors(self) -> tuple[tuple[str, slice], ...]:
        """(joint, its entries of q that have the norm 1): the last four, or fewer."""
        joints = [joint for joint in self.joints if joint.row.nq != joint.row.nv]
        starts = (max(joint.q_slice.start, joint.q_slice.stop - 4) for joint in joints)
        return tuple(
            (joint.name, slice(start, joint.q_slice.stop))
            for joint, start in zip(joints, starts, strict=True)
        )

    def check_nonzero_quaternions(self, name: str, q: np.ndarray) -> np.ndarray:
        """(Internal use only) q, or a StateError if a quaternion of a single q (nq,) is zero.

        In a batch, a zero quaternion is not an error; it gives NaN. `name` is the function.
        """
        if type(q) is not np.ndarray or q.shape[-1:] != (self.nq,):
            q = self.state_array("q", q, self.nq)
        for last in self.quaternions if q.ndim == 1 else ():
            if (
                -TINY < float(q[last]) < TINY
                and (q[last - 3 : last + 1].astype(float) ** 2).sum() == 0.0
            ):
                joint = next(joint for joint in self.joints if joint.q_slice.stop == last + 1)
                raise StateError(
                    f"{name}: the quaternion of joint {shown(joint.name)} is zero, not a rotation",
                    "robot.neutral() has unit quaternions; their order is x, y, z, w",
                )
        return q

    check_quaternions = RenamedMember("check_nonzero_quaternions")

    @property
    def mimics(self) -> dict[str, Mimic]:
        """The mimics of the joints that have one, by the joint's name."""
        return {joint.name: joint.mimic for joint in self.joints if joint.mimic is not None}

    def frame(self, name: str) -> Frame:
        """The frame called `name`, or an error with the nearest names."""
        if isinstance(name, str) and name in self.frames:
            return self.frames[name]
        raise StateError(f"no frame {shown(name)} on {self.name}", _name_remedy(name, self.frames))

    def joint(self, name: str) -> Joint:
        """The joint called `name`, or an error with the nearest names."""
        for joint in self.joints if isinstance(name, str) else ():
            if joint.name == name:
                return joint
        raise StateError(
            f"no joint {shown(name)} on {self.name}",
            _name_remedy(name, [j.name for j in self.joints]),
        )

    @cached_property
    def actuated(self) -> np.ndarray:
        """The indices in v of joints with motors: not free joints, nor joints with motor=False."""
        return np.setdiff1d(np.arange(self.nv), velocity_indices(self, unactuated_joints(self)))

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """The names of the moving joints, base to tip."""
        return tuple(joint.name for joint in self.joints if joint.shared is None)

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the entries of q: the joint's name, with a number if it has several entries."""
        return tuple(entry_names(self.joints, "q"))

    @cached_property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the entries of v, a and tau, as `coordinate_names`."""
        return tuple(entry_names(self.joints, "v"))

    @cached_property
    def lower(self) -> Array:
        """Lower limits of q (nq,); -inf for none."""
        return self._each("lower")

    @cached_property
    def upper(self) -> Array:
        """Upper limits of q (nq,); inf for none."""
        return self._each("upper")

    @cached_property
    def velocity_limit(self) -> Array:
        """Velocity limits (nv,); inf for none."""
        return self._each("velocity")

    velocity = RenamedMember("velocity_limit")

    @cached_property
    def effort(self) -> Array:
        """Torque and force limits (nv,); inf for none."""
        return self._each("effort")

    @cached_property
    def damping(self) -> Array:
        """Viscous damping (nv,). It acts if a call asks for it: `damping=True`."""
        return self._each("damping")

    @cached_property
    def friction(self) -> Array:
        """Dry friction (nv,). It acts if a call asks for it: `friction=True`."""
        return self._each("friction")

    @cached_property
    def armature(self) -> Array:
        """Rotor inertia (nv,). It always acts."""
        return self._each("armature")

    @cached_property
    def stiffness(self) -> Array:
        """Stiffness of the joints' springs (nv,); the slope at rest for a table.

        Springs act if a call asks for them: `springs=True`.
        """
        return self._each("stiffness")

    @cached_property
    def rest(self) -> Array:
        """Rest positions of the joints' springs (nv,)."""
        return self._each("rest")

    def select(
        self, joints: str | Iterable[str], of: str = "v"
    ) -> np.ndarray[Any, np.dtype[np.intp]]:
        """The indices of joints in v, or in q with `of="q"`, in the robot's order.

        `joints` are names, or patterns like "arm_*".

        >>> import psiphi as pp
        >>> robot = pp.load("g1")
        >>> robot.select("left_knee_*"), robot.select("left_knee_*", of="q")
        (array([9]), array([10]))
        >>> robot.effort[robot.select("left_hip_*")]
        array([ 88., 139.,  88.])
        """
        one_of("of", of, "qv", 'give of="q" for configurations')
        chosen = matching_names("joints", joints, self.joint_names, self.name)
        ranges = [coordinate_range(joint, of) for joint in self.joints if joint.name in set(chosen)]
        return np.array([i for entries in ranges for i in entries], dtype=np.intp)

    def _each(self, field: str) -> Array:
        """A field of all joints, concatenated."""
        return frozen(
            np.concatenate([np.zeros(0), *(getattr(joint, field) for joint in self.joints)])
        )

    def neutral(self) -> np.ndarray:
        """The configuration with every joint at zero; embedded loops as they were closed."""
        return self._neutral.copy()

    @cached_property
    def _neutral(self) -> np.ndarray:
        if self.embedding is not None:
            return self.embedding.neutral
        return self._by_joint(lambda row, j: np.asarray(row.neutral))

    def random(
        self,
        rng: np.random.Generator | int | None = None,
        size: tuple[int, ...] | int | None = None,
        *,
        seed: int | None = None,
    ) -> np.ndarray:
        """Random configurations (*size, nq), e.g. `random(size=10, seed=0)`.

        Angles are uniform in (-pi, pi), displacements in (-1, 1), both within limits; rotations are
        uniform. `random(5)` is an error, since 5 could be a seed or a size.
        """
        if seed is not None and rng is not None:
            raise StateError(f"rng is {shown(rng)} and seed is {shown(seed)}", "give one of them")
        source = generator(rng if seed is None else seed)
        if isinstance(rng, int | np.integer) and size is None:
            raise StateError(f"random({rng}) is ambiguous", f"pass seed={rng} or size={rng}")
        each = () if size is None else size if isinstance(size, tuple | list) else (size,)
        lead = tuple(whole_number("size", n) for n in each)
        try:
            q = self._by_joint(lambda row, j: row.random(source, lead, j.lower, j.upper), lead)
            return q if self.embedding is None else closed_configurations(self, q)
        except (ValueError, MemoryError) as error:
            raise StateError(
                f"size is {shown(size)}, which does not fit in memory", "make several calls"
            ) from error

    def integrate(self, q: Numbers, v: Numbers, dt: Numbers = 1.0) -> np.ndarray:
        """q moved at the constant velocity v for the time dt, on the configuration manifold.

        dt is a number, or an array over the batch.
        """
        q, v = (
            self.check_nonzero_quaternions("integrate", self.state_array("q", q, self.nq)),
            self.state_array("v", v, self.nv),
        )
        step = real_array("dt", dt, (), "give a number, or one for each batch element")
        lead = batch_axes("integrate", {"q": q.shape[:-1], "v": v.shape[:-1], "dt": step.shape})
        q, m = np.broadcast_to(q, (*lead, self.nq)), self.manifold
        return self._apply_law(
            "integrate", lambda q, v, h: m.exp(m.unit(q), h * v), q, v, step[..., None]
        )

    def difference(self, q0: Numbers, q1: Numbers) -> np.ndarray:
        """The velocity v with integrate(q0, v) = q1."""
        q0, q1 = (
            self.check_nonzero_quaternions("difference", self.state_array(name, q, self.nq))
            for name, q in (("q0", q0), ("q1", q1))
        )
        batch_axes("difference", {"q0": q0.shape[:-1], "q1": q1.shape[:-1]})
        return self._apply_law("difference", self.manifold.log, q0, q1)

    def rate(self, q: Numbers, v: Numbers) -> np.ndarray:
        """dq/dt = Omega(q) v (..., nq), S0 (b.5): v, except for quaternions and planar joints."""
        q, v = (
            self.check_nonzero_quaternions("rate", self.state_array("q", q, self.nq)),
            self.state_array("v", v, self.nv),
        )
        lead = batch_axes("rate", {"q": q.shape[:-1], "v": v.shape[:-1]})
        m, v = self.manifold, np.broadcast_to(v, (*lead, self.nv))
        return self._apply_law("rate", lambda q, v: np.array(m.rate(m.unit(q), v)), q, v)

    def velocity_of(self, q: Numbers, q_dot: Numbers) -> np.ndarray:
        """The velocity v (..., nv) of q_dot = dq/dt, S0 (b.3), the inverse of `rate`.

        The part of q_dot that changes a quaternion's norm is ignored.

        >>> import psiphi as pp
        >>> pp.robots.puma560().velocity_of([0.0] * 6, [1.0] * 6).tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
        """
        q, rate = (self.state_array(name, x, self.nq) for name, x in (("q", q), ("q_dot", q_dot)))
        lead = batch_axes("velocity_of", {"q": q.shape[:-1], "q_dot": rate.shape[:-1]})
        q, rate = (
            np.broadcast_to(x, (*lead, self.nq))
            for x in (self.check_nonzero_quaternions("velocity_of", q), rate)
        )
        m = self.manifold
        return self._apply_law(
            "velocity_of", lambda q, rate: np.array(m.velocity(m.unit(q), rate)), q, rate
        )

    def normalize(self, q: Numbers) -> np.ndarray:
        """q with its quaternions scaled to unit length."""
        q = self.check_nonzero_quaternions("normalize", self.state_array("q", q, self.nq))
        return self._apply_law("normalize", lambda q: self.manifold.unit(np.array(q)), q)

    def _apply_law(
        self, name: str, law: Callable[..., np.ndarray], *arrays: np.ndarray
    ) -> np.ndarray:
        """law(*arrays), for checked arrays; `Robot` overrides it with compiled functions."""
        return law(*arrays)

    def _by_joint(
        self, law: Callable[[Any, Joint], np.ndarray], lead: tuple[int, ...] = ()
    ) -> np.ndarray:
        """q (*lead, nq) with the entries law(row, joint) of each joint."""
        out = np.zeros((*lead, self.nq))
        for joint in self.joints:
            if joint.shared is None:
                out[..., joint.q_slice] = law(joint.row, joint)
        return out

    def state_array(self, name: str, value: Numbers, size: int) -> np.ndarray:
        """(Internal use only) `value` as float64 (..., size)."""
        return real_array(
            name, value, (size,), f"give {size} numbers in the last axis, for {self.name}"
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all data that the dynamics depend on; equal models have equal digests."""
        return _digest(self)

    def __hash__(self) -> int:
        return int(self.digest[:15], 16)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.digest == other.digest

    def __repr__(self) -> str:
        bodies = count_of(self.body_count, "body", "bodies")
        return f"<{type(self).__name__} {self.name!r}: {bodies}, nq={self.nq}, nv={self.nv}>"


def _with_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The bodies, joints, frames and postures of a model, to be read by name."""
    parts = {name: NamedParts(fields[name]) for name in ("bodies", "joints")}
    return parts | {name: read_only(name[:-1], fields[name]) for name in MAPPINGS}


def _name_remedy(name: object, known: Collection[str]) -> str:
    return nearest(name, known) if isinstance(name, str) else "give its name"


def _digest(model: Model) -> str:
    sha = hashlib.sha256(b"psiphi model 1")
    for body, joint in zip(model.bodies, model.joints, strict=True):
        sha.update(
            json.dumps([body.name, joint.name, joint.kind, joint.parent, joint.mimic]).encode()
        )
        numbers = (
            [body.mass, joint.pitch],
            body.com,
            body.inertia.ravel(),
            joint.pose.rotation.ravel(),
            joint.pose.translation,
            joint.axis,
            joint.axis2,
            joint.lower,
            joint.upper,
            joint.velocity,
            joint.effort,
            joint.damping,
            joint.friction,
            joint.armature,
        )
        sha.update(np.concatenate([np.asarray(x, dtype=float) for x in numbers]).tobytes())
        if joint.stiffness.any() or joint.rest.any() or joint.spring is not None or not joint.motor:
            sha.update(
                json.dumps(
                    [joint.stiffness.tolist(), joint.rest.tolist(), joint.spring, joint.motor]
                ).encode()
            )
        if joint.modes is not None:
            sha.update(json.dumps(joint.modes.key).encode())
    for frame in model.frames.values():
        sha.update(json.dumps([frame.name, frame.body]).encode())
        sha.update(frame.pose.rotation.tobytes() + frame.pose.translation.tobytes())
    sha.update(model.gravity_vector.tobytes())
    if model.freed is not None:
        sha.update(json.dumps(model.freed.key).encode())
    if model.embedding is not None:
        sha.update(model.embedding.key.encode())
    return sha.hexdigest()
