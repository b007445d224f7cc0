"""Rotors as bodies that spin: what armature says of a motor, and what it leaves out.

A rotor of axial inertia I_r on link p turns by ratio times its joint, θ_m = μ θ_k. Beside the armature μ² I_r it couples the
joint with the motion of the link that carries it, and is a gyroscope on it:

    M - M_armature = Σ_k μ I_r (e_k h_m* J_p + J_p* h_m e_k*)        couple on link p: μ I_r θ'_k w_p × h_m

zero where link p does not turn about the rotor's axis h_m (docs/embedding.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import shown
from psiphi._util.validate import positive, real
from psiphi.model.builder.builder import Builder
from psiphi.model.loops.gears import Gear, number
from psiphi.model.model import WORLD
from psiphi.robot.robot import Robot


@dataclass(frozen=True)
class Rotor:
    """The rotor of a joint's motor: axial `inertia`, and `ratio` turns of it for one of the joint.

    It spins about `axis` at the place `at`, in axes of `link`; left out, about the joint's axis, on the link before it. Its
    mass counts where `mass` says so (the links of most files have their motors' mass already); across the axis it has half its
    inertia.

    >>> Rotor("elbow", inertia=1e-4, ratio=100.0).ratio
    100.0
    """

    joint: str
    inertia: float
    ratio: float
    mass: float = 0.0
    link: str | None = None
    axis: Any = None
    at: Any = None


def mounted(robot: Robot, rotors: Iterable[Any]) -> tuple[Robot, list[Gear]]:
    """The robot with a body for every rotor, and the gears that turn them; its joints' own armature gives way to them."""
    builder, gears = Builder(robot), []
    for i, rotor in enumerate(rotors):
        if not isinstance(rotor, Rotor):
            raise StateError(
                f"rotors[{i}] is {shown(rotor)}, expected a pp.Rotor",
                'pp.Rotor("joint", inertia, ratio)',
            )
        name = _mount(builder, robot, i, rotor)
        gears.append(Gear(name, {rotor.joint: rotor.ratio}, name=f"rotor of {rotor.joint}"))
    for name in {rotor.joint for rotor in rotors}:
        builder.joints[name] = replace(builder.joints[name], armature=(0.0,))
    return replace(
        Robot.of(builder.build(), robot.shapes), loops=robot.loops, gears=robot.gears
    ), gears


def _mount(builder: Builder, robot: Robot, i: int, rotor: Rotor) -> str:
    """The rotor as a body; the name of its joint."""
    what, joint = f"rotors[{i}]", robot.joint(rotor.joint)
    if (joint.row.nq, joint.row.nv) != (1, 1):
        raise StateError(
            f"{what}: joint {joint.name} is {joint.kind}",
            "only joints of one coordinate have a rotor",
        )
    inertia = positive(f"the inertia of {what}", rotor.inertia, "give I_r about its axis, kg m²")
    if number(f"the ratio of {what}", rotor.ratio) == 0.0:
        raise StateError(
            f"the ratio of {what} is {shown(rotor.ratio)}", "give a finite number, not zero"
        )
    before = "world" if joint.parent == WORLD else robot.bodies[joint.parent].name
    link = before if rotor.link is None else robot.frame(rotor.link).name
    if link == before or rotor.link is None:
        at, axis = joint.pose.translation, joint.pose.rotation @ joint.axis
    else:
        at, axis = np.zeros(3), None
    at = at if rotor.at is None else _three(f"at of {what}", rotor.at)
    axis = axis if rotor.axis is None else _three(f"the axis of {what}", rotor.axis)
    if axis is None or not np.linalg.norm(axis) > 0.0:
        raise StateError(
            f"{what} is mounted on {link} and has no axis", "give axis=, in axes of that link"
        )
    z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    disk = inertia * (np.eye(3) + np.outer(z, z)) / 2.0  # I_r about z, half of it across
    name = f"{joint.name} rotor"
    builder.body(name, mass=number(f"the mass of {what}", rotor.mass), inertia=disk)
    builder.joint(name, "continuous", parent=link, child=name, xyz=at, axis=z)
    return name


def _three(what: str, values: Any) -> np.ndarray:
    array = real(what, values, (3,), "give three numbers")
    if array.shape != (3,) or not np.isfinite(array).all():
        raise StateError(
            f"{what} is {shown(values)}, expected three finite numbers", "give x, y, z"
        )
    return array
