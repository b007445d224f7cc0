"""The functions that make a `System`: `grasp` (arms hold an object) and `connect` (loops)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from psiphi._util.errors import ModelError, ModelWarning, StateError
from psiphi._util.text import listed, shown
from psiphi._util.validate import as_list, flag
from psiphi._util.validate import as_names as names_of
from psiphi.model import motors
from psiphi.model.builder import pose_values
from psiphi.model.diagnostics import caller_stacklevel
from psiphi.model.loops import contacts_and_loops
from psiphi.model.loops.constraints import MimicConstraint
from psiphi.model.loops.contacts_and_loops import Contact, Loop
from psiphi.model.loops.forest_model import Part, join
from psiphi.model.model import Body, Model
from psiphi.robot.free_robot import FreeRobot
from psiphi.robot.mechanisms import held_object
from psiphi.robot.mechanisms.held_object import ObjectLike, PoseLike
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot

__all__ = ["Contact", "Loop", "connect", "grasp"]


def grasp(
    arms: Sequence[tuple[Model, PoseLike, str | Sequence[str]]],
    object: ObjectLike,
    at: Sequence[PoseLike | str],
    contacts: Sequence[str | Contact] = (),
    loops: Iterable[Loop] = (),
    mimic: bool = False,
    passive: Iterable[str] | None = None,
    name: str = "cell",
    actuated: Iterable[str] | None = None,
) -> System:
    """Arms that hold one object.

    `arms` are (robot, base pose, frame), or (robot, base pose, ("left", "right")) for a robot with
    several hands. `object` is a `pp.Body`, and `at` are the grasp poses in it, one per hand; or an
    object with joints of its own (scissors, a door, another robot), a robot or (robot, base pose),
    and `at` are names of its frames. Joints of the object have no motors unless `actuated` names
    them.

    Poses are `pp.Pose`, 4x4 matrices or translations; None is the origin. `contacts` are kinds or
    `pp.Contact`s, by default all rigid. `loops`, `mimic`, `passive` and `actuated` are those of
    `connect`.
    """
    name = contacts_and_loops.check_name("name", name)
    read_arms = [_read_arm(i, arm) for i, arm in enumerate(as_list("arms", arms))]
    if not read_arms:
        raise StateError("arms is empty", "give arms=[(robot, base pose, frame), ...]")
    names = _unique_names([model.name for model, _, _ in read_arms])
    hands = [
        (own, frame)
        for own, (_, _, frames) in zip(names, read_arms, strict=True)
        for frame in frames
    ]
    grasps, kinds = as_list("at", at), as_list("contacts", contacts) or ["rigid"] * len(hands)
    if not len(hands) == len(grasps) == len(kinds):
        raise StateError(
            f"{len(hands)} hands, {len(grasps)} grasp poses and {len(kinds)} contacts are given, "
            "expected equal numbers",
            "give one grasp pose and one contact for each hand",
        )
    held = held_object.read_object(object, grasps, names, read_arms[0][0].gravity_vector)
    grasp_constraints = [
        contacts_and_loops.read_contact(i, kind, f"{hand}/{frame}", grip)
        for i, ((hand, frame), kind, grip) in enumerate(zip(hands, kinds, held.grips, strict=True))
    ]
    bases = [
        pose_values.read_pose(f"the base of arms[{i}]", base)
        for i, (_, base, _) in enumerate(read_arms)
    ]
    parts = [
        Part(model, base, own)
        for own, (model, _, _), base in zip(names, read_arms, bases, strict=True)
    ]
    parts.append(held.part)
    forest = join(parts, name)
    loop_constraints = [
        contacts_and_loops.read_loop(i, loop, forest)
        for i, loop in enumerate(as_list("loops", loops))
    ]
    held_object.check_held(object, held, grasp_constraints, loop_constraints)
    mimics = _mimic_constraints(forest) if flag("mimic", mimic) else []
    always = () if actuated is not None and not isinstance(object, Body) else held.joints
    unactuated = _unactuated_joints(forest, actuated, passive, mimics, *always)
    constraints = [*grasp_constraints, *loop_constraints]
    return System(_forest_robot(forest, parts), constraints, mimics, unactuated, held.body)


def connect(
    mechanisms: Model | Mapping[str, Model | tuple[Model, PoseLike]],
    loops: Iterable[Loop] | None = None,
    mimic: bool = False,
    passive: Iterable[str] | None = None,
    name: str = "",
    actuated: Iterable[str] | None = None,
) -> System:
    """Close loops between frames of one robot, or of several: {"left": robot, "right": (robot,
    base pose)}.

    `loops` are `pp.Loop`s; by default the loops of the robots (`robot.loops`, connects and welds of
    an MJCF file). Names of a single robot are kept; names of several are "left/tool". `mimic=True`
    activates the mimic joints of URDF files, which then have no motor. `passive` names other joints
    without motors, or `actuated` those with one; by default all joints have motors but free joints
    (floating bases).
    """
    parts = _read_parts(mechanisms)
    forest = join(
        parts,
        contacts_and_loops.check_name("name", name) or "+".join(part.model.name for part in parts),
    )
    loop_list = _own_loops(parts) if loops is None else as_list("loops", loops)
    constraints = [
        contacts_and_loops.read_loop(i, loop, forest) for i, loop in enumerate(loop_list)
    ]
    mimics = _mimic_constraints(forest) if flag("mimic", mimic) else []
    if not constraints and not mimics:
        raise StateError(
            "no loop and no mimic joint to close",
            "give loops=[pp.Loop(...)], or mimic=True for a URDF with mimic joints; for "
            "robot.gears use pp.embed(robot)",
        )
    unactuated = _unactuated_joints(forest, actuated, passive, mimics)
    _warn_of_gears(parts)
    return System(_forest_robot(forest, parts), constraints, mimics, unactuated)


def _own_loops(parts: Iterable[Part]) -> list[Loop]:
    """The loops of the robots, with the names of the system."""
    own = ((part, loop) for part in parts for loop in getattr(part.model, "loops", ()))
    return [
        replace(loop, first=part.qualified(loop.first), second=part.qualified(loop.second))
        for part, loop in own
    ]


def _warn_of_gears(parts: Iterable[Part]) -> None:
    """Warn that gears (joints coupled by polynomials) are ignored."""
    gears = [gear.name or gear.joint for part in parts for gear in getattr(part.model, "gears", ())]
    if gears:
        text = (
            f"gears ({listed(gears)}) do not act in pp.connect: pp.embed(robot) makes them act, "
            "with the loops of the robot"
        )
        warnings.warn(ModelWarning(text), stacklevel=caller_stacklevel())


def _mimic_constraints(forest: Model) -> list[MimicConstraint]:
    """The mimic joints, as constraints."""
    for j, m in forest.mimics.items():
        for joint in (forest.joint(j), forest.joint(m.joint)):
            if joint.row.nv != 1:
                raise ModelError(
                    f"mimic joint {joint.name} is {joint.kind}, expected one coordinate",
                    "mimic and leader must be joints with one coordinate",
                )
    return [
        MimicConstraint(f"mimic {j}", j, m.joint, m.multiplier, m.offset)
        for j, m in forest.mimics.items()
    ]


def _unactuated_joints(
    forest: Model,
    actuated: Iterable[str] | None,
    passive: Iterable[str] | None,
    mimics: list[MimicConstraint],
    *always: str,
) -> tuple[str, ...]:
    """The joints without motors: `always` (of the object), those chosen, and mimic joints."""
    return tuple(
        dict.fromkeys(
            [
                *always,
                *motors.unactuated_joints(forest, actuated, passive),
                *(mimic.joint for mimic in mimics),
            ]
        )
    )


def _forest_robot(forest: Model, parts: Sequence[Part]) -> Robot:
    """The forest as a robot, with the shapes of its parts for viewers."""
    shapes = ((part, shape) for part in parts for shape in getattr(part.model, "shapes", ()))
    kind = Robot if forest.freed is None else FreeRobot
    robot = kind.of(
        forest, (replace(shape, link=part.qualified(shape.link)) for part, shape in shapes)
    )
    first, *more = parts
    if more or first.name or forest.freed is not None:
        return robot
    return replace(robot, description=first.model.description)  # a single robot, names unchanged


def _read_arm(i: int, arm: object) -> tuple[Model, PoseLike, tuple[str, ...]]:
    if not isinstance(arm, Sequence) or len(arm) != 3 or not isinstance(arm[0], Model):
        raise StateError(
            f"arms[{i}] is {shown(arm)}, expected (robot, base pose, frame)",
            "use None as the base pose for the origin",
        )
    model, base, frames = arm
    hands = names_of(f"the frame of arms[{i}]", frames)
    if not hands:
        raise StateError(
            f"arms[{i}] names no frame",
            'name the frame of the hand: (robot, pose, "tool")',
        )
    return model, base, tuple(model.frame(hand).name for hand in hands)


def _unique_names(names: list[str]) -> list[str]:
    """The names, numbered where several robots have the same one."""
    counts = {name: names.count(name) for name in names}
    seen = dict.fromkeys(names, 0)
    out = []
    for name in names:
        seen[name] += 1
        out.append(f"{name}_{seen[name]}" if counts[name] > 1 else name)
    if len(set(out)) < len(out):
        raise StateError(
            f"two mechanisms would have the same name: {', '.join(out)}", "rename one of them"
        )
    return out


def _read_parts(mechanisms: object) -> list[Part]:
    if isinstance(mechanisms, Model):
        return [Part(mechanisms)]
    if not isinstance(mechanisms, dict) or not mechanisms:
        raise StateError(
            f"mechanisms is {shown(mechanisms)}, expected a robot or a dict of robots",
            'give one robot, or {"left": robot, "right": (robot, base pose), ...}',
        )
    parts = []
    for name, entry in mechanisms.items():
        model, base = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, None)
        if not isinstance(model, Model):
            raise StateError(
                f"mechanism {name!r} is {shown(entry)}, expected a robot",
                "give a robot, or (robot, base pose)",
            )
        parts.append(Part(model, pose_values.read_pose(f"the base of {name}", base), str(name)))
    return parts
