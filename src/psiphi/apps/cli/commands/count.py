"""`psiphi count`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from psiphi._util.errors import Error
from psiphi._util.text import columns
from psiphi.apps.cli.commands.bench import benchmark_module
from psiphi.apps.cli.robot_argument import ROBOT, base_argument, load
from psiphi.apps.cli.terminal_text import nearest, sentence

if TYPE_CHECKING:  # imported when a command runs: `psiphi --help` needs no NumPy
    from psiphi.robot.robot import Robot

EXAMPLES = """\
examples:
  psiphi count                                    arms of N links: psiphi and published counts
  psiphi count --table 3                          forward dynamics only
  psiphi count ur5                                all functions that need no frame
  psiphi count ur5 forward_dynamics mass_matrix   these two functions
  psiphi count ur5 diagonalised_motion            one step in the velocities nu
  psiphi count ur5 unnormalised_motion            one step in the velocities xi
  psiphi count panda jacobian --frame panda_hand  a function of a frame

Counts are exact: they are those of the straight-line code that runs, after all zeros and ones of
this robot have been folded. flops are multiplications, additions, divisions and square roots;
sines and cosines are counted separately, as in the literature.
"""
COLUMNS = ("mul", "add", "div", "sqrt", "trig")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "robot",
        metavar="ROBOT",
        nargs="?",
        help=f"{ROBOT} (default: general arms, compared with the literature)",
    )
    base_argument(parser)
    parser.add_argument(
        "--table", type=int, choices=(2, 3), help="without ROBOT: only this table of the paper"
    )
    parser.add_argument(
        "--case", type=int, choices=(1, 2), help="without ROBOT: only this case of Table 2"
    )
    parser.add_argument(
        "functions",
        metavar="FUNCTION",
        nargs="*",
        help="functions of the robot (default: all that need no frame)",
    )
    parser.add_argument(
        "--frame", action="append", default=[], help="frame of the function; may be repeated"
    )


def run(args: argparse.Namespace) -> int:
    """Print a row of counts for each function, or the published tables with psiphi's counts."""
    if args.robot is None:
        if args.frame or args.base:
            raise Error(
                "--frame and --base need a ROBOT",
                "psiphi count ROBOT --frame NAME",
            )
        print(benchmark_module("counts.count_tables_text").report(args.table, args.case))
        return 0
    if args.table or args.case:
        raise Error(
            "--table and --case are for the general arms, not for a ROBOT",
            f"omit them, or omit {args.robot}",
        )
    robot = load(args.robot, args.base, args.flexible)
    table = list(rows(robot, args.functions, tuple(args.frame)))
    print(f"{robot.name}: {robot.body_count} bodies, nv={robot.nv}")
    for line in columns([("function", "flops", *COLUMNS), *table]):
        print(line)
    return 0


def rows(robot: Robot, names: list[str], frames: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """One row per function. Without `names`, functions that need a frame are skipped."""
    from psiphi.robot.catalogue.catalogue import ALL_QUANTITIES, CATALOGUE

    for name in names or CATALOGUE:
        if name not in ALL_QUANTITIES:
            raise Error(f"no function is called {name!r}", nearest(name, ALL_QUANTITIES))
        try:
            count = robot.function(name, frames).count
        except Error as error:
            if names:
                raise Error(
                    sentence(error), "add --frame NAME; psiphi info lists the frames"
                ) from error
            continue
        yield name, str(count.flops), *(str(getattr(count, column)) for column in COLUMNS)
