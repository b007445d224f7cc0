"""Writer of MJCF: bodies, joints, frames as sites, shapes as geoms that do not collide.

Welded links are merged into their bodies; their frames become sites. A joint with several
coordinates becomes several joints on one body, as in `psiphi.interop.mujoco`; the first has its
name. Mimic joints and loops become equalities, postures become keyframes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

from psiphi._util.errors import ModelError, ModelWarning
from psiphi._util.text import listed, shown
from psiphi.io.urdf.xml_writer import numbers, tag
from psiphi.model.diagnostics import caller_stacklevel
from psiphi.model.editing.name_patterns import distinct_names, unused_name
from psiphi.model.model import IDENTITY, WORLD, Body, Frame, Joint, Model, Pose
from psiphi.model.spatial.rotations import quaternions
from psiphi.model.spatial.transforms import from_quaternion


class OneAxis(NamedTuple):
    """A MuJoCo joint: its type, its axis, and its indices in q and v of the psiphi joint."""

    type: str
    axis: np.ndarray | None
    q: int
    v: int


def _planar(joint: Joint) -> list[OneAxis]:
    x, z = np.asarray(joint.axis2), np.asarray(joint.axis)
    return [
        OneAxis("slide", x, 0, 1),
        OneAxis("slide", np.cross(z, x), 1, 2),
        OneAxis("hinge", z, 2, 0),
    ]


MUJOCO_JOINTS = {
    "revolute": lambda j: [OneAxis("hinge", j.axis, 0, 0)],
    "continuous": lambda j: [OneAxis("hinge", j.axis, 0, 0)],
    "prismatic": lambda j: [OneAxis("slide", j.axis, 0, 0)],
    "cylindrical": lambda j: [OneAxis("hinge", j.axis, 0, 0), OneAxis("slide", j.axis, 1, 1)],
    "universal": lambda j: [OneAxis("hinge", j.axis, 0, 0), OneAxis("hinge", j.axis2, 1, 1)],
    "planar": _planar,
    "spherical": lambda j: [OneAxis("ball", None, 0, 0)],
    "free": lambda j: [OneAxis("free", None, 0, 0)],
}
# The translations in v, which are along axes of the link; those of MuJoCo are along fixed axes.
LINK_FIXED_SLIDES = {"planar": slice(1, 3), "free": slice(3, 6)}
MIN_MOMENT = 1e-15  # mjMINVAL: smallest moment of inertia of a moving body
EIGENVALUE_ERROR = 1e-14  # of MuJoCo's eigenvalues, relative to the largest
LOOPS = {"weld": "weld", "ball": "connect", "hinge": "connect"}
SIZES = {
    "box": lambda s: [x / 2 for x in s],
    "sphere": list,
    "cylinder": lambda s: [s[0], s[1] / 2],
}
SIZES["capsule"] = SIZES["cylinder"]


def text(robot: Model, file: Path) -> str:
    """The MJCF of a robot; a ModelError names what MJCF cannot represent."""
    children: dict[int, list[int]] = {}
    _warn_free_joints(robot)
    _warn_limits(robot)
    for joint in robot.joints:
        _check_joint(joint)
        children.setdefault(joint.parent, []).append(joint.index)
    lines = [
        tag("mujoco", {"model": robot.name}, end=">"),
        '  <compiler angle="radian" autolimits="true"/>',
        tag("  option", {"gravity": numbers(robot.gravity_vector)}),
        "  <worldbody>",
        *_sites_and_geoms(robot, WORLD, "    "),
    ]
    stack: list[tuple[int, int, bool]] = [(k, 2, False) for k in reversed(children.get(WORLD, []))]
    while stack:  # (body, depth, whether to write its end tag); no recursion
        k, depth, close = stack.pop()
        if close:
            lines.append("  " * depth + "</body>")
            continue
        chain = _chain(robot, k, children)
        k = chain[-1].index
        lines += _body(robot, chain, "  " * depth)
        stack += [
            (k, depth, True),
            *((child, depth + 1, False) for child in reversed(children.get(k, []))),
        ]
    lines += ["  </worldbody>", *_equalities(robot), *_keyframes(robot), "</mujoco>", ""]
    return "\n".join(lines)


def _warn_limits(robot: Model) -> None:
    """Warn about empty ranges, which MuJoCo does not support: no motion, or no effort."""
    locked = [joint.name for joint in robot.joints if (joint.lower == joint.upper).any()]
    powerless = [joint.name for joint in robot.joints if (joint.effort == 0.0).any()]
    for names, what in (
        (locked, "lower and upper limit are equal"),
        (powerless, "the effort limit is zero"),
    ):
        if names:
            text = f"{listed(names)}: {what}, which MuJoCo does not support: the limit is left out"
            warnings.warn(ModelWarning(f"{robot.name}: {text}"), stacklevel=caller_stacklevel())


def _warn_free_joints(robot: Model) -> None:
    """Warn about free joints whose zero is not the world frame: MuJoCo's q is the world pose."""
    free = (joint for joint in robot.joints if joint.kind == "free")
    moved = [
        j.name
        for j in free
        if j.pose.translation.any() or not np.array_equal(j.pose.rotation, np.eye(3))
    ]
    if moved:
        text = (
            f"{listed(moved)}: the zero of q is not at the world origin; "
            "in MJCF q is the pose in the world"
        )
        warnings.warn(ModelWarning(f"{robot.name}: {text}"), stacklevel=caller_stacklevel())


