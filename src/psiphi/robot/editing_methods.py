"""Methods that change a robot: each returns a new robot and leaves the original unchanged."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Self, TypeAlias

import numpy as np

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import shown
from psiphi._util.validate import is_list, matching_names, whole_number
from psiphi.io import save as saving
from psiphi.io.meshes.mesh_hulls import mesh_hull
from psiphi.io.urdf.srdf import read_postures
from psiphi.model.builder import builder_values
from psiphi.model.builder.builder import Builder
from psiphi.model.builder.description import spanning_tree
from psiphi.model.builder.nonlinear_springs import Spring
from psiphi.model.contact.contact_pairs import ContactPair
from psiphi.model.contact.contact_points import ContactPoint
from psiphi.model.contact.contact_reader import ContactShapes, read_contacts
from psiphi.model.editing import attachment, flexible_replacement, joint_lock, replacement
from psiphi.model.editing import subtree as cutting
from psiphi.model.editing.reconstruction import ALONE, AttachedPart, rebuild_robot, world_frame
from psiphi.model.flexible.flexible_link import BendingBody
from psiphi.model.loops.contacts_and_loops import Loop
from psiphi.model.loops.gears import Gear
from psiphi.model.model import Body, Model, Pose
from psiphi.model.shapes import Shape
from psiphi.model.spatial.transforms import IDENTITY_PLACEMENT

Names: TypeAlias = str | Iterable[str]  # names, or patterns like "arm_*"
# the name of a posture, joint positions by joint name, or q
Position: TypeAlias = str | Mapping[str, Numbers] | Numbers


@dataclass(frozen=True, eq=False, repr=False)
class EditingMethods(Model):
    """A model with shapes, loops and gears, and the methods that change it."""

    # drawn by viewers, on the frames of the links; from the URDF file or the bundled table
    shapes: tuple[Shape, ...] = ()
    # pp.Loops between frames, from the file; pp.connect(robot) closes them
    loops: tuple[Loop, ...] = ()
    # pp.Gears from the file, joints that follow others by polynomials; pp.embed(robot) applies them
    gears: tuple[Gear, ...] = ()
    # what can touch the ground of a simulation, by `with_contacts`
    contact_points: tuple[ContactPoint, ...] = ()
    # what can touch each other, by `with_contacts(..., pairs=...)`
    contact_pairs: tuple[ContactPair, ...] = ()

    @classmethod
    def of(cls, model: Model, shapes: Iterable[Shape] | None = None) -> Self:
        """The robot of a model; `shapes` replace the model's own."""
        if not isinstance(model, Model):
            raise ModelError(
                f"{shown(model)} is not a Model", "pp.load, pp.from_dh and pp.Builder make robots"
            )
        chosen: Any = getattr(model, "shapes", ()) if shapes is None else shapes
        chosen = tuple(chosen) if is_list(chosen) else (chosen,)
        if not all(isinstance(shape, Shape) for shape in chosen):
            raise ModelError(
                f"shapes is {shown(shapes)}, expected a list of shapes",
                "leave it out for the model's own",
            )
        return cls(
            **{f.name: getattr(model, f.name) for f in fields(Model)},
            shapes=chosen,
            loops=getattr(model, "loops", ()),
            gears=getattr(model, "gears", ()),
            contact_points=getattr(model, "contact_points", ()),
            contact_pairs=getattr(model, "contact_pairs", ()),
        )

    @cached_property
    def model(self) -> Model:
        """(Internal use only) The model without what does not affect the dynamics.

        Functions refer to it, not to the robot, which refers to them.
        """
        structure = ("name", "bodies", "joints", "frames", "gravity_vector")
        names = (*structure, "report", "freed", "embedding")
        return Model(**{name: getattr(self, name) for name in names})

    def lock(self, joints: Names | Mapping[str, Numbers], at: Position | None = None) -> Self:
        """The robot with these joints fixed.

        `at` is q, joint positions by name, or the name of a posture; the default is zero.
        `lock({"knee": 0.5})` gives joints and positions together. The links of locked joints are
        welded to their parents; their frames and shapes stay.

        >>> import psiphi as pp
        >>> robot = pp.load("panda").lock("panda_finger_*", at={"panda_finger_joint1": 0.02})
        >>> robot.nv, "panda_leftfinger" in robot.frames
        (7, True)
        """
        builder = Builder(spanning_tree(self))
        at = joint_lock.lock(self, builder, joints, at)
        return self.rebuild(builder, at=at)

    def subtree(self, root: str, base: str = "fixed") -> Self:
        """The subtree of a link or joint as a robot, fixed at its origin or with `base="free"`.

        >>> import psiphi as pp
        >>> pp.load("free_flyer").subtree("left_base_link").nv
        6
        """
        return self._edit(cutting.subtree, root, base=base, ground="")

    def without(self, names: Names) -> Self:
        """The robot without the subtrees of these links or joints, and without these frames.

        >>> import psiphi as pp
        >>> pp.load("g1").without(["left_shoulder_pitch_joint", "right_shoulder_pitch_joint"]).nv
        21
        """
        return self._edit(cutting.without, names)

    def attach(
        self,
        other: Body | Model,
        frame: str,
        pose: Pose | Numbers | None = None,
        joint: str | Mapping[str, Any] = "fixed",
        prefix: str = "",
    ) -> Self:
        """The robot with a body or another robot attached to `frame`, at `pose` in it.

        `pose` is a `pp.Pose`, a 4x4 matrix, (x, y, z), or [(x, y, z), (roll, pitch, yaw)]. `joint`
        is "fixed", another kind of joint, or a dict of the arguments of `pp.Builder.joint`:
        `joint=dict(kind="revolute", name="wrist", axis=(0, 0, 1), effort=10)`. The default name is
        that of the root link of `other` with "_joint". `prefix` is added to all names of `other`;
        the gravity of this robot is used. The coordinates of `other` follow those of the subtree of
        the link of `frame`; `robot.select` finds them.

        >>> import psiphi as pp
        >>> arm, load = pp.load("ur5"), pp.Body.box(2.0, (0.1, 0.1, 0.2), name="load")
        >>> robot = arm.attach(load, "tool", (0, 0, 0.1))
        >>> robot.nv, round(robot.mass - arm.mass, 9)
        (6, 2.0)
        >>> robot.attach(pp.load("pelican"), "load", prefix="p_").nv
        8
        """
        builder = Builder(spanning_tree(self))
        part = attachment.attach(builder, other, frame, pose, joint, prefix)
        return self.rebuild(builder, part)

    def with_frame(self, name: str, frame: str, pose: Pose | Numbers | None = None) -> Self:
        """The robot with a new frame `name`, at `pose` (as in `attach`) in another frame.

        >>> import psiphi as pp
        >>> robot = pp.load("ur5").with_frame("tip", "tool", (0, 0, 0.15))
        >>> tool, tip = (robot.frame_pose(robot.neutral(), name) for name in ("tool", "tip"))
        >>> (tip - tool)[:3, 3].round(9) + 0.0
        array([0.  , 0.15, 0.  ])
        """
        return self._edit(replacement.with_frame, name, frame, pose)

    def with_gravity(self, gravity: Numbers) -> Self:
        """The robot with another gravity (x, y, z), in m/s^2.

        >>> import psiphi as pp
        >>> pp.load("ur5").with_gravity((0, 0, -1.62)).gravity_vector.tolist()
        [0.0, 0.0, -1.62]
        """
        builder = Builder(spanning_tree(self))
        builder.gravity = builder_values.triple(gravity, "gravity", builder.fail_at("robot"))
        return self.rebuild(builder)

    def with_base(self, base: str | None = None, pose: Pose | Numbers | None = None) -> Self:
        """The robot with a "free" or "fixed" base, or with its base moved by `pose` in the world.

        A free base carries the links that were fixed to the world; a link called "world" is the
        world. A base that was free is fixed at its zero position.

        >>> import psiphi as pp
        >>> pp.load("ur5").with_base("free").nv, pp.load("g1").with_base("fixed").nv
        (12, 29)
        """
        builder = Builder(spanning_tree(self))
        ground = (
            "world"
            if pose is None
            else world_frame(self, builder, "ground", "world", IDENTITY_PLACEMENT)
        )
        replacement.with_base(builder, base, pose)
        return self.rebuild(builder, ground=ground)

    def with_inertia(
        self,
        link: str,
        body: Body | None = None,
        *,
        mass: Numbers | None = None,
        com: Numbers | None = None,
        inertia: Numbers | None = None,
    ) -> Self:
        """The robot with other inertial parameters of one link, in the frame of that link.

        Give a `pp.Body`, or mass, com, and inertia about the com; the others stay unchanged, and so
        do links welded to this one.

        >>> import psiphi as pp
        >>> robot = pp.load("ur5").with_inertia("wrist_3_link", mass=1.0)
        >>> robot.bodies[-1].mass
        1.0
        """
        return self._edit(replacement.with_inertia, link, body, mass, com, inertia)

    def with_spring(
        self,
        joints: Names,
        stiffness: Numbers | None = None,
        rest: Numbers | None = None,
        spring: Mapping[str, Numbers] | Spring | None = None,
    ) -> Self:
        """The robot with springs at these joints.

        They are linear, with `stiffness` about `rest`; or nonlinear, with `spring` as in
        `pp.Builder.joint`. Springs act if a call asks for them: `pp.simulate(..., springs=True)`.

        >>> import psiphi as pp
        >>> robot = pp.load("ur5").with_spring("wrist_*", 20.0, rest=0.5)
        >>> robot.stiffness
        array([ 0.,  0.,  0., 20., 20., 20.])
        """
        return self._edit_joints(Builder.spring, joints, stiffness, rest, spring)

    def with_elastic(
        self,
        joints: Names,
        stiffness: float | None = None,
        rotor: float = 0.0,
        ratio: float = 1.0,
        damping: float = 0.0,
        spring: Mapping[str, Numbers] | Spring | None = None,
    ) -> Self:
        """The robot with series-elastic joints: a gear and a spring between motor and link.

        `rotor` is the inertia of the motor, `ratio` the motor turns per turn of the joint. Each
        joint becomes two: "<joint>" is the motor side, theta_m / ratio, and "<joint>_spring" the
        deflection of the spring, without a motor. The link position is their sum.

        >>> import psiphi as pp
        >>> motor = dict(stiffness=2e3, rotor=1e-4, ratio=100.0, damping=1.0)
        >>> robot = pp.load("ur5").with_elastic("elbow_joint", **motor)
        >>> robot.joint_names[2:4], robot.armature[2:4], robot.stiffness[2:4]
        (('elbow_joint', 'elbow_joint_spring'), array([1., 0.]), array([   0., 2000.]))
        """
        return self._edit_joints(Builder.elastic, joints, stiffness, rotor, ratio, damping, spring)

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
        """The robot with a flexible link: a `pp.Beam` or `pp.FlexibleBody` replaces its mass.

        The root of the body is at xyz, rpy in the link. Joints and frames on the link move to the
        nearest node (links "<link>_tip", ...) unless the root is nearer; `hang` overrides this:
        {"elbow": "tip", "camera": "root"}. `keep=True` keeps the rigid mass and the shapes of the
        link. The modes are the joint "<link>_modes", without a motor; its stiffness and damping act
        with those of joints: `pp.simulate(..., springs=True, damping=True)`.

        >>> import psiphi as pp
        >>> beam = pp.Beam(0.39, 0.03, "aluminium", modes=2)
        >>> rpy = (0, -1.5708, 0)  # along z of the link
        >>> robot = pp.load("ur5").with_flexible("forearm_link", beam, rpy=rpy)
        >>> robot.nv, robot.actuated.tolist()
        (10, [0, 1, 2, 7, 8, 9])
        """
        builder = Builder(spanning_tree(self))
        flexible_replacement.with_flexible(self, builder, link, body, xyz, rpy, keep, hang)
        robot = self.rebuild(builder)
        if keep:
            return robot
        return replace(robot, shapes=tuple(x for x in robot.shapes if x.link != link))

    def with_contacts(
        self,
        contacts: ContactShapes | str,
        links: Names | None = None,
        *,
        pairs: Iterable[tuple[str, str]] = (),
        ground: Names = "*",
        mesh_points: int = 8,
    ) -> Self:
        """The robot with shapes that can touch, in `pp.simulate(..., contacts=pp.Ground())`.

        `contacts` maps frames, or patterns of their names, to a `pp.Point`, `Sphere`, `Capsule`,
        `Box`, `Cylinder`, `Points` or `Hull`, or to a list of them. "collision" takes the collision
        shapes of the robot's file, on `links` if given. Of a mesh they are at most `mesh_points`
        points of its convex hull, with a warning that says by how much they are off. The shapes
        replace earlier ones.

        All shapes of links that move can touch the ground, or only those on the frames `ground`.
        `pairs` lists frames whose shapes can touch each other: spheres and capsules with spheres
        and capsules, spheres with boxes. One of the two may be fixed to the world.

        >>> import psiphi as pp
        >>> robot = pp.load("anymal_c").with_contacts({"*_FOOT": pp.Sphere(0.03)})
        >>> [point.name for point in robot.contact_points]
        ['LF_FOOT', 'LH_FOOT', 'RF_FOOT', 'RH_FOOT']
        >>> pairs = [("LF_FOOT", "LH_FOOT"), ("RF_FOOT", "RH_FOOT")]
        >>> robot = robot.with_contacts({"*_FOOT": pp.Sphere(0.03)}, pairs=pairs)
        >>> [pair.name for pair in robot.contact_pairs]
        ['LF_FOOT|LH_FOOT', 'RF_FOOT|RH_FOOT']
        """
        if whole_number("mesh_points", mesh_points) < 4:
            raise ModelError(f"mesh_points is {mesh_points}", "give at least 4")
        hull = partial(mesh_hull, points=mesh_points)
        found = read_contacts(self, self.shapes, contacts, links, pairs, ground, hull)
        return replace(self, contact_points=found.points, contact_pairs=found.pairs)

    @property
    def contact_friction(self) -> np.ndarray:
        """(c,): the friction of each contact point in the robot's file, for `pp.Ground(friction=)`;
        NaN where the file has none, and for pairs, which follow.

        >>> import psiphi as pp
        >>> pp.load("anymal_c").contact_friction
        array([nan, nan, nan, nan])
        """
        given = [point.friction for point in self.contact_points]
        given += [None for _ in self.contact_pairs]
        return np.array([np.nan if mu is None else mu for mu in given])

    def with_posture(self, name: str, q: Position) -> Self:
        """The robot with a named configuration in `postures`: q, or joint positions by name.

        >>> import psiphi as pp
        >>> robot = pp.load("ur5").with_posture("home", {"elbow_joint": 1.5})
        >>> robot.postures["home"].tolist()
        [0.0, 0.0, 1.5, 0.0, 0.0, 0.0]
        """
        builder = Builder(spanning_tree(self))
        full_q = joint_lock.configuration(self, f"posture {name!r}", q)
        builder.posture(name, {joint.name: full_q[joint.q_slice].tolist() for joint in self.joints})
        return self.rebuild(builder)

    def with_postures(self, srdf: str | os.PathLike[str]) -> Self:
        """The robot with the named configurations of an SRDF file (<group_state>) in `postures`.

        >>> import psiphi as pp
        >>> joint = '<joint name="elbow" value="1.5"/>'
        >>> srdf = f'<robot><group_state name="up" group="all">{joint}</group_state></robot>'
        >>> pp.load("acrobot").with_postures(srdf).postures["up"].tolist()
        [0.0, 1.5]
        """
        return self._edit(read_postures, srdf)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the robot to a URDF file (.urdf) or an MJCF file (.xml).

        Reading the file gives the same robot up to rounding, with the same order of joints.

        URDF is written link by link. Helical, cylindrical and universal joints and nonlinear
        springs have no URDF form and raise an error. Gravity other than the Earth's, springs and
        the order of joints are elements of psiphi, and loops are elements of URDF+; other readers
        ignore both. Postures are left out.

        MJCF includes postures. Links that are welded together become one body, and a hinge loop
        becomes two connects. Helical joints, effort limits of ball and free joints, loops other
        than hinges, balls and welds, and tabulated springs raise an error. Velocity limits, meshes
        and the list of motors are left out.

        An embedded robot is written as its tree, with its loops and gears; `pp.embed` restores it
        after reading.

        >>> import psiphi as pp
        >>> pp.load("ur5").save(folder / "ur5.urdf")  # doctest: +SKIP
        """
        saving.save(self, path)

    def _edit(self, change: Callable[..., None], *arguments: object, **options: Any) -> Self:
        """The robot after `change(builder, *arguments)`."""
        builder = Builder(spanning_tree(self))
        change(builder, *arguments)
        return self.rebuild(builder, **options)

    def _edit_joints(self, change: Callable[..., None], joints: Names, *arguments: object) -> Self:
        """The robot after `change(builder, joint, *arguments)` for each named joint."""
        builder = Builder(spanning_tree(self))
        for name in matching_names("joints", joints, self.joint_names, self.name):
            change(builder, name, *arguments)
        return self.rebuild(builder)

    def rebuild(
        self,
        builder: Builder,
        attached: AttachedPart = ALONE,
        base: str = "fixed",
        at: np.ndarray | None = None,
        ground: str = "world",
    ) -> Self:
        """(Internal use only) The robot that a builder describes, with its loops embedded again.

        Loops are closed near `at`, a configuration of this robot. `ground` is the frame that takes
        the place of this robot's world.
        """
        return rebuild_robot(self, builder, base, attached, at, ground)
