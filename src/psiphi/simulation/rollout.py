"""Whole rollouts in one compiled kernel: a batch of motions in SIMD lanes, big batches on all threads.

    trace -> place in one frame -> LLVM text -> object code -> call

The cache of `functions/cache.py` is asked first; a warm process neither traces nor compiles.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
from collections import deque
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from psiphi.closed.singular import STRAIN
from psiphi.closed.system import System
from psiphi.emitters import jit
from psiphi.errors import StateError
from psiphi.functions import cache
from psiphi.functions.compiler import has_fma, host_lanes, sources
from psiphi.functions.robot import Robot
from psiphi.functions.threads import GRAIN, ROWS, SLICES, get_threads, together
from psiphi.model.arguments import whole
from psiphi.model.words import shown
from psiphi.simulation import kernel
from psiphi.simulation.drive import Drive, obstacle
from psiphi.simulation.failure import STRAINED, Strained
from psiphi.simulation.machine import Machine, Plan
from psiphi.simulation.mending import Careful
from psiphi.simulation.plant import Plant
from psiphi.simulation.states import check_closed, check_size, flag, initial_state, step_size, step_stride
from psiphi.simulation.stops import Stops
from psiphi.simulation.torques import read_effort, read_losses, read_torque

KEPT = 64  # compiled rollouts a process holds on to
SPEED = 5e9  # operations a second and core, roughly: how long a piece is decides nothing else
PIECE = 0.3  # seconds a kernel runs before Python gets to see an interrupt
Arrays = tuple[np.ndarray, ...]
_kept: dict[str, Compiled] = {}


class Compiled:
    """Machine code of one plan on one robot."""

    def __init__(self, system: Robot | System, plan: Plan, key: str, lanes: int):
        packed = cache.remember(key, lambda: _pack(Machine(system, plan), lanes))
        self.plan, self.flops = plan, int.from_bytes(packed[:8], "little")
        self.address = jit.load_object(packed[8:], ["rollout"]).address("rollout")
        self.call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address)

    def run(self, arrays: list[np.ndarray], steps: int, every: int) -> None:
        """arrays (B, rows, n) in the plan's order, the results last; B motions of `steps` steps."""
        count = len(arrays[-1])
        work = self.flops * steps
        threads = min(get_threads(), max(1, count * work // GRAIN), max(1, count // ROWS))
        if threads == 1:
            self._run(arrays, 0, count, steps, every)
            return
        size = ROWS * math.ceil(count / (ROWS * SLICES * threads))
        starts = deque(range(0, count, size))

        def some() -> None:
            while starts:
                try:
                    start = starts.popleft()
                except IndexError:
                    return
                self._run(arrays, start, min(count, start + size), steps, every)

        together(some, min(threads, len(starts)))

    def _run(self, arrays: list[np.ndarray], start: int, stop: int, steps: int, every: int) -> None:
        words = [stop - start, steps, every]
        for array in arrays:
            outer, row, column = array.strides
            words += [array.ctypes.data + start * outer, outer, row, column]
        block = np.array(words, dtype=np.int64)
        self.call(block.ctypes.data)


def compiled(system: Robot | System, plan: Plan) -> Compiled:
    """The kernel, from this process, from the disk, or made now."""
    lanes = host_lanes("double")
    what = json.dumps([*plan.key, lanes, has_fma()])
    robot = system.robot if isinstance(system, System) else system
    key = cache.key(sources(), _own_sources(), robot.digest, "rollout", what, *jit.host(), np.__version__)
    if key not in _kept:
        while len(_kept) >= KEPT:
            del _kept[next(iter(_kept))]
        _kept[key] = Compiled(system, plan, key, lanes)
    return _kept[key]


def _pack(machine: Machine, lanes: int) -> bytes:
    return machine.flops.to_bytes(8, "little") + jit.compile_ir(kernel.module(machine, lanes, has_fma()))


@lru_cache(maxsize=1)
def _own_sources() -> str:
    sha = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        sha.update(path.name.encode() + path.read_bytes())
    return sha.hexdigest()


class Runner:
    """Motions (B, ...) that go on from where they are, some steps at a time."""

    def __init__(self, plant: Plant, drive: Drive, plan: Plan, dt: float, batch: tuple[int, ...]):
        self.code, self.drive, self.dt, self.batch = compiled(plant.given, plan), drive, dt, batch
        self.careful = Careful(plant, drive, plan, dt, batch)
        self.width = plant.nq + plant.nv
        self.given = {name: self._constant(x) for name, x in drive.given().items()} | {"h": self._constant(np.array([dt]))}
        for x in drive.references(np.zeros(1)) if drive.controller is not None and drive.timed else ():
            self._table(x)  # does not fit: said before anything runs

    @property
    def count(self) -> int:
        return math.prod(self.batch)

    def piece(self, every: int, memory: float = math.inf) -> int:
        """How many steps, a multiple of `every`, take about PIECE seconds and no more than `memory` numbers."""
        motions = max(1, self.count)
        steps = PIECE * SPEED * (1 if motions == 1 else 4) / max(1, self.code.flops * motions)
        room = memory / (motions * self.width)
        return max(1, int(min(steps, room) / every)) * every

    def advance(self, q: np.ndarray, v: np.ndarray, start: int, steps: int, every: int, out: Arrays) -> None:
        """From (q, v) (B, n) at step `start`, every `every`-th of `steps` states into out (B, steps // every, n) twice."""
        plan = self.code.plan
        tables = self.drive.tables(plan, start, steps, self.dt)
        state = {"q": q[:, None, :], "v": v[:, None, :]} | self.given
        arrays = [state[name] for name in plan.given] + [self._table(tables[name]) for name in plan.tables]
        strain = [np.zeros((self.count, steps // every, 1))] if plan.closure else []
        self.code.run([*arrays, *out, *strain], steps, every)
        if strain:
            sound: Any = np.isfinite(np.concatenate([q, v], axis=-1)).all(axis=-1, keepdims=True)
            self._mend((q, v), start, every, out, sound & ~(strain[0][..., 0] < STRAIN))

    def _mend(self, state: Arrays, start: int, every: int, out: Arrays, lost: np.ndarray) -> None:
        """Motions that strained their constraints, again in Python from their last sound sample on."""
        which = np.flatnonzero(lost.any(axis=-1))
        if not len(which):
            return
        if not self.batch:  # a single motion has an error of its own
            raise Strained
        first = int(lost[which].argmax(axis=-1).min())
        q, v = (x[which, first - 1] if first else x0[which] for x, x0 in zip(out, state, strict=True))
        steps = self.careful.steps(which, start + first * every, q, v)
        for sample in range(first, lost.shape[-1]):
            for room, x in zip(out, next(islice(steps, every - 1, None)), strict=True):
                room[which, sample] = x

    def _constant(self, x: np.ndarray) -> np.ndarray:
        return self._table(np.asarray(x, dtype=float)[..., None, :])

    def _table(self, x: np.ndarray) -> np.ndarray:
        """(..., rows, n) as (B, rows, n), without copies where there is one table for all."""
        core = x.shape[-2:]
        try:
            if x.ndim == 2:
                return np.broadcast_to(x, (self.count, *core))
            return np.broadcast_to(x, (*self.batch, *core)).reshape(self.count, *core)
        except ValueError:
            cause = f"the torque or its reference has batch axes {x.shape[:-2]}, the initial state {self.batch}"
            raise StateError(cause, "give the initial state all batch axes") from None


def rollout(
    robot: Any,
    q0: Any,
    v0: Any = None,
    tau: Any = None,
    dt: float = 1e-3,
    steps: int = 1000,
    method: str = "rk4",
    *,
    every: int = 1,
    hold: bool = False,
    damping: Any = False,
    friction: Any = False,
    friction_speed: float = 0.01,
    effort: Any = False,
    limits: str = "ignore",
    out: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """q (..., n, nq), v (..., n, nv): the states at steps 0, every, 2 every, ...: `simulate`'s kernel, and nothing else.

    Arguments as in `simulate`; tau is nothing, an array, or a built-in controller. `out` takes the results.

    >>> import psiphi as pp
    >>> robot = pp.robots.puma560()
    >>> q, v = rollout(robot, robot.random(0, 100), steps=50, every=10)
    >>> q.shape
    (100, 6, 6)
    """
    plant = Plant(robot)
    reason = obstacle(plant.given, tau, method, _blocks(limits))
    if reason:
        raise StateError(f"rollout: {reason}", "pp.simulate takes every system, torque and method")
    q, v = initial_state(plant, q0, v0)
    check_closed(plant, q, v)
    steps, every, dt = whole("steps", steps), step_stride(every), step_size(dt)
    check_size(plant, q.shape[:-1], 1 + steps // every)
    cut = read_effort(plant, effort)
    torque, losses = (
        read_torque(tau, plant, q.shape[:-1], steps).cut(cut),
        read_losses(plant, damping, friction, friction_speed),
    )
    drive = Drive(torque, losses, tau if callable(tau) else None, cut)
    plan = drive.plan(plant, method, flag("hold", hold), Stops(plant) if _blocks(limits) else None)
    runner = Runner(plant, drive, plan, dt, q.shape[:-1])
    q_out, v_out = _results(out, (*q.shape[:-1], 1 + steps // every), plant)
    flat = q.reshape(-1, plant.nq), v.reshape(-1, plant.nv)
    states = tuple(x.reshape(runner.count, *x.shape[-2:]) for x in (q_out, v_out))
    for state, first in zip(states, flat, strict=True):
        state[:, 0] = first
    try:
        _fill(runner, states, every)
    except Strained:
        raise StateError(f"rollout: {STRAINED}", "pp.simulate takes such steps in Python, which says what is wrong") from None
    return q_out, v_out


def _fill(runner: Runner, states: tuple[np.ndarray, ...], every: int) -> None:
    """All samples behind the first, piece by piece."""
    rows, done = states[0].shape[1], 0
    while runner.count and done < rows - 1:
        some = min(rows - 1 - done, runner.piece(every) // every)
        out = tuple(x[:, done + 1 : done + 1 + some] for x in states)
        q, v = (x[:, done] for x in states)
        runner.advance(q, v, every * done, every * some, every, out)
        done += some


def _blocks(limits: Any) -> bool:
    """Whether joints end at their limits."""
    if limits not in ("ignore", "block"):
        raise StateError(f"limits is {shown(limits)}, expected ignore or block", "pp.simulate records limits and stops at them")
    return limits == "block"


def _results(out: Any, lead: tuple[int, ...], plant: Plant) -> tuple[np.ndarray, np.ndarray]:
    """New arrays, or those given when they fit."""
    shapes = (*lead, plant.nq), (*lead, plant.nv)
    if out is None:
        return np.empty(shapes[0]), np.empty(shapes[1])
    arrays: tuple[Any, ...] = tuple(out) if isinstance(out, tuple | list) else (out,)
    if len(arrays) != 2 or not all(map(_takes, arrays, shapes)):
        raise StateError(f"out is {shown(out)}, expected two arrays", f"give np.empty({shapes[0]}), np.empty({shapes[1]})")
    return arrays[0], arrays[1]


def _takes(array: Any, shape: tuple[int, ...]) -> bool:
    good = isinstance(array, np.ndarray) and array.dtype == float and array.shape == shape
    return good and array.flags.c_contiguous and array.flags.writeable
