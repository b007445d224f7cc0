"""Numbers of a robot that are inputs and no constants: which they are, where they stand, and what they make of a body.

The parameters are one row of numbers, block after block; a block is a word and a body (a link, and the joint that carries it):

    inertia    m, m c (3), Ixx Ixy Ixz Iyy Iyz Izz about the link's origin, in link axes: the columns of `robot.regressor`
    mass       m; the centre of mass and the inertia about it stay
    com        the centre of mass in link axes (3); the mass and the inertia about that centre stay
    armature   the joint's rotor inertia, a number a velocity
    damping    the joint's damping, a number a velocity
    stiffness  the stiffness of the joint's spring, likewise; that of a table, or of a joint that turns in space, is none
    offsets    x y z, roll pitch yaw of the joint's frame in its parent's link frame, R = Rz(yaw) Ry(pitch) Rx(roll)

In the model itself they are NaN: what does not know them cannot take them for numbers, and robots that differ in them alone
are one, with one code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import frozen
from psiphi.model.components import second_moments
from psiphi.model.inertias import off_origin
from psiphi.model.model import Body, Joint, Model, Pose

INERTIA = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
PLACE = ("x", "y", "z", "roll", "pitch", "yaw")
OF_COORDINATES = ("armature", "damping", "stiffness")  # one number a velocity of a joint
UPPER = ([0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2])  # where the last six stand in a symmetric matrix


class ParameterGroup(NamedTuple):
    """A word for numbers that can be freed: their names, their values, and the model's bodies and joints without them."""

    names: Callable[[Joint], tuple[str, ...]]
    values: Callable[[Body, Joint], np.ndarray]
    of_joint: bool = False


def ten(body: Body) -> np.ndarray:
    """m, m c, and the inertia about the link's origin."""
    c = np.asarray(body.com)
    return np.concatenate(
        [[body.mass], body.mass * c, (body.inertia + off_origin(body.mass, c))[UPPER]]
    )


def offsets(pose: Pose) -> np.ndarray:
    """x y z, roll pitch yaw of a pose."""
    (r00, _, _), (r10, r11, r12), (r20, r21, r22) = pose.rotation.tolist()
    level = math.hypot(r00, r10)
    roll, yaw = (
        (math.atan2(r21, r22), math.atan2(r10, r00))
        if level > 1e-12
        else (math.atan2(-r12, r11), 0.0)
    )
    return np.array([*pose.translation, roll, math.atan2(-r20, level), yaw])


def _each(word: str) -> Callable[[Joint], tuple[str, ...]]:
    """One name a velocity; a joint of an embedded loop has those that are free."""

    def names(joint: Joint) -> tuple[str, ...]:
        count = joint.v_slice.stop - joint.v_slice.start
        return (word,) if count == 1 else tuple(f"{word}.{i}" for i in range(count))

    return names


def _is_linear(joint: Joint) -> bool:
    """Whether its stiffness is a number of its own: not that of a table, and not of a joint that turns in space."""
    return joint.row.is_flat and not (joint.spring is not None and joint.spring.is_table)


FREE: dict[str, ParameterGroup] = {
    "inertia": ParameterGroup(lambda joint: INERTIA, lambda body, joint: ten(body)),
    "mass": ParameterGroup(lambda joint: ("mass",), lambda body, joint: np.array([body.mass])),
    "com": ParameterGroup(lambda joint: ("x", "y", "z"), lambda body, joint: np.asarray(body.com)),
    "armature": ParameterGroup(
        _each("armature"), lambda body, joint: joint.armature, of_joint=True
    ),
    "damping": ParameterGroup(_each("damping"), lambda body, joint: joint.damping, of_joint=True),
    "stiffness": ParameterGroup(
        lambda joint: _each("stiffness")(joint) if _is_linear(joint) else (),
        lambda body, joint: joint.stiffness if _is_linear(joint) else np.zeros(0),
        of_joint=True,
    ),
    "offsets": ParameterGroup(
        lambda joint: PLACE, lambda body, joint: offsets(joint.pose), of_joint=True
    ),
}


class ParameterBlock(NamedTuple):
    """One word's numbers of body `index`: parameters[start : stop]."""

    word: str
    index: int
    start: int
    stop: int

    @property
    def own(self) -> slice:
        return slice(self.start, self.stop)


