"""Graphics cards of NVIDIA as a target: PTX, the text that their driver turns into the machine code of the card at hand."""

from __future__ import annotations

import json
from typing import Any

from psiphi._util.errors import StateError
from psiphi.backends.cpu.cpu_target import FP
from psiphi.backends.cuda import nvptx
from psiphi.backends.cuda.cuda_kernel import KernelWrapper, device_module
from psiphi.backends.cuda.cuda_rollout_kernel import device_rollout
from psiphi.compiler.ir.loop_nodes import Rollout, SingleStep
from psiphi.compiler.ir.tape_fusion import joined
from psiphi.compiler.sweeps.stage_loops import StagedCode
from psiphi.compiler.sweeps.tree_loop import StraightCode


class CudaTarget:
    """One thread a state (`cuda_kernel.py`); both number types; nothing but PTX that any card since Turing understands."""

    shell: KernelWrapper = nvptx.CudaWrapper()

    def __init__(self, few: bool = False):
        self.few = few  # states: a kernel that is soon done, in place of one that does many

    def for_few(self) -> CudaTarget:
        """The same target, for few states."""
        return type(self)(True)

    def lanes(self, char: str) -> int:
        return 1

    def check_name(self, name: str) -> None:
        """Its function is called psiphi_kernel, whatever it computes."""

    def emit(self, code: Any, char: str = "d", name: str = "", about: str = "") -> str:
        """PTX, from LLVM IR; its first line says how it is launched."""
        text = self.ir(code, char)
        said = [f"// {line}\n" for line in (text[: text.index("\n")].lstrip("; "), about) if line]
        return "".join(said) + nvptx.ptx(text)

    def ir(self, code: Any, char: str) -> str:
        """The kernel as LLVM IR."""
        if isinstance(code, Rollout):
            return device_rollout(code, FP[char], self.shell)
        code = (
            joined(code)
            if isinstance(code, SingleStep)
            else code.straight
            if isinstance(code, StagedCode)
            else code
        )
        if not isinstance(code, StraightCode):
            cause = "code that runs in loops over links has no kernel for graphics cards"
            raise StateError(
                cause, "pass arrays of the host (robots of up to 64 bodies have functions on cards)"
            )
        return device_module(code, FP[char], self.shell, self.few)

    def key(self, char: str) -> list[Any]:
        return [
            "ptx",
            char,
            nvptx.CPU,
            nvptx.FEATURES,
            nvptx.llvm(),
            *(["few"] if self.few else []),
        ]

    def build(self, text: str, facts: dict[str, int]) -> bytes:
        """The text with its facts in front: the driver assembles it, for its own card."""
        return json.dumps(facts).encode() + b"\n" + text.encode()

    def load(self, built: bytes) -> tuple[bytes, dict[str, int]]:
        """The text as the driver takes it, and the facts."""
        head, _, text = built.partition(b"\n")
        return text + b"\0", json.loads(head)


CUDA = CudaTarget()
