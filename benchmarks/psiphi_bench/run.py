"""`psiphi bench`: measures psiphi and the other libraries in one run."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from psiphi._util.errors import Error
from psiphi_bench import report
from psiphi_bench.peers.lazy_import import MissingPeer
from psiphi_bench.report import Outcome
from psiphi_bench.row import BenchmarkRow, Measurement, Size
from psiphi_bench.rows import ROWS
from psiphi_bench.rows_of.fresh_process import empty_cache


def run(args: argparse.Namespace) -> int:
    """Measure, print and write the results; 1 if a row could not be measured."""
    rows, start = select_rows(args.only), time.perf_counter()
    page = Path(args.table).read_text(encoding="utf-8") if args.table else ""
    if args.table:
        report.split_page(page, args.table)  # raises an error before the measurements
    print(report.heading(), flush=True)
    results: list[Outcome] = []
    with empty_cache():
        for result in measure_rows(rows, Size(args.quick)):
            print(report.line(result), flush=True)
            results.append(result)
    seconds = time.perf_counter() - start
    print(f"\n{report.summary(results, seconds)}")
    facts = report.facts(results, args.quick, seconds)
    if args.json:
        Path(args.json).write_text(report.as_json(facts), encoding="utf-8")
    if args.table:
        Path(args.table).write_text(report.with_table(page, facts), encoding="utf-8")
    return int(any(result.measured.figure != result.measured.figure for result in results))


NAMES = tuple(row.name for row in ROWS)


def select_rows(names: Sequence[str] | None) -> list[BenchmarkRow]:
    """The rows of these names in the order of the table; all rows for None."""
    for name in names or ():
        if name not in NAMES:
            raise Error(
                f"no row of the benchmark is called {name!r}", f"there are {', '.join(NAMES)}"
            )
    return [row for row in ROWS if not names or row.name in names]


def measure_rows(rows: Sequence[BenchmarkRow], size: Size) -> Iterator[Outcome]:
    """The results of the rows. A row that raises an exception gives a line with its message."""
    for row in rows:
        try:
            for measurement in row.measure(size):
                yield Outcome(row, measurement)
        except MissingPeer:
            raise
        except Exception as error:
            yield Outcome(
                row, Measurement("failed", float("nan"), note=f"{type(error).__name__}: {error}")
            )
