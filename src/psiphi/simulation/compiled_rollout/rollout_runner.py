"""Compiles and runs rollouts: a batch of motions in SIMD lanes, large batches on all threads.

    trace -> place in one frame -> LLVM text -> object code -> call

With the kernel in the cache of `backends/kernel_cache.py` nothing is traced or compiled.
"""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from psiphi._util.errors import StateError
from psiphi.backends import kernel_cache
from psiphi.backends.cpu.cpu_target import HOST, CpuTarget
from psiphi.backends.cpu.threads import (
    MIN_FLOPS,
    ROW_MULTIPLE,
    SLICES_PER_THREAD,
    check_cancelled,
    get_threads,
    run_pieces,
)
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.compiler.sweeps.sweep_program import PARAMETERS
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED
from psiphi.robot.mechanisms.system import System
from psiphi.robot.robot import Robot
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, RolloutProgram
from psiphi.simulation.contact.residual_sum import ResidualSum, StepSum
from psiphi.simulation.plant import Plant, parameters_of

if TYPE_CHECKING:
    from psiphi.simulation.rollout_derivatives.step_derivatives import DifferentiatedRollout

CACHE_SIZE = 64  # kernels in the memory of a process
FLOPS_PER_SECOND = 5e9  # of one core, roughly; sets the length of pieces only
BATCH_FLOPS_PER_SECOND = 4 * FLOPS_PER_SECOND  # the same for several motions, in SIMD lanes
PIECE_SECONDS = 0.3  # a kernel runs about this long before Python can handle an interrupt
Arrays = tuple[np.ndarray, ...]
Cache: TypeAlias = "dict[str, dict[bool, LoopCode]]"  # by key, for one motion and for several
_cache: Cache = {}


class LoopCode:
    """The machine code of a loop over steps, for one motion or for several."""

    def __init__(self, built: bytes):
        library, self.facts = HOST.load(built)
        self.flops = self.facts["flops"]
        self.address = library.address("rollout")
        self.call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address)


