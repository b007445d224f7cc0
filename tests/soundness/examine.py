"""One expression on one robot: written, compiled, run, and held against `.dense` and the oracle.

Allowed: right; evaluated densely (`f.dense`) and right; refused in words (a psiphi.Error) when
written or when the function is made; NaN, or a SingularError, where something under .inv is
singular. Anything else is a failure. A state alone gives the same bits as the same state in a
batch.

How close is close enough: the oracle's value is computed three times, twice with every number and
every operation blurred by 1e-11. The answers must lie within 30 times the spread of the three (and
1e-11 of the largest entry). So what a nearly singular inverse or a difference of equals may lose is
allowed for, and nothing else. Where 30 spreads are more than 1e-3 of the value, there is nothing to
hold it against: "blurred".
"""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import psiphi as pp
from tests.soundness import robots
from tests.soundness.oracle import NoValue, Oracle, Singular, Value
from tests.soundness.recipes import Node, named, read, text
from tests.soundness.robots import Spec

STATES = 2
BUDGET = 5.0  # seconds of rewriting
SLACK = 5.0  # beyond it, of this process's own time: lowering and compiling
PATIENCE = 30  # seconds of processor time until a case is given up
SPREADS, FLOOR, VAGUE = 30.0, 1e-11, 1e-3
REGULAR, SINGULAR = 1e-7, 1e-12  # conditions: above, there must be numbers; below, none

RIGHT = ("right", "dense", "refused", "singular", "blurred")


class Outcome(NamedTuple):
    """What came of it: one of RIGHT, or what went wrong."""

    kind: str
    detail: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.kind in RIGHT


class Case(NamedTuple):
    """An expression on a robot."""

    robot: Spec
    node: Node

    def source(self) -> str:
        """A script that shows it."""
        lines = [
            "import sys; sys.path[:0] = ['.', 'src']",
            "import psiphi as pp",
            "from tests.soundness.examine import again",
            "from tests.soundness.robots import build",
            f"joints = {[tuple(j) for j in self.robot.joints]!r}",
            f"s = build(joints, seed={self.robot.seed}).operators",
            f"e = {text(self.node)}",
            f"print(again(joints, {self.robot.seed}, {text(self.node)!r}))",
        ]
        return "\n".join(lines)


def again(joints, seed: int, source: str) -> Outcome:
    """Examine what a report printed."""
    return examine(Case(Spec(tuple(robots.Joint(*row) for row in joints), seed), read(source)))


def values(node: Node, widths: dict[str, int], seed: int) -> dict[str, np.ndarray]:
    """Numbers for the vectors of a recipe, (STATES, n) each."""
    rng = np.random.default_rng([seed, 13])
    return {name: rng.standard_normal((STATES, widths[name])) for name in sorted(named(node))}


def widths(robot: Any, node: Node) -> dict[str, int]:
    """How many numbers each vector holds; those of frames by the frames they meet."""
    fixed = {"joint": robot.nv, **dict.fromkeys(("link", "motion", "force"), 6 * len(robot.bodies))}
    found = named(node)
    out = {name: fixed[space] for name, space in found.items() if space != "frame"}
    frames = list(
        dict.fromkeys(_rateless(name, found) for name, space in found.items() if space == "frame")
    )
    counts = dict(zip(frames, _frame_counts(node, frames, out, robot), strict=True))
    return out | {
        name: 6 * counts[_rateless(name, found)]
        for name, space in found.items()
        if space == "frame"
    }


def _rateless(name: str, found: dict[str, str]) -> str:
    """The vector whose rate x_dot is, where both are there."""
    while name.endswith("_dot") and name.removesuffix("_dot") in found:
        name = name.removesuffix("_dot")
    return name


def _frame_counts(
    node: Node, names: list[str], known: dict[str, int], robot: Any
) -> tuple[int, ...]:
    """By trying: one, two or three frames each (the shapes fit only with the right numbers)."""
    q, v = robots.state(robot, 0, 1)
    for counts in product((1, 2, 3), repeat=len(names)) if names else [()]:
        given = {x: np.ones(n) for x, n in known.items()}
        for name, count in zip(names, counts, strict=True):
            given |= {x: np.ones(6 * count) for x in (name, f"{name}_dot", f"{name}_dot_dot")}
        try:
            Oracle(robot, q[0], v[0], given).value(node)
        except Singular:
            return counts
        except (ValueError, NoValue):
            continue
        return counts
    return (1,) * len(names)


def expected(robot: Any, node: Node, q, v, given) -> tuple[np.ndarray | None, float, float]:
    """(value, tolerance, worst condition under .inv) at one state; None where it has no value."""
    plain = Oracle(robot, q, v, given)
    try:
        value = plain.value(node)
    except Singular:
        return None, 0.0, 0.0
    assert isinstance(value, Value), "a multiple of I has no size of its own"
    worst = min(plain.conditions, default=1.0)
    spread = 0.0
    for seed in (1, 2):
        try:
            other = Oracle(robot, q, v, given, blur=np.random.default_rng(seed)).value(node)
        except Singular:
            return value.m, np.inf, worst
        assert isinstance(other, Value)
        spread = max(spread, float(np.abs(other.m - value.m).max(initial=0.0)))
    return value.m, SPREADS * spread + FLOOR * float(np.abs(value.m).max(initial=1.0)), worst


