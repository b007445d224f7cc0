"""The spaces operators act between: joint (nv), link (6 a body), frame (6 a frame), one (a vector's missing side)."""

from __future__ import annotations

from dataclasses import dataclass

from psiphi.model.model import Model


@dataclass(frozen=True)
class Space:
    """A space by name; `frames` counts the frames of a frame space (None: as many as the other side has)."""

    name: str
    frames: int | None = None

    def __repr__(self) -> str:
        return f"FRAME({self.frames or ''})" if self.name == "frame" else self.name.upper()


JOINT, LINK, ONE = Space("joint"), Space("link"), Space("one")
ANY = Space("any")  # the identity's, until it meets another


def FRAME(frames: int | None = None) -> Space:
    """The space of wrenches (or velocities) at so many frames."""
    return Space("frame", frames)


def fits(a: Space, b: Space) -> bool:
    """May the two spaces be one?"""
    if ANY in (a, b) or a == b:
        return True
    return a.name == b.name == "frame" and None in (a.frames, b.frames)


def meet(a: Space, b: Space) -> Space:
    """The more definite of two spaces that fit."""
    return b if a == ANY or (a.name == "frame" and a.frames is None) else a


def filled(space: Space, frames: object) -> Space:
    """A frame space of open size with the number of frames that the vectors and B around it tell."""
    return (
        FRAME(frames)
        if space.name == "frame" and space.frames is None and isinstance(frames, int) and frames
        else space
    )


def size(space: Space, model: Model) -> int | None:
    """How many numbers a vector of this space holds on this robot."""
    if space.name == "frame":
        return None if space.frames is None else 6 * space.frames
    return {"joint": model.nv, "link": 6 * len(model.bodies), "one": 1}.get(space.name)


def describe(space: Space, model: Model | None) -> str:
    """The space in words, with its dimension on this robot.

    >>> describe(FRAME(2), None)
    'frame space (6·2 = 12)'
    """
    if space.name == "frame":
        return (
            "frame space (6 a frame)"
            if space.frames is None
            else f"frame space (6·{space.frames} = {6 * space.frames})"
        )
    if space == ONE:
        return "the single column of a vector"
    if model is None or space == ANY:
        return f"{space.name} space"
    if space == JOINT:
        return f"joint space (nv = {model.nv})"
    return f"link space (6·{len(model.bodies)} = {6 * len(model.bodies)})"