def _check_joint(joint: Joint) -> None:
    """Raise a ModelError if MuJoCo has no such joint."""
    _check_link_fixed_slides(joint)
    if joint.kind not in MUJOCO_JOINTS:
        raise ModelError(
            f"joint {shown(joint.name)} is {joint.kind}, which MuJoCo does not support", "lock it"
        )
    if joint.kind == "free" and joint.parent != WORLD:
        raise ModelError(
            f"joint {shown(joint.name)} is free but its parent is not the world, "
            "which MuJoCo does not support",
            "make it a fixed joint",
        )


def _check_link_fixed_slides(joint: Joint) -> None:
    """Raise a ModelError for values along translation axes of the link: MuJoCo's are fixed."""
    slides = LINK_FIXED_SLIDES.get(joint.kind, slice(0))
    several = joint.damping[slides].min(initial=inf) < joint.damping[slides].max(initial=0.0)
    values = {
        "armature": joint.armature[slides].any(),
        "friction": joint.friction[slides].any(),
        "an effort limit": joint.effort[slides].min(initial=inf) < inf,
        "several values of damping": several,
    }
    for what in (what for what, present in values.items() if present):
        raise ModelError(
            f"joint {shown(joint.name)} is {joint.kind} and has {what} along axes of its link, "
            "but MuJoCo's axes are fixed",
            "leave it out, or build the joint from slides and hinges",
        )


def _inertia(body: Body) -> np.ndarray:
    """The inertia, or a ModelError if MuJoCo rejects it; that of a flat body is rounded up."""
    small, middle, large = np.linalg.eigvalsh(body.inertia).tolist()
    excess = large - small - middle
    if small <= MIN_MOMENT or excess > EIGENVALUE_ERROR * large:
        moments = f"{small:.4g}, {middle:.4g}, {large:.4g}"
        raise ModelError(
            f"body {shown(body.name)} has principal moments {moments}: MuJoCo rejects moments that "
            "are zero or larger than the sum of the other two",
            "change them: robot.with_inertia(link, inertia=...)",
        )
    return body.inertia + max(excess + EIGENVALUE_ERROR * large, 0.0) * np.eye(3)


def _chain(robot: Model, k: int, children: dict[int, list[int]]) -> list[Joint]:
    """The joints of one MuJoCo body: the joints of massless links are added to the next body."""
    chain = [robot.joints[k]]
    while not robot.bodies[k].mass > 0.0:
        defaults = {robot.bodies[k].name, robot.joints[k].name} - _loop_frames(robot)
        extra = [
            frame.name
            for frame in robot.frames.values()
            if frame.body == k and frame.name not in defaults
        ]
        if len(children.get(k, ())) != 1 or extra or robot.bodies[k].inertia.any():
            raise ModelError(
                f"body {shown(robot.bodies[k].name)} moves and has no mass, which MuJoCo rejects",
                "give it mass: robot.with_inertia(link, mass=..., inertia=...)",
            )
        (k,) = children[k]
        chain.append(robot.joints[k])
    return chain


def _body(robot: Model, chain: list[Joint], indent: str) -> Iterator[str]:
    """The lines of a body with its joints.

    A1 M1 A2 M2 = (A1 A2) (A2⁻¹ M1 A2) M2: earlier joints are expressed in the frame of the last
    one.
    """
    body, last = robot.bodies[chain[-1].index], chain[-1]
    pose, frames = IDENTITY, [IDENTITY] * len(chain)  # of the body; of each joint in the body
    for i, joint in enumerate(chain):
        pose, frames[:i] = pose @ joint.pose, [joint.pose.inv @ frame for frame in frames[:i]]
    yield tag(f"{indent}body", {"name": body.name, **_pose(pose)}, end=">")
    inner, I = indent + "  ", _inertia(body)
    full = numbers((I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]))
    yield tag(
        f"{inner}inertial",
        {"pos": numbers(body.com), "mass": repr(float(body.mass)), "fullinertia": full},
    )
    for joint, frame in zip(chain, frames, strict=True):
        for i, piece in enumerate(MUJOCO_JOINTS[joint.kind](joint)):
            if piece.axis is None and not np.array_equal(frame.rotation, np.eye(3)):
                raise ModelError(
                    f"joint {shown(joint.name)} is a ball joint of a massless link, "
                    "in a rotated frame",
                    "give that link mass",
                )
            axis = None if piece.axis is None else frame.rotation @ piece.axis
            attributes = _joint(
                joint, piece._replace(axis=axis), joint.name if i == 0 else f"{joint.name}.{i}"
            )
            yield tag(
                f"{inner}joint",
                {
                    **attributes,
                    **({"pos": numbers(frame.translation)} if frame.translation.any() else {}),
                },
            )
    yield from _sites_and_geoms(robot, last.index, inner)


