"""Derivatives of dynamics: a batch on one core, and Pinocchio's analytic derivatives.

psiphi writes the matrices of a whole batch to arrays. A call of Pinocchio writes those of one state
to `data`, which the next call overwrites. The figure is the ratio to that call; the note also has
the ratio to a loop that copies the matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import psiphi as pp
from psiphi.robot.robot import Robot
from psiphi_bench import example_robots
from psiphi_bench.agreement import Deviation, states
from psiphi_bench.best_of import best
from psiphi_bench.interpreted_robot import evaluate_tape
from psiphi_bench.peers.lazy_import import pinocchio
from psiphi_bench.peers.pinocchio_peer import Pin
from psiphi_bench.row import Measurement, Size, microseconds
from psiphi_bench.rows_of.run_time import BATCH

PEER_STATES = 64  # states that Pinocchio computes
CALLS = {
    "forward_dynamics": ("computeABADerivatives", "tau"),
    "inverse_dynamics": ("computeRNEADerivatives", "a"),
}
PARTS = {
    "forward_dynamics": ("ddq_dq", "ddq_dv", "Minv"),
    "inverse_dynamics": ("dtau_dq", "dtau_dv", "M"),
}


def matrices(
    function: str, names: tuple[str, ...], base: str
) -> Callable[[Size], Iterator[Measurement]]:
    """d/d(q, v, last argument) of a batch in one call, and Pinocchio's call for one state."""

    def measure(size: Size) -> Iterator[Measurement]:
        pp.set_threads(1)
        # a humanoid takes minutes to compile
        for name in names if base == "fixed" or not size.quick else ():
            pair = _DerivativePair(function, name, base)
            a, b, c = best(pair.batch, pair.peer_call, pair.peer_copies, seconds=size.seconds)
            a, c = a / BATCH, c / PEER_STATES
            copied = f"with copies of Pinocchio's matrices: {microseconds(c)}, {c / a:.3g}x"
            note = f"{pair.flops} flops; {copied}"
            yield Measurement(name, b / a, microseconds(a), microseconds(b), note)

    return measure


def one_call(size: Size) -> Iterator[Measurement]:
    """The three matrices of a UR5's forward dynamics from Python."""
    pair = _DerivativePair("forward_dynamics", "UR5", "fixed")
    a, b = best(pair.single, pair.peer_call, seconds=2 * size.seconds)
    yield Measurement("UR5", a / b, microseconds(a), microseconds(b))


def deviations(robot: Robot, peer: Pin, count: int = 3) -> Iterator[Deviation]:
    """The largest error |ours - theirs| / (1 + max|theirs|) of each matrix, relative to Pinocchio.

    psiphi's traced code is interpreted, not compiled.
    """
    state, layout = states(robot, count), peer.layout
    T = layout.to_v(np.eye(robot.nv)).T
    for function, (call, last) in CALLS.items():
        q, v, x = state["q"], state["v"], state[last]
        ours = evaluate_tape(robot.function(function).jacobian("q", "v", last).source, (q, v, x))
        theirs = [
            _pinocchio(peer, call, PARTS[function], *arguments)
            for arguments in zip(*_peer_arguments(layout, q, v, x), strict=True)
        ]
        for name, mine, found in zip(
            PARTS[function], ours, map(np.stack, zip(*theirs, strict=True)), strict=True
        ):
            off = np.abs(T @ mine @ T.T - found).max(axis=(1, 2)) / (
                1.0 + np.abs(found).max(axis=(1, 2))
            )
            yield Deviation(name, float(off.max()), float(off.max()))


def _peer_arguments(
    layout: Any, q: np.ndarray, v: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, ...]:
    return layout.to_q(q), layout.to_v(v, q), layout.to_tau(x, q)


def _pinocchio(
    peer: Pin, call: str, names: tuple[str, ...], *state: np.ndarray
) -> list[np.ndarray]:
    """Pinocchio's matrices in one state. It fills the upper half of symmetric ones."""
    getattr(pinocchio, call)(peer.peer, peer.data, *state)
    found = ((name, getattr(peer.data, name).copy()) for name in names)
    return [np.triu(x) + np.triu(x, 1).T if name.startswith("M") else x for name, x in found]


class _DerivativePair:
    """The same matrices by psiphi and Pinocchio: of a batch, of some of its states, of one."""

    def __init__(self, function: str, name: str, base: str):
        (call, last), (robot, self.peer) = (
            CALLS[function],
            example_robots.load_with_pinocchio(name, base),
        )
        state = states(robot, BATCH)
        batch = state["q"], state["v"], state[last]
        f = robot.function(function).jacobian("q", "v", last)
        self.flops, self.names = f.source.code.count.flops, PARTS[function]
        self.batch = partial(
            f, *batch, out=tuple(np.empty((BATCH, robot.nv, robot.nv)) for _ in range(3))
        )
        self.single = partial(f, *(rows[0] for rows in batch))
        self.rows = list(
            zip(
                *(rows[:PEER_STATES] for rows in _peer_arguments(self.peer.layout, *batch)),
                strict=True,
            )
        )
        self.copies = [np.empty((PEER_STATES, robot.nv, robot.nv)) for _ in range(3)]
        self.call = partial(getattr(pinocchio, call), self.peer.peer, self.peer.data)
        self.peer_call = partial(self.call, *self.rows[0])

    def peer_copies(self) -> None:
        """Pinocchio's matrices of several states, copied to arrays."""
        data, (x, y, z), (first, second, third) = self.peer.data, self.copies, self.names
        for i, row in enumerate(self.rows):
            self.call(*row)
            x[i], y[i], z[i] = getattr(data, first), getattr(data, second), getattr(data, third)
