"""`psiphi emit`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from psiphi._util.errors import Error
from psiphi.apps.cli.commands.simulate import check_writable
from psiphi.apps.cli.robot_argument import load, robot_argument
from psiphi.apps.cli.terminal_text import nearest

if TYPE_CHECKING:  # imported when a command runs: `psiphi --help` needs no NumPy
    import numpy as np

    from psiphi.compiler.sweeps.sweep_program import Argument
    from psiphi.functions.differentiable_function import DifferentiableFunction
    from psiphi.robot.free_robot import FreeRobot
    from psiphi.robot.robot import Robot

TARGET = "c, casadi, acados, wasm, llvm, ptx; with --files also aarch64, riscv64, cortex-m7, x86-64"
EXAMPLES = """\
examples:
  psiphi emit ur5 forward_dynamics                    print C99
  psiphi emit ur5 jacobian --frame tool -o jac.c      a function of a frame, into a file
  psiphi emit panda inverse_dynamics --name panda_id  with another name
  psiphi emit ur5 forward_dynamics --jacobian q,v     da_dq and da_dv; also --vjp and --jvp
  psiphi emit ur5 forward_dynamics --files ctrl       header, source, and a test program with
                                                      reference values
  psiphi emit ur5 gravity --files ctrl --type float --trig own
                                                      floats; sine and cosine without libm
  psiphi emit ur5 forward_dynamics --files ctrl --target cortex-m7
                                                      a static library; also aarch64, riscv64,
                                                      x86-64
  psiphi emit panda forward_dynamics --target casadi -o fd.c
                                                      for casadi.external, with its Jacobian;
                                                      also acados
  psiphi emit ur5 forward_dynamics --target wasm -o fd.js
                                                      JavaScript with WebAssembly, for web pages
  psiphi emit ur5 gravity --free inertia:wrist_3_link
                                                      a link's inertia as an input (ten numbers)
  psiphi emit ur5 gravity --free mass --files ctrl --constant
                                                      all masses as a table in the C file
  psiphi emit ur5 gravity --target llvm               the LLVM IR that psiphi runs
  psiphi emit ur5 gravity --target ptx                the PTX that psiphi runs on GPUs

The C code is one function `void NAME(const double *in, ..., double *out, ...)`: straight-line code,
no memory allocation, only <math.h>. Long functions are split into several; robots with more than
64 bodies have loops. A comment lists the arguments, operations and stack use. Compile with
`cc -O2 -c file.c`.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    parser.add_argument(
        "function",
        metavar="FUNCTION",
        help="a function of the robot, such as forward_dynamics or mass_matrix",
    )
    parser.add_argument(
        "--target", metavar="LANGUAGE", default="c", help=f"{TARGET} (default: %(default)s)"
    )
    parser.add_argument(
        "--frame", action="append", default=[], help="frame of the function; may be repeated"
    )
    parser.add_argument(
        "--free",
        action="append",
        default=[],
        metavar="WORD[:LINK]",
        help="parameters that become inputs: inertia, mass, com, armature or offsets, "
        "of all links or of one; may be repeated",
    )
    parser.add_argument(
        "--constant",
        action="store_true",
        help="with --files and --free: a static const table at the top of the C file "
        "instead of an argument",
    )
    parser.add_argument(
        "--type",
        choices=("double", "float"),
        default="double",
        help="the number type (default: %(default)s)",
    )
    parser.add_argument("--name", help="the C function's name (default: FUNCTION)")
    kinds = parser.add_mutually_exclusive_group()
    for kind in ("jacobian", "jvp", "vjp"):
        kinds.add_argument(
            f"--{kind}", metavar="NAMES", help=f"its {kind} with respect to these arguments: q,v"
        )
    parser.add_argument(
        "--trig",
        choices=("libm", "own"),
        help="with --files: source of sine and cosine (default: libm)",
    )
    parser.add_argument(
        "--files",
        metavar="FOLDER",
        help="write header, source or static library, and a test program",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file instead of the terminal"
    )


def run(args: argparse.Namespace) -> int:
    """Print or write the code."""
    check(args)
    robot = with_free_parameters(load(args.robot, args.base, args.flexible), args.free)
    function = requested_function(robot, args)
    if args.files is not None:
        return write_files(robot, function, args)
    if args.output is not None:
        check_writable(Path(args.output))
    text = code(robot, function, args)
    if args.output is None:
        print(text, end="")
        return 0
    Path(args.output).write_text(text, encoding="utf-8")
    print(f"wrote {args.output}")
    return 0


def check(args: argparse.Namespace) -> None:
    """Raise an Error for options that contradict each other."""
    from psiphi.backends.c.object_code import MACHINES

    if args.files is None and args.trig is not None:
        raise Error("--trig needs --files", "add --files FOLDER")
    machine = args.target in MACHINES
    if args.constant and (args.files is None or not args.free or machine):
        raise Error(
            "--constant writes free parameters into a C file",
            "add --files FOLDER and --free WORD, without --target",
        )
    if args.files is not None and (not (machine or args.target == "c") or args.output is not None):
        raise Error(
            "--files writes C or a library into a folder",
            f"omit -o, and use --target c, {', '.join(MACHINES)}",
        )
    if machine and (args.files is None or args.trig is not None):
        raise Error(
            f"a library for {args.target} has several files and its own sine and cosine",
            "add --files FOLDER, without --trig",
        )


