"""One quantity of one model as a NumPy function: the passes run when it is first called, before NumPy is entered.

The cache is asked first, by what the code depends on: psiphi's own sources, the model, the quantity, the target, the versions.
A warm process neither traces nor compiles (a large robot is rolled again, for its tables).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.escape import c_string
from psiphi._util.memory_layout import made_of, room
from psiphi._util.validate import is_lazy, on_card
from psiphi.backends import kernel_cache
from psiphi.backends.cpu.cpu_target import FP, HOST, CpuTarget
from psiphi.backends.cpu.gufunc import gufunc
from psiphi.backends.cpu.scalar_call import on_the_host, quickcall
from psiphi.backends.cpu.threads import run
from psiphi.backends.cuda import cuda_target
from psiphi.backends.cuda.kernel_launch import few_states, launch, loaded
from psiphi.compiler import passes
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.equations import Equation
from psiphi.compiler.explanation import explain
from psiphi.compiler.parameter_split import ParameterStage, number_of_parameters, size_between
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.stage_loops import StagedCode
from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.tape import Count
from psiphi.functions import build
from psiphi.functions.arrays.dask_arrays import in_blocks
from psiphi.functions.arrays.function_registry import FUNCTIONS, NUMBERS
from psiphi.model.model import WORLD, Model

_ndarray = np.ndarray
_lock = threading.RLock()  # one compilation at a time; LLVM has no more hands either


def _forget_lock() -> None:
    """A forked child has none of its parent's threads, and perhaps a lock that one of them held."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


@dataclass(frozen=True)
class QuantityRequest:
    """What is asked for: a quantity of the catalogue, for these frames, in these axes."""

    name: str
    frames: tuple[str, ...] = ()
    axes: str = "world"


AXES = (
    24 if np.__version__.startswith("1.") else 56
)  # of all results of a function; NumPy has eight more for batches
KEPT = 64  # functions from other processes that one holds on to
MANY = 256  # states in a call, from which on what parameters alone make is worth code of its own
_unpickled: dict[str, Function] = {}


class CompileJob:
    """One quantity of one model on its way to machine code. It does not know its gufunc: NumPy's gufuncs hide from the
    garbage collector, so nothing they hold may lead back to them."""

    def __init__(self, request: QuantityRequest, asked: Any, target: CpuTarget = HOST):
        self.request, self.asked, self.target = request, asked, target
        self.model: Model = asked.model
        self.arguments: tuple[tuple[Argument, ...], tuple[Argument, ...]] = asked.arguments()
        self.libraries: dict[str, Any] = {}  # by dtype
        self.kernels: dict[
            tuple[str, int, bool], Any
        ] = {}  # by dtype and graphics card; whether for few states
        self._count: Count | None = None
        self.cost = 1000  # operations an element, once compiled: what a batch is worth in threads
        # which of the inputs are free numbers of the robot, where code can be halved
        self.own = None if isinstance(asked, ParameterStage) else number_of_parameters(self.inputs)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        return self.arguments[0]

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return self.arguments[1]

    @property
    def text(self) -> str:
        return self.asked.equation or ", ".join(map(str, self.asked.results.values()))

    @property
    def tree(self) -> Tree:
        return passes.framed(self.asked)

    @property
    def program(self) -> Program:
        return passes.program(self.asked, self.tree)

    @property
    def code(self) -> StraightCode | LinkLoops:
        """One tape, or loops over classes of links."""
        code = passes.code(self.asked)
        return code.straight if isinstance(code, StagedCode) else code

    @property
    def written_out(self) -> bool:
        """Whether this quantity is code of its own; a large robot's matrix is made of an operator's columns."""
        return not (passes.is_large(self.model) and self.asked.columns)

    @property
    def count(self) -> Count:
        """Exact operation count of one evaluation."""
        return self._count or passes.code(self.asked).count

    @property
    def flops(self) -> int:
        """Multiplications, additions, divisions and square roots of one evaluation."""
        return self.count.flops

    def explain(self) -> str:
        """How the equation became sweeps, and what they cost."""
        if isinstance(self.asked, Equation):
            return explain(self.asked, self.count)
        return self.asked.explain() if hasattr(self.asked, "explain") else self.text

    def ir(self, char: str = "d") -> str:
        """The LLVM IR of the loop for one dtype."""
        return self.target.emit(passes.code(self.asked), char)

    def compile(self, char: str) -> int:
        """The address of the loop for one dtype, from the cache or the compiler; once, whoever asks first."""
        with _lock:
            if char not in self.libraries:
                self.libraries[char], self._count = build.compile(
                    self.asked, self.target, char, self.key
                )
                if self._count is not None:
                    self.cost = self._count.flops + 40 * self._count.trig
        return self.libraries[char].address("loop")

    def kernel(self, char: str, card: int, n: int) -> Any:
        """The kernel for n states of one dtype on one graphics card: PTX and machine code from the cache, or made now."""
        few = self._branches and n <= few_states(card)
        with _lock:
            if (char, card, few) not in self.kernels:
                target = cuda_target.CUDA.for_few() if few else cuda_target.CUDA
                name = self.key(char, target)
                text, self._count = build.compile(self.asked, target, char, lambda _: name)
                self.kernels[char, card, few] = loaded(text, name, card)
        return self.kernels[char, card, few]

    @cached_property
    def _branches(self) -> bool:
        """Whether some body carries several: only then there are limbs to share."""
        inner = [k for k in self.model.parent if k != WORLD]
        return len(set(inner)) < len(inner)

    def key(self, char: str, target: Any = None) -> str:
        """The name of the machine code in the cache."""
        r, on = self.request, target or self.target
        equation = getattr(self.asked, "key", "")
        what = json.dumps([r.name, r.frames, r.axes, equation, passes.UNROLLED, on.key(char)])
        return kernel_cache.kernel_key(self.model.digest, what)


