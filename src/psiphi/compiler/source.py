"""From a program to a gufunc: trace, emit, compile, cache. The named passes fit this page.

    frame_tree -> unroll | roll -> cut -> LLVM text -> object code -> gufunc

The cache is asked first, by what the code depends on: psiphi's own sources, the model, the quantity, the CPU, the
versions. A warm process neither traces nor compiles (a large robot is rolled again, for its tables).
"""

from __future__ import annotations

import ctypes
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from psiphi.compiler.equations import Equation
from psiphi.emitters import jit
from psiphi.emitters.kernel import Kernel, module
from psiphi.emitters.quick import fits
from psiphi.emitters.rolled import Tables, rolled_kernel
from psiphi.emitters.straight import straight_kernel
from psiphi.model.model import Model
from psiphi.runtime import cache
from psiphi.runtime.gufunc import gufunc, prepare
from psiphi.runtime.quickcall import quickcall
from psiphi.sweeps.framing import Tree, frame_tree
from psiphi.sweeps.program import Argument, Program
from psiphi.sweeps.roll import Rolled, roll
from psiphi.sweeps.unroll import Straight, unroll
from psiphi.tape.ops import Count

UNROLLED = 64  # up to so many bodies are written out as straight-line code
FP = {"d": "double", "f": "float"}


@dataclass(frozen=True)
class Request:
    """What is asked for: a quantity of the catalogue, for these frames, in these axes."""

    name: str
    frames: tuple[str, ...] = ()
    axes: str = "world"


class Source:
    """One quantity of one model on its way to machine code. It does not know its gufunc: NumPy's gufuncs hide from the
    garbage collector, so nothing they hold may lead back to them."""

    def __init__(self, model: Model, request: Request, quantity: Any, lanes: int | None = None):
        self.model, self.request, self.quantity, self._lanes = model, request, quantity, lanes
        self.columns, self.text = quantity.columns, quantity.equation
        self._counts: dict[str, Count] = {}
        self.quick_library: Any = None

    @cached_property
    def arguments(self) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
        """Inputs and outputs; an equation knows them before it is lowered, so that a warm start need not lower it."""
        if isinstance(self.quantity, Equation):
            return self.quantity.arguments()
        return self.program.inputs, self.program.outputs

    @property
    def inputs(self) -> tuple[Argument, ...]:
        return self.arguments[0]

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return self.arguments[1]

    @cached_property
    def tree(self) -> Tree:
        rods = self.quantity.moves_inertia if isinstance(self.quantity, Equation) else self.quantity.rods
        return _tree(self.model, rods)

    @cached_property
    def program(self) -> Program:
        return self.quantity.program(self.tree, self.request.frames, self.request.axes)

    @property
    def written_out(self) -> bool:
        """Whether this quantity is code of its own; a large robot's matrix is made of an operator's columns."""
        return len(self.model.joints) <= UNROLLED or not self.columns

    @cached_property
    def code(self) -> Straight | Rolled:
        """The program lowered: one tape, or loops over classes of links."""
        if len(self.model.joints) > UNROLLED and self.program.local:
            return roll(self.program, self.tree)
        return unroll(self.program, self.tree)

    @property
    def count(self) -> Count:
        """Exact operation count of one evaluation."""
        return next(iter(self._counts.values()), None) or self.code.count

    @property
    def cost(self) -> int:
        """Operations an element, once compiled: what a batch is worth in threads."""
        known = next(iter(self._counts.values()), None)
        return 1000 if known is None else known.flops + 40 * known.trig

    def explain(self) -> str:
        """How the equation became sweeps, and what they cost."""
        return self.quantity.explain(self.count) if isinstance(self.quantity, Equation) else self.text

    def lanes(self, char: str) -> int:
        return self._lanes or host_lanes(FP[char])

    def ir(self, char: str = "d") -> str:
        """The LLVM IR of the loop for one dtype."""
        code, fma = self.code, has_fma()
        kernel: Kernel = rolled_kernel(code, fma) if isinstance(code, Rolled) else straight_kernel(code, fma)
        return module(kernel, "loop", FP[char], self.lanes(char))

    def compile(self, char: str) -> int:
        """The address of the loop for one dtype, from the cache or the compiler."""
        packed = cache.remember(self._key(char), lambda: _pack(self.code.count, jit.compile_ir(self.ir(char))))
        self._counts[char], obj = _unpack(packed)
        quick = char == "d" and fits(*self.arguments)
        library = jit.load_object(obj, ["loop", "tables"] + ["quick", "quick.table"] * quick)
        if quick:
            self.quick_library = library
        address = library.address("loop")
        if len(self.model.joints) > UNROLLED and isinstance(self.code, Rolled):
            address.tables = tables = Tables(self.code, char)  # type: ignore[attr-defined]
            ctypes.c_void_p.from_address(library.address("tables")).value = tables.address
        return address

    def _key(self, char: str) -> str:
        r = self.request
        equation = self.quantity.key if isinstance(self.quantity, Equation) else ""
        what = json.dumps([r.name, r.frames, r.axes, equation, char, self.lanes(char), has_fma(), UNROLLED])
        return cache.key(sources(), self.model.digest, what, *jit.host(), np.__version__)


