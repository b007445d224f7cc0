"""`psiphi bench`."""

from __future__ import annotations

import argparse
from pathlib import Path

from psiphi.cli.simulate import writable

EXAMPLES = """\
examples:
  psiphi bench --quick                   under a minute
  psiphi bench --json results.json       all rows, kept as JSON, too

The peers (Pinocchio, MuJoCo) come with: pip install 'psiphi[bench]'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="fewer robots and fewer repetitions: under a minute")
    parser.add_argument("--only", metavar="NAME", action="append", help="only this row; an unknown NAME lists them all")
    parser.add_argument("--json", metavar="FILE", nargs=1, default=(), help="write the results there, too")
    parser.add_argument("--table", metavar="FILE", nargs=1, default=(), help="and as a table into this Markdown file")


def run(args: argparse.Namespace) -> int:
    """Time psiphi beside its peers."""
    from psiphi import bench
    from psiphi.bench.run import chosen

    chosen(args.only)
    for path in (*args.json, *args.table):
        writable(Path(path))
    options = {"only": args.only or (), "json": args.json, "table": args.table}
    given = [f"--{name}={value}" for name, values in options.items() for value in values]
    return bench.main(["--quick"] * args.quick + given)
