"""What notebooks display for a robot, a closed chain or a trajectory.

Plain HTML and SVG, without scripts and without a network.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from psiphi._util.errors import Error
from psiphi._util.escape import html
from psiphi._util.text import count_of
from psiphi.apps.viewer.recorded_motion import shown_configuration
from psiphi.apps.viewer.scene import model_of, scene
from psiphi.apps.viewer.svg_picture import picture
from psiphi.apps.viewer.svg_plots import COLORS, Plot
from psiphi.model.model import Joint, Model
from psiphi.simulation.trajectory.trajectory import Trajectory
from psiphi.simulation.trajectory.trajectory_summary import summary_rows

MAX_JOINTS, MAX_PLOTS = 40, 4  # rows of the table of joints; plots
MAX_BODIES = 400  # of a robot that is drawn
SIDE_BY_SIDE = "display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start"
CELL = 'style="text-align:left;padding:0 .8em 0 0"'
STYLE = (
    "<style>.psiphi .grid{stroke:#8884;stroke-width:.6}"
    ".psiphi .curve{fill:none;stroke-width:1.4}.psiphi .cursor{display:none}"
    ".psiphi .tick{font:10px sans-serif;fill:#888}</style>"
)


def robot_card(thing: object) -> str:
    """A robot or a closed chain: a picture, its sizes, its joints."""
    model = model_of(thing)
    constraint_rows = getattr(thing, "nc", None)
    facts = [count_of(model.body_count, "body", "bodies"), f"nq = {model.nq}", f"nv = {model.nv}"]
    facts += [] if constraint_rows is None else [count_of(constraint_rows, "constraint row")]
    facts.append(f"{sum(body.mass for body in model.bodies):.4g} kg")
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
    head = f"<b>{html(getattr(thing, 'name', '') or model.name)}</b>: {html(', '.join(facts))}"
    return _picture_and_text(
        _robot_picture(thing, model), f"<p>{head}</p>{_table(rows)}{more}{notes}"
    )


def trajectory_card(motion: Trajectory) -> str:
    """A trajectory: its summary; if its system is known, also its last configuration and plots."""
    rows = [(name, value) for name, value in summary_rows(motion)]
    if motion.system is None or not len(motion) or 0 in motion.batch or not motion.q.shape[-1]:
        return _picture_and_text("", _table(rows))
    try:
        shown = scene(motion, meshes=False)
    except Error:  # no finite configuration
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
    left = f"<div>{still}</div>" if still else ""
    return f'<div style="{SIDE_BY_SIDE}">{left}<div>{text}</div></div>'


def _robot_picture(thing: object, model: Model) -> str:
    if not model.bodies or len(model.bodies) > MAX_BODIES:
        return ""
    try:
        if hasattr(thing, "assemble"):
            return picture(scene(thing, meshes=False))
        return picture(scene(thing, q=shown_configuration(model), meshes=False))
    except Error:  # no closed configuration was found
        return ""


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    cells = ("".join(f"<td {CELL}>{html(cell)}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _plot_with_caption(plot: Plot, t: np.ndarray) -> str:
    keys = "".join(
        '<span style="white-space:nowrap">'
        f'<span style="color:{COLORS[i % len(COLORS)]}">&#9632;</span> {html(name)}</span> '
        for i, name in enumerate(plot.names)
    )
    style = "font-size:.8em;max-width:460px"
    svg = plot.svg(t).replace("<svg ", '<svg width="460" height="150" ', 1)
    title = f"<b>{html(plot.title)}</b> [{html(plot.unit)}]"
    return f'<div style="{style}">{title}</div>{svg}<div style="{style}">{keys}</div>'


def _index_range(joint: Joint) -> str:
    place = joint.q_slice
    return str(place.start) if place.stop == place.start + 1 else f"{place.start}:{place.stop}"


def _limit_text(joint: Joint) -> str:
    pairs = [
        (low, high)
        for low, high in zip(joint.lower, joint.upper, strict=True)
        if np.isfinite(low) or np.isfinite(high)
    ]
    return ", ".join(f"{low:.4g} .. {high:.4g}" for low, high in pairs)


def _finite_numbers(values: np.ndarray) -> str:
    return ", ".join(f"{x:.4g}" for x in values if np.isfinite(x))
