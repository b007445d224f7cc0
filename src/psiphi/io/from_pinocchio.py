"""Reader of Pinocchio models: joints, bodies, frames, limits, reference configurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.text import shown
from psiphi.io.peer_models import PinFrame, PinModel
from psiphi.model.builder.builder import Builder
from psiphi.model.diagnostics import emit_warning
from psiphi.model.editing.name_patterns import unused_name
from psiphi.model.joint_types import joint_sizes
from psiphi.model.model import Model

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


class JointCounterpart(NamedTuple):
    """The psiphi joint type of a Pinocchio joint type."""

    kind: str
    options: Callable[[Any], dict[str, Any]] = lambda joint: {}  # of `Builder.joint`
    order: tuple[int, ...] = (0,)  # Pinocchio's index of each velocity
    lengths: int = 0  # number of leading lengths in q, if q is not a vector space


def _axis_row(kind: str, axis: tuple[float, ...]) -> JointCounterpart:
    """The row of a joint type with a fixed axis."""
    return JointCounterpart(kind, lambda joint: {"axis": axis})


ROWS: dict[str, JointCounterpart] = {
    **{
        f"JointModelR{name}": _axis_row("revolute", axis)
        for name, axis in zip("XYZ", (X, Y, Z), strict=True)
    },
    **{
        f"JointModelRUB{name}": _axis_row("continuous", axis)
        for name, axis in zip("XYZ", (X, Y, Z), strict=True)
    },
    **{
        f"JointModelP{name}": _axis_row("prismatic", axis)
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


def read_pinocchio(model: PinModel) -> Model:
    """The psiphi model of a `pinocchio.Model`."""
    if not hasattr(model, "jointPlacements"):
        raise ModelError(
            f"{shown(model)} is not a pinocchio.Model",
            "give a model, e.g. pinocchio.buildModelFromUrdf(file)",
        )
    builder = Builder(model.name or "pinocchio", gravity=np.array(model.gravity.linear))
    bodies = _body_names(model)
    for i in range(1, model.njoints):
        _add_joint(builder, model, bodies, i)
    for frame in model.frames:
        _add_frame(builder, frame, bodies)
    for entry in model.referenceConfigurations:
        _add_posture(builder, model, entry.key(), np.array(entry.data()))
    built = builder.build()
    emit_warning(built.report)
    return built


def _add_frame(builder: Builder, frame: PinFrame, bodies: list[str]) -> None:
    """Add a frame; it is renamed if a joint, link or frame elsewhere has its name."""
    known, name, link = builder.joints.get(frame.name), frame.name, bodies[frame.parentJoint]
    if name in ("universe", "world"):
        return
    T = np.array(frame.placement.homogeneous)
    if (name == link or (known is not None and known.child == link)) and np.allclose(
        T, np.eye(4), rtol=0.0, atol=1e-14
    ):
        return  # the builder makes this frame
    name = unused_name(name, (*builder.links, *builder.joints, *builder.frames), "_frame")
    if name != frame.name:
        builder.note(
            f"is renamed to {name!r}: another joint, link or frame has its name",
            f"frame {frame.name!r}",
        )
    builder.frame(name, link, T[:3, 3], rotation=T[:3, :3])


def _body_names(model: PinModel) -> list[str]:
    """The link names, by joint: that of the body frame at the joint frame, else from the joint."""
    names, taken = ["world"] + [""] * (model.njoints - 1), {"world", *model.names}
    for frame in model.frames:
        at_joint = (
            frame.parentJoint and not names[frame.parentJoint] and frame.placement.isIdentity(1e-14)
        )
        if at_joint and str(frame.type).endswith("BODY") and frame.name not in taken:
            names[frame.parentJoint] = frame.name
            taken.add(frame.name)
    for i, name in enumerate(names):
        if not name:
            names[i] = unused_name(f"{model.names[i]}_link", taken)
            taken.add(names[i])
    return names


def _add_joint(builder: Builder, model: PinModel, bodies: list[str], i: int) -> None:
    """Add joint i and its body."""
    name, joint = model.names[i], model.joints[i]
    row = ROWS.get(joint.shortname())
    if row is None:
        raise ModelError(
            f"joint {shown(name)} is a {joint.shortname()}, which psiphi does not support",
            "build it from simple joints, e.g. a universal or three revolute ones",
        )
    inertia, pose = model.inertias[i], np.array(model.jointPlacements[i].homogeneous)
    builder.body(bodies[i], inertia.mass, np.array(inertia.lever), np.array(inertia.inertia))
    v = [joint.idx_v + k for k in row.order]
    properties: dict[str, Any] = {
        "velocity": _limits(model.velocityLimit, v),
        "effort": _limits(model.effortLimit, v),
        "damping": np.array(model.damping)[v],
        "friction": np.array(model.friction)[v],
        "armature": np.array(model.armature)[v],
    }
    q = [joint.idx_q + k for k in range(row.lengths if joint.nq != joint.nv else joint.nq)]
    for word, sign, limits in (
        ("lower", -1.0, model.lowerPositionLimit),
        ("upper", 1.0, model.upperPositionLimit),
    ):
        found = _limits(sign * np.array(limits), q)
        if np.isfinite(found).any():  # quaternions and (cosine, sine) pairs have no limits
            properties[word] = sign * np.append(
                found, np.full(joint_sizes(row.kind)[0] - len(q), np.inf)
            )
    options = {
        word: np.array(value) if np.ndim(value) else value
        for word, value in row.options(joint.extract()).items()
    }
    parent = bodies[model.parents[i]]
    builder.joint(
        name,
        row.kind,
        parent,
        bodies[i],
        pose[:3, 3],
        rotation=pose[:3, :3],
        **options,
        **properties,
    )


def _limits(values: np.ndarray, indices: list[int]) -> np.ndarray:
    """The limits at `indices`; the largest float means no limit."""
    found = np.array(values, dtype=float)[indices]
    return np.where(found >= np.finfo(float).max, np.inf, found)


def _add_posture(builder: Builder, model: PinModel, name: str, q: np.ndarray) -> None:
    """Add a reference configuration."""
    posture = {}
    for i in range(1, model.njoints):
        joint = model.joints[i]
        mine = q[joint.idx_q : joint.idx_q + joint.nq].tolist()
        kind = ROWS[joint.shortname()].kind
        conversions = {
            "continuous": lambda x: [np.arctan2(x[1], x[0])],
            "planar": lambda x: [x[0], x[1], np.arctan2(x[3], x[2])],
        }
        posture[model.names[i]] = conversions[kind](mine) if kind in conversions else mine
    builder.posture(name, posture)
