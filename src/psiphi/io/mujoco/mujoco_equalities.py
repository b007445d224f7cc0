"""MuJoCo's equality constraints as psiphi constraints.

"connect" becomes a ball loop, "weld" a weld loop, a coupling of two joints a mimic joint if it is
linear, else a gear. Other equalities are listed in the report.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from psiphi.io.peer_models import MjModel
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.records import DocumentRecord
from psiphi.model.loops.contacts_and_loops import Loop
from psiphi.model.loops.gears import Gear
from psiphi.model.model import Mimic
from psiphi.model.spatial.transforms import IDENTITY_ROTATION, from_quaternion

if TYPE_CHECKING:
    from psiphi.io.mujoco.from_mujoco import NameTable

CONNECT, WELD, JOINT = 0, 1, 2  # mjtEq
BODY, SITE = 1, 6  # mjtObj
DISABLED = 1 | 2  # mjDSBL_CONSTRAINT, mjDSBL_EQUALITY
KIND_NAMES = {3: "of tendons", 4: "of a flex", 5: "of a flex", 6: "of a flex", 7: "of distances"}


def read_equalities(
    builder: Builder, peer: MjModel, names: NameTable
) -> tuple[list[Loop], list[Gear]]:
    """The loops and gears; frames and mimic joints are added to the builder."""
    loops: list[Loop] = []
    gears: list[Gear] = []
    for i in range(peer.neq):
        name = names.new(peer.equality(i).name or f"equality{i}")
        source = DocumentRecord(f"equality {name!r}")
        if not peer.eq_active0[i] or peer.opt.disableflags & DISABLED:
            builder.notes.note(source, "is not active: left out")
        elif peer.eq_type[i] == JOINT:
            gears += _read_coupling(builder, peer, names, i, source, name)
        elif peer.eq_type[i] in (CONNECT, WELD):
            loops.append(_read_loop(builder, peer, names, i, name))
        else:
            what = KIND_NAMES.get(int(peer.eq_type[i]), "of another kind")
            builder.notes.warn(source, f"is an equality {what}, which is not supported: left out")
    if loops:
        builder.note(
            f"{len(loops)} loops are in robot.loops: pp.connect(robot) closes them", "equality"
        )
    return loops, gears


def _read_loop(builder: Builder, peer: MjModel, names: NameTable, number: int, name: str) -> Loop:
    """A loop between frames at the anchors; for a weld, the relative pose is in the first frame."""
    ends = peer.eq_obj1id[number], peer.eq_obj2id[number]
    weld = peer.eq_type[number] == WELD
    kind = "weld" if weld else "ball"
    if peer.eq_objtype[number] == SITE:
        return Loop(kind, names.sites[ends[0]], names.sites[ends[1]], name=name)
    data = peer.eq_data[number]
    w, i, j, k = data[6:10].tolist()
    rotation = from_quaternion(i, j, k, w) if weld and any(data[6:10]) else IDENTITY_ROTATION
    first, second = (data[3:6], data[0:3]) if weld else (data[0:3], data[3:6])
    frames = [names.new(f"{name}_{k}") for k in (1, 2)]
    for frame, end, xyz, R in zip(
        frames, ends, (first, second), (rotation, IDENTITY_ROTATION), strict=True
    ):
        builder.frame(frame, names.bodies[end], xyz.tolist(), rotation=R)
    return Loop(kind, frames[0], frames[1], name=name)


def _read_coupling(
    builder: Builder,
    peer: MjModel,
    names: NameTable,
    i: int,
    source: DocumentRecord,
    name: str,
) -> list[Gear]:
    """q1 - ref1 = c0 + c1 (q2 - ref2) + ...: a mimic joint if it is linear, else a gear."""
    first, second = int(peer.eq_obj1id[i]), int(peer.eq_obj2id[i])
    c = peer.eq_data[i, :5]
    ref = [float(peer.qpos0[peer.jnt_qposadr[j]]) for j in (first, second) if j >= 0]
    follower = names.joints[first]
    known = builder.joints[follower].mimic
    if second < 0:
        lock = f"robot.lock({{{follower!r}: {ref[0] + float(c[0]):g}}})"
        builder.notes.warn(source, f"locks joint {follower!r}: left out; {lock} locks it")
    elif np.any(c[2:]):
        leader = names.joints[second]
        # The coefficients for q instead of q - ref.
        curve = np.polynomial.Polynomial(c)(np.polynomial.Polynomial([-ref[1], 1.0])).coef
        builder.notes.note(
            source,
            f"couples {follower!r} to {leader!r} by a polynomial: it is in robot.gears; "
            "pp.embed(robot) enforces it",
        )
        return [Gear(follower, {leader: tuple(curve[1:].tolist())}, ref[0] + float(curve[0]), name)]
    elif known is not None:
        builder.notes.warn(
            source, f"couples {follower!r}, which already follows {known.joint!r}: left out"
        )
    else:
        mimic = Mimic(names.joints[second], float(c[1]), float(ref[0] + c[0] - c[1] * ref[1]))
        builder.joints[follower] = replace(builder.joints[follower], mimic=mimic)
        builder.notes.note(
            source,
            f"becomes the mimic of joint {follower!r}; pp.connect(robot, mimic=True) enforces it",
        )
    return []