def _joint(joint: Joint, piece: OneAxis, name: str) -> dict[str, str]:
    """The attributes of a MuJoCo joint."""
    attributes = {"name": name, "type": piece.type}
    if piece.axis is None and min(joint.effort) < inf:
        raise ModelError(
            f"joint {shown(joint.name)} is {joint.kind} and has an effort limit, "
            "which MuJoCo does not support",
            "remove the limit",
        )
    values_by_name = {
        "damping": joint.damping,
        "frictionloss": joint.friction,
        "armature": joint.armature,
    }
    for word, values in values_by_name.items():
        if piece.axis is None and len(set(values.tolist())) > 1:
            raise ModelError(
                f"joint {shown(joint.name)} has several values of {word}, but MuJoCo has one",
                "make them equal",
            )
        attributes[word] = repr(float(values[piece.v]))
    if piece.axis is not None:
        attributes["axis"] = numbers(piece.axis)
        lower, upper, effort = joint.lower[piece.q], joint.upper[piece.q], joint.effort[piece.v]
        if -inf < lower or upper < inf:
            attributes["range"] = numbers(np.clip((lower, upper), -1e10, 1e10))
        attributes |= _spring(joint, piece.v)
        if effort < inf:
            attributes["actuatorfrcrange"] = numbers((-effort, effort))
    return attributes


def _spring(joint: Joint, v: int) -> dict[str, str]:
    """stiffness and springref; MuJoCo's polynomials have at most three terms."""
    higher = () if joint.spring is None else joint.spring.polynomial
    if (joint.spring is not None and joint.spring.is_table) or len(higher) > 2:
        raise ModelError(
            f"joint {shown(joint.name)} has a spring that MJCF cannot represent: "
            "MuJoCo has polynomials of at most three terms",
            "use a linear stiffness",
        )
    terms = (joint.stiffness[v], *higher)
    return (
        {"stiffness": numbers(terms), "springref": repr(float(joint.rest[v]))} if any(terms) else {}
    )


def _sites_and_geoms(robot: Model, k: int, indent: str) -> Iterator[str]:
    """The sites and geoms of body k."""
    sites = _site_names(robot)
    for frame in robot.frames.values():
        if frame.body == k and frame.name in sites:
            yield tag(f"{indent}site", {"name": sites[frame.name], **_pose(frame.pose)})
    for point in (point for pair in _hinge_points(robot).values() for point in pair):
        if point.frame.body == k:
            yield tag(
                f"{indent}site",
                {"name": point.name, **_pose(point.frame.pose @ Pose(np.eye(3), point.axis))},
            )
    for shape in getattr(robot, "shapes", ()):
        frame = robot.frames.get(shape.link)
        if frame is not None and frame.body == k and shape.kind in SIZES:
            attributes = {
                "type": shape.kind,
                "size": numbers(SIZES[shape.kind](shape.size)),
                **_pose(frame.pose @ shape.pose),
            }
            attributes |= {} if shape.color is None else {"rgba": numbers(shape.color)}
            if shape.surface is not None:
                surface = shape.surface
                attributes |= {"friction": numbers([surface.friction]), "condim": surface.condim}
                attributes |= {"margin": numbers([surface.margin])}
            group = "2" if shape.role == "visual" else "3"
            yield tag(
                f"{indent}geom",
                {**attributes, "contype": "0", "conaffinity": "0", "mass": "0", "group": group},
            )


