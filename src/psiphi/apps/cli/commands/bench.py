"""`psiphi bench`."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from types import ModuleType

from psiphi._util.errors import Error
from psiphi.apps.cli.commands.simulate import writable

EXAMPLES = """\
examples:
  psiphi bench --quick                   under a minute
  psiphi bench --json results.json       all rows, kept as JSON, too

The peers (Pinocchio, MuJoCo) come with: pip install 'psiphi[bench]'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quick", action="store_true", help="fewer robots and fewer repetitions: under a minute"
    )
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        help="only this row; an unknown NAME lists them all",
    )
    parser.add_argument("--json", metavar="FILE", help="write the results there, too")
    parser.add_argument("--table", metavar="FILE", help="and as a table into this Markdown file")


def benchmark_module(name: str) -> ModuleType:
    """A module of `benchmarks/psiphi_bench`, which is in the source tree but not in the wheel."""
    try:
        return importlib.import_module(f"psiphi_bench.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "psiphi_bench":
            raise
        cause = "the benchmarks are in psiphi's source tree, not in the installed package"
        raise Error(cause, "clone the repository and run `make bench` there") from error


def run(args: argparse.Namespace) -> int:
    """Time psiphi beside its peers."""
    bench = benchmark_module("run")
    bench.chosen(args.only)
    for path in (args.json, args.table):
        if path is not None:
            writable(Path(path))
    return bench.run(args)
