"""Universal joints as two hinges, with a body between them that has no mass: the same coordinates, and the same motion.

    R(h₁, q₁) R(h₂, q₂)        one joint whose map H turns with q₂, or two whose maps are constant

What knows constant joint maps only, as the composites of derivatives do, runs on such a tree.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from psiphi._util.validate import frozen
from psiphi.model.components import IDENTITY
from psiphi.model.model import WORLD, Body, Joint, Model

NOTHING = Body("between two hinges", 0.0, frozen(np.zeros(3)), frozen(np.zeros((3, 3))))


@lru_cache(maxsize=32)
def hinged(model: Model) -> Model:
    """The model with every universal joint as two hinges; itself, where it has none, or where numbers of it are free."""
    if (
        model.freed is not None
        or model.embedding is not None
        or all(joint.kind != "universal" for joint in model.joints)
    ):
        return model
    bodies: list[Body] = []
    joints: list[Joint] = []
    place: dict[int, int] = {WORLD: WORLD}  # of a body, in the new numbers
    for joint, body in zip(model.joints, model.bodies, strict=True):
        parent = place[joint.parent]
        if joint.kind == "universal":
            first, last = _hinge(joint, 0), _hinge(joint, 1)
            joints.append(replace(first, index=len(joints), parent=parent))
            bodies.append(NOTHING)
            parent, joint = len(joints) - 1, last
        joints.append(replace(joint, index=len(joints), parent=parent))
        bodies.append(body)
        place[len(place) - 1] = len(joints) - 1
    frames = {name: replace(frame, body=place[frame.body]) for name, frame in model.frames.items()}
    return replace(
        model, bodies=tuple(bodies), joints=tuple(joints), frames=frames, description=None
    )


def _hinge(joint: Joint, i: int) -> Joint:
    """One of the two: about its own axis, with its own coordinate."""
    h1, h2 = np.asarray(joint.axis), np.asarray(joint.axis2)
    across = np.cross(h1, h2)
    q, v = joint.q_slice.start + i, joint.v_slice.start + i
    names = (
        "lower",
        "upper",
        "velocity",
        "effort",
        "damping",
        "friction",
        "armature",
        "stiffness",
        "rest",
    )
    own = {name: frozen(getattr(joint, name)[i : i + 1]) for name in names}
    return replace(
        joint,
        name=f"{joint.name}.{i}",
        kind="revolute",
        pose=IDENTITY if i else joint.pose,
        axis=frozen((h1, h2)[i]),
        axis2=frozen(across / np.linalg.norm(across)),
        q_slice=slice(q, q + 1),
        v_slice=slice(v, v + 1),
        spring=None,
        **own,
    )
