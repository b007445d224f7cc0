"""Reader of URDF: strict, without recursion, with line numbers in every message.

It reads links (mass, inertia, origin), joints (revolute, continuous, prismatic, fixed, floating,
planar, and spherical or ball) with axis, limit, dynamics (damping, friction, and armature as an
extension) and mimic. Shapes are checked; their files are not opened. Gazebo, transmission,
ros2_control and other extensions are ignored and listed in the report.

Children are ordered by joint name, as in Pinocchio, so q, v and tau have the same order in both.
Files written by psiphi (`robot.save`) have order="given", which keeps the order of the file, and
may have <gravity xyz="...">.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf

from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import first_names, nearest, shown
from psiphi._util.validate import whole_number
from psiphi.io.urdf import urdf_plus
from psiphi.io.urdf.mesh_paths import AllowedFolders, Packages
from psiphi.io.urdf.unit_checks import warn_of_units
from psiphi.io.urdf.urdf_plus import LoopRow
from psiphi.io.urdf.urdf_schema import SchemaChecker
from psiphi.io.urdf.urdf_shapes import read_colors, read_shape, with_mesh_paths
from psiphi.io.urdf.xml_fields import Fields
from psiphi.io.urdf.xml_reader import DEFAULT_LIMITS, TEXT, Element, ReadLimits, parse
from psiphi.model.builder.builder import EARTH, Builder
from psiphi.model.builder.records import DocumentRecord
from psiphi.model.model import Model
from psiphi.model.shapes import Shape
from psiphi.model.spatial.transforms import IDENTITY_PLACEMENT, IDENTITY_ROTATION

KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
    "spherical": "spherical",
    "ball": "spherical",
}
OTHER_FORMATS = {
    "mujoco": (
        "an MJCF file",
        "pp.load and pp.from_mujoco read it, with pip install mujoco",
    ),
    "sdf": (
        "an SDF file",
        "export URDF from the program that wrote it; the ROS package sdformat_urdf converts SDF",
    ),
    "COLLADA": ("a COLLADA mesh", "give the robot description, not a mesh"),
    "html": ("a web page", "download the file itself"),
    "launch": ("a ROS launch file", "give the robot description"),
    "package": ("a ROS package.xml", "give the robot description"),
}
UNLIMITED = sys.float_info.max  # this limit means no limit
ZERO_LIMITS = {  # what the limit 0 means
    "effort": "with effort=True the motors give no torque; correct or remove the limits",
    "velocity": "pp.path cannot move the joints; correct or remove the limits",
}
MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def load_urdf(
    source: str | os.PathLike[str],
    base: str = "fixed",
    repair: str | Iterable[str] = (),
    packages: Packages = None,
    allow_outside: bool = False,
    *,
    gravity: Numbers | None = None,
    armature: float | Mapping[str, float] | None = None,
    max_bytes: int = DEFAULT_LIMITS.max_bytes,
    max_depth: int = DEFAULT_LIMITS.max_depth,
    max_elements: int = DEFAULT_LIMITS.max_elements,
    max_bodies: int = DEFAULT_LIMITS.max_bodies,
    shapes: list[Shape] | None = None,
    loops: list[LoopRow] | None = None,
    check_mobility: bool = True,
) -> Model:
    """The robot of a URDF file, or of URDF text that starts with '<'.

    `base` is "fixed" or "free"; `repair` names the faults to repair (`model_checks.py`);
    `packages` maps package names to folders, or lists folders that contain packages;
    `allow_outside` also draws meshes outside these; `armature` is rotor inertia, one number for all
    moving joints or a dict by name. A file beyond the limits `max_...` is rejected. The shapes of
    links are appended to `shapes`, the loops of the file (`urdf_plus.py`) to `loops`. With
    check_mobility=False, joints that move no mass are accepted, because the robot will be edited.

    >>> load_urdf('<robot name="r"><link name="a"/></robot>').nv
    0
    """
    limits = ReadLimits(
        whole_number("max_bytes", max_bytes),
        whole_number("max_depth", max_depth),
        whole_number("max_elements", max_elements),
        whole_number("max_bodies", max_bodies),
    )
    builder, found = read_urdf(source, gravity=gravity, armature=armature, limits=limits)
    builder.check_mobility = check_mobility
    found, meshes = _with_mesh_paths(builder, found, packages, allow_outside)
    try:
        model = builder.build(base, repair, builder.order)
    except ModelError as error:
        error.report = (*error.report, *meshes)
        raise
    model = replace(model, report=(*model.report, *meshes))
    if shapes is not None:
        shapes.extend(found)
    if loops is not None:
        loops.extend(builder.loops)
    return model


def load_shapes(
    source: str | os.PathLike[str], packages: Packages = None, allow_outside: bool = False
) -> list[Shape]:
    """The visual and collision shapes of a URDF file; meshes in known packages have a `path`."""
    builder, shapes = read_urdf(source)
    builder.notes.raise_collected()
    return _with_mesh_paths(builder, shapes, packages, allow_outside)[0]


def _with_mesh_paths(
    builder: Builder, shapes: list[Shape], packages: Packages, allow_outside: bool
) -> tuple[list[Shape], list[str]]:
    """The shapes with the paths of their meshes, and lines about meshes that are not read."""
    file = builder.file or TEXT
    return with_mesh_paths(
        shapes, AllowedFolders(None if file == TEXT else file, packages), file, allow_outside
    )


def read_urdf(
    source: str | os.PathLike[str],
    *,
    gravity: Numbers | None = None,
    armature: float | Mapping[str, float] | None = None,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> tuple[Builder, list[Shape]]:
    """A builder with the links and joints of a URDF file, and the shapes of the links."""
    root, file = parse(source, limits)
    if root.tag != "robot":
        what, remedy = OTHER_FORMATS.get(
            root.tag, (f"<{shown(root.tag)[1:-1]}>", "give a URDF file, whose root is <robot>")
        )
        raise ModelError(
            f"it is {what}, expected URDF", remedy, file=file, line=root.line, element=root.label
        )
    reader = _Reader(root, file, gravity, armature, limits)
    return reader.builder, reader.shapes


class _Reader:
    """One pass over the elements; each link and joint is one call of the builder."""

    def __init__(
        self,
        root: Element,
        file: str,
        gravity: Numbers | None,
        armature: float | Mapping[str, float] | None,
        limits: ReadLimits,
    ):
        self.fields = Fields(file)
        self.shapes: list[Shape] = []
        self.armature = armature
        self.zero_limits: dict[str, list[str]] = {"effort": [], "velocity": []}  # joints
        self.builder = Builder(self._name(root, file), gravity, file, forest=False)
        faults = self.builder.notes
        schema = SchemaChecker(file, faults)
        schema.check(root)
        if gravity is None:
            with faults.collect():
                x, y, z = self._gravity(root)
                self.builder.gravity = x, y, z
        self.builder.order = "given" if root.attributes.get("order") == "given" else "name"
        links, joints = root.all("link"), root.all("joint")
        with faults.collect():
            self._check_count(root, links, limits)
        if not 0 < len(links) <= limits.max_bodies:
            faults.raise_collected()
        self.colors: dict[str, tuple[float, ...]] = {}
        self.coupled: dict[str, urdf_plus.Coupling] = {}
        with faults.collect():
            self.colors = read_colors(root, self.fields)
        with faults.collect():
            self.coupled = urdf_plus.couplings(root, self.fields)
        for element in (*links, *joints):
            name, found = element.attributes.get("name", ""), len(faults.faults)
            if element.label not in schema.faulty:
                with faults.collect():
                    (self._link if element.tag == "link" else self._joint)(element)
            if element.label in schema.faulty or len(faults.faults) > found:
                self.builder.unread[element.tag].setdefault(name, element.line)
        if not faults.faults:
            self._check_armature(root)
        self._warn_of_zero_limits(root)
        self._warn_of_turns()
        warn_of_units(self.builder, self.shapes, root.line)
        with faults.collect():
            self.builder.loops = urdf_plus.loops(root, self.fields, self.builder)
        if self.builder.loops or self.coupled:
            count = len(self.builder.loops) + len(self.coupled)
            self.builder.note(
                f"{count} loops and couplings are stored, but do not act: "
                "pp.embed(robot) makes them joints, pp.connect closes them"
            )
        for what, (count, line) in schema.unknown.items():
            self.builder.note(
                f"ignored: {what}" + (f" ({count} times)" if count > 1 else ""), line=line
            )
        if "name" not in root.attributes:
            self.builder.note(
                f"the robot has no name; it is named {self.builder.name!r}", line=root.line
            )

    def _name(self, root: Element, file: str) -> str:
        name = root.attributes.get("name", "").strip()
        return (
            name or (os.path.splitext(os.path.basename(file))[0] if file != TEXT else "") or "robot"
        )

    def _gravity(self, root: Element) -> tuple[float, ...]:
        gravity = root.first("gravity")
        return EARTH if gravity is None else self.fields.numbers(gravity, "xyz", 3)

    def _check_count(self, root: Element, links: list[Element], limits: ReadLimits) -> None:
        if not links:
            self.fields.fail(
                root,
                "the robot has no <link>",
                "add links; in xacro, call the macro that makes them",
            )
        if len(links) > limits.max_bodies:
            self.fields.fail(
                root,
                f"the robot has {len(links)} links, more than {limits.max_bodies}",
                "raise max_bodies",
            )

    def _link(self, element: Element) -> None:
        self.fields.owner = element
        name = self.fields.text(element, "name")
        mass, (rotation, com), moments = 0.0, IDENTITY_PLACEMENT, None
        inertial = element.first("inertial")
        if inertial is not None:
            rotation, com = self.fields.origin(inertial)
            mass = self.fields.number(self._child(inertial, "mass"), "value")
            tensor = self._child(inertial, "inertia")
            moments = [self.fields.number(tensor, moment) for moment in MOMENTS]
        axes = None if rotation is IDENTITY_ROTATION else rotation
        self.builder.body(name, mass, com, moments, axes, element.line)
        for child in element.children:
            if child.tag in ("visual", "collision"):
                shape = read_shape(child, name, self.colors, self.fields)
                if shape is not None:
                    self.shapes.append(shape)

    def _joint(self, element: Element) -> None:
        fields = self.fields
        fields.owner = element
        name, kind = fields.text(element, "name"), fields.text(element, "type")
        if kind not in KINDS:
            fields.fail(element, f"no joint type {shown(kind)} in URDF", nearest(kind, KINDS))
        parent = fields.text(self._child(element, "parent"), "link")
        child = fields.text(self._child(element, "child"), "link")
        rotation, xyz = fields.origin(element)
        motion = (
            {}
            if kind == "fixed"
            else {
                **self._limits(element, kind),
                **self._dynamics(element, name),
                "axis": self._axis(element),
            }
        )
        axes = None if rotation is IDENTITY_ROTATION else rotation
        self.builder.joint(
            name,
            KINDS[kind],
            parent,
            child,
            xyz,
            rotation=axes,
            mimic=self._mimic(element),
            line=element.line,
            **motion,
        )

    def _child(self, element: Element, tag: str) -> Element:
        child = element.first(tag)
        if child is None:
            self.fields.fail(element, f"<{element.tag}> has no <{tag}>", f"add <{tag}>")
        return child

    def _axis(self, element: Element) -> tuple[float, ...]:
        axis = element.first("axis")
        return (1.0, 0.0, 0.0) if axis is None else self.fields.numbers(axis, "xyz", 3)

    def _limits(self, element: Element, kind: str) -> dict:
        """The limits. In URDF an absent lower or upper is 0; without <limit> there is no limit."""
        limit = element.first("limit")
        bounded = kind in ("revolute", "prismatic")
        if limit is None:
            if bounded:
                self.builder.note("has no <limit>; unlimited", element.label, element.line)
            return {}
        out: dict = {
            name: self._bound(limit, name)
            for name in ("velocity", "effort")
            if name in limit.attributes
        }
        for name, joints in self.zero_limits.items():
            if out.get(name) == 0.0 and element.first("mimic") is None:
                joints.append(element.attributes["name"])
        bounds = {name: self._bound(limit, name) for name in ("lower", "upper")}
        given = [name for name in bounds if name in limit.attributes]
        if bounded and len(given) < 2:
            self.builder.note(
                "<limit> without lower or upper: an absent one is 0 in URDF",
                element.label,
                limit.line,
            )
        if not bounded and any(bounds.values()):
            self.builder.note(
                f"lower and upper of <limit> ignored: the joint is {kind}",
                element.label,
                limit.line,
            )
        return {**out, **bounds} if bounded else out

    def _bound(self, limit: Element, name: str) -> float:
        x = self.fields.number(limit, name, 0.0)
        return x if abs(x) < UNLIMITED else inf if x > 0.0 else -inf

    def _dynamics(self, element: Element, name: str) -> dict:
        armature = self.armature.get(name) if isinstance(self.armature, Mapping) else self.armature
        out = {} if armature is None else {"armature": armature}
        dynamics = element.first("dynamics")
        if dynamics is not None:
            out.update(
                {
                    key: self.fields.number(dynamics, key)
                    for key in ("damping", "friction", "armature", "stiffness", "rest")
                    if key in dynamics.attributes
                }
            )
            if "motor" in dynamics.attributes:
                out["motor"] = self.fields.flag(dynamics, "motor")
        return out

    def _mimic(self, element: Element) -> tuple[str, float, float] | None:
        """(leader, multiplier, offset) from <mimic> or a coupling."""
        mimic, coupled = element.first("mimic"), self.coupled.get(element.attributes["name"])
        if mimic is not None and coupled is not None:
            self.fields.fail(mimic, "the joint has both <mimic> and a coupling", "keep one of them")
        if mimic is None:
            return None if coupled is None else (coupled.leader, coupled.ratio, 0.0)
        fields = self.fields
        return (
            fields.text(mimic, "joint"),
            fields.number(mimic, "multiplier", 1.0),
            fields.number(mimic, "offset", 0.0),
        )

    def _warn_of_zero_limits(self, root: Element) -> None:
        """One warning for all limits of a kind that are zero: some exporters write 0 for unknown
        limits."""
        for name, joints in self.zero_limits.items():
            if joints:
                text = f"{name} limit 0 of {first_names(joints)}: {ZERO_LIMITS[name]}"
                self.builder.notes.warn(DocumentRecord("robot", root.line), text)

    def _warn_of_turns(self) -> None:
        """One warning for all origins whose angles look like degrees."""
        turned = self.fields.turned
        if turned:
            _, origin = turned[0]
            names = first_names(list(dict.fromkeys(label for label, _ in turned)))
            text = (
                f"rpy {shown(origin.attributes['rpy'])} in <origin> of {names}: more than a turn "
                "in radians; are they in degrees?"
            )
            self.builder.notes.warn(DocumentRecord("robot", origin.line), text)

    def _check_armature(self, root: Element) -> None:
        for name in self.armature if isinstance(self.armature, Mapping) else ():
            if name not in self.builder.joints or not self.builder.joints[name].moves:
                self.fields.owner = "armature"
                moving = [joint.name for joint in self.builder.joints.values() if joint.moves]
                self.fields.fail(
                    root,
                    f"armature names {shown(name)}, which is not a moving joint",
                    nearest(name, moving),
                )
