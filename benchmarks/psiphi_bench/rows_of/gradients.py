"""Derivatives of dynamics as matrices: a batch on one core, beside Pinocchio's analytic derivatives, one state a call.

psiphi writes the matrices of a whole batch to arrays. Pinocchio's call leaves those of one state in its `data`, where the next
call writes: the figure is beside that call alone, and the note beside a loop that keeps what it computes.
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
from psiphi_bench.interpreted_robot import evaluated
from psiphi_bench.peers.lazy_import import pinocchio
from psiphi_bench.peers.pinocchio_peer import Pin
from psiphi_bench.row import Measured, Size, micro
from psiphi_bench.rows_of.run_time import BATCH

SOME = 64  # states that the peer is asked for
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
) -> Callable[[Size], Iterator[Measured]]:
    """d/d(q, v, last argument) of a batch in one call, against Pinocchio's call for one state."""

    def measure(size: Size) -> Iterator[Measured]:
        pp.set_threads(1)
        for name in (
            names if base == "fixed" or not size.quick else ()
        ):  # of a humanoid it takes minutes to compile
            beside = _SlopePair(function, name, base)
            a, b, c = best(beside.ours, beside.alone, beside.kept, seconds=size.seconds)
            a, c = a / BATCH, c / SOME
            note = f"{beside.flops} flops; where the peer's matrices are kept, too: {micro(c)}, {c / a:.3g}x"
            yield Measured(name, b / a, micro(a), micro(b), note)

    return measure


def one_call(size: Size) -> Iterator[Measured]:
    """The three matrices of a UR5's forward dynamics from Python."""
    beside = _SlopePair("forward_dynamics", "UR5", "fixed")
    a, b = best(beside.one, beside.alone, seconds=2 * size.seconds)
    yield Measured("UR5", a / b, micro(a), micro(b))


def deviations(robot: Robot, peer: Pin, count: int = 3) -> Iterator[Deviation]:
    """The largest error of every matrix beside Pinocchio's analytic derivatives, |ours - theirs| / (1 + max|theirs|).

    Our code is evaluated as it is traced, not compiled.
    """
    given, layout = states(robot, count), peer.layout
    T = layout.to_v(np.eye(robot.nv)).T
    for function, (call, last) in CALLS.items():
        q, v, x = given["q"], given["v"], given[last]
        ours = evaluated(robot.function(function).jacobian("q", "v", last).source, (q, v, x))
        theirs = [
            _pinocchio(peer, call, PARTS[function], *state)
            for state in zip(*_given(layout, q, v, x), strict=True)
        ]
        for name, mine, found in zip(
            PARTS[function], ours, map(np.stack, zip(*theirs, strict=True)), strict=True
        ):
            off = np.abs(T @ mine @ T.T - found).max(axis=(1, 2)) / (
                1.0 + np.abs(found).max(axis=(1, 2))
            )
            yield Deviation(name, float(off.max()), float(off.max()))


def _given(layout: Any, q: np.ndarray, v: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, ...]:
    return layout.to_q(q), layout.to_v(v, q), layout.to_tau(x, q)


def _pinocchio(
    peer: Pin, call: str, names: tuple[str, ...], *state: np.ndarray
) -> list[np.ndarray]:
    """Its matrices in one state; of symmetric ones it fills the upper half."""
    getattr(pinocchio, call)(peer.peer, peer.data, *state)
    found = ((name, getattr(peer.data, name).copy()) for name in names)
    return [np.triu(x) + np.triu(x, 1).T if name.startswith("M") else x for name, x in found]


class _SlopePair:
    """The same matrices by both: of a batch, of some of its states one after the other, and of one."""

    def __init__(self, function: str, name: str, base: str):
        (call, last), (robot, self.peer) = CALLS[function], example_robots.beside(name, base)
        given = states(robot, BATCH)
        batch = given["q"], given["v"], given[last]
        f = robot.function(function).jacobian("q", "v", last)
        self.flops, self.names = f.source.code.count.flops, PARTS[function]
        self.ours = partial(
            f, *batch, out=tuple(np.empty((BATCH, robot.nv, robot.nv)) for _ in range(3))
        )
        self.one = partial(f, *(rows[0] for rows in batch))
        self.rows = list(
            zip(*(rows[:SOME] for rows in _given(self.peer.layout, *batch)), strict=True)
        )
        self.rooms = [np.empty((SOME, robot.nv, robot.nv)) for _ in range(3)]
        self.call = partial(getattr(pinocchio, call), self.peer.peer, self.peer.data)
        self.alone = partial(self.call, *self.rows[0])

    def kept(self) -> None:
        data, (x, y, z), (first, second, third) = self.peer.data, self.rooms, self.names
        for i, row in enumerate(self.rows):
            self.call(*row)
            x[i], y[i], z[i] = getattr(data, first), getattr(data, second), getattr(data, third)
