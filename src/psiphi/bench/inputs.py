"""Numbers of a robot as inputs: a batch with inertias or masses of its own for every element, on one core."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import psiphi as pp
from psiphi.bench import robots
from psiphi.bench.agreement import states
from psiphi.bench.row import Measured, Size, micro
from psiphi.bench.speed import BATCH
from psiphi.bench.timing import best

BASES = {"UR5": "fixed", "Panda": "fixed", "G1": "free"}


def inertias(size: Size) -> Iterator[Measured]:
    """Forward dynamics with inertias of each element, of the time it takes with constant ones."""
    for name in BASES if not size.quick else ("UR5",):
        ours, theirs, flops = _times(name, "inertia", size)
        yield Measured(name, ours / theirs, micro(ours / BATCH), micro(theirs / BATCH), f"{flops} flops")


def masses(size: Size) -> Iterator[Measured]:
    """Forward dynamics of 4096 robots that differ in their masses, one call."""
    ours, theirs, _ = _times("UR5", "mass", size)
    yield Measured("UR5", 1e3 * ours, micro(ours / BATCH), micro(theirs / BATCH))


def _times(name: str, word: str, size: Size) -> tuple[float, float, int]:
    pp.set_threads(1)
    robot = pp.load(robots.urdf(name), base=BASES[name])
    light, given = robot.free(word), states(robot, BATCH)
    q, v, tau, out = given["q"], given["v"], given["tau"], np.empty((BATCH, robot.nv))
    p = light.randomised(BATCH, seed=0)
    ours, theirs = best(
        partial(light.forward_dynamics, q, v, tau, parameters=p, out=out),
        partial(robot.forward_dynamics, q, v, tau, out=out),
        seconds=size.seconds,
    )
    return ours, theirs, light.flops("forward_dynamics")
