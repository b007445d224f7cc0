"""The processor psiphi runs on, as a target: LLVM IR for its lanes, object code, addresses in this process."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from psiphi.backends.cpu.gufunc_kernel import module
from psiphi.backends.cpu.loop_kernel import rolled_kernel
from psiphi.backends.cpu.rollout_kernel import rollout_module, single_kernel, staged_kernel
from psiphi.backends.cpu.straight_kernel import straight_kernel
from psiphi.backends.llvm import jit
from psiphi.compiler.ir.loop_nodes import Rollout, SingleStep
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.stage_loops import StagedCode

EXPORTS = ("loop", "tables", "quick", "quick.table", "rollout")  # what others may call or set
FP = {"d": "double", "f": "float"}
SPARE = 4  # registers


class CpuTarget:
    """This processor; `lanes` other than its widest register's are for tests."""

    def __init__(self, lanes: int | None = None):
        self._lanes = lanes

    def lanes(self, char: str) -> int:
        return self._lanes or host_lanes(FP[char])

    def check_name(self, name: str) -> None:
        """Its functions are called @loop and @rollout, whatever they compute."""

    def emit(self, code: Any, char: str = "d", name: str = "", about: str = "") -> str:
        """LLVM IR: a gufunc loop @loop, or @rollout."""
        lanes, fma = self.lanes(char), has_fma()
        if isinstance(code, Rollout):
            return rollout_module(code, lanes, fma, registers())
        make = {LinkLoops: rolled_kernel, SingleStep: single_kernel, StagedCode: staged_kernel}.get(
            type(code), straight_kernel
        )
        kernel = make(code, fma)
        return module(kernel, "loop", FP[char], lanes, has_wide_shuffles(), registers())

    def key(self, char: str) -> list[Any]:
        return [char, self.lanes(char), has_fma(), *jit.host()]

    def build(self, text: str, facts: dict[str, int]) -> bytes:
        names = [name for name in EXPORTS if f"@{name} = " in text or f"@{name}(" in text]
        head = json.dumps([names, facts]).encode()
        return len(head).to_bytes(4, "little") + head + jit.compile_ir(text)

    def load(self, built: bytes) -> tuple[jit.Library, dict[str, int]]:
        size = int.from_bytes(built[:4], "little")
        names, facts = json.loads(built[4 : 4 + size])
        return jit.load_object(built[4 + size :], names), facts


@lru_cache(maxsize=4)
def host_lanes(fp: str) -> int:
    """Doubles (or twice as many floats) in the widest vector register of this processor."""
    features = set(jit.host().features.split(","))
    doubles = 8 if "+avx512f" in features else 4 if "+avx" in features else 2
    return doubles if fp == "double" else 2 * doubles


@lru_cache(maxsize=1)
def registers() -> int:
    """How many numbers code of ours holds in registers: a few fewer than there are, for what an instruction reads besides."""
    host = jit.host()
    return (
        32
        if "+avx512f" in host.features.split(",") or host.triple.startswith(("aarch64", "arm64"))
        else 16
    ) - SPARE


@lru_cache(maxsize=1)
def has_wide_shuffles() -> bool:
    """Whether lines of memory can be put together from any two registers: AVX-512."""
    return "+avx512f" in jit.host().features.split(",")


@lru_cache(maxsize=1)
def has_fma() -> bool:
    """Whether a fused multiply-add is one instruction here."""
    host = jit.host()
    return "+fma" in host.features.split(",") or host.triple.startswith(("aarch64", "arm64"))


HOST = CpuTarget()