@dataclass(frozen=True, eq=False)
class FreeParameters:
    """What is free of a model, in order, and the `nominal` model they are numbers of."""

    blocks: tuple[ParameterBlock, ...]
    nominal: Model

    @property
    def size(self) -> int:
        return self.blocks[-1].stop

    @property
    def key(self) -> list:
        """What code depends on: the words and places, no numbers."""
        return [[block.word, block.index] for block in self.blocks]

    @property
    def names(self) -> tuple[str, ...]:
        """ "forearm.m", "forearm.mx", ..., "elbow.armature"."""
        m, found = self.nominal, []
        for word, k, *_ in self.blocks:
            on = m.joints[k].name if FREE[word].of_joint else m.bodies[k].name
            found += [f"{on}.{name}" for name in FREE[word].names(m.joints[k])]
        return tuple(found)

    @property
    def values(self) -> np.ndarray:
        """The numbers of the nominal model."""
        m = self.nominal
        return frozen(
            np.concatenate(
                [FREE[word].values(m.bodies[k], m.joints[k]) for word, k, *_ in self.blocks]
            )
        )

    def parts(self, k: int, values: Any) -> dict[str, Any]:
        """The words of body k that are free, and their shares of the parameters (a list of scalars, or an array)."""
        return {block.word: values[block.own] for block in self.blocks if block.index == k}

    def every(self, word: str) -> list[ParameterBlock]:
        return [block for block in self.blocks if block.word == word]


def nominal(model: Model) -> Model:
    """The model with all its numbers: itself, or what it was before some were free."""
    return model if model.freed is None else model.freed.nominal


def freed(model: Model, words: Iterable[str], bodies: Iterable[int]) -> dict[str, Any]:
    """The fields of the model with these words of these bodies as inputs."""
    blocks, at, nominal = [], 0, model
    words = list(words)
    if "inertia" in words and {"mass", "com"} & set(words):
        raise StateError(
            "free: inertia is named with mass or com, which are part of it", "leave these out"
        )
    for word in words:
        for k in bodies:
            _refuse_looped(model, word, k)
            size = len(FREE[word].values(nominal.bodies[k], nominal.joints[k]))
            blocks += [ParameterBlock(word, k, at, at + size)] if size else []
            at += size
    if not blocks:
        raise StateError(f"free: nothing of {model.name} is named", "name a link that moves")
    unknown = {(block.word, block.index) for block in blocks}
    return {
        "bodies": tuple(_hidden(body, k, unknown) for k, body in enumerate(model.bodies)),
        "joints": tuple(_unsaid(joint, unknown) for joint in model.joints),
        "freed": FreeParameters(tuple(blocks), nominal),
    }


def _refuse_looped(model: Model, word: str, k: int) -> None:
    """Where a loop is embedded, its joints' springs act together, and where its joints are says which postures close it."""
    cluster = (
        None
        if model.embedding is None
        else next((c for c in model.embedding.clusters if k in c.bodies), None)
    )
    if cluster is None or cluster.modes:
        return
    if (word == "offsets" and cluster.ties) or word == "stiffness":
        cause = f"free: the {word} of joint {model.joints[k].name!r}, whose loop or gear is embedded, cannot be inputs"
        raise StateError(
            cause,
            "name other links, or free them of the tree and close it: pp.connect(tree.free(...))",
        )


def _hidden(body: Body, k: int, unknown: set[tuple[str, int]]) -> Body:
    """The body without the numbers that are free."""
    nothing, none = frozen(np.full(3, np.nan)), frozen(np.full((3, 3), np.nan))
    if ("inertia", k) in unknown:
        return replace(body, mass=float("nan"), com=nothing, inertia=none)
    new: dict[str, Any] = {"mass": float("nan")} if ("mass", k) in unknown else {}
    return replace(body, **new, **({"com": nothing} if ("com", k) in unknown else {}))


def _unsaid(joint: Joint, unknown: set[tuple[str, int]]) -> Joint:
    new: dict[str, Any] = {
        word: frozen(np.full_like(getattr(joint, word), np.nan))
        for word in OF_COORDINATES
        if (word, joint.index) in unknown
    }
    if ("offsets", joint.index) in unknown:
        new["pose"] = Pose(frozen(np.full((3, 3), np.nan)), frozen(np.full(3, np.nan)))
    return replace(joint, **new) if new else joint


def moments(body: Body, parts: dict[str, Any]) -> tuple[Any, list, list]:
    """(m, m c, J) about the link's origin, of any scalars: the free numbers in place of the body's. J = tr(I) 1 / 2 - I."""
    if "inertia" in parts:
        m, mx, my, mz, xx, xy, xz, yy, yz, zz = parts["inertia"]
        jz = 0.5 * (xx + yy - zz)
        return m, [mx, my, mz], [[yy - jz, -xy, -xz], [-xy, xx - jz, -yz], [-xz, -yz, jz]]
    (m,) = parts.get("mass", [body.mass])
    c = list(parts.get("com", body.com.tolist()))
    about = second_moments(body.inertia).tolist()
    return (
        m,
        [m * x for x in c],
        [[about[i][j] + m * (c[i] * c[j]) for j in range(3)] for i in range(3)],
    )
