"""What a notebook shows of a robot, a closed chain or a motion: plain HTML and SVG, without script, small, nothing to fetch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from psiphi._util.errors import Error
from psiphi._util.escape import html
from psiphi._util.text import count_of
from psiphi.apps.viewer.recorded_motion import rest_configuration
from psiphi.apps.viewer.scene import model_of, scene
from psiphi.apps.viewer.svg_picture import picture
from psiphi.apps.viewer.svg_plots import COLORS, Plot
from psiphi.simulation.trajectory.trajectory_summary import summary_rows

MAX_JOINTS, MAX_PLOTS = 40, 4  # rows and plots at most
MAX_BODIES = 400  # bodies up to which a robot is drawn
SIDE_BY_SIDE = "display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start"
CELL = 'style="text-align:left;padding:0 .8em 0 0"'
STYLE = (
    "<style>.psiphi .grid{stroke:#8884;stroke-width:.6}.psiphi .curve{fill:none;stroke-width:1.4}.psiphi .cursor{display:none}"
    ".psiphi .tick{font:10px sans-serif;fill:#888}</style>"
)


def robot_card(thing: Any) -> str:
    """A robot or a closed chain: a picture, what it is, its joints."""
    model = model_of(thing)
    free = getattr(thing, "nc", None)
    words = [count_of(model.body_count, "body", "bodies"), f"nq = {model.nq}", f"nv = {model.nv}"]
    words += [] if free is None else [count_of(free, "constraint row")]
    words.append(f"{sum(body.mass for body in model.bodies):.4g} kg")
    rows = [("joint", "kind", "q", "range", "speed", "effort")]
    rows += [
        (
            j.name,
            j.kind,
            _index_range(j),
            _limit_text(j),
            _finite_numbers(j.velocity),
            _finite_numbers(j.effort),
        )
        for j in model.joints[:MAX_JOINTS]
    ]
    more = (
        f"<p>and {len(model.joints) - MAX_JOINTS} more joints</p>"
        if len(model.joints) > MAX_JOINTS
        else ""
    )
    notes = "".join(f"<p>{html(line)}</p>" for line in model.report[:5])
    head = f"<b>{html(getattr(thing, 'name', '') or model.name)}</b>: {html(', '.join(words))}"
    return _picture_and_text(
        _robot_picture(thing, model), f"<p>{head}</p>{_table(rows)}{more}{notes}"
    )


def trajectory_card(motion: Any) -> str:
    """A motion: its last posture where the robot is known, its summary, some of its curves."""
    rows = [(name, value) for name, value in summary_rows(motion)]
    if motion.system is None or not len(motion) or 0 in motion.batch or not motion.q.shape[-1]:
        return _picture_and_text("", _table(rows))
    try:
        shown = scene(motion, meshes=False)
    except Error:  # nothing finite to show
        return _picture_and_text("", _table(rows))
    plots = "".join(
        f"<div>{_plot_with_caption(plot, shown.t)}</div>" for plot in shown.motion.plots[:MAX_PLOTS]
    )
    still = picture(shown) if len(shown.model.bodies) <= MAX_BODIES else ""
    return (
        _picture_and_text(still, _table(rows))
        + f'<div class="psiphi" style="{SIDE_BY_SIDE}">{STYLE}{plots}</div>'
    )


def _picture_and_text(still: str, text: str) -> str:
    return f'<div style="{SIDE_BY_SIDE}">{f"<div>{still}</div>" if still else ""}<div>{text}</div></div>'


def _robot_picture(thing: Any, model: Any) -> str:
    if not model.bodies or len(model.bodies) > MAX_BODIES:
        return ""
    try:
        if hasattr(thing, "assemble"):
            return picture(scene(thing, meshes=False))
        return picture(scene(thing, q=rest_configuration(model), meshes=False))
    except Error:  # a closed chain that no guess assembles
        return ""


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    cells = ("".join(f"<td {CELL}>{html(cell)}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _plot_with_caption(plot: Plot, t: np.ndarray) -> str:
    keys = "".join(
        f'<span style="white-space:nowrap"><span style="color:{COLORS[i % len(COLORS)]}">&#9632;</span> {html(name)}</span> '
        for i, name in enumerate(plot.names)
    )
    style = "font-size:.8em;max-width:460px"
    svg = plot.svg(t).replace("<svg ", '<svg width="460" height="150" ', 1)
    return f'<div style="{style}"><b>{html(plot.title)}</b> [{html(plot.unit)}]</div>{svg}<div style="{style}">{keys}</div>'


def _index_range(joint: Any) -> str:
    own = joint.q_slice
    return str(own.start) if own.stop == own.start + 1 else f"{own.start}:{own.stop}"


def _limit_text(joint: Any) -> str:
    pairs = [
        (low, high)
        for low, high in zip(joint.lower, joint.upper, strict=True)
        if np.isfinite(low) or np.isfinite(high)
    ]
    return ", ".join(f"{low:.4g} .. {high:.4g}" for low, high in pairs)


def _finite_numbers(values: np.ndarray) -> str:
    return ", ".join(f"{x:.4g}" for x in values if np.isfinite(x))