class StepLoop:
    """A loop over steps: compiled, or from the cache, when it first runs on one motion, and when it
    first runs on several.

    `rollout` makes the loop and facts about it: "flops" of a step, and others. `key(target)` is its
    name in the cache, `what` that for the user. `cache` keeps the code, but not what makes it, for
    equal loops.
    """

    def __init__(
        self,
        key: Callable[[CpuTarget], str],
        rollout: Callable[[], tuple[Rollout, dict[str, int]]],
        what: str = "",
        cache: Cache | None = None,
    ):
        self._key, self._rollout, self._what = key, rollout, what
        self._name = key(HOST)
        shared = {} if cache is None else cache
        self._codes = kernel_cache.in_memory(shared, self._name, CACHE_SIZE, dict)

    def code(self, count: int | None = None) -> LoopCode:
        """The code for so many motions; for None, any that is there already."""
        single = count == 1
        if count is None and self._codes:
            return next(iter(self._codes.values()))
        if single not in self._codes:
            target = HOST.part(single)

            def build() -> bytes:
                loop, facts = self._rollout()
                return target.build(target.emit(loop), facts)

            built = kernel_cache.fetch_or_build(self._key(target), build, self._what)
            self._codes[single] = LoopCode(built)
        return self._codes[single]

    def run(self, arrays: list[np.ndarray], steps: int, every: int) -> None:
        """Run B motions of `steps` steps. The arrays (B, rows, n) are in the order of the loop, the
        results last.

        The motions are cut into pieces of about PIECE_SECONDS, between which Python can handle an
        interrupt.
        """
        count = len(arrays[-1])
        code = self.code(count)
        work = code.flops * steps
        most = max(1, count * work // MIN_FLOPS), max(1, count // ROW_MULTIPLE)
        threads = min(get_threads(), *most)
        longest = int(PIECE_SECONDS * BATCH_FLOPS_PER_SECOND / max(1, work)) // ROW_MULTIPLE
        blocks = math.ceil(count / (ROW_MULTIPLE * SLICES_PER_THREAD * threads))
        if threads == 1:
            blocks = math.ceil(count / ROW_MULTIPLE)
        size = ROW_MULTIPLE * min(blocks, max(1, longest))
        if size >= count:
            check_cancelled()
            self._run(code, arrays, 0, count, steps, every)
            return

        def run(start: int) -> None:
            check_cancelled()
            self._run(code, arrays, start, min(count, start + size), steps, every)

        run_pieces(range(0, count, size), run, threads)

    def _run(
        self,
        code: LoopCode,
        arrays: list[np.ndarray],
        start: int,
        stop: int,
        steps: int,
        every: int,
    ) -> None:
        words = [stop - start, steps, every]
        for array in arrays:
            outer, row, column = array.strides
            words += [array.__array_interface__["data"][0] + start * outer, outer, row, column]
        block = np.array(words, dtype=np.int64)
        code.call(block.ctypes.data)


class RolloutKernel(StepLoop):
    """The machine code of a rollout, or of a derivative of one."""

    def __init__(
        self,
        source: RolloutProgram | DifferentiatedRollout,
        options: RolloutOptions,
        key: Callable[[CpuTarget], str],
    ):
        program = source if isinstance(source, RolloutProgram) else source.program

        def rollout() -> tuple[Rollout, dict[str, int]]:
            known = program.robot.last_rollout
            if self._name not in known:
                known.clear()
                known[self._name] = source
            traced = known[self._name]
            return traced.rollout, {"flops": traced.flops}

        super().__init__(key, rollout, f"motions of {program.robot.name}", _cache)
        self.options = options


def rollout_kernel(
    system: Robot | System,
    options: RolloutOptions,
    derivative: type[DifferentiatedRollout] | None = None,
    places: tuple[str, ...] = (),
) -> RolloutKernel:
    """The kernel of a rollout, or of its derivative with respect to the state and `places`; from
    memory, from the disk cache, or compiled."""
    program = RolloutProgram(system, options)
    kind = [derivative.__name__, places] if derivative else []
    what, robot = [*options.key, *program.foreign_rules, *kind], program.robot

    def key(target: CpuTarget) -> str:
        content = json.dumps([*what, target.key("d")])
        return kernel_cache.kernel_key(robot.digest, "rollout", content)

    source = derivative(program, places) if derivative else program
    return RolloutKernel(source, options, key)


class Runner:
    """Runs a batch of motions, some steps at a time."""

    def __init__(
        self,
        plant: Plant,
        rollout_input: RolloutInput,
        options: RolloutOptions,
        dt: float,
        batch: tuple[int, ...],
    ):
        self.options, self.rollout_input, self.dt, self.batch = options, rollout_input, dt, batch
        self.kernel = rollout_kernel(plant.system, options)
        self.state_size = plant.nq + plant.nv
        self.constants = {name: self._constant(x) for name, x in rollout_input.constants().items()}
        self.constants["h"] = self._constant(np.array([dt]))
        # of the contacts with the ground
        contacts = 0 if options.contacts is None else options.contacts.residual_count
        self.residuals = ResidualSum(self.count, contacts)
        stops = options.all_stops.sum_size if options.records_stops and options.all_stops else 0
        self.stop_sums = StepSum(self.count, stops)
        for x in parameters_of(plant.robot):
            self.constants[PARAMETERS] = self._constant(x)
        if rollout_input.controller is not None and rollout_input.time_varying:
            for x in rollout_input.references(np.zeros(1)):
                self.as_table(x)  # an error in its shape is raised before anything runs

    @property
    def count(self) -> int:
        """The number of motions."""
        return math.prod(self.batch)

    def steps_per_piece(self, every: int, memory: float = math.inf) -> int:
        """How many steps, a multiple of `every`, take about PIECE_SECONDS and at most `memory`
        numbers."""
        motions = max(1, self.count)
        speed = FLOPS_PER_SECOND if motions == 1 else BATCH_FLOPS_PER_SECOND
        steps = PIECE_SECONDS * speed / max(1, self.kernel.code(self.count).flops * motions)
        most = memory / (motions * self.state_size)
        return max(1, int(min(steps, most) / every)) * every

    def advance(
        self, q: np.ndarray, v: np.ndarray, start: int, steps: int, every: int, out: Arrays
    ) -> np.ndarray | None:
        """Run `steps` steps from (q, v) (B, n) at step `start`; store every `every`-th state in
        out, two arrays (B, steps // every, n).

        Returns where the constraints of a closed chain could not be solved, (B, steps // every),
        or None for a robot.
        """
        options = self.kernel.options
        tables = self.rollout_input.tables(options, start, steps, self.dt)
        once = {"q": q[:, None, :], "v": v[:, None, :]} | self.constants
        arrays = [once[name] for name in options.packed_once]
        arrays += [self.as_table(tables[name]) for name in options.packed_per_step]
        more = self._more_samples(steps // every)
        self.kernel.run([*arrays, *out, *more], steps, every)
        if options.contacts is not None:
            self.residuals.add(start, every, more[0])
        if options.records_stops:
            self.stop_sums.add(start, every, more[-1])
        if not options.closure:
            return None
        (conditioning,) = more
        state = np.concatenate([q, v], axis=-1)
        finite = np.isfinite(state).all(axis=-1, keepdims=True)
        return finite & ~(conditioning[..., 0] < ILL_CONDITIONED)

    def _more_samples(self, count: int) -> list[np.ndarray]:
        """Arrays for the places that are sampled besides q and v."""
        options, sizes = self.options, []
        if options.closure:
            sizes = [1]
        contacts = options.contacts
        if contacts is not None:
            sizes = [contacts.residual_count]
            sizes += [contacts.space.impulse_size, contacts.count] * options.records_contacts
        if options.records_stops and options.all_stops is not None:
            sizes.append(options.all_stops.sum_size)
        return [np.zeros((self.count, count, size)) for size in sizes]

    def _constant(self, x: np.ndarray) -> np.ndarray:
        """A copy: derivatives are taken later, and must be those of the motion that ran."""
        return self.as_table(np.array(x, dtype=float)[..., None, :])

    def as_table(self, x: np.ndarray) -> np.ndarray:
        """(..., rows, n) as (B, rows, n), without a copy if it has no batch axes."""
        core = x.shape[-2:]
        try:
            if x.ndim == 2:
                return np.broadcast_to(x, (self.count, *core))
            return np.broadcast_to(x, (*self.batch, *core)).reshape(self.count, *core)
        except ValueError:
            cause = (
                "the torque, its reference, the parameters or the ground have batch axes "
                f"{x.shape[:-2]}, the initial state {self.batch}"
            )
            raise StateError(cause, "give the initial state all batch axes") from None
