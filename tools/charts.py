"""Charts as SVG without a plotting library, so that equal numbers give equal text."""

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


def learning(rows: list[dict[str, str]], goal: float = 0.2) -> str:
    """The error of the command over the time of training, a line for each seed, and the goal."""
    wide, high, left, top, bottom = 640, 300, 60, 16, 46
    seconds, errors = ([float(row[name]) for row in rows] for name in ("seconds", "error"))
    last, most = 60.0 * (1 + max(seconds) // 60.0), 0.1 * (1 + max(errors) // 0.1)

    def x(value: float) -> float:
        return round(left + (wide - left - 16) * value / last, 1)

    def y(value: float) -> float:
        return round(high - bottom - (high - bottom - top) * value / most, 1)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{wide}" height="{high}" fill="#ffffff"/>',
    ]
    for k in range(round(most / 0.2) + 1):
        at = y(0.2 * k)
        out.append(f'<line x1="{left}" y1="{at}" x2="{x(last)}" y2="{at}" stroke="#d8dbe0"/>')
        out.append(
            f'<text x="{left - 8}" y="{at + 4}" text-anchor="end" fill="#555">{0.2 * k:.1f}</text>'
        )
    for k in range(int(last / 60.0) + 1):
        out.append(
            f'<text x="{x(60.0 * k)}" y="{high - bottom + 18}" text-anchor="middle" '
            f'fill="#555">{k}</text>'
        )
    out.append(
        f'<line x1="{left}" y1="{y(goal)}" x2="{x(last)}" y2="{y(goal)}" stroke="#d9772b" '
        'stroke-width="2" stroke-dasharray="6 4"/>'
    )
    for seed, color in zip(
        sorted({row["seed"] for row in rows}),
        ("#3b6ea5", "#5a9e6f", "#8a6fb0", "#7d8794"),
        strict=False,
    ):
        points = " ".join(
            f"{x(float(row['seconds']))},{y(float(row['error']))}"
            for row in rows
            if row["seed"] == seed
        )
        out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
    out.append(f'<text x="{left}" y="{high - 8}" fill="#222">minutes on two cores</text>')
    out.append(
        f'<text x="{wide - 16}" y="{top + 4}" text-anchor="end" fill="#222">'
        "mean error of the command, m/s</text>"
    )
    return "\n".join([*out, "</svg>"]) + "\n"
