"""Whole rollouts in one compiled kernel, run: a batch of motions in SIMD lanes, big batches on all threads.

    trace -> place in one frame -> LLVM text -> object code -> call

The cache of `backends/kernel_cache.py` is asked first; a warm process neither traces nor compiles.
"""

from __future__ import annotations

import ctypes
import json
import math
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.backends import kernel_cache
from psiphi.backends.cpu.cpu_target import HOST
from psiphi.backends.cpu.threads import GRAIN, ROWS, SLICES, each, get_threads
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.robot.mechanisms.solve.redundant_constraints import STRAIN
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, RolloutProgram
from psiphi.simulation.plant import Plant, parameters_of

KEPT = 64  # compiled rollouts a process holds on to
SPEED = 5e9  # operations a second and core, roughly: how long a piece is decides nothing else
PIECE = 0.3  # seconds a kernel runs before Python gets to see an interrupt
Arrays = tuple[np.ndarray, ...]
_kept: dict[str, Compiled] = {}


class StepLoop:
    """The machine code of a loop over steps."""

    def __init__(self, built: bytes):
        library, facts = HOST.load(built)
        self.flops = facts["flops"]
        self.address = library.address("rollout")
        self.call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address)

    def run(self, arrays: list[np.ndarray], steps: int, every: int) -> None:
        """arrays (B, rows, n) in the order of the loop, the results last; B motions of `steps` steps."""
        count = len(arrays[-1])
        work = self.flops * steps
        threads = min(get_threads(), max(1, count * work // GRAIN), max(1, count // ROWS))
        if threads == 1:
            self._run(arrays, 0, count, steps, every)
            return
        size = ROWS * math.ceil(count / (ROWS * SLICES * threads))
        run = lambda start: self._run(arrays, start, min(count, start + size), steps, every)  # noqa: E731
        each(range(0, count, size), run, threads)

    def _run(self, arrays: list[np.ndarray], start: int, stop: int, steps: int, every: int) -> None:
        words = [stop - start, steps, every]
        for array in arrays:
            outer, row, column = array.strides
            words += [array.__array_interface__["data"][0] + start * outer, outer, row, column]
        block = np.array(words, dtype=np.int64)
        self.call(block.ctypes.data)


class Compiled(StepLoop):
    """Machine code of one plan on one robot, or of a derivative of it."""

    def __init__(self, machine: Any, plan: RolloutOptions, key: str):
        super().__init__(kernel_cache.remember(key, lambda: _built(machine)))
        self.plan = plan


def compiled(
    system: Robot | System, plan: RolloutOptions, kind: Any = None, names: tuple[str, ...] = ()
) -> Compiled:
    """The kernel, from this process, from the disk, or made now; of a `kind` of derivative by the places `names`, if any."""
    machine = RolloutProgram(system, plan)
    what = [*plan.key, *machine.foreign, HOST.key("d"), *([kind.__name__, names] if kind else [])]
    key = kernel_cache.kernel_key(machine.robot.digest, "rollout", json.dumps(what))
    return kernel_cache.held(
        _kept, key, KEPT, lambda: Compiled(kind(machine, names) if kind else machine, plan, key)
    )


def _built(machine: Any) -> bytes:
    return HOST.build(HOST.emit(machine.rollout), {"flops": machine.flops})


class Runner:
    """Motions (B, ...) that go on from where they are, some steps at a time."""

    def __init__(
        self,
        plant: Plant,
        drive: RolloutInput,
        plan: RolloutOptions,
        dt: float,
        batch: tuple[int, ...],
    ):
        self.plan, self.drive, self.dt, self.batch = plan, drive, dt, batch
        self.code = compiled(plant.given, plan)
        self.width = plant.nq + plant.nv
        self.given = {name: self._constant(x) for name, x in drive.given().items()} | {
            "h": self._constant(np.array([dt]))
        }
        for x in parameters_of(plant.robot):
            self.given[PARAMETERS] = self._constant(x)
        for x in (
            drive.references(np.zeros(1)) if drive.controller is not None and drive.timed else ()
        ):
            self.table(x)  # does not fit: said before anything runs

    @property
    def count(self) -> int:
        return math.prod(self.batch)

    def piece(self, every: int, memory: float = math.inf) -> int:
        """How many steps, a multiple of `every`, take about PIECE seconds and no more than `memory` numbers."""
        motions = max(1, self.count)
        steps = PIECE * SPEED * (1 if motions == 1 else 4) / max(1, self.code.flops * motions)
        room = memory / (motions * self.width)
        return max(1, int(min(steps, room) / every)) * every

    def advance(
        self, q: np.ndarray, v: np.ndarray, start: int, steps: int, every: int, out: Arrays
    ) -> np.ndarray | None:
        """From (q, v) (B, n) at step `start`, every `every`-th of `steps` states into out (B, steps // every, n) twice.

        The answer (B, steps // every) is where a closed chain strained its constraints too much; None where nothing can."""
        plan = self.code.plan
        tables = self.drive.tables(plan, start, steps, self.dt)
        state = {"q": q[:, None, :], "v": v[:, None, :]} | self.given
        arrays = [state[name] for name in plan.given] + [
            self.table(tables[name]) for name in plan.tables
        ]
        strain = [np.zeros((self.count, steps // every, 1))] if plan.closure else []
        self.code.run([*arrays, *out, *strain], steps, every)
        if not strain:
            return None
        sound: Any = np.isfinite(np.concatenate([q, v], axis=-1)).all(axis=-1, keepdims=True)
        return sound & ~(strain[0][..., 0] < STRAIN)

    def _constant(self, x: np.ndarray) -> np.ndarray:
        """A copy: gradients that are asked for later are those of what ran."""
        return self.table(np.array(x, dtype=float)[..., None, :])

    def table(self, x: np.ndarray) -> np.ndarray:
        """(..., rows, n) as (B, rows, n), without copies where there is one table for all."""
        core = x.shape[-2:]
        try:
            if x.ndim == 2:
                return np.broadcast_to(x, (self.count, *core))
            return np.broadcast_to(x, (*self.batch, *core)).reshape(self.count, *core)
        except ValueError:
            cause = f"the torque, its reference or parameters have batch axes {x.shape[:-2]}, the initial state {self.batch}"
            raise StateError(cause, "give the initial state all batch axes") from None
