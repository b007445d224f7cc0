"""What a target is. A new target is a file with such a class, and a row in `TARGETS`."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from psiphi.backends.c.c_columns import Columns
from psiphi.backends.c.c_source import C99
from psiphi.backends.c.casadi_c import CasADiC
from psiphi.backends.cpu.cpu_target import HOST
from psiphi.backends.cuda.cuda_target import CUDA
from psiphi.backends.wasm.wasm_module import WebAssembly
from psiphi.compiler.ir.loop_nodes import Rollout, SingleStep
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.stage_loops import StagedCode
from psiphi.compiler.sweeps.tree_loop import StraightCode

Code: TypeAlias = StraightCode | LinkLoops | StagedCode | SingleStep | Rollout | Columns


class Target(Protocol):
    """Writes straight-line code, loops over links, or a rollout as text."""

    def lanes(self, char: str) -> int:
        """How many batch elements of a dtype ("d" or "f") the code computes at a time."""
        ...

    def check_name(self, name: str) -> None:
        """Reject a name that a function of this language cannot have."""
        ...

    def emit(self, code: Code, char: str, name: str = "", about: str = "") -> str:
        """The text; a target without named functions or comments ignores `name` and `about`."""
        ...


class RunningTarget(Target, Protocol):
    """A target whose code runs in this process."""

    def key(self, char: str) -> list[object]:
        """What the machine code depends on besides its text."""
        ...

    def build(self, text: str, facts: dict[str, int]) -> bytes:
        """Machine code together with `facts` about it, as the cache stores it."""
        ...

    def load(self, built: bytes) -> tuple[Any, dict[str, int]]:
        """The loaded code (a `Library`, or the text of a CUDA kernel), and the facts."""
        ...


TARGETS: dict[str, Target] = {
    "c": C99(),
    "casadi": CasADiC(),
    "acados": CasADiC("acados"),
    "llvm": HOST,
    "wasm": WebAssembly(),
    "ptx": CUDA,
}
