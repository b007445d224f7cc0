"""The one place where models are made: every reader calls a `Builder`, and so can you.

Units are SI, angles are radians. Order: bodies are numbered depth first from the base; children follow in the order
their joints were given, or sorted by joint name with `order="name"`, as Pinocchio does for URDF files, so that q, v
and tau of a URDF robot are interchangeable. A fixed joint welds: its child's mass is merged into the body below, and
every link and joint name stays as a frame.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, NoReturn

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import frozen, one_of
from psiphi._util.validate import path as path_text
from psiphi.model.builder import builder_values
from psiphi.model.builder.assembly import assemble
from psiphi.model.builder.description import description, postures_by_joint
from psiphi.model.builder.model_checks import check_joints, check_links, check_model, read_repairs
from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.builder.records import (
    Description,
    DocumentRecord,
    FrameRecord,
    JointRecord,
    LinkRecord,
)
from psiphi.model.builder.tree_walk import TreeWalk, walk_tree
from psiphi.model.diagnostics import ReaderReport
from psiphi.model.flexible.flexible_link import BendingBody, make_flexible
from psiphi.model.flexible.series_elastic import make_elastic, sprung
from psiphi.model.joint_types import JOINTS, sizes
from psiphi.model.model import Model
from psiphi.model.spatial.transforms import HERE, UPRIGHT, Place

EARTH = (0.0, 0.0, -9.81)

Each = tuple[float, ...]  # a number a coordinate


class Builder:
    """Collects bodies, joints and frames, then builds a checked `Model`.

    >>> b = Builder("pendulum")
    >>> b.body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.08, 0, 0, 0.08, 0, 0.001))
    >>> b.joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0), damping=0.1)
    >>> b.frame("tip", "rod", xyz=(0, 0, -1))
    >>> b.build()
    <Model 'pendulum': 1 body, nq=1, nv=1>
    """

    def __init__(
        self,
        name: str | Model,
        gravity: Numbers | None = None,
        file: str | os.PathLike[str] | None = None,
        forest: bool = True,
    ):
        """A new robot's name, or a robot to go on from. `file` is named in messages; `forest=False` allows one root only and
        no joint on an unnamed world."""
        self.loops: list = []  # of a file, between its frames
        self.file = (
            None if file is None else path_text("file", file, "a path", "leave it out", ModelError)
        )
        self.forest, self.order = forest, "given"
        self.moves = not isinstance(
            name, Model
        )  # whether `build` asks that all joints can be moved
        self.links: dict[str, LinkRecord] = {}
        self.joints: dict[str, JointRecord] = {}
        self.frames: dict[str, FrameRecord] = {}
        self.postures: dict[str, dict[str, tuple[float, ...]]] = {}
        self.notes = ReaderReport(self.file)
        fail = self._fail_at("robot")
        self.name = builder_values.name(name.name if isinstance(name, Model) else name, fail)
        self.gravity = EARTH
        if isinstance(name, Model):
            self._go_on_from(name)
        if gravity is not None:
            self.gravity = builder_values.triple(gravity, "gravity", fail)

    def _go_on_from(self, model: Model) -> None:
        """All that the model was built from; building it must give the model again."""
        if model.freed is not None:
            raise ModelError(
                f"numbers of {self.name} are inputs",
                "change the robot first, or take light.baked(parameters)",
            )
        known = description(model)
        self.file = known.file
        self.links = {link.name: link for link in known.links}
        self.joints = {joint.name: joint for joint in known.joints}
        self.frames = {frame.name: frame for frame in known.frames}
        self.postures, self.notes = postures_by_joint(model), ReaderReport(self.file, model.report)
        x, y, z = model.gravity_vector.tolist()
        self.gravity = (x, y, z)
        built, self.moves = Builder.build(self), True
        if built.digest != model.digest:
            raise ModelError(
                f"{self.name} is not what it was built as: its fields were replaced by hand",
                "change robots by their own verbs (robot.lock, robot.attach, robot.with_inertia, ...), or by a pp.Builder",
            )

    def body(
        self,
        name: str,
        mass: float = 0.0,
        com: Numbers = (0.0, 0.0, 0.0),
        inertia: Numbers | None = None,
        rotation: Numbers | None = None,
        line: int | None = None,
    ) -> None:
        """Add a link: `inertia` about the centre of mass, 3x3, (ixx, ixy, ixz, iyy, iyz, izz), or the diagonal (ixx, iyy, izz).

        `rotation` is that of the inertia's axes in link axes.
        """
        fail = self._fail_at("link", name, line=line)
        self._new(name, self.links, "link", fail)
        axes = UPRIGHT if rotation is None else builder_values.rotation(None, rotation, fail)
        self.links[name] = LinkRecord(
            name,
            builder_values.number(mass, "mass", fail),
            builder_values.triple(com, "com", fail),
            builder_values.inertia(inertia, axes, fail),
            line,
        )

    def joint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        xyz: Numbers = (0.0, 0.0, 0.0),
        rpy: Numbers | None = None,
        rotation: Numbers | None = None,
        axis: Numbers = (0.0, 0.0, 1.0),
        axis2: Numbers | None = None,
        pitch: float = 0.0,
        lower: Numbers | None = None,
        upper: Numbers | None = None,
        velocity: Numbers | None = None,
        effort: Numbers | None = None,
        damping: Numbers | None = None,
        friction: Numbers | None = None,
        armature: Numbers | None = None,
        stiffness: Numbers | None = None,
        rest: Numbers | None = None,
        spring: Mapping[str, Numbers] | Spring | None = None,
        motor: bool = True,
        mimic: Any = None,
        line: int | None = None,
    ) -> None:
        """Add a joint of a kind of the joint table, or "fixed", that carries link `child` on link `parent` or "world".

        xyz and rpy (or `rotation`) place the joint frame in the parent's link frame; `axis` is in the joint frame.
        Limits may be one number or one a coordinate; absent ones are infinite, absent damping, friction, armature zero.
        `stiffness` is that of a spring at `rest` (zero where it is left out); `spring` is one that is not linear: a table
        {"deflection": [...], "torque": [...]} of what pulls back ("smooth": True: a cubic spline through it), or
        {"polynomial": [c2, c3, ...]} beside the stiffness.
        `motor=False`: nothing drives the joint.
        """
        fail = self._fail_at("joint", name, line=line)
        self._new(name, self.joints, "joint", fail)
        if not isinstance(kind, str) or kind not in ("fixed", *JOINTS):
            fail(f"no joint kind {shown(kind)}", nearest(kind, ("fixed", *JOINTS)))
        self.joints[name] = JointRecord(
            name,
            kind,
            builder_values.name(parent, fail),
            builder_values.name(child, fail),
            self._place(xyz, rpy, rotation, fail),
            builder_values.vector(axis, 3, "axis", fail),
            None if axis2 is None else builder_values.vector(axis2, 3, "axis2", fail),
            builder_values.number(pitch, "pitch", fail),
            *_limits(kind, lower, upper, velocity, effort, fail),
            *_losses(kind, damping, friction, armature, fail),
            *sprung(kind, sizes(kind)[1], stiffness, rest, spring, fail),
            motor=builder_values.truth(motor, "motor", fail),
            mimic=builder_values.mimic(mimic, fail),
            line=line,
        )

    def spring(
        self, joint: str, stiffness: Any = None, rest: Any = None, spring: Any = None
    ) -> None:
        """Give a joint that is there a spring, as the words of `joint` say, in place of the one it has.

        >>> import psiphi as pp
        >>> b = Builder(pp.load("acrobot"))
        >>> b.spring("elbow", stiffness=30.0, rest=0.2)
        >>> b.build().joints[1].rest
        array([0.2])
        """
        fail = self._fail_at("joint", joint)
        if not isinstance(joint, str) or joint not in self.joints:
            fail(
                "there is no such joint",
                nearest(joint, self.joints) if isinstance(joint, str) else "give its name",
            )
        record = self.joints[joint]
        if record.group is not None:
            fail(
                "it is of a flexible link, whose modes have their own stiffness",
                "give the pp.Beam other measures",
            )
        k, at, more = sprung(record.kind, sizes(record.kind)[1], stiffness, rest, spring, fail)
        self.joints[joint] = replace(record, stiffness=k, rest=at, spring=more)

    def elastic(
        self,
        joint: str,
        stiffness: float | None = None,
        rotor: float = 0.0,
        ratio: float = 1.0,
        damping: float = 0.0,
        spring: Mapping[str, Numbers] | Spring | None = None,
    ) -> None:
        """Put a gear and a spring between a joint's motor and its link: `series_elastic.py` says how.

        `rotor` is the motor's own inertia, `ratio` its turns a turn of the joint; stiffness, damping (and `spring`, a table)
        are those of the spring, joint "<joint>_spring".

        >>> import psiphi as pp
        >>> b = Builder(pp.load("acrobot"))
        >>> b.elastic("elbow", stiffness=500.0, rotor=1e-4, ratio=100.0)
        >>> [joint.name for joint in b.build().joints]
        ['shoulder', 'elbow', 'elbow_spring']
        """
        make_elastic(
            self, joint, stiffness, rotor, ratio, damping, spring, self._fail_at("joint", joint)
        )

    def flexible(
        self,
        link: str,
        body: BendingBody,
        xyz: Numbers = (0.0, 0.0, 0.0),
        rpy: Numbers | None = None,
        rotation: Numbers | None = None,
    ) -> None:
        """Hang a body that bends, a `pp.Beam` or a `pp.FlexibleBody`, on a link that is there, with its root at xyz and rpy.

        Its modes are joint "<link>_modes", without a motor; its nodes are links "<link>_tip" and so on, which others may hang
        on. The link keeps the mass it has: it is what the body is clamped to. Stiffness and damping of the modes act where
        those of joints do: `pp.simulate(..., springs=True, damping=True)`.

        >>> import psiphi as pp
        >>> b = Builder("boom")
        >>> b.body("boom")
        >>> b.joint("shoulder", "revolute", "world", "boom", axis=(0, 1, 0))
        >>> b.flexible("boom", pp.Beam(2.0, (0.05, 0.02), "aluminium", modes=2, planes="z"))
        >>> b.build().nv
        3
        """
        fail = self._fail_at("link", link)
        make_flexible(self, link, body, self._place(xyz, rpy, rotation, fail), fail)

    def frame(
        self,
        name: str,
        body: str,
        xyz: Numbers = (0.0, 0.0, 0.0),
        rpy: Numbers | None = None,
        rotation: Numbers | None = None,
        line: int | None = None,
    ) -> None:
        """Add a named place on link `body` or on "world"."""
        fail = self._fail_at("frame", name, line=line)
        self._new(name, self.frames, "frame", fail)
        self.frames[name] = FrameRecord(
            name, builder_values.name(body, fail), self._place(xyz, rpy, rotation, fail), line
        )

    def posture(self, name: str, q: Mapping[str, Numbers]) -> None:
        """Name a configuration: the coordinates of some joints, by their names; the others stay at zero."""
        fail = self._fail_at("posture", name)
        self._new(name, {}, "posture", fail)
        if not isinstance(q, Mapping):
            fail(
                f"q is {shown(q)}, expected coordinates by joint",
                f'say b.posture({shown(name)}, {{"elbow": 0.5}})',
            )
        for joint, value in q.items():
            if joint not in self.joints:
                fail(
                    f"it names joint {shown(joint)}, which is not there",
                    nearest(joint, self.joints),
                )
            own = builder_values.per_coordinate(
                value, self.joints[joint].nq, 0.0, f"q of joint {shown(joint)}", fail
            )
            self.postures.setdefault(name, {})[joint] = own

    def note(self, text: str, element: str = "robot", line: int | None = None) -> None:
        """Add a line to the model's report."""
        if not isinstance(element, str):
            raise ModelError(
                f"element is {shown(element)}, expected what the note is about",
                'give its name, say "robot"',
            )
        self.notes.note(DocumentRecord(element, line), text)

    def build(
        self, base: str = "fixed", repair: str | Iterable[str] = (), order: str = "given"
    ) -> Model:
        """The checked model: base "fixed" or "free"; `repair` names faults to mend (see model_checks.py); order "given" or "name"."""
        one_of("base", base, ("fixed", "free"), kind=partial(ModelError, element="base"))
        one_of("order", order, ("given", "name"), kind=partial(ModelError, element="order"))
        repairs, log = read_repairs(repair), ReaderReport(self.file, self.notes.notes)
        links = check_links(self.links, repairs, log)
        joints = check_joints(self.joints, repairs, log)
        walk = walk_tree(links, joints, base, order, self.forest, log)
        model = assemble(self.name, self.gravity, walk, links, list(self.frames.values()), log)
        check_model(model, links, {joint.name: joint for joint in walk.joints}, log, self.moves)
        return replace(
            model,
            report=tuple(dict.fromkeys(log.notes)),
            postures={name: _posture(model, q) for name, q in self.postures.items()},
            description=self._description(walk, links),
        )

    def _description(self, walk: TreeWalk, links: dict[str, LinkRecord]) -> Description:
        """What was built, in the order of the walk."""
        joints = tuple(joint for joint, _ in walk.spots if joint is not None)
        return Description(
            tuple(links[link.name] for _, link in walk.spots),
            joints,
            tuple(self.frames.values()),
            self.file,
        )

    def _fail_at(self, what: str, *name: Any, line: int | None = None) -> builder_values.Fail:
        """How to say that this element is wrong, in words that are made when it is."""

        def fail(cause: str, remedy: str) -> NoReturn:
            ReaderReport(self.file).fail(
                DocumentRecord(" ".join([what, *map(shown, name)]), line), cause, remedy
            )

        return fail

    def _new(self, name, known: dict, what: str, fail: builder_values.Fail) -> None:
        builder_values.name(name, fail)
        if name in known:
            line = known[name].line
            where = "" if line is None else f" (line {line})"
            fail(
                f"there is already a {what} with this name{where}",
                f"give every {what} its own name",
            )

    def _place(self, xyz, rpy, rotation, fail: builder_values.Fail) -> Place:
        place = (
            builder_values.rotation(rpy, rotation, fail),
            builder_values.triple(xyz, "xyz", fail),
        )
        return HERE if place == HERE else place


