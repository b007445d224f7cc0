"""A study's report: one page with distributions of the final state, quantiles, failures by cause, and the worst motions.

The worst motions have pages of the viewer's beside it, in a folder of the page's name; nothing is fetched.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from psiphi._util import validate
from psiphi._util.errors import Error, StateError
from psiphi._util.escape import html
from psiphi._util.text import count_of, shown, shown_path
from psiphi.apps.studies.study_result import Study
from psiphi.apps.viewer.html_page import write
from psiphi.apps.viewer.svg_plots import (
    BOTTOM,
    COLORS,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    labels,
    linear_scale,
)

BINS = 60
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2430; background: #fff; max-width: 62rem; }
body { margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } td, th { padding: .15rem .7rem; text-align: right; }
th { font-weight: 600; border-bottom: 1px solid #ccd; } td:first-child, th:first-child { text-align: left; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)); gap: 1rem; }
figure { margin: 0; } figcaption { font-size: .85rem; } svg { width: 100%; height: auto; }
.tick { font-size: 11px; fill: #667; } .axis { stroke: #99a; } .mark { stroke: #1f2430; stroke-dasharray: 3 3; }
.wide { overflow-x: auto; }
"""


def report(study: Study, path: str | os.PathLike[str], worst: int = 5) -> Path:
    """Write a page: distributions, quantiles, failures by cause, and the `worst` motions, each with a page of its own.

    >>> import psiphi as pp
    >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary={"v": {"uniform": [0.0, 1.0]}})
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study.report(pathlib.Path(folder) / "study.html", worst=1).stat().st_size > 1000
    True
    """
    target = Path(validate.path("the file", path, "a path", 'give a name like "study.html"'))
    if not target.name:
        raise StateError(f"{shown(path)} is no file's name", 'give one like "study.html"')
    chosen = study.worst(validate.whole_number("worst", worst))
    pages = dict(_motions(study, chosen, target))
    return write(_page(study, pages), target)


def _motions(study: Study, chosen: list[int], target: Path) -> Iterator[tuple[int, str]]:
    """(number, link) of motions that have a page."""
    folder = target.with_suffix("")
    for i in chosen:
        try:
            folder.mkdir(exist_ok=True)
            motion = study.motion(i, quiet=True)
            motion.html(folder / f"motion_{i}.html", title=f"{study.title}: motion {i}")
        except Error:  # it cannot begin: nothing moves, and there is nothing to see
            yield i, ""
            continue
        except (OSError, ValueError) as error:  # ValueError: a NUL, or half a character
            why = getattr(error, "strerror", None) or str(error)
            raise Error(
                f"cannot write {shown_path(target)}: {why}", "give another place for the report"
            ) from error
        yield i, f"{folder.name}/motion_{i}.html"


def _page(study: Study, pages: dict[int, str]) -> str:
    body = "\n".join(
        [
            *_head(study),
            *_failures(study),
            *_distributions(study),
            *_quantiles(study),
            *_worst(study, pages),
        ]
    )
    title = html(study.title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>\n{body}\n</body></html>\n'
    )


def _head(study: Study) -> Iterator[str]:
    asked = study.asked
    yield f"<h1>{html(study.title)}</h1>"
    words = f"{count_of(asked.motions, 'motion')} of {asked.robot.name}, {asked.steps * asked.dt:g} s each, dt = {asked.dt:g} s"
    yield f"<p>{html(words)}; seed {asked.seed}. Every motion is made again by its number: <code>study.motion(i)</code>.</p>"
    rows = [(f"{x.word} {x.name}", x.distribution) for x in asked.variations]
    if rows:
        yield "<h2>What varies</h2>"
        yield _table(
            ("", "how", "numbers"),
            [(n, d.kind + " (relative)" * d.relative, _some(d.numbers)) for n, d in rows],
        )


def _failures(study: Study) -> Iterator[str]:
    failed = study.failures
    yield "<h2>Failures</h2>"
    if not failed:
        yield "<p>No motion failed.</p>"
        return
    many = Counter(f"{x.cause}: {x.joint}" if x.joint else x.cause for x in failed)
    part = 100.0 * len(failed) / study.motions
    yield f"<p>{count_of(len(failed), 'motion')} failed, {part:.3g} % of all.</p>"
    yield _table(
        ("cause", "motions", "share"),
        [(c, f"{n}", f"{100.0 * n / study.motions:.3g} %") for c, n in many.most_common()],
    )


