"""Compiles and runs rollouts on the GPU: one launch for a whole rollout.

The initial states and the samples are GPU arrays. The other inputs of a rollout (gains, references,
dt) are small, and are copied to the GPU before the launch.

Numbers on the GPU are not checked. The kernel scales the quaternions of the initial q to unit
length. The samples of a closed chain are NaN if the motion starts off its constraints, and from the
step on at which only the CPU could solve them; so are those of a motion that starts deep inside a
rigid ground. Contacts are computed in float64 for float32 arrays, too: the distance from the ground
and the tolerance of the solver are below what float32 resolves.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from psiphi._util.array_types import AnyArray
from psiphi._util.errors import StateError
from psiphi._util.validate import on_gpu
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
from psiphi.compiler.ir.block_frame import NamedBlocks
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.compiler.sweeps.sweep_program import PARAMETERS, Argument
from psiphi.model.spatial.branch_free import less, max_magnitude
from psiphi.robot.mechanisms.solve.redundant_constraints import ILL_CONDITIONED
from psiphi.robot.mechanisms.system import System
from psiphi.simulation.compiled_rollout import contact_blocks
from psiphi.simulation.compiled_rollout.constraint_blocks import select_outputs
from psiphi.simulation.compiled_rollout.rollout_inputs import RolloutInput
from psiphi.simulation.compiled_rollout.rollout_program import RolloutOptions, RolloutProgram
from psiphi.simulation.compiled_rollout.rollout_runner import CACHE_SIZE
from psiphi.simulation.compiled_rollout.step_blocks import place_sizes, trace
from psiphi.simulation.control.control_law import Values
from psiphi.simulation.plant import Plant, parameters_of

if TYPE_CHECKING:
    from psiphi.simulation.rollout_derivatives.cuda_adjoint import StartDerivative
    from psiphi.simulation.rollout_derivatives.step_derivatives import DifferentiatedRollout

# by dtype: the largest constraint error at the start, on the CPU the same; what float32 resolves
CLOSURE_TOLERANCE = {"d": 1e-6, "f": 1e-3}
# by dtype: above it a pivot of Omega has no accurate digits in float64, and half of them in float32
MAX_ILL_CONDITIONING = {"d": ILL_CONDITIONED, "f": 1e6}
Source: TypeAlias = "RolloutProgram | DifferentiatedRollout | StartDerivative"
_cache: dict[tuple[str, int], CudaKernel] = {}  # by name and GPU


class CudaArgument(NamedTuple):
    """The memory of an array (motions, rows, n): strides in bytes between motions and rows."""

    pointer: int
    motion_stride: int
    row_stride: int

    def from_row(self, row: int) -> CudaArgument:
        """The rows from this one on."""
        return self._replace(pointer=self.pointer + row * self.row_stride)

    def backward_from(self, row: int) -> CudaArgument:
        """The rows from this one backward."""
        return self.from_row(row)._replace(row_stride=-self.row_stride)

    @property
    def one_row(self) -> CudaArgument:
        """One row of memory for all rows: the last one written remains."""
        return self._replace(row_stride=0)


@dataclass(frozen=True, eq=False)
class CudaRolloutProgram(RolloutProgram):
    """A rollout whose kernel normalizes and checks the initial state."""

    char: str = "d"

    @property
    def is_closed(self) -> bool:
        return isinstance(self.system, System)

    @cached_property
    def blocks(self) -> NamedBlocks:
        m, sizes = self.manifold, place_sizes(self.manifold, "qv")
        start = trace("start", sizes, lambda q, v: {"q": m.unit(q), "Q": m.unit(q), "V": v})
        blocks = super().blocks | {"start": (start, {})}
        if self.options.contacts is not None:
            blocks |= contact_blocks.sample_blocks(self.options.contacts)
        return blocks | (self._check_blocks() if isinstance(self.system, System) else {})

    def _check_blocks(self) -> NamedBlocks:
        """Blocks that set S to infinity if the motion starts off its constraints, and samples to
        NaN if S is above its bound."""
        assert isinstance(self.system, System)
        residual_code = select_outputs(self.system.residual_function, "residual")
        residual_size = residual_code.program.outputs[0].size

        def check_start(residual: np.ndarray) -> Values:
            is_closed = less(max_magnitude(residual), CLOSURE_TOLERANCE[self.char])
            return {"S": [1.0 / is_closed - 1.0]}  # 0 or infinity

        def mask_samples(Q: np.ndarray, V: np.ndarray, S: np.ndarray) -> Values:
            is_valid = less(S[0], MAX_ILL_CONDITIONING[self.char])
            factor = is_valid / is_valid  # 1 or NaN
            return {"Q": Q * factor, "V": V * factor}

        sizes = place_sizes(self.manifold, "QV") | {"S": 1}
        return {
            "start_residual": (residual_code, {}),
            "check_start": (trace("check_start", {"residual": residual_size}, check_start), {}),
            "mask_samples": (trace("mask_samples", sizes, mask_samples), {}),
        }

    @cached_property
    def rollout(self) -> Rollout:
        rollout = replace(
            super().rollout, prologue=("start",), samples_start=True, sampled=("Q", "V")
        )
        if self.options.contacts is not None:
            return self._with_contacts(rollout)
        if not self.is_closed:
            return rollout
        return replace(
            rollout,
            prologue=("start", "start_residual", "check_start", "mask_samples"),
            order=(*rollout.order, "mask_samples"),
        )

    def _with_contacts(self, rollout: Rollout) -> Rollout:
        """The rollout with a third sample, the largest residual since the sample before."""
        largest = contact_blocks.LARGEST
        contacts = self.options.contacts
        lookups = () if contacts is None else contact_blocks.lookup_order(contacts)
        check = contact_blocks.DEPTH_CHECK
        names = "start", contact_blocks.START, *lookups * (check in self.blocks), check, largest
        return replace(
            rollout,
            prologue=tuple(name for name in names if name in self.blocks),
            order=(*rollout.order, largest),
            sampled=("Q", "V", largest),
            sample_sums=(contact_blocks.TOTAL,),
            in_float64=True,
        )

    @property
    def flops(self) -> int:
        return 0  # not needed: rollouts on the GPU are not cut into pieces


class CudaRunner:
    """Runs a batch of motions on the GPU.

    `arrays` are "q", "v" and "tau", as far as they are GPU arrays; tau is one row, or one row for
    each step.
    """

    def __init__(
        self,
        plant: Plant,
        rollout_input: RolloutInput,
        options: RolloutOptions,
        dt: float,
        arrays: Mapping[str, AnyArray],
        steps: int,
    ):
        if any(map(on_gpu, parameters_of(plant.robot))):
            raise StateError(
                "rollout: the parameters of the robot are on the GPU",
                "give NumPy arrays to robot.at",
            )
        self.plant, self.rollout_input, self.options = plant, rollout_input, options
        self.arrays, self.steps = arrays, steps
        sizes = {"q": plant.nq, "v": plant.nv, "tau": plant.nv}
        names = [name for name in sizes if name in arrays]
        inputs = [self._argument(name, sizes[name]) for name in names]
        values = [arrays[name] for name in names]
        views = views_of("rollout", inputs, values)
        self.char, self.device = common_dtype_and_device("rollout", inputs, views, None)
        self.batch, strides = batch_and_strides("rollout", inputs, views)
        self.count, self.like = math.prod(self.batch), values[0]
        self.library = library_of("rollout: q0", self.like)
        self.stream = self.library.stream(self.like)
        self.referenced: list[Any] = [*values]  # arrays whose memory kernels read
        self.places = {
            name: CudaArgument(view.pointer, stride, SIZE[self.char] * sizes[name])
            for name, view, stride in zip(names, views, strides, strict=True)
        }
        self.host_values = (
            rollout_input.constants()
            | dict(zip([PARAMETERS], parameters_of(plant.robot), strict=False))
            | {"h": np.array([dt]), **({} if "v" in arrays else {"v": np.zeros(plant.nv)})}
        )
        for name, x in self.host_values.items():
            if name not in self.places:
                self.places[name] = self._copy_to_gpu(name, x, 1)
        if not set(options.packed_per_step) <= {"tau"} & set(arrays):
            for name, x in rollout_input.tables(options, 0, steps, dt).items():
                self.places[name] = self._copy_to_gpu(name, x, 2)

    def _argument(self, name: str, size: int) -> Argument:
        if name == "tau":
            is_table = name in self.options.packed_per_step
            return Argument("tau", (self.steps, size) if is_table else (size,))
        return Argument(f"{name}0", (size,))

    def _copy_to_gpu(self, name: str, x: np.ndarray, core: int) -> CudaArgument:
        """A copy of a NumPy array with `core` core axes: one row or table for all motions, or one
        for each."""
        rows = _rows(name, np.asarray(x, dtype=self.char), core, self.batch)
        copied: Any = self.library.put(self.like, rows)
        self.referenced.append(copied)
        numbers = math.prod(rows.shape[rows.ndim - core :]) if rows.ndim > core else 0
        row_stride = rows.shape[-1] * SIZE[self.char] if core == 2 else 0
        return CudaArgument(
            self.library.view(copied).pointer, numbers * SIZE[self.char], row_stride
        )

    def empty(self, rows: int, *shape: int) -> tuple[Any, CudaArgument]:
        """A new array (*batch, rows, *shape), and its memory."""
        numbers = math.prod(shape)
        array, pointer = allocate(
            f"rollout: samples of {numbers} numbers",
            self.library,
            self.like,
            (*self.batch, rows, *shape),
            self.char,
        )
        row = numbers * SIZE[self.char]
        return array, CudaArgument(pointer, rows * row, row)

    def zeros(self, size: int) -> CudaArgument:
        """One row of zeros, for all motions and steps."""
        row: Any = self.library.full(self.like, size, 0.0)
        self.referenced.append(row)
        return CudaArgument(self.library.view(row).pointer, 0, 0)

    def ready(self, array: AnyArray) -> Any:
        """An array of `empty` as an array for the user, after its kernel was enqueued."""
        return self.library.ready(self.like, array, self.stream)

    def run(self, every: int) -> list[Any]:
        """q (..., samples, nq) and v (..., samples, nv); with contacts, also the largest residual
        since the sample before, (..., samples)."""
        samples = 1 + self.steps // every
        shapes = [(self.plant.nq,), (self.plant.nv,), *[()] * (self.options.contacts is not None)]
        results = [self.empty(samples, *shape) for shape in shapes]
        out = [argument for _, argument in results]
        self.advance(self.places["q"], self.places["v"], 0, self.steps, every, out)
        return [self.ready(array) for array, _ in results]

    def advance(
        self,
        q: CudaArgument,
        v: CudaArgument,
        start: int,
        steps: int,
        every: int,
        out: list[CudaArgument],
    ) -> None:
        """Run `steps` steps from (q, v) at step `start`; store that state and every `every`-th
        after it in `out`."""
        options = self.options
        places = self.places | {"q": q, "v": v}
        for name in options.packed_per_step:
            places[name] = self.places[name].from_row(start)
        inputs = [places[name] for name in (*options.packed_once, *options.packed_per_step)]
        program = CudaRolloutProgram(self.plant.system, options, self.char)
        self.launch(program, (), [*inputs, *out], steps, every)

    def launch(
        self,
        source: Source,
        names: tuple[str, ...],
        arguments: list[CudaArgument],
        steps: int,
        every: int,
    ) -> None:
        """Enqueue the kernel of a rollout, or of its derivative with respect to the places
        `names`."""
        if not self.count:
            return
        kernel = partial(_kernel, source, self.options, names, self.char)
        pointers = [argument.pointer for argument in arguments]
        strides = [stride for argument in arguments for stride in argument[1:]]
        numbers = [*strides, self.count, steps, every]
        enqueue(kernel, pointers, numbers, self.count, self.stream, self.device, "rollout: q0")


def _rows(name: str, x: np.ndarray, core: int, batch: tuple[int, ...]) -> np.ndarray:
    """The rows of an array with `core` core axes: one for all motions, or one for each."""
    lead, core_shape = x.shape[: x.ndim - core], x.shape[x.ndim - core :]
    if math.prod(lead) == 1:
        return np.ascontiguousarray(x.reshape(core_shape))
    try:
        return np.ascontiguousarray(np.broadcast_to(x, (*batch, *core_shape)))
    except ValueError:
        cause = (
            f"rollout: {name.removeprefix('law.')} has batch axes {lead}, the initial state {batch}"
        )
        raise StateError(cause, "make them equal, 1, or absent") from None


def _kernel(
    source: Source, options: RolloutOptions, names: tuple[str, ...], char: str, device: int
) -> CudaKernel:
    """The kernel: from memory, from the disk cache, or compiled."""
    target = cuda_target.CUDA
    program = source if isinstance(source, RolloutProgram) else source.program
    what = [*options.key, *program.foreign_rules, target.key(char), type(source).__name__, names]
    key = kernel_cache.kernel_key(program.robot.digest, "gpu rollout", json.dumps(what))

    def build() -> bytes:
        return target.build(target.emit(source.rollout, char), {"flops": source.flops})

    def load() -> CudaKernel:
        return load_kernel(target.load(kernel_cache.fetch_or_build(key, build))[0], key, device)

    return kernel_cache.in_memory(_cache, (key, device), CACHE_SIZE, load)
