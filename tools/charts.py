"""Bar charts as SVG without a plotting library, so that equal numbers give equal text."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from math import log10

WIDTH, LABEL, ROW, BAR = 860, 400, 24, 14


def chart(
    bars: list[tuple[str, float, float | None, str]],
    position: Callable[[float], float],
    ticks: list[tuple[float, str]],
) -> str:
    """Bars (label, value, target, text) on an axis.

    `position` maps a value to 0 .. 1; ticks are (value, text).
    """
    height = ROW * len(bars) + 40

    def x(value: float) -> float:
        return round(LABEL + (WIDTH - LABEL - 90) * position(value), 1)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for value, text in ticks:
        out.append(
            f'<line x1="{x(value)}" y1="10" x2="{x(value)}" y2="{height - 25}" stroke="#d8dbe0"/>'
        )
        out.append(
            f'<text x="{x(value)}" y="{height - 10}" text-anchor="middle" '
            f'fill="#555">{escape(text)}</text>'
        )
    for k, (label, value, target, text) in enumerate(bars):
        y = 12 + ROW * k
        out.append(
            f'<text x="{LABEL - 8}" y="{y + 12}" text-anchor="end" '
            f'fill="#222">{escape(label)}</text>'
        )
        out.append(
            f'<rect x="{LABEL}" y="{y}" width="{round(x(value) - LABEL, 1)}" '
            f'height="{BAR}" rx="2" fill="#3b6ea5"/>'
        )
        out.append(f'<text x="{x(value) + 5}" y="{y + 12}" fill="#222">{escape(text)}</text>')
        if target is not None:
            out.append(
                f'<rect x="{x(target) - 1}" y="{y - 3}" width="3" height="{BAR + 6}" '
                'fill="#d9772b"/>'
            )
    return "\n".join([*out, "</svg>"]) + "\n"


def speed(rows: list[dict]) -> str:
    """Speed relative to the other library, for rows with the unit x."""
    bars = []
    for row in rows:
        if (
            row["unit"] != "x"
            or row["name"] in ("threads",)
            or not row["theirs"].endswith("us")
            or " at " in row["theirs"]
        ):
            continue
        ratio = row["figure"] if row["at_least"] else 1.0 / row["figure"]
        target = row["target"] if row["at_least"] or row["target"] is None else 1.0 / row["target"]
        bars.append((f"{row['text']}: {row['subject']}", ratio, target, f"{ratio:.1f}x"))
    top = 10.0 * (1 + max(value for _, value, _, _ in bars) // 10)
    return chart(
        bars,
        lambda value: value / top,
        [(10.0 * k, f"{10 * k}x") for k in range(int(top / 10) + 1)],
    )


SIX = {  # the bars of README and front page: (row, subject) -> (label, the other library)
    ("fd", "Panda"): ("forward dynamics, Panda", "Pinocchio"),
    ("id", "Panda"): ("inverse dynamics, Panda", "Pinocchio"),
    ("fd-free", "G1"): ("forward dynamics, humanoid G1", "Pinocchio"),
    ("dfd-free", "G1"): ("derivatives of forward dynamics, G1", "Pinocchio"),
    ("rollout", "UR5"): ("a step of a motion, UR5", "MuJoCo"),
    ("one-call-mujoco", "UR5"): ("one call from Python, UR5", "MuJoCo"),
}


def six_bars(rows: list[dict]) -> str:
    """Six rows of the benchmark, one core; a label above each bar, so that it fits a telephone."""
    kept = {(row["name"], row["subject"]): row for row in rows}
    bars = [(kept[key], *words) for key, words in SIX.items()]
    ratios = [r["figure"] if r["at_least"] else 1.0 / r["figure"] for r, _, _ in bars]
    wide, row_height, top = 520, 42, max(ratios)
    high = row_height * len(bars) + 8
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        'font-family="sans-serif" font-size="15">',
        f'<rect width="{wide}" height="{high}" fill="#ffffff"/>',
    ]
    for k, (ratio, (row, label, peer)) in enumerate(zip(ratios, bars, strict=True)):
        y, width = row_height * k + 20, round((wide - 70) * ratio / top, 1)
        times = f"{row['ours']} / {peer} {row['theirs']}".replace(" us", " µs")
        out += [
            f'<text x="6" y="{y}" fill="#222">{escape(label)}</text>',
            f'<text x="{wide - 6}" y="{y}" text-anchor="end" font-size="13" fill="#555">'
            f"{escape(times)}</text>",
            f'<rect x="6" y="{y + 6}" width="{width}" height="13" rx="2" fill="#3b6ea5"/>',
            f'<text x="{width + 12}" y="{y + 18}" font-weight="bold" fill="#222">'
            f"{ratio:.{1 if ratio < 10 else 0}f}×</text>",
        ]
    return "\n".join([*out, "</svg>"]) + "\n"


def derivatives(rows: list[dict]) -> str:
    """Speed relative to Pinocchio of the derivatives of forward and inverse dynamics."""
    bars = [
        (f"{row['text']}: {row['subject']}", row["figure"], None, f"{row['figure']:.0f}x")
        for row in rows
        if row["name"].startswith(("dfd", "did")) and row["unit"] == "x" and row["at_least"]
    ]
    return chart(bars, lambda x: x / 80.0, [(20.0 * k, f"{20 * k}x") for k in range(5)])


def gpu(page: str) -> str:
    """Speed relative to GRiD, from the table of docs/gpu.md; the axis is logarithmic."""
    table = page.partition("| psiphi | GRiD |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    bars = [
        (f"{robot}, {what}, {batch} states", float(ratio), None, f"{ratio}x")
        for robot, what, batch, *_, ratio in rows
    ]
    return chart(bars, lambda x: log10(x) / 2.1, [(10.0**k, f"{10**k}x") for k in range(3)])


def agreement(rows: list[dict]) -> str:
    """Differences from the other libraries, on a logarithmic axis."""
    bars = [
        (f"{row['text']} ({row['subject']})", row["figure"], row["target"], f"{row['figure']:.1e}")
        for row in rows
        if not row["at_least"] and row["target"] is not None and 0.0 < row["target"] <= 1e-6
    ]
    return chart(
        bars,
        lambda value: (log10(value) + 16) / 10,
        [(10.0**k, f"1e{k}") for k in range(-16, -5, 2)],
    )
