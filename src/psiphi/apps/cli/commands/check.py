"""`psiphi check`."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable, Iterator

from psiphi._util.errors import Error
from psiphi._util.text import count_of
from psiphi.apps.cli.robot_argument import load, reader_arguments, reader_options, robot_argument

EXAMPLES = """\
examples:
  psiphi check arm.urdf
  psiphi check arm.urdf --repair inertia,limits    what these repairs leave
  psiphi check arm.urdf --lock "finger_*"          as pp.load(..., lock="finger_*") reads it

All faults of a file are listed at once, each with its line and a remedy; then what looks wrong, and
what was left out. The exit code is 1 if the file has faults.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    reader_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the faults of a robot's description, and what its reader reported."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the report lists them
            robot = load(args.robot, args.base, args.flexible, **reader_options(args))
    except Error as error:
        if error.line is None:  # no file was read
            raise
        for line in fault_lines(error):
            print(line)
        return 1
    print(f"{robot.name}: {count_of(robot.body_count, 'body', 'bodies')}, nv={robot.nv}: no faults")
    for line in report_lines(robot.report, args.robot):
        print(line)
    return 0


def fault_lines(error: Error) -> Iterator[str]:
    """The file once, then each fault with its remedy, then the report."""
    yield f"{error.file}: {count_of(len(error.faults), 'fault')}"
    for fault in error.faults:
        line = "" if fault.line is None else f"line {fault.line}"
        place = ", ".join(part for part in (line, fault.element) if part)
        yield f"  {place}: {fault.cause}"
        yield f"      remedy: {fault.remedy}"
    yield from report_lines(error.report, error.file or "")


def report_lines(report: Iterable[str], file: str) -> list[str]:
    """The lines of a report, without the name of the file."""
    lines = [line.removeprefix(f"{file}:") for line in report]
    return ["reported:", *(f"  line {x}" if x[:1].isdigit() else f"  {x}" for x in lines)][
        : 1 + len(lines) if lines else 0
    ]
