"""Whole rollouts on a graphics card, in one launch: states of the card go in, samples of the card come out.

What the law of the torque needs besides (gains, references, dt) is small, and is copied to the card before.

Nobody looks at the numbers: quaternions of the start are scaled to unit length, and a motion of a closed chain is NaN where it
begins off its constraints, and from where only the host could solve them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.validate import on_gpu
from psiphi.backends import kernel_cache
from psiphi.backends.cuda import cuda_target
from psiphi.backends.cuda.device_arrays import library_of
from psiphi.backends.cuda.dlpack import SIZE
from psiphi.backends.cuda.kernel_launch import (
    allocate,
    batch_and_strides,
    common_dtype_and_device,
    enqueue,
    load_kernel,
    views_of,
)
from psiphi.compiler.ir.block_frame import NamedBlocks
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.model.spatial.branch_free import less, max_magnitude
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.compiled_rollout.constraint_blocks import select_outputs
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, RolloutProgram
from psiphi.simulation.compiled_rollout.rollout_runner import CACHE_SIZE
from psiphi.simulation.compiled_rollout.step_blocks import place_sizes, trace
from psiphi.simulation.plant import Plant, parameters_of

CLOSURE_TOLERANCE = {
    "d": 1e-6,
    "f": 1e-3,
}  # how far open constraints may be at the start, as on the host; and as float32 can tell
MAX_ILL_CONDITIONING = {
    "d": ILL_CONDITIONED,
    "f": 1e6,
}  # where a pivot of Omega keeps no digits of float64, and half of those of float32
_cache: dict[tuple[str, int], Any] = {}  # kernels, by name and card


class CudaArgument(NamedTuple):
    """Where the numbers of an array are: bytes from motion to motion, and from row to row."""

    pointer: int
    outer: int
    row: int

    def at(self, row: int) -> CudaArgument:
        """The same from this row on."""
        return self._replace(pointer=self.pointer + row * self.row)

    def back(self, last: int) -> CudaArgument:
        """From this row on, backwards."""
        return self.at(last)._replace(row=-self.row)

    @property
    def held(self) -> CudaArgument:
        """Every row is the same memory, in which the last one remains."""
        return self._replace(row=0)


@dataclass(frozen=True, eq=False)
class CudaRolloutProgram(RolloutProgram):
    """A plan whose start nobody looks at before."""

    char: str = "d"

    @property
    def is_closed(self) -> bool:
        return isinstance(self.system, System)

    @cached_property
    def blocks(self) -> NamedBlocks:
        m, sizes = self.manifold, place_sizes(self.manifold, "qv")
        begin = trace("start", sizes, lambda q, v: {"q": m.unit(q), "Q": m.unit(q), "V": v})
        known = super().blocks | {"start": (begin, {})}
        return known | (self._judged() if isinstance(self.system, System) else {})

    def _judged(self) -> NamedBlocks:
        """S is beyond all bounds where a motion begins off its constraints; beyond the bound of S samples are NaN."""
        assert isinstance(self.system, System)
        opened, n = (
            select_outputs(self.system.residual_function, "residual"),
            place_sizes(self.manifold, "QV"),
        )

        def closed(residual) -> dict[str, Any]:
            shut = less(max_magnitude(residual), CLOSURE_TOLERANCE[self.char])
            return {"S": [1.0 / shut - 1.0]}  # 0, or infinite

        def judge(Q, V, S) -> dict[str, Any]:
            good = less(S[0], MAX_ILL_CONDITIONING[self.char])
            return {"Q": Q * (good / good), "V": V * (good / good)}  # by 1, or 0 / 0

        return {
            "opened": (opened, {}),
            "closed": (trace("closed", {"residual": opened.program.outputs[0].size}, closed), {}),
            "judge": (trace("judge", n | {"S": 1}, judge), {}),
        }

    @cached_property
    def rollout(self) -> Rollout:
        made = replace(super().rollout, prologue=("start",), samples_start=True, sampled=("Q", "V"))
        if not self.is_closed:
            return made
        return replace(
            made, prologue=("start", "opened", "closed", "judge"), order=(*made.order, "judge")
        )

    @property
    def flops(self) -> int:
        return 0  # nobody cuts what a card does into pieces


class CudaRunner:
    """Motions on a card; `state`: "q", "v" and "tau", those that are its arrays (tau: a row, or one a step)."""

    def __init__(
        self,
        plant: Plant,
        drive: RolloutInput,
        plan: RolloutOptions,
        dt: float,
        state: Mapping[str, Any],
        steps: int,
    ):
        if any(map(on_gpu, parameters_of(plant.robot))):
            raise StateError(
                "rollout: the parameters are on a graphics card",
                "give light.at(...) arrays of the host",
            )
        self.plant, self.drive, self.options, self.given, self.steps = (
            plant,
            drive,
            plan,
            state,
            steps,
        )
        sizes = {"q": plant.nq, "v": plant.nv, "tau": plant.nv}
        inputs = [
            Argument(
                "tau" if name == "tau" else f"{name}0",
                (steps, size) if name in plan.packed_per_step else (size,),
            )
            for name, size in sizes.items()
            if name in state
        ]
        values = [state[name] for name in sizes if name in state]
        views = views_of("rollout", inputs, values)
        self.char, self.device = common_dtype_and_device("rollout", inputs, views, None)
        self.batch, strides = batch_and_strides("rollout", inputs, views)
        self.count, self.like = math.prod(self.batch), values[0]
        self.library: Any = library_of("rollout: q0", self.like)
        self.stream, self.alive = self.library.stream(self.like), list[Any](values)
        self.places = {
            name: CudaArgument(view.pointer, stride, SIZE[self.char] * sizes[name])
            for name, view, stride in zip(
                filter(state.__contains__, sizes), views, strides, strict=True
            )
        }
        self.numbers = (
            drive.constants()
            | dict(zip([PARAMETERS], parameters_of(plant.robot), strict=False))
            | {"h": np.array([dt]), **({} if "v" in state else {"v": np.zeros(plant.nv)})}
        )
        for name, x in self.numbers.items():
            if name not in self.places:
                self.places[name] = self._put(name, x, 1)
        for name, x in (
            drive.tables(plan, 0, steps, dt).items()
            if not set(plan.packed_per_step) <= {"tau"} & set(state)
            else ()
        ):
            self.places[name] = self._put(name, x, 2)

    def _put(self, name: str, x: Any, core: int) -> CudaArgument:
        """Numbers of the host: one row (table) for all, or one for every motion."""
        rows = _rows(name, np.asarray(x, dtype=self.char), core, self.batch)
        self.alive.append(self.library.put(self.like, rows))
        each = (
            math.prod(rows.shape[rows.ndim - core :]) * SIZE[self.char] if rows.ndim > core else 0
        )
        return CudaArgument(
            self.library.view(self.alive[-1]).pointer,
            each,
            rows.shape[-1] * SIZE[self.char] * (core == 2),
        )

    def empty(self, rows: int, size: int) -> tuple[Any, CudaArgument]:
        """New memory (*batch, rows, size), and its place."""
        words = f"rollout: samples of {size} numbers"
        array, pointer = allocate(
            words, self.library, self.like, (*self.batch, rows, size), self.char
        )
        return array, CudaArgument(pointer, rows * size * SIZE[self.char], size * SIZE[self.char])

    def zeros(self, size: int) -> CudaArgument:
        """One row of zeros, for all motions and steps."""
        self.alive.append(self.library.full(self.like, size, 0.0))
        return CudaArgument(self.library.view(self.alive[-1]).pointer, 0, 0)

    def ready(self, array: Any) -> Any:
        return self.library.ready(self.like, array, self.stream)

    def run(self, every: int) -> tuple[Any, Any]:
        """q (..., samples, nq) and v (..., samples, nv)."""
        made = [
            self.empty(1 + self.steps // every, size) for size in (self.plant.nq, self.plant.nv)
        ]
        self.advance(
            self.places["q"], self.places["v"], 0, self.steps, every, [place for _, place in made]
        )
        q, v = (self.ready(array) for array, _ in made)
        return q, v

    def advance(
        self,
        q: CudaArgument,
        v: CudaArgument,
        start: int,
        steps: int,
        every: int,
        out: list[CudaArgument],
    ) -> None:
        """From (q, v) at step `start`: that state, and every `every`-th of `steps` after it."""
        known = (
            self.places
            | {name: self.places[name].at(start) for name in self.options.packed_per_step}
            | {"q": q, "v": v}
        )
        machine = CudaRolloutProgram(self.plant.system, self.options, self.char)
        self.launch(
            machine,
            (),
            [
                *(
                    known[name]
                    for name in (*self.options.packed_once, *self.options.packed_per_step)
                ),
                *out,
            ],
            steps,
            every,
        )

    def launch(
        self,
        machine: Any,
        names: tuple[str, ...],
        arrays: list[CudaArgument],
        steps: int,
        every: int,
    ) -> None:
        """A kernel of this plan: itself, or a derivative of it by the places `names`."""
        if self.count:
            numbers = [x for place in arrays for x in place[1:]]
            kernel = partial(_kernel, machine, self.options, names, self.char)
            pointers = [place.pointer for place in arrays]
            enqueue(
                kernel,
                pointers,
                [*numbers, self.count, steps, every],
                self.count,
                self.stream,
                self.device,
                "rollout: q0",
            )


def _rows(name: str, x: np.ndarray, core: int, batch: tuple[int, ...]) -> np.ndarray:
    """Numbers of the host: one row (table) for all, or one for every motion."""
    lead, own = x.shape[: x.ndim - core], x.shape[x.ndim - core :]
    if math.prod(lead) == 1:
        return np.ascontiguousarray(x.reshape(own))
    try:
        return np.ascontiguousarray(np.broadcast_to(x, (*batch, *own)))
    except ValueError:
        cause = (
            f"rollout: {name.removeprefix('law.')} has batch axes {lead}, the initial state {batch}"
        )
        raise StateError(cause, "make them equal, 1, or absent") from None


def _kernel(
    machine: Any, plan: RolloutOptions, names: tuple[str, ...], char: str, device: int
) -> Any:
    """The kernel, from this process, from the disk, or made now."""
    own: RolloutProgram = getattr(machine, "machine", machine)
    what = [
        *plan.key,
        *own.foreign_rules,
        cuda_target.CUDA.key(char),
        type(machine).__name__,
        names,
    ]
    name = kernel_cache.kernel_key(own.robot.digest, "card", json.dumps(what))

    def make() -> Any:
        built = kernel_cache.fetch_or_build(
            name,
            lambda: cuda_target.CUDA.build(
                cuda_target.CUDA.emit(machine.rollout, char), {"flops": machine.flops}
            ),
        )
        return load_kernel(cuda_target.CUDA.load(built)[0], name, device)

    return kernel_cache.in_memory(_cache, (name, device), CACHE_SIZE, make)
