"""Pinocchio's model as a robot: joints a row a kind; bodies, frames, limits, rotors, reference configurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.text import shown
from psiphi.model.builder.builder import Builder
from psiphi.model.diagnostics import warn
from psiphi.model.editing.name_patterns import unused
from psiphi.model.joint_types import sizes
from psiphi.model.model import Model

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


class JointCounterpart(NamedTuple):
    """A kind of joint here, what its words are, which of Pinocchio's velocities each of ours is, and of a joint whose q is no
    vector how many of its first numbers are lengths."""

    kind: str
    words: Callable[[Any], dict[str, Any]] = lambda joint: {}
    order: tuple[int, ...] = (0,)
    lengths: int = 0


def _along(kind: str, axis: tuple[float, ...]) -> JointCounterpart:
    return JointCounterpart(kind, lambda joint: {"axis": axis})


ROWS: dict[str, JointCounterpart] = {
    **{
        f"JointModelR{name}": _along("revolute", axis)
        for name, axis in zip("XYZ", (X, Y, Z), strict=True)
    },
    **{
        f"JointModelRUB{name}": _along("continuous", axis)
        for name, axis in zip("XYZ", (X, Y, Z), strict=True)
    },
    **{
        f"JointModelP{name}": _along("prismatic", axis)
        for name, axis in zip("XYZ", (X, Y, Z), strict=True)
    },
    **{
        f"JointModelH{name}": JointCounterpart(
            "helical", lambda joint, axis=axis: {"axis": axis, "pitch": joint.pitch}
        )
        for name, axis in zip("XYZ", (X, Y, Z), strict=True)
    },
    "JointModelRevoluteUnaligned": JointCounterpart("revolute", lambda joint: {"axis": joint.axis}),
    "JointModelRevoluteUnboundedUnaligned": JointCounterpart(
        "continuous", lambda joint: {"axis": joint.axis}
    ),
    "JointModelPrismaticUnaligned": JointCounterpart(
        "prismatic", lambda joint: {"axis": joint.axis}
    ),
    "JointModelHelicalUnaligned": JointCounterpart(
        "helical", lambda joint: {"axis": joint.axis, "pitch": joint.pitch}
    ),
    "JointModelUniversal": JointCounterpart(
        "universal", lambda joint: {"axis": joint.axis1, "axis2": joint.axis2}, (0, 1)
    ),
    "JointModelSpherical": JointCounterpart("spherical", order=(0, 1, 2)),
    "JointModelPlanar": JointCounterpart("planar", order=(2, 0, 1), lengths=2),
    "JointModelFreeFlyer": JointCounterpart("free", order=(3, 4, 5, 0, 1, 2), lengths=3),
}


def read_pinocchio(model: Any) -> Model:
    """The tree of a `pinocchio.Model`."""
    if not hasattr(model, "jointPlacements"):
        raise ModelError(
            f"{shown(model)} is no pinocchio.Model", "give pinocchio.buildModelFromUrdf(file), say"
        )
    builder = Builder(model.name or "pinocchio", gravity=np.array(model.gravity.linear))
    bodies = _bodies(model)
    for i in range(1, model.njoints):
        _add(builder, model, bodies, i)
    for frame in model.frames:
        _frame(builder, frame, bodies)
    for entry in model.referenceConfigurations:
        _posture(builder, model, entry.key(), np.array(entry.data()))
    built = builder.build()
    warn(built.report)
    return built


def _frame(builder: Builder, frame: Any, bodies: list[str]) -> None:
    """A frame; one that bears the name of a joint or a link elsewhere gets another name."""
    known, name, link = builder.joints.get(frame.name), frame.name, bodies[frame.parentJoint]
    if name in ("universe", "world"):
        return
    where = np.array(frame.placement.homogeneous)
    if (name == link or (known is not None and known.child == link)) and np.allclose(
        where, np.eye(4), rtol=0.0, atol=1e-14
    ):
        return  # psiphi's own
    name = unused(name, (*builder.links, *builder.joints, *builder.frames), "_frame")
    if name != frame.name:
        builder.note(
            f"is called {name!r}: there is a joint, link or frame of its name elsewhere",
            f"frame {frame.name!r}",
        )
    builder.frame(name, link, where[:3, 3], rotation=where[:3, :3])


def _bodies(model: Any) -> list[str]:
    """A link a joint: named as the body on it whose frame is the joint's, else as the joint."""
    names, taken = ["world"] + [""] * (model.njoints - 1), {"world", *model.names}
    for frame in model.frames:
        here = (
            frame.parentJoint and not names[frame.parentJoint] and frame.placement.isIdentity(1e-14)
        )
        if here and str(frame.type).endswith("BODY") and frame.name not in taken:
            names[frame.parentJoint] = frame.name
            taken.add(frame.name)
    for i, name in enumerate(names):
        if not name:
            names[i] = unused(f"{model.names[i]}_link", taken)
            taken.add(names[i])
    return names


def _add(builder: Builder, model: Any, bodies: list[str], i: int) -> None:
    """Joint i and its body."""
    name, joint = model.names[i], model.joints[i]
    row = ROWS.get(joint.shortname())
    if row is None:
        raise ModelError(
            f"joint {shown(name)} is a {joint.shortname()}, which psiphi has not",
            "build it of simple joints: a universal, or three revolute ones, say",
        )
    inertia, pose = model.inertias[i], np.array(model.jointPlacements[i].homogeneous)
    builder.body(bodies[i], inertia.mass, np.array(inertia.lever), np.array(inertia.inertia))
    v = [joint.idx_v + k for k in row.order]
    own: dict[str, Any] = {
        "velocity": _limit(model.velocityLimit, v),
        "effort": _limit(model.effortLimit, v),
        "damping": np.array(model.damping)[v],
        "friction": np.array(model.friction)[v],
        "armature": np.array(model.armature)[v],
    }
    q = [joint.idx_q + k for k in range(row.lengths if joint.nq != joint.nv else joint.nq)]
    for word, sign, limits in (
        ("lower", -1.0, model.lowerPositionLimit),
        ("upper", 1.0, model.upperPositionLimit),
    ):
        found = _limit(sign * np.array(limits), q)
        if np.isfinite(found).any():  # quaternions, and pairs of cosine and sine, have none
            own[word] = sign * np.append(found, np.full(sizes(row.kind)[0] - len(q), np.inf))
    words = {
        word: np.array(value) if np.ndim(value) else value
        for word, value in row.words(joint.extract()).items()
    }
    parent = bodies[model.parents[i]]
    builder.joint(
        name, row.kind, parent, bodies[i], pose[:3, 3], rotation=pose[:3, :3], **words, **own
    )


def _limit(values: Any, where: list[int]) -> np.ndarray:
    """Limits, the largest number being none."""
    found = np.array(values, dtype=float)[where]
    return np.where(found >= np.finfo(float).max, np.inf, found)


def _posture(builder: Builder, model: Any, name: str, q: np.ndarray) -> None:
    own = {}
    for i in range(1, model.njoints):
        joint = model.joints[i]
        mine = q[joint.idx_q : joint.idx_q + joint.nq].tolist()
        kind = ROWS[joint.shortname()].kind
        turned = {
            "continuous": lambda x: [np.arctan2(x[1], x[0])],
            "planar": lambda x: [x[0], x[1], np.arctan2(x[3], x[2])],
        }
        own[model.names[i]] = turned[kind](mine) if kind in turned else mine
    builder.posture(name, own)
