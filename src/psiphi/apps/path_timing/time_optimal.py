"""The least time along a curve within its bounds (Pham and Pham 2018): two passes over the points s_i.

    end to begin    K_i: the largest x from which some u keeps the bounds, and 0 <= x + 2 (s_i+1 - s_i) u <= K_i+1
    begin to end    x_i+1 = x_i + 2 (s_i+1 - s_i) u with the largest u that keeps the bounds and x_i+1 <= K_i+1

Between two points u is constant, x = s.^2 changes linearly, and the bounds are kept at both; speeds between them, too. A row
says l(x) <= u <= h(x), both linear; the least h less the largest l is concave in x and positive at 0, where the robot can stand
still: Newton's steps from the right find its zero. Both passes are rules on any scalars; a kernel runs them for as many curves
as there are lanes, the loop over points compiled around them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, reduce

import numpy as np

from psiphi.apps.path_timing.path_limits import Bounds
from psiphi.backends import kernel_cache
from psiphi.backends.cpu.cpu_target import HOST
from psiphi.compiler.ir.block_frame import BlockFrame, NamedBlocks
from psiphi.compiler.ir.loop_nodes import Repeat, Rollout
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.model.spatial.branch_free import choose, less, maximum, minimum, sign
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.simulation.compiled_rollout.rollout_runner import StepLoop
from psiphi.simulation.compiled_rollout.step_blocks import trace
from psiphi.simulation.control.control_law import Values

FLAT = 1e-9  # of a row: u is not felt
HUGE = 1e100  # where there is no bound on x
NEWTON = 30  # steps, at most; each passes at least one corner
BEGIN, END = (
    ("alpha", "beta", "gamma"),
    ("alpha_next", "beta_next", "gamma_next"),
)  # rows of both ends of a step
SLACK = 1e-6  # of a bound: more is no solution
SPEEDING = 1.02  # of the square of a speed's limit, between two points
FEW, MANY = (
    np.array([0.3, 0.6, 0.85]),
    np.arange(1, 16) / 16.0,
)  # places within a step at which speeds are looked at


def _rows(ds, rows: dict) -> list[tuple]:
    """alpha, beta, gamma of the rows at both ends of a step, of x at its begin: x at its end is x + 2 ds u."""
    begin, end = (
        list(zip(*(entries(rows[name]) for name in names), strict=True)) for names in (BEGIN, END)
    )
    return begin + [(a + 2.0 * ds[0] * b, b, c) for a, b, c in end]


def _lines(ds, rows: dict) -> list[tuple]:
    """(low, high, slope) of every row, low - slope x <= u <= high - slope x."""
    out = []
    for a, b, c in _rows(ds, rows):
        turn = sign(a)
        inverse = 1.0 / (turn * a + FLAT)
        out.append(((-1.0 - turn * c) * inverse, (1.0 - turn * c) * inverse, turn * b * inverse))
    return out


def _active(lines: list[tuple], x, outermost) -> tuple:
    """Of lines p - r x the one that is `outermost` at x: its value, p and r. In pairs: no choice waits for many others."""
    ends = [(p - r * x, p, r) for p, r in lines]
    while len(ends) > 1:
        pairs, alone = zip(ends[::2], ends[1::2], strict=False), ends[len(ends) - len(ends) % 2 :]
        ends = [_outer(outermost(b[0], a[0]), a, b) for a, b in pairs] + alone
    return ends[0]


def _outer(beyond, a: tuple, b: tuple) -> tuple:
    """b where it is beyond a."""
    return tuple(choose(beyond, y, x) for x, y in zip(a, b, strict=True))


def backward(cap, ds, K, **rows) -> Values:
    """The lines at i, and K_i as far as one step of Newton's from the cap says, from K_i+1."""
    step = 0.5 / ds[0]
    lines = [*_lines(ds, rows), (0.0 * step, K[0] * step, step)]
    low, high, slope = (list(x) for x in zip(*lines, strict=True))
    return {"lines": np.array([*low, *high, *slope])} | _nearer(low, high, slope, cap[0])


def newton(lines, K) -> Values:
    """K_i, one step nearer."""
    low, high, slope = np.reshape(lines, (3, -1)).tolist()
    return _nearer(low, high, slope, K[0])


def _nearer(low: list, high: list, slope: list, x) -> Values:
    top, p, r = _active(list(zip(high, slope, strict=True)), x, less)
    bottom, q, t = _active(list(zip(low, slope, strict=True)), x, lambda a, b: less(b, a))
    crossed = less(top, bottom)
    x = choose(crossed, (p - q) / choose(crossed, r - t, 1.0), x)
    return {"K": np.array([x]), "crossed": np.array([crossed]), "done": np.array([1.0 - crossed])}


def forward(ds, K, X, **rows) -> Values:
    """x_i+1 from x_i, and how much of the bounds that uses; K is that of i + 1."""
    x, most_u = X[0], (K[0] - X[0]) / (2.0 * ds[0])
    for _, high, slope in _lines(ds, rows):
        most_u = minimum(most_u, high - slope * x)
    after = maximum(x + 2.0 * ds[0] * most_u, 0.0)
    u = (after - x) / (2.0 * ds[0])
    used = [a * u + b * x + c for a, b, c in _rows(ds, rows)]
    return {
        "X": np.array([after]),
        "used": np.array([reduce(maximum, (maximum(y, -y) for y in used))]),
    }


