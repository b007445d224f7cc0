"""`psiphi emit`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from psiphi._util.errors import Error
from psiphi.apps.cli.commands.simulate import writable
from psiphi.apps.cli.robot_argument import load, robot_argument
from psiphi.apps.cli.terminal_text import nearest

TARGET = "c, casadi, acados, wasm, llvm, ptx; with --files also aarch64, riscv64, cortex-m7, x86-64"
EXAMPLES = """\
examples:
  psiphi emit ur5 forward_dynamics                    C99 on the screen
  psiphi emit ur5 jacobian --frame tool -o jac.c      of a frame, into a file
  psiphi emit panda inverse_dynamics --name panda_id  under another name
  psiphi emit ur5 forward_dynamics --jacobian q,v     da_dq and da_dv; --vjp and --jvp likewise
  psiphi emit ur5 forward_dynamics --files ctrl       forward_dynamics.h, .c, and a test program that knows the right numbers
  psiphi emit ur5 gravity --files ctrl --type float --trig own    floats; sines and cosines without a C library
  psiphi emit ur5 forward_dynamics --files ctrl --target cortex-m7    a static library; also aarch64, riscv64, x86-64
  psiphi emit panda forward_dynamics --target casadi -o fd.c      for casadi.external, with its Jacobian; also acados
  psiphi emit ur5 forward_dynamics --target wasm -o fd.js    JavaScript with WebAssembly in it, for pages
  psiphi emit ur5 gravity --free inertia:wrist_3_link the inertia of a link as an input, ten numbers
  psiphi emit ur5 gravity --free mass --files ctrl --constant    all masses as a table that can be changed in the C file
  psiphi emit ur5 gravity --target llvm               the LLVM IR that psiphi itself runs
  psiphi emit ur5 gravity --target ptx                what it gives to graphics cards

The C is one function `void NAME(const double *in, ..., double *out, ...)`: straight lines, no memory, nothing but <math.h>; of
long functions several, of robots with more than 64 bodies loops. Its comment lists the arguments, operations and stack.
Compile with `cc -O2 -c file.c`.
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
        "--frame", action="append", default=[], help="for functions of frames; may be repeated"
    )
    inputs = "numbers that become inputs: inertia, mass, com, armature, offsets, of all links or of one; may be repeated"
    parser.add_argument("--free", action="append", default=[], metavar="WORD[:LINK]", help=inputs)
    where = "with --files and --free: a static const table at the head of the C file, instead of an argument"
    parser.add_argument("--constant", action="store_true", help=where)
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
            f"--{kind}", metavar="NAMES", help=f"its {kind} by these arguments, as q,v"
        )
    parser.add_argument(
        "--trig",
        choices=("libm", "own"),
        help="with --files: whose sines and cosines (default: libm)",
    )
    parser.add_argument(
        "--files", metavar="FOLDER", help="header, source or static library, and a test program"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write it there instead of on the screen"
    )


def run(args: argparse.Namespace) -> int:
    """Print or write the code."""
    check(args)
    robot = freed(load(args.robot, args.base, args.flexible), args.free)
    function = asked(robot, args)
    if args.files is not None:
        return write_files(robot, function, args)
    if args.output is not None:
        writable(Path(args.output))
    text = code(robot, function, args)
    if args.output is None:
        print(text, end="")
        return 0
    Path(args.output).write_text(text, encoding="utf-8")
    print(f"wrote {args.output}")
    return 0


def check(args: argparse.Namespace) -> None:
    """Options that do not go together."""
    from psiphi.backends.c.object_code import MACHINES

    if args.files is None and args.trig is not None:
        raise Error("--trig came without --files", "add --files FOLDER")
    machine = args.target in MACHINES
    if args.constant and (args.files is None or not args.free or machine):
        raise Error(
            "--constant writes free numbers into a C file",
            "add --files FOLDER and --free WORD, without --target",
        )
    if args.files is not None and (not (machine or args.target == "c") or args.output is not None):
        raise Error(
            "--files writes C or a library into a folder",
            f"leave out -o, and take --target c, {', '.join(MACHINES)}",
        )
    if machine and (args.files is None or args.trig is not None):
        raise Error(
            f"a library for {args.target} is several files, with sines of its own",
            "add --files FOLDER, without --trig",
        )


