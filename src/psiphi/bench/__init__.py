"""`psiphi bench`: psiphi beside Pinocchio and MuJoCo, one run, one table, every target with its figure.

Comes in: nothing but `--quick`, `--only NAME`, `--json FILE`. Goes out: a table, and JSON that benchmarks/ keeps.
Read `rows.py` first (the table as data), then `row.py` (what a row is) and `speed.py` (one that measures). The rest:

    run.py, report.py                   the command, and what it prints
    gradients.py, inputs.py, large.py   run time of derivatives, of robots whose numbers are inputs, of long chains
    motion.py, closed.py, diagonal.py   motions in time, closed chains, diagonalised dynamics
    correctness.py, agreement.py, counts.py   being right beside the peers, function by function; exact operation counts
    fresh.py, timing.py                 what a start costs, in processes of their own; the least of many samples
    example_robots.py, cells.py, interpreted.py   what is measured: robots, closed systems, and both without a compiler
    peers/                              Pinocchio and MuJoCo behind psiphi's conventions
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from psiphi.optional import need

__all__ = ["arguments", "main"]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command; nothing is imported for them."""
    parser.add_argument("--quick", action="store_true", help="fewer robots and fewer repetitions: under a minute")
    parser.add_argument("--only", metavar="NAME", action="append", help="only this row; an unknown NAME lists them all")
    parser.add_argument("--json", metavar="FILE", help="write the results there, too")
    parser.add_argument("--table", metavar="FILE", help="and as a table into this Markdown file")


def main(argv: Sequence[str] = ()) -> int:
    """`python -m psiphi.bench`."""
    parser = argparse.ArgumentParser(prog="psiphi bench", description="psiphi beside its peers, in one run", allow_abbrev=False)
    arguments(parser)
    return need("psiphi.bench.run", "the benchmark", "psiphi[bench]").run(parser.parse_args(list(argv)))