def _equalities(robot: Model) -> Iterator[str]:
    """The lines of loops, mimic joints and gears."""
    lines, sites, points = [], _site_names(robot), _hinge_points(robot)
    loops, gears = (getattr(robot, word, ()) for word in ("loops", "gears"))
    names = iter(distinct_names(thing.name for thing in (*loops, *gears) if thing.name))
    name_of = lambda thing: {"name": next(names)} if thing.name else {}  # noqa: E731
    for number, loop in enumerate(loops):
        what = f"the loop of {loop.first} and {loop.second}"
        if loop.kind not in LOOPS or loop.friction is not None:
            kind = f"a {loop.kind}{'' if loop.friction is None else ', one-sided'}"
            raise ModelError(
                f"{what} is {kind}",
                "MuJoCo supports ball, weld and hinge loops without friction",
            )
        ends = {"site1": sites[loop.first], "site2": sites[loop.second]}
        lines.append(tag(f"    {LOOPS[loop.kind]}", {**name_of(loop), **ends}))
        if number in points:
            a, b = points[number]
            lines.append(tag("    connect", {"site1": a.name, "site2": b.name}))
    for name, mimic in robot.mimics.items():
        attributes = {
            "joint1": name,
            "joint2": mimic.joint,
            "polycoef": numbers((mimic.offset, mimic.multiplier, 0, 0, 0)),
        }
        lines.append(tag("    joint", attributes))
    for gear in gears:
        ((leader, ratio),) = gear.leaders.items() if len(gear.leaders) == 1 else ((None, ()),)
        terms = tuple(ratio) if isinstance(ratio, tuple) else (ratio,)
        if leader is None or len(terms) > 4:
            raise ModelError(
                f"{gear.name or gear.joint} is a gear with {len(gear.leaders)} leaders "
                f"and {len(terms)} terms",
                "MuJoCo couples two joints by polynomials of order four at most",
            )
        attributes = {
            "joint1": gear.joint,
            "joint2": leader,
            "polycoef": numbers((gear.offset, *terms, *[0] * (4 - len(terms)))),
        }
        lines.append(tag("    joint", {**name_of(gear), **attributes}))
    if lines:
        yield from ("  <equality>", *lines, "  </equality>")


def _site_names(robot: Model) -> dict[str, str]:
    """The site name of each frame that becomes a site.

    These are the frames of loops, and all frames that are not the frame of a body or joint.
    """
    defaults = {"world", *(body.name for body in robot.bodies)} | {
        joint.name for joint in robot.joints
    }
    ends = _loop_frames(robot)
    sites = {name: name for name in robot.frames if name not in defaults}
    return sites | {
        name: unused_name(f"{name}_end", {*robot.frames})
        for name in robot.frames
        if name in defaults & ends
    }


def _loop_frames(robot: Model) -> set[str]:
    """The frames of all loops."""
    return {frame for loop in getattr(robot, "loops", ()) for frame in (loop.first, loop.second)}


class AxisPoint(NamedTuple):
    """A second point on the axis of a hinge loop, 1 m from the frame."""

    name: str
    frame: Frame
    axis: np.ndarray


def _hinge_points(robot: Model) -> dict[int, tuple[AxisPoint, AxisPoint]]:
    """A second pair of points for each hinge loop, by index: MuJoCo has no hinge equality."""
    taken, found = {*robot.frames, *_site_names(robot).values()}, {}
    for number, loop in enumerate(getattr(robot, "loops", ())):
        if loop.kind == "hinge":
            axis = np.asarray((0.0, 0.0, 1.0) if loop.axis is None else loop.axis, dtype=float)
            ends = (
                (robot.frames[end], unused_name(f"{end}_pin{number + 1}", taken))
                for end in (loop.first, loop.second)
            )
            first, second = (
                AxisPoint(name, frame, axis / np.linalg.norm(axis)) for frame, name in ends
            )
            found[number] = first, second
    return found


def _keyframes(robot: Model) -> Iterator[str]:
    """The lines of the postures."""
    if robot.postures:
        yield "  <keyframe>"
        for name, q in robot.postures.items():
            yield tag("    key", {"name": name, "qpos": numbers(_qpos(robot, q))})
        yield "  </keyframe>"


def _qpos(robot: Model, q: np.ndarray) -> list[float]:
    """q in MuJoCo's convention: quaternions (w, x, y, z), free joints as world poses."""
    out: list[float] = []
    for joint in robot.joints:
        coordinates = q[joint.q_slice]
        if joint.kind == "free":
            pose = joint.pose @ Pose(
                np.reshape(from_quaternion(*coordinates[3:].tolist()), (3, 3)), coordinates[:3]
            )
            coordinates = np.concatenate([pose.translation, quaternions(pose.rotation)])
        if joint.row.nq != joint.row.nv:
            coordinates = np.concatenate([coordinates[:-4], np.roll(coordinates[-4:], 1)])
        out += coordinates.tolist()
    return out


def _pose(pose: Pose) -> dict[str, str]:
    x, y, z, w = quaternions(pose.rotation).tolist()
    return {"pos": numbers(pose.translation), "quat": numbers((w, x, y, z))}
