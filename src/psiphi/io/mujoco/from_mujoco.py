"""Reader of compiled MuJoCo models. A body with joints at the anchors p_1 .. p_n has the pose

    parent · (pos, quat) · Π_j  T(p_j) · motion_j(q_j - ref_j) · T(-p_j)

Each joint becomes a psiphi joint, in the same order, with massless links between them. Its
reference position becomes a part of its placement, since motions along one axis commute:
motion(q - ref) = motion(-ref) motion(q). So q equals qpos, apart from the order of quaternions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.extras import import_optional
from psiphi._util.text import shown
from psiphi.io.mujoco import mujoco_equalities, mujoco_geoms, mujoco_unsupported_features
from psiphi.io.mujoco.mujoco_actuators import effort_limit, reflected
from psiphi.io.peer_models import MjModel, MjSpec
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.pose_values import placement
from psiphi.model.diagnostics import emit_warning
from psiphi.model.editing.name_patterns import unused_name
from psiphi.model.loops.contacts_and_loops import Loop
from psiphi.model.loops.gears import Gear
from psiphi.model.model import Model, Pose
from psiphi.model.shapes import Shape
from psiphi.model.spatial.rotations import rotation_about
from psiphi.model.spatial.transforms import (
    IDENTITY_PLACEMENT,
    IDENTITY_ROTATION,
    ORIGIN,
    Placement,
    Rotation,
    compose,
    from_quaternion,
)

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint
KINDS = {FREE: "free", BALL: "spherical", SLIDE: "prismatic", HINGE: "revolute"}
NO_LIMIT = 1e10  # mjMAXVAL: the other side of a one-sided limit
NO_GRAVITY = 1 << 7  # mjDSBL_GRAVITY


class MujocoModel(NamedTuple):
    """The contents of a MuJoCo model: the tree, its shapes, its loops, and nonlinear couplings."""

    model: Model
    shapes: Iterable[Shape]
    loops: list[Loop]
    gears: list[Gear]


def read_mujoco(model: MjModel | MjSpec | str | os.PathLike[str]) -> MujocoModel:
    """The contents of an `MjModel`, an `MjSpec`, an MJCF file or MJCF text."""
    peer = compile_model(model)
    builder = Builder(_model_name(peer) or "mujoco", gravity=_gravity(peer))
    names = NameTable.of(peer)
    for body in range(1, peer.nbody):
        _body(builder, peer, names, body)
    for site in range(peer.nsite):
        _site(builder, peer, names, site)
    loops, gears = mujoco_equalities.read_equalities(builder, peer, names)
    _postures(builder, peer, names)
    mujoco_unsupported_features.report_unsupported(builder, peer, names)
    built = builder.build()
    emit_warning(built.report)
    return MujocoModel(built, mujoco_geoms.read_shapes(peer, names), loops, gears)


def compile_model(model: MjModel | MjSpec | str | os.PathLike[str]) -> MjModel:
    """`model`, compiled by MuJoCo if it is not an MjModel."""
    if hasattr(model, "jnt_qposadr"):
        return cast(MjModel, model)
    library: Any = import_optional("mujoco", "an MJCF file", "psiphi[mujoco]")
    try:
        if hasattr(model, "compile") and hasattr(model, "worldbody"):
            return cast(MjSpec, model).compile()
        if isinstance(model, str) and model.lstrip("\ufeff \t\r\n").startswith("<"):
            return library.MjModel.from_xml_string(model)
        if isinstance(model, str | os.PathLike):
            return library.MjModel.from_xml_path(os.fsdecode(model))
    except TypeError:  # a path that is not text
        raise ModelError(
            f"{shown(model)} is not a file name", "give an MjModel, an MjSpec, or an MJCF file"
        ) from None
    except (ValueError, library.FatalError) as error:
        file = None if not isinstance(model, str | os.PathLike) or "<" in str(model) else str(model)
        raise ModelError(
            f"MuJoCo rejects it: {' '.join(str(error).split())}", "correct the MJCF", file=file
        ) from None
    raise ModelError(
        f"{shown(model)} is not a MuJoCo model", "give an MjModel, an MjSpec, or an MJCF file"
    )


def is_mjcf(source: object) -> bool:
    """Whether the root element of a file or text is <mujoco>, after comments and declarations."""
    text = str(source)
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        if not text.lower().endswith((".xml", ".mjcf")) or not os.path.isfile(text):
            return False
        with open(text, encoding="utf-8", errors="replace") as file:
            text = file.read(1 << 20)
    root = re.search(r"<([A-Za-z]\w*)", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))
    return root is not None and root[1] == "mujoco"


@dataclass(frozen=True)
class NameTable:
    """The psiphi names of bodies, joints and sites: MuJoCo's names; nameless ones are numbered.

    A joint and a body may have the same name. A site and a body may not, since both are frames.
    """

    bodies: list[str]
    joints: list[str]
    sites: list[str]
    taken: set[str]

    @classmethod
    def of(cls, peer: MjModel) -> NameTable:
        bodies = _numbered_names(
            "body", ["world", *(peer.body(i).name for i in range(1, peer.nbody))]
        )
        joints = _numbered_names("joint", [peer.joint(i).name for i in range(peer.njnt)])
        taken = {*bodies, *joints}
        sites = _numbered_names("site", [peer.site(i).name for i in range(peer.nsite)])
        return cls(bodies, joints, [_unique_name(name, taken, "_site") for name in sites], taken)

    def new(self, name: str) -> str:
        """`name`, changed if it is in use, and marked as used."""
        return _unique_name(name, self.taken)


def _numbered_names(kind: str, names: list[str]) -> list[str]:
    """The names; an empty one becomes the kind with its number, made unique."""
    taken = set(names)
    return [name or _unique_name(f"{kind}{i}", taken) for i, name in enumerate(names)]


def _unique_name(name: str, taken: set[str], end: str = "_") -> str:
    taken.add(new := unused_name(name, taken, end))
    return new


def _model_name(peer: MjModel) -> str:
    return peer.names[: peer.names.index(b"\0")].decode(errors="replace")


def _gravity(peer: MjModel) -> np.ndarray:
    return np.zeros(3) if peer.opt.disableflags & NO_GRAVITY else np.array(peer.opt.gravity)


def read_placement(position: np.ndarray, quaternion: np.ndarray) -> Placement:
    """The placement of MuJoCo's position and quaternion (w, x, y, z)."""
    x, y, z = (float(c) for c in position)
    return read_rotation(quaternion), (x, y, z)


