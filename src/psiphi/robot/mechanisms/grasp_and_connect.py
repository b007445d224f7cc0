"""The ways to a closed system: arms around an object (`grasp`), and loops between frames (`connect`)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from psiphi._util.errors import ModelError, ModelWarning, StateError
from psiphi._util.text import listed, shown
from psiphi._util.validate import as_list, flag
from psiphi._util.validate import as_names as names_of
from psiphi.model import motors
from psiphi.model.builder import pose_values
from psiphi.model.diagnostics import outside
from psiphi.model.loops import contacts_and_loops
from psiphi.model.loops.constraints import Follow
from psiphi.model.loops.contacts_and_loops import Contact, Loop
from psiphi.model.loops.forest_model import Part, join
from psiphi.model.model import Body, Model
from psiphi.robot.free_robot import FreeRobot
from psiphi.robot.mechanisms import held_object
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot

__all__ = ["Contact", "Loop", "connect", "grasp"]


def grasp(
    arms: Sequence[tuple[Model, Any, str | Sequence[str]]],
    object: Body | Model | tuple[Model, Any],
    at: Sequence[Any],
    contacts: Sequence[str | Contact] = (),
    loops: Iterable[Any] = (),
    mimic: bool = False,
    passive: Iterable[str] | None = None,
    name: str = "cell",
    actuated: Iterable[str] | None = None,
) -> System:
    """Arms that hold one object: `arms` are (robot, base pose, frame), `at` the grasp poses in the object, one a frame.

    An object with joints of its own (scissors, a door, another robot) is a robot, or (robot, base pose); `at` then names its
    frames, and none of its joints has a motor unless `actuated` says so.
    A mechanism with several hands names its frames as a tuple: (robot, pose, ("left", "right")). Poses are `pp.Pose`, 4x4
    matrices, or translations alone; None is the origin. `contacts` are kinds or `pp.Contact`s, all rigid when left out.
    `loops`, `mimic`, `passive` and `actuated` are those of `connect`: loops of the arms' own, and joints without motors; a body
    never has any.
    """
    name, held = (
        contacts_and_loops.called("name", name),
        [_arm(i, arm) for i, arm in enumerate(as_list("arms", arms))],
    )
    if not held:
        raise StateError("no arm came", "arms=[(robot, base pose, frame), ...]")
    names = _names([model.name for model, _, _ in held])
    hands = [
        (own, frame) for own, (_, _, frames) in zip(names, held, strict=True) for frame in frames
    ]
    grasps, kinds = as_list("at", at), as_list("contacts", contacts) or ["rigid"] * len(hands)
    if not len(hands) == len(grasps) == len(kinds):
        raise StateError(
            f"{len(hands)} hands, {len(grasps)} grasp poses and {len(kinds)} contacts came",
            "give one of each for every hand",
        )
    held_thing = held_object.thing(object, grasps, names, held[0][0].gravity_vector)
    contact_list = [
        contacts_and_loops.contact(i, kind, f"{hand}/{frame}", grip)
        for i, ((hand, frame), kind, grip) in enumerate(
            zip(hands, kinds, held_thing.grips, strict=True)
        )
    ]
    bases = [
        pose_values.pose(f"the base of arms[{i}]", base) for i, (_, base, _) in enumerate(held)
    ]
    parts = [
        Part(model, base, own) for own, (model, _, _), base in zip(names, held, bases, strict=True)
    ]
    parts.append(held_thing.part)
    forest = join(parts, name)
    more = [
        contacts_and_loops.loop(i, loop, forest) for i, loop in enumerate(as_list("loops", loops))
    ]
    held_object.check_held(object, held_thing, contact_list, more)
    follows = _follows(forest) if flag("mimic", mimic) else []
    always = () if actuated is not None and not isinstance(object, Body) else held_thing.joints
    idle = _idle(forest, actuated, passive, follows, *always)
    return System(_dressed(forest, parts), [*contact_list, *more], follows, idle, held_thing.body)


def connect(
    mechanisms: Model | Mapping[str, Model | tuple[Model, Any]],
    loops: Iterable[Any] | None = None,
    mimic: bool = False,
    passive: Iterable[str] | None = None,
    name: str = "",
    actuated: Iterable[str] | None = None,
) -> System:
    """Loops between frames of one robot, or of several: {"left": robot, "right": (robot, base pose)}.

    `loops` are `pp.Loop`s; left out, they are the robots' own (`robot.loops`, the connects and welds of an MJCF file).
    A robot alone keeps its own names; of several, names are "left/tool". `mimic=True` makes the mimic joints of URDF files
    act: followers have no motor. `passive` names the other joints without motors, `actuated` those with one; where neither
    is given free joints (floating bases) have none, and all others do.
    """
    parts = _parts(mechanisms)
    forest = join(
        parts,
        contacts_and_loops.called("name", name) or "+".join(part.model.name for part in parts),
    )
    given = _own_loops(parts) if loops is None else as_list("loops", loops)
    constraints = [contacts_and_loops.loop(i, loop, forest) for i, loop in enumerate(given)]
    follows = _follows(forest) if flag("mimic", mimic) else []
    if not constraints and not follows:
        raise StateError(
            "no loop and no mimic joint to close",
            "give loops=[pp.Loop(...)], or mimic=True for a URDF with mimics; robot.gears act in pp.embed(robot)",
        )
    idle = _idle(forest, actuated, passive, follows)
    _tell_gears(parts)
    return System(_dressed(forest, parts), constraints, follows, idle)


def _own_loops(parts: Iterable[Part]) -> list[Loop]:
    """The loops that the robots bring, under the system's names."""
    own = ((part, loop) for part in parts for loop in getattr(part.model, "loops", ()))
    return [
        replace(loop, first=part.named(loop.first), second=part.named(loop.second))
        for part, loop in own
    ]


