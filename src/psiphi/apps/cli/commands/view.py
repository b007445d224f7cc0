"""`psiphi view`."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from psiphi._util import extras
from psiphi._util.errors import Error
from psiphi.apps.cli.commands.simulate import check_writable
from psiphi.apps.cli.ground_arguments import ground_arguments, with_ground
from psiphi.apps.cli.robot_argument import base_argument, is_scene, load, load_scene

if TYPE_CHECKING:  # imported when a command runs: `psiphi --help` needs no NumPy
    from psiphi.apps.scenes.scene_file import SceneSetup
    from psiphi.robot.robot import Robot
    from psiphi.simulation.trajectory.trajectory import Trajectory

EXAMPLES = """\
examples:
  psiphi view panda                    live in the browser, with a slider for every joint
  psiphi view panda --html panda.html  one self-contained file that opens in any browser
  psiphi view panda --live panda.html  one file that simulates the robot: pull it with the mouse,
                                       set its motors
  psiphi view anymal_c --live a.html --ground --contacts collision
                                       a quadruped on its feet: push it, switch its motors off
  psiphi view arm.urdf --no-meshes     kinematics and simple shapes only
  psiphi view two_arms                 a scene: simulated, then replayed
  psiphi view ur5.npz                  a motion written by `psiphi simulate` (with --robot FILE if
                                       the robot is not bundled)

The live viewer comes with `pip install 'viser>=1.0,<2'` and listens on this machine only
(127.0.0.1); Ctrl-C ends it. Without it, psiphi writes a page instead.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        metavar="ROBOT|SCENE|MOTION",
        help="a robot, a scene, or an .npz or .csv file of a motion",
    )
    parser.add_argument(
        "--robot", help="robot or scene of a saved motion, if it is not a bundled robot"
    )
    base_argument(parser)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--html", metavar="FILE", help="write one page instead of starting the live viewer"
    )
    kinds.add_argument(
        "--live",
        metavar="FILE",
        help="write one page that simulates the robot or scene",
    )
    ground_arguments(parser)
    parser.add_argument("--no-meshes", action="store_true", help="do not read mesh files")
    parser.add_argument(
        "--port",
        type=int,
        default=8080,
        help="port of the live viewer (default: %(default)s, or the next free)",
    )
    parser.add_argument("--open", action="store_true", help="also open the browser")


def run(args: argparse.Namespace) -> int:
    """Show the target live, or write a page."""
    from psiphi import viewer
    from psiphi.apps.viewer.live.viser_viewer import read_port

    port, target = read_port(args.port), _load_target(args)
    on_ground = args.ground or args.contacts or args.ground_friction is not None
    if on_ground and args.live is None:
        raise Error(
            "--ground, --ground-friction and --contacts are for pages that simulate",
            "add --live FILE, or use psiphi simulate",
        )
    if args.live is not None:
        if on_ground:
            target = with_ground(args, _as_scene(args, target))
        check_writable(Path(args.live))
        return _report_page(
            viewer.html(target, args.live, live=True, meshes=not args.no_meshes), args.open
        )
    live = args.html is None and importlib.util.find_spec("viser") is not None
    page = Path(f"{Path(args.target).stem}.html" if args.html is None else args.html)
    if not live:
        check_writable(page)
    target, options = _simulated(target), {"meshes": not args.no_meshes}
    if live:
        shown = viewer.view(target, port=port, **options)
        print(f"open {shown.url}; press Ctrl-C to stop", flush=True)
        if args.open:
            _open(shown.url)
        shown.wait()
        return 0
    if args.html is None:
        print(
            f"the live viewer is not installed ({extras.install_command('psiphi[viewer]')}): "
            "writing a page",
            file=sys.stderr,
        )
    return _report_page(viewer.html(target, page, **options), args.open)


def _report_page(path: Path, open_browser: bool) -> int:
    print(f"wrote {path}: open it in any browser")
    if open_browser:
        _open(path.resolve().as_uri())
    return 0


def _load_target(args: argparse.Namespace) -> Robot | SceneSetup | Trajectory:
    """A robot, a scene, or a saved motion."""
    if args.target.lower().endswith((".npz", ".csv")):
        return _load_motion(args)
    arguments = args.target, args.base, args.flexible
    return load_scene(*arguments) if is_scene(args.target) else load(*arguments)


def _as_scene(args: argparse.Namespace, target: Robot | SceneSetup | Trajectory) -> SceneSetup:
    """The scene, or the scene with the robot at rest."""
    from psiphi.simulation.trajectory.trajectory import Trajectory

    if isinstance(target, Trajectory):
        cause = f"--ground is for robots and scenes, and {args.target} holds a motion"
        raise Error(cause, "name the robot")
    return load_scene(args.target, args.base, args.flexible)


def _simulated(target: Robot | SceneSetup | Trajectory) -> Robot | Trajectory:
    """The motion of a scene; robots and motions are returned unchanged."""
    from psiphi.apps.scenes.scene_file import SceneSetup
    from psiphi.simulation.simulate.progress_bar import ProgressBar

    if not isinstance(target, SceneSetup):
        return target
    with ProgressBar(target.options["duration"]) as bar:
        return target.run(progress=bar)


def _load_motion(args: argparse.Namespace) -> Trajectory:
    from psiphi import robots
    from psiphi.simulation.trajectory.trajectory import Trajectory

    name = args.robot
    if name is None:
        name = Trajectory.load(args.target).info.get("system", "")
        if name not in robots.bundled():
            system = repr(name or "a robot")
            cause = f"{args.target} holds the motion of {system}, not the robot itself"
            raise Error(cause, "add --robot NAME, the robot or scene of the simulation")
    return Trajectory.load(args.target, system=load_scene(name, args.base, args.flexible).system)


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
