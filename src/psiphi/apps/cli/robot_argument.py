"""Robots and scenes by the words a user types."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from psiphi._util.errors import Error, ModelError
from psiphi.apps.cli.terminal_text import nearest

ROBOT = "the name of a bundled robot, or a path to a URDF file"


def robot_argument(parser: argparse.ArgumentParser) -> None:
    """ROBOT, --base and --flexible."""
    parser.add_argument("robot", metavar="ROBOT", help=ROBOT)
    base_argument(parser)


def base_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--base",
        choices=("fixed", "free"),
        help="bolted down or floating (default: as the robot comes)",
    )
    parser.add_argument(
        "--flexible",
        metavar="LINK=FILE",
        action="append",
        default=[],
        help="a link that bends, by modal data (.npz or .json); may be repeated",
    )


def _bent(robot, flexible: list[str]):
    """The robot with links that bend, each as LINK=FILE."""
    import psiphi

    for word in flexible:
        link, _, file = word.partition("=")
        if not file:
            raise Error(
                f"--flexible is {word!r}, expected LINK=FILE",
                "as in --flexible forearm_link=forearm.npz",
            )
        robot = robot.with_flexible(link, psiphi.FlexibleBody.load(file))
    return robot


def load(robot: str, base: str | None = None, flexible: Sequence[str] = ()):
    """The robot of that name or file; an unknown name is answered with the nearest ones."""
    import psiphi

    if flexible:
        return _bent(load(robot, base), list(flexible))
    try:
        return psiphi.load(robot, base=base)
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
            f"{nearest(robot, names)} Or give a path to a URDF file",
        ) from error


def is_path(text: str) -> bool:
    return (
        os.path.exists(text)
        or os.path.basename(text) != text
        or text.lower().endswith((".urdf", ".xml", ".toml"))
    )


def is_scene(text: str) -> bool:
    """A .toml file, or the name of a bundled scene."""
    if text.lower().endswith(".toml"):
        return True
    from psiphi import scenes

    return text in scenes.names()


def load_case(target: str, base: str | None = None, flexible: Sequence[str] = ()):
    """The scene of that name or file, or a scene of the one robot that the words mean."""
    from psiphi import robots, scenes
    from psiphi.apps.viewer.recorded_motion import resting

    if is_scene(target):
        if base is not None:
            raise Error("--base is for robots, not for scenes", "write base = ... into the scene")
        if flexible:
            raise Error(
                "--flexible is for robots, not for scenes",
                "write [[robots.NAME.flexible]] into the scene",
            )
        return scenes.load(target)
    try:
        robot = load(target, base, flexible)
    except ModelError as error:
        if is_path(target):
            raise
        known = [*robots.names(), *scenes.names()]
        hint = f"{nearest(target, known)} Or give a path to a URDF or scene file"
        raise ModelError(f"no robot or scene is called {target!r}", hint) from error
    import numpy as np

    return scenes.SceneSetup(robot.name, robot, resting(robot), np.zeros(robot.nv))
