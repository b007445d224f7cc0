"""The least time along a curve within its bounds (Pham and Pham 2018): two passes over the points s_i.

    end to begin    K_i: the largest x from which some u keeps the bounds, and 0 <= x + 2 (s_i+1 - s_i) u <= K_i+1
    begin to end    x_i+1 = x_i + 2 (s_i+1 - s_i) u with the largest u that keeps the bounds and x_i+1 <= K_i+1

Between two points u is constant, x = s.^2 changes linearly, and the bounds are kept at both. A row says l(x) <= u <= h(x), both
linear; the least h less the largest l is concave in x and positive at 0, where the robot can stand still: Newton's steps from
the right find its zero. Both passes are rules on any scalars; a kernel runs them for as many curves as there are lanes, the
loop over points compiled around them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from psiphi.control.law import Values
from psiphi.emitters.joined import BlockFrame
from psiphi.emitters.rollout import Rollout
from psiphi.following.bounds import Bounds
from psiphi.rollouts.parts import trace
from psiphi.rollouts.runner import ROOMS, StepLoop
from psiphi.runtime import cache
from psiphi.runtime.host import HOST
from psiphi.spatial.choices import choose, least, less, most, sign
from psiphi.spatial.entries import entries

FLAT = 1e-9  # of a row: u is not felt
HUGE = 1e100  # where there is no bound on x
NEWTON = 8  # steps; each passes at least one corner
SLACK = 1e-6  # of a bound: more is no solution


def _rows(alpha, beta, gamma) -> list[tuple]:
    """(low, high, slope) of every row, low - slope x <= u <= high - slope x."""
    out = []
    for a, b, c in zip(entries(alpha), entries(beta), entries(gamma), strict=True):
        turn = sign(a)
        inverse = 1.0 / (turn * a + FLAT)
        out.append(((-1.0 - turn * c) * inverse, (1.0 - turn * c) * inverse, turn * b * inverse))
    return out


def _active(lines: list[tuple], x, outermost) -> tuple:
    """Of lines p - r x the one that is `outermost` at x: its value, p and r."""
    best: tuple = ()
    for line in lines:
        new = line[0] - line[1] * x, *line
        beyond = outermost(new[0], best[0]) if best else 1.0
        best = tuple(choose(beyond, a, b) for a, b in zip(new, best, strict=True)) if best else new
    return best


def backward(alpha, beta, gamma, cap, ds, K) -> Values:
    """K_i from K_i+1."""
    step = 0.5 / ds[0]
    rows = [*_rows(alpha, beta, gamma), (0.0 * step, K[0] * step, step)]
    highs, lows = [(high, slope) for _, high, slope in rows], [(low, slope) for low, _, slope in rows]
    x = cap[0]
    for _ in range(NEWTON):
        high, p, r = _active(highs, x, less)
        low, q, t = _active(lows, x, lambda a, b: less(b, a))
        crossed = less(high, low)
        x = choose(crossed, (p - q) / choose(crossed, r - t, 1.0), x)
    return {"K": np.array([x])}


def forward(alpha, beta, gamma, ds, K, X) -> Values:
    """x_i+1 from x_i; K is that of i + 1."""
    x, most_u = X[0], (K[0] - X[0]) / (2.0 * ds[0])
    for _, high, slope in _rows(alpha, beta, gamma):
        most_u = least(most_u, high - slope * x)
    return {"X": np.array([most(x + 2.0 * ds[0] * most_u, 0.0)])}


@lru_cache(maxsize=32)
def _pass(name: str, rows: int) -> StepLoop:
    """The kernel of one pass, for so many rows."""
    rule, state, each = {
        "backward": (backward, "K", ("alpha", "beta", "gamma", "cap", "ds")),
        "forward": (forward, "X", ("alpha", "beta", "gamma", "ds", "K")),
    }[name]
    sizes = {"alpha": rows, "beta": rows, "gamma": rows, "cap": 1, "ds": 1, "K": 1, "X": 1}
    own = {place: sizes[place] for place in (*each, state)}

    def built() -> bytes:
        start = trace("start", {"begin": sizes[state]}, lambda begin: {state: begin})
        step = trace(name, own, rule)
        frame = BlockFrame({"start": (start, {}), name: (step, {})})
        return HOST.build(HOST.emit(Rollout(frame, (name,), ("begin",), each, (state,))), {"flops": step.count.flops})

    key = cache.key(cache.sources((*ROOMS, "following")), name, str(rows), str(HOST.key("d")), np.__version__)
    return StepLoop(cache.remember(key, built))


def fastest(b: Bounds) -> tuple[np.ndarray, np.ndarray]:
    """x (B, N) of the fastest motions from rest to rest, and whether there is one (B,); bounds have one batch axis."""
    count, points = b.s.shape
    ds = np.diff(b.s)[..., None]
    late = b.alpha[:, 1:] + 2.0 * ds * b.beta[:, 1:], b.beta[:, 1:], b.gamma[:, 1:]  # x at the end of a step is x + 2 ds u
    rows = [np.concatenate([x[:, :-1], y], axis=-1) for x, y in zip((b.alpha, b.beta, b.gamma), late, strict=True)]
    cap, K, x = np.minimum(b.cap, HUGE)[..., None], np.zeros((count, points, 1)), np.zeros((count, points, 1))
    given = [np.zeros((count, 1, 1)), *(table[:, ::-1] for table in (*rows, cap[:, :-1], ds))]
    _pass("backward", rows[0].shape[-1]).run([*given, K[:, -2::-1]], points - 1, 1)
    given = [np.zeros((count, 1, 1)), *rows, ds, K[:, 1:]]
    _pass("forward", rows[0].shape[-1]).run([*given, x[:, 1:]], points - 1, 1)
    u = np.diff(x, axis=1) / (2.0 * ds)
    used = np.abs(rows[0] * u + rows[1] * x[:, :-1] + rows[2]).max(axis=(1, 2), initial=0.0)
    kept = (used < 1.0 + SLACK) & (x <= cap * (1.0 + SLACK)).all(axis=(1, 2)) & (x[:, -1, 0] <= SLACK * x.max(axis=(1, 2)))
    return x[..., 0], kept & (x[:, 1:-1] > 0.0).all(axis=(1, 2))