class Patience(BaseException):
    """A case took too long."""


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raises `Patience` after so many seconds of processor time: a busy machine is no fault of the
    case."""

    def stop(*_):
        raise Patience

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def examine(case: Case) -> Outcome:
    """What becomes of the expression."""
    try:
        with limited(PATIENCE):
            return _examine(case)
    except Patience:
        return Outcome("slow", f"more than {PATIENCE} s", PATIENCE)


def _examine(case: Case) -> Outcome:
    robot = robots.build(*case.robot)
    q, v = robots.state(robot, case.robot.seed, STATES)
    given = values(case.node, widths(robot, case.node), case.robot.seed)
    if "v" in given:
        given["v"] = v
    start, stage = time.process_time(), "written"
    try:
        e = eval(text(case.node), {"s": robot.operators, "pp": pp})
        stage = "made"
        f = pp.function(e)
        dense, names = f.dense, _arguments(f)[1:]
        assert isinstance(f.explain(), str) and f.sweeps >= 0
    except pp.Error as error:
        return Outcome("refused", f"{stage}: {error}", time.process_time() - start)
    except Exception as error:
        return crash(stage, error)
    seconds = time.process_time() - start
    if seconds > BUDGET + SLACK:
        return Outcome("slow", f"{seconds:.1f} s", seconds)
    want = [
        expected(robot, case.node, q[i], v[i], {k: x[i] for k, x in given.items()})
        for i in range(STATES)
    ]
    got = _numbers(lambda: f(q, *(v if name == "v" else given[name] for name in names)), "called")
    if isinstance(got, Outcome):
        if got.kind != "SingularError":
            return got
        got = np.full((STATES, *_shape(e)), np.nan)
    outcome = _compare("f.dense" if dense else "compiled", got, want, _shape(e))
    if not outcome.ok:
        return outcome
    alone = _numbers(
        lambda: f(q[0], *(v[0] if name == "v" else given[name][0] for name in names)), "called"
    )
    if not dense and not (
        isinstance(alone, np.ndarray) and np.array_equal(alone, got[0], equal_nan=True)
    ):
        return Outcome("wrong", "compiled: one state alone is not the first of a batch")
    meaning = _dense(e, q, v, {name: given[name] for name in names if name != "v"})
    if isinstance(meaning, Outcome):
        return meaning
    second = _compare(".dense", meaning, want, _shape(e))
    if not second.ok:
        return second
    return Outcome("dense" if dense and outcome.kind == "right" else outcome.kind, "", seconds)


def _arguments(f: Any) -> list[str]:
    """The names of the function's arguments, q first."""
    return [argument.name for argument in f.equation.arguments()[0]]


def _shape(e: Any) -> tuple[int, ...]:
    return tuple(
        n for n, space in zip(e.shape, (e.rows, e.cols), strict=True) if space.name != "one"
    )


def _dense(e: Any, q, v, given) -> np.ndarray | Outcome:
    """`.dense`, state by state; NaN where it says that something is singular."""
    rows = []
    for i in range(STATES):
        row = _numbers(
            lambda i=i: e.dense(q[i], v[i], **{k: x[i] for k, x in given.items()}), ".dense"
        )
        if isinstance(row, Outcome):
            if row.kind != "SingularError":
                return row
            row = np.full(_shape(e), np.nan)
        rows.append(row)
    return np.array(rows)


def _numbers(call: Callable[[], Any], stage: str) -> np.ndarray | Outcome:
    try:
        return np.asarray(call())
    except pp.SingularError as error:
        return Outcome("SingularError", str(error))
    except pp.Error as error:
        return Outcome("late", f"{stage}: {error}")
    except Exception as error:
        return crash(stage, error)


def crash(stage: str, error: Exception) -> Outcome:
    """An exception that is none of psiphi's words, and where it came from."""
    where = [f for f in traceback.extract_tb(error.__traceback__) if "/psiphi/" in f.filename]
    place = f" ({where[-1].filename.split('/psiphi/')[-1]}: {where[-1].name})" if where else ""
    return Outcome("crash", f"{stage}: {type(error).__name__}: {str(error)[:200]}{place}")


def _compare(what: str, got: np.ndarray, want: list, shape: tuple[int, ...]) -> Outcome:
    if got.shape != (STATES, *shape):
        return Outcome("wrong", f"{what}: shape {got.shape}, expected {(STATES, *shape)}")
    kinds = []
    for row, (value, tolerance, worst) in zip(got, want, strict=True):
        if value is None or worst < SINGULAR:
            if not np.isnan(row).any() and row.size:
                return Outcome(
                    "wrong",
                    f"{what}: numbers up to {np.abs(row).max():.3g} where the oracle says singular",
                )
            kinds.append("singular")
            continue
        value = value.reshape(row.shape)
        if np.isnan(row).any():
            if worst > REGULAR:
                return Outcome(
                    "wrong", f"{what}: NaN where the oracle has numbers, condition {worst:.1g}"
                )
            kinds.append("singular")
            continue
        error, scale = (
            float(np.abs(row - value).max(initial=0.0)),
            float(np.abs(value).max(initial=0.0)),
        )
        if tolerance > VAGUE * max(scale, 1.0):
            kinds.append("blurred")
        elif not error <= tolerance:
            return Outcome(
                "wrong",
                f"{what}: off by {error:.3g} (tolerance {tolerance:.1g}, largest entry "
                f"{scale:.3g})",
            )
        else:
            kinds.append("right")
    return Outcome("right" if "right" in kinds else kinds[0])
