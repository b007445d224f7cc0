"""Plots of a motion over time: one pair of axes per quantity, with limits and a legend."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.plots import empty_figure, literal_text, save_figure
from psiphi._util.text import nearest, shown
from psiphi._util.validate import flag
from psiphi.simulation.trajectory import trajectory_tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psiphi.simulation.trajectory.trajectory import Trajectory

LIMITS = {  # attributes of a joint; one bound means +-
    "q": ("lower", "upper"),
    "v": ("velocity",),
    "tau": ("effort",),
}
MAX_MOTIONS, MAX_EVENTS = 8, 20  # that are drawn
LEGEND_LINE_HEIGHT, MIN_AXES_HEIGHT = 0.15, 2.2  # inches
LEGEND_COLUMN_LINES = 24  # lines in a column of the legend


def plot(
    motion: Trajectory,
    what: str | Sequence[str],
    path: str | os.PathLike[str] | None,
    joints: str | Sequence[str] | None,
    limits: bool,
) -> Figure:
    """The figure; of a batch, the first eight motions."""
    known = trajectory_tables.sample_shapes(motion)
    drawn = _quantities(what, known)
    flag("limits", limits, "limits=True draws the joints' limits")
    labels = {
        name: trajectory_tables.column_names(motion.info, name, known[name]) for name in drawn
    }
    picked = {name: _columns(name, labels[name], joints) for name in drawn}
    lines = {name: _limits(motion, name, picked[name]) for name in drawn} if limits else {}
    if limits and not any(lines.values()):
        raise StateError(
            f"none of these joints has a limit in {', '.join(drawn)}", "leave limits= out"
        )
    longest = max(map(len, picked.values()))
    height = max(MIN_AXES_HEIGHT, 0.3 + LEGEND_LINE_HEIGHT * min(longest, LEGEND_COLUMN_LINES))
    legend_columns = math.ceil(longest / LEGEND_COLUMN_LINES) * (longest > 1)
    figure = empty_figure(8.0 + 1.6 * legend_columns, 0.6 + height * len(drawn))
    rows = np.atleast_1d(figure.subplots(len(drawn), 1, sharex=True))
    for axes, name in zip(rows, drawn, strict=True):
        columns = picked[name]
        _draw(axes, motion, name, labels[name], columns)
        for column, values in lines.get(name, {}).items():
            color = _color(columns.index(column), len(columns))
            for value in values:
                axes.axhline(value, color=color, linestyle=(0, (6, 3)), linewidth=0.8)
    return save_figure(figure, path)


def _quantities(what: object, known: Mapping[str, list[int]]) -> list[str]:
    """The names in `what` of quantities that the motion has."""
    if not isinstance(what, str) and not (
        isinstance(what, list | tuple) and all(isinstance(name, str) for name in what)
    ):
        raise StateError(f"cannot plot {shown(what)}", 'give names, "q tau energy" for instance')
    names = (what if isinstance(what, str) else " ".join(what)).replace(",", " ").split()
    unknown = [name for name in names if name not in trajectory_tables.SAMPLE_AXES]
    if unknown or not names:
        raise StateError(
            f"cannot plot {' '.join(names)!r}",
            nearest(unknown[0] if unknown else "", list(known)),
        )
    drawn = [name for name in names if name in known]
    if not drawn:
        raise StateError(
            f"this motion has no {' and no '.join(names)}", f"it has {', '.join(known)}"
        )
    return drawn


def _columns(name: str, labels: Sequence[str], joints: object) -> list[int]:
    """The columns of the joints whose names match; a joint with several coordinates matches by the
    names of these and by its own."""
    if joints is None or name not in ("q", "v", "a", "tau", "stop_forces"):
        return list(range(len(labels)))
    patterns = [joints] if isinstance(joints, str) else joints
    if (
        not isinstance(patterns, list | tuple)
        or not patterns
        or not all(isinstance(x, str) for x in patterns)
    ):
        raise StateError(
            f"joints is {shown(joints)}, expected names",
            'give "arm_left_*", or a list of such names',
        )
    names = [label.partition(":")[2] for label in labels]
    out = []
    for pattern in patterns:
        found = [
            k
            for k, own_name in enumerate(names)
            if fnmatchcase(own_name, pattern) or fnmatchcase(_joint(own_name), pattern)
        ]
        if not found:
            raise StateError(
                f"no joint is called {shown(pattern)}",
                nearest(pattern, list(dict.fromkeys(map(_joint, names)))),
            )
        out += [k for k in found if k not in out]
    return out


def _joint(label: str) -> str:
    """The joint of a coordinate: "root" for "root.3"."""
    name, _, number = label.rpartition(".")
    return name if name and number.isdigit() else label


def _limits(motion: Trajectory, name: str, columns: list[int]) -> dict[int, list[float]]:
    """The finite limits of these columns."""
    if name not in LIMITS:
        return {}
    if motion.robot is None:
        raise StateError(
            "limits=True needs the system of the trajectory, which is not known",
            "load it with Trajectory.load(path, system)",
        )
    sides = [
        np.concatenate([getattr(joint, side) for joint in motion.robot.joints])
        for side in LIMITS[name]
    ]
    bounds = sides if len(sides) == 2 else [-sides[0], sides[0]]
    if len(bounds[0]) != getattr(motion, name).shape[-1]:
        return {}
    found = {k: [float(side[k]) for side in bounds if np.isfinite(side[k])] for k in columns}
    return {k: values for k, values in found.items() if values}


def _color(k: int, count: int) -> Any:
    """One of ten colours if these suffice, else one of `count` hues."""
    if count <= 10:
        return f"C{k}"
    from matplotlib.colors import hsv_to_rgb

    saturation, value = 0.85 if k % 2 else 0.65, (0.85, 0.6, 0.75)[k % 3]
    return tuple(hsv_to_rgb((0.9 * k / (count - 1), saturation, value)))


def _draw(axes: Axes, motion: Trajectory, name: str, labels: list[str], columns: list[int]) -> None:
    lines = getattr(motion, name).reshape(math.prod(motion.batch), len(motion), len(labels))
    curves = []
    for element, line in enumerate(lines[:MAX_MOTIONS]):
        for k, column in enumerate(columns):
            dashed = k % 2 == 1 and len(columns) > 10
            (curve,) = axes.plot(
                motion.t,
                line[:, column],
                color=_color(k, len(columns)),
                linestyle="--" if dashed else "-",
                alpha=1.0 if element == 0 else 0.4,
                linewidth=1.2,
            )
            curves += [curve] if element == 0 else []
    for event in motion.events[:MAX_EVENTS]:
        axes.axvline(event.t, color="0.6", linestyle=":", linewidth=0.8)
    unit = trajectory_tables.UNITS.get(name)
    axes.set_ylabel(f"{name} [{unit}]" if unit else name)
    axes.set_xlabel("t [s]")
    axes.label_outer()
    axes.margins(x=0.01)
    if len(columns) > 1 and curves:
        names = [labels[k].partition(":")[2] for k in columns]
        legend = axes.legend(
            curves,
            [f"curve {k}" for k in range(len(names))],  # replaced by `literal_text`
            fontsize="x-small",
            ncols=math.ceil(len(names) / LEGEND_COLUMN_LINES),
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            frameon=False,
        )
        literal_text(legend.get_texts(), names)