def _limits(
    kind: str, lower, upper, velocity, effort, fail: builder_values.Fail
) -> tuple[Each, Each, Each, Each]:
    """Of each number of q where it ends, of each of v the most of it and of its torque; a joint that is fixed has none."""
    (nq, nv), each = sizes(kind), partial(builder_values.per_coordinate, fail=fail)
    if kind == "fixed":
        return (), (), (), ()
    ends = each(lower, nq, -inf, "lower limit"), each(upper, nq, inf, "upper limit")
    return (
        *ends,
        each(velocity, nv, inf, "velocity limit", sign=False),
        each(effort, nv, inf, "effort limit", sign=False),
    )


def _losses(
    kind: str, damping, friction, armature, fail: builder_values.Fail
) -> tuple[Each, Each, Each]:
    """Of each number of v what resists it."""
    each = partial(
        builder_values.per_coordinate, count=sizes(kind)[1], default=0.0, fail=fail, sign=False
    )
    if kind == "fixed":
        return (), (), ()
    return (
        each(damping, what="damping"),
        each(friction, what="friction"),
        each(armature, what="armature"),
    )


def _posture(model: Model, q: dict[str, tuple[float, ...]]):
    """A configuration by joints as one vector; joints that are not there, or of another size now, are passed over."""
    out = model.neutral()
    for joint in model.joints:
        if len(q.get(joint.name, ())) == joint.row.nq:
            out[joint.q_slice] = q[joint.name]
    return frozen(out)
