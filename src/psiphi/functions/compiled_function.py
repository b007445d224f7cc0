"""One quantity of one model as a NumPy function, compiled at its first call.

Compiled code is cached under a key of everything that it depends on: psiphi's sources, the model,
the quantity, the target, the versions. If the cache has it, nothing is traced or compiled (except
that the loops of a large robot are traced again, for their tables).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from psiphi._util.array_types import DType, Out
from psiphi._util.errors import StateError
from psiphi._util.escape import c_string
from psiphi._util.memory_layout import aligned_array, derived_arrays
from psiphi._util.validate import is_lazy, on_gpu
from psiphi.backends import build, kernel_cache
from psiphi.backends.cpu.cpu_target import FP, HOST, CpuTarget
from psiphi.backends.cpu.gufunc import gufunc
from psiphi.backends.cpu.scalar_call import fast_call, reject_foreign
from psiphi.backends.cpu.threads import run
from psiphi.backends.cuda import cuda_target
from psiphi.backends.cuda.kernel_launch import launch, load_kernel, small_batch
from psiphi.backends.llvm.jit import Library
from psiphi.backends.target import RunningTarget
from psiphi.compiler import passes
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import CompileRequest, Equation, parameters_index
from psiphi.compiler.explanation import explain
from psiphi.compiler.parameter_split import ParameterStage, stage_size
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.stage_loops import StagedCode
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.tape import Count
from psiphi.functions.arrays.dask_arrays import map_blocks
from psiphi.functions.arrays.function_registry import FUNCTIONS, NUMBERS
from psiphi.model.model import WORLD, Model

_ndarray = np.ndarray
_lock = threading.RLock()  # one compilation at a time: LLVM is not thread-safe


def _reset_lock() -> None:
    """Make a new lock in a forked process: a thread that no longer exists may hold the old one."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_lock)


@dataclass(frozen=True)
class QuantityRequest:
    """A quantity of the catalogue, for some frames, in some axes."""

    name: str
    frames: tuple[str, ...] = ()
    axes: str = "world"


# the axes of all results that a NumPy function can have, with eight left for batches
MAX_RESULT_AXES = 24 if np.__version__.startswith("1.") else 56
MAX_UNPICKLED = 64  # unpickled functions that a process keeps in memory
SPLIT_BATCH = 256  # states per call from which on a separate parameter stage pays
_unpickled: dict[str, Function] = {}


