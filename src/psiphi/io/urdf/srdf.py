"""Named postures from an SRDF file: <group_state name="..."> with <joint name="..." value="..."/>."""

from __future__ import annotations

import os

from psiphi._util.errors import ModelError
from psiphi.io.urdf.xml_fields import Fields
from psiphi.io.urdf.xml_reader import parse
from psiphi.model.builder.builder import Builder
from psiphi.model.joint_types import joint_sizes


def read_postures(builder: Builder, source: str | os.PathLike[str]) -> None:
    """Every posture of the file, into the builder; joints that the robot has not, or welds, are noted."""
    root, file = parse(source)
    fields = Fields(file)
    if root.tag != "robot" or not root.all("group_state"):
        raise ModelError(
            "there is no <group_state> in it, expected an SRDF file",
            "name the .srdf file",
            file=file,
        )
    for state in root.all("group_state"):
        fields.owner = state
        name, lost = fields.text(state, "name"), []
        own = dict(builder.postures.get(name, {}))
        for joint in state.all("joint"):
            target = fields.text(joint, "name")
            size = joint_sizes(builder.joints[target].kind)[0] if target in builder.joints else 0
            if size:
                own[target] = fields.numbers(joint, "value", size)
            else:
                lost.append(target)
        builder.postures[name] = own
        if lost:
            builder.note(
                f"names {', '.join(lost)}, which the robot does not move", f"posture {name!r}"
            )
