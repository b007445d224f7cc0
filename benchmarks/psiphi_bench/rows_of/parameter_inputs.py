"""Parameters as inputs: a batch of inertias or masses, and the torque regressor. On one core."""

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
from psiphi_bench.row import Measurement, Size, microseconds
from psiphi_bench.rows_of.run_time import BATCH

REGRESSORS, PEER_STATES = (
    512,
    32,
)  # states per call (43 MB of results for a G1); states that Pinocchio computes
BASES = {"UR5": "fixed", "Panda": "fixed", "G1": "free"}


def inertias(size: Size) -> Iterator[Measurement]:
    """Forward dynamics with free inertias, relative to constant inertias.

    The parameters are arguments of every call, or bound once with `light.at(parameters)`.
    """
    for name in BASES if not size.quick else ("UR5",):
        light, (passed, bound, constant) = _times(name, "inertia", size)
        note = f"{light.flops('forward_dynamics')} flops"
        yield Measurement(
            name,
            passed / constant,
            microseconds(passed / BATCH),
            microseconds(constant / BATCH),
            note,
        )
        yield Measurement(
            f"{name}, bound once",
            bound / constant,
            microseconds(bound / BATCH),
            microseconds(constant / BATCH),
        )


def masses(size: Size) -> Iterator[Measurement]:
    """Forward dynamics of 4096 robots with different masses in one call."""
    for name in BASES if not size.quick else ("UR5",):
        _, (passed, _, constant) = _times(name, "mass", size)
        yield Measurement(
            name, 1e3 * passed, microseconds(passed / BATCH), microseconds(constant / BATCH)
        )


def regressors(size: Size) -> Iterator[Measurement]:
    """tau = Y pi: a batch of Y into the same array, and Pinocchio, one state per call."""
    pp.set_threads(1)
    for name in BASES if not size.quick else ("UR5",):
        robot, peer = example_robots.load_with_pinocchio(name, BASES[name])
        state = states(robot, REGRESSORS)
        q, v, a = state["q"], state["v"], state["a"]
        L, out = peer.layout, robot.regressor(q, v, a)
        rows = list(zip(L.to_q(q), L.to_v(v, q), L.to_tau(a, q), strict=True))[:PEER_STATES]
        ours, theirs = best(
            partial(robot.regressor, q, v, a, out=out),
            partial(
                _each, partial(pinocchio.computeJointTorqueRegressor, peer.peer, peer.data), rows
            ),
            seconds=size.seconds,
        )
        ours, theirs = ours / REGRESSORS, theirs / PEER_STATES
        note = f"{out[0].nbytes / 1e3:.3g} kB per state"
        yield Measurement(name, theirs / ours, microseconds(ours), microseconds(theirs), note)


def _each(call: Callable[..., object], rows: list[tuple]) -> None:
    for row in rows:
        call(*row)


def _times(name: str, word: str, size: Size) -> tuple[Any, list[float]]:
    """The free robot; seconds per call with passed, bound and constant parameters."""
    pp.set_threads(1)
    robot = pp.load(example_robots.urdf(name), base=BASES[name])
    light, state = robot.free(word), states(robot, BATCH)
    q, v, tau, out = state["q"], state["v"], state["tau"], np.empty((BATCH, robot.nv))
    p = light.randomised(BATCH, seed=0)
    calls = (
        partial(light.forward_dynamics, parameters=p),
        light.at(p).forward_dynamics,
        robot.forward_dynamics,
    )
    return light, best(*(partial(call, q, v, tau, out=out) for call in calls), seconds=size.seconds)