def read_rotation(quaternion: np.ndarray) -> Rotation:
    """The rotation of MuJoCo's quaternion (w, x, y, z)."""
    w, i, j, k = (float(c) for c in quaternion)
    return (
        IDENTITY_ROTATION if (w, i, j, k) == (1.0, 0.0, 0.0, 0.0) else from_quaternion(i, j, k, w)
    )


def _body(builder: Builder, peer: MjModel, names: NameTable, i: int) -> None:
    """Add a body with its joints, and massless links between these."""
    name, parent = names.bodies[i], names.bodies[peer.body_parentid[i]]
    before = read_placement(peer.body_pos[i], peer.body_quat[i])
    origin = ORIGIN  # of the last joint frame, in the body frame
    first, count = peer.body_jntadr[i], peer.body_jntnum[i]
    for j in range(first, first + count):
        x, y, z = peer.jnt_pos[j].tolist() if peer.jnt_type[j] != FREE else ORIGIN
        anchor = (x, y, z)
        last = j == first + count - 1 and not any(anchor)
        child = name if last else names.new(f"{names.joints[j]}_link")
        if not last:
            builder.body(child)
        shift = (x - origin[0], y - origin[1], z - origin[2])
        step = compose(before, (IDENTITY_ROTATION, shift))
        _joint(builder, peer, names.joints[j], j, parent, child, step)
        parent, before, origin = child, IDENTITY_PLACEMENT, anchor
    if count == 0 or any(origin):
        x, y, z = origin
        R, p = compose(before, (IDENTITY_ROTATION, (-x, -y, -z)))
        builder.joint(names.new(f"{name}_weld"), "fixed", parent, name, p, rotation=R)
    rotation, com = read_placement(peer.body_ipos[i], peer.body_iquat[i])
    xx, yy, zz = peer.body_inertia[i].tolist()
    builder.body(name, float(peer.body_mass[i]), com, (xx, 0.0, 0.0, yy, 0.0, zz), rotation)