def freed(robot, free: list[str]):
    """The robot with these numbers as inputs."""
    if not free:
        return robot
    asked: dict[str, list[str]] = {}
    for word, _, link in (text.partition(":") for text in free):
        asked.setdefault(word, []).append(link)
    first, *others = asked.values()
    if any(set(links) != set(first) for links in others) or ("" in first and len(set(first)) > 1):
        raise Error(
            f"--free names different links: {', '.join(free)}",
            "name the same links with every word, or none",
        )
    return robot.free(*asked, links=[link for link in dict.fromkeys(first) if link] or None)


def asked(robot, args: argparse.Namespace):
    """The function, once every word is understood."""
    from psiphi.backends.c.object_code import MACHINES
    from psiphi.backends.target import TARGETS
    from psiphi.robot.catalogue.quantities import ALL_QUANTITIES

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
        hint = f"add --frame NAME, one of {', '.join(list(robot.frames)[-4:])}, ... (psiphi info lists all)"
        raise Error(error.cause, hint) from error
    for kind in ("jacobian", "jvp", "vjp"):
        if (names := getattr(args, kind)) is not None:
            return getattr(function, kind)(*(name.strip() for name in names.split(",")))
    return function


def code(robot, function, args: argparse.Namespace) -> str:
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
    given = (lines, args.type[0], args.name or args.function, about)
    if args.target not in INTEGER_TYPES or args.type != "double":
        return TARGETS[args.target].emit(*given)
    slopes, why = slopes_of(robot, function)
    if why:
        print(f"without a Jacobian: {why}", file=sys.stderr)
    return casadi_source(lines, slopes, *given[2:], args.target)


def slopes_of(robot, function) -> tuple[Any, str]:
    """The code of all Jacobians, or why there is none: CasADi's are by the numbers of q, psiphi's by its tangent."""
    if not robot.manifold.is_flat:
        bent = ", ".join(repr(joint.name) for joint in robot.manifold.curved)
        return (
            None,
            f"q of {bent} is no vector of its rates, and psiphi differentiates by tangent vectors",
        )
    try:
        return function.jacobian().source.code, ""
    except Error as error:
        return None, error.cause


def write_files(robot, function, args: argparse.Namespace) -> int:
    """Header, source or library, test program."""
    import numpy as np

    from psiphi.backends.c.c_files import c_files
    from psiphi.backends.c.c_source import check_code
    from psiphi.backends.c.object_code import MACHINES, object_code, static_library
    from psiphi.robot.matrix_by_columns import evaluate, exported_code

    folder, name, rng, cases = (
        Path(args.files),
        args.name or args.function,
        np.random.default_rng(0),
        [],
    )
    code = check_code(exported_code(robot, function))
    for _ in range(3):
        given = [_state(robot, arg, rng) for arg in function.inputs]
        cases.append((given, evaluate(robot, function, given)))
    about = f"{function.source.equation_text} of {robot.name}"
    constants = {"parameters": robot.parameters()} if args.constant else {}
    made: dict[str, str | bytes] = {
        **c_files(code, name, about, cases, args.type[0], args.trig or "libm", constants)
    }
    built, how = f"{name}.c", f"cc -std=c99 -O2 {name}.c {name}_test.c -lm && ./a.out"
    if args.target in MACHINES:
        del made[built]
        built, how = f"lib{name}.a", f"its compiler takes {name}_test.c, lib{name}.a and -lm"
        made[built] = static_library(name, object_code(code, name, args.target, args.type[0]))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in made.items():
            (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    except OSError as error:
        raise Error(
            f"cannot write into {args.files}: {error.strerror}", "name another folder"
        ) from error
    print(f"wrote {', '.join(made)} into {folder}: {how}")
    return 0


def _state(robot, arg: Any, rng: Any) -> Any:
    """Numbers for one argument: a configuration, the robot's own parameters, anything."""
    if arg.name == "parameters":
        return robot.parameters()
    return robot.random(rng) if arg.per_joint == "q" else rng.standard_normal(arg.shape)
