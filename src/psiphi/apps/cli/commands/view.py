"""`psiphi view`."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from psiphi.apps.cli.commands.simulate import writable
from psiphi.apps.cli.robot_argument import base_argument, is_scene, load, load_case

EXAMPLES = """\
examples:
  psiphi view panda                    live in the browser, with a slider for every joint
  psiphi view panda --html panda.html  one file that opens in any browser; needs nothing else
  psiphi view panda --live panda.html  one file in which the robot runs: pull it with the mouse, steer its motors
  psiphi view arm.urdf --no-meshes     drawn from its kinematics and simple shapes
  psiphi view two_arms                 a scene: simulated, then replayed
  psiphi view ur5.npz                  a motion that `psiphi simulate` has kept (--robot FILE where it is not a bundled robot)

The live viewer comes with `pip install 'psiphi[viewer]'` and listens on this machine only (127.0.0.1); Ctrl-C ends it. Without
it a page is written instead.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        metavar="ROBOT|SCENE|MOTION",
        help="a robot, a scene, or an .npz or .csv file of a motion",
    )
    parser.add_argument(
        "--robot", help="the robot or scene of a kept motion, where it is not a bundled robot"
    )
    base_argument(parser)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--html", metavar="FILE", help="write one page instead of starting the live viewer"
    )
    kinds.add_argument(
        "--live",
        metavar="FILE",
        help="write one page in which the robot or the scene's system runs",
    )
    parser.add_argument("--no-meshes", action="store_true", help="leave mesh files alone")
    parser.add_argument(
        "--port",
        type=int,
        default=8080,
        help="port of the live viewer (default: %(default)s, or the next free)",
    )
    parser.add_argument("--open", action="store_true", help="open the browser, too")


def run(args: argparse.Namespace) -> int:
    """Show it live, or write a page."""
    from psiphi import viewer
    from psiphi.apps.viewer.live.viser_viewer import read_port

    port, thing = read_port(args.port), _read(args)
    if args.live is not None:
        writable(Path(args.live))
        return _wrote(
            viewer.html(thing, args.live, live=True, meshes=not args.no_meshes), args.open
        )
    live = args.html is None and importlib.util.find_spec("viser") is not None
    page = Path(f"{Path(args.target).stem}.html" if args.html is None else args.html)
    if not live:
        writable(page)
    thing, options = _moved(thing), {"meshes": not args.no_meshes}
    if live:
        shown = viewer.view(thing, port=port, **options)
        print(f"{shown.url} shows it; Ctrl-C ends", flush=True)
        if args.open:
            _open(shown.url)
        shown.wait()
        return 0
    if args.html is None:
        print(
            "the live viewer is not installed (pip install 'psiphi[viewer]'); a page does as well",
            file=sys.stderr,
        )
    return _wrote(viewer.html(thing, page, **options), args.open)


def _wrote(path: Path, shown: bool) -> int:
    print(f"wrote {path}: open it in any browser")
    if shown:
        _open(path.resolve().as_uri())
    return 0


def _read(args: argparse.Namespace):
    """A robot, a scene, or a kept motion."""
    if args.target.lower().endswith((".npz", ".csv")):
        return _kept(args)
    own = args.target, args.base, args.flexible
    return load_case(*own) if is_scene(args.target) else load(*own)


def _moved(thing):
    """A scene is simulated."""

    from psiphi.apps.scenes.scene_file import SceneSetup
    from psiphi.simulation.simulate.progress_bar import ProgressBar

    if not isinstance(thing, SceneSetup):
        return thing
    with ProgressBar(thing.options["duration"]) as bar:
        return thing.run(progress=bar)


def _kept(args: argparse.Namespace):
    from psiphi import robots
    from psiphi._util.errors import Error
    from psiphi.simulation.trajectory.trajectory import Trajectory

    name = args.robot
    if name is None:
        own = Trajectory.load(args.target).info.get("system", "")
        if own not in robots.bundled():
            cause = f"{args.target} holds the motion of {own or 'a robot'!r}, not the robot itself"
            raise Error(cause, "add --robot NAME, the robot or scene it was simulated with")
        name = own
    return Trajectory.load(args.target, system=load_case(name, args.base, args.flexible).system)


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
