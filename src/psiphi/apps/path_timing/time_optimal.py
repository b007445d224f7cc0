"""The least time along a curve within its bounds (Pham and Pham 2018): two passes over points s_i.

    backward   K_i: the largest x for which some u meets the bounds, and
               0 <= x + 2 (s_i+1 - s_i) u <= K_i+1
    forward    x_i+1 = x_i + 2 (s_i+1 - s_i) u with the largest u that meets the bounds and
               x_i+1 <= K_i+1

Between two points u is constant and x = s.^2 is linear in s. The bounds hold at both points; speed
limits also hold between them. A row says l(x) <= u <= h(x), both linear. The least h minus the
greatest l is concave in x and positive at 0, where the robot can stand still: Newton steps from the
right find its zero. Both passes are rules on any scalars, compiled with the loop over the points;
each SIMD lane times one curve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, reduce

import numpy as np

from psiphi._util.array_types import AnyScalar
from psiphi.apps.path_timing.path_limits import Bounds
from psiphi.backends.kernel_cache import kernel_key
from psiphi.compiler.ir.block_frame import BlockFrame, NamedBlocks
from psiphi.compiler.ir.loop_nodes import Repeat, Rollout
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.model.spatial.branch_free import choose, less, maximum, minimum, sign
from psiphi.model.spatial.scalar_arrays import entries
from psiphi.simulation.compiled_rollout.rollout_runner import StepLoop
from psiphi.simulation.compiled_rollout.step_blocks import trace
from psiphi.simulation.control.control_law import Values

FLAT = 1e-9  # |alpha| below which a row does not limit u
HUGE = 1e100  # cap where x is not bounded
NEWTON = 30  # Newton steps at most; each passes at least one corner
BEGIN = ("alpha", "beta", "gamma")  # rows at the begin of a step
END = ("alpha_next", "beta_next", "gamma_next")  # rows at its end
SLACK = 1e-6  # relative violation of a bound from which a path is infeasible
SPEEDING = 1.02  # largest square of speed / limit between two points
FEW, MANY = np.array([0.3, 0.6, 0.85]), np.arange(1, 16) / 16.0  # fractions of a step to check
BoundRow = tuple[AnyScalar, AnyScalar, AnyScalar]


def _rows(ds: np.ndarray, rows: dict[str, np.ndarray]) -> list[BoundRow]:
    """alpha, beta, gamma of the rows at both ends of a step, in terms of x at its begin.

    x at the end is x + 2 ds u.
    """
    begin, end = (
        list(zip(*(entries(rows[name]) for name in names), strict=True)) for names in (BEGIN, END)
    )
    return begin + [(a + 2.0 * ds[0] * b, b, c) for a, b, c in end]


def _lines(ds: np.ndarray, rows: dict[str, np.ndarray]) -> list[BoundRow]:
    """(low, high, slope) of every row: low - slope x <= u <= high - slope x."""
    lines = []
    for a, b, c in _rows(ds, rows):
        s = sign(a)
        inverse = 1.0 / (s * a + FLAT)
        lines.append(((-1.0 - s * c) * inverse, (1.0 - s * c) * inverse, s * b * inverse))
    return lines


def _extreme(lines: list[tuple], x: AnyScalar, beyond: Callable) -> tuple:
    """Value, p and r of the line p - r x that is extreme at x: no other is `beyond` it.

    A reduction by pairs: the chain of dependent choices is short.
    """
    left = [(p - r * x, p, r) for p, r in lines]
    while len(left) > 1:
        pairs, odd = zip(left[::2], left[1::2], strict=False), left[len(left) - len(left) % 2 :]
        left = [_choose_line(beyond(b[0], a[0]), a, b) for a, b in pairs] + odd
    return left[0]


def _choose_line(condition: AnyScalar, a: tuple, b: tuple) -> tuple:
    """b if the condition is 1, else a."""
    return tuple(choose(condition, y, x) for x, y in zip(a, b, strict=True))


def backward(cap: np.ndarray, ds: np.ndarray, K: np.ndarray, **rows: np.ndarray) -> Values:
    """From K_i+1: the lines at point i, and K_i after one Newton step from the cap."""
    step = 0.5 / ds[0]
    lines = [*_lines(ds, rows), (0.0 * step, K[0] * step, step)]
    low, high, slope = (list(x) for x in zip(*lines, strict=True))
    return {"lines": np.array([*low, *high, *slope])} | _newton_step(low, high, slope, cap[0])


def newton(lines: np.ndarray, K: np.ndarray) -> Values:
    """K_i after another Newton step."""
    low, high, slope = np.reshape(lines, (3, -1)).tolist()
    return _newton_step(low, high, slope, K[0])


def _newton_step(low: list, high: list, slope: list, x: AnyScalar) -> Values:
    top, p, r = _extreme(list(zip(high, slope, strict=True)), x, less)
    bottom, q, t = _extreme(list(zip(low, slope, strict=True)), x, lambda a, b: less(b, a))
    crossed = less(top, bottom)
    x = choose(crossed, (p - q) / choose(crossed, r - t, 1.0), x)
    return {"K": np.array([x]), "crossed": np.array([crossed]), "done": np.array([1.0 - crossed])}


def forward(ds: np.ndarray, K: np.ndarray, X: np.ndarray, **rows: np.ndarray) -> Values:
    """x_i+1 from x_i, and the share of the bounds it uses; K is K_i+1."""
    x, most_u = X[0], (K[0] - X[0]) / (2.0 * ds[0])
    for _, high, slope in _lines(ds, rows):
        most_u = minimum(most_u, high - slope * x)
    following = maximum(x + 2.0 * ds[0] * most_u, 0.0)
    u = (following - x) / (2.0 * ds[0])
    used = [a * u + b * x + c for a, b, c in _rows(ds, rows)]
    most_used = reduce(maximum, (maximum(y, -y) for y in used))
    return {"X": np.array([following]), "used": np.array([most_used])}


@lru_cache(maxsize=32)
def _pass(name: str, count: int) -> StepLoop:
    """The kernel of one pass, for `count` rows."""
    rule, inputs, state = {
        "backward": (backward, (*BEGIN, *END, "cap", "ds"), ("K",)),
        "forward": (forward, (*BEGIN, *END, "ds", "K"), ("X", "used")),
    }[name]
    sizes = dict.fromkeys((*BEGIN, *END), count) | {"lines": 3 * (2 * count + 1)}

    def block(name: str, rule: Callable[..., Values], places: tuple[str, ...]) -> StraightCode:
        return trace(name, {place: sizes.get(place, 1) for place in places}, rule)

    def rollout() -> tuple[Rollout, dict[str, int]]:
        start = block("start", lambda begin: dict.fromkeys(state, begin), ("begin",))
        step = block(name, rule, (*inputs, state[0]))
        blocks: NamedBlocks = {"start": (start, {}), name: (step, {})}
        repeats: tuple[Repeat, ...] = ()
        if name == "backward":
            blocks["newton"] = block("newton", newton, ("lines", "K")), {}
            repeats = (Repeat("again", name, "crossed", (), ("newton",), "done", NEWTON),)
        order = tuple(repeat.name for repeat in repeats) or (name,)
        loop = Rollout(BlockFrame(blocks), order, ("begin",), inputs, state, repeats)
        return loop, {"flops": step.count.flops}

    return StepLoop(lambda target: kernel_key(name, str(count), str(target.key("d"))), rollout)


def fastest(b: Bounds) -> tuple[np.ndarray, np.ndarray]:
    """x (B, N) of the motions of least time from rest to rest, and whether there is one (B,).

    Bounds have one batch axis. Where a speed exceeds its limit between two points, the cap at both
    is lowered by the excess, and both passes run again. The fastest motion has the largest x at
    every point, so lower caps never make another part faster.
    """
    x, feasible = _run_passes(b)
    excess = _excess_speed(b, x)
    late = np.flatnonzero((excess > SPEEDING).any(axis=-1))
    if len(late):
        again = replace(b, **{name: getattr(b, name)[late] for name in vars(b)})
        one = np.ones((len(late), 1))
        excess = excess[late]
        share = np.maximum(
            np.concatenate([one, excess], axis=-1), np.concatenate([excess, one], axis=-1)
        )
        lowered = np.minimum(again.cap, x[late] / np.maximum(share, 1.0))
        again = replace(again, cap=np.where(share > 1.0, lowered, again.cap))
        x[late], feasible[late] = _run_passes(again)
    return x, feasible


def _excess_speed(b: Bounds, x: np.ndarray) -> np.ndarray:
    """The largest speed^2 x within each step, (B, N - 1): at few points, at many if above 1."""
    ends = [part for y in (b.s, x, b.speed) for part in (y[:, :-1], y[:, 1:])]
    ends.append(b.curvature[:, :-1])
    found = _largest_speed(FEW, *ends)
    above = found > 1.0 + 0.5 * (SPEEDING - 1.0)
    found[above] = _largest_speed(MANY, *(y[above] for y in ends))
    return found


def _largest_speed(
    fractions: np.ndarray,
    s: np.ndarray,
    s_next: np.ndarray,
    x: np.ndarray,
    x_next: np.ndarray,
    speed: np.ndarray,
    speed_next: np.ndarray,
    curvature: np.ndarray,
) -> np.ndarray:
    """The largest speed^2 x at these fractions of steps (...).

    q' is the parabola through both ends with the slope q'' at the first.
    """
    slope = (s_next - s)[..., None] * curvature
    rest, largest = speed_next - speed - slope, np.zeros(x.shape)
    for f in fractions:
        square = np.square(speed + f * (slope + f * rest)).max(axis=-1)
        np.maximum(largest, square * (x + f * (x_next - x)), out=largest)
    return largest


def _run_passes(b: Bounds) -> tuple[np.ndarray, np.ndarray]:
    """Both passes: x at the points, and whether it meets the bounds."""
    count, points = b.s.shape
    ds, cap = np.diff(b.s)[..., None], np.minimum(b.cap, HUGE)[..., None]
    K, x, used = (np.zeros((count, points, 1)) for _ in range(3))
    rows = [
        table[:, part]
        for part in (slice(None, -1), slice(1, None))
        for table in (b.alpha, b.beta, b.gamma)
    ]
    width, rest = b.alpha.shape[-1], np.zeros((count, 1, 1))
    reversed_inputs = [table[:, ::-1] for table in (*rows, cap[:, :-1], ds)]
    _pass("backward", width).run([rest, *reversed_inputs, K[:, -2::-1]], points - 1, 1)
    _pass("forward", width).run([rest, *rows, ds, K[:, 1:], x[:, 1:], used[:, 1:]], points - 1, 1)
    within = (used.max(axis=(1, 2)) < 1.0 + SLACK) & (x <= cap * (1.0 + SLACK)).all(axis=(1, 2))
    at_rest = x[:, -1, 0] <= SLACK * x.max(axis=(1, 2))
    return x[..., 0], within & at_rest & (x[:, 1:-1] > 0.0).all(axis=(1, 2))
