"""`psiphi view`."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from psiphi.cli.robots import base_argument, is_scene, load, load_case
from psiphi.cli.simulate import writable

EXAMPLES = """\
examples:
  psiphi view panda                    live in the browser, with a slider for every joint
  psiphi view panda --html panda.html  one file that opens in any browser; needs nothing else
  psiphi view arm.urdf --no-meshes     drawn from its kinematics and simple shapes
  psiphi view two_arms                 a scene: simulated, then replayed
  psiphi view ur5.npz                  a motion that `psiphi simulate` has kept (--robot FILE where it is not a bundled robot)

The live viewer comes with `pip install 'psiphi[viewer]'` and listens on this machine only (127.0.0.1); Ctrl-C ends it. Without
it a page is written instead.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="ROBOT|SCENE|MOTION", help="a robot, a scene, or an .npz or .csv file of a motion")
    parser.add_argument("--robot", help="the robot or scene of a kept motion, where it is not a bundled robot")
    base_argument(parser)
    parser.add_argument("--html", metavar="FILE", help="write one page instead of starting the live viewer")
    parser.add_argument("--no-meshes", action="store_true", help="leave mesh files alone")
    parser.add_argument(
        "--port", type=int, default=8080, help="port of the live viewer (default: %(default)s, or the next free)"
    )
    parser.add_argument("--open", action="store_true", help="open the browser, too")


def run(args: argparse.Namespace) -> int:
    """Show it live, or write a page."""
    from psiphi import viewer

    if args.html:
        writable(Path(args.html))
    thing, options = _thing(args), {"meshes": not args.no_meshes}
    if args.html:
        path = viewer.html(thing, args.html, **options)
        print(f"wrote {path}: open it in any browser")
        if args.open:
            _open(path.resolve().as_uri())
        return 0
    if importlib.util.find_spec("viser") is None:
        return _page_instead(args, thing, options)
    shown = viewer.view(thing, port=args.port, **options)
    print(f"{shown.url} shows it; Ctrl-C ends", flush=True)
    if args.open:
        _open(shown.url)
    shown.wait()
    return 0


def _page_instead(args: argparse.Namespace, thing, options: dict) -> int:
    """Without the live viewer's extra: a page, which needs nothing."""
    from psiphi import viewer

    path = viewer.html(thing, f"{Path(args.target).stem}.html", **options)
    print("the live viewer is not installed (pip install 'psiphi[viewer]'); a page does as well", file=sys.stderr)
    print(f"wrote {path}: open it in any browser")
    if args.open:
        _open(path.resolve().as_uri())
    return 0


def _thing(args: argparse.Namespace):
    """A robot, a trajectory of a scene, or a kept motion."""
    if args.target.lower().endswith((".npz", ".csv")):
        return _kept(args)
    if is_scene(args.target):
        from psiphi.cli.progress import Bar

        case = load_case(args.target, args.base)
        with Bar(case.options.get("duration", 1.0)) as bar:
            return case.run(progress=bar)
    return load(args.target, args.base)


def _kept(args: argparse.Namespace):
    from psiphi import robots
    from psiphi.errors import Error
    from psiphi.simulation.trajectory import Trajectory

    name = args.robot
    if name is None:
        own = Trajectory.load(args.target).info.get("system", "")
        if own not in robots.bundled():
            cause = f"{args.target} holds the motion of {own or 'a robot'!r}, not the robot itself"
            raise Error(cause, "add --robot NAME, the robot or scene it was simulated with")
        name = own
    return Trajectory.load(args.target, system=load_case(name, args.base).system)


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
