"""A control step of environments on a GPU: three kernels, one after the other.

    head     the action is checked, delayed, and becomes the targets of the steps
    steps    the steps of the simulation, as in a rollout: targets are read row by row
    tail     the state is checked; terms, events, observations; the next episode where one ended

The blocks are those of `environment_program.py`, and the arithmetic is that of float64, so that
results have the bits of the CPU. Nothing is copied to the host, and nothing waits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi.apps.environments.environment_program import (
    BEFORE,
    GIVEN,
    RESET,
    EnvironmentProgram,
)
from psiphi.apps.environments.terms.term_state import LAST_V
from psiphi.backends import kernel_cache
from psiphi.backends.cuda import cuda_target
from psiphi.backends.cuda.device_arrays import library_of
from psiphi.backends.cuda.dlpack import SIZE
from psiphi.backends.cuda.kernel_launch import (
    CudaKernel,
    allocate,
    batch_and_strides,
    common_dtype_and_device,
    enqueue,
    load_kernel,
    views_of,
)
from psiphi.compiler.ir.block_frame import BlockFrame
from psiphi.compiler.ir.lane_blocks import Selection
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.simulation.compiled_rollout import contact_blocks
from psiphi.simulation.compiled_rollout.cuda_runner import CudaArgument
from psiphi.simulation.compiled_rollout.rollout_program import law_place

CHAR, BYTES = "d", SIZE["d"]
TARGET = "env.target"  # the prefix of the places of targets, by how long ago they were given
OWNER = "environment: the action"
CACHE_SIZE = 32  # kernels in the memory of a process
HEAD, STEPS, TAIL = "head", "steps", "tail"
_cache: dict[tuple[str, int], CudaKernel] = {}  # by name and GPU


@dataclass(frozen=True, eq=False)
class CudaEnvironment:
    """The kernels of a control step in a mode of autoreset."""

    program: EnvironmentProgram

    # -- what the kernels compute ------------------------------------------------------------------

    @cached_property
    def stages(self) -> dict[str, Rollout]:
        """{name: kernel}, in order."""
        program = self.program
        whole, step = program.rollout, program.rollout_program.order
        aims = {f"env.aim{ago}": f"{TARGET}{ago}" for ago in program.actions}
        named = {
            name: (code, at | ({self.target: aims[name]} if name in aims else {}))
            for name, (code, at) in whole.frame.named.items()
        }
        frame = BlockFrame(named)
        first = whole.order.index("env.check")
        begin = [name for name in whole.order[:first] if name not in (*step, "env.last", *aims)]
        head = self._stage(frame, (*begin, *aims))
        rows = [f"{TARGET}{ago}" for ago in self.targets]
        head = self._with_samples(head, [*self._given_on(head), *rows])
        options = program.given.options
        steps = Rollout(
            whole.frame,
            ("env.last", *step),
            tuple(x for x in options.packed_once if x != self.target),
            (self.target,),
            ("Q", "V", LAST_V, "tau", *self._contact_places),
            whole.repeats,
            program.rollout_program.rollout.conditions,
            whole.prologue,
            in_float64=True,
        )
        state = {"q": "Q", "v": "V"}
        results = [state.get(x, x) for x in (*program.state_sizes, *program.outputs)]
        tail = self._stage(whole.frame, whole.order[first:])
        tail = self._with_samples(tail, [x for x in results if x != contact_blocks.TOTAL])
        return {HEAD: head, STEPS: steps, TAIL: tail}

    @property
    def target(self) -> str:
        """The place that actions move in a step of the simulation."""
        return "tau" if self.program.given.is_torque else law_place("q_ref")

    @property
    def targets(self) -> list[int]:
        """How many control steps ago the target of each row was given; one row if all are equal."""
        actions, late = self.program.actions, self.program.given.events.delay
        count = self.program.given.decimation
        if len(actions) == 1:
            return actions
        return [actions[0]] * (late % count) + [actions[1]] * (count - late % count)

    @property
    def _contact_places(self) -> tuple[str, ...]:
        if self.program.given.setup.contacts is None:
            return ()
        place = contact_blocks.contact_place("place")
        return (*contact_blocks.RECORDED, place, contact_blocks.TOTAL)

    def _stage(self, frame: BlockFrame, order: tuple[str, ...]) -> Rollout:
        """Blocks that run once. Only selections are skipped where their condition is 0: they leave
        the numbers that were there."""
        conditions = {
            name: place
            for name, place in self.program.conditions.items()
            if name in order and isinstance(frame.named[name][0], Selection)
        }
        return Rollout(frame, order, (), (), (), (), conditions, ("start",), in_float64=True)

    @staticmethod
    def _written(rollout: Rollout) -> list[str]:
        """The places that the blocks write."""
        pairs = (rollout.frame.named[name] for name in rollout.order)
        return list(
            dict.fromkeys(
                at.get(x.name, x.name) for code, at in pairs for x in code.program.outputs
            )
        )

    def _given_on(self, head: Rollout) -> list[str]:
        """What the head writes and the tail, or the next control step, reads."""
        after = self.program.order[self.program.order.index("env.check") :]
        read = {*self._inputs(self._stage(self.program.rollout.frame, after), ())}
        read |= {*self.program.state_sizes}
        return [x for x in self._written(head) if x in read - {*BEFORE.values()}]

    @staticmethod
    def _inputs(rollout: Rollout, sampled: tuple[str, ...]) -> list[str]:
        """The places that the blocks read, or that are sampled, before the blocks write them."""
        read, written = dict[str, None](), {"Q", "V"}
        for name in rollout.order:
            code, at = rollout.frame.named[name]
            for arg in code.program.inputs:
                place = at.get(arg.name, arg.name)
                read |= {} if place in written else {place: None}
            if name not in rollout.conditions:
                written |= {at.get(arg.name, arg.name) for arg in code.program.outputs}
        return [*read, *(x for x in sampled if x not in written and x not in read)]

    def _with_samples(self, rollout: Rollout, sampled: list[str]) -> Rollout:
        """The stage with its inputs and results."""
        names = dict.fromkeys(("q", "v", *self._inputs(rollout, tuple(sampled))))
        return Rollout(
            rollout.frame,
            rollout.order,
            tuple(names),
            (),
            tuple(sampled),
            (),
            rollout.conditions,
            rollout.prologue,
            in_float64=True,
        )

    # -- running -----------------------------------------------------------------------------------

    def run(self, state: Mapping[str, Any], given: Any) -> dict[str, Any]:
        """The state and the outputs of a control step, by place: new arrays of the GPU. Its inputs
        are arrays (..., size) of float64, contiguous, of one library and GPU."""
        program = self.program
        if program.mode == RESET:
            raise StateError("a reset runs on the CPU", "use env.reset, and copy the state")
        sizes = {**program.state_sizes, GIVEN: program.given.action_size}
        shown = {GIVEN: "the action"}
        inputs = [Argument(shown.get(name, name), (size,)) for name, size in sizes.items()]
        values = [*(state[name] for name in program.state_sizes), given]
        views = views_of("environment", inputs, values)
        char, device = common_dtype_and_device("environment", inputs, views, None)
        if char != CHAR:
            raise StateError("environment: the arrays are float32", "pass float64 on a GPU")
        batch, strides = batch_and_strides("environment", inputs, views)
        call = _Call(self, given, batch, device)
        for (name, size), view, stride in zip(sizes.items(), views, strides, strict=True):
            call.places[name] = CudaArgument(view.pointer, stride, BYTES * size)
        before = {BEFORE["Q"]: call.places["q"], BEFORE["V"]: call.places["v"]}
        call.put_constants()
        call.launch(HEAD, self.stages[HEAD], 1)
        call.launch(STEPS, self.stages[STEPS], program.given.decimation)
        call.places |= before
        call.places |= {"q": call.places["Q"], "v": call.places["V"]}
        call.launch(TAIL, self.stages[TAIL], 1)
        state_places = {"q": "Q", "v": "V"}
        names = (*program.state_sizes, *program.outputs)
        return {name: call.results(state_places.get(name, name)) for name in names}

    @cached_property
    def constants(self) -> dict[str, np.ndarray]:
        """Numbers that all environments share, by place."""
        known = self.program.given.constants
        rows = {name: np.asarray(known[name], CHAR) for name in self.program.constants}
        return {name: np.ascontiguousarray(x.reshape(-1)) for name, x in rows.items()}

    @cached_property
    def copied(self) -> dict[tuple[str, int], dict[str, Any]]:
        """The constants on each GPU, by library."""
        return {}

    @cached_property
    def _keys(self) -> dict[str, str]:
        """The key of each kernel in the cache."""
        program, target = self.program, cuda_target.CUDA
        parts = [str(program.given.options.key), *program.rollout_program.foreign_rules]
        parts += [str(target.key(CHAR)), *program.key]
        digest = program.given.robot.digest
        return {
            name: kernel_cache.kernel_key(digest, "gpu environment", name, *parts)
            for name in (HEAD, STEPS, TAIL)
        }

    def kernel(self, name: str, device: int) -> CudaKernel:
        """The kernel of a stage on a GPU: from memory, from the disk cache, or compiled."""
        key, target, robot = self._keys[name], cuda_target.CUDA, self.program.given.robot

        def build() -> bytes:
            return target.build(target.emit(self.stages[name], CHAR), {"flops": 0})

        def load() -> CudaKernel:
            text = kernel_cache.fetch_or_build(key, build, f"environments of {robot.name}")
            return load_kernel(target.load(text)[0], key, device)

        return kernel_cache.in_memory(_cache, (key, device), CACHE_SIZE, load)


class _Call:
    """The arrays of a control step: `places` are the memory of each place."""

    def __init__(
        self, environment: CudaEnvironment, like: Any, batch: tuple[int, ...], device: int
    ):
        self.environment, self.like, self.batch, self.device = environment, like, batch, device
        self.library = library_of(OWNER, like)
        self.stream = self.library.stream(like)
        self.places: dict[str, CudaArgument] = {}
        self.arrays: dict[str, Any] = {}
        self.referenced: list[Any] = []  # arrays whose memory kernels read

    def put_constants(self) -> None:
        """One row for all environments, which is copied to a GPU once: a copy waits for kernels."""
        known = self.environment.copied
        where = self.library.name, self.device
        if where not in known:
            rows = self.environment.constants
            known[where] = {name: self.library.put(self.like, x) for name, x in rows.items()}
        for name, x in known[where].items():
            self.places[name] = CudaArgument(self.library.view(x).pointer, 0, 0)

    def _empty(self, name: str, rows: int, size: int) -> CudaArgument:
        shape = (*self.batch, size) if rows == 1 else (*self.batch, rows, size)
        array, pointer = allocate(f"environment: {name}", self.library, self.like, shape, CHAR)
        self.arrays[name] = array
        self.referenced.append(array)
        row = BYTES * size
        return CudaArgument(pointer, rows * row, row)

    def launch(self, name: str, rollout: Rollout, steps: int) -> None:
        """Enqueue a kernel; its results are places of the next one."""
        inputs = [self.places[x] for x in (*rollout.packed_once, *rollout.packed_per_step)]
        targets, sizes = self.environment.targets, rollout.frame.sizes
        made = {
            place: self._empty(place, 1, sizes[place])
            for place in rollout.sampled
            if not place.startswith(TARGET)
        }
        out = list(made.values())
        if len(out) < len(rollout.sampled):  # the targets come last, as rows of one table
            size = sizes[rollout.sampled[-1]]
            table = self._empty(self.environment.target, len(targets), size)
            out += [table.from_row(k) for k in range(len(targets))]
            made[self.environment.target] = (
                table if len(targets) > 1 else table._replace(row_stride=0)
            )
        numbers = [stride for argument in (*inputs, *out) for stride in argument[1:]]
        count = math.prod(self.batch)
        if count:
            enqueue(
                partial(self.environment.kernel, name),
                [argument.pointer for argument in (*inputs, *out)],
                [*numbers, count, steps, steps],
                count,
                self.stream,
                self.device,
                OWNER,
            )
        self.places |= made

    def results(self, place: str) -> Any:
        """An array for the user."""
        return self.library.ready(self.like, self.arrays[place], self.stream)
