"""Indices of each joint in the vectors of a peer: by the peer's names, or in psiphi's order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import check_robot
from psiphi.io.conventions.joint_coordinate_maps import MUJOCO, PINOCCHIO, PeerJoint
from psiphi.io.conventions.vector_layout import Layout, Slot
from psiphi.io.mujoco.from_mujoco import NameTable
from psiphi.io.peer_models import MjModel, PinModel
from psiphi.model.model import Joint, Model

_MUJOCO_NQ = {0: 7, 1: 4}  # mjJNT_FREE, mjJNT_BALL; slides and hinges have 1


class PeerPlace(NamedTuple):
    """A joint of the peer: its first indices in q and v, and its nq; None if not known."""

    name: str
    q: int | None = None
    v: int | None = None
    nq: int | None = None


def pinocchio(model: Model, peer: PinModel | Sequence[str] | None = None) -> Layout:
    """The layout of `model` in Pinocchio.

    `peer` sets the order of the joints: a `pinocchio.Model`, a list of joint names, or None for
    psiphi's order. A free base may have another name there (`root_joint`).
    """
    places = _joint_order("Pinocchio", model, peer, "idx_qs")
    if hasattr(peer, "idx_qs"):
        pin = cast(PinModel, peer)
        columns = zip(pin.names, pin.idx_qs, pin.idx_vs, pin.nqs, strict=True)
        places = [PeerPlace(*row) for row in columns][1:]
    return Layout(
        model, "Pinocchio", _slots(model, "Pinocchio", PINOCCHIO, places), spatial_linear_first=True
    )


def mujoco(model: Model, peer: MjModel | Sequence[str] | None = None) -> Layout:
    """The layout of `model` in MuJoCo.

    `peer` sets the order of the joints: an `MjModel`, a list of joint names, or None for psiphi's
    order. If a psiphi joint is several MuJoCo joints on one body (planar, universal, cylindrical),
    the first one has its name. Reference positions (`ref`) must be zero, and body frames must
    equal psiphi's link frames.
    """
    places = _joint_order("MuJoCo", model, peer, "jnt_qposadr")
    if hasattr(peer, "jnt_qposadr"):
        mj = cast(MjModel, peer)
        names = _mujoco_names(model, mj)
        columns = zip(names, mj.jnt_qposadr, mj.jnt_dofadr, mj.jnt_type, strict=True)
        places = [PeerPlace(name, q, v, _MUJOCO_NQ.get(int(t), 1)) for name, q, v, t in columns]
    return Layout(
        model, "MuJoCo", _slots(model, "MuJoCo", MUJOCO, places), spatial_linear_first=False
    )


def _mujoco_names(model: Model, peer: MjModel) -> list[str]:
    """MuJoCo's joint names; those that `model` does not have are as `pp.from_mujoco` names them."""
    known = {joint.name for joint in model.joints}
    return [
        peer.joint(i).name if peer.joint(i).name in known else name
        for i, name in enumerate(NameTable.of(peer).joints)
    ]


def _joint_order(library: str, model: Model, peer: object, mark: str) -> list[PeerPlace]:
    """The joints of a list of names; empty if `peer` is a model, i.e. has the attribute `mark`."""
    check_robot(f"interop.{library.lower()}", model, Model)
    if peer is None:
        peer = [joint.name for joint in model.joints]
    if isinstance(peer, list | tuple) and all(isinstance(name, str) for name in peer):
        return [PeerPlace(name) for name in peer]
    if hasattr(peer, mark):
        return []
    raise StateError(
        f"the peer is {shown(peer)}, expected a model of {library} or joint names",
        "leave it out for psiphi's order",
    )


def _slots(
    model: Model, peer: str, table: dict[str, PeerJoint], places: list[PeerPlace]
) -> list[Slot]:
    """The slices of each joint; a peer without indices is filled in order."""
    slots, q, v = [], 0, 0
    for joint, place in _pairs(model, peer, places):
        row = _row(table, peer, joint, place)
        q, v = (q, v) if place.q is None or place.v is None else (place.q, place.v)
        slots.append(Slot(joint, row, slice(q, q + row.nq), slice(v, v + row.nv)))
        q, v = q + row.nq, v + row.nv
    _check_complete(peer, slots, places)
    return slots


def _pairs(model: Model, peer: str, places: list[PeerPlace]) -> Iterable[tuple[Joint, PeerPlace]]:
    """Pairs of psiphi and peer joints with equal names, in the peer's order.

    If only one free joint on each side has no partner, they are paired.
    """
    joints = {joint.name: joint for joint in model.joints}
    missing = [
        joint for joint in model.joints if joint.name not in {place.name for place in places}
    ]
    spare = [place for place in places if place.name not in joints and place.nq in (7, None)]
    if len(missing) == len(spare) == 1 and missing[0].kind == "free":
        joints[spare[0].name] = missing.pop()
    if missing:
        known = ", ".join(place.name for place in places[:12])
        raise StateError(
            f"{peer} has no joint {missing[0].name!r} of {model.name}",
            "use the same joint names, or pass their order by psiphi's names; "
            f"{peer} has: {known or 'none'}",
        )
    _check_order(model, peer, [place.name for place in places if place.q is None], joints)
    return [(joints[place.name], place) for place in places if place.name in joints]


def _check_order(model: Model, peer: str, order: list[str], joints: dict[str, Joint]) -> None:
    """Raise a StateError if a list of names has unknown or repeated names."""
    wrong = [name for name in order if name not in joints] or ["a name twice"] * (
        len(set(order)) < len(order)
    )
    if wrong:
        raise StateError(
            f"the order of {peer}'s joints has {', '.join(wrong)}",
            f"name each joint of {model.name} once",
        )


def _row(table: dict[str, PeerJoint], peer: str, joint: Joint, place: PeerPlace) -> PeerJoint:
    """The row of the table for a joint."""
    if joint.kind not in table:
        cause = f"{peer} has no {joint.kind} joint"
        raise StateError(
            cause, f"supported are {', '.join(table)}", element=f"joint {joint.name!r}"
        )
    if joint.kind in ("revolute", "continuous") and place.nq is not None:
        # The peer may store an angle or (cos, sin), whatever the type is called.
        return table["revolute" if place.nq == 1 else "continuous"]
    return table[joint.kind]


def _check_complete(peer: str, slots: list[Slot], places: list[PeerPlace]) -> None:
    """Raise a StateError unless the joints fill the peer's q exactly."""
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
            "build both models from the same description, with the same fixed and mimic joints",
        )
