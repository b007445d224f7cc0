"""From an edited builder to a robot: build the model and transfer shapes, loops and gears.

Loops and gears whose frames or joints are gone are left out, with a warning. Embedded loops are
embedded again (`robot/embedding/embedding_origin.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from psiphi.model.builder.builder import Builder
from psiphi.model.builder.records import FrameRecord
from psiphi.model.contact.contact_pairs import ContactPair
from psiphi.model.contact.contact_points import ContactPoint
from psiphi.model.diagnostics import ReaderWarning, emit_warning
from psiphi.model.editing.name_patterns import unused_name, used_names
from psiphi.model.loops.contacts_and_loops import Loop
from psiphi.model.loops.gears import Gear
from psiphi.model.model import Frame, Model
from psiphi.model.shapes import Shape
from psiphi.model.spatial.transforms import Placement

T = TypeVar("T")


class RobotLike(Protocol):
    """A `Robot`: a model with shapes, loops and gears."""

    @classmethod
    def of(cls, model: Model, shapes: Iterable[Shape] | None = None) -> Any: ...
    @property
    def report(self) -> tuple[str, ...]: ...
    @property
    def frames(self) -> Mapping[str, Frame]: ...
    @property
    def shapes(self) -> tuple[Shape, ...]: ...
    @property
    def contact_points(self) -> tuple[ContactPoint, ...]: ...
    @property
    def contact_pairs(self) -> tuple[ContactPair, ...]: ...


@dataclass(frozen=True)
class AttachedPart:
    """The robot itself, or a part that was attached to it.

    `original` is the robot or body before, `new_name` maps its names to those in the result, and
    `shapes` have new names already.
    """

    shapes: tuple[Shape, ...] = ()
    original: Any = None
    new_name: Callable[[str], str] = str

    @property
    def loops(self) -> list[Loop]:
        """The loops of the part, between renamed frames."""
        return renamed_loops(getattr(self.original, "loops", ()), self.new_name)

    @property
    def gears(self) -> list[Gear]:
        """The gears of the part, between renamed joints."""
        return renamed_gears(getattr(self.original, "gears", ()), self.new_name)

    @property
    def contact_points(self) -> list[ContactPoint]:
        """The contact points of the part, on renamed frames."""
        points: Iterable[ContactPoint] = getattr(self.original, "contact_points", ())
        return [x.on(self.new_name(x.frame), self.new_name(x.name)) for x in points]

    @property
    def contact_pairs(self) -> list[ContactPair]:
        """The pairs of the part, on renamed frames."""
        pairs: Iterable[ContactPair] = getattr(self.original, "contact_pairs", ())
        new = self.new_name
        names = ("|".join(map(new, x.name.split("|"))) for x in pairs)
        return [
            x.on(new(x.first.frame), new(x.second.frame), name)
            for x, name in zip(pairs, names, strict=True)
        ]


ALONE = AttachedPart()


def renamed_loops(loops: Sequence[Loop], new_name: Callable[[str], str]) -> list[Loop]:
    """The loops with new names of frames, and of themselves."""
    return [
        replace(
            loop,
            first=new_name(loop.first),
            second=new_name(loop.second),
            name=_new_label(new_name, loop),
        )
        for loop in loops
    ]


def renamed_gears(gears: Sequence[Gear], new_name: Callable[[str], str]) -> list[Gear]:
    """The gears with new names of joints, and of themselves."""
    leaders = [{new_name(name): ratio for name, ratio in gear.leaders.items()} for gear in gears]
    return [
        replace(gear, joint=new_name(gear.joint), leaders=new, name=_new_label(new_name, gear))
        for gear, new in zip(gears, leaders, strict=True)
    ]


def _new_label(new_name: Callable[[str], str], item: Loop | Gear) -> str:
    return new_name(item.name) if item.name else ""


def world_frame(robot: object, builder: Builder, name: str, link: str, placement: Placement) -> str:
    """The frame that replaces the robot's "world" once its base is on `link`.

    If a loop of the robot ends at the world, this adds the frame, called `name` if that is unused;
    else it returns "world".
    """
    origin = getattr(getattr(robot, "embedding", None), "origin", None)
    loops = (*getattr(robot, "loops", ()), *(() if origin is None else origin.loops))
    if not any("world" in (loop.first, loop.second) for loop in loops):
        return "world"
    name = unused_name(name, used_names(builder))
    builder.frames[name] = FrameRecord(name, link, placement, None)
    return name


def rebuild_robot(
    robot: RobotLike,
    builder: Builder,
    base: str,
    attached: AttachedPart,
    at: np.ndarray | None,
    ground: str,
) -> Any:
    """The edited robot, of the class of `robot`.

    Embedded loops are closed near `at`, a configuration of `robot`. `ground` is the frame that
    replaces the world of `robot`.
    """
    own = AttachedPart(robot.shapes, robot, lambda name: ground if name == "world" else name)
    edited = with_shapes(
        type(robot),
        builder.build(base),
        (*own.shapes, *attached.shapes),
        (*own.loops, *attached.loops),
        (*own.gears, *attached.gears),
        robot.report,
    )
    points = (*own.contact_points, *attached.contact_points)
    kept = tuple(point for point in points if point.frame in edited.frames)
    edited = replace(edited, contact_points=kept, contact_pairs=_kept_pairs(own, attached, edited))
    origin, near = _embedding_origin(own, attached, at)
    return edited if origin is None else origin.reembed(edited, near)


def _kept_pairs(
    own: AttachedPart, attached: AttachedPart, edited: RobotLike
) -> tuple[ContactPair, ...]:
    """The pairs of both parts whose frames still move relative to each other."""
    frames = edited.frames
    return tuple(
        pair
        for pair in (*own.contact_pairs, *attached.contact_pairs)
        if pair.first.frame in frames
        and pair.second.frame in frames
        and frames[pair.first.frame].body != frames[pair.second.frame].body
    )


def with_shapes(
    kind: type[RobotLike],
    model: Model,
    shapes: Iterable[Shape],
    loops: Sequence[Loop],
    gears: Sequence[Gear],
    reported: Sequence[str],
) -> Any:
    """A robot of class `kind` with the shapes, loops and gears whose frames and joints exist.

    Lines of the report that are not in `reported` are issued as a warning.
    """
    moving = {joint.name for joint in model.joints}
    valid_loops, lost_loops = _partition(
        loops, lambda loop: {loop.first, loop.second} <= model.frames.keys()
    )
    valid_gears, lost_gears = _partition(gears, lambda gear: {gear.joint, *gear.leaders} <= moving)
    warnings = [
        *(ReaderWarning(lost_loop_message(loop)) for loop in lost_loops),
        *(
            ReaderWarning(
                f"gear {gear.name!r} of joint {gear.joint!r}: left out, one of its joints is gone "
                "or fixed"
            )
            for gear in lost_gears
        ),
    ]
    report = tuple(dict.fromkeys((*model.report, *warnings)))
    emit_warning(line for line in report if line not in reported)
    robot = kind.of(model, (shape for shape in shapes if shape.link in model.frames))
    return replace(robot, loops=valid_loops, gears=valid_gears, report=report)


def lost_loop_message(loop: Loop) -> str:
    """The warning about a loop that an edit removed."""
    name = loop.name or f"{loop.first} to {loop.second}"
    return f"loop {name!r}, of kind {loop.kind!r}: left out, one of its frames is gone"


def _partition(
    items: Sequence[T], condition: Callable[[T], bool]
) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """The items that fulfil a condition, and the others."""
    return tuple(filter(condition, items)), tuple(x for x in items if not condition(x))


def _embedding_origin(
    own: AttachedPart, attached: AttachedPart, at: np.ndarray | None
) -> tuple[Any, dict[str, np.ndarray]]:
    """The origin of embedded loops of both parts, or None, and the positions of their joints."""
    positions: dict[str, np.ndarray] = {}
    origin = None
    for part, q in ((own, at), (attached, None)):
        embedding = getattr(part.original, "embedding", None)
        if embedding is None or embedding.origin is None:
            continue
        q = embedding.neutral if q is None else q
        positions |= {part.new_name(joint.name): q[joint.q_slice] for joint in part.original.joints}
        origin = embedding.origin.renamed(part.new_name).merged(origin)
    return origin, positions
