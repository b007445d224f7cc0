"""`Builder`: collects links, joints and frames, and builds a `Model`. All readers use it.

Units are SI, angles are in radians. Bodies are numbered depth first from the base. Children follow
in the order in which their joints were added, or by joint name with `order="name"`, as in Pinocchio
for URDF files, so that q, v and tau of a URDF robot are interchangeable with Pinocchio's. A fixed
joint welds: the child's mass is merged into the parent body, and the names of link and joint remain
as frames.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, NoReturn

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import count_of, nearest, shown
from psiphi._util.validate import frozen, one_of
from psiphi._util.validate import path as path_text
from psiphi.model.builder import builder_values
from psiphi.model.builder.assembly import assemble
from psiphi.model.builder.description import model_description, postures_by_joint
from psiphi.model.builder.model_checks import check_joints, check_links, check_model, read_repairs
from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.builder.records import (
    Description,
    DocumentRecord,
    FrameRecord,
    JointRecord,
    LinkRecord,
)
from psiphi.model.builder.welded_tree import WeldedTree, carrier_joints, weld_links
from psiphi.model.diagnostics import ReaderReport
from psiphi.model.flexible.flexible_link import BendingBody, make_flexible
from psiphi.model.flexible.series_elastic import joint_spring, make_elastic
from psiphi.model.joint_types import JOINTS, joint_sizes
from psiphi.model.model import Model
from psiphi.model.spatial.transforms import IDENTITY_PLACEMENT, IDENTITY_ROTATION, Placement

EARTH = (0.0, 0.0, -9.81)  # the default of gravity

Each = tuple[float, ...]  # one number for each coordinate


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
        """`name` is the name of a new robot, or a robot to continue from.

        `file` is used in messages. `forest=False` allows one root only, and joints on "world" only
        if there is a link of this name.
        """
        self.loops: list = []  # loops of the file, between its frames
        # the names and lines of elements of the file that have faults
        self.unread: dict[str, dict[str, int | None]] = {"link": {}, "joint": {}}
        self.file = (
            None if file is None else path_text("file", file, "a path", "leave it out", ModelError)
        )
        self.forest, self.order = forest, "given"
        # Whether `build` checks that all joints can be moved.
        self.check_mobility = not isinstance(name, Model)
        self.links: dict[str, LinkRecord] = {}
        self.joints: dict[str, JointRecord] = {}
        self.frames: dict[str, FrameRecord] = {}
        self.postures: dict[str, dict[str, tuple[float, ...]]] = {}
        self.notes = ReaderReport(self.file)
        fail = self.fail_at("robot")
        self.name = builder_values.name(name.name if isinstance(name, Model) else name, fail)
        self.gravity = EARTH
        if isinstance(name, Model):
            self._continue_from(name)
        if gravity is not None:
            self.gravity = builder_values.triple(gravity, "gravity", fail)

    def _continue_from(self, model: Model) -> None:
        """Take the records of a model, and check that they give the model again."""
        if model.freed is not None:
            raise ModelError(
                f"{self.name} has free parameters",
                "edit the robot before robot.free, or use light.baked(parameters)",
            )
        records = model_description(model)
        self.file = records.file
        self.links = {link.name: link for link in records.links}
        self.joints = {joint.name: joint for joint in records.joints}
        self.frames = {frame.name: frame for frame in records.frames}
        self.postures, self.notes = postures_by_joint(model), ReaderReport(self.file, model.report)
        x, y, z = model.gravity_vector.tolist()
        self.gravity = (x, y, z)
        built, self.check_mobility = Builder.build(self), True
        if built.digest != model.digest:
            raise ModelError(
                f"{self.name} is not the model that was built: its fields were replaced by hand",
                "edit robots with methods (robot.lock, robot.attach, robot.with_inertia, ...) or a "
                "pp.Builder",
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
        """Add a link.

        `inertia` is about the centre of mass: 3x3, (ixx, ixy, ixz, iyy, iyz, izz), or the diagonal
        (ixx, iyy, izz). `rotation` is the rotation of the inertia's axes in link axes.
        """
        fail = self.fail_at("link", name, line=line)
        self._check_new(name, self.links, "link", fail)
        axes = (
            IDENTITY_ROTATION if rotation is None else builder_values.rotation(None, rotation, fail)
        )
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
        mimic: str | tuple[object, ...] | list[object] | None = None,
        line: int | None = None,
    ) -> None:
        """Add a joint from link `parent`, or "world", to link `child`.

        `kind` is a row of the joint table, or "fixed". xyz and rpy (or `rotation`) are the pose of
        the joint frame in the parent's link frame; `axis` is in the joint frame.
        A limit is one number, or one for each coordinate; the default is infinite. Damping,
        friction and armature are zero by default.
        `stiffness` is that of a spring with zero torque at `rest` (default 0). `spring` is
        nonlinear: a table {"deflection": [...], "torque": [...]} of the restoring torque (with
        "smooth": True, a cubic spline), or {"polynomial": [c2, c3, ...]} together with
        `stiffness`.
        `motor=False` says that the joint has no motor. `mimic` is a joint's name, or
        (joint, multiplier, offset).
        """
        fail = self.fail_at("joint", name, line=line)
        self._check_new(name, self.joints, "joint", fail)
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
            *joint_spring(kind, joint_sizes(kind)[1], stiffness, rest, spring, fail),
            motor=builder_values.boolean(motor, "motor", fail),
            mimic=builder_values.mimic(mimic, fail),
            line=line,
        )

    def spring(
        self,
        joint: str,
        stiffness: Numbers | None = None,
        rest: Numbers | None = None,
        spring: Mapping[str, Numbers] | Spring | None = None,
    ) -> None:
        """Replace the spring of an existing joint; the arguments are those of `joint`.

        >>> import psiphi as pp
        >>> b = Builder(pp.load("acrobot"))
        >>> b.spring("elbow", stiffness=30.0, rest=0.2)
        >>> b.build().joints[1].rest
        array([0.2])
        """
        fail = self.fail_at("joint", joint)
        if not isinstance(joint, str) or joint not in self.joints:
            fail(
                "no such joint",
                nearest(joint, self.joints) if isinstance(joint, str) else "give its name",
            )
        record = self.joints[joint]
        if record.group is not None:
            fail(
                "it belongs to a flexible link, whose modes have their own stiffness",
                "change the dimensions of the pp.Beam",
            )
        k, at_rest, nonlinear = joint_spring(
            record.kind, joint_sizes(record.kind)[1], stiffness, rest, spring, fail
        )
        self.joints[joint] = replace(record, stiffness=k, rest=at_rest, spring=nonlinear)

    def elastic(
        self,
        joint: str,
        stiffness: float | None = None,
        rotor: float = 0.0,
        ratio: float = 1.0,
        damping: float = 0.0,
        spring: Mapping[str, Numbers] | Spring | None = None,
    ) -> None:
        """Put a gear and a spring between a joint's motor and its link.

        `rotor` is the inertia of the motor, `ratio` its turns for each turn of the joint.
        Stiffness, damping and `spring` (a table) are those of the spring, the new joint
        "<joint>_spring".

        >>> import psiphi as pp
        >>> b = Builder(pp.load("acrobot"))
        >>> b.elastic("elbow", stiffness=500.0, rotor=1e-4, ratio=100.0)
        >>> [joint.name for joint in b.build().joints]
        ['shoulder', 'elbow', 'elbow_spring']
        """
        make_elastic(
            self, joint, stiffness, rotor, ratio, damping, spring, self.fail_at("joint", joint)
        )

    def flexible(
        self,
        link: str,
        body: BendingBody,
        xyz: Numbers = (0.0, 0.0, 0.0),
        rpy: Numbers | None = None,
        rotation: Numbers | None = None,
    ) -> None:
        """Clamp the root of a flexible body, a `pp.Beam` or `pp.FlexibleBody`, to a link.

        Its modes are the joint "<link>_modes", which has no motor. Its nodes are links, e.g.
        "<link>_tip", to which joints can be added. xyz and rpy (or `rotation`) are the pose of the
        root in the link frame. The mass of `link` itself does not change.
        Stiffness and damping of the modes act with `pp.simulate(..., springs=True, damping=True)`,
        as those of joints do.

        >>> import psiphi as pp
        >>> b = Builder("boom")
        >>> b.body("boom")
        >>> b.joint("shoulder", "revolute", "world", "boom", axis=(0, 1, 0))
        >>> b.flexible("boom", pp.Beam(2.0, (0.05, 0.02), "aluminium", modes=2, planes="z"))
        >>> b.build().nv
        3
        """
        fail = self.fail_at("link", link)
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
        """Add a named frame on link `body` or on "world"."""
        fail = self.fail_at("frame", name, line=line)
        self._check_new(name, self.frames, "frame", fail)
        self.frames[name] = FrameRecord(
            name, builder_values.name(body, fail), self._place(xyz, rpy, rotation, fail), line
        )

    def posture(self, name: str, q: Mapping[str, Numbers]) -> None:
        """Name a configuration: {joint: coordinates}; joints that are not given are at zero."""
        fail = self.fail_at("posture", name)
        self._check_new(name, {}, "posture", fail)
        if not isinstance(q, Mapping):
            fail(
                f"q is {shown(q)}, expected coordinates by joint",
                f'write b.posture({shown(name)}, {{"elbow": 0.5}})',
            )
        for joint, value in q.items():
            if joint not in self.joints:
                fail(
                    f"it names joint {shown(joint)}, which does not exist",
                    nearest(joint, self.joints),
                )
            numbers = builder_values.per_coordinate(
                value, self.joints[joint].nq, 0.0, f"q of joint {shown(joint)}", fail
            )
            self.postures.setdefault(name, {})[joint] = numbers

    def __repr__(self) -> str:
        counts = (len(self.links), len(self.joints), len(self.frames))
        words = [
            count_of(n, what, f"{what}s")
            for n, what in zip(counts, ("link", "joint", "frame"), strict=True)
        ]
        return f"<Builder of {self.name!r}: {', '.join(words)}>"

    def note(self, text: str, element: str = "robot", line: int | None = None) -> None:
        """Add a line to the model's report."""
        if not isinstance(element, str):
            raise ModelError(
                f"element is {shown(element)}, expected the name of what the note is about",
                'give a name, for instance "robot"',
            )
        self.notes.note(DocumentRecord(element, line), text)

    def build(
        self, base: str = "fixed", repair: str | Iterable[str] = (), order: str = "given"
    ) -> Model:
        """The checked model.

        `base` is "fixed" or "free"; `repair` names faults to correct (`model_checks.py`); `order`
        of children is "given" or by "name".
        """
        one_of("base", base, ("fixed", "free"), kind=partial(ModelError, element="base"))
        one_of("order", order, ("given", "name"), kind=partial(ModelError, element="order"))
        repairs = read_repairs(repair)
        log = ReaderReport(self.file, self.notes.notes, self.notes.faults)
        is_whole = not log.faults  # else some elements could not be read
        links = check_links(self.links, repairs, log)
        joints = check_joints(self.joints, repairs, log)
        if not is_whole:
            carrier_joints([*links, *self.unread["link"]], joints, self.forest, log)
            log.raise_collected()
        tree = weld_links(links, joints, base, order, self.forest, log)
        model = assemble(self.name, self.gravity, tree, links, list(self.frames.values()), log)
        check_model(
            model, links, {joint.name: joint for joint in tree.joints}, log, self.check_mobility
        )
        return replace(
            model,
            report=tuple(dict.fromkeys(log.notes)),
            postures={name: _posture(model, q) for name, q in self.postures.items()},
            description=self._description(tree, links),
        )

    def _description(self, tree: WeldedTree, links: dict[str, LinkRecord]) -> Description:
        """The records, in the order of the tree."""
        joints = tuple(joint for joint, _ in tree.frame_order if joint is not None)
        return Description(
            tuple(links[link.name] for _, link in tree.frame_order),
            joints,
            tuple(self.frames.values()),
            self.file,
        )

    def fail_at(self, what: str, *name: object, line: int | None = None) -> builder_values.Fail:
        """(Internal use only) fail(cause, remedy) for an element, which raises the error."""

        def fail(cause: str, remedy: str) -> NoReturn:
            ReaderReport(self.file).fail(
                DocumentRecord(" ".join([what, *map(shown, name)]), line), cause, remedy
            )

        return fail

    def _check_new(
        self, name: object, known: Mapping[str, Any], what: str, fail: builder_values.Fail
    ) -> None:
        text = builder_values.name(name, fail)
        unread = self.unread.get(what, {})
        if text in known or text in unread:
            line = known[text].line if text in known else unread[text]
            where = "" if line is None else f" (line {line})"
            fail(
                f"there is already a {what} with this name{where}",
                f"give every {what} its own name",
            )

    def _place(
        self,
        xyz: Numbers,
        rpy: Numbers | None,
        rotation: Numbers | None,
        fail: builder_values.Fail,
    ) -> Placement:
        place = (
            builder_values.rotation(rpy, rotation, fail),
            builder_values.triple(xyz, "xyz", fail),
        )
        return IDENTITY_PLACEMENT if place == IDENTITY_PLACEMENT else place


