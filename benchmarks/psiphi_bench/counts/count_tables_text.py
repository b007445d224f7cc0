"""The tables as text: for `psiphi count`, and as Markdown for the docs."""

from __future__ import annotations

from collections.abc import Iterator

from psiphi._util.errors import StateError
from psiphi._util.text import columns
from psiphi_bench.counts import count_tables, published_counts
from psiphi_bench.counts.count_formulas import Formula
from psiphi_bench.counts.counted_arms import CASES

NAMES = {True: "normalised (nu)", False: "unnormalised (xi)"}
TextGrid = list[list[str]]


def report(table: int | None = None, case: int | None = None) -> str:
    """`psiphi count`: Table 2 (case 1, 2 or both) and Table 3, or one of them."""
    if table not in (None, 2, 3):
        raise StateError(f"table is {table!r}, expected 2 or 3", "omit it for both")
    if case not in (None, *CASES):
        raise StateError(f"case is {case!r}, expected 1 or 2", "omit it for both")
    if table == 3 and case is not None:
        raise StateError(
            f"case is {case!r}, but Table 3 is for the general arm only",
            "omit --case, or use --table 2",
        )
    return "\n\n".join(
        "\n".join([title, "", *columns(grid)]) for title, grid in _grids(table, case)
    )


def markdown() -> str:
    """The tables of docs/counts.md."""
    return "\n\n".join(f"### {title}\n\n{_pipes(grid)}" for title, grid in _grids()) + "\n"


def _grids(table: int | None = None, case: int | None = None) -> Iterator[tuple[str, TextGrid]]:
    """The requested tables with their titles."""
    if table in (None, 2):
        for which in CASES if case is None else (case,):
            for normalised in NAMES:
                yield _title(normalised, which), _grid_2(normalised, which)
    if table in (None, 3):
        yield "Table 3: forward dynamics of the general arm", _grid_3()
        yield "Inverse dynamics of the general arm", _grid_inverse(1)
        yield f"Inverse dynamics, case 2: {CASES[2]}", _grid_inverse(2)


def _title(normalised: bool, case: int) -> str:
    shortest = count_tables.LENGTHS[case].start - 1
    return f"Table 2, {NAMES[normalised]}, case {case}: {CASES[case]}; N > {shortest}"


def _grid_2(normalised: bool, case: int) -> TextGrid:
    lines = count_tables.table_2(normalised, case)
    grid = [["recursion", "psiphi mul/div", "psiphi add", "S1 mul/div", "S1 add", "result"]]
    whole = count_tables.total(lines)
    for row in (*lines, whole):
        name = (
            "+".join(count_tables.ROWS[row.name][0]) if row.name in count_tables.ROWS else row.name
        )
        grid.append([name, *map(str, (*row.ours, *row.theirs)), row.meaning])
    ours, theirs = whole.ours[0] + whole.ours[1], whole.theirs[0] + whole.theirs[1]
    at = ", ".join(f"N = {n}: {_at(ours, theirs, n)}" for n in (6, 12))
    return [*grid, ["all operations", str(ours), "", str(theirs), "", at]]


def _at(ours: Formula, theirs: Formula, n: int) -> str:
    return f"{ours(n)} and {theirs(n)}"


def _grid_3() -> TextGrid:
    grid = [["method", "operations", "N = 6", "N = 12", "psiphi", "N = 6", "N = 12", "source"]]
    for row, ours, fewer in count_tables.table_3():
        assert fewer, f"psiphi's forward dynamics takes more operations than {row.method}"
        name = f"{row.method} ({row.note})" if row.note else row.method
        grid.append(
            [name, str(row.count), *_values(row.count), str(ours), *_values(ours), row.source]
        )
    for normalised, verb in ((True, "diagonalised"), (False, "unnormalised")):
        count = count_tables.flops(f"{verb}_motion")
        grid.append(
            [
                f"psiphi, {NAMES[normalised]}: v and the rate",
                str(count),
                *_values(count),
                "",
                "",
                "",
                "counted here",
            ]
        )
    return grid


def _grid_inverse(case: int) -> TextGrid:
    ours = count_tables.flops("inverse_dynamics", case)
    grid = [["method", "operations", "N = 6", "N = 12", "psiphi", "N = 6", "N = 12", "source"]]
    for row in published_counts.INVERSE[case]:
        grid.append(
            [row.method, str(row.count), *_values(row.count), str(ours), *_values(ours), row.source]
        )
    return grid


def _values(count: Formula) -> list[str]:
    return [f"{float(count(n)):.0f}" for n in (6, 12)]


def _pipes(grid: TextGrid) -> str:
    head, *rows = grid
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))
