"""The command line: `psiphi demo | info | derive | bench`.

A command is one row of `COMMANDS`. Nothing heavy is imported before a command runs, so that `--help` answers at once.
Exit codes: 0 done, 2 refused (one sentence and a hint on stderr), 130 interrupted, 141 the reader of our output left.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, NoReturn

from psiphi.errors import Error, ModelError

COUNTED = (  # the functions whose operations `info` counts
    "forward_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "mass_matrix_inverse",
    "bias",
    "gravity",
)

EXAMPLES = """\
examples:
  psiphi demo                        the first minute with psiphi
  psiphi info puma560                a bundled robot: its tree, coordinates, checks and operation counts
  psiphi info arm.urdf --base free   a file of yours, floating instead of bolted down
  psiphi derive "J @ mass.inv @ J.T" an equation, its proof and its O(N) loops
  psiphi bench --quick               a short comparison with other libraries on this machine

`psiphi COMMAND --help` explains a command.
"""

INFO_EXAMPLES = """\
examples:
  psiphi info puma560
  psiphi info arm.urdf --base free

The table lists bodies base to tip; a body that branches off is indented. `q` and `v` are the places of a joint's
coordinates in the configuration and velocity vectors. Units: kg, m, rad.
"""


DERIVE_EXAMPLES = """\
examples:
  psiphi derive "J @ mass.inv @ J.T" --robot puma560      the operational-space inertia's inverse, in O(N)
  psiphi derive "mass.inv @ tau"                          joint accelerations of torques, without the matrix
  psiphi derive "mass.inv @ (tau - H @ phi @ (M @ phi.T @ a + b))"

Operators: H phi psi M P D G K E_phi E_psi tau_bar rotor I mass; vectors a b tau v qdd x; J and B of a frame, as in J('tool').
"""


# -- commands ---------------------------------------------------------------------------------------------------------------


def demo(args: argparse.Namespace) -> int:
    """The first minute with psiphi."""
    from psiphi import demo

    return demo.main() or 0


def info(args: argparse.Namespace) -> int:
    """Print what a robot is: tree, coordinates, checks, operation counts."""
    for line in describe(load(args.robot, args.base)):
        print(line)
    return 0


def derive(args: argparse.Namespace) -> int:
    """Print how an operator expression becomes loops on a robot."""
    robot = load(args.robot, args.base)
    from psiphi.functions.derive import derive

    print(derive(robot, args.expression).explain())
    return 0


def bench(args: argparse.Namespace) -> int:
    """Time psiphi beside its peers."""
    from psiphi import bench

    options = {"only": args.only or (), "json": args.json, "table": args.table}
    given = [f"--{name}={value}" for name, values in options.items() for value in values]
    return bench.main(["--quick"] * args.quick + given)


def _info_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", metavar="ROBOT", help="the name of a bundled robot, or a path to a URDF file")
    parser.add_argument("--base", choices=("fixed", "free"), default="fixed", help="how the base stands (default: fixed)")


def _derive_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("expression", metavar="EXPRESSION", help='operators with @ + - .T .inv, such as "J @ mass.inv @ J.T"')
    parser.add_argument("--robot", default="puma560", help="the name of a bundled robot, or a path to a URDF file")
    parser.add_argument("--base", choices=("fixed", "free"), default="fixed", help="how the base stands (default: fixed)")


def _bench_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="fewer robots and fewer repetitions: under a minute")
    parser.add_argument("--only", metavar="NAME", action="append", help="only this row; an unknown NAME lists them all")
    parser.add_argument("--json", metavar="FILE", nargs=1, default=(), help="write the results there, too")
    parser.add_argument("--table", metavar="FILE", nargs=1, default=(), help="and as a table into this Markdown file")


class Command(NamedTuple):
    """One row: what runs, what it is for, its arguments, its examples."""

    run: Callable[[argparse.Namespace], int]
    help: str
    arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    epilog: str = ""


COMMANDS = {
    "demo": Command(demo, "the first minute with psiphi"),
    "info": Command(info, "what a robot is: tree, coordinates, checks, operation counts", _info_arguments, INFO_EXAMPLES),
    "derive": Command(derive, "an operator expression, proved and turned into loops", _derive_arguments, DERIVE_EXAMPLES),
    "bench": Command(bench, "time psiphi beside other libraries on this machine", _bench_arguments),
}


# -- robots -----------------------------------------------------------------------------------------------------------------


def load(robot: str, base: str):
    """The robot of that name or file; an unknown name is answered with the nearest ones."""
    import psiphi

    try:
        return psiphi.load(robot, base=base)
    except (Error, OSError) as error:
        names = psiphi.robots.names()
        if robot in names or _is_path(robot):
            raise
        raise ModelError(f"no robot is called {robot!r}", f"{nearest(robot, names)} Or give a path to a URDF file") from error


def _is_path(text: str) -> bool:
    return os.path.exists(text) or os.path.basename(text) != text or text.lower().endswith((".urdf", ".xml"))


def nearest(word: str, known: Iterable[str]) -> str:
    """What was probably meant.

    >>> nearest("pand", ["panda", "ur5"])
    "Did you mean 'panda'?"
    >>> nearest("xyz", ["panda", "ur5"])
    'Known are panda, ur5.'
    """
    from difflib import get_close_matches

    known = list(known)
    close = get_close_matches(word, known, n=3, cutoff=0.5)
    if close:
        return "Did you mean " + " or ".join(map(repr, close)) + "?"
    return "Known are " + ", ".join(known[:12]) + (", ..." if len(known) > 12 else ".")


def describe(robot) -> Iterator[str]:
    """The lines of `psiphi info`: one row a body, then frames, checks and operation counts."""
    mass = sum(body.mass for body in robot.bodies)
    yield f"{robot.name}: {len(robot.bodies)} bodies, nq={robot.nq}, nv={robot.nv}, {mass:.4g} kg"
    yield ""
    yield from table([("", "body", "joint", "kind", "parent", "mass", "q", "v", "limits"), *_body_rows(robot)])
    yield ""
    yield from _wrapped(f"frames ({len(robot.frames)})", ", ".join(robot.frames))
    yield ""
    yield "checks"
    yield from (f"  {line}" for line in robot.report or ("passed, nothing to report",))
    yield ""
    yield "operations per call"
    yield from (f"  {line}" for line in table((name, _flops(robot, name)) for name in COUNTED))


def _body_rows(robot) -> Iterator[tuple[str, ...]]:
    for k, depth in tree_order([joint.parent for joint in robot.joints]):
        body, joint = robot.bodies[k], robot.joints[k]
        parent = "world" if joint.parent < 0 else robot.bodies[joint.parent].name
        places = _places(joint.q_slice), _places(joint.v_slice)
        yield str(k), "  " * depth + body.name, joint.name, joint.kind, parent, f"{body.mass:.4g}", *places, _limits(joint)


def tree_order(parents: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Bodies depth first, each with its indentation: the number of branchings above it.

    >>> list(tree_order([-1, 0, 1, 1, 3]))  # a trunk 0-1 that splits into 2 and 3-4
    [(0, 0), (1, 0), (2, 1), (3, 1), (4, 1)]
    """
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]  # the last entry, -1, is the world
    for k, parent in enumerate(parents):
        children[parent].append(k)
    stack = [(k, 0) for k in reversed(children[-1])]
    while stack:
        k, depth = stack.pop()
        yield k, depth
        depth += len(children[k]) > 1
        stack += [(child, depth) for child in reversed(children[k])]