class Function:
    """One compiled quantity of one model: `ufunc` is the NumPy gufunc, `source` how it came about."""

    def __init__(self, request: QuantityRequest, asked: Any, target: CpuTarget = HOST):
        self.source = CompileJob(request, asked, target)
        self.name, (self.inputs, self.outputs) = request.name, self.source.arguments
        self.number = next(NUMBERS)
        FUNCTIONS[self.number] = self

    def __copy__(self) -> Function:
        """A copy has a number of its own."""
        return type(self)(self.source.request, self.source.asked, self.source.target)

    @cached_property
    def ufunc(self) -> np.ufunc:
        """The NumPy gufunc; whoever takes it bare compiles inside its first call."""
        return _gufunc(self.source)

    def prepare(self, char: str = "d") -> None:
        """Compile now."""
        self.source.compile(char)

    def run(self, values: Any, out: Any = None, dtype: Any = None) -> Any:
        """The results for arrays; what is not compiled yet is, before NumPy is entered, so that its errors are plain ones."""
        source = self.source
        if any(type(value) is not _ndarray for value in values):
            if any(map(on_card, values)):
                return launch(
                    source.request.name,
                    source.inputs,
                    source.outputs,
                    values,
                    out,
                    dtype,
                    source.kernel,
                )
            if any(map(is_lazy, values)):
                return self._later(values, out, dtype)
        char = _char(values, dtype)
        function, values = (
            (self, values) if source.own is None else self._going_on(values, source.own, char)
        )
        if char not in function.source.libraries:
            function.prepare(char)
        return run(function.ufunc, values, out, dtype=dtype, flops=function.source.cost)

    def _going_on(self, values: Any, own: int, char: str) -> tuple[Function, Any]:
        """For parameters that are kept: the half that goes on from what the other made of them, once; else this function."""
        made = made_of(values[own])
        if (
            made is None
            or max(
                np.size(x) // max(1, arg.size) for x, arg in zip(values, self.inputs, strict=False)
            )
            < MANY
        ):
            return self, values
        if self._halves is None:
            return self, values
        (early, late), key = self._halves, (self.number, char)
        if key not in made:
            lead, kind = values[own].shape[:-1], np.dtype(char)
            made[key] = early.run((values[own],), (room(lead, early.outputs[0].size, kind),), kind)
        return late, (*values[:own], made[key], *values[own + 1 :])

    @cached_property
    def _halves(self) -> tuple[Function, Function] | None:
        """`parameter_split.py`; how many numbers go from one to the other is in the cache, so that a warm process traces nothing."""
        s = self.source
        name = kernel_cache.key(s.key("d"), "halves")
        size = int(kernel_cache.remember(name, lambda: str(size_between(s.asked)).encode()))
        early, late = (
            Function(s.request, ParameterStage(s.asked, size, late), s.target)
            for late in (False, True)
        )
        return (early, late) if size else None

    def on_blocks(self, *values: np.ndarray, dtype: Any = None) -> Any:
        """The results for one block of Dask's."""
        return self.run(
            values, None if dtype is None else (None,) * len(self.source.outputs), dtype
        )

    def _later(self, values: Any, out: Any, dtype: Any) -> Any:
        source, given = self.source, out if isinstance(out, tuple) else (out,)
        if any(array is not None for array in given):
            cause = (
                f"{source.request.name}: out= takes numbers now, and an argument is a Dask array"
            )
            raise StateError(cause, "leave out= out")
        return in_blocks(
            source.request.name, self.on_blocks, source.inputs, source.outputs, values, dtype
        )

    def single(self, otherwise: Callable | None = None) -> Any:
        """The fastest callable for one element of plain float64 vectors; what else comes goes to `otherwise`, or the gufunc."""
        self.prepare()
        library, door = self.source.libraries["d"], otherwise or on_the_host(self.ufunc)
        quick = (
            quickcall(library, door, self.source.request.name) if "quick" in library.names else None
        )
        return quick or door

    def __reduce__(self) -> Any:
        """What is asked, in some kB: whoever unpickles it finds the machine code in the cache, and has it once a process."""
        source = self.source
        return _again, (type(self), source.request, source.asked, source.target)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.source, name)


def _again(
    kind: type[Function], request: QuantityRequest, asked: Any, target: CpuTarget
) -> Function:
    made = kind(request, asked, target)
    key = f"{kind.__name__} {made.source.key('d')}"
    return kernel_cache.held(_unpickled, key, KEPT, lambda: made)


def _char(values: Any, dtype: Any) -> str:
    """The dtype of the loop that NumPy will take: float32 where all arrays are (or it is asked for), else float64."""
    if dtype is None:
        return "f" if all(getattr(value, "dtype", None) == np.float32 for value in values) else "d"
    return "f" if np.dtype(dtype) == np.float32 else "d"


def _gufunc(source: CompileJob) -> np.ufunc:
    inputs, outputs = source.arguments
    if sum(len(arg.shape) for arg in outputs) > AXES:
        cause = f"{source.request.name} has {len(outputs)} results, more than a function of NumPy's takes"
        raise StateError(cause, "name fewer arguments, or take jvp or vjp")
    core = [f"({','.join(map(str, arg.shape))})" for arg in (*inputs, *outputs)]
    signature = ",".join(core[: len(inputs)]) + "->" + ",".join(core[len(inputs) :])
    doc = c_string(f"{source.text} of {source.model.name}")
    ready = {char: source.compile(char) for char in source.libraries}
    loops: dict[str, Any] = {char: partial(source.compile, char) for char in FP} | ready
    return gufunc(source.request.name, signature, loops, doc, len(inputs), len(outputs))
