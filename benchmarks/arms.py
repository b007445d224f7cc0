"""Many arms that hold one object: operation counts and times of first calls by number of arms.

python benchmarks/arms.py                  2 .. 64 arms of six links; first calls for 3 .. 12 arms
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
    """Different random arms with revolute joints; each grasps the same box rigidly."""
    robots = [pp.robots.random_tree(links, i, "revolute", 0.0) for i in range(arms)]
    points = np.random.default_rng(0).normal(size=(2, arms, 3))
    arms_at = [(arm, points[0, i], arm.bodies[-1].name) for i, arm in enumerate(robots)]
    return pp.grasp(arms_at, pp.Body.box(2.0, (0.3, 0.2, 0.4)), list(points[1]))


def counts() -> None:
    """Operations with the hub method, and with Omega for up to 16 arms."""
    print(f"{'arms':>5} {'hub':>9} {'growth':>11} {'Omega':>9}")
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
    """CPU seconds of the first call, without a cache."""
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
    args = parser.parse_args()
    counts()
    if not args.counts_only:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PSIPHI_CACHE"] = folder
            first_calls()