class CompileJob:
    """The compilation of one quantity of one model.

    It has no reference to its gufunc: gufuncs are invisible to the garbage collector, so a
    reference cycle through one would never be freed.
    """

    def __init__(
        self, quantity: QuantityRequest, request: CompileRequest, target: CpuTarget = HOST
    ):
        self.quantity, self.request, self.target = quantity, request, target
        self.model: Model = request.model
        self.arguments: tuple[tuple[Argument, ...], tuple[Argument, ...]] = request.arguments()
        self.libraries: dict[tuple[str, bool], Library] = {}  # by dtype and part of the code
        self.first: dict[str, Library] = {}  # the part that was compiled first, by dtype
        self.kernels: dict[tuple[str, int, bool], Any] = {}  # (dtype, GPU, small batch): kernel
        self._count: Count | None = None
        self.cost = 1000  # operations per element, which decides about threads; set by `compile`
        # the index of the free parameters among the inputs, if they can have a stage
        self.parameters_index = (
            None if isinstance(request, ParameterStage) else parameters_index(self.inputs)
        )

    @property
    def inputs(self) -> tuple[Argument, ...]:
        return self.arguments[0]

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return self.arguments[1]

    @property
    def equation_text(self) -> str:
        """The equation as text."""
        results = self.request.results.values() if isinstance(self.request, Equation) else ()
        return self.request.equation or ", ".join(map(str, results))

    @property
    def tree(self) -> Tree:
        """The tree on which the sweeps run."""
        return passes.tree_of(self.request)

    @property
    def program(self) -> Program:
        """The sweeps."""
        return passes.program(self.request, self.tree)

    @property
    def code(self) -> StraightCode | LinkLoops:
        """One tape, or loops over classes of links."""
        code = passes.code(self.request)
        return code.straight if isinstance(code, StagedCode) else code

    @property
    def written_out(self) -> bool:
        """Whether the quantity has its own code; a large robot's matrix is computed by columns."""
        return not (passes.is_large(self.model) and self.request.columns)

    @property
    def count(self) -> Count:
        """Exact operation count of one evaluation."""
        return self._count or passes.code(self.request).count

    @property
    def flops(self) -> int:
        """Multiplications, additions, divisions and square roots of one evaluation."""
        return self.count.flops

    def explain(self) -> str:
        """The passes that turned the equation into sweeps, and the cost of these."""
        if isinstance(self.request, Equation):
            return explain(self.request, self.count)
        describe: Callable[[], str] | None = getattr(self.request, "explain", None)
        return self.equation_text if describe is None else describe()

    @property
    def title(self) -> str:
        """The quantity and its robot."""
        return f"{self.quantity.name} of {self.model.name}"

    def ir(self, char: str = "d") -> str:
        """The LLVM IR of the loop for a dtype."""
        return self.target.emit(passes.code(self.request), char)

    def compile(self, char: str, single: bool | None = None) -> int:
        """The address of the loop for a dtype: compiled, or from the cache, at the first call.

        `single`: the part of the code for one state, or for several; None: both. The loop takes
        any number of states, and is fast for those of its parts.
        """
        with _lock:
            for part in (True, False) if single is None else (single,):
                if (char, part) not in self.libraries:
                    self._compile_part(char, part)
        return self.first[char].address("loop")

    def loop(self, char: str) -> int:
        """The address of the loop for a dtype; compiles both parts unless one is there."""
        return self.first[char].address("loop") if char in self.first else self.compile(char)

    def _compile_part(self, char: str, single: bool) -> None:
        target = self.target.part(single)
        library, self._count = build.compile(
            self.request, target, char, lambda char: self.key(char, target), self.title
        )
        if self._count is not None:
            self.cost = self._count.flops + 40 * self._count.trig
        self.libraries[char, single] = library
        if char in self.first:
            self.first[char].set_pointer("other", library.address("loop"))
        else:
            self.first[char] = library

    def kernel(self, char: str, gpu: int, n: int) -> Any:
        """The kernel for n states of a dtype on a GPU: compiled, or from the cache, at the first
        call."""
        small = self._has_branches and n <= small_batch(gpu)
        with _lock:
            if (char, gpu, small) not in self.kernels:
                target = cuda_target.CUDA.for_small_batch() if small else cuda_target.CUDA
                name = self.key(char, target)
                text, self._count = build.compile(
                    self.request, target, char, lambda _: name, f"{self.title} for the GPU"
                )
                self.kernels[char, gpu, small] = load_kernel(text, name, gpu)
        return self.kernels[char, gpu, small]

    @cached_property
    def _has_branches(self) -> bool:
        """Whether a body has several children: only then can warps share one state."""
        inner = [k for k in self.model.parent if k != WORLD]
        return len(set(inner)) < len(inner)

    def key(self, char: str, target: RunningTarget | None = None) -> str:
        """The name of the machine code in the cache."""
        what, on = self.quantity, target or self.target
        equation = getattr(self.request, "key", "")
        text = json.dumps(
            [what.name, what.frames, what.axes, equation, passes.UNROLL_LIMIT, on.key(char)]
        )
        return kernel_cache.kernel_key(self.model.digest, text)


