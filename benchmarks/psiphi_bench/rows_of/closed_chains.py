"""Closed chains: errors to the dense system and Pinocchio, run time, operations, drift."""

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
    ClosedState,
    dense_solution,
    elbows_up,
    facing_pumas,
    four_bar,
    grasping_cell,
    pinocchio_accelerations,
    pinocchio_call,
    random_cell,
)
from psiphi_bench.row import Measurement, Size, microseconds

BATCH = 4096


def _relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def with_dense(size: Size) -> Iterator[Measurement]:
    """Random systems of 1 to 6 arms with all contact types, trees and free bases; (2.11) of S4."""
    seeds = range(2 if size.quick else 12)
    for name, index in (("accelerations", 0), ("contact forces", 1)):
        worst = 0.0
        for arms in range(1, 7):
            for seed in seeds:
                closed = random_cell(100 * seed + arms, arms)
                ours = closed.system.forward_dynamics(closed.q, closed.v, closed.tau, forces=True)
                worst = max(worst, _relative(ours[index], dense_solution(closed)[index]))
        yield Measurement(f"{6 * len(seeds)} systems, {name}", worst)


def two_arms(wrap=lambda system: system) -> ClosedState:
    """Two KUKA iiwa 14 with a box."""
    rng = np.random.default_rng(0)
    arm = pp.load("iiwa14")
    return grasping_cell([arm, arm], ["rigid", "rigid"], rng, wrap)


def with_pinocchio(size: Size) -> Iterator[Measurement]:
    """Two arms with a box, and a four-bar with a redundant row; both algorithms of Pinocchio."""
    bar = four_bar("ball")
    q = bar.assemble([0.9, -0.4, 1.9], hold=["motor"])
    q, v = bar.project(q, np.array([1.0, 0.0, 0.0]))
    for name, closed in (
        ("two arms", two_arms()),
        ("four-bar", ClosedState(bar, q, v, np.array([2.0, 0.1, -0.3]))),
    ):
        a = closed.system.forward_dynamics(closed.q, closed.v, closed.tau)
        for algorithm in ("constraintDynamics", "lcaba"):
            yield Measurement(
                f"{name}, {algorithm}", _relative(a, pinocchio_accelerations(closed, algorithm))
            )


def batch(size: Size) -> Iterator[Measurement]:
    """Forward dynamics with forces of two 7-joint arms and a box; Pinocchio, one state per call."""
    pp.set_threads(1)
    closed = two_arms()
    cell = closed.system
    rng = np.random.default_rng(1)
    q = np.broadcast_to(closed.q, (BATCH, cell.nq)).copy()
    v = np.broadcast_to(closed.v, (BATCH, cell.nv)).copy()
    tau = rng.standard_normal((BATCH, cell.nv))
    calls = {
        f"{name}, {steps} proximal steps": pinocchio_call(closed, name, (1e-10, mu, steps))[0]
        for name, mu, steps in (("constraintDynamics", 1e-10, 1), ("lcaba", 1e-6, 2))
    }
    call = partial(cell.forward_dynamics, q, v, tau, forces=True)
    ours, *theirs = best(call, *calls.values(), seconds=size.seconds)
    fastest = min(zip(theirs, calls, strict=True))
    note = f"Pinocchio's fastest: {fastest[1]}; {cell.flops()} flops"
    yield Measurement(
        "two iiwa14 and a box",
        BATCH * fastest[0] / ours,
        microseconds(ours / BATCH),
        microseconds(fastest[0]),
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


def growth_in_links(size: Size) -> Iterator[Measurement]:
    """Growth of the operations when the links of two arms double."""
    yield _growth("two arms, N = 6 .. 96", [_count(2, n) for n in (6, 12, 24, 48, 96)])


def growth_in_arms(size: Size) -> Iterator[Measurement]:
    """Growth of the operations when the number of arms of six links doubles."""
    counts = [_count(n, 6) for n in ((2, 4, 8) if size.quick else (2, 4, 8, 16, 32))]
    yield _growth(f"2 .. {2 ** len(counts)} arms of six links", counts)


def _growth(subject: str, counts: list[int]) -> Measurement:
    return Measurement(
        subject,
        max(larger / smaller for smaller, larger in pairwise(counts)),
        " ".join(map(str, counts)),
    )


def residual(size: Size) -> Iterator[Measurement]:
    """Two PUMA 560 swing a box for 10 s: RK4 at 1 kHz, projected after each step."""
    cell = facing_pumas()
    q = elbows_up(cell)
    motion = pp.simulate(cell, q, duration=1.0 if size.quick else 10.0, dt=1e-3)
    note = f"energy drift {float(motion.drift):.1e} of the largest kinetic energy"
    yield Measurement(
        "two PUMA 560 and a box", float(np.abs(np.asarray(motion.residual)).max()), note=note
    )