class Function:
    """One compiled quantity of one model: `ufunc` is the NumPy gufunc, `source` how it came about."""

    def __init__(self, model: Model, request: Request, quantity: Any, lanes: int | None = None):
        self.source = Source(model, request, quantity, lanes)
        self.ufunc = _gufunc(self.source)

    def prepare(self, char: str = "d") -> None:
        """Compile now."""
        prepare(self.ufunc, char)

    def single(self) -> Any:
        """The fastest callable for one element of plain float64 vectors; it takes everything the gufunc takes."""
        self.prepare()
        library = self.source.quick_library
        return self.ufunc if library is None else quickcall(library, self.ufunc, self.source.request.name) or self.ufunc

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.source, name)


def _gufunc(source: Source) -> np.ufunc:
    inputs, outputs = source.arguments
    core = [f"({','.join(map(str, arg.shape))})" for arg in (*inputs, *outputs)]
    signature = ",".join(core[: len(inputs)]) + "->" + ",".join(core[len(inputs) :])
    doc = f"{source.text} of {source.model.name}"
    loops: dict[str, Any] = {char: partial(source.compile, char) for char in FP}
    return gufunc(source.request.name, signature, loops, doc, len(inputs), len(outputs))


@lru_cache(maxsize=32)
def _tree(model: Model, rods: bool) -> Tree:
    return frame_tree(model, rods)


def _pack(count: Count, obj: bytes) -> bytes:
    head = json.dumps(vars(count)).encode()
    return len(head).to_bytes(4, "little") + head + obj


def _unpack(packed: bytes) -> tuple[Count, bytes]:
    size = int.from_bytes(packed[:4], "little")
    return Count(**json.loads(packed[4 : 4 + size])), packed[4 + size :]


@lru_cache(maxsize=1)
def sources() -> str:
    """SHA-256 of psiphi's own sources: changed code never meets an old kernel."""
    sha = hashlib.sha256()
    root = Path(__file__).parent.parent
    rooms = (
        "spatial",
        "model",
        "operators",
        "rewriting",
        "tape",
        "sweeps",
        "lowering",
        "emitters",
        "runtime",
        "compiler",
        "catalogue",
        "closed",
    )
    for folder in (root, *(root / room for room in rooms)):
        for path in sorted(folder.glob("*.py")):
            sha.update(path.name.encode() + path.read_bytes())
    return sha.hexdigest()


@lru_cache(maxsize=4)
def host_lanes(fp: str) -> int:
    """Doubles (or twice as many floats) in the widest vector register of this processor."""
    features = set(jit.host().features.split(","))
    doubles = 8 if "+avx512f" in features else 4 if "+avx" in features else 2
    return doubles if fp == "double" else 2 * doubles


@lru_cache(maxsize=1)
def has_fma() -> bool:
    """Whether a fused multiply-add is one instruction here."""
    host = jit.host()
    return "+fma" in host.features.split(",") or host.triple.startswith(("aarch64", "arm64"))
