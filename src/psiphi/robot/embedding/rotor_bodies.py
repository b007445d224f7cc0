"""`Rotor`: a motor's rotor as a spinning body, which adds gyroscopic effects to the armature.

A rotor of axial inertia I_r on link p turns with θ_m = μ θ_k, where μ is its ratio and θ_k its
joint. Besides the armature μ² I_r it couples the joint with the motion of link p, and exerts a
gyroscopic couple on that link:

    M - M_armature = Σ_k μ I_r (e_k h_m* J_p + J_p* h_m e_k*)
    couple on link p: μ I_r θ'_k w_p × h_m

Both vanish if link p does not turn about the rotor axis h_m (docs/embedding.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import positive_number, real_array
from psiphi.model.builder.builder import Builder
from psiphi.model.loops.gears import Gear, finite_number
from psiphi.model.model import WORLD
from psiphi.robot.robot import Robot


@dataclass(frozen=True)
class Rotor:
    """The rotor of a joint's motor: its axial `inertia`, and its `ratio` of turns per joint turn.

    It spins about `axis` at the point `at`, in axes of `link`; by default about the axis of the
    joint, on the parent link. `mass` is zero by default, because links in most files include the
    mass of their motors. The inertia across the axis is half of `inertia`.

    >>> Rotor("elbow", inertia=1e-4, ratio=100.0).ratio
    100.0
    """

    joint: str
    inertia: float
    ratio: float
    mass: float = 0.0
    link: str | None = None
    axis: Numbers | None = None
    at: Numbers | None = None


def mount_rotors(robot: Robot, rotors: Iterable[Rotor]) -> tuple[Robot, list[Gear]]:
    """The robot with a body for every rotor, and the gears that drive these bodies.

    The armature of the joints becomes zero.
    """
    builder, gears = Builder(robot), []
    for i, rotor in enumerate(rotors):
        if not isinstance(rotor, Rotor):
            raise StateError(
                f"rotors[{i}] is {shown(rotor)}, expected a pp.Rotor",
                'pp.Rotor("joint", inertia, ratio)',
            )
        name = _mount_rotor(builder, robot, i, rotor)
        gears.append(Gear(name, {rotor.joint: rotor.ratio}, name=f"rotor of {rotor.joint}"))
    for name in {rotor.joint for rotor in rotors}:
        builder.joints[name] = replace(builder.joints[name], armature=(0.0,))
    mounted = Robot.of(builder.build(), robot.shapes)
    return replace(mounted, loops=robot.loops, gears=robot.gears), gears


def _mount_rotor(builder: Builder, robot: Robot, i: int, rotor: Rotor) -> str:
    """Add the rotor as a body; return the name of its joint."""
    what, joint = f"rotors[{i}]", robot.joint(rotor.joint)
    if (joint.row.nq, joint.row.nv) != (1, 1):
        raise StateError(
            f"{what}: joint {joint.name} is {joint.kind}",
            "a rotor needs a joint with one coordinate",
        )
    inertia = positive_number(
        f"the inertia of {what}", rotor.inertia, "give I_r about its axis, kg m²"
    )
    if finite_number(f"the ratio of {what}", rotor.ratio) == 0.0:
        raise StateError(
            f"the ratio of {what} is {shown(rotor.ratio)}", "give a finite number, not zero"
        )
    parent = "world" if joint.parent == WORLD else robot.bodies[joint.parent].name
    link = parent if rotor.link is None else robot.frame(rotor.link).name
    if link == parent:
        at, axis = joint.pose.translation, joint.pose.rotation @ joint.axis
    else:
        at, axis = np.zeros(3), None
    at = at if rotor.at is None else _vector3(f"at of {what}", rotor.at)
    axis = axis if rotor.axis is None else _vector3(f"the axis of {what}", rotor.axis)
    if axis is None or not np.linalg.norm(axis) > 0.0:
        raise StateError(
            f"{what} is on link {link} and has no axis", "give axis=, in axes of that link"
        )
    z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    tensor = inertia * (np.eye(3) + np.outer(z, z)) / 2.0  # I_r about z, half of it across
    name = f"{joint.name} rotor"
    builder.body(name, mass=finite_number(f"the mass of {what}", rotor.mass), inertia=tensor)
    builder.joint(name, "continuous", parent=link, child=name, xyz=at, axis=z)
    return name


def _vector3(what: str, values: Numbers) -> np.ndarray:
    array = real_array(what, values, (3,), "give three numbers")
    if array.shape != (3,) or not np.isfinite(array).all():
        raise StateError(
            f"{what} is {shown(values)}, expected three finite numbers", "give x, y, z"
        )
    return array
