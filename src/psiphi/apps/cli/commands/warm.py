"""`psiphi warm`."""

from __future__ import annotations

import argparse
import time

from psiphi._util.errors import Error
from psiphi._util.text import columns
from psiphi.apps.cli.robot_argument import load, reader_arguments, reader_options, robot_argument
from psiphi.apps.cli.terminal_text import nearest, sentence

EXAMPLES = """\
examples:
  psiphi warm arm.urdf                                       the usual functions
  psiphi warm arm.urdf forward_dynamics --jacobian q,v,tau   and its derivatives
  psiphi warm arm.urdf jacobian --frame tool --float32

Each function is compiled now, and its code is kept in the cache, so that no later process waits at
a first call. The code is for the processor of this machine and this version of psiphi.
"""
USUAL = ("forward_dynamics", "inverse_dynamics", "bias", "gravity", "mass_matrix")


def arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    reader_arguments(parser)
    parser.add_argument(
        "functions", metavar="FUNCTION", nargs="*", help=f"default: {', '.join(USUAL)}"
    )
    parser.add_argument(
        "--frame", action="append", default=[], help="frame of the functions; may be repeated"
    )
    parser.add_argument(
        "--jacobian", metavar="NAMES", help="arguments, as q,v,tau: also the Jacobians by these"
    )
    parser.add_argument("--float32", action="store_true", help="for arrays of float32")


def run(args: argparse.Namespace) -> int:
    """Compile functions of a robot, and print how long each took."""
    from psiphi.backends import kernel_cache
    from psiphi.robot.catalogue.catalogue import ALL_QUANTITIES

    folder = kernel_cache.directory(create=True)
    if folder is None:
        raise Error(
            "the cache of compiled code is off or cannot be used, so nothing would be kept",
            "set PSIPHI_CACHE to a writable folder",
        )
    robot = load(args.robot, args.base, args.flexible, **reader_options(args))
    names = args.functions or USUAL
    for name in names:
        if name not in ALL_QUANTITIES:
            raise Error(f"no function is called {name!r}", nearest(name, ALL_QUANTITIES))
    rows = []
    for name in names:
        begin = time.perf_counter()
        try:
            robot.compile(
                name,
                frames=tuple(args.frame),
                dtype="float32" if args.float32 else "float64",
                jacobian=args.jacobian.split(",") if args.jacobian else (),
            )
        except Error as error:
            if not args.frame and "frame" in error.cause:
                raise Error(
                    sentence(error), "add --frame NAME; psiphi info lists the frames"
                ) from error
            raise
        rows.append((name, f"{time.perf_counter() - begin:.2f} s"))
    for line in columns(rows):
        print(line)
    print(f"kept in {folder}")
    return 0
