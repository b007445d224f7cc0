"""The report of a study: one HTML page with distributions, quantiles, failures and worst motions.

The worst motions have viewer pages in a folder with the name of the report. The pages load nothing
from the network.
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
from psiphi.apps.viewer.html_page import write_page
from psiphi.apps.viewer.svg_plots import (
    BOTTOM,
    COLORS,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    linear_scale,
    tick_labels,
)

BINS = 60
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2430; background: #fff; max-width: 62rem; }
body { margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .15rem .7rem; text-align: right; }
th { font-weight: 600; border-bottom: 1px solid #ccd; }
td:first-child, th:first-child { text-align: left; }
.plots { display: grid; gap: 1rem; }
.plots { grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)); }
figure { margin: 0; } figcaption { font-size: .85rem; } svg { width: 100%; height: auto; }
.tick { font-size: 11px; fill: #667; } .axis { stroke: #99a; }
.mark { stroke: #1f2430; stroke-dasharray: 3 3; }
.wide { overflow-x: auto; }
"""


def report(study: Study, path: str | os.PathLike[str], worst: int = 5) -> Path:
    """Write an HTML page: distributions, quantiles, failures and the `worst` motions.

    Each of the worst motions has its own page.

    >>> import psiphi as pp
    >>> vary = {"v": {"uniform": [0.0, 1.0]}}
    >>> study = pp.study(pp.load("acrobot"), motions=4, duration=0.01, vary=vary)
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = study.report(pathlib.Path(folder) / "study.html", worst=1)
    ...     path.stat().st_size > 1000
    True
    """
    target = Path(validate.path("the file", path, "a path", 'pass a name such as "study.html"'))
    if not target.name:
        raise StateError(f"{shown(path)} is not a file name", 'pass a name such as "study.html"')
    chosen = study.worst(validate.whole_number("worst", worst))
    pages = dict(_write_motion_pages(study, chosen, target))
    return write_page(_page(study, pages), target)


def _write_motion_pages(study: Study, chosen: list[int], target: Path) -> Iterator[tuple[int, str]]:
    """Write the page of each motion; (number, link), with "" for a motion without a page."""
    folder = target.with_suffix("")
    for i in chosen:
        try:
            folder.mkdir(exist_ok=True)
            motion = study.motion(i, quiet=True)
            motion.html(folder / f"motion_{i}.html", title=f"{study.title}: motion {i}")
        except Error:  # the motion cannot start
            yield i, ""
            continue
        except (OSError, ValueError) as error:  # ValueError: a NUL or a lone surrogate
            reason = getattr(error, "strerror", None) or str(error)
            raise Error(
                f"cannot write {shown_path(target)}: {reason}", "use another path for the report"
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
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body>\n{body}\n</body></html>\n"
    )


def _head(study: Study) -> Iterator[str]:
    config = study.config
    yield f"<h1>{html(study.title)}</h1>"
    duration = f"{config.steps * config.dt:g} s each, dt = {config.dt:g} s"
    motions = f"{count_of(config.motions, 'motion')} of {config.robot.name}, {duration}"
    yield f"<p>{html(motions)}; seed {config.seed}."
    yield "<code>study.motion(i)</code> simulates motion i again.</p>"
    rows = [(f"{x.word} {x.name}", x.distribution) for x in config.variations]
    if rows:
        yield "<h2>Varied parameters</h2>"
        yield _table(
            ("", "distribution", "numbers"),
            [(n, d.kind + " (relative)" * d.relative, _first_numbers(d.numbers)) for n, d in rows],
        )


def _failures(study: Study) -> Iterator[str]:
    failed = study.failures
    yield "<h2>Failures</h2>"
    if not failed:
        yield "<p>No motion failed.</p>"
        return
    causes = Counter(f"{x.cause}: {x.joint}" if x.joint else x.cause for x in failed)
    share = 100.0 * len(failed) / study.motions
    yield f"<p>{count_of(len(failed), 'motion')} failed, {share:.3g} % of all.</p>"
    yield _table(
        ("cause", "motions", "share"),
        [(c, f"{n}", f"{100.0 * n / study.motions:.3g} %") for c, n in causes.most_common()],
    )


def _distributions(study: Study) -> Iterator[str]:
    yield "<h2>Final states</h2>"
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
    """A histogram as SVG; the dashed line is the median."""
    low, high, ticks = linear_scale(x)
    counts, _ = np.histogram(x, BINS, (low, high))
    wide, tall = (WIDTH - LEFT - RIGHT) / BINS, HEIGHT - TOP - BOTTOM
    scale, size = tall / max(1, counts.max()), f'fill="{color}" width="{wide:.2f}"'
    base = HEIGHT - BOTTOM
    bars = [
        f'<rect x="{LEFT + i * wide:.1f}" y="{base - n * scale:.1f}" {size} '
        f'height="{n * scale:.1f}"/>'
        for i, n in enumerate(counts.tolist())
        if n
    ]

    def column(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    texts = [
        f'<text class="tick" x="{column(tick):.1f}" y="{HEIGHT - 5:g}" '
        f'text-anchor="middle">{text}</text>'
        for tick, text in zip(ticks, tick_labels(ticks), strict=True)
    ]
    axis = f'x1="{LEFT:g}" x2="{WIDTH - RIGHT:g}" y1="{base:g}" y2="{base:g}"'
    median = f"{column(float(np.median(x))):.1f}"
    mark = f'x1="{median}" x2="{median}" y1="{TOP:g}" y2="{base:g}"'
    lines = f'<line class="axis" {axis}/><line class="mark" {mark}/>'
    head = (
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="distribution" '
        'xmlns="http://www.w3.org/2000/svg">'
    )
    return f"{head}{''.join(bars)}{lines}{''.join(texts)}</svg>"


def _quantiles(study: Study) -> Iterator[str]:
    yield "<h2>Quantiles</h2>"
    if not np.isfinite(study.final.q).all(axis=-1).any():
        yield "<p>No motion has a final state.</p>"
        return
    states, names, levels = study.quantiles(), study.labels(), study.config.quantiles
    rows = [
        (f"{letter} {name}", *(f"{x:.5g}" for x in getattr(states, letter)[:, k]))
        for letter in ("q", "v")
        for k, name in enumerate(names[letter])
    ]
    yield f'<div class="wide">{_table(("", *(f"{100 * x:g} %" for x in levels)), rows)}</div>'


def _worst(study: Study, pages: dict[int, str]) -> Iterator[str]:
    if not pages:
        return
    reasons = {
        x.motion: f"{x.cause}{': ' if x.joint else ''}{x.joint} at {x.time:g} s"
        for x in study.failures
    }
    yield "<h2>Worst motions</h2>"
    yield "<p>Failures by time, then outliers among the final states (in interquartile ranges).</p>"
    rows = []
    for i, link in pages.items():
        name = f'<a href="{html(link)}">motion {i}</a>' if link else f"motion {i}"
        rows.append(f"<tr><td>{name}</td><td>{html(reasons.get(i, 'outlier'))}</td></tr>")
    yield f"<table><tr><th>motion</th><th>reason</th></tr>{''.join(rows)}</table>"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    cells = "".join(f"<th>{html(x)}</th>" for x in head)
    lines = "".join(f"<tr>{''.join(f'<td>{html(x)}</td>' for x in row)}</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{lines}</table>"


def _first_numbers(numbers: tuple[float, ...]) -> str:
    text = ", ".join(f"{x:g}" for x in numbers[:6])
    return text + ", ..." * (len(numbers) > 6)
