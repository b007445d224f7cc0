"""A body that bends, and how a builder hangs it on a link: as places that move together (`modal_cluster.py`).

    link --[<link>_modes: η]--> <link>.1, <link>.2, ..  lumps of mass        <link>_<node>  where others may hang

Its coordinates η are sizes of shapes, each with a stiffness and a damping of its own: a spring joint of n coordinates, without
a motor. The link itself stays rigid: it is the root the body is clamped to.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from psiphi._util.text import nearest, shown
from psiphi.model.builder import builder_values
from psiphi.model.builder.records import FlexibleRecord, JointRecord, LinkRecord
from psiphi.model.inertias import NONE, Six
from psiphi.model.mode_shapes import MODAL, ModeShape
from psiphi.model.spatial.transforms import HERE, UPRIGHT, Place, Vector, compose

if TYPE_CHECKING:
    from psiphi.model.builder.builder import Builder

LUMPS = ("", "~")  # names of lumps of mass: on the body; anywhere, a sum of many
MODES = "_modes"  # the end of the joint's name


@dataclass(frozen=True)
class BodyPlace:
    """A place on the body: where it is while nothing bends, how the shapes move it, the mass that is lumped there."""

    name: str  # of a node; one of LUMPS
    at: Vector
    shape: ModeShape
    mass: float = 0.0
    inertia: Six = NONE


@dataclass(frozen=True, eq=False)
class BendingBody:
    """Places, base to tip, in the axes of the root; stiffness and damping of each shape, and how far each may go."""

    places: tuple[BodyPlace, ...]
    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    reach: tuple[float, ...]


def make_flexible(
    builder: Builder, link: Any, body: Any, place: Place, fail: builder_values.Fail
) -> None:
    """The places of a body, on a link of the builder, as links and joints."""
    known = builder.links
    if not isinstance(link, str) or link not in known:
        fail(
            "there is no such link",
            nearest(link, known) if isinstance(link, str) else "give its name",
        )
    if not isinstance(body, BendingBody):
        fail(
            f"body is {shown(body)}, expected a flexible body",
            "give a pp.Beam(...) or a pp.FlexibleBody",
        )
    count = iter(range(1, len(body.places) + 1))
    links = [
        f"{link}{x.name or '.'}{next(count)}" if x.name in LUMPS else f"{link}_{x.name}"
        for x in body.places
    ]
    joints = [
        f"{x}_bends" if i else f"{link}{MODES}" for i, x in enumerate(links)
    ]  # the first has the coordinates
    for new, there in (*((x, known) for x in links), *((x, builder.joints) for x in joints)):
        if new in there or new in builder.frames:
            fail(
                f"there is already something called {shown(new)}",
                "a link bends once; or give the other its own name",
            )
    group, n = FlexibleRecord(link, len(links)), len(body.stiffness)
    zero = (0.0,) * n
    own: dict[str, Any] = dict(
        lower=tuple(-x for x in body.reach),
        upper=body.reach,
        velocity=(inf,) * n,
        effort=(inf,) * n,
    )
    own |= dict(
        damping=body.damping, friction=zero, armature=zero, stiffness=body.stiffness, rest=zero
    )
    for x, child, joint in zip(body.places, links, joints, strict=True):
        known[child] = LinkRecord(child, x.mass, HERE[1], x.inertia, None)
        at = compose(place, (UPRIGHT, x.at))
        builder.joints[joint] = JointRecord(
            joint, MODAL, link, child, at, motor=False, modes=x.shape, group=group, **own
        )
        own = {}
