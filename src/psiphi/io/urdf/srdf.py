"""Named postures from an SRDF file: <group_state name=""> with <joint name="" value=""/>."""

from __future__ import annotations

import os

from psiphi._util.errors import ModelError
from psiphi.io.urdf.xml_fields import Fields
from psiphi.io.urdf.xml_reader import parse
from psiphi.model.builder.builder import Builder
from psiphi.model.joint_types import joint_sizes


def read_postures(builder: Builder, source: str | os.PathLike[str]) -> None:
    """Add the postures of an SRDF file to the builder; joints that do not move are reported."""
    root, file = parse(source)
    fields = Fields(file)
    if root.tag != "robot" or not root.all("group_state"):
        raise ModelError(
            "it has no <group_state>, expected an SRDF file",
            "give the .srdf file",
            file=file,
        )
    for state in root.all("group_state"):
        fields.owner = state
        name, unknown = fields.text(state, "name"), []
        posture = dict(builder.postures.get(name, {}))
        for joint in state.all("joint"):
            target = fields.text(joint, "name")
            size = joint_sizes(builder.joints[target].kind)[0] if target in builder.joints else 0
            if size:
                posture[target] = fields.numbers(joint, "value", size)
            else:
                unknown.append(target)
        builder.postures[name] = posture
        if unknown:
            builder.note(
                f"names {', '.join(unknown)}, which are not moving joints of the robot",
                f"posture {name!r}",
            )
