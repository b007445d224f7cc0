"""Small line plots as SVG text, without a plotting library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from psiphi._util.escape import html

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
FLAT_RANGE = 1e-5  # the least change that shows, of the value itself


@dataclass(frozen=True, eq=False)
class Plot:
    """Curves over time: `values` (series, times); a logarithmic plot shows their sizes."""

    title: str
    unit: str
    names: tuple[str, ...]
    values: np.ndarray
    log: bool = False

    def svg(self, t) -> str:
        """The plot as one <svg>; `class="cursor"` marks the line that a page may move along."""
        t, y = np.asarray(t, dtype=float), self.plotted_values
        low, high, ticks = log_scale(y) if self.log else linear_scale(y)
        parts = [*_grid(low, high, ticks, self.log), *_time_axis(t)]
        parts += [_curve(t, row, low, high, COLORS[i % len(COLORS)]) for i, row in enumerate(y)]
        parts.append(
            f'<line class="cursor" x1="{LEFT:g}" x2="{LEFT:g}" y1="{TOP:g}" y2="{HEIGHT - BOTTOM:g}"/>'
        )
        label = html(f"{self.title} over time")
        head = (
            f'<svg class="plot" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{label}"'
        )
        return f'{head} xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'

    @property
    def plotted_values(self) -> np.ndarray:
        """What is drawn, (series, times): of a logarithmic plot logarithms, no number where there is none."""
        y = np.atleast_2d(np.asarray(self.values, dtype=float))
        if not self.log:
            return y
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(y == 0.0, np.nan, np.log10(np.abs(y)))


def linear_scale(y: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Low, high and about four round ticks between them; what keeps to five digits is flat.

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
    """The same over powers of ten, at least two of them apart."""
    low, high = _range(y)
    low, high = np.floor(low), np.ceil(high)
    if high - low < 2:
        low, high = low - 1, high + 1
    return float(low), float(high), np.arange(low, high + 1, max(1, int(np.ceil((high - low) / 4))))


def _range(y: np.ndarray) -> tuple[float, float]:
    finite = y[np.isfinite(y)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def _x(t, first: float, last: float):
    return LEFT + (t - first) / ((last - first) or 1.0) * (WIDTH - LEFT - RIGHT)


def _y(value, low: float, high: float):
    return TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM)


def _grid(low: float, high: float, ticks: np.ndarray, log: bool) -> Iterator[str]:
    for tick, text in zip(
        ticks, [f"1e{tick:.0f}" for tick in ticks] if log else tick_labels(ticks), strict=True
    ):
        y = _y(tick, low, high)
        yield f'<line class="grid" x1="{LEFT:g}" x2="{WIDTH - RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="tick" x="{LEFT - 6:g}" y="{y + 3.5:.1f}" text-anchor="end">{text}</text>'


def tick_labels(ticks: np.ndarray) -> list[str]:
    """Numbers in words, with as many digits as tell them apart.

    >>> labels(np.array([6.8221, 6.8222, 6.8223]))
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
            yield f'<text class="tick" x="{x:.1f}" y="{HEIGHT - 5:g}" text-anchor="middle">{text}</text>'


def _curve(t: np.ndarray, y: np.ndarray, low: float, high: float, color: str) -> str:
    """A polyline that has gaps where values are not finite."""
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
    """At most `most` indices out of `count`, evenly, the first and the last among them.

    >>> sampled(5, 3).tolist()
    [0, 2, 4]
    """
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def coordinate_labels(model, coordinates: str) -> Sequence[tuple[str, int]]:
    """(name, index) of what is worth a curve: quaternions are left out, several coordinates of a joint are numbered."""
    out = []
    for joint in model.joints:
        own = joint.q_slice if coordinates == "q" else joint.v_slice
        indices = list(range(own.start, own.stop))
        if coordinates == "q" and joint.kind in ("free", "spherical"):
            indices = indices[:-4]
        parts = "xyz" if len(indices) == 3 else "123456"
        if len(indices) == 6:
            names = [f"{joint.name}.{p}" for p in ("wx", "wy", "wz", "vx", "vy", "vz")]
        else:
            names = [joint.name] if len(indices) == 1 else [f"{joint.name}.{p}" for p in parts]
        out += list(zip(names, indices, strict=False))
    return out
