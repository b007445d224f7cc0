"""What a target is: where code goes. A new one is a file with such a class, and a row in `TARGETS`."""

from __future__ import annotations

from typing import Any, Protocol

from psiphi.backends.c.c_source import C99
from psiphi.backends.c.casadi_c import CasADiC
from psiphi.backends.cpu.cpu_target import HOST
from psiphi.backends.cuda.cuda_target import CUDA
from psiphi.backends.wasm.wasm_module import WebAssembly


class Target(Protocol):
    """Straight-line code, loops over links, or a rollout, as text."""

    def lanes(self, char: str) -> int:
        """How many elements of a dtype ("d" or "f") the code takes at a time."""
        ...

    def check_name(self, name: str) -> None:
        """Refuse a name that a function of this language cannot have."""
        ...

    def emit(self, code: Any, char: str, name: str = "", about: str = "") -> str:
        """The text; `name` and `about` go where the target's language has room for them."""
        ...


class RunningTarget(Target, Protocol):
    """A target whose code runs in this process."""

    def key(self, char: str) -> list[Any]:
        """What machine code depends on, besides its text."""
        ...

    def build(self, text: str, facts: dict[str, int]) -> bytes:
        """Machine code with a few numbers about it, as the cache keeps it."""
        ...

    def load(self, built: bytes) -> tuple[Any, dict[str, int]]:
        """A library of what the text defines, and the numbers."""
        ...


TARGETS: dict[str, Target] = {
    "c": C99(),
    "casadi": CasADiC(),
    "acados": CasADiC("acados"),
    "llvm": HOST,
    "wasm": WebAssembly(),
    "ptx": CUDA,
}
