"""A motion as curves over time: one pair of axes a quantity, joints by name, their limits, a legend beside them."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.plots import empty_figure, literal_text, save_figure
from psiphi._util.text import nearest, shown
from psiphi._util.validate import flag
from psiphi.simulation.trajectory import trajectory_tables

LIMITS = {
    "q": ("lower", "upper"),
    "v": ("velocity",),
    "tau": ("effort",),
}  # of a joint; those with one bound are +-
MAX_MOTIONS, MAX_EVENTS = 8, 20  # shown at most
LEGEND_LINE_HEIGHT, MIN_AXES_HEIGHT = (
    0.15,
    2.2,
)  # inches: a line of the legend, the height of a pair of axes
LEGEND_COLUMN_LINES = 24  # names below each other before another column begins


def plot(
    motion: Any, what: Any, path: str | os.PathLike[str] | None, joints: Any, limits: Any
) -> Any:
    """The figure; a batch shows at most eight motions."""
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
    longest = max(len(own) for own in picked.values())
    height = max(MIN_AXES_HEIGHT, 0.3 + LEGEND_LINE_HEIGHT * min(longest, LEGEND_COLUMN_LINES))
    figure = empty_figure(
        8.0 + 1.6 * math.ceil(longest / LEGEND_COLUMN_LINES) * (longest > 1),
        0.6 + height * len(drawn),
    )
    for axes, name in zip(
        np.atleast_1d(figure.subplots(len(drawn), 1, sharex=True)), drawn, strict=True
    ):
        _draw(axes, motion, name, labels[name], picked[name])
        for column, values in lines.get(name, {}).items():
            for value in values:
                axes.axhline(
                    value,
                    color=_color(picked[name].index(column), len(picked[name])),
                    linestyle=(0, (6, 3)),
                    linewidth=0.8,
                )
    return save_figure(figure, path)


def _quantities(what: Any, known: dict[str, list[int]]) -> list[str]:
    """The quantities that are asked for and there."""
    if not isinstance(what, str) and not (
        isinstance(what, list | tuple) and all(isinstance(name, str) for name in what)
    ):
        raise StateError(f"cannot plot {shown(what)}", 'give names, "q tau energy" for instance')
    what = what if isinstance(what, str) else " ".join(what)
    wanted = what.replace(",", " ").split()
    unknown = [name for name in wanted if name not in trajectory_tables.SAMPLE_AXES]
    if unknown or not wanted:
        raise StateError(
            f"cannot plot {what!r}", nearest(unknown[0] if unknown else what, list(known))
        )
    drawn = [name for name in wanted if name in known]
    if not drawn:
        raise StateError(
            f"this motion has no {' and no '.join(wanted)}", f"it has {', '.join(known)}"
        )
    return drawn


def _columns(name: str, labels: Sequence[str], joints: Any) -> list[int]:
    """The columns of the joints whose names match; a joint of several coordinates answers to its own name, too."""
    if joints is None or name not in ("q", "v", "a", "tau"):
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
            for k, own in enumerate(names)
            if fnmatchcase(own, pattern) or fnmatchcase(_joint(own), pattern)
        ]
        if not found:
            raise StateError(
                f"no joint is called {shown(pattern)}",
                nearest(pattern, list(dict.fromkeys(map(_joint, names)))),
            )
        out += [k for k in found if k not in out]
    return out


def _joint(label: str) -> str:
    """The joint of a coordinate: "root.3" is one of "root"."""
    name, _, number = label.rpartition(".")
    return name if name and number.isdigit() else label


def _limits(motion: Any, name: str, columns: list[int]) -> dict[int, list[float]]:
    """The finite limits of these columns."""
    if name not in LIMITS:
        return {}
    if motion.robot is None:
        raise StateError(
            "the trajectory does not know its system, and so no limits",
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
    """Ten colours where they are enough, else as many as there are curves, around the circle."""
    if count <= 10:
        return f"C{k}"
    from matplotlib.colors import hsv_to_rgb

    return tuple(
        hsv_to_rgb((0.9 * k / (count - 1), 0.85 if k % 2 else 0.65, (0.85, 0.6, 0.75)[k % 3]))
    )


def _draw(axes: Any, motion: Any, name: str, labels: list[str], columns: list[int]) -> None:
    lines = getattr(motion, name).reshape(math.prod(motion.batch), len(motion), len(labels))
    curves = []
    for element, line in enumerate(lines[:MAX_MOTIONS]):
        for k, column in enumerate(columns):
            style = {
                "color": _color(k, len(columns)),
                "linestyle": "-" if k % 2 == 0 or len(columns) <= 10 else "--",
            }
            (curve,) = axes.plot(
                motion.t,
                line[:, column],
                alpha=1.0 if element == 0 else 0.4,
                linewidth=1.2,
                **style,
            )
            curves += [curve] if element == 0 else []
    for event in motion.events[:MAX_EVENTS]:
        axes.axvline(event.t, color="0.6", linestyle=":", linewidth=0.8)
    axes.set_ylabel(
        f"{name} [{trajectory_tables.UNITS[name]}]" if name in trajectory_tables.UNITS else name
    )
    axes.set_xlabel("t [s]")
    axes.label_outer()
    axes.margins(x=0.01)
    if len(columns) > 1 and curves:
        names = [labels[k].partition(":")[2] for k in columns]
        beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
        placeholders = [f"curve {k}" for k in range(len(names))]
        legend = axes.legend(
            curves,
            placeholders,
            fontsize="x-small",
            ncols=math.ceil(len(names) / LEGEND_COLUMN_LINES),
            **beside,
        )
        literal_text(legend.get_texts(), names)