def _joint(
    builder: Builder,
    peer: MjModel,
    name: str,
    j: int,
    parent: str,
    child: str,
    step: Placement,
) -> None:
    """Add joint j between two links; `step` is the placement of its frame."""
    kind, v = int(peer.jnt_type[j]), int(peer.jnt_dofadr[j])
    nv = {FREE: 6, BALL: 3}.get(kind, 1)
    properties = {
        "damping": peer.dof_damping[v : v + nv] + reflected(peer, j, "damping"),
        "friction": peer.dof_frictionloss[v : v + nv],
        "armature": peer.dof_armature[v : v + nv] + reflected(peer, j, "armature"),
    }
    if kind == FREE:
        step = IDENTITY_PLACEMENT  # q is the pose of the body in the world
        properties = {
            word: np.roll(values, 3) for word, values in properties.items()
        }  # from [linear; angular]
        # Values along world axes are not supported (`mujoco_unsupported_features.py`).
        for word in ("armature", "friction"):
            properties[word] = np.where(np.arange(6) < 3, properties[word], 0.0)
    elif kind in (SLIDE, HINGE):
        axis = peer.jnt_axis[j]
        step = compose(step, _reference_offset(kind, axis, float(peer.qpos0[peer.jnt_qposadr[j]])))
        ends = peer.jnt_range[j].tolist() if peer.jnt_limited[j] else (NO_LIMIT, NO_LIMIT)
        lower, upper = (x if abs(x) < NO_LIMIT else None for x in ends)
        properties |= {
            "axis": axis,
            "lower": lower,
            "upper": upper,
            "effort": effort_limit(peer, j),
            **_spring(peer, j),
        }
    builder.joint(name, KINDS[kind], parent, child, step[1], rotation=step[0], **properties)


def _spring(peer: MjModel, j: int) -> dict[str, Any]:
    """Stiffness, rest position and (from MuJoCo 4 on) polynomial terms of a hinge or slide."""
    terms = np.trim_zeros(
        np.ravel(getattr(peer, "jnt_stiffnesspoly", np.zeros((j + 1, 1)))[j]), "b"
    ).tolist()
    if not peer.jnt_stiffness[j] and not terms:
        return {}
    properties = {
        "stiffness": float(peer.jnt_stiffness[j]),
        "rest": float(peer.qpos_spring[peer.jnt_qposadr[j]]),
    }
    return properties | ({"spring": {"polynomial": terms}} if terms else {})


def _reference_offset(kind: int, axis: np.ndarray, ref: float) -> Placement:
    """motion(-ref) of a joint."""
    if ref == 0.0:
        return IDENTITY_PLACEMENT
    if kind == SLIDE:
        return placement(Pose(np.eye(3), -ref * axis))
    return placement(Pose(rotation_about(-ref * axis), np.zeros(3)))


def _site(builder: Builder, peer: MjModel, names: NameTable, i: int) -> None:
    rotation, xyz = read_placement(peer.site_pos[i], peer.site_quat[i])
    builder.frame(names.sites[i], names.bodies[peer.site_bodyid[i]], xyz, rotation=rotation)


def _postures(builder: Builder, peer: MjModel, names: NameTable) -> None:
    """Add qpos0 and the keyframes as postures."""
    keys = _numbered_names("key", [peer.key(i).name for i in range(peer.nkey)])
    for name, qpos in ({"qpos0": peer.qpos0} | dict(zip(keys, peer.key_qpos, strict=True))).items():
        builder.posture(
            name, {joint: _coordinates(peer, j, qpos) for j, joint in enumerate(names.joints)}
        )


def _coordinates(peer: MjModel, j: int, qpos: np.ndarray) -> list[float]:
    """The coordinates of joint j in psiphi's order (quaternion scalar last)."""
    start, kind = int(peer.jnt_qposadr[j]), int(peer.jnt_type[j])
    if kind in (SLIDE, HINGE):
        return [float(qpos[start])]
    xyz = qpos[start : start + 3].tolist() if kind == FREE else []
    w, *v = qpos[start + len(xyz) : start + len(xyz) + 4].tolist()
    return [*xyz, *v, w]
