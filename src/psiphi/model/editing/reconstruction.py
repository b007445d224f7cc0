"""A changed description as a robot again: built and checked, with the shapes, loops and gears that still have their places;
those that have not are told.

Loops that were embedded are embedded again (`robot/embedding/embedding_origin.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psiphi.model.builder.builder import Builder
from psiphi.model.builder.records import FrameRecord
from psiphi.model.diagnostics import ReaderWarning, warn
from psiphi.model.editing.name_patterns import taken, unused
from psiphi.model.model import Model
from psiphi.model.shapes import Shape
from psiphi.model.spatial.transforms import Place


@dataclass(frozen=True)
class AttachedPart:
    """A robot, or what was attached to it: its shapes, under their new names, itself, and what a name of it is now."""

    shapes: tuple[Shape, ...] = ()
    guest: Any = None
    named: Callable[[str], str] = str

    @property
    def loops(self) -> list[Any]:
        """Between its renamed frames."""
        return renamed_loops(getattr(self.guest, "loops", ()), self.named)

    @property
    def gears(self) -> list[Any]:
        """Between its renamed joints."""
        return renamed_gears(getattr(self.guest, "gears", ()), self.named)


ALONE = AttachedPart()


def renamed_loops(loops: Sequence[Any], named: Callable[[str], str]) -> list[Any]:
    """Loops between frames that have other names now, with such names themselves."""
    return [
        replace(loop, first=named(loop.first), second=named(loop.second), name=_its(named, loop))
        for loop in loops
    ]


def renamed_gears(gears: Sequence[Any], named: Callable[[str], str]) -> list[Any]:
    """Gears between joints that have other names now, with such names themselves."""
    leaders = [{named(name): ratio for name, ratio in gear.leaders.items()} for gear in gears]
    return [
        replace(gear, joint=named(gear.joint), leaders=own, name=_its(named, gear))
        for gear, own in zip(gears, leaders, strict=True)
    ]


def _its(named: Callable[[str], str], thing: Any) -> str:
    return named(thing.name) if thing.name else ""


def grounded(robot: Any, builder: Builder, name: str, link: str, seat: Place) -> str:
    """The name of a frame where the robot's world will be, made if a loop of it ends there; else "world"."""
    origin = getattr(getattr(robot, "embedding", None), "origin", None)
    loops = (*getattr(robot, "loops", ()), *(() if origin is None else origin.loops))
    if not any("world" in (loop.first, loop.second) for loop in loops):
        return "world"
    name = unused(name, taken(builder))
    builder.frames[name] = FrameRecord(name, link, seat, None)
    return name


def rebuilt(
    robot: Any, builder: Builder, base: str, more: AttachedPart, at: np.ndarray | None, ground: str
) -> Any:
    """The changed robot; what was embedded is closed near to `at`, a configuration of the robot before. `ground` is the frame
    where its world is now."""
    own = AttachedPart(robot.shapes, robot, lambda name: ground if name == "world" else name)
    model = builder.build(base)
    shapes = (*own.shapes, *more.shapes)
    changed = dressed(
        type(robot),
        model,
        shapes,
        (*own.loops, *more.loops),
        (*own.gears, *more.gears),
        robot.report,
    )
    origin, near = _embedded(own, more, at)
    return changed if origin is None else origin.again(changed, near)


def dressed(
    kind: Any,
    model: Model,
    shapes: Sequence[Shape],
    loops: Sequence[Any],
    gears: Sequence[Any],
    said: Sequence[str],
) -> Any:
    """The model as a robot, with those of these that still have their places; what it did not say before is a warning."""
    moving = {joint.name for joint in model.joints}
    whole, lost = _sorted(loops, lambda loop: {loop.first, loop.second} <= model.frames.keys())
    geared, open_gears = _sorted(gears, lambda gear: {gear.joint, *gear.leaders} <= moving)
    told = [
        *(ReaderWarning(lost_loop(loop)) for loop in lost),
        *(
            ReaderWarning(
                f"gear {gear.name!r} of joint {gear.joint!r}: left out, a joint of it moves no more"
            )
            for gear in open_gears
        ),
    ]
    report = tuple(dict.fromkeys((*model.report, *told)))
    warn(line for line in report if line not in said)
    worn = (shape for shape in shapes if shape.link in model.frames)
    return replace(kind.of(model, worn), loops=whole, gears=geared, report=report)


def lost_loop(loop: Any) -> str:
    """What is said of a loop that an edit took away."""
    name = loop.name or f"{loop.first} to {loop.second}"
    return f"loop {name!r}, of kind {loop.kind!r}: left out, an end of it is gone"


def _sorted(
    things: Sequence[Any], stays: Callable[[Any], bool]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What stays, and what does not."""
    return tuple(filter(stays, things)), tuple(thing for thing in things if not stays(thing))


def _embedded(
    own: AttachedPart, more: AttachedPart, at: np.ndarray | None
) -> tuple[Any, dict[str, np.ndarray]]:
    """What was embedded, of the robot and of what was attached, None where nothing was; and where their joints are."""
    near: dict[str, np.ndarray] = {}
    origin = None
    for part, q in ((own, at), (more, None)):
        embedding = getattr(part.guest, "embedding", None)
        if embedding is None or embedding.origin is None:
            continue
        q = embedding.neutral if q is None else q
        near |= {part.named(joint.name): q[joint.q_slice] for joint in part.guest.joints}
        origin = embedding.origin.renamed(part.named).united(origin)
    return origin, near
