"""Free parameters: numbers of a robot that are inputs of its functions instead of constants.

The parameters are one array (..., size) of blocks. A block is one group of numbers of one body (a
link, and the joint that carries it):

    inertia    m, m c (3), Ixx Ixy Ixz Iyy Iyz Izz about the link's origin, in link axes, as the
               columns of `robot.regressor`
    mass       m, at constant centre of mass and inertia about it
    com        the centre of mass in link axes (3), at constant mass and inertia about it
    armature   the joint's rotor inertia, one number for each velocity
    damping    the joint's damping, one number for each velocity
    stiffness  the stiffness of the joint's spring, one number for each velocity; none for a table
               or a joint that rotates in space
    offsets    x y z, roll pitch yaw of the joint frame in the parent's link frame,
               R = Rz(yaw) Ry(pitch) Rx(roll)

In the model these numbers are NaN, so that no code can use them by mistake, and so that robots that
differ only in them are equal and share compiled code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.array_types import AnyArray, AnyScalar
from psiphi._util.errors import StateError
from psiphi._util.validate import frozen
from psiphi.model.components import second_moments
from psiphi.model.inertias import point_mass_inertia
from psiphi.model.model import Body, Joint, Model, Pose

INERTIA = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
OFFSETS = ("x", "y", "z", "roll", "pitch", "yaw")
OF_COORDINATES = ("armature", "damping", "stiffness")  # one number for each velocity of a joint
UPPER_TRIANGLE = ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])  # rows and columns of Ixx .. Izz


class ParameterGroup(NamedTuple):
    """A group of numbers that can be free: their names, and their values in a model.

    `of_joint`: they are named after the joint, not the link.
    """

    names: Callable[[Joint], tuple[str, ...]]
    values: Callable[[Body, Joint], np.ndarray]
    of_joint: bool = False


def standard_parameters(body: Body) -> np.ndarray:
    """m, m c, and the inertia about the link's origin (10,)."""
    c = np.asarray(body.com)
    inertia = body.inertia + point_mass_inertia(body.mass, c)
    return np.concatenate([[body.mass], body.mass * c, inertia[UPPER_TRIANGLE]])


def offsets(pose: Pose) -> np.ndarray:
    """x y z, roll pitch yaw of a pose (6,)."""
    (r00, _, _), (r10, r11, r12), (r20, r21, r22) = pose.rotation.tolist()
    cos_pitch = math.hypot(r00, r10)
    roll, yaw = math.atan2(-r12, r11), 0.0  # gimbal lock: one of them is arbitrary
    if cos_pitch > 1e-12:
        roll, yaw = math.atan2(r21, r22), math.atan2(r10, r00)
    return np.array([*pose.translation, roll, math.atan2(-r20, cos_pitch), yaw])


def _coordinate_names(group: str) -> Callable[[Joint], tuple[str, ...]]:
    """One name for each velocity of a joint (in an embedded loop, for each free one)."""

    def names(joint: Joint) -> tuple[str, ...]:
        count = joint.v_slice.stop - joint.v_slice.start
        return (group,) if count == 1 else tuple(f"{group}.{i}" for i in range(count))

    return names


def _has_free_stiffness(joint: Joint) -> bool:
    """Whether the stiffness can be free: not for a table, nor for a joint that rotates in space."""
    return joint.row.is_flat and not (joint.spring is not None and joint.spring.is_table)


PARAMETER_GROUPS: dict[str, ParameterGroup] = {
    "inertia": ParameterGroup(lambda joint: INERTIA, lambda body, joint: standard_parameters(body)),
    "mass": ParameterGroup(lambda joint: ("mass",), lambda body, joint: np.array([body.mass])),
    "com": ParameterGroup(lambda joint: ("x", "y", "z"), lambda body, joint: np.asarray(body.com)),
    "armature": ParameterGroup(
        _coordinate_names("armature"), lambda body, joint: joint.armature, of_joint=True
    ),
    "damping": ParameterGroup(
        _coordinate_names("damping"), lambda body, joint: joint.damping, of_joint=True
    ),
    "stiffness": ParameterGroup(
        lambda joint: _coordinate_names("stiffness")(joint) if _has_free_stiffness(joint) else (),
        lambda body, joint: joint.stiffness if _has_free_stiffness(joint) else np.zeros(0),
        of_joint=True,
    ),
    "offsets": ParameterGroup(
        lambda joint: OFFSETS, lambda body, joint: offsets(joint.pose), of_joint=True
    ),
}


class ParameterBlock(NamedTuple):
    """The numbers of one group of the body with index `body`: parameters[start:stop]."""

    group: str
    body: int
    start: int
    stop: int

    @property
    def columns(self) -> slice:
        return slice(self.start, self.stop)


