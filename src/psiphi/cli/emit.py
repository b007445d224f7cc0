"""`psiphi emit`."""

from __future__ import annotations

import argparse
from pathlib import Path

from psiphi.cli.robots import load, robot_argument
from psiphi.cli.simulate import writable
from psiphi.cli.text import nearest
from psiphi.errors import Error

EXAMPLES = """\
examples:
  psiphi emit ur5 forward_dynamics                    C99 on the screen
  psiphi emit ur5 jacobian --frame tool -o jac.c      of a frame, into a file
  psiphi emit panda inverse_dynamics --name panda_id  under another name
  psiphi emit ur5 forward_dynamics --target wasm -o fd.js    JavaScript with WebAssembly in it, for pages
  psiphi emit ur5 gravity --free inertia:wrist_3_link the inertia of a link as an input, ten numbers
  psiphi emit ur5 gravity --target llvm               the LLVM IR that psiphi itself runs
  psiphi emit ur5 gravity --target ptx                what it gives to graphics cards

The C is one function `void NAME(const double *in, ..., double *out, ...)`: no loops, no memory, nothing but <math.h>. Its
comment lists the arguments. Compile with `cc -O2 -c file.c`.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser, metavar="ROBOT")
    parser.add_argument("function", metavar="FUNCTION", help="a function of the robot, such as forward_dynamics or mass_matrix")
    parser.add_argument("--target", metavar="LANGUAGE", default="c", help="c, wasm, llvm or ptx (default: %(default)s)")
    parser.add_argument("--frame", action="append", default=[], help="for functions of frames; may be repeated")
    inputs = "numbers that become inputs: inertia, mass, com or armature, of all links or of one; may be repeated"
    parser.add_argument("--free", action="append", default=[], metavar="WORD[:LINK]", help=inputs)
    parser.add_argument("--type", choices=("double", "float"), default="double", help="the number type (default: %(default)s)")
    parser.add_argument("--name", help="the C function's name (default: FUNCTION)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write it there instead of on the screen")


def run(args: argparse.Namespace) -> int:
    """Print or write the code."""
    robot = freed(load(args.robot, args.base), args.free)
    source = asked(robot, args)
    if args.output is not None:
        writable(Path(args.output))
    text = code(robot, source, args)
    if args.output is None:
        print(text, end="")
        return 0
    Path(args.output).write_text(text, encoding="utf-8")
    print(f"wrote {args.output}")
    return 0


def freed(robot, free: list[str]):
    """The robot with these numbers as inputs."""
    if not free:
        return robot
    words, links = zip(*(text.partition(":")[::2] for text in free), strict=True)
    named = [link for link in links if link]
    return robot.free(*dict.fromkeys(words), links=list(dict.fromkeys(named)) or None)


def asked(robot, args: argparse.Namespace):
    """The function's source, once every word is understood."""
    from psiphi.catalogue.dynamics import EVERY
    from psiphi.runtime.target import TARGETS

    if args.function not in EVERY:
        raise Error(f"no function is called {args.function!r}", nearest(args.function, EVERY))
    if args.target not in TARGETS:
        raise Error(f"there is no target {args.target!r}", nearest(args.target, TARGETS))
    TARGETS[args.target].check_name(args.name or args.function)
    try:
        return robot.function(args.function, tuple(args.frame)).source
    except Error as error:
        hint = f"add --frame NAME, one of {', '.join(list(robot.frames)[-4:])}, ... (psiphi info lists all)"
        raise Error(error.cause, hint) from error


def code(robot, source, args: argparse.Namespace) -> str:
    """The text of one function."""
    from psiphi.runtime.target import TARGETS

    return TARGETS[args.target].emit(source.code, args.type[0], args.name or args.function, f"{source.text} of {robot.name}")