def _tell_gears(parts: Iterable[Part]) -> None:
    """A ModelWarning where joints that follow others by polynomials are let go."""
    gears = [gear.name or gear.joint for part in parts for gear in getattr(part.model, "gears", ())]
    if gears:
        text = f"gears ({listed(gears)}) do not act in pp.connect: pp.embed(robot) makes them act, with its loops"
        warnings.warn(ModelWarning(text), stacklevel=outside())


def _follows(forest: Model) -> list[Follow]:
    """The mimic joints, as constraints."""
    for j, m in forest.mimics.items():
        for joint in (forest.joint(j), forest.joint(m.joint)):
            if joint.row.nv != 1:
                raise ModelError(
                    f"mimic joint {joint.name} is {joint.kind}",
                    "only joints of one coordinate can follow or lead",
                )
    return [
        Follow(f"mimic {j}", j, m.joint, m.multiplier, m.offset) for j, m in forest.mimics.items()
    ]


def _idle(
    forest: Model, actuated: Any, passive: Any, follows: list[Follow], *always: str
) -> tuple[str, ...]:
    """The joints without motors: an object's, those named or free, and those that follow others."""
    return tuple(
        dict.fromkeys(
            [
                *always,
                *motors.idle(forest, actuated, passive),
                *(follow.joint for follow in follows),
            ]
        )
    )


def _dressed(forest: Model, parts: Sequence[Part]) -> Robot:
    """The forest with its functions, and with the shapes of its parts, for viewers."""
    shapes = ((part, shape) for part in parts for shape in getattr(part.model, "shapes", ()))
    kind = Robot if forest.freed is None else FreeRobot
    dressed = kind.of(
        forest, (replace(shape, link=part.named(shape.link)) for part, shape in shapes)
    )
    first, *more = parts
    if more or first.name or forest.freed is not None:
        return dressed
    return replace(
        dressed, description=first.model.description
    )  # one robot under its own names is built as it was


def _arm(i: int, arm) -> tuple[Model, Any, tuple[str, ...]]:
    if not isinstance(arm, Sequence) or len(arm) != 3 or not isinstance(arm[0], Model):
        raise StateError(
            f"arms[{i}] is {shown(arm)}, expected (robot, base pose, frame)",
            "None as a base pose is the origin",
        )
    model, base, frames = arm
    hands = names_of(f"the frame of arms[{i}]", frames)
    if not hands:
        raise StateError(
            f"arms[{i}] names no frame",
            'name the hand that holds the object: (robot, pose, "tool")',
        )
    return model, base, tuple(model.frame(hand).name for hand in hands)


def _names(names: list[str]) -> list[str]:
    """Each name once: robots of one name are numbered."""
    counts = {name: names.count(name) for name in names}
    seen = dict.fromkeys(names, 0)
    out = []
    for name in names:
        seen[name] += 1
        out.append(f"{name}_{seen[name]}" if counts[name] > 1 else name)
    if len(set(out)) < len(out):
        raise StateError(
            f"two mechanisms would be called alike: {', '.join(out)}", "rename one of them"
        )
    return out


def _parts(mechanisms) -> list[Part]:
    if isinstance(mechanisms, Model):
        return [Part(mechanisms)]
    if not isinstance(mechanisms, dict) or not mechanisms:
        raise StateError(
            f"mechanisms is {shown(mechanisms)}",
            'give one robot, or {"left": robot, "right": (robot, base pose), ...}',
        )
    parts = []
    for name, entry in mechanisms.items():
        model, base = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, None)
        if not isinstance(model, Model):
            raise StateError(
                f"mechanism {name!r} is {shown(entry)}", "give a robot, or (robot, base pose)"
            )
        parts.append(Part(model, pose_values.pose(f"the base of {name}", base), str(name)))
    return parts
