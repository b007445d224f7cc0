"""A model that can be changed: each verb returns a new robot, and leaves this one as it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import shown
from psiphi._util.validate import is_several
from psiphi.io import save as saving
from psiphi.io.urdf.srdf import read_postures
from psiphi.model.builder import builder_values
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.description import spanning
from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.editing import attachment, flexible_replacement, joint_lock, replacement
from psiphi.model.editing import subtree as cutting
from psiphi.model.editing.joint_vectors import JointVectors
from psiphi.model.editing.name_patterns import matching
from psiphi.model.editing.reconstruction import ALONE, AttachedPart, grounded, rebuilt
from psiphi.model.flexible.flexible_link import BendingBody
from psiphi.model.model import Body, Model, Pose
from psiphi.model.shapes import Shape
from psiphi.model.spatial.transforms import HERE

Names: TypeAlias = str | Iterable[str]  # names, or patterns like "arm_*"
Position: TypeAlias = (
    str | Mapping[str, Numbers] | Numbers
)  # a posture's name, positions by joint, or q


@dataclass(frozen=True, eq=False, repr=False)
class EditingMethods(JointVectors):
    """A model with shapes, and the verbs that change it. Names are unique; what is missing is named."""

    shapes: tuple[
        Shape, ...
    ] = ()  # what viewers draw: on frames named as their links; from the URDF file or the bundled table
    loops: tuple[
        Any, ...
    ] = ()  # pp.Loops of the file, between its frames: data, until pp.connect(robot) closes them
    gears: tuple[
        Any, ...
    ] = ()  # pp.Gears of the file, joints that follow others by polynomials: data, until pp.embed(robot)

    @classmethod
    def of(cls, model: Model, shapes: Iterable[Shape] | None = None) -> Self:
        """The model, with its functions and shapes (its own, if it has any and none are given)."""
        if not isinstance(model, Model):
            raise ModelError(
                f"{shown(model)} is no Model", "pp.load, pp.from_dh and pp.Builder make robots"
            )
        dress: Any = getattr(model, "shapes", ()) if shapes is None else shapes
        dress = tuple(dress) if is_several(dress) else (dress,)
        if not all(isinstance(shape, Shape) for shape in dress):
            raise ModelError(
                f"shapes is {shown(shapes)}, expected a list of shapes",
                "leave it out for the model's own",
            )
        loops, gears = (getattr(model, name, ()) for name in ("loops", "gears"))
        return cls(
            **{f.name: getattr(model, f.name) for f in fields(Model)},
            shapes=dress,
            loops=loops,
            gears=gears,
        )

    @cached_property
    def _model(self) -> Model:
        """The model alone, of which functions are made: they must not hold the robot, which holds them."""
        kept = (
            "name",
            "bodies",
            "joints",
            "frames",
            "gravity_vector",
            "report",
            "freed",
            "embedding",
        )
        return Model(**{name: getattr(self, name) for name in kept})

    def lock(self, joints: Names | Mapping[str, Numbers], at: Position | None = None) -> Self:
        """The robot with these joints fixed at `at`: q, positions by joint, or a posture's name; at their zero if left out.

        The links they carried are welded on, their frames and shapes stay. `lock({"knee": 0.5})` names joints and positions.

        >>> import psiphi as pp
        >>> robot = pp.load("panda").lock("panda_finger_*", at={"panda_finger_joint1": 0.02})
        >>> robot.nv, "panda_leftfinger" in robot.frames
        (7, True)
        """
        builder = Builder(spanning(self))
        at = joint_lock.lock(self, builder, joints, at)
        return self._built(builder, at=at)

    def subtree(self, root: str, base: str = "fixed") -> Self:
        """A link (or what a joint carries) with all it carries, as a robot: bolted down at its origin, or `base="free"`.

        >>> import psiphi as pp
        >>> pp.load("free_flyer").subtree("left_base_link").nv
        6
        """
        return self._changed(cutting.subtree, root, base=base, ground="")

    def without(self, names: Names) -> Self:
        """The robot without these links, what these joints carry, or these frames, and without all that hangs on them.

        >>> import psiphi as pp
        >>> pp.load("g1").without(["left_shoulder_pitch_joint", "right_shoulder_pitch_joint"]).nv
        21
        """
        return self._changed(cutting.without, names)

    def attach(
        self,
        other: Body | Model,
        frame: str,
        pose: Pose | Numbers | None = None,
        joint: str | Mapping[str, Any] = "fixed",
        prefix: str = "",
    ) -> Self:
        """With a body or another robot on `frame`, at `pose` in it: welded, or on a joint (its kind, or its words in a dict).

        `pose` is a `pp.Pose`, a 4x4 matrix, (x, y, z), or [(x, y, z), (roll, pitch, yaw)]. `joint` takes the words of
        `pp.Builder.joint`: `joint=dict(kind="revolute", name="wrist", axis=(0, 0, 1), effort=10)`; its name is the root
        link's with _joint unless given. `prefix` goes before every name of `other`; gravity stays this robot's. Coordinates
        of `other` come after those of what already hangs on the link of `frame`: `robot.select` finds them.

        >>> import psiphi as pp
        >>> robot = pp.load("ur5").attach(pp.Body.box(2.0, (0.1, 0.1, 0.2), name="load"), "tool", (0, 0, 0.1))
        >>> robot.nv, round(robot.mass - pp.load("ur5").mass, 9), robot.attach(pp.load("pelican"), "load", prefix="p_").nv
        (6, 2.0, 8)
        """
        builder = Builder(spanning(self))
        more = attachment.attach(builder, other, frame, pose, joint, prefix)
        return self._built(builder, more=more)

    def with_frame(self, name: str, frame: str, pose: Pose | Numbers | None = None) -> Self:
        """With a frame called `name`, at `pose` (as in `attach`) in another frame.

        >>> import psiphi as pp
        >>> robot = pp.load("ur5").with_frame("tip", "tool", (0, 0, 0.15))
        >>> tool, tip = (robot.frame_pose(robot.neutral(), name) for name in ("tool", "tip"))
        >>> (tip - tool)[:3, 3].round(9) + 0.0
        array([0.  , 0.15, 0.  ])
        """
        return self._changed(replacement.with_frame, name, frame, pose)

    def with_gravity(self, gravity: Numbers) -> Self:
        """With another gravity, (x, y, z) in m/s^2.

        >>> import psiphi as pp
        >>> pp.load("ur5").with_gravity((0, 0, -1.62)).gravity_vector.tolist()
        [0.0, 0.0, -1.62]
        """
        builder = Builder(spanning(self))
        builder.gravity = builder_values.triple(gravity, "gravity", builder._fail_at("robot"))
        return self._built(builder)

    def with_base(self, base: str | None = None, pose: Pose | Numbers | None = None) -> Self:
        """With its base "free" or "fixed", or standing elsewhere: moved by `pose` in the world.

        What is welded to the world flies; a link called "world" is the world. A base that flew is bolted down at its zero.

        >>> import psiphi as pp
        >>> pp.load("ur5").with_base("free").nv, pp.load("g1").with_base("fixed").nv
        (12, 29)
        """
        builder = Builder(spanning(self))
        ground = "world" if pose is None else grounded(self, builder, "ground", "world", HERE)
        replacement.with_base(builder, base, pose)
        return self._built(builder, ground=ground)

    def with_inertia(
        self,
        link: str,
        body: Body | None = None,
        *,
        mass: Numbers | None = None,
        com: Numbers | None = None,
        inertia: Numbers | None = None,
    ) -> Self:
        """With another inertia of one link by itself, in its own frame: of a `pp.Body`, or mass, com, inertia about the com.

        What is not given stays as it is; links that are welded to this one stay as they are.

        >>> import psiphi as pp
        >>> robot = pp.load("ur5").with_inertia("wrist_3_link", mass=1.0)
        >>> robot.bodies[-1].mass
        1.0
        """
        return self._changed(replacement.with_inertia, link, body, mass, com, inertia)

    def with_spring(
        self,
        joints: Names,
        stiffness: Numbers | None = None,
        rest: Numbers | None = None,
        spring: Mapping[str, Numbers] | Spring | None = None,
    ) -> Self:
        """With springs at these joints: stiffness, about `rest`; or one that is not linear, as in `pp.Builder.joint`.

        They act where a call is told so: `pp.simulate(..., springs=True)`.

        >>> import psiphi as pp
        >>> robot = pp.load("ur5").with_spring("wrist_*", 20.0, rest=0.5)
        >>> robot.stiffness
        array([ 0.,  0.,  0., 20., 20., 20.])
        """
        return self._each_joint(Builder.spring, joints, stiffness, rest, spring)

    def with_elastic(
        self,
        joints: Names,
        stiffness: float | None = None,
        rotor: float = 0.0,
        ratio: float = 1.0,
        damping: float = 0.0,
        spring: Mapping[str, Numbers] | Spring | None = None,
    ) -> Self:
        """With a gear and a spring between these joints' motors and their links (series-elastic joints).

        `rotor` is a motor's own inertia, `ratio` its turns a turn of the joint. Each joint keeps its name and is the motor's
        side, theta_m / ratio; "<joint>_spring" is the spring's deflection, which has no motor: the link stands at their sum.

        >>> import psiphi as pp
        >>> robot = pp.load("ur5").with_elastic("elbow_joint", stiffness=2e3, rotor=1e-4, ratio=100.0, damping=1.0)
        >>> robot.joint_names[2:4], robot.armature[2:4], robot.stiffness[2:4]
        (('elbow_joint', 'elbow_joint_spring'), array([1., 0.]), array([   0., 2000.]))
        """
        return self._each_joint(Builder.elastic, joints, stiffness, rotor, ratio, damping, spring)

    def with_flexible(
        self,
        link: str,
        body: BendingBody,
        xyz: Numbers = (0.0, 0.0, 0.0),
        rpy: Numbers | None = None,
        *,
        keep: bool = False,
        hang: Mapping[str, str] | None = None,
    ) -> Self:
        """With a link that bends: a `pp.Beam` or `pp.FlexibleBody` in place of its mass, its root at xyz and rpy in the link.

        Joints and frames on the link go to its nearest node (links "<link>_tip", ...) or stay with the root, whichever is
        nearer; `hang` says otherwise, {"elbow": "tip", "camera": "root"}. `keep=True` leaves the link its rigid mass and looks.
        The modes are joint "<link>_modes", which has no motor; its stiffness and damping act where those of joints do:
        `pp.simulate(..., springs=True, damping=True)`.

        >>> import psiphi as pp
        >>> beam = pp.Beam(0.39, 0.03, "aluminium", modes=2)
        >>> robot = pp.load("ur5").with_flexible("forearm_link", beam, rpy=(0, -1.5708, 0))  # along z of the link
        >>> robot.nv, robot.actuated.tolist()
        (10, [0, 1, 2, 7, 8, 9])
        """
        builder = Builder(spanning(self))
        flexible_replacement.with_flexible(self, builder, link, body, xyz, rpy, keep, hang)
        bent = self._built(builder)
        return (
            bent
            if keep
            else replace(bent, shapes=tuple(shape for shape in bent.shapes if shape.link != link))
        )

    def with_posture(self, name: str, q: Position) -> Self:
        """With a configuration under a name, in `postures`: q, or positions by joint.

        >>> import psiphi as pp
        >>> robot = pp.load("ur5").with_posture("home", {"elbow_joint": 1.5})
        >>> robot.postures["home"].tolist()
        [0.0, 0.0, 1.5, 0.0, 0.0, 0.0]
        """
        builder, given = (
            Builder(spanning(self)),
            joint_lock.configuration(self, f"posture {name!r}", q),
        )
        builder.posture(name, {joint.name: given[joint.q_slice].tolist() for joint in self.joints})
        return self._built(builder)

    def with_postures(self, srdf: str | os.PathLike[str]) -> Self:
        """With the named configurations of an SRDF file (its <group_state>s), in `postures`.

        >>> import psiphi as pp
        >>> text = '<robot><group_state name="up" group="all"><joint name="elbow" value="1.5"/></group_state></robot>'
        >>> pp.load("acrobot").with_postures(text).postures["up"].tolist()
        [0.0, 1.5]
        """
        return self._changed(read_postures, srdf)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the robot to a .urdf file or an MJCF .xml file: read again it is the same to rounding, in the same order.

        URDF is written link by link. What it cannot say (helical, cylindrical and universal joints, springs that are not
        linear) is refused by name; gravity other than the Earth's, springs and the order of the joints are kept in words of
        psiphi's own, loops in those of URDF+, which other readers pass over; postures are left out. MJCF has these, and has
        bodies with what is welded to them, and hinges of loops as two connects; helical joints, effort limits of joints that
        turn every way, other loops than these, balls and welds, and tables of springs are refused, speed limits, meshes and
        which joints have motors are left out. What was embedded is written as the tree it was, with its loops and gears:
        `pp.embed` of what is read is the same robot.

        >>> import psiphi as pp
        >>> pp.load("ur5").save(folder / "ur5.urdf")  # doctest: +SKIP
        """
        saving.save(self, path)

    def _changed(self, change: Callable[..., None], *given: Any, **how: Any) -> Self:
        """What a change makes of this robot's records, built again."""
        builder = Builder(spanning(self))
        change(builder, *given)
        return self._built(builder, **how)

    def _each_joint(self, change: Callable[..., None], joints: Names, *given: Any) -> Self:
        """A change of every joint that is named."""
        builder = Builder(spanning(self))
        for name in matching("joints", joints, self.joint_names, self.name):
            change(builder, name, *given)
        return self._built(builder)

    def _built(
        self,
        builder: Builder,
        base: str = "fixed",
        more: AttachedPart = ALONE,
        at: np.ndarray | None = None,
        ground: str = "world",
    ) -> Self:
        return rebuilt(self, builder, base, more, at, ground)
