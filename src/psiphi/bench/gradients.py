"""Derivatives of dynamics as matrices: a batch on one core, beside Pinocchio's analytic derivatives, one state a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import psiphi as pp
from psiphi.bench import robots
from psiphi.bench.agreement import states
from psiphi.bench.peers import Pin
from psiphi.bench.peers.lazy import pinocchio
from psiphi.bench.row import Measured, Size, micro
from psiphi.bench.speed import BATCH
from psiphi.bench.timing import best

CALLS = {"forward_dynamics": ("computeABADerivatives", "tau"), "inverse_dynamics": ("computeRNEADerivatives", "a")}


def matrices(function: str, names: tuple[str, ...], base: str) -> Callable[[Size], Iterator[Measured]]:
    """d/d(q, v, last argument) of a batch in one call, against Pinocchio's call for one state."""

    def measure(size: Size) -> Iterator[Measured]:
        pp.set_threads(1)
        for name in names if base == "fixed" or not size.quick else ():  # of a humanoid it takes minutes to compile
            ours, theirs, flops = _calls(function, name, base, BATCH)
            a, b = best(ours, theirs, seconds=size.seconds)
            yield Measured(name, BATCH * b / a, micro(a / BATCH), micro(b), f"{flops} flops")

    return measure


def one_call(size: Size) -> Iterator[Measured]:
    """The three matrices of a UR5's forward dynamics from Python."""
    ours, theirs, _ = _calls("forward_dynamics", "UR5", "fixed", 1)
    a, b = best(ours, theirs, seconds=2 * size.seconds)
    yield Measured("UR5", a / b, micro(a), micro(b))


def _calls(function: str, name: str, base: str, count: int) -> tuple[Callable, Callable, int]:
    file = robots.urdf(name)
    robot = pp.load(file, base=base)
    peer = Pin.from_urdf(file, base, robot)
    call, last = CALLS[function]
    given = states(robot, count)
    q, v, x = (given[key] if count > 1 else given[key][0] for key in ("q", "v", last))
    f = robot.function(function).jacobian("q", "v", last)
    out = tuple(np.empty((*q.shape[:-1], robot.nv, robot.nv)) for _ in range(3)) if count > 1 else None
    one = [np.atleast_2d(rows)[0] for rows in (peer.layout.to_q(q), peer.layout.to_v(v, q), peer.layout.to_tau(x, q))]
    flops = f.source.code.count.flops
    return partial(f, q, v, x, out=out), partial(getattr(pinocchio, call), peer.peer, peer.data, *one), flops
