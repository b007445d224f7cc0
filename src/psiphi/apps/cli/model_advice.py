"""What may be slow, wrong or surprising about a robot: one line per fact and its consequence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from psiphi._util.text import first_names

if TYPE_CHECKING:  # imported when a command runs: `psiphi --help` needs no NumPy
    from psiphi.robot.robot import Robot

STRAIGHT_LINE_LIMIT = 64  # bodies up to which a robot's code is straight-line
MASS_RATIO = 1e6  # of the largest to the smallest mass of a body


def advice(robot: Robot) -> list[str]:
    """One line for each thing to know before computing with this robot."""
    out = [*_size(robot), *_masses(robot), *_limits(robot), *_joint_data(robot), *_shapes(robot)]
    if any(joint.kind in ("free", "spherical") for joint in robot.joints):
        out.append(
            f"q has quaternions (x, y, z, w): nq = {robot.nq}, nv = {robot.nv}; "
            "use robot.integrate and robot.difference"
        )
    return out


def _size(robot: Robot) -> list[str]:
    n = len(robot.bodies)
    if n > STRAIGHT_LINE_LIMIT:
        return [
            f"{n} bodies: functions run as loops over classes of links, "
            f"and each full matrix takes nv = {robot.nv} sweeps"
        ]
    return [
        f"{n} bodies: the first call of a function compiles for some seconds; "
        "later processes load it from the cache"
    ] * (n > 25)


def _masses(robot: Robot) -> list[str]:
    out = []
    light = [body.name for body in robot.bodies if body.mass == 0.0]
    if light:
        out.append(f"without mass: {first_names(light)}; valid if the bodies they carry have mass")
    heavy = [body.mass for body in robot.bodies if body.mass > 0.0]
    if heavy and max(heavy) / min(heavy) > MASS_RATIO:
        out.append(
            f"masses from {min(heavy):.2g} to {max(heavy):.2g} kg: "
            "expect loss of precision and small time steps"
        )
    return out


def _limits(robot: Robot) -> list[str]:
    out = []
    outside = [
        j.name for j in robot.joints if len(j.lower) == 1 and not j.lower[0] <= 0.0 <= j.upper[0]
    ]
    if outside:
        out.append(f"q = 0 is outside the limits of {first_names(outside)}")
    reversed_limits = [
        j.name
        for j in robot.joints
        if any(low > high for low, high in zip(j.lower, j.upper, strict=True))
    ]
    if reversed_limits:
        out.append(f"lower limit above the upper limit: {first_names(reversed_limits)}")
    return out


def _joint_data(robot: Robot) -> list[str]:
    """Data of joints that apply only on request, and rotor inertia, which always applies."""
    out = []
    mimic = [joint.name for joint in robot.joints if getattr(joint, "mimic", None) is not None]
    if mimic:
        out.append(
            "mimic joints move freely unless pp.connect(robot, mimic=True) couples them: "
            f"{first_names(mimic)}"
        )
    for option, fields in (
        ("damping", ["damping"]),
        ("friction", ["friction"]),
        ("springs", ["stiffness", "spring"]),
    ):
        names = [
            joint.name
            for joint in robot.joints
            if any(_is_set(getattr(joint, field, ())) for field in fields)
        ]
        if names:
            out.append(
                f"{option} act{'' if option == 'springs' else 's'} only in simulate with "
                f"{option}=True (--{option}): {first_names(names)}"
            )
    rotors = [joint.name for joint in robot.joints if any(getattr(joint, "armature", ()))]
    if rotors:
        out.append(f"rotor inertia is part of the mass matrix: {first_names(rotors)}")
    return out


def _is_set(values: Iterable[object] | None) -> bool:
    """Whether any value is nonzero, or any nonlinear spring is defined."""
    return values is not None and any(map(bool, values))


def _shapes(robot: Robot) -> list[str]:
    from psiphi.apps.viewer.geometry.urdf_visuals import missing_meshes

    shapes = getattr(robot, "shapes", ())
    missing = missing_meshes(shapes)
    if missing:
        return [
            "viewers draw simple shapes for mesh files that are missing or not STL, OBJ, COLLADA: "
            f"{first_names(missing)}"
        ]
    return [] if shapes else ["no shapes: viewers draw a stick figure"]