def with_free_parameters(robot: Robot, free: list[str]) -> Robot:
    """The robot with these parameters as inputs, each as WORD or WORD:LINK."""
    if not free:
        return robot
    links_of: dict[str, list[str]] = {}
    for word, _, link in (text.partition(":") for text in free):
        links_of.setdefault(word, []).append(link)
    first, *others = links_of.values()
    if any(set(links) != set(first) for links in others) or ("" in first and len(set(first)) > 1):
        raise Error(
            f"--free names different links: {', '.join(free)}",
            "use the same links with every word, or none",
        )
    return robot.free(*links_of, links=[link for link in dict.fromkeys(first) if link] or None)


def requested_function(robot: Robot, args: argparse.Namespace) -> DifferentiableFunction:
    """The function that the arguments name; the target and the C name are checked first."""
    from psiphi.backends.c.object_code import MACHINES
    from psiphi.backends.target import TARGETS
    from psiphi.robot.catalogue.catalogue import ALL_QUANTITIES

    if args.function not in ALL_QUANTITIES:
        raise Error(
            f"no function is called {args.function!r}", nearest(args.function, ALL_QUANTITIES)
        )
    if args.target not in (*TARGETS, *MACHINES):
        raise Error(
            f"there is no target {args.target!r}", nearest(args.target, (*TARGETS, *MACHINES))
        )
    TARGETS["c" if args.target in MACHINES else args.target].check_name(args.name or args.function)
    try:
        function = robot.function(args.function, tuple(args.frame))
    except Error as error:
        frames = ", ".join(list(robot.frames)[-4:])
        hint = f"add --frame NAME, one of {frames}, ... (psiphi info lists all)"
        raise Error(error.cause, hint) from error
    for kind in ("jacobian", "jvp", "vjp"):
        if (names := getattr(args, kind)) is not None:
            return getattr(function, kind)(*(name.strip() for name in names.split(",")))
    return function


def code(robot: Robot, function: DifferentiableFunction, args: argparse.Namespace) -> str:
    """The text of one function."""
    from psiphi.backends.c.casadi_c import INTEGER_TYPES, casadi_source
    from psiphi.backends.target import TARGETS
    from psiphi.robot.matrix_by_columns import exported_code

    about = f"{function.source.equation_text} of {robot.name}"
    lines = (
        exported_code(robot, function)
        if args.target in ("c", *INTEGER_TYPES)
        else function.source.code
    )
    arguments = (lines, args.type[0], args.name or args.function, about)
    if args.target not in INTEGER_TYPES or args.type != "double":
        return TARGETS[args.target].emit(*arguments)
    jacobian, reason = jacobian_code(robot, function)
    if reason:
        print(f"without a Jacobian: {reason}", file=sys.stderr)
    return casadi_source(lines, jacobian, *arguments[2:], args.target)


def jacobian_code(robot: Robot, function: DifferentiableFunction) -> tuple[Any, str]:
    """The code of all Jacobians and "", or None and the reason.

    CasADi differentiates by the entries of q, psiphi by tangent vectors; they differ if q has
    quaternions.
    """
    if not robot.manifold.is_flat:
        joints = ", ".join(repr(joint.name) for joint in robot.manifold.curved)
        return None, f"q of {joints} has quaternions; psiphi differentiates by tangent vectors"
    try:
        return function.jacobian().source.code, ""
    except Error as error:
        return None, error.cause


def write_files(robot: Robot, function: DifferentiableFunction, args: argparse.Namespace) -> int:
    """Write header, source or static library, and test program."""
    import numpy as np

    from psiphi.backends.c.c_files import c_files
    from psiphi.backends.c.c_source import check_code
    from psiphi.backends.c.object_code import MACHINES, object_code, static_library
    from psiphi.robot.matrix_by_columns import evaluate, exported_code

    folder, name = Path(args.files), args.name or args.function
    rng, cases = np.random.default_rng(0), []
    code = check_code(exported_code(robot, function))
    for _ in range(3):
        inputs = [_sample(robot, arg, rng) for arg in function.inputs]
        cases.append((inputs, evaluate(robot, function, inputs)))
    about = f"{function.source.equation_text} of {robot.name}"
    constants = {"parameters": cast("FreeRobot", robot).parameters()} if args.constant else {}
    files: dict[str, str | bytes] = {
        **c_files(code, name, about, cases, args.type[0], args.trig or "libm", constants)
    }
    source, how = f"{name}.c", f"cc -std=c99 -O2 {name}.c {name}_test.c -lm && ./a.out"
    if args.target in MACHINES:
        del files[source]
        source, how = f"lib{name}.a", f"compile {name}_test.c with lib{name}.a and -lm"
        files[source] = static_library(name, object_code(code, name, args.target, args.type[0]))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    except OSError as error:
        raise Error(
            f"cannot write into {args.files}: {error.strerror}", "use another folder"
        ) from error
    print(f"wrote {', '.join(files)} into {folder}: {how}")
    return 0


def _sample(robot: Robot, arg: Argument, rng: np.random.Generator) -> np.ndarray:
    """Values of one argument: a random configuration, the robot's parameters, or normal numbers."""
    if arg.name == "parameters":
        return cast("FreeRobot", robot).parameters()
    return robot.random(rng) if arg.per_joint == "q" else rng.standard_normal(arg.shape)
