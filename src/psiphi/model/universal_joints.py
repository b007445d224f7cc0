"""A universal joint as two revolute joints with a massless body between them.

    R(h₁, q₁) R(h₂, q₂)        one joint with H(q₂), or two joints with constant H

Coordinates and motion are the same. Algorithms that need constant joint maps, such as the
analytic derivatives, run on such a tree.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from psiphi._util.validate import frozen
from psiphi.model.components import IDENTITY
from psiphi.model.model import WORLD, Body, Joint, Model

MASSLESS_BODY = Body("between two hinges", 0.0, frozen(np.zeros(3)), frozen(np.zeros((3, 3))))
PER_COORDINATE = (
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


@lru_cache(maxsize=32)
def split_universal(model: Model) -> Model:
    """The model with every universal joint as two revolute joints.

    A model without universal joints, with free parameters or with embedded loops is returned as is.
    """
    if (
        model.freed is not None
        or model.embedding is not None
        or all(joint.kind != "universal" for joint in model.joints)
    ):
        return model
    bodies: list[Body] = []
    joints: list[Joint] = []
    new_index: dict[int, int] = {WORLD: WORLD}
    for body_index, (joint, body) in enumerate(zip(model.joints, model.bodies, strict=True)):
        parent = new_index[joint.parent]
        if joint.kind == "universal":
            first, last = _hinge(joint, 0), _hinge(joint, 1)
            joints.append(replace(first, index=len(joints), parent=parent))
            bodies.append(MASSLESS_BODY)
            parent, joint = len(joints) - 1, last
        joints.append(replace(joint, index=len(joints), parent=parent))
        bodies.append(body)
        new_index[body_index] = len(joints) - 1
    frames = {
        name: replace(frame, body=new_index[frame.body]) for name, frame in model.frames.items()
    }
    return replace(
        model, bodies=tuple(bodies), joints=tuple(joints), frames=frames, description=None
    )


def _hinge(joint: Joint, i: int) -> Joint:
    """Revolute joint i of the two, about its own axis and with its own coordinate."""
    h1, h2 = np.asarray(joint.axis), np.asarray(joint.axis2)
    across = np.cross(h1, h2)
    q, v = joint.q_slice.start + i, joint.v_slice.start + i
    numbers = {name: frozen(getattr(joint, name)[i : i + 1]) for name in PER_COORDINATE}
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
        **numbers,
    )
