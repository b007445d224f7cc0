"""The robot or scene that a command-line argument names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from psiphi._util.errors import Error, ModelError
from psiphi.apps.cli.terminal_text import nearest

if TYPE_CHECKING:  # imported when a command runs: `psiphi --help` needs no NumPy
    from psiphi.apps.scenes.scene_file import SceneSetup
    from psiphi.robot.robot import Robot

ROBOT = "the name of a bundled robot, or a path to a URDF or MJCF file"


def robot_argument(parser: argparse.ArgumentParser) -> None:
    """Add ROBOT, --base and --flexible to the parser."""
    parser.add_argument("robot", metavar="ROBOT", help=ROBOT)
    base_argument(parser)


def base_argument(parser: argparse.ArgumentParser) -> None:
    """Add --base and --flexible to the parser."""
    parser.add_argument(
        "--base",
        choices=("fixed", "free"),
        help="fixed or floating base (default: as in the file)",
    )
    parser.add_argument(
        "--flexible",
        metavar="LINK=FILE",
        action="append",
        default=[],
        help="a flexible link with its modal data (.npz or .json); may be repeated",
    )


def reader_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pp.load` for files to the parser."""
    parser.add_argument(
        "--lock", metavar="JOINTS", help="joints to fix, separated by commas; * stands for any text"
    )
    parser.add_argument(
        "--repair", metavar="FAULTS", help="faults to repair: inertia, axis, limits, mimic, or all"
    )
    parser.add_argument(
        "--allow-outside", action="store_true", help="read meshes outside the package, too"
    )


def reader_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `pp.load` that the arguments give."""
    options: dict[str, Any] = {}
    for name in ("lock", "repair"):
        if text := getattr(args, name):
            words = [word.strip() for word in text.split(",")]
            options[name] = words[0] if len(words) == 1 else words
    return options | ({"allow_outside": True} if args.allow_outside else {})


def _with_flexible_links(robot: Robot, flexible: Sequence[str]) -> Robot:
    """The robot with flexible links, each as LINK=FILE."""
    import psiphi

    for word in flexible:
        link, _, file = word.partition("=")
        if not file:
            raise Error(
                f"--flexible is {word!r}, expected LINK=FILE",
                "write --flexible forearm_link=forearm.npz",
            )
        robot = robot.with_flexible(link, psiphi.FlexibleBody.load(file))
    return robot


def load(
    robot: str, base: str | None = None, flexible: Sequence[str] = (), **options: Any
) -> Robot:
    """The robot of a name or file. An error about an unknown name suggests the nearest ones."""
    import psiphi

    if flexible:
        return _with_flexible_links(load(robot, base, **options), flexible)
    try:
        return psiphi.load(robot, base=base, **options)
    except (Error, OSError) as error:
        names = psiphi.robots.names()
        if is_scene(robot):
            raise ModelError(
                f"{robot} is a scene, not a robot",
                f"psiphi simulate {robot}, or psiphi view {robot}",
            ) from error
        if robot in names or is_path(robot):
            raise
        raise ModelError(
            f"no robot is called {robot!r}",
            f"{nearest(robot, names)} Or pass the path of a URDF file",
        ) from error


def is_path(text: str) -> bool:
    """Whether the text is a file, a path with a folder, or ends like a robot or scene file."""
    return (
        os.path.exists(text)
        or os.path.basename(text) != text
        or text.lower().endswith((".urdf", ".xml", ".toml"))
    )


def is_scene(text: str) -> bool:
    """Whether the text is a .toml file or the name of a bundled scene."""
    if text.lower().endswith(".toml"):
        return True
    from psiphi import scenes

    return text in scenes.names()


def load_scene(target: str, base: str | None = None, flexible: Sequence[str] = ()) -> SceneSetup:
    """The scene of a name or file, or a scene with one robot at rest."""
    from psiphi import robots, scenes
    from psiphi.apps.viewer.recorded_motion import rest_configuration

    if is_scene(target):
        if base is not None:
            raise Error(
                "--base is for robots, not for scenes", "write base = ... into the scene file"
            )
        if flexible:
            raise Error(
                "--flexible is for robots, not for scenes",
                "write [[robots.NAME.flexible]] into the scene file",
            )
        return scenes.load(target)
    try:
        robot = load(target, base, flexible)
    except ModelError as error:
        if is_path(target):
            raise
        known = [*robots.names(), *scenes.names()]
        hint = f"{nearest(target, known)} Or pass the path of a URDF or scene file"
        raise ModelError(f"no robot or scene is called {target!r}", hint) from error
    import numpy as np

    return scenes.SceneSetup(robot.name, robot, rest_configuration(robot), np.zeros(robot.nv))
