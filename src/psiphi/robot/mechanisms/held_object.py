"""The object that arms hold: a body with grasp poses, or a mechanism held at its frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import shown
from psiphi.model.body_matrices import spatial_inertia
from psiphi.model.builder import pose_values
from psiphi.model.builder.builder import Builder
from psiphi.model.loops.closure_types import RelativeMotion
from psiphi.model.loops.constraints import Constraint
from psiphi.model.loops.forest_model import Part
from psiphi.model.model import IDENTITY, Body, Model, Pose
from psiphi.robot.mechanisms.solve.hub import THIN, is_thin

GRIP = "grip"  # frames of a body at its grasp poses: grip1, grip2, ...
RANK_TOLERANCE = 1e-9  # singular values of the contact rows, relative to the largest
INERTIA_TOLERANCE = 1e-12  # inertia of a motion, relative to the largest, that counts as zero

PoseLike: TypeAlias = "Pose | Numbers | None"  # as `pose_values.read_pose` reads it
ObjectLike: TypeAlias = "Body | Model | tuple[Model, PoseLike]"


@dataclass(frozen=True)
class HeldObject:
    """The object as a part of the forest, and the frames it is held at, under their names in the
    forest."""

    part: Part
    grips: tuple[str, ...]

    @property
    def body(self) -> str:
        """The name of the first body."""
        return self.part.qualified(self.part.model.bodies[0].name)

    @property
    def joints(self) -> tuple[str, ...]:
        """The names of its joints."""
        return tuple(self.part.qualified(joint.name) for joint in self.part.model.joints)


def read_object(
    value: ObjectLike,
    at: Sequence[PoseLike | str],
    arm_names: Sequence[str],
    gravity: np.ndarray,
) -> HeldObject:
    """The argument `object` of `pp.grasp`: a `pp.Body` with grasp poses `at`, or a robot, or
    (robot, base pose), with frame names `at`. Its name differs from those of the arms."""
    if isinstance(value, Body):
        poses = [pose_values.read_pose(f"at[{i}]", pose) for i, pose in enumerate(at)]
        part = Part(_free_body(value, _is_thin(value), poses, gravity))
        grips = [f"{GRIP}{i + 1}" for i in range(len(at))]
    else:
        model, base = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        if not isinstance(model, Model) or not model.bodies:
            raise StateError(
                f"object is {shown(value)}, expected a pp.Body, a robot, or (robot, base pose)",
                "pass pp.Body(name, mass, com, inertia), pp.Body.box(...), or a robot",
            )
        part = Part(model, pose_values.read_pose("the base of the object", base))
        grips = [_grasp_frame(model, i, name) for i, name in enumerate(at)]
    name = part.model.name if part.model.name not in arm_names else f"{part.model.name} object"
    part = replace(part, name=name)
    return HeldObject(part, tuple(map(part.qualified, grips)))


def _grasp_frame(model: Model, i: int, name: object) -> str:
    if not isinstance(name, str):
        raise StateError(
            f"at[{i}] is {shown(name)}, expected the name of a frame: {model.name} has joints of "
            "its own and is held at its frames",
            f"name one of {', '.join(list(model.frames)[:8])}",
        )
    return model.frame(name).name


def _is_thin(body: Body) -> bool:
    """Whether the body has a valid inertia that is singular."""
    inertia = np.asarray(body.inertia)
    least, *_, most = np.linalg.eigvalsh(inertia) if np.isfinite(inertia).all() else (np.nan,) * 3
    return bool(body.mass >= 0.0 and -THIN * most <= least and is_thin(body))


def _free_body(body: Body, thin: bool, poses: Sequence[Pose], gravity: np.ndarray) -> Model:
    """The body on a free joint. A thin body (`hub.py`) is built with a unit inertia, which is
    replaced by its own afterwards, since the builder rejects a singular one."""
    inertia = np.asarray(body.inertia)
    builder = Builder(body.name, gravity=gravity)
    builder.body(
        body.name,
        mass=1.0 if thin else body.mass,
        com=body.com,
        inertia=np.eye(3) if thin else inertia,
    )
    builder.joint("free", "free", parent="world", child=body.name)
    for i, pose in enumerate(poses):
        builder.frame(f"{GRIP}{i + 1}", body.name, xyz=pose.translation, rotation=pose.rotation)
    model = builder.build()
    own = {"mass": body.mass, "inertia": inertia} if thin else {}
    return replace(model, bodies=(replace(model.bodies[0], solid=body.solid, **own),))


def check_held(
    value: ObjectLike, held: HeldObject, grips: Iterable[Constraint], more: Iterable[Constraint]
) -> None:
    """Refuse a thin body that can move, between its contacts, along a motion without inertia."""
    prefix = held.part.qualified("")
    if not isinstance(value, Body) or not _is_thin(value):
        return
    if any(name.startswith(prefix) for c in more for name in (c.first, c.second)):
        return
    model, rows = held.part.model, []
    at_rest = RelativeMotion(IDENTITY.rotation.tolist(), [0.0] * 3, [0.0] * 3, [0.0] * 3)
    for i, c in enumerate(grips):
        pose = model.frame(f"{GRIP}{i + 1}").pose
        for row in c.row.rows(c.shape, at_rest):
            turn, slide = pose.rotation @ np.array(row.turn), pose.rotation @ np.array(row.slide)
            rows.append([*(turn + np.cross(pose.translation, slide)), *slide])
    body = model.bodies[0]
    M = spatial_inertia(body)
    _, w, Vt = np.linalg.svd(np.array(rows))
    N = Vt[int((w > RANK_TOLERANCE * w[0]).sum()) :]
    inertia, Q = np.linalg.eigh(N @ M @ N.T)
    if inertia.size and inertia[0] <= INERTIA_TOLERANCE * max(float(np.abs(M).max()), 1e-300):
        motion = Q[:, 0] @ N
        motion = np.round(motion / motion[np.argmax(np.abs(motion))], 3) + 0.0
        axis = ", ".join(f"{x:g}" for x in motion)
        raise ModelError(
            f"the object {body.name!r} has mass {body.mass:g} and no inertia along the motion "
            f"({axis}), angular part first, and no contact constrains it: its acceleration would "
            "not be unique",
            "give it mass and inertia, as in pp.Body.box(mass, size), or add a contact that "
            "constrains this motion",
        )
