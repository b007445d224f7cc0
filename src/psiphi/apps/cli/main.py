"""The door: the parser out of the table of commands, errors as a sentence and a hint, exit codes."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import NoReturn

from psiphi._util import extras
from psiphi._util.errors import Error
from psiphi.apps.cli.command_table import COMMANDS, EXAMPLES
from psiphi.apps.cli.terminal_text import Plain, nearest, sentence

# package -> the extra of psiphi that brings it; none: psiphi itself does
EXTRAS = {
    "viser": "[viewer]",
    "scipy": "[sim]",
    "matplotlib": "[plot]",
    "mujoco": "[mujoco]",
    "dask": "[cluster]",
    "zarr": "[cluster]",
    "numpy": "",
    "llvmlite": "",
}
TRACE = "PSIPHI_TRACEBACK"  # set: mistakes of psiphi's own show where they happened


class Parser(argparse.ArgumentParser):
    """argparse whose complaints are a sentence and a hint."""

    def error(self, message: str) -> NoReturn:
        raise Error(message, f"{self.prog} --help shows what is possible")

    def print_help(self, file=None) -> None:
        super().print_help(file)
        sys.stdout.flush()  # so that a reader who has left is noticed here, not when the interpreter closes


def parser() -> Parser:
    """The whole command line, from the rows of `COMMANDS`."""
    top = _parser(
        Parser,
        prog="psiphi",
        description="Dynamics of robots, written as algebra and compiled.",
        epilog=EXAMPLES,
    )
    top.add_argument("--version", action="store_true", help="print the version and leave")
    rows = top.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=Parser
    )
    for name, row in COMMANDS.items():
        about = row.help[0].upper() + row.help[1:] + "."
        row.arguments(
            _parser(rows.add_parser, name, help=row.help, description=about, epilog=row.epilog)
        )
    return top


def _parser(make: Callable, *args, **options) -> Parser:
    return make(
        *args, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options
    )


def version() -> str:
    """The installed version."""
    return extras.installed_version("psiphi", "(not installed)")


def joined(argv: list[str]) -> list[str]:
    """Options with their negative numbers: argparse takes the list -1,0 for an option, and --q0=-1,0 for what it is.

    >>> joined(["simulate", "acrobot", "--q0", "-1,0", "--random"])
    ['simulate', 'acrobot', '--q0=-1,0', '--random']
    """
    out: list[str] = []
    for word in argv:
        if out and re.fullmatch(r"--\w[\w-]*", out[-1]) and re.match(r"-\.?\d", word):
            out[-1] += f"={word}"
        else:
            out.append(word)
    return out


def dispatch(argv: list[str]) -> int:
    """Parse and run; errors pass through."""
    word = next((word for word in argv if not word.startswith("-")), "demo")
    if word not in COMMANDS:
        raise Error(
            f"no command is called {word!r}",
            f"{nearest(word, COMMANDS)} psiphi --help explains them",
        )
    top = parser()
    args, rest = top.parse_known_args(joined(argv))
    if rest:
        _unknown(top, args.command, rest)
    if args.version:
        print("psiphi", version())
    elif args.command is None:
        parser().print_help()
    else:
        return COMMANDS[args.command].run(args)
    return 0


def _unknown(top: Parser, command: str | None, rest: list[str]) -> NoReturn:
    """Words that a command does not know: of an option, the nearest one is named."""
    (rows,) = (action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    own = top if command is None else rows.choices[command]
    options = [
        word for action in own._actions for word in action.option_strings if word.startswith("--")
    ]
    word = next((word for word in rest if word.startswith("-")), rest[0])
    raise Error(
        f"unrecognized arguments: {' '.join(rest)}",
        f"{_option(word, options)}{own.prog} --help shows what is possible",
    )


def _option(word: str, options: list[str]) -> str:
    """The option that was meant: the one that is misspelt, else the nearest ones."""
    from psiphi._util.text import misspelled

    if not word.startswith("-"):
        return ""
    word = word.partition("=")[0]
    meant = misspelled(word, options)
    return f"Did you mean {meant!r}? " if meant else f"{nearest(word, options)} "


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; a refusal is a sentence and a hint, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a name the terminal cannot show is no reason to stop
    plain = (
        redirect_stdout(Plain(sys.stdout)),
        redirect_stderr(Plain(sys.stderr)),
    )  # nor is one that would command it obeyed
    with plain[0], plain[1], warnings.catch_warnings():
        warnings.showwarning = _warn
        return _answer(argv)


def _warn(message: Warning | str, *_: object) -> None:
    """A warning as a sentence."""
    print(f"psiphi: {message}", file=sys.stderr)


def _answer(argv: list[str] | None) -> int:
    try:
        code = dispatch(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return code
    except Error as error:
        return _refuse(sentence(error), error.remedy)
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # what is still buffered goes nowhere
        return 141
    except OSError as error:
        return _refuse(str(error), "check the path and its permissions")
    except MemoryError as error:
        return _refuse(
            f"the memory does not suffice: {error}".rstrip(": "),
            "ask for fewer motions, samples or bodies at once",
        )
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except Exception as error:
        if (
            isinstance(error, ModuleNotFoundError)
            and error.name
            and not error.name.startswith("psiphi")
        ):
            extra = EXTRAS.get(error.name.partition(".")[0], "[bench]")
            return _refuse(
                f"this needs {error.name}, which is not installed",
                f"pip install 'psiphi{extra}' brings it",
            )
        if os.environ.get(TRACE):
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return _refuse(
            f"a mistake of psiphi's own: {what}",
            f"please report it, with what {TRACE}=1 in the environment shows",
        )


def _refuse(sentence: str, hint: str) -> int:
    print(f"psiphi: {sentence}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    return 2
