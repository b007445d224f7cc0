"""`psiphi count`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from psiphi._util.errors import Error
from psiphi._util.text import columns
from psiphi.apps.cli.commands.bench import benchmark_module
from psiphi.apps.cli.robot_argument import ROBOT, base_argument, load
from psiphi.apps.cli.terminal_text import nearest, sentence

EXAMPLES = """\
examples:
  psiphi count                                        general arms of N links: psiphi beside the published tables
  psiphi count --table 3                              forward dynamics alone, against the literature
  psiphi count ur5                                    every function of the catalogue that needs no frame
  psiphi count ur5 forward_dynamics mass_matrix       these
  psiphi count ur5 diagonalised_motion                one step in the velocities nu (unnormalised_motion: in xi)
  psiphi count panda jacobian --frame panda_hand      of a frame

Counts are exact: of the straight-line code that runs, after every zero and one of this robot has been used. flops are
multiplications, additions, divisions and roots; sines and cosines stand apart, as in the literature.
"""
COLUMNS = ("mul", "add", "div", "sqrt", "trig")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "robot",
        metavar="ROBOT",
        nargs="?",
        help=f"{ROBOT} (default: general arms, beside the literature)",
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
        help="functions of the robot (default: all without frames)",
    )
    parser.add_argument(
        "--frame", action="append", default=[], help="for functions of frames; may be repeated"
    )


def run(args: argparse.Namespace) -> int:
    """Print a row of counts for each function, or the tables of the literature with psiphi beside them."""
    if args.robot is None:
        if args.frame or args.base:
            raise Error(
                "--frame and --base belong to a robot, and none is given",
                "psiphi count ROBOT --frame NAME",
            )

        print(benchmark_module("counts.count_tables_text").report(args.table, args.case))
        return 0
    if args.table or args.case:
        raise Error(
            "--table and --case are of the general arms, and a robot is given",
            f"leave them out, or {args.robot} out",
        )
    robot = load(args.robot, args.base, args.flexible)
    found = list(rows(robot, args.functions, tuple(args.frame)))
    print(f"{robot.name}: {robot.body_count} bodies, nv={robot.nv}")
    for line in columns([("function", "flops", *COLUMNS), *found]):
        print(line)
    return 0


def rows(robot, names: list[str], frames: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """One row a function; those that cannot be had say why, if they were asked for."""
    from psiphi.robot.catalogue.quantities import ALL_QUANTITIES, CATALOGUE

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
