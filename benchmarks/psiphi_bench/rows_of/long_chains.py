"""Long chains: run time per link, compile time, and a chain of 10 000 links."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np

import psiphi as pp
from psiphi_bench.agreement import states
from psiphi_bench.best_of import best
from psiphi_bench.row import Measurement, Size, microseconds
from psiphi_bench.rows_of import fresh_process

BATCH, LINKS = 1024, 10_000
EQUAL = {True: "equal links", False: "unequal links"}


def run_time(size: Size) -> Iterator[Measurement]:
    """Time per link of forward dynamics in a batch, relative to a chain of ten links."""
    pp.set_threads(1)
    for equal in (True, False):
        short = _per_link(10, equal, size)
        for n in (100, 1000):
            ours = _per_link(n, equal, size)
            yield Measurement(
                f"N = {n}, {EQUAL[equal]}",
                ours / short,
                f"{microseconds(ours)} per link",
                f"{microseconds(short)} at N = 10",
            )


def _per_link(n: int, equal: bool, size: Size) -> float:
    robot = pp.robots.chain(n, equal=equal)
    state = states(robot, BATCH)
    out = np.empty_like(state["v"])
    call = partial(robot.forward_dynamics, state["q"], state["v"], state["tau"], out=out)
    return best(call, seconds=size.seconds)[0] / (BATCH * n)


def compile_time(size: Size) -> Iterator[Measurement]:
    """First call of forward dynamics in a fresh process with an empty cache."""
    for equal in (True, False):
        for n in (1000,) if size.quick else (10, 100, 1000):
            with fresh_process.empty_cache():
                run = fresh_process.first_call(f"pp.robots.chain({n}, equal={equal})")
            yield Measurement(
                f"N = {n}, {EQUAL[equal]}",
                run["call"],
                note=f"import and load before it: {run['load']:.2g} s",
            )


def ten_thousand_seconds(size: Size) -> Iterator[Measurement]:
    """Import, load and one forward dynamics of a chain of 10 000 links: total time."""
    for subject, run in _ten_thousand(size).items():
        yield Measurement(
            subject, run["total"], note=f"load {run['load']:.2g} s, first call {run['call']:.2g} s"
        )


def ten_thousand_memory(size: Size) -> Iterator[Measurement]:
    """The peak memory of the same process."""
    for subject, run in _ten_thousand(size).items():
        yield Measurement(subject, run["memory"] / 1e6)


@cache
def _ten_thousand(size: Size) -> dict[str, dict[str, float]]:
    with fresh_process.empty_cache():
        runs = {"built in Python": fresh_process.first_call(f"pp.robots.chain({LINKS})")}
    if size.quick:
        return runs
    with tempfile.TemporaryDirectory() as folder, fresh_process.empty_cache():
        file = Path(folder) / "chain.urdf"
        pp.robots.chain(LINKS).save(file)
        return runs | {"from a URDF file": fresh_process.first_call(f"pp.load({str(file)!r})")}