class Function:
    """One compiled quantity of one model. `ufunc` is the NumPy gufunc, `source` the compilation."""

    def __init__(
        self, quantity: QuantityRequest, request: CompileRequest, target: CpuTarget = HOST
    ):
        self.source = CompileJob(quantity, request, target)
        self.name, (self.inputs, self.outputs) = quantity.name, self.source.arguments
        self.number = next(NUMBERS)
        FUNCTIONS[self.number] = self

    def __copy__(self) -> Function:
        """A copy has its own number."""
        return type(self)(self.source.quantity, self.source.request, self.source.target)

    @cached_property
    def gufunc(self) -> np.ufunc:
        """The NumPy gufunc. It compiles inside its first call, unless `prepare` was called."""
        return _gufunc(self.source)

    @property
    def ufunc(self) -> np.ufunc:
        """The NumPy gufunc, with both parts of the code: for one state and for several."""
        for char in self.source.first:
            self.source.compile(char)
        return self.gufunc

    def prepare(self, char: str = "d", single: bool | None = None) -> None:
        """Compile now: the code for one state, for several (`single` False), or both."""
        self.source.compile(char, single)

    def run(self, values: Sequence[Any], out: Out = None, dtype: DType = None) -> Any:
        """The results for arrays. `out`: an array, or a tuple of arrays and None.

        Compiles before NumPy is called, so that errors are not wrapped.
        """
        source = self.source
        if any(type(value) is not _ndarray for value in values):
            if any(map(on_gpu, values)):
                return launch(
                    source.quantity.name,
                    source.inputs,
                    source.outputs,
                    values,
                    out,
                    dtype,
                    source.kernel,
                )
            if any(map(is_lazy, values)):
                return self._run_lazy(values, out, dtype)
        char = _dtype_char(values, dtype)
        function, values = (
            (self, values)
            if source.parameters_index is None
            else self._reuse_parameter_stage(values, source.parameters_index, char)
        )
        source, libraries = function.source, function.source.libraries
        if (char, True) not in libraries or (char, False) not in libraries:
            single = all(
                np.ndim(x) == len(arg.shape) for x, arg in zip(values, source.inputs, strict=False)
            )
            if (char, single) not in libraries:
                function.prepare(char, single)
        return run(function.gufunc, values, out, dtype=dtype, flops=function.source.cost)

    def _reuse_parameter_stage(
        self, values: Sequence[Any], index: int, char: str
    ) -> tuple[Function, Sequence[Any]]:
        """The function and the arguments to use: the late stage with the results of the early
        stage, if a large batch has read-only parameters; else this function.

        The results of the early stage are stored with the array of the parameters.
        """
        derived = derived_arrays(values[index])
        if (
            derived is None
            or max(
                np.size(x) // max(1, arg.size) for x, arg in zip(values, self.inputs, strict=False)
            )
            < SPLIT_BATCH
        ):
            return self, values
        if self.parameter_stages is None:
            return self, values
        (early, late), key = self.parameter_stages, (self.number, char)
        if key not in derived:
            lead, kind = values[index].shape[:-1], np.dtype(char)
            derived[key] = early.run(
                (values[index],), (aligned_array(lead, early.outputs[0].size, kind),), kind
            )
        return late, (*values[:index], derived[key], *values[index + 1 :])

    @cached_property
    def parameter_stages(self) -> tuple[Function, Function] | None:
        """The early and the late stage (`parameter_split.py`); None if a split does not pay.

        The number of values between them is cached, so that a warm process traces nothing.
        """
        s = self.source
        name = kernel_cache.key(s.key("d"), "halves")
        size = int(kernel_cache.fetch_or_build(name, lambda: str(stage_size(s.request)).encode()))
        early, late = (
            Function(s.quantity, ParameterStage(s.request, size, late), s.target)
            for late in (False, True)
        )
        return (early, late) if size else None

    def run_block(self, *values: np.ndarray, dtype: DType = None) -> Any:
        """The results for one block of Dask arrays."""
        return self.run(
            values, None if dtype is None else (None,) * len(self.source.outputs), dtype
        )

    def _run_lazy(self, values: Sequence[Any], out: Out, dtype: DType) -> Any:
        """The results for Dask arrays, as Dask arrays."""
        source, arrays = self.source, out if isinstance(out, tuple) else (out,)
        if any(array is not None for array in arrays):
            raise StateError(
                f"{source.quantity.name}: out= needs results now, and an argument is a Dask array",
                "omit out=",
            )
        return map_blocks(
            source.quantity.name, self.run_block, source.inputs, source.outputs, values, dtype
        )

    def scalar_call(self, fallback: Callable | None = None) -> Callable:
        """The fastest callable for plain float64 vectors of one state. It passes other arguments on
        to `fallback`, or to the gufunc, which may be slow for several states."""
        self.prepare(single=True)
        general = fallback or reject_foreign(self.ufunc)
        library = self.source.libraries["d", True]
        fast = (
            fast_call(library, general, self.source.quantity.name)
            if "quick" in library.names
            else None
        )
        return fast or general

    def __repr__(self) -> str:
        source = self.source
        frames = "".join(f" {frame}" for frame in source.quantity.frames)
        names = [", ".join(arg.name for arg in args) for args in source.arguments]
        return f"<{source.quantity.name}{frames} of {source.model.name!r}: {' -> '.join(names)}>"

    def __reduce__(self) -> tuple[Callable, tuple]:
        """The request only, a few kB: the machine code is in the cache of the receiving process."""
        source = self.source
        return _unpickle, (type(self), source.quantity, source.request, source.target)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.source, name)


def _unpickle(
    kind: type[Function], quantity: QuantityRequest, request: CompileRequest, target: CpuTarget
) -> Function:
    """The function; equal ones are one object per process."""
    function = kind(quantity, request, target)
    key = f"{kind.__name__} {function.source.key('d')}"
    return kernel_cache.in_memory(_unpickled, key, MAX_UNPICKLED, lambda: function)


def _dtype_char(values: Sequence[object], dtype: DType) -> str:
    """The dtype of the loop that NumPy will choose: "f" if `dtype` or all arrays are float32."""
    if dtype is None:
        return "f" if all(getattr(value, "dtype", None) == np.float32 for value in values) else "d"
    return "f" if np.dtype(dtype) == np.float32 else "d"


def _gufunc(source: CompileJob) -> np.ufunc:
    inputs, outputs = source.arguments
    if sum(len(arg.shape) for arg in outputs) > MAX_RESULT_AXES:
        raise StateError(
            f"{source.quantity.name} has {len(outputs)} results, more than a NumPy function can "
            "have",
            "name fewer arguments, or take jvp or vjp",
        )
    core = [f"({','.join(map(str, arg.shape))})" for arg in (*inputs, *outputs)]
    signature = ",".join(core[: len(inputs)]) + "->" + ",".join(core[len(inputs) :])
    doc = c_string(f"{source.equation_text} of {source.model.name}")
    compiled = {char: source.loop(char) for char in source.first}
    loops: dict[str, Any] = {char: partial(source.loop, char) for char in FP} | compiled
    return gufunc(source.quantity.name, signature, loops, doc, len(inputs), len(outputs))