def _places(where: slice) -> str:
    size = where.stop - where.start
    return "-" if size == 0 else str(where.start) if size == 1 else f"{where.start}:{where.stop}"


def _limits(joint) -> str:
    pairs = list(zip(joint.lower, joint.upper, strict=True))
    if all(low == -high and abs(high) == float("inf") for low, high in pairs):
        return "-"
    return ", ".join(f"{low:.4g} .. {high:.4g}" for low, high in pairs)


def _flops(robot, name: str) -> str:
    try:
        return str(robot.flops(name))
    except Error as error:
        return f"none: {_sentence(error)}"


# -- text -------------------------------------------------------------------------------------------------------------------


def table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows as aligned columns.

    >>> print(*table([("a", "b"), ("long", "c")]), sep="\\n")
    a     b
    long  c
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _wrapped(title: str, text: str) -> Iterator[str]:
    from textwrap import wrap

    yield title
    yield from wrap(text or "none", width=100, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _sentence(error: Error) -> str:
    return " ".join(str(error).removesuffix(f". Remedy: {error.remedy}").split())


# -- the door ---------------------------------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """argparse whose complaints are a sentence and a hint."""

    def error(self, message: str) -> NoReturn:
        raise Error(message, f"{self.prog} --help shows what is possible")

    def print_help(self, file=None) -> None:
        super().print_help(file)
        sys.stdout.flush()  # so that a reader who has left is noticed here, not when the interpreter closes


def parser() -> Parser:
    """The whole command line, from the rows of `COMMANDS`."""
    top = _parser(Parser, prog="psiphi", description="Dynamics of robots, written as algebra and compiled.", epilog=EXAMPLES)
    top.add_argument("--version", action="store_true", help="print the version and leave")
    rows = top.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    for name, row in COMMANDS.items():
        about = row.help[0].upper() + row.help[1:] + "."
        row.arguments(_parser(rows.add_parser, name, help=row.help, description=about, epilog=row.epilog))
    return top


def _parser(make: Callable, *args, **options) -> Parser:
    return make(*args, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)


def version() -> str:
    """The installed version."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        return metadata("psiphi")["Version"]
    except PackageNotFoundError:
        return "(not installed)"


def dispatch(argv: list[str]) -> int:
    """Parse and run; errors pass through."""
    word = next((word for word in argv if not word.startswith("-")), "demo")
    if word not in COMMANDS:
        raise Error(f"no command is called {word!r}", f"{nearest(word, COMMANDS)} psiphi --help explains them")
    args = parser().parse_args(argv)
    if args.version:
        print("psiphi", version())
    elif args.command is None:
        parser().print_help()
    else:
        return COMMANDS[args.command].run(args)
    return 0


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; a refusal is a sentence and a hint, never a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name the terminal cannot show is no reason to stop
    try:
        code = dispatch(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return code
    except Error as error:
        return _refuse(_sentence(error), error.remedy)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
        return 141
    except OSError as error:
        return _refuse(str(error), "check the path and its permissions")
    except ModuleNotFoundError as error:
        if (error.name or "psiphi").startswith("psiphi"):
            raise
        return _refuse(f"this needs {error.name}, which is not installed", "pip install 'psiphi[bench]' brings the peers")
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130


def _refuse(sentence: str, hint: str) -> int:
    print(f"psiphi: {sentence}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
