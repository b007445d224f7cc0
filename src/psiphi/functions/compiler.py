"""From a program to a gufunc: trace, emit, compile, cache. The named passes fit this page.

    frame_tree -> unroll | roll -> cut -> LLVM text -> object code -> gufunc

The cache is asked first, by what the code depends on: psiphi's own sources, the model, the quantity, the CPU, the
versions. A warm process neither traces nor compiles.
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

from psiphi.emitters import jit
from psiphi.emitters.kernel import Kernel, module
from psiphi.emitters.rolled import Tables, rolled_kernel
from psiphi.emitters.straight import straight_kernel
from psiphi.functions import cache
from psiphi.functions.dynamics import CATALOGUE
from psiphi.functions.gufunc import gufunc, prepare
from psiphi.model.model import Model
from psiphi.sweeps.framing import Tree, frame_tree
from psiphi.sweeps.program import Program
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


class Function:
    """One compiled quantity of one model: `ufunc` is the NumPy gufunc, `count` its exact operation count per element."""

    def __init__(self, model: Model, request: Request, lanes: int | None = None):
        self.model, self.request, self._lanes = model, request, lanes
        self._counts: dict[str, Count] = {}
        self.ufunc = self._gufunc()

    @cached_property
    def tree(self) -> Tree:
        return _tree(self.model, CATALOGUE[self.request.name].rods)

    @cached_property
    def program(self) -> Program:
        return CATALOGUE[self.request.name].program(self.tree, self.request.frames, self.request.axes)

    @cached_property
    def code(self) -> Straight | Rolled:
        """The program lowered: one tape, or loops over classes of links."""
        if len(self.model.joints) > UNROLLED and self.program.local:
            return roll(self.program, self.tree)
        return unroll(self.program, self.tree)

    @property
    def count(self) -> Count:
        known = next(iter(self._counts.values()), None)
        return self.code.count if known is None else known

    @property
    def cost(self) -> int:
        """Operations an element, once compiled: what a batch is worth in threads."""
        known = next(iter(self._counts.values()), None)
        return 1000 if known is None else known.flops + 40 * known.trig

    @property
    def written_out(self) -> bool:
        """Whether this quantity is code of its own; a large robot's matrix is made of an operator's columns."""
        return len(self.model.joints) <= UNROLLED or not CATALOGUE[self.request.name].columns

    def lanes(self, char: str) -> int:
        return self._lanes or host_lanes(FP[char])

    def ir(self, char: str = "d") -> str:
        """The LLVM IR of the loop for one dtype."""
        kernel: Kernel = (
            rolled_kernel(self.code, has_fma()) if isinstance(self.code, Rolled) else straight_kernel(self.code, has_fma())
        )
        return module(kernel, "loop", FP[char], self.lanes(char))

    def compile(self, char: str) -> int:
        """The address of the loop for one dtype, from the cache or the compiler."""
        entry = self._key(char)
        packed = cache.fetch(entry)
        if packed is None:
            packed = _pack(self.code.count, jit.compile_ir(self.ir(char)))
            cache.store(entry, packed)
        self._counts[char], obj = _unpack(packed)
        library = jit.load_object(obj, ["loop", "tables"])
        address = library.address("loop")
        if len(self.model.joints) > UNROLLED and isinstance(self.code, Rolled):
            address.tables = tables = Tables(self.code, char)  # type: ignore[attr-defined]
            ctypes.c_void_p.from_address(library.address("tables")).value = tables.address
        return address

    def _key(self, char: str) -> str:
        r = self.request
        what = json.dumps([r.name, r.frames, r.axes, char, self.lanes(char), has_fma()])
        return cache.key(sources(), self.model.digest, what, *jit.host(), np.__version__)

    def _gufunc(self) -> np.ufunc:
        inputs, outputs = self.program.inputs, self.program.outputs
        core = [f"({','.join(map(str, arg.shape))})" for arg in (*inputs, *outputs)]
        signature = ",".join(core[: len(inputs)]) + "->" + ",".join(core[len(inputs) :])
        doc = f"{CATALOGUE[self.request.name].equation} of {self.model.name}"
        loops: dict[str, Any] = {char: partial(self.compile, char) for char in FP}
        return gufunc(self.request.name, signature, loops, doc, len(inputs), len(outputs))

    def prepare(self, char: str = "d") -> None:
        """Compile now."""
        prepare(self.ufunc, char)


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
    for room in ("spatial", "model", "tape", "sweeps", "emitters", "functions"):
        for path in sorted((root / room).glob("*.py")):
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
