"""Small robots on which claims about any robot are checked numerically."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from psiphi.model.builder.builder import Builder
from psiphi.model.joint_types import JOINTS
from psiphi.model.model import Model

SpecimenTree = tuple[tuple[str, str, str], ...]  # body, parent, joint
TWO_ARMS: SpecimenTree = (
    ("base", "world", "revolute"),
    ("left", "base", "universal"),
    ("right", "base", "prismatic"),
    ("tip", "left", "spherical"),
)
LONG_ARMS: SpecimenTree = (
    *TWO_ARMS,
    ("finger", "tip", "revolute"),
    ("nail", "finger", "helical"),
    ("hand", "right", "revolute"),
    ("thumb", "tip", "prismatic"),
)


@lru_cache(maxsize=16)
def proof_robot(frames: tuple[str, ...] = (), tree: SpecimenTree = TWO_ARMS) -> Model:
    """Two arms on one body; joints of one to three degrees of freedom, each with a rotor.

    The frames are distributed over its bodies.
    """
    builder, rng = Builder("small robot"), np.random.default_rng(4)
    for name, parent, kind in tree:
        builder.body(
            name,
            mass=rng.uniform(1.0, 3.0),
            com=rng.uniform(-0.2, 0.2, 3),
            inertia=np.diag(rng.uniform(0.2, 0.3, 3)),
        )
        along: dict[str, Any] = dict(
            zip(
                ("axis", "axis2"),
                ((0.6, 0.0, 0.8), (0.0, 1.0, 0.0))[: JOINTS[kind].axes],
                strict=False,
            )
        )
        xyz, rotors = rng.uniform(-0.5, 0.5, 3), (0.1,) * JOINTS[kind].nv
        builder.joint(
            f"to {name}", kind, parent=parent, child=name, xyz=xyz, armature=rotors, **along
        )
    for i, frame in enumerate(x for x in frames if x != "world"):
        builder.frame(frame, tree[i % len(tree)][0], xyz=rng.uniform(-0.3, 0.3, 3))
    return builder.build()
