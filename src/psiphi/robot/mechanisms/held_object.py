"""What arms hold: a body, gripped at poses in it, or a mechanism with joints of its own, gripped at its frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psiphi._util.errors import ModelError, StateError
from psiphi._util.text import shown
from psiphi.model.body_matrices import spatial_inertia
from psiphi.model.builder import pose_values
from psiphi.model.builder.builder import Builder
from psiphi.model.loops.closure_types import Relative
from psiphi.model.loops.constraints import Constraint
from psiphi.model.loops.forest_model import Part
from psiphi.model.model import IDENTITY, Body, Model, Pose
from psiphi.robot.mechanisms.solve.hub import THIN, is_thin

GRIP = "grip"  # frames of a body at its grasps: grip1, grip2, ...
HELD = 1e-9  # singular values of the contact rows below this hold nothing
FEELS = 1e-12  # motions with less inertia than this, relative to the largest, have none


@dataclass(frozen=True)
class HeldObject:
    """What is held, as a part of the forest; the frames it is gripped at, and its joints, under the forest's names."""

    part: Part
    grips: tuple[str, ...]

    @property
    def body(self) -> str:
        """Its first body."""
        return self.part.named(self.part.model.bodies[0].name)

    @property
    def joints(self) -> tuple[str, ...]:
        return tuple(self.part.named(joint.name) for joint in self.part.model.joints)


def thing(given: Any, at: Sequence[Any], names: Sequence[str], gravity: np.ndarray) -> HeldObject:
    """A `pp.Body` with grasp poses, or a robot, or (robot, base pose), with names of its frames; never called as an arm is."""
    if isinstance(given, Body):
        thin = _is_thin(given)
        part = Part(
            _free_body(
                given,
                thin,
                [pose_values.pose(f"at[{i}]", pose) for i, pose in enumerate(at)],
                gravity,
            )
        )
        grips = [f"{GRIP}{i + 1}" for i in range(len(at))]
    else:
        model, base = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        if not isinstance(model, Model) or not model.bodies:
            cause = f"object is {shown(given)}, expected a pp.Body, a robot, or (robot, base pose)"
            raise StateError(
                cause,
                "pp.Body(name, mass, com, inertia), pp.Body.box(...), or a robot with joints of its own",
            )
        part = Part(model, pose_values.pose("the base of the object", base))
        grips = [_frame(model, i, name) for i, name in enumerate(at)]
    own = part.model.name if part.model.name not in names else f"{part.model.name} object"
    part = replace(part, name=own)
    return HeldObject(part, tuple(map(part.named, grips)))


def _frame(model: Model, i: int, name: Any) -> str:
    if not isinstance(name, str):
        cause = f"at[{i}] is {shown(name)}; {model.name} has joints of its own, and is gripped at its frames"
        raise StateError(cause, f"name one of {', '.join(list(model.frames)[:8])}")
    return model.frame(name).name


def _is_thin(body: Body) -> bool:
    """Whether it has mass and inertia, but not about every axis."""
    inertia = np.asarray(body.inertia)
    least, *_, most = np.linalg.eigvalsh(inertia) if np.isfinite(inertia).all() else (np.nan,) * 3
    return bool(body.mass >= 0.0 and -THIN * most <= least and is_thin(body))


def _free_body(body: Body, thin: bool, poses: Sequence[Pose], gravity: np.ndarray) -> Model:
    """A body that flies. A thin one (`hub.py`) cannot by itself: it is built with another's inertia, and gets its own then."""
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
    given: Any, held: HeldObject, grips: Iterable[Constraint], more: Iterable[Constraint]
) -> None:
    """A body without inertia about some axis must be held there: its contacts alone can give it some."""
    own = held.part.named("")
    if not isinstance(given, Body) or not _is_thin(given):
        return
    if any(name.startswith(own) for c in more for name in (c.first, c.second)):
        return
    model, rows = held.part.model, []
    still = Relative(IDENTITY.rotation.tolist(), [0.0] * 3, [0.0] * 3, [0.0] * 3)
    for i, c in enumerate(grips):
        pose = model.frame(f"{GRIP}{i + 1}").pose
        for row in c.row.rows(c.shape, still):
            turn, slide = pose.rotation @ np.array(row.turn), pose.rotation @ np.array(row.slide)
            rows.append([*(turn + np.cross(pose.translation, slide)), *slide])
    body = model.bodies[0]
    M = spatial_inertia(body)
    _, w, Vt = np.linalg.svd(np.array(rows))
    N = Vt[int((w > HELD * w[0]).sum()) :]
    felt, Q = np.linalg.eigh(N @ M @ N.T)
    if felt.size and felt[0] <= FEELS * max(float(np.abs(M).max()), 1e-300):
        motion = Q[:, 0] @ N
        motion = np.round(motion / motion[np.argmax(np.abs(motion))], 3) + 0.0
        axis = ", ".join(f"{x:g}" for x in motion)
        raise ModelError(
            f"the object {body.name!r} has mass {body.mass:g} and no inertia along the motion ({axis}), turning first, and no "
            "contact holds it there: its acceleration would not be unique",
            "give it mass and inertia, as in pp.Body.box(mass, size), or hold that motion with another contact",
        )
