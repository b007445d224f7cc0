"""The table of commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

from psiphi.apps.cli.commands import (
    bench,
    check,
    count,
    demo,
    derive,
    emit,
    info,
    optimise,
    simulate,
    study,
    view,
    warm,
)

EXAMPLES = """\
examples:
  psiphi demo                            two arms carry a box: a simulation and a page
  psiphi view panda                      show a robot in the browser
  psiphi info puma560                    a robot's tree, coordinates, checks and operation counts
  psiphi check arm.urdf                  all faults of a file, with lines and remedies
  psiphi simulate ur5 --controller hold  five seconds of motion: summary, data, animation
  psiphi simulate two_arms               a bundled scene; scenes are small TOML files
  psiphi optimise swing_up.toml          motions of least cost; the problem is in a scene
  psiphi study run falls.toml            thousands or millions of motions with varied parameters
  psiphi derive "J @ mass.inv @ J.T"     an expression, its derivation and its O(N) loops
  psiphi emit ur5 forward_dynamics       straight-line C of a robot's dynamics
  psiphi warm arm.urdf                   compile a robot's functions now, for later processes
  psiphi bench --quick                   a short comparison with other libraries on this machine

A robot is a bundled name (puma560, ur5, panda, ...), a URDF file or an MJCF file.
`psiphi COMMAND --help` explains a command.
"""


class Command(NamedTuple):
    """One row: function, one-line help, arguments, examples."""

    run: Callable[[argparse.Namespace], int]
    help: str
    arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    epilog: str = ""


COMMANDS = {
    "demo": Command(
        demo.run,
        "simulate two arms that carry a box and write a page",
        demo.arguments,
        demo.EXAMPLES,
    ),
    "view": Command(
        view.run, "show a robot or a scene in the browser", view.arguments, view.EXAMPLES
    ),
    "info": Command(
        info.run,
        "print a robot: tree, coordinates, checks, operation counts",
        info.arguments,
        info.EXAMPLES,
    ),
    "check": Command(
        check.run,
        "list all faults of a robot's file, and what looks wrong in it",
        check.arguments,
        check.EXAMPLES,
    ),
    "simulate": Command(
        simulate.run,
        "simulate a robot or a scene and save the result",
        simulate.arguments,
        simulate.EXAMPLES,
    ),
    "optimise": Command(
        optimise.run,
        "solve the problem of optimal control of a scene and save the motion",
        optimise.arguments,
        optimise.EXAMPLES,
    ),
    "study": Command(
        study.run,
        "run many motions with varied parameters and summarize them",
        study.arguments,
        study.EXAMPLES,
    ),
    "derive": Command(
        derive.run,
        "derive the O(N) loops of an operator expression, or prove an equation",
        derive.arguments,
        derive.EXAMPLES,
    ),
    "count": Command(
        count.run,
        "count operations and compare with the literature",
        count.arguments,
        count.EXAMPLES,
    ),
    "emit": Command(
        emit.run,
        "write the code of a function: C, CasADi, acados, WebAssembly, LLVM IR, PTX",
        emit.arguments,
        emit.EXAMPLES,
    ),
    "warm": Command(
        warm.run,
        "compile functions of a robot now, for later processes",
        warm.arguments,
        warm.EXAMPLES,
    ),
    "bench": Command(
        bench.run,
        "compare run times with other libraries on this machine",
        bench.arguments,
        bench.EXAMPLES,
    ),
}
