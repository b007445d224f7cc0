"""The ways in, each ending in a `Robot`: a file or a bundled name, Denavit-Hartenberg rows, or Python."""

from __future__ import annotations

import os

from psiphi import robots
from psiphi.errors import ModelError
from psiphi.functions.robot import Robot
from psiphi.model import builder, dh
from psiphi.model.model import suggest
from psiphi.model.urdf import load_urdf


def load(source: str | os.PathLike, base: str = "fixed", **options) -> Robot:
    """A robot from a URDF file (or URDF text), or a bundled one by name.

    `base="free"` lets the root link fly; other options go to the reader (repair=, packages=, gravity=, armature=, ...).

    >>> load("puma560").nv
    6
    """
    text = os.fspath(source)
    if text in robots.names():
        if base != "fixed" or options:
            raise ModelError(f"the bundled {text} has a fixed base and no options", "load a URDF file for those")
        return getattr(robots, text)()
    looks_like_a_name = not any(sign in text for sign in ("<", "/", "\\", "."))
    if looks_like_a_name and not os.path.exists(text):
        raise ModelError(f"no bundled robot {text!r}, and no such file", suggest(text, robots.names()))
    return Robot.of(load_urdf(source, base, **options))


def from_dh(rows, **options) -> Robot:
    """A robot from modified (Craig) Denavit-Hartenberg rows; `convention="standard"` reads the classic ones.

    >>> from_dh([{"alpha": 0.0, "a": 0.0, "mass": 1.0, "com": (0.5, 0, 0)}]).nv
    1
    """
    return Robot.of(dh.from_dh(rows, **options))


class Builder(builder.Builder):
    """A robot written in Python: bodies, joints and frames by name, then `build()`."""

    def build(self, *args, **options) -> Robot:
        return Robot.of(super().build(*args, **options))