@dataclass(frozen=True, eq=False)
class FreeParameters:
    """The free parameters of a model in order, and the `nominal` model, which has their values."""

    blocks: tuple[ParameterBlock, ...]
    nominal: Model

    @property
    def size(self) -> int:
        return self.blocks[-1].stop

    @property
    def key(self) -> list:
        """The data that compiled code depends on: groups and bodies, without values."""
        return [[block.group, block.body] for block in self.blocks]

    @property
    def names(self) -> tuple[str, ...]:
        """ "forearm.m", "forearm.mx", ..., "elbow.armature"."""
        m, out = self.nominal, []
        for group, k, *_ in self.blocks:
            owner = m.joints[k].name if PARAMETER_GROUPS[group].of_joint else m.bodies[k].name
            out += [f"{owner}.{name}" for name in PARAMETER_GROUPS[group].names(m.joints[k])]
        return tuple(out)

    @property
    def values(self) -> np.ndarray:
        """The values in the nominal model (size,)."""
        m = self.nominal
        blocks = [
            PARAMETER_GROUPS[group].values(m.bodies[k], m.joints[k]) for group, k, *_ in self.blocks
        ]
        return frozen(np.concatenate(blocks))

    def parts(self, k: int, values: Sequence[AnyScalar] | AnyArray) -> dict[str, Any]:
        """{group: numbers} of body k, from all parameters (a list of scalars, or an array)."""
        return {block.group: values[block.columns] for block in self.blocks if block.body == k}

    def blocks_of(self, group: str) -> list[ParameterBlock]:
        return [block for block in self.blocks if block.group == group]


def nominal_model(model: Model) -> Model:
    """The model with the values of its free parameters; a model without any is returned itself."""
    return model if model.freed is None else model.freed.nominal


def free_fields(model: Model, groups: Iterable[str], bodies: Iterable[int]) -> dict[str, Any]:
    """The changed fields of the model if these groups of these bodies are free."""
    blocks, start = [], 0
    groups = list(groups)
    if "inertia" in groups and {"mass", "com"} & set(groups):
        raise StateError(
            "free: inertia is named with mass or com, which are part of it", "leave these out"
        )
    for group in groups:
        for k in bodies:
            _check_cluster(model, group, k)
            size = len(PARAMETER_GROUPS[group].values(model.bodies[k], model.joints[k]))
            blocks += [ParameterBlock(group, k, start, start + size)] if size else []
            start += size
    if not blocks:
        raise StateError(f"free: no numbers of {model.name} are selected", "name a moving link")
    free = {(block.group, block.body) for block in blocks}
    return {
        "bodies": tuple(
            _body_without_numbers(body, k, free) for k, body in enumerate(model.bodies)
        ),
        "joints": tuple(_joint_without_numbers(joint, free) for joint in model.joints),
        "freed": FreeParameters(tuple(blocks), model),
    }


def _check_cluster(model: Model, group: str, k: int) -> None:
    """Refuse groups that embedded loops cannot have.

    The springs of a loop act together, and the offsets of its joints decide how it closes.
    """
    cluster = next((c for c in model.clusters if k in c.bodies), None)
    if cluster is None or cluster.modes:
        return
    if (group == "offsets" and cluster.ties) or group == "stiffness":
        raise StateError(
            f"free: the {group} of joint {model.joints[k].name!r}, whose loop or gear is embedded, "
            "cannot be inputs",
            "name other links, or free them of the tree and close it: pp.connect(tree.free(...))",
        )


def _body_without_numbers(body: Body, k: int, free: set[tuple[str, int]]) -> Body:
    """The body with NaN for its free numbers."""
    com, inertia = frozen(np.full(3, np.nan)), frozen(np.full((3, 3), np.nan))
    if ("inertia", k) in free:
        return replace(body, mass=float("nan"), com=com, inertia=inertia)
    new: dict[str, Any] = {"mass": float("nan")} if ("mass", k) in free else {}
    return replace(body, **new, **({"com": com} if ("com", k) in free else {}))


def _joint_without_numbers(joint: Joint, free: set[tuple[str, int]]) -> Joint:
    """The joint with NaN for its free numbers."""
    new: dict[str, Any] = {
        group: frozen(np.full_like(getattr(joint, group), np.nan))
        for group in OF_COORDINATES
        if (group, joint.index) in free
    }
    if ("offsets", joint.index) in free:
        new["pose"] = Pose(frozen(np.full((3, 3), np.nan)), frozen(np.full(3, np.nan)))
    return replace(joint, **new) if new else joint


def mass_moments(body: Body, parts: dict[str, Any]) -> tuple[Any, list, list]:
    """(m, m c, J) about the link's origin, J = tr(I) 1 / 2 - I, on any scalars.

    `parts` are the free numbers of the body, which replace its own.
    """
    if "inertia" in parts:
        m, mx, my, mz, xx, xy, xz, yy, yz, zz = parts["inertia"]
        jz = 0.5 * (xx + yy - zz)
        return m, [mx, my, mz], [[yy - jz, -xy, -xz], [-xy, xx - jz, -yz], [-xz, -yz, jz]]
    (m,) = parts.get("mass", [body.mass])
    c = list(parts.get("com", body.com.tolist()))
    central = second_moments(body.inertia).tolist()
    J = [[central[i][j] + m * (c[i] * c[j]) for j in range(3)] for i in range(3)]
    return m, [m * x for x in c], J
