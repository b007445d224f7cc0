"""Springs of joints as they are given, and series-elastic joints: a motor drives a joint through a gear and a spring.

    parent --[joint: phi = theta_m / ratio]--> shaft --[joint_spring: delta]--> child,      theta = phi + delta

    torque of the spring   s(delta) + damping delta'         between the shaft and the link
    rotor                  ratio^2 I_r beside D of phi        as `armature`: its spin about its own axis

The pair (phi, delta) in place of (theta_m, theta) makes the spring one joint's own: S is diagonal, so that it is taken
implicitly at no cost, and everything a robot has goes on unchanged. The joint keeps its name, its limits and losses, and is
what the motor drives: tau there is ratio times the motor's torque. The spring's joint has no motor. One such joint on a fixed
parent swings with omega^2 = k (1 / J + 1 / (ratio^2 I_r)).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from psiphi._util.text import nearest, shown
from psiphi.model.builder import builder_values
from psiphi.model.builder.nonlinear_springs import read_spring
from psiphi.model.builder.records import LinkRecord
from psiphi.model.inertias import NONE
from psiphi.model.joint_types import JOINTS
from psiphi.model.spatial.transforms import HERE

if TYPE_CHECKING:
    from psiphi.model.builder.builder import Builder

ENDS = ("_shaft", "_spring")  # of the link and the joint that are added


def sprung(
    kind: str, nv: int, stiffness: Any, rest: Any, spring: Any, fail: builder_values.Fail
) -> tuple[Any, ...]:
    """stiffness, rest and spring of a joint, as its record has them."""
    if kind == "fixed":
        return (), (), None
    more = read_spring(spring, nv, stiffness, fail)
    k = builder_values.per_coordinate(stiffness, nv, 0.0, "stiffness", fail, sign=False)
    k = (more.stiffness,) if more is not None and more.is_table else k
    if (any(k) or rest is not None) and not JOINTS[kind].is_flat:
        fail(
            f"a {kind} joint turns in space, where a spring is no number a coordinate",
            "give springs to hinges and slides",
        )
    return k, builder_values.per_coordinate(rest, nv, 0.0, "rest", fail), more


def make_elastic(
    builder: Builder,
    name: Any,
    stiffness: Any,
    rotor: Any,
    ratio: Any,
    damping: Any,
    spring: Any,
    fail: builder_values.Fail,
) -> None:
    """Split a joint of the builder in two, with a link without mass between them."""
    known = builder.joints
    if not isinstance(name, str) or name not in known:
        fail(
            "there is no such joint",
            nearest(name, known) if isinstance(name, str) else "give its name",
        )
    joint = known[name]
    if not joint.moves or joint.row.nv != 1 or joint.pitch:
        fail(
            f"it is {joint.kind}, expected a hinge or a slide",
            "elastic joints turn about, or slide along, one axis",
        )
    if (
        joint.mimic is not None
        or any(joint.stiffness)
        or joint.spring is not None
        or not joint.motor
    ):
        fail(
            "it follows another joint, has a spring of its own, or has no motor",
            "make a plain joint elastic",
        )
    inertia, gear = (
        builder_values.number(rotor, "rotor", fail),
        builder_values.number(ratio, "ratio", fail),
    )
    if not inertia > 0.0 or not gear > 0.0:
        fail(
            f"rotor is {inertia:g} and ratio {gear:g}, expected more than 0",
            "give the rotor's inertia and the gear's ratio",
        )
    if stiffness is None and spring is None:
        fail(
            "neither stiffness nor spring is given",
            "give stiffness=..., in N m/rad or N/m, or a table",
        )
    shaft, own = (f"{name}{end}" for end in ENDS)
    taken = [
        new
        for new, there in ((shaft, builder.links), (own, known))
        if new in there or new in builder.frames
    ]
    if taken:
        fail(f"there is already something called {shown(taken[0])}", "give it another name")
    builder.links[shaft] = LinkRecord(shaft, 0.0, HERE[1], NONE, joint.line)
    rotors = tuple(x + gear * gear * inertia for x in joint.armature)
    known[name] = replace(joint, child=shaft, armature=rotors)
    words = {
        "axis": joint.axis,
        "stiffness": stiffness,
        "damping": damping,
        "spring": spring,
        "motor": False,
    }
    builder.joint(own, joint.kind, shaft, joint.child, **words, line=joint.line)
