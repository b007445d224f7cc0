"""Which entries of the peer's vectors belong to which joint: by name where the peer is given, else in psiphi's order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import check_robot
from psiphi.io.conventions.peer_joint_types import MUJOCO, PINOCCHIO, PeerJoint
from psiphi.io.conventions.vector_layout import Layout, Slot
from psiphi.io.mujoco.from_mujoco import NameTable
from psiphi.model.model import Joint, Model

_MUJOCO_NQ = {0: 7, 1: 4}  # mjJNT_FREE, mjJNT_BALL; slides and hinges have one


class PeerPlace(NamedTuple):
    """A joint of the peer: its first entries in q and v and how many q it has; None where only its name is known."""

    name: str
    q: int | None = None
    v: int | None = None
    nq: int | None = None


def pinocchio(model: Model, peer: Any = None) -> Layout:
    """The layout of `model` in Pinocchio.

    `peer` sets the order of the joints: a `pinocchio.Model`, a list of joint names, or None for psiphi's own order. A free
    base may bear another name there (`root_joint`).
    """
    places = _joint_order("Pinocchio", model, peer, "idx_qs")
    if hasattr(peer, "idx_qs"):
        places = [
            PeerPlace(*row)
            for row in zip(peer.names, peer.idx_qs, peer.idx_vs, peer.nqs, strict=True)
        ][1:]
    return Layout(
        model, "Pinocchio", _slots(model, "Pinocchio", PINOCCHIO, places), spatial_linear_first=True
    )


def mujoco(model: Model, peer: Any = None) -> Layout:
    """The layout of `model` in MuJoCo.

    `peer` sets the order of the joints: an `MjModel`, a list of joint names, or None for psiphi's own order. Where a psiphi
    joint is several MuJoCo joints on one body (planar, universal, cylindrical), the first bears its name. Reference
    positions (`ref`) must be zero and body frames psiphi's link frames.
    """
    places = _joint_order("MuJoCo", model, peer, "jnt_qposadr")
    if hasattr(peer, "jnt_qposadr"):
        columns = zip(
            _mujoco_names(model, peer),
            peer.jnt_qposadr,
            peer.jnt_dofadr,
            peer.jnt_type,
            strict=True,
        )
        places = [PeerPlace(name, q, v, _MUJOCO_NQ.get(int(t), 1)) for name, q, v, t in columns]
    return Layout(
        model, "MuJoCo", _slots(model, "MuJoCo", MUJOCO, places), spatial_linear_first=False
    )


def _mujoco_names(model: Model, peer: Any) -> list[str]:
    """MuJoCo's names of joints; where the robot has none of it, what `pp.from_mujoco` calls a joint without a name."""
    known = {joint.name for joint in model.joints}
    return [
        peer.joint(i).name if peer.joint(i).name in known else name
        for i, name in enumerate(NameTable.of(peer).joints)
    ]


def _joint_order(library: str, model: Model, peer: Any, mark: str) -> list[PeerPlace]:
    """The joints in the order of a list of names; none yet where the peer's own model is given, which has `mark`."""
    check_robot(f"interop.{library.lower()}", model, Model)
    if peer is None:
        peer = [joint.name for joint in model.joints]
    if isinstance(peer, list | tuple) and all(isinstance(name, str) for name in peer):
        return [PeerPlace(name) for name in peer]
    if hasattr(peer, mark):
        return []
    raise StateError(
        f"the peer is {shown(peer)}, expected {library}'s model or joint names",
        "leave it out for psiphi's order",
    )


def _slots(
    model: Model, peer: str, table: dict[str, PeerJoint], places: list[PeerPlace]
) -> list[Slot]:
    slots, q, v = [], 0, 0
    for joint, place in _pairs(model, peer, places):
        row = _row(table, peer, joint, place)
        q, v = (q, v) if place.q is None or place.v is None else (place.q, place.v)
        slots.append(Slot(joint, row, slice(q, q + row.nq), slice(v, v + row.nv)))
        q, v = q + row.nq, v + row.nv
    _check_complete(peer, slots, places)
    return slots


def _pairs(model: Model, peer: str, places: list[PeerPlace]) -> Iterable[tuple[Joint, PeerPlace]]:
    """psiphi's joints with their namesakes, in the peer's order; a nameless free base takes the peer's one free joint."""
    joints = {joint.name: joint for joint in model.joints}
    lost = [joint for joint in model.joints if joint.name not in {place.name for place in places}]
    spare = [place for place in places if place.name not in joints and place.nq in (7, None)]
    if len(lost) == len(spare) == 1 and lost[0].kind == "free":
        joints[spare[0].name] = lost.pop()
    if lost:
        known = ", ".join(place.name for place in places[:12])
        cause = f"{peer} has no joint {lost[0].name!r} of {model.name}"
        raise StateError(
            cause,
            f"name the joints alike, or pass their order by psiphi's names; there: {known or 'none'}",
        )
    _check_order(model, peer, [place.name for place in places if place.q is None], joints)
    return [(joints[place.name], place) for place in places if place.name in joints]


def _check_order(model: Model, peer: str, order: list[str], joints: dict[str, Joint]) -> None:
    """A list of names has no room for strangers or repetitions: the offsets are counted along it."""
    strange = [name for name in order if name not in joints] or ["a name twice"] * (
        len(set(order)) < len(order)
    )
    if strange:
        raise StateError(
            f"the order of {peer}'s joints holds {', '.join(strange)}",
            f"name each joint of {model.name} once",
        )


def _row(table: dict[str, PeerJoint], peer: str, joint: Joint, place: PeerPlace) -> PeerJoint:
    if joint.kind not in table:
        cause = f"{peer} has no {joint.kind} joint"
        raise StateError(
            cause, f"the conversion knows {', '.join(table)}", element=f"joint {joint.name!r}"
        )
    if joint.kind in ("revolute", "continuous") and place.nq is not None:
        kind = (
            "revolute" if place.nq == 1 else "continuous"
        )  # an angle, or (cos, sin), as the peer has it
        return table[kind]
    return table[joint.kind]


def _check_complete(peer: str, slots: list[Slot], places: list[PeerPlace]) -> None:
    """The joints must fill the peer's q exactly."""
    filled = sorted(k for slot in slots for k in range(slot.q.start, slot.q.stop))
    total = (
        sum(place.nq or 0 for place in places)
        if all(place.nq is not None for place in places)
        else len(filled)
    )
    if filled != list(range(total)):
        cause = f"psiphi's joints fill {len(filled)} of {peer}'s {total} entries of q"
        raise StateError(
            cause,
            "build both models from the same description, with the same joints fixed and mimicked",
        )
