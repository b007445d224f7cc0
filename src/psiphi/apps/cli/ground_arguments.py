"""The ground of a simulation on the command line: --ground, --ground-friction, --contacts."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from psiphi._util.errors import Error

if TYPE_CHECKING:  # imported when a command runs: `psiphi --help` needs no NumPy
    from psiphi.apps.scenes.scene_file import SceneSetup
    from psiphi.robot.robot import Robot

COLLISION = "collision"


def ground_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --ground, --ground-friction and --contacts to the parser."""
    parser.add_argument(
        "--ground", action="store_true", help="the robot's feet touch the plane z = 0"
    )
    parser.add_argument(
        "--ground-friction",
        type=float,
        metavar="MU",
        help="Coulomb friction of the ground (default: 0.8, or the scene's)",
    )
    parser.add_argument(
        "--contacts",
        metavar="FRAMES=RADIUS",
        action="append",
        default=[],
        help='spheres on frames that touch the ground: "*_foot=0.03"; may be repeated. Or '
        f'"{COLLISION}": the collision shapes of the robot\'s file',
    )


def with_ground(args: argparse.Namespace, scene: SceneSetup) -> SceneSetup:
    """The scene with the ground of the arguments; the base of a robot stands on it."""
    from psiphi.model.contact.ground import Ground

    own = scene.options.get("contacts")
    ground = own if isinstance(own, Ground) else None
    if not args.ground and ground is None:
        for option in ("ground_friction", "contacts"):
            if getattr(args, option) not in (None, []):
                name = option.replace("_", "-")
                raise Error(f"--{name} needs a ground", "add --ground")
        return scene
    friction = {} if args.ground_friction is None else {"friction": args.ground_friction}
    if ground is not None:
        if args.contacts:
            raise Error("--contacts is for robots", "write contacts = ... into the scene file")
        return replace(scene, options={**scene.options, "contacts": replace(ground, **friction)})
    if hasattr(scene.system, "assemble"):
        raise Error(
            "--ground is for robots, not for closed chains", "name a robot, or use pp.embed"
        )
    robot, ground = with_feet(scene.system, args.contacts), Ground(**friction)
    placed = robot.joints[0].kind == "free"
    q0 = robot.on_ground(scene.q0, ground) if placed else scene.q0
    options = {**scene.options, "contacts": ground}
    options.pop("method", None)
    return replace(scene, system=robot, q0=q0, options=options, on_ground=placed)


def with_feet(robot: Robot, contacts: list[str]) -> Robot:
    """The robot with the shapes of --contacts, its own, or those of its file."""
    import psiphi

    if COLLISION in contacts and len(contacts) > 1:
        raise Error(f"--contacts {COLLISION} contradicts {contacts}", "use one of them")
    if contacts and contacts != [COLLISION]:
        return robot.with_contacts(
            {frames: psiphi.Sphere(radius) for frames, radius in map(_frames_and_radius, contacts)}
        )
    if robot.contact_points and not contacts:
        return robot
    try:
        return robot.with_contacts(COLLISION)
    except Error as error:
        raise Error(error.cause, "name its feet: --contacts '*_foot=0.03'") from error


def _frames_and_radius(text: str) -> tuple[str, float]:
    """The frames and the radius of "*_foot=0.03".

    >>> _frames_and_radius("*_foot=0.03")
    ('*_foot', 0.03)
    """
    frames, _, radius = text.partition("=")
    try:
        return frames, float(radius)
    except ValueError:
        raise Error(
            f"--contacts is {text!r}, expected FRAMES=RADIUS or {COLLISION}",
            "write --contacts '*_foot=0.03'",
        ) from None
