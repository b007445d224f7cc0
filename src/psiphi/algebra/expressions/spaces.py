"""The spaces that operators act between.

joint (nv numbers), link (6 per body), frame (6 per frame), one (the column side of a vector).
"""

from __future__ import annotations

from dataclasses import dataclass

from psiphi.model.model import Model


@dataclass(frozen=True)
class Space:
    """A space by name.

    `frames` is the number of frames of a frame space; None: any number.
    """

    name: str
    frames: int | None = None

    def __repr__(self) -> str:
        return f"FRAME({self.frames or ''})" if self.name == "frame" else self.name.upper()


JOINT, LINK, ONE = Space("joint"), Space("link"), Space("one")
ANY = Space("any")  # of the identity, which acts on any space


def FRAME(frames: int | None = None) -> Space:
    """The space of wrenches (or velocities) at a number of frames."""
    return Space("frame", frames)


def compatible(a: Space, b: Space) -> bool:
    """True if the two can be the same space."""
    if ANY in (a, b) or a == b:
        return True
    return a.name == b.name == "frame" and None in (a.frames, b.frames)


def meet(a: Space, b: Space) -> Space:
    """The more specific of two compatible spaces."""
    return b if a == ANY or (a.name == "frame" and a.frames is None) else a


def with_frame_count(space: Space, frames: object) -> Space:
    """A frame space of unknown size with its number of frames; other spaces are unchanged."""
    return (
        FRAME(frames)
        if space.name == "frame" and space.frames is None and isinstance(frames, int) and frames
        else space
    )


def size(space: Space, model: Model) -> int | None:
    """The number of components of a vector of this space; None if unknown."""
    if space.name == "frame":
        return None if space.frames is None else 6 * space.frames
    return {"joint": model.nv, "link": 6 * len(model.bodies), "one": 1}.get(space.name)


def describe(space: Space, model: Model | None) -> str:
    """The space and its dimension on this robot, for messages.

    >>> describe(FRAME(2), None)
    'frame space (6·2 = 12)'
    """
    if space.name == "frame":
        return (
            "frame space (6 per frame)"
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
