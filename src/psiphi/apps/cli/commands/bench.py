"""`psiphi bench`."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from types import ModuleType

from psiphi._util.errors import Error
from psiphi.apps.cli.commands.simulate import check_writable

EXAMPLES = """\
examples:
  psiphi bench --quick                   under a minute
  psiphi bench --json results.json       all rows, also written as JSON

The other libraries (Pinocchio, MuJoCo) come with: pip install '.[bench]' in the source tree
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quick", action="store_true", help="fewer robots and fewer repetitions: under a minute"
    )
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        help="run only this row; an unknown NAME lists all rows",
    )
    parser.add_argument("--json", metavar="FILE", help="also write the results to this file")
    parser.add_argument(
        "--table", metavar="FILE", help="also write a table into this Markdown file"
    )


def benchmark_module(name: str) -> ModuleType:
    """A module of `benchmarks/psiphi_bench`, which is in the source tree and not in the wheel."""
    try:
        return importlib.import_module(f"psiphi_bench.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "psiphi_bench":
            raise
        cause = "the benchmarks are in psiphi's source tree, not in the installed package"
        raise Error(cause, "clone the repository and run `make bench` there") from error


def run(args: argparse.Namespace) -> int:
    """Measure psiphi and the other libraries."""
    bench = benchmark_module("run")
    bench.select_rows(args.only)
    for path in (args.json, args.table):
        if path is not None:
            check_writable(Path(path))
    return bench.run(args)
