"""Write a robot to a file. The write is atomic: an interrupted one leaves no partial file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from psiphi._util import validate
from psiphi._util.errors import ModelError
from psiphi._util.files import atomic_write
from psiphi._util.text import shown
from psiphi.io.mujoco import mjcf_writer
from psiphi.io.urdf import urdf_writer
from psiphi.model.model import Model

WRITERS = {".urdf": urdf_writer.text, ".xml": mjcf_writer.text}


def save(robot: Model, path: str | os.PathLike[str]) -> None:
    """Write a robot as URDF or MJCF; the suffix of the file name selects the format."""
    target = Path(validate.path("the file", path, "a path", 'give a name like "robot.urdf"'))
    writer = WRITERS.get(target.suffix.lower())
    if writer is None:
        raise ModelError(
            f"cannot save a robot as {shown(target.name)}",
            f"use a file name that ends in {' or '.join(WRITERS)}",
        )
    if robot.freed is not None:
        raise ModelError(
            f"parameters of {robot.name} are free, but a file needs numbers",
            "save robot.baked(parameters), the robot with these numbers",
        )
    text = writer(without_embedding(robot), target)
    with atomic_write(target, ModelError) as part:
        part.write_text(text, encoding="utf-8")


def without_embedding(robot: Model) -> Model:
    """The robot as files describe it.

    Embedded loops become the tree, `loops` and those `gears` that are not mimic joints of the tree.
    """
    origin = None if robot.embedding is None else robot.embedding.origin
    if origin is None:
        return robot
    mimics = {
        name: ({mimic.joint: (mimic.multiplier,)}, mimic.offset)
        for name, mimic in origin.robot.mimics.items()
    }
    gears = tuple(
        gear for gear in origin.gears if mimics.get(gear.joint) != (gear.leaders, gear.offset)
    )
    return replace(origin.robot, loops=origin.loops, gears=gears)