def _distributions(study: Study) -> Iterator[str]:
    yield "<h2>Where they end</h2>"
    final, names = study.final, study.labels()
    yield '<div class="plots">'
    for letter in ("q", "v"):
        columns = getattr(final, letter)
        for k, name in enumerate(names[letter]):
            finite = columns[np.isfinite(columns[:, k]), k]
            if len(finite):
                drawn = histogram(finite, COLORS[k % len(COLORS)])
                yield f"<figure>{drawn}<figcaption>{letter} {html(name)}</figcaption></figure>"
    yield "</div>"


def histogram(x: np.ndarray, color: str) -> str:
    """How often each value comes, as SVG; the dashed line is the median."""
    low, high, ticks = linear_scale(x)
    counts, _ = np.histogram(x, BINS, (low, high))
    wide, tall = (WIDTH - LEFT - RIGHT) / BINS, HEIGHT - TOP - BOTTOM
    scale, size = tall / max(1, counts.max()), f'fill="{color}" width="{wide:.2f}"'
    bars = [
        f'<rect x="{LEFT + i * wide:.1f}" y="{HEIGHT - BOTTOM - n * scale:.1f}" {size} height="{n * scale:.1f}"/>'
        for i, n in enumerate(counts.tolist())
        if n
    ]

    def place(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    texts = [
        f'<text class="tick" x="{place(tick):.1f}" y="{HEIGHT - 5:g}" text-anchor="middle">{text}</text>'
        for tick, text in zip(ticks, labels(ticks), strict=True)
    ]
    middle = place(float(np.median(x)))
    lines = f'<line class="axis" x1="{LEFT:g}" x2="{WIDTH - RIGHT:g}" y1="{HEIGHT - BOTTOM:g}" y2="{HEIGHT - BOTTOM:g}"/>'
    lines += f'<line class="mark" x1="{middle:.1f}" x2="{middle:.1f}" y1="{TOP:g}" y2="{HEIGHT - BOTTOM:g}"/>'
    head = f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="distribution" xmlns="http://www.w3.org/2000/svg">'
    return f"{head}{''.join(bars)}{lines}{''.join(texts)}</svg>"


def _quantiles(study: Study) -> Iterator[str]:
    yield "<h2>Quantiles</h2>"
    if not np.isfinite(study.final.q).all(axis=-1).any():
        yield "<p>No motion has a final state.</p>"
        return
    found, names, levels = study.quantiles(), study.labels(), study.asked.quantiles
    rows = [
        (f"{letter} {name}", *(f"{x:.5g}" for x in getattr(found, letter)[:, k]))
        for letter in ("q", "v")
        for k, name in enumerate(names[letter])
    ]
    yield f'<div class="wide">{_table(("", *(f"{100 * x:g} %" for x in levels)), rows)}</div>'


def _worst(study: Study, pages: dict[int, str]) -> Iterator[str]:
    if not pages:
        return
    why = {
        x.motion: f"{x.cause}{': ' if x.joint else ''}{x.joint} at {x.time:g} s"
        for x in study.failures
    }
    yield "<h2>Motions to look at</h2>"
    yield "<p>Failures first, the earliest before the others; then those that end farthest out, in quartile distances.</p>"
    rows = []
    for i, link in pages.items():
        name = f'<a href="{html(link)}">motion {i}</a>' if link else f"motion {i}"
        rows.append(f"<tr><td>{name}</td><td>{html(why.get(i, 'far out'))}</td></tr>")
    yield f"<table><tr><th>motion</th><th>why</th></tr>{''.join(rows)}</table>"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    cells = "".join(f"<th>{html(x)}</th>" for x in head)
    lines = "".join(f"<tr>{''.join(f'<td>{html(x)}</td>' for x in row)}</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{lines}</table>"


def _some(numbers: tuple[float, ...]) -> str:
    text = ", ".join(f"{x:g}" for x in numbers[:6])
    return text + ", ..." * (len(numbers) > 6)
