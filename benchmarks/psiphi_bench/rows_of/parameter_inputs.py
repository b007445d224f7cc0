"""Numbers of a robot as inputs: a batch with inertias or masses of its own for every element; and torques as linear functions
of them. On one core."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import psiphi as pp
from psiphi_bench import example_robots
from psiphi_bench.agreement import states
from psiphi_bench.best_of import best
from psiphi_bench.peers.lazy_import import pinocchio
from psiphi_bench.row import Measured, Size, micro
from psiphi_bench.rows_of.run_time import BATCH

REGRESSORS, SOME = (
    512,
    32,
)  # states at once: of a G1 43 MB of results; and how many of them the peer is asked for
BASES = {"UR5": "fixed", "Panda": "fixed", "G1": "free"}


def inertias(size: Size) -> Iterator[Measured]:
    """Forward dynamics with inertias of each element, of the time it takes with constant ones: given anew at every call, and
    given once, `light.at(parameters)`."""
    for name in BASES if not size.quick else ("UR5",):
        light, (anew, once, constant) = _times(name, "inertia", size)
        note = f"{light.flops('forward_dynamics')} flops"
        yield Measured(name, anew / constant, micro(anew / BATCH), micro(constant / BATCH), note)
        yield Measured(
            f"{name}, given once", once / constant, micro(once / BATCH), micro(constant / BATCH)
        )


def masses(size: Size) -> Iterator[Measured]:
    """Forward dynamics of 4096 robots that differ in their masses, one call."""
    for name in BASES if not size.quick else ("UR5",):
        _, (anew, _, constant) = _times(name, "mass", size)
        yield Measured(name, 1e3 * anew, micro(anew / BATCH), micro(constant / BATCH))


def regressors(size: Size) -> Iterator[Measured]:
    """tau = Y pi: batches of Y, written over the last ones, beside Pinocchio's, state by state from Python."""
    pp.set_threads(1)
    for name in BASES if not size.quick else ("UR5",):
        robot, peer = example_robots.beside(name, BASES[name])
        given = states(robot, REGRESSORS)
        q, v, a = given["q"], given["v"], given["a"]
        L, out = peer.layout, robot.regressor(q, v, a)
        rows = list(zip(L.to_q(q), L.to_v(v, q), L.to_tau(a, q), strict=True))[:SOME]
        ours, theirs = best(
            partial(robot.regressor, q, v, a, out=out),
            partial(
                _each, partial(pinocchio.computeJointTorqueRegressor, peer.peer, peer.data), rows
            ),
            seconds=size.seconds,
        )
        ours, theirs = ours / REGRESSORS, theirs / SOME
        note = f"{out[0].nbytes / 1e3:.3g} kB a state"
        yield Measured(name, theirs / ours, micro(ours), micro(theirs), note)


def _each(call: Callable[..., object], rows: list[tuple]) -> None:
    for row in rows:
        call(*row)


def _times(name: str, word: str, size: Size) -> tuple[Any, list[float]]:
    """The robot with these numbers free, and seconds a call: with numbers given anew, given once, and with constant ones."""
    pp.set_threads(1)
    robot = pp.load(example_robots.urdf(name), base=BASES[name])
    light, given = robot.free(word), states(robot, BATCH)
    q, v, tau, out = given["q"], given["v"], given["tau"], np.empty((BATCH, robot.nv))
    p = light.randomised(BATCH, seed=0)
    calls = (
        partial(light.forward_dynamics, parameters=p),
        light.at(p).forward_dynamics,
        robot.forward_dynamics,
    )
    return light, best(*(partial(call, q, v, tau, out=out) for call in calls), seconds=size.seconds)
