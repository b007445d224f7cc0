"""The table of commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

from psiphi.apps.cli.commands import bench, count, demo, derive, emit, info, simulate, study, view

EXAMPLES = """\
examples:
  psiphi demo                            two arms carry a box: a simulation and a page to look at
  psiphi view panda                      a robot in the browser
  psiphi info puma560                    a robot's tree, coordinates, checks and operation counts
  psiphi simulate ur5 --controller hold  five seconds of motion: a summary, the numbers, a page with the animation
  psiphi simulate two_arms               a bundled scene; scenes are small TOML files
  psiphi study run falls.toml            thousands or millions of motions, with numbers of their own
  psiphi derive "J @ mass.inv @ J.T"     an equation, its proof and its O(N) loops
  psiphi emit ur5 forward_dynamics       straight-line C of a robot's dynamics
  psiphi bench --quick                   a short comparison with other libraries on this machine

A robot is a bundled name (puma560, ur5, panda, ...) or a URDF file. `psiphi COMMAND --help` explains a command.
"""


class Command(NamedTuple):
    """One row: what runs, what it is for, its arguments, its examples."""

    run: Callable[[argparse.Namespace], int]
    help: str
    arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    epilog: str = ""


COMMANDS = {
    "demo": Command(
        demo.run,
        "two arms carry a box: simulated, summed up, and written as a page",
        demo.arguments,
        demo.EXAMPLES,
    ),
    "view": Command(
        view.run, "look at a robot or a scene in the browser", view.arguments, view.EXAMPLES
    ),
    "info": Command(
        info.run,
        "what a robot is: tree, coordinates, checks, operation counts",
        info.arguments,
        info.EXAMPLES,
    ),
    "simulate": Command(
        simulate.run,
        "move a robot or a scene in time, and keep the result",
        simulate.arguments,
        simulate.EXAMPLES,
    ),
    "study": Command(
        study.run,
        "many motions with numbers of their own, kept and summed up",
        study.arguments,
        study.EXAMPLES,
    ),
    "derive": Command(
        derive.run,
        "an operator expression, proved and turned into loops",
        derive.arguments,
        derive.EXAMPLES,
    ),
    "count": Command(
        count.run,
        "operation counts, beside those of the literature",
        count.arguments,
        count.EXAMPLES,
    ),
    "emit": Command(
        emit.run, "the code of a robot's function, as C or LLVM IR", emit.arguments, emit.EXAMPLES
    ),
    "bench": Command(
        bench.run,
        "time psiphi beside other libraries on this machine",
        bench.arguments,
        bench.EXAMPLES,
    ),
}
