"""Kernels of graphics cards on this processor: the same IR in another shell, a thread for every lane of a warp."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence

import numpy as np

from psiphi.emitters.device import NAME, WARP, device_module, staging_of
from psiphi.emitters.llvm import Width
from psiphi.runtime import jit
from psiphi.sweeps.drive import Straight

FP = {"d": "double", "f": "float"}
SYNC = ctypes.CFUNCTYPE(None)
PATIENCE = 60.0  # seconds a lane waits for the others


class Emulated:
    """kernel(parameters, warp, lane, stage, sync): parameters as cuLaunchKernel takes them, pointers to the values."""

    sync = "call void %sync()"

    stage = 0  # of the kernel made last

    def kernel(self, pointers: list[str], numbers: list[str], body: list[str], warps: int, stage: int) -> str:
        self.stage = stage
        values = [*((f"{x}.array", "ptr") for x in pointers), *((x, "i64") for x in numbers)]
        start = []
        for i, (name, kind) in enumerate(values):
            start.append(f"%{name}.pp = getelementptr ptr, ptr %parameters, i64 {i}")
            start.append(f"%{name}.p = load ptr, ptr %{name}.pp")
            start.append(f"%{name} = load {kind}, ptr %{name}.p")
        lines = "\n  ".join([*start, *body])
        return (
            f"define void @{NAME}(ptr %parameters, i64 %warp, i32 %lane, ptr %stage, ptr %sync) nounwind {{\nentry:\n"
            f"  {lines}\n  ret void\n}}\n"
        )


class Emulation:
    """A kernel that can be launched: `launch(parameters, blocks, warps)`."""

    def __init__(self, text: str, stage: int):
        self.library = jit.load_object(jit.compile_ir(text, opt=0), [NAME])
        kinds = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p
        self.function, self.stage = ctypes.CFUNCTYPE(None, *kinds)(int(self.library.address(NAME))), stage

    def launch(self, parameters: ctypes.Array, warps: int) -> None:
        """All warps, one after the other; the lanes of a warp side by side."""
        memory = np.full(max(1, self.stage), 0xFF, np.uint8)  # NaN, where nothing was written
        barrier = threading.Barrier(WARP, timeout=PATIENCE)
        errors: list[BaseException] = []

        def wait() -> None:
            try:
                barrier.wait()
            except threading.BrokenBarrierError as error:
                errors.append(error)

        def lane(number: int) -> None:
            sync = SYNC(wait)
            for warp in range(warps):
                self.function(parameters, warp, number, memory.ctypes.data, ctypes.cast(sync, ctypes.c_void_p))
                wait()

        threads = [threading.Thread(target=lane, args=(i,), daemon=True) for i in range(WARP)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=2 * PATIENCE)
        if errors:
            raise errors[0]


def parameters_of(arrays: Sequence[int], steps: Sequence[int], n: int) -> tuple[ctypes.Array, list]:
    """The parameters of a launch, and what they point to."""
    values = [*(ctypes.c_void_p(x) for x in arrays), *(ctypes.c_int64(x) for x in steps), ctypes.c_int64(n)]
    return (ctypes.c_void_p * len(values))(*(ctypes.addressof(x) for x in values)), values


def emulated(code: Straight, char: str) -> Emulation:
    return Emulation(device_module(code, FP[char], Emulated()), staging_of(code, Width(FP[char], 1)).stage)


def run(code: Straight, char: str, arrays: Sequence[np.ndarray], n: int | None = None) -> list[np.ndarray]:
    """The kernel on arrays (n, *shape), or one row (*shape) for all; outputs are poisoned first."""
    arrays = [np.ascontiguousarray(x, dtype=char) for x in arrays]
    inputs, outputs = code.program.inputs, code.program.outputs
    n = n or max(len(x) for x, arg in zip(arrays, inputs, strict=True) if x.ndim > len(arg.shape))
    steps = [arg.size * x.itemsize if x.ndim > len(arg.shape) else 0 for x, arg in zip(arrays, inputs, strict=True)]
    results = [np.full((n, *arg.shape), np.nan, dtype=char) for arg in outputs]
    parameters, _alive = parameters_of([x.ctypes.data for x in (*arrays, *results)], steps, n)
    emulated(code, char).launch(parameters, -(-n // WARP))
    return results
