"""A flexible body as links and joints of a builder: places that move together (`modal_cluster.py`).

    link --[<link>_modes: η]--> <link>.1, <link>.2, ...    drawn nodes
                                <link>~3, <link>~4, ...    lumped masses
                                <link>_<node>              interface nodes

The coordinates η are the amplitudes of the modes, each with its stiffness and damping: a joint
with n coordinates, springs and no motor. The link itself stays rigid; the body is clamped to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from psiphi._util.text import nearest, shown
from psiphi.model.builder import builder_values
from psiphi.model.builder.records import FlexibleRecord, JointRecord, LinkRecord
from psiphi.model.inertias import ZERO_INERTIA, InertiaTuple
from psiphi.model.mode_shapes import MODAL, ModeShape
from psiphi.model.spatial.transforms import (
    IDENTITY_PLACEMENT,
    IDENTITY_ROTATION,
    Placement,
    Vector,
    compose,
)

if TYPE_CHECKING:
    from psiphi.model.builder.builder import Builder

UNNAMED_PLACES = ("", "~")  # names of unnamed nodes: drawn ones, and lumped masses
MODES_SUFFIX = "_modes"  # of the name of the joint


@dataclass(frozen=True)
class BodyPlace:
    """A lumped mass or a node: its position at η = 0 and its mode shapes."""

    name: str  # of an interface node; else one of UNNAMED_PLACES
    position: Vector
    shape: ModeShape
    mass: float = 0.0
    inertia: InertiaTuple = ZERO_INERTIA


@dataclass(frozen=True, eq=False)
class BendingBody:
    """Places in axes of the root; stiffness, damping and largest amplitude of each mode."""

    places: tuple[BodyPlace, ...]
    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    max_amplitude: tuple[float, ...]


def make_flexible(
    builder: Builder, link: str, body: BendingBody, root: Placement, fail: builder_values.Fail
) -> None:
    """Add the places of a body to the builder as links and joints.

    `root` is the placement of the body on the link.
    """
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
        f"{link}{x.name or '.'}{next(count)}" if x.name in UNNAMED_PLACES else f"{link}_{x.name}"
        for x in body.places
    ]
    # The first joint has the coordinates.
    joints = [f"{x}_bends" if i else f"{link}{MODES_SUFFIX}" for i, x in enumerate(links)]
    for new, used in (*((x, known) for x in links), *((x, builder.joints) for x in joints)):
        if new in used or new in builder.frames:
            fail(
                f"the name {shown(new)} is already in use",
                "make a link flexible only once, or rename the other element",
            )
    group, n = FlexibleRecord(link, len(links)), len(body.stiffness)
    zero = (0.0,) * n
    properties: dict[str, Any] = dict(
        lower=tuple(-x for x in body.max_amplitude),
        upper=body.max_amplitude,
        velocity=(inf,) * n,
        effort=(inf,) * n,
    )
    properties |= dict(
        damping=body.damping, friction=zero, armature=zero, stiffness=body.stiffness, rest=zero
    )
    for x, child, joint in zip(body.places, links, joints, strict=True):
        known[child] = LinkRecord(child, x.mass, IDENTITY_PLACEMENT[1], x.inertia, None)
        placement = compose(root, (IDENTITY_ROTATION, x.position))
        builder.joints[joint] = JointRecord(
            joint,
            MODAL,
            link,
            child,
            placement,
            motor=False,
            modes=x.shape,
            group=group,
            **properties,
        )
        properties = {}
