"""Many arms around one object: operations, and the seconds of a first call, as the arms become more.

python benchmarks/arms.py                counts for 2 .. 64 arms of six links, first calls for 3 .. 12 arms of seven
python benchmarks/arms.py --counts-only
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

import numpy as np

import psiphi as pp
from psiphi.robot.mechanisms.dynamics import system_stages
from psiphi.robot.mechanisms.system import System


def cell(arms: int, links: int) -> System:
    """Different random arms of hinges, each with a rigid grasp on one box."""
    made = [pp.robots.random_tree(links, i, "revolute", 0.0) for i in range(arms)]
    at = np.random.default_rng(0).normal(size=(2, arms, 3))
    held_by = [(arm, at[0, i], arm.bodies[-1].name) for i, arm in enumerate(made)]
    return pp.grasp(held_by, pp.Body.box(2.0, (0.3, 0.2, 0.4)), list(at[1]))


def counts() -> None:
    """The hub's operations at every size, Omega's as far as it is worth tracing."""
    print(f"{'arms':>5} {'hub':>9} {'a doubling':>11} {'Omega':>9}")
    last = 0
    for arms in (2, 4, 8, 16, 32, 64):
        algebra = cell(arms, 6).algebra
        hub = system_stages.dynamics(algebra, "hub").flops
        omega = (
            min(system_stages.dynamics(algebra, name).flops for name in ("free", "whole"))
            if arms <= 16
            else 0
        )
        print(
            f"{arms:5} {hub:9} {f'{hub / last:.3f}x' if last else '':>11} {omega or '':>9}",
            flush=True,
        )
        last = hub


def first_calls() -> None:
    """Processor seconds from a system to its first answer, nothing cached."""
    print(f"{'arms':>5} {'nv':>5} {'first call':>11}")
    for arms in (3, 6, 12):
        system = cell(arms, 7)
        q, rest = system.random(seed=0), np.zeros(system.nv)
        start = time.process_time()
        system.forward_dynamics(q, rest, rest)
        print(f"{arms:5} {system.nv:5} {time.process_time() - start:9.2f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--counts-only", action="store_true")
    asked = parser.parse_args()
    counts()
    if not asked.counts_only:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PSIPHI_CACHE"] = folder
            first_calls()
