"""A robot into a file: written beside its place first, so that a killed writer leaves no half file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from psiphi._util import validate
from psiphi._util.errors import ModelError
from psiphi._util.files import replacing
from psiphi._util.text import shown
from psiphi.io.mujoco import mjcf_writer
from psiphi.io.urdf import urdf_writer

WRITERS = {".urdf": urdf_writer.text, ".xml": mjcf_writer.text}


def save(robot: Any, path: Any) -> None:
    """By the end of the name."""
    target = Path(validate.path("the file", path, "a path", 'give a name like "robot.urdf"'))
    writer = WRITERS.get(target.suffix.lower())
    if writer is None:
        raise ModelError(
            f"cannot save a robot as {shown(target.name)}",
            f"end the name in {' or '.join(WRITERS)}",
        )
    if robot.freed is not None:
        cause = f"numbers of {robot.name} are inputs, and files have numbers"
        raise ModelError(
            cause, "light.baked(parameters) is a robot with these numbers in it: save that"
        )
    text = writer(spelled(robot), target)
    with replacing(target, ModelError) as part:
        part.write_text(text, encoding="utf-8")


def spelled(robot: Any) -> Any:
    """The robot as files say it: one with embedded loops as the tree it was, its loops, and the gears that are no mimics."""
    origin = None if robot.embedding is None else robot.embedding.origin
    if origin is None:
        return robot
    said = {
        name: ({mimic.joint: (mimic.multiplier,)}, mimic.offset)
        for name, mimic in origin.robot.mimics.items()
    }
    gears = tuple(
        gear for gear in origin.gears if said.get(gear.joint) != (gear.leaders, gear.offset)
    )
    return replace(origin.robot, loops=origin.loops, gears=gears)
