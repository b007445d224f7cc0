"""Results as text, as JSON and as a Markdown table."""

from __future__ import annotations

import json
import math
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from psiphi._util.errors import Error
from psiphi._util.extras import installed_version
from psiphi.backends.cpu.threads import cpu_count
from psiphi_bench.row import BenchmarkRow, Measurement

WIDTHS = (44, 33, 19, 23, 11, 13)
HEADINGS = ("", "subject", "psiphi", "other library", "value", "target")
VERDICT = {True: "pass", False: "MISS", None: ""}
PACKAGES = ("psiphi", "numpy", "llvmlite", "pin", "mujoco", "example-robot-data")


@dataclass(frozen=True)
class Outcome:
    """A measurement of a row."""

    row: BenchmarkRow
    measured: Measurement

    @property
    def passed(self) -> bool | None:
        return self.row.passed(self.measured.figure)

    @property
    def cells(self) -> tuple[str, ...]:
        row, m = self.row, self.measured
        return row.text, m.subject, m.ours, m.theirs, row.shown(m.figure), row.target_text

    @property
    def data(self) -> dict:
        """The values for JSON; a figure that could not be measured is None."""
        row, figure = self.row, None if math.isnan(self.measured.figure) else self.measured.figure
        facts = dict(
            name=row.name, text=row.text, target=row.target, unit=row.unit, at_least=row.at_least
        )
        return facts | asdict(self.measured) | {"figure": figure, "passed": self.passed}


def heading() -> str:
    """The header of the table."""
    return f"{_line(HEADINGS)}\n{'-' * (sum(WIDTHS) + 4)}"


def line(result: Outcome) -> str:
    """One line of the table, and its note below."""
    text = f"{_line(result.cells)}{VERDICT[result.passed]}".rstrip()
    return f"{text}\n    {result.measured.note}" if result.measured.note else text


def _line(cells: Sequence[str]) -> str:
    return "".join(cell.ljust(width - 1) + " " for cell, width in zip(cells, WIDTHS, strict=True))


def summary(results: Sequence[Outcome], seconds: float) -> str:
    """The number of rows that pass, and the names of the others."""
    rated = [result for result in results if result.passed is not None]
    missed = [result for result in rated if not result.passed]
    text = f"{len(rated) - len(missed)} of {len(rated)} targets met, in {seconds:.0f} s"
    return text + "".join(
        f"\n  missed: {result.row.text}, {result.measured.subject}" for result in missed
    )


def machine() -> dict[str, str | int]:
    """Processor, cores, system and package versions."""
    versions = {
        name: installed_version(name, "from source" if name == "psiphi" else "not installed")
        for name in PACKAGES
    }
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {
        "processor": _processor(),
        "cores": cpu_count(),
        "system": sys.platform,
        "python": python,
        **versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def facts(results: Sequence[Outcome], quick: bool, seconds: float) -> dict:
    """Machine and results as values for JSON."""
    return {
        "machine": machine(),
        "quick": quick,
        "seconds": round(seconds),
        "rows": [result.data for result in results],
    }


def as_json(facts: dict) -> str:
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"


START, END = "<!-- results -->", "<!-- end of results -->"


def split_page(text: str, file: str | None = None) -> tuple[str, str]:
    """The text before and after the table of a Markdown text."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise Error(
            f"{START} followed by {END} is missing",
            "add both lines where the table belongs",
            file=file,
        )
    return before, after


def with_table(text: str, facts: dict) -> str:
    """The Markdown text with a new table between START and END."""
    before, after = split_page(text)
    return "\n".join([before + START, *markdown(facts), END + after])


def markdown(facts: dict) -> Iterator[str]:
    """The lines of the table."""
    yield "Measured on " + ", ".join(f"{name} {value}" for name, value in facts["machine"].items())
    yield f"in {facts['seconds']} s{' with --quick' if facts['quick'] else ''}."
    yield ""
    yield "| | subject | psiphi | other library | value | target | |"
    yield "|---|---|---|---|---|---|---|"
    for data in facts["rows"]:
        result = _result(data)
        text, subject, *others = result.cells
        note = f"<br>{result.measured.note}" if result.measured.note else ""
        yield f"| {' | '.join((text, subject + note, *others, VERDICT[result.passed].lower()))} |"


def _result(data: dict) -> Outcome:
    """The `Outcome` of its `data`, without a function that measures."""
    row = BenchmarkRow(
        data["name"],
        data["text"],
        data["target"],
        data["unit"],
        lambda size: iter(()),
        data["at_least"],
    )
    values: dict[str, Any] = {field.name: data[field.name] for field in fields(Measurement)}
    values["figure"] = math.nan if values["figure"] is None else values["figure"]
    return Outcome(row, Measurement(**values))
