"""The ways to a closed system: arms around an object (`grasp`), and loops between frames (`connect`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psiphi.closed.constraints import Constraint, Follow, Friction
from psiphi.closed.joining import Part, join
from psiphi.closed.kinds import CONTACTS, KINDS, Shape
from psiphi.closed.system import System
from psiphi.errors import ModelError, StateError
from psiphi.functions.robot import Robot
from psiphi.model.builder import Builder
from psiphi.model.model import IDENTITY, Body, Model, Pose, frozen
from psiphi.model.words import nearest, shown

GRIP = "grip"  # frames of the object at its grasps: grip1, grip2, ...


@dataclass(frozen=True)
class Contact:
    """How an arm touches the object: "rigid", "line" (axis), "soft" (normal) or "point"; axes in the grasp frame.

    With `friction` the contact is one-sided: it pushes along `normal` (into the object) and holds sideways up to friction
    times that; `torsion` (metres) bounds the moment about the normal likewise.
    """

    kind: str
    axis: Any = None
    normal: Any = None
    friction: float | None = None
    torsion: float | None = None


@dataclass(frozen=True)
class Loop:
    """Two frames held together: kind "weld", "ball", "hinge", "universal", "cylindrical", "planar" or "distance".

    `first` and `second` are frame names of the system ("world" for the world). `axis` is in axes of the second frame (of a
    plane: its normal), `axis2` of a universal in axes of the first; `length` is the distance kept.
    """

    kind: str
    first: str
    second: str
    axis: Any = None
    axis2: Any = None
    length: float | None = None
    name: str = ""


def grasp(arms: Sequence, object: Body, at: Sequence, contacts: Sequence = (), name: str = "cell") -> System:
    """Arms that hold one object: `arms` are (robot, base pose, frame), `at` the grasp poses in the object, one a frame.

    A mechanism with several hands names its frames as a tuple: (robot, pose, ("left", "right")). Poses are `pp.Pose`, 4x4
    matrices, or translations alone; None is the origin. `contacts` are kinds or `pp.Contact`s, all rigid when left out.
    """
    held = [_arm(i, arm) for i, arm in enumerate(_several("arms", arms))]
    if not held:
        raise StateError("no arm came", "arms=[(robot, base pose, frame), ...]")
    names = _names([model.name for model, _, _ in held])
    hands = [(own, frame) for own, (_, _, frames) in zip(names, held, strict=True) for frame in frames]
    poses = [_pose(f"at[{i}]", pose) for i, pose in enumerate(_several("at", at))]
    kinds = list(contacts) or ["rigid"] * len(hands)
    if not len(hands) == len(poses) == len(kinds):
        raise StateError(
            f"{len(hands)} hands, {len(poses)} grasp poses and {len(kinds)} contacts came", "give one of each for every hand"
        )
    body = _object(object, poses, held[0][0].gravity_vector)
    parts = [Part(model, base, own) for own, (model, base, _) in zip(names, held, strict=True)]
    own = body.name if body.name not in names else f"{body.name} object"
    forest = join([*parts, Part(body, IDENTITY, own)], name)
    grips = [
        _contact(i, kind, f"{hand}/{frame}", f"{own}/{GRIP}{i + 1}")
        for i, ((hand, frame), kind) in enumerate(zip(hands, kinds, strict=True))
    ]
    for c in grips:
        forest.frame(c.first)
    return System(_dressed(forest, parts), grips, passive=(f"{own}/free",), object_body=f"{own}/{body.bodies[0].name}")


def connect(mechanisms, loops: Iterable = (), mimic: bool = False, passive: Iterable[str] = (), name: str = "") -> System:
    """Loops between frames of one robot, or of several: {"left": robot, "right": (robot, base pose)}.

    A robot alone keeps its own names; of several, names are "left/tool". `mimic=True` makes the mimic joints of URDF files
    act. `passive` names joints without motors, for inverse dynamics.
    """
    parts = _parts(mechanisms)
    forest = join(parts, name or "+".join(part.model.name for part in parts))
    constraints = [_loop(i, loop, forest) for i, loop in enumerate(_several("loops", loops))]
    follows = [Follow(f"mimic {j}", j, m.joint, m.multiplier, m.offset) for j, m in forest.mimics.items()] if mimic else []
    if not constraints and not follows:
        raise StateError(
            "no loop and no mimic joint to close", "give loops=[pp.Loop(...)], or mimic=True for a URDF with mimics"
        )
    for follow in follows:
        for joint in (forest.joint(follow.joint), forest.joint(follow.leader)):
            if joint.row.nv != 1:
                raise ModelError(
                    f"mimic joint {joint.name} is {joint.kind}", "only joints of one coordinate can follow or lead"
                )
    idle = tuple(forest.joint(joint).name for joint in passive)
    return System(_dressed(forest, parts), constraints, follows, passive=idle)


def _dressed(forest: Model, parts: Iterable[Part]) -> Robot:
    """The forest with its functions, and with the shapes of its parts, for viewers."""
    robot = Robot.of(forest)
    shapes = ((part, shape) for part in parts for shape in getattr(part.model, "shapes", ()))
    robot.__dict__["shapes"] = tuple(replace(shape, link=part.named(shape.link)) for part, shape in shapes)
    return robot


def _several(what: str, values) -> list:
    if isinstance(values, str | Model) or not isinstance(values, Iterable):
        raise StateError(f"{what} is {shown(values)}, expected a list", f"give {what}=[...]")
    return list(values)


def _arm(i: int, arm) -> tuple[Model, Pose, tuple[str, ...]]:
    if not isinstance(arm, Sequence) or len(arm) != 3 or not isinstance(arm[0], Model):
        raise StateError(f"arms[{i}] is {shown(arm)}, expected (robot, base pose, frame)", "None as a base pose is the origin")
    model, base, frames = arm
    names = (frames,) if isinstance(frames, str) else tuple(frames)
    return model, _pose(f"the base of arms[{i}]", base), tuple(model.frame(frame).name for frame in names)


def _names(names: list[str]) -> list[str]:
    """Each name once: robots of one name are numbered."""
    counts = {name: names.count(name) for name in names}
    seen = dict.fromkeys(names, 0)
    out = []
    for name in names:
        seen[name] += 1
        out.append(f"{name}_{seen[name]}" if counts[name] > 1 else name)
    if len(set(out)) < len(out):
        raise StateError(f"two mechanisms would be called alike: {', '.join(out)}", "rename one of them")
    return out


def _pose(what: str, value) -> Pose:
    """A Pose, a 4x4 matrix, a translation, or None."""
    if value is None:
        return IDENTITY
    if isinstance(value, Pose):
        rotation, translation = np.asarray(value.rotation, dtype=float), np.asarray(value.translation, dtype=float)
    else:
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            array = np.zeros(0)
        if array.shape == (3,):
            rotation, translation = np.eye(3), array
        elif array.shape == (4, 4) and np.array_equal(array[3], (0.0, 0.0, 0.0, 1.0)):
            rotation, translation = array[:3, :3], array[:3, 3]
        else:
            raise StateError(f"{what} is {shown(value)}", "give a pp.Pose, a 4x4 pose matrix, or x y z")
    proper = np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-6) and np.linalg.det(rotation) > 0
    if rotation.shape != (3, 3) or not proper or not np.isfinite(translation).all():
        raise StateError(f"{what} is no pose: its rotation is not orthonormal, or it is not finite", "check the matrix")
    U, _, Vt = np.linalg.svd(rotation)
    return Pose(frozen(U @ Vt), frozen(translation))


def _object(body: Body, poses: list[Pose], gravity) -> Model:
    if not isinstance(body, Body):
        raise StateError(
            f"object is {shown(body)}, expected a pp.Body", "pp.Body(name, mass, com, inertia), or pp.Body.box(...)"
        )
    builder = Builder(body.name, gravity=gravity)
    builder.body(body.name, mass=body.mass, com=body.com, inertia=body.inertia)
    builder.joint("free", "free", parent="world", child=body.name)
    for i, pose in enumerate(poses):
        builder.frame(f"{GRIP}{i + 1}", body.name, xyz=pose.translation, rotation=pose.rotation)
    model = builder.build()
    least = np.linalg.eigvalsh(model.bodies[0].inertia).min()
    if not (model.bodies[0].mass > 0.0 and least > 0.0):
        raise ModelError(
            f"the object {body.name!r} has mass {body.mass} and a rotational inertia with eigenvalue {least:.3g}: "
            "where contacts do not hold it, its acceleration would not be unique",
            "give it positive mass and inertia, as in pp.Body.box(mass, size)",
        )
    return model


def _contact(i: int, contact, first: str, second: str) -> Constraint:
    what = f"contacts[{i}]"
    contact = Contact(contact) if isinstance(contact, str) else contact
    if not isinstance(contact, Contact):
        raise StateError(f"{what} is {shown(contact)}", f"give {', '.join(CONTACTS)} or a pp.Contact")
    if contact.kind not in CONTACTS:
        raise StateError(f"{what} is of kind {shown(contact.kind)}", nearest(contact.kind, CONTACTS))
    kind = CONTACTS[contact.kind]
    direction = contact.normal if contact.kind == "soft" else contact.axis
    if "axis" in KINDS[kind].needs and direction is None:
        word = "normal" if contact.kind == "soft" else "axis"
        raise StateError(
            f"{what} is a {contact.kind} contact without {word}", f"pp.Contact({contact.kind!r}, {word}=(0, 0, 1))"
        )
    shape = Shape.of() if direction is None else Shape.of(_unit(what, direction))
    friction = None
    if contact.friction is not None:
        if contact.normal is None or not contact.friction > 0.0:
            raise StateError(
                f"{what} has friction {contact.friction} and normal {contact.normal}",
                "a one-sided contact needs friction > 0 and the normal along which it pushes the object",
            )
        friction = Friction(float(contact.friction), tuple(_unit(what, contact.normal)), contact.torsion)
    return Constraint(f"contact {i + 1}", kind, first, second, shape, friction)


def _loop(i: int, loop, forest: Model) -> Constraint:
    what = f"loops[{i}]"
    if not isinstance(loop, Loop):
        raise StateError(f"{what} is {shown(loop)}, expected a pp.Loop", 'pp.Loop("weld", "frame", "other frame")')
    kinds = [kind for kind in KINDS if kind != "soft"]
    if loop.kind not in kinds:
        raise StateError(f"{what} is of kind {shown(loop.kind)}", nearest(str(loop.kind), kinds))
    for need in KINDS[loop.kind].needs:
        if getattr(loop, need) is None:
            raise StateError(f"{what}, a {loop.kind}, has no {need}", f"pp.Loop({loop.kind!r}, ..., {need}=...)")
    if loop.first == loop.second:
        raise StateError(f"{what} holds {loop.first} to itself", "name two frames")
    first, second = forest.frame(loop.first), forest.frame(loop.second)
    if first.body == second.body:
        raise StateError(f"{what}: {loop.first} and {loop.second} are on one body", "a loop joins two bodies")
    length = 0.0 if loop.length is None else float(loop.length)
    if loop.kind == "distance" and not 0.0 < length < np.inf:
        raise StateError(f"{what} keeps the distance {length}", 'a distance is positive; two points in one place are a "ball"')
    axis = (0.0, 0.0, 1.0) if loop.axis is None else _unit(what, loop.axis)
    axis2 = (1.0, 0.0, 0.0) if loop.axis2 is None else _unit(what, loop.axis2)
    return Constraint(loop.name or f"loop {i + 1}", loop.kind, first.name, second.name, Shape.of(axis, axis2, length))


def _unit(what: str, axis) -> list[float]:
    array = np.asarray(axis, dtype=float)
    length = np.linalg.norm(array) if array.shape == (3,) else 0.0
    if not 0.0 < length < np.inf:
        raise StateError(f"{what} has the axis {shown(axis)}", "give three numbers, not all zero")
    return (array / length).tolist()


def _parts(mechanisms) -> list[Part]:
    if isinstance(mechanisms, Model):
        return [Part(mechanisms)]
    if not isinstance(mechanisms, dict) or not mechanisms:
        raise StateError(
            f"mechanisms is {shown(mechanisms)}", 'give one robot, or {"left": robot, "right": (robot, base pose), ...}'
        )
    parts = []
    for name, entry in mechanisms.items():
        model, base = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, None)
        if not isinstance(model, Model):
            raise StateError(f"mechanism {name!r} is {shown(entry)}", "give a robot, or (robot, base pose)")
        parts.append(Part(model, _pose(f"the base of {name}", base), str(name)))
    return parts
