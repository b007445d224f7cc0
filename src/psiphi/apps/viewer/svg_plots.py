"""Line plots as SVG text, without a plotting library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from psiphi._util.escape import html
from psiphi.model.model import Model

T = TypeVar("T", float, np.ndarray)

COLORS = (
    "#3f7cac",
    "#e8743b",
    "#5f9e6e",
    "#c9566b",
    "#8e6fb0",
    "#b58a2c",
    "#4aa3a2",
    "#7a7f8a",
    "#d98cb3",
    "#2f4b7c",
    "#9bb53c",
    "#a0522d",
)
WIDTH, HEIGHT = 460.0, 150.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 8.0, 8.0, 20.0
FLAT_RANGE = 1e-5  # relative range below which a curve is drawn as constant


@dataclass(frozen=True, eq=False)
class Plot:
    """Curves over time: `values` (series, times). A logarithmic plot shows their magnitudes."""

    title: str
    unit: str
    names: tuple[str, ...]
    values: np.ndarray
    log: bool = False

    def svg(self, t: ArrayLike) -> str:
        """The plot as one <svg>. The line of class "cursor" marks a time; pages move it."""
        times, y = np.asarray(t, dtype=float), self.plotted_values
        low, high, ticks = log_scale(y) if self.log else linear_scale(y)
        parts = [*_grid(low, high, ticks, self.log), *_time_axis(times)]
        parts += [_curve(times, row, low, high, COLORS[i % len(COLORS)]) for i, row in enumerate(y)]
        parts.append(
            f'<line class="cursor" x1="{LEFT:g}" x2="{LEFT:g}" '
            f'y1="{TOP:g}" y2="{HEIGHT - BOTTOM:g}"/>'
        )
        label = html(f"{self.title} over time")
        head = (
            f'<svg class="plot" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{label}"'
        )
        return f'{head} xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'

    @property
    def plotted_values(self) -> np.ndarray:
        """(series, times): the values, or log10 of their magnitudes; NaN for log10 of zero."""
        y = np.atleast_2d(np.asarray(self.values, dtype=float))
        if not self.log:
            return y
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(y == 0.0, np.nan, np.log10(np.abs(y)))


def linear_scale(y: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Lower end, upper end and about four round ticks of an axis.

    Values that agree to five digits are drawn as constant.

    >>> linear_scale(np.array([0.0, 9.0]))[2].tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    low, high = _range(y)
    if high - low < FLAT_RANGE * max(abs(low), abs(high), 1e-300):
        pad = 0.5 * abs(low) or 1.0
        low, high = low - pad, high + pad
    low, high = low - 0.04 * (high - low), high + 0.04 * (high - low)
    rough = (high - low) / 4
    step = 10.0 ** np.floor(np.log10(rough))
    step *= next(m for m in (1, 2, 5, 10) if m * step >= 0.75 * rough)
    first = np.ceil(low / step)
    return low, high, step * np.arange(first, np.floor(high / step) + 1)


def log_scale(y: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Lower end, upper end and ticks of an axis of log10 values, over two decades or more."""
    low, high = _range(y)
    low, high = np.floor(low), np.ceil(high)
    if high - low < 2:
        low, high = low - 1, high + 1
    return float(low), float(high), np.arange(low, high + 1, max(1, int(np.ceil((high - low) / 4))))


def _range(y: np.ndarray) -> tuple[float, float]:
    finite = y[np.isfinite(y)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def _x(t: T, first: float, last: float) -> T:
    return LEFT + (t - first) / ((last - first) or 1.0) * (WIDTH - LEFT - RIGHT)


def _y(value: T, low: float, high: float) -> T:
    return TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM)


def _grid(low: float, high: float, ticks: np.ndarray, log: bool) -> Iterator[str]:
    for tick, text in zip(
        ticks, [f"1e{tick:.0f}" for tick in ticks] if log else tick_labels(ticks), strict=True
    ):
        y = _y(tick, low, high)
        yield f'<line class="grid" x1="{LEFT:g}" x2="{WIDTH - RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        place = f'x="{LEFT - 6:g}" y="{y + 3.5:.1f}" text-anchor="end"'
        yield f'<text class="tick" {place}>{text}</text>'


def tick_labels(ticks: np.ndarray) -> list[str]:
    """The ticks as text, with enough digits to differ.

    >>> tick_labels(np.array([6.8221, 6.8222, 6.8223]))
    ['6.8221', '6.8222', '6.8223']
    """
    texts = ([f"{tick + 0.0:.{digits}g}" for tick in ticks] for digits in range(4, 9))
    return next(
        (text for text in texts if len(set(text)) == len(text)), [f"{tick:g}" for tick in ticks]
    )


def _time_axis(t: np.ndarray) -> Iterator[str]:
    first, last = float(t[0]), float(t[-1])
    ticks = linear_scale(np.array([first, last]))[2]
    for tick, text in zip(ticks, tick_labels(ticks), strict=True):
        if first - 1e-9 <= tick <= last + 1e-9:
            x = _x(tick, first, last)
            place = f'x="{x:.1f}" y="{HEIGHT - 5:g}" text-anchor="middle"'
            yield f'<text class="tick" {place}>{text}</text>'


def _curve(t: np.ndarray, y: np.ndarray, low: float, high: float, color: str) -> str:
    """A polyline with gaps at values that are not finite."""
    xs, ys = _x(t, t[0], t[-1]), _y(y, low, high)
    path, pen = [], "M"
    for a, b in zip(xs, ys, strict=True):
        if not np.isfinite(b):
            pen = "M"
            continue
        path.append(f"{pen}{a:.1f},{b:.1f}")
        pen = "L"
    return f'<path class="curve" d="{"".join(path)}" stroke="{color}"/>'


def sample_indices(count: int, most: int) -> np.ndarray:
    """At most `most` of `count` indices, evenly spaced, with the first and the last.

    >>> sample_indices(5, 3).tolist()
    [0, 2, 4]
    """
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def coordinate_labels(model: Model, coordinates: str) -> Sequence[tuple[str, int]]:
    """(name, index) of the coordinates of "q" or "v" that are plotted: all but quaternions."""
    out = []
    for joint in model.joints:
        place = joint.q_slice if coordinates == "q" else joint.v_slice
        indices = list(range(place.start, place.stop))
        if coordinates == "q" and joint.kind in ("free", "spherical"):
            indices = indices[:-4]
        parts = "xyz" if len(indices) == 3 else "123456"
        if len(indices) == 6:
            names = [f"{joint.name}.{p}" for p in ("wx", "wy", "wz", "vx", "vy", "vz")]
        else:
            names = [joint.name] if len(indices) == 1 else [f"{joint.name}.{p}" for p in parts]
        out += list(zip(names, indices, strict=False))
    return out
