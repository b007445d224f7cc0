"""The arms for operation counts: the two cases of S1, revolute joints, full inertias, gravity."""

from __future__ import annotations

from functools import lru_cache
from math import pi

from psiphi._util.errors import StateError
from psiphi.io.robots.generators import chain
from psiphi.model.builder.builder import Builder
from psiphi.model.model import Model
from psiphi.robot.robot import Robot

CASES = {
    1: "general: any twist, offsets along two axes",
    2: "neighbouring axes perpendicular, displaced along x",
}


@lru_cache(maxsize=64)
def arm(n: int, case: int = 1, seed: int = 0) -> Robot:
    """An arm of n links. In case 2 all neighbouring axes are perpendicular, with offsets along x.

    >>> arm(4, 2).nv
    4
    """
    if case not in CASES:
        raise StateError(
            f"case is {case!r}, expected 1 or 2",
            "use 1 for the general arm, 2 for perpendicular axes",
        )
    model = chain(n, seed=seed)
    return Robot.of(model if case == 1 else _perpendicular(model))


def _perpendicular(model: Model) -> Model:
    """The same bodies on joints with twists of 90 degrees and offsets along x."""
    builder, parent = Builder(f"perpendicular{len(model.bodies)}"), "world"
    for k, (body, joint) in enumerate(zip(model.bodies, model.joints, strict=True)):
        builder.body(body.name, body.mass, body.com, body.inertia)
        place = (float(joint.pose.translation[0]), 0.0, 0.0)
        builder.joint(
            joint.name, "revolute", parent, body.name, place, rpy=((-1) ** k * pi / 2, 0.0, 0.0)
        )
        parent = body.name
    return builder.build()
