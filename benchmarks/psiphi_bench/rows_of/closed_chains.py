"""Closed chains: right beside the dense system and Pinocchio, fast in batches, lean in operations, closed over time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np

import psiphi as pp
from psiphi.robot.mechanisms.dynamics import system_stages
from psiphi.robot.mechanisms.system import System
from psiphi_bench.best_of import best
from psiphi_bench.closed_cells import (
    Closed,
    at_work,
    dense_answer,
    facing_pumas,
    four_bar,
    held,
    pinocchio_answer,
    pinocchio_call,
    random_cell,
)
from psiphi_bench.row import Measured, Size, micro

BATCH = 4096


def _relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def with_dense(size: Size) -> Iterator[Measured]:
    """Random systems of 1 to 6 arms, every contact kind, trees and flying bases, against the system (2.11) of S4."""
    seeds = range(2 if size.quick else 12)
    for name, which in (("accelerations", 0), ("contact forces", 1)):
        worst = 0.0
        for arms in range(1, 7):
            for seed in seeds:
                closed = random_cell(100 * seed + arms, arms)
                ours = closed.system.forward_dynamics(closed.q, closed.v, closed.tau, forces=True)
                worst = max(worst, _relative(ours[which], dense_answer(closed)[which]))
        yield Measured(f"{6 * len(seeds)} systems, {name}", worst)


def two_arms(wrap=lambda system: system) -> Closed:
    """Two KUKA iiwa 14 with a box."""
    rng = np.random.default_rng(0)
    arm = pp.load("iiwa14")
    return held([arm, arm], ["rigid", "rigid"], rng, wrap)


def with_pinocchio(size: Size) -> Iterator[Measured]:
    """Two arms with a box, and a four-bar with a redundant row, against both of Pinocchio's algorithms."""
    bar = four_bar("ball")
    q = bar.assemble([0.9, -0.4, 1.9], hold=["motor"])
    q, v = bar.project(q, np.array([1.0, 0.0, 0.0]))
    for name, closed in (
        ("two arms", two_arms()),
        ("four-bar", Closed(bar, q, v, np.array([2.0, 0.1, -0.3]))),
    ):
        a = closed.system.forward_dynamics(closed.q, closed.v, closed.tau)
        for algorithm in ("constraintDynamics", "lcaba"):
            yield Measured(
                f"{name}, {algorithm}", _relative(a, pinocchio_answer(closed, algorithm))
            )


def batch(size: Size) -> Iterator[Measured]:
    """Forward dynamics of two 7-joint arms with a box, forces included, beside Pinocchio's faster way, a state a call."""
    pp.set_threads(1)
    closed = two_arms()
    cell = closed.system
    rng = np.random.default_rng(1)
    q = np.broadcast_to(closed.q, (BATCH, cell.nq)).copy()
    v = np.broadcast_to(closed.v, (BATCH, cell.nv)).copy()
    tau = rng.standard_normal((BATCH, cell.nv))
    ways = {
        f"{name}, {steps} proximal steps": pinocchio_call(closed, name, (1e-10, mu, steps))[0]
        for name, mu, steps in (("constraintDynamics", 1e-10, 1), ("lcaba", 1e-6, 2))
    }
    call = partial(cell.forward_dynamics, q, v, tau, forces=True)
    ours, *theirs = best(call, *ways.values(), seconds=size.seconds)
    fastest = min(zip(theirs, ways, strict=True))
    note = f"Pinocchio's faster: {fastest[1]}; {cell.flops()} flops"
    yield Measured(
        "two iiwa14 and a box",
        BATCH * fastest[0] / ours,
        micro(ours / BATCH),
        micro(fastest[0]),
        note,
    )


def _cell(arms: int, links: int) -> System:
    chain = pp.robots.chain(links)
    places = [(0.1 * i, 0.05 * i * i, 0.0) for i in range(arms)]
    return pp.grasp(
        [(chain, (float(i), 0, 0), "tool") for i in range(arms)],
        pp.Body.box(1.0, (1, 1, 1)),
        places,
    )


def _count(arms: int, links: int) -> int:
    return system_stages.dynamics(_cell(arms, links).algebra, "free").flops


def growth_in_links(size: Size) -> Iterator[Measured]:
    """Two arms: what doubling their links does to the operations."""
    yield _growth("two arms, N = 6 .. 96", [_count(2, n) for n in (6, 12, 24, 48, 96)])


def growth_in_arms(size: Size) -> Iterator[Measured]:
    """Arms of six links: what doubling their number does to the operations."""
    counts = [_count(n, 6) for n in ((2, 4, 8) if size.quick else (2, 4, 8, 16, 32))]
    yield _growth(f"2 .. {2 ** len(counts)} arms of six links", counts)


def _growth(subject: str, counts: list[int]) -> Measured:
    return Measured(
        subject, max(more / less for less, more in pairwise(counts)), " ".join(map(str, counts))
    )


def residual(size: Size) -> Iterator[Measured]:
    """Two PUMA 560 drop and swing a box for ten seconds, RK4 at 1 kHz, put back on the constraints after each step."""
    cell = facing_pumas()
    q = at_work(cell)
    motion = pp.simulate(cell, q, duration=1.0 if size.quick else 10.0, dt=1e-3)
    note = f"energy drift {float(motion.drift):.1e} of the largest kinetic energy"
    yield Measured(
        "two PUMA 560 and a box", float(np.abs(np.asarray(motion.residual)).max()), note=note
    )
