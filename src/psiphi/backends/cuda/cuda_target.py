"""NVIDIA GPUs as a target: PTX, which the driver assembles into machine code of the GPU at hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from psiphi._util.errors import StateError
from psiphi.backends.cpu.cpu_target import FP
from psiphi.backends.cuda import nvptx
from psiphi.backends.cuda.cuda_kernel import KernelWrapper, kernel_module
from psiphi.backends.cuda.cuda_rollout_kernel import rollout_kernel_module
from psiphi.compiler.ir.loop_nodes import Rollout, SingleStep
from psiphi.compiler.ir.tape_fusion import fuse_blocks
from psiphi.compiler.sweeps.stage_loops import StagedCode
from psiphi.compiler.sweeps.tree_loop import StraightCode

if TYPE_CHECKING:  # target.py imports this file
    from psiphi.backends.target import Code


class CudaTarget:
    """One thread per state (`cuda_kernel.py`), float64 or float32, for any GPU since Turing."""

    wrapper: KernelWrapper = nvptx.CudaWrapper()

    def __init__(self, small_batch: bool = False):
        self.small_batch = small_batch  # whether to emit kernels of low latency, for few states

    def for_small_batch(self) -> CudaTarget:
        """The same target for few states."""
        return type(self)(True)

    def lanes(self, char: str) -> int:
        return 1

    def check_name(self, name: str) -> None:
        """Accept any name: the function is always called psiphi_kernel."""

    def emit(self, code: Code, char: str = "d", name: str = "", about: str = "") -> str:
        """PTX; its first line says how the kernel is launched."""
        text = self.ir(code, char)
        comments = [
            f"// {line}\n" for line in (text[: text.index("\n")].lstrip("; "), about) if line
        ]
        return "".join(comments) + nvptx.to_ptx(text)

    def ir(self, code: Code, char: str) -> str:
        """The kernel as LLVM IR."""
        if isinstance(code, Rollout):
            return rollout_kernel_module(code, FP[char], self.wrapper)
        code = (
            fuse_blocks(code)
            if isinstance(code, SingleStep)
            else code.straight
            if isinstance(code, StagedCode)
            else code
        )
        if not isinstance(code, StraightCode):
            cause = "code in loops over links (robots of more than 64 bodies) does not run on GPUs"
            raise StateError(cause, "pass arrays on the host")
        return kernel_module(code, FP[char], self.wrapper, self.small_batch)

    def key(self, char: str) -> list[object]:
        return [
            "ptx",
            char,
            nvptx.CPU,
            nvptx.FEATURES,
            nvptx.llvm_version(),
            *(["few"] if self.small_batch else []),
        ]

    def build(self, text: str, facts: dict[str, int]) -> bytes:
        """The facts and the text, which the driver assembles for its GPU."""
        return json.dumps(facts).encode() + b"\n" + text.encode()

    def load(self, built: bytes) -> tuple[bytes, dict[str, int]]:
        """The text as a C string for the driver, and the facts."""
        head, _, text = built.partition(b"\n")
        return text + b"\0", json.loads(head)


CUDA = CudaTarget()
