"""Joint springs, and series-elastic joints: a motor drives a joint through a gear and a spring.

    parent --[joint: phi = theta_m / ratio]--> shaft --[joint_spring: delta]--> child
    theta = phi + delta

    torque of the spring   s(delta) + damping delta'     between the shaft and the link
    rotor inertia          ratio^2 I_r                   is added to the armature of `joint`

With the coordinates (phi, delta) instead of (theta_m, theta) the spring belongs to one joint. Its
stiffness matrix is diagonal, so integrators treat it implicitly at no cost, and no other part of
psiphi changes. The motor drives the joint, which has its old name, limits and losses; its tau is
ratio times the torque of the motor. The joint of the spring has no motor. On a fixed parent, such
a joint oscillates with omega^2 = k (1 / J + 1 / (ratio^2 I_r)).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from psiphi._util.array_types import Numbers
from psiphi._util.text import nearest, shown
from psiphi.model.builder import builder_values
from psiphi.model.builder.nonlinear_springs import Spring, read_spring
from psiphi.model.builder.records import LinkRecord
from psiphi.model.inertias import ZERO_INERTIA
from psiphi.model.joint_types import JOINTS
from psiphi.model.spatial.transforms import IDENTITY_PLACEMENT

if TYPE_CHECKING:
    from psiphi.model.builder.builder import Builder

NAME_SUFFIXES = ("_shaft", "_spring")  # of the added link and joint


def joint_spring(
    kind: str,
    nv: int,
    stiffness: Numbers | None,
    rest: Numbers | None,
    spring: Mapping[str, Numbers] | Spring | None,
    fail: builder_values.Fail,
) -> tuple[tuple[float, ...], tuple[float, ...], Spring | None]:
    """The fields stiffness, rest and spring of a joint record."""
    if kind == "fixed":
        return (), (), None
    nonlinear = read_spring(spring, nv, stiffness, fail)
    k = builder_values.per_coordinate(stiffness, nv, 0.0, "stiffness", fail, sign=False)
    k = (nonlinear.stiffness,) if nonlinear is not None and nonlinear.is_table else k
    if (any(k) or rest is not None) and not JOINTS[kind].is_flat:
        fail(
            f"a {kind} joint rotates in space, so a spring per coordinate is not defined",
            "give springs only to revolute and prismatic joints",
        )
    return k, builder_values.per_coordinate(rest, nv, 0.0, "rest", fail), nonlinear


def make_elastic(
    builder: Builder,
    name: str,
    stiffness: float | None,
    rotor: float,
    ratio: float,
    damping: float,
    spring: Mapping[str, Numbers] | Spring | None,
    fail: builder_values.Fail,
) -> None:
    """Split a joint of the builder in two, with a massless link between them."""
    known = builder.joints
    if not isinstance(name, str) or name not in known:
        fail(
            "there is no such joint",
            nearest(name, known) if isinstance(name, str) else "give its name",
        )
    joint = known[name]
    if not joint.moves or joint.row.nv != 1 or joint.pitch:
        fail(
            f"it is {joint.kind}, expected a revolute or prismatic joint",
            "elastic joints have one axis",
        )
    if (
        joint.mimic is not None
        or any(joint.stiffness)
        or joint.spring is not None
        or not joint.motor
    ):
        fail(
            "it follows another joint, has its own spring, or has no motor",
            "choose a joint without these",
        )
    inertia, gear = (
        builder_values.number(rotor, "rotor", fail),
        builder_values.number(ratio, "ratio", fail),
    )
    if not inertia > 0.0 or not gear > 0.0:
        fail(
            f"rotor is {inertia:g} and ratio {gear:g}, expected more than 0",
            "give the inertia of the rotor and the ratio of the gear",
        )
    if stiffness is None and spring is None:
        fail(
            "neither stiffness nor spring is given",
            "give stiffness=..., in N m/rad or N/m, or a table",
        )
    shaft, spring_joint = (f"{name}{end}" for end in NAME_SUFFIXES)
    taken = [
        new
        for new, used in ((shaft, builder.links), (spring_joint, known))
        if new in used or new in builder.frames
    ]
    if taken:
        fail(f"the name {shown(taken[0])} is already in use", "rename the other element")
    builder.links[shaft] = LinkRecord(shaft, 0.0, IDENTITY_PLACEMENT[1], ZERO_INERTIA, joint.line)
    rotors = tuple(x + gear * gear * inertia for x in joint.armature)
    known[name] = replace(joint, child=shaft, armature=rotors)
    options = {
        "axis": joint.axis,
        "stiffness": stiffness,
        "damping": damping,
        "spring": spring,
        "motor": False,
    }
    builder.joint(spring_joint, joint.kind, shaft, joint.child, **options, line=joint.line)
