"""The CPU psiphi runs on, as a target: LLVM IR, object code, addresses in this process."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from psiphi.backends.cpu.gufunc_kernel import Kernel, gufunc_module
from psiphi.backends.cpu.loop_kernel import loop_kernel
from psiphi.backends.cpu.rollout_kernel import rollout_module, single_step_kernel, staged_kernel
from psiphi.backends.cpu.straight_kernel import straight_kernel
from psiphi.backends.kernel_cache import in_memory
from psiphi.backends.llvm import jit, shared_functions
from psiphi.compiler.ir.loop_nodes import Rollout, SingleStep
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.stage_loops import StagedCode

if TYPE_CHECKING:  # target.py imports this file
    from psiphi.backends.target import Code

# symbols to call or set
EXPORTS = ("loop", "other", "tables", "quick", "quick.table", "rollout")
FP = {"d": "double", "f": "float"}
MAX_KERNELS = 2  # that a process keeps
_kernels: dict[tuple[int, bool], tuple[Code, Kernel]] = {}  # the code keeps its id
SPARE_REGISTERS = 4  # for operands that an instruction reads from memory


class CpuTarget:
    """This CPU; `lanes` other than those of its widest registers are for tests.

    Code has two parts, one for a single element and one for several in lanes. Each can be compiled
    alone, and computes the same numbers for any count: `single` True or False is the target of
    that part.
    """

    def __init__(self, lanes: int | None = None, single: bool | None = None):
        self._lanes, self.single = lanes, single

    def lanes(self, char: str) -> int:
        return self._lanes or host_lanes(FP[char])

    def part(self, single: bool) -> CpuTarget:
        """The target of one part."""
        return CpuTarget(self._lanes, single)

    def widths(self, char: str) -> tuple[int, ...]:
        """How many elements the blocks of the code compute at a time."""
        single, several = 1, self.lanes(char)
        if self.single is not None:
            return (single if self.single else several,)
        return tuple(sorted({single, several}))

    def check_name(self, name: str) -> None:
        """Accept any name: the functions are always called @loop and @rollout."""

    def emit(self, code: Code, char: str = "d", name: str = "", about: str = "") -> str:
        """LLVM IR: a gufunc loop @loop, or @rollout."""
        widths, fma = self.widths(char), has_fma()
        if isinstance(code, Rollout):
            return rollout_module(code, widths, fma, register_count())
        make = {
            LinkLoops: loop_kernel,
            SingleStep: single_step_kernel,
            StagedCode: staged_kernel,
        }.get(type(code), straight_kernel)
        # both parts of the code need the kernel, and they are often compiled one after the other
        _, kernel = in_memory(
            _kernels, (id(code), fma), MAX_KERNELS, lambda: (code, make(code, fma))
        )
        return gufunc_module(
            kernel, "loop", FP[char], widths, has_wide_shuffles(), register_count()
        )

    def key(self, char: str) -> list[object]:
        return [char, *self.widths(char), has_fma(), *jit.host()]

    def build(self, text: str, facts: dict[str, int]) -> bytes:
        """The object code of the kernel after that of the functions that it shares with others."""
        names = [name for name in EXPORTS if f"@{name} = " in text or f"@{name}(" in text]
        text, shared = shared_functions.split(text)
        codes = [shared_functions.compiled(module.text) for module in shared]
        sizes = [[module.names, len(code)] for module, code in zip(shared, codes, strict=True)]
        head = json.dumps([names, facts, sizes]).encode()
        return b"".join([len(head).to_bytes(4, "little"), head, *codes, jit.compile_ir(text)])

    def load(self, built: bytes) -> tuple[jit.Library, dict[str, int]]:
        start = 4 + int.from_bytes(built[:4], "little")
        names, facts, sizes = json.loads(built[4:start])
        shared: dict[str, int] = {}
        for functions, size in sizes:
            shared |= shared_functions.loaded(built[start : start + size], functions)
            start += size
        return jit.load_object(built[start:], names, shared), facts


@lru_cache(maxsize=4)
def host_lanes(fp: str) -> int:
    """Doubles (or twice as many floats) in the widest vector register of this CPU."""
    features = set(jit.host().features.split(","))
    doubles = 8 if "+avx512f" in features else 4 if "+avx" in features else 2
    return doubles if fp == "double" else 2 * doubles


@lru_cache(maxsize=1)
def register_count() -> int:
    """How many numbers the code keeps in registers: a few less than the CPU has."""
    host = jit.host()
    return (
        32
        if "+avx512f" in host.features.split(",") or host.triple.startswith(("aarch64", "arm64"))
        else 16
    ) - SPARE_REGISTERS


@lru_cache(maxsize=1)
def has_wide_shuffles() -> bool:
    """Whether a cache line can be shuffled together from any two registers: AVX-512."""
    return "+avx512f" in jit.host().features.split(",")


@lru_cache(maxsize=1)
def has_fma() -> bool:
    """Whether a fused multiply-add is one instruction on this CPU."""
    host = jit.host()
    return "+fma" in host.features.split(",") or host.triple.startswith(("aarch64", "arm64"))


HOST = CpuTarget()
