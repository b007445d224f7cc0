"""The entry point: argument parser, error messages with a hint, exit codes."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any, NoReturn

from psiphi._util import extras
from psiphi._util.errors import Error
from psiphi.apps.cli.command_table import COMMANDS, EXAMPLES
from psiphi.apps.cli.terminal_text import EscapedStream, nearest, sentence

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# package -> the extra of psiphi that installs it; "": psiphi itself
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
TRACE = "PSIPHI_TRACEBACK"  # if set, internal errors show their traceback


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are a cause and a remedy."""

    def error(self, message: str) -> NoReturn:
        raise Error(message, f"{self.prog} --help lists the options")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        super().print_help(file)
        sys.stdout.flush()  # raises BrokenPipeError here, not at interpreter exit


def parser() -> Parser:
    """The parser of the whole command line, from the rows of `COMMANDS`."""
    top = _parser(
        Parser,
        prog="psiphi",
        description="Robot dynamics, written as operator algebra and compiled.",
        epilog=EXAMPLES,
    )
    top.add_argument("--version", action="store_true", help="print the version and exit")
    rows = top.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=Parser
    )
    for name, row in COMMANDS.items():
        about = row.help[0].upper() + row.help[1:] + "."
        row.arguments(
            _parser(rows.add_parser, name, help=row.help, description=about, epilog=row.epilog)
        )
    return top


def _parser(make: Callable[..., Parser], *args: str, **options: Any) -> Parser:
    return make(
        *args, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options
    )


def version() -> str:
    """The installed version."""
    return extras.installed_version("psiphi", "(not installed)")


def join_negative_values(argv: list[str]) -> list[str]:
    """Arguments with `--q0 -1,0` written as `--q0=-1,0`, since argparse takes -1,0 for an option.

    >>> join_negative_values(["simulate", "acrobot", "--q0", "-1,0", "--random"])
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
    """Parse the arguments and run the command. Errors are not caught."""
    word = next((word for word in argv if not word.startswith("-")), "demo")
    if word not in COMMANDS:
        raise Error(
            f"no command is called {word!r}",
            f"{nearest(word, COMMANDS)} psiphi --help lists all commands",
        )
    top = parser()
    args, rest = top.parse_known_args(join_negative_values(argv))
    if rest:
        _reject(top, args.command, rest)
    if args.version:
        print("psiphi", version())
    elif args.command is None:
        parser().print_help()
    else:
        return COMMANDS[args.command].run(args)
    return 0


def _reject(top: Parser, command: str | None, rest: list[str]) -> NoReturn:
    """Raise an Error for unknown arguments; suggest the nearest option."""
    (rows,) = (action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    parser = top if command is None else rows.choices[command]
    options = [
        word
        for action in parser._actions
        for word in action.option_strings
        if word.startswith("--")
    ]
    word = next((word for word in rest if word.startswith("-")), rest[0])
    raise Error(
        f"unrecognized arguments: {' '.join(rest)}",
        f"{_suggest_option(word, options)}{parser.prog} --help lists the options",
    )


def _suggest_option(word: str, options: list[str]) -> str:
    """The option that `word` misspells, else the nearest ones; "" if `word` is not an option."""
    from psiphi._util.text import misspelled

    if not word.startswith("-"):
        return ""
    word = word.partition("=")[0]
    meant = misspelled(word, options)
    return f"Did you mean {meant!r}? " if meant else f"{nearest(word, options)} "


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code.

    Errors are printed as a cause and a hint, never as a traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a name that the terminal cannot encode must not end the program
            stream.reconfigure(errors="backslashreplace")
    out, err = EscapedStream(sys.stdout), EscapedStream(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.showwarning = _print_warning
        return _exit_code(argv)


def _print_warning(message: Warning | str, *_: object) -> None:
    """Print a warning on one line, without the source line."""
    print(f"psiphi: {message}", file=sys.stderr)


def _exit_code(argv: list[str] | None) -> int:
    try:
        code = dispatch(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return code
    except Error as error:
        return _fail(sentence(error), error.remedy)
    except BrokenPipeError:
        # discard what is still buffered
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        return _fail(str(error), "check the path and its permissions")
    except MemoryError as error:
        return _fail(
            f"out of memory: {error}".rstrip(": "),
            "use fewer motions, samples or bodies at once",
        )
    except KeyboardInterrupt as error:
        print(f"\npsiphi: {error}" if str(error) else "", file=sys.stderr)
        return 130
    except Exception as error:
        if (
            isinstance(error, ModuleNotFoundError)
            and error.name
            and not error.name.startswith("psiphi")
        ):
            extra = EXTRAS.get(error.name.partition(".")[0], "[bench]")
            return _fail(
                f"this needs {error.name}, which is not installed",
                extras.install_command(f"psiphi{extra}"),
            )
        if os.environ.get(TRACE):
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return _fail(
            f"internal error in psiphi: {what}",
            f"please report it, with the traceback that {TRACE}=1 in the environment shows",
        )


def _fail(cause: str, hint: str) -> int:
    """Print an error and return its exit code."""
    print(f"psiphi: {cause}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    return 2
