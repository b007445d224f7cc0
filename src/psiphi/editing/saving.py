"""A robot into a file: written beside its place first, so that a killed writer leaves no half file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from psiphi import arguments
from psiphi.editing import mjcf_writing, urdf_writing
from psiphi.errors import ModelError
from psiphi.wording import shown
from psiphi.writing import replacing

WRITERS = {".urdf": urdf_writing.text, ".xml": mjcf_writing.text}


def save(robot: Any, path: Any) -> None:
    """By the end of the name."""
    target = Path(arguments.path("the file", path, "a path", 'give a name like "robot.urdf"'))
    writer = WRITERS.get(target.suffix.lower())
    if writer is None:
        raise ModelError(f"cannot save a robot as {shown(target.name)}", f"end the name in {' or '.join(WRITERS)}")
    text = writer(robot, target)
    with replacing(target, ModelError) as part:
        part.write_text(text, encoding="utf-8")