@lru_cache(maxsize=32)
def _pass(name: str, count: int) -> StepLoop:
    """The kernel of one pass, for so many rows."""
    rule, each, state = {
        "backward": (backward, (*BEGIN, *END, "cap", "ds"), ("K",)),
        "forward": (forward, (*BEGIN, *END, "ds", "K"), ("X", "used")),
    }[name]
    sizes = dict.fromkeys((*BEGIN, *END), count) | {"lines": 3 * (2 * count + 1)}

    def block(name: str, rule: Callable[..., Values], places: tuple[str, ...]) -> StraightCode:
        return trace(name, {place: sizes.get(place, 1) for place in places}, rule)

    def built() -> bytes:
        start = block("start", lambda begin: dict.fromkeys(state, begin), ("begin",))
        step = block(name, rule, (*each, state[0]))
        blocks: NamedBlocks = {"start": (start, {}), name: (step, {})}
        repeats: tuple[Repeat, ...] = ()
        if name == "backward":
            blocks["newton"] = block("newton", newton, ("lines", "K")), {}
            repeats = (Repeat("again", name, "crossed", (), "newton", "done", NEWTON),)
        order = tuple(repeat.name for repeat in repeats) or (name,)
        rollout = Rollout(BlockFrame(blocks), order, ("begin",), each, state, repeats)
        return HOST.build(HOST.emit(rollout), {"flops": step.count.flops})

    key = kernel_cache.kernel_key(name, str(count), str(HOST.key("d")))
    return StepLoop(kernel_cache.fetch_or_build(key, built))


def fastest(b: Bounds) -> tuple[np.ndarray, np.ndarray]:
    """x (B, N) of the fastest motions from rest to rest, and whether there is one (B,); bounds have one batch axis.

    Where a speed is above its limit between two points, x at both is lowered by as much, and both passes run again: the
    fastest motion is the largest x at every point, so nothing is faster than it was.
    """
    x, sound = _passes(b)
    over = _over(b, x)
    late = np.flatnonzero((over > SPEEDING).any(axis=-1))
    if len(late):
        again = replace(b, **{name: getattr(b, name)[late] for name in vars(b)})
        none = np.ones((len(late), 1))
        share = np.maximum(
            np.concatenate([none, over[late]], axis=-1), np.concatenate([over[late], none], axis=-1)
        )
        again = replace(
            again,
            cap=np.where(
                share > 1.0, np.minimum(again.cap, x[late] / np.maximum(share, 1.0)), again.cap
            ),
        )
        x[late], sound[late] = _passes(again)
    return x, sound


def _over(b: Bounds, x: np.ndarray) -> np.ndarray:
    """The most of pace^2 x <= 1 within each step, (B, N - 1): looked at in a few places, and where that is too much in many."""
    ends = [each for y in (b.s, x, b.pace) for each in (y[:, :-1], y[:, 1:])] + [b.bend[:, :-1]]
    found = _most(FEW, *ends)
    above = found > 1.0 + 0.5 * (SPEEDING - 1.0)
    found[above] = _most(MANY, *(y[above] for y in ends))
    return found


def _most(places: np.ndarray, s, s_next, x, x_next, pace, pace_next, bend) -> np.ndarray:
    """The most of pace^2 x at `places` of steps (...): of pace the parabola with both its ends, and its slope at the first."""
    slope = (s_next - s)[..., None] * bend
    rest, most_used = pace_next - pace - slope, np.zeros(x.shape)
    for place in places:
        between = np.square(pace + place * (slope + place * rest)).max(axis=-1)
        np.maximum(most_used, between * (x + place * (x_next - x)), out=most_used)
    return most_used


def _passes(b: Bounds) -> tuple[np.ndarray, np.ndarray]:
    """Both passes; x at the points."""
    count, points = b.s.shape
    ds, cap = np.diff(b.s)[..., None], np.minimum(b.cap, HUGE)[..., None]
    K, x, used = (np.zeros((count, points, 1)) for _ in range(3))
    rows = [
        table[:, part]
        for part in (slice(None, -1), slice(1, None))
        for table in (b.alpha, b.beta, b.gamma)
    ]
    width, rest = b.alpha.shape[-1], np.zeros((count, 1, 1))
    given = [rest, *(table[:, ::-1] for table in (*rows, cap[:, :-1], ds))]
    _pass("backward", width).run([*given, K[:, -2::-1]], points - 1, 1)
    _pass("forward", width).run([rest, *rows, ds, K[:, 1:], x[:, 1:], used[:, 1:]], points - 1, 1)
    top = x.max(axis=(1, 2))
    kept = (used.max(axis=(1, 2)) < 1.0 + SLACK) & (x <= cap * (1.0 + SLACK)).all(axis=(1, 2))
    return x[..., 0], kept & (x[:, -1, 0] <= SLACK * top) & (x[:, 1:-1] > 0.0).all(axis=(1, 2))