def _limits(
    kind: str,
    lower: Numbers | None,
    upper: Numbers | None,
    velocity: Numbers | None,
    effort: Numbers | None,
    fail: builder_values.Fail,
) -> tuple[Each, Each, Each, Each]:
    """The fields lower, upper, velocity and effort of a joint record."""
    (nq, nv), each = joint_sizes(kind), partial(builder_values.per_coordinate, fail=fail)
    if kind == "fixed":
        return (), (), (), ()
    ends = each(lower, nq, -inf, "lower limit"), each(upper, nq, inf, "upper limit")
    return (
        *ends,
        each(velocity, nv, inf, "velocity limit", sign=False),
        each(effort, nv, inf, "effort limit", sign=False),
    )


def _losses(
    kind: str,
    damping: Numbers | None,
    friction: Numbers | None,
    armature: Numbers | None,
    fail: builder_values.Fail,
) -> tuple[Each, Each, Each]:
    """The fields damping, friction and armature of a joint record."""
    each = partial(
        builder_values.per_coordinate,
        count=joint_sizes(kind)[1],
        default=0.0,
        fail=fail,
        sign=False,
    )
    if kind == "fixed":
        return (), (), ()
    return (
        each(damping, what="damping"),
        each(friction, what="friction"),
        each(armature, what="armature"),
    )


def _posture(model: Model, q: dict[str, tuple[float, ...]]) -> np.ndarray:
    """A configuration by joints as q (nq,); joints that are missing or changed size are skipped."""
    out = model.neutral()
    for joint in model.joints:
        if len(q.get(joint.name, ())) == joint.row.nq:
            out[joint.q_slice] = q[joint.name]
    return frozen(out)
