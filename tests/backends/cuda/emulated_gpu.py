"""Kernels of graphics cards on this processor: the same IR in another shell, a thread for every
lane of a warp or a team."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Sequence

import numpy as np

from psiphi.backends.cuda.cuda_kernel import NAME, kernel_module
from psiphi.backends.cuda.shared_memory import WARP, Block
from psiphi.backends.llvm import jit
from psiphi.compiler.sweeps.tree_loop import StraightCode

FP = {"d": "double", "f": "float"}
SYNC = ctypes.CFUNCTYPE(None)
PATIENCE = 60.0  # seconds a lane waits for the others


class Emulated:
    """kernel(parameters, warp, lane, role, stage, sync): parameters as cuLaunchKernel takes them,
    pointers to the values. All who do the same states wait at one barrier."""

    sync = sync_all = "call void %sync()"
    processors = (
        "%processors = add i64 0, 1"  # so that a few warps later there are states in a test
    )

    def prefetch(self, pointer: str) -> str:
        """Memory that is not there would be noticed."""
        return f"{pointer}.seen = load volatile i8, ptr {pointer}"

    def kernel(self, pointers: list[str], numbers: list[str], body: list[str], block: Block) -> str:
        values = [*((f"{x}.array", "ptr") for x in pointers), *((x, "i64") for x in numbers)]
        start = []
        for i, (name, kind) in enumerate(values):
            start.append(f"%{name}.pp = getelementptr ptr, ptr %parameters, i64 {i}")
            start.append(f"%{name}.p = load ptr, ptr %{name}.pp")
            start.append(f"%{name} = load {kind}, ptr %{name}.p")
        lines = "\n  ".join([*start, *body])
        return (
            f"; side by side {block.team_size} stage {block.stage_bytes}\n"
            f"define void @{NAME}(ptr %parameters, i64 %warp, i32 %lane, i32 %role, ptr "
            f"%stage, ptr %sync) nounwind {{\n"
            f"entry:\n  {lines}\n  ret void\n}}\n"
        )


class Emulation:
    """A kernel that can be launched."""

    def __init__(self, text: str):
        self.library = jit.load_object(jit.compile_ir(text, opt=0), [NAME])
        kinds = (
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_int32,
            ctypes.c_int32,
            ctypes.c_void_p,
            ctypes.c_void_p,
        )
        self.function = ctypes.CFUNCTYPE(None, *kinds)(int(self.library.address(NAME)))
        found = re.search(r"^; side by side (\d+) stage (\d+)$", text, re.MULTILINE)
        assert found
        self.team, self.stage_bytes = map(int, found.groups())

    @property
    def handle(self) -> int:
        return int(self.library.address(NAME))

    def launch(self, parameters: ctypes.Array | int, groups: int) -> None:
        """All groups of 32 states, one after the other; the lanes of all warps that do them side by
        side."""
        memory = np.full(max(1, self.stage_bytes), 0xFF, np.uint8)  # NaN, where nothing was written
        barrier = threading.Barrier(WARP * self.team, timeout=PATIENCE)
        errors: list[BaseException] = []

        def wait() -> None:
            try:
                barrier.wait()
            except threading.BrokenBarrierError as error:
                errors.append(error)

        def lane(number: int) -> None:
            sync, role = SYNC(wait), number // WARP
            for group in range(groups):
                place = memory.ctypes.data, ctypes.cast(sync, ctypes.c_void_p)
                self.function(parameters, group, number % WARP, (role + group) % self.team, *place)
                wait()

        threads = [
            threading.Thread(target=lane, args=(i,), daemon=True) for i in range(WARP * self.team)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=2 * PATIENCE)
        if errors:
            raise errors[0]


def parameters_of(arrays: Sequence[int], steps: Sequence[int], n: int) -> tuple[ctypes.Array, list]:
    """The parameters of a launch, and what they point to."""
    values = [
        *(ctypes.c_void_p(x) for x in arrays),
        *(ctypes.c_int64(x) for x in steps),
        ctypes.c_int64(n),
    ]
    return (ctypes.c_void_p * len(values))(*(ctypes.addressof(x) for x in values)), values


def emulated(code: StraightCode, char: str) -> Emulation:
    return Emulation(kernel_module(code, FP[char], Emulated()))


def run(
    code: StraightCode, char: str, arrays: Sequence[np.ndarray], n: int | None = None
) -> list[np.ndarray]:
    """The kernel on arrays (n, *shape), or one row (*shape) for all; outputs are poisoned first."""
    arrays = [np.ascontiguousarray(x, dtype=char) for x in arrays]
    inputs, outputs = code.program.inputs, code.program.outputs
    n = n or max(len(x) for x, arg in zip(arrays, inputs, strict=True) if x.ndim > len(arg.shape))
    steps = [
        arg.size * x.itemsize if x.ndim > len(arg.shape) else 0
        for x, arg in zip(arrays, inputs, strict=True)
    ]
    results = [np.full((n, *arg.shape), np.nan, dtype=char) for arg in outputs]
    parameters, _alive = parameters_of([x.ctypes.data for x in (*arrays, *results)], steps, n)
    emulated(code, char).launch(parameters, -(-n // WARP))
    return results
