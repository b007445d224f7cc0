"""The machine code that XLA calls on the CPU. It reads XLA's call frame; no Python runs in a call.

    XLA_FFI_Error* handler(XLA_FFI_CallFrame*)

One handler serves all functions; LLVM compiles it. It gathers the addresses of the buffers, reads
the address `block` from the attributes of the call, and passes both on. On the CPU, a block is the
addresses of a gufunc's loop, its dims and its steps, and the handler calls the loop; on the GPU it
launches a kernel (`xla_cuda.py`). Offsets are those of the C API of XLA's FFI, version 0 (jaxlib's
include/xla/ffi/api/c_api.h).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from psiphi.backends.cuda.dlpack import SIZE, capsule
from psiphi.backends.llvm import jit
from psiphi.functions.compiled_function import Function

TARGET = "psiphi_call"
# memory to which compiled programs of JAX point; it is never freed
_pinned: list[Any] = []


def load_fields(struct: str, **fields: tuple[str, int]) -> str:
    """LLVM code that loads fields of a struct by name: {name: (type, offset in bytes)}."""
    return "\n".join(
        f"  %{name}.p = getelementptr i8, ptr %{struct}, i64 {offset}\n"
        f"  %{name} = load {kind}, ptr %{name}.p"
        for name, (kind, offset) in fields.items()
    )


FRAME_FIELDS = {
    "n.args": ("i64", 56),
    "args": ("ptr", 72),
    "n.rets": ("i64", 96),
    "rets": ("ptr", 112),
    "attrs": ("ptr", 160),
}

GATHER = f"""
define ptr @handler(ptr %frame) nounwind {{
{load_fields("frame", extension=("ptr", 8))}
  %no.extension = icmp eq ptr %extension, null
  br i1 %no.extension, label %call, label %check.type
check.type:
{load_fields("extension", type=("i32", 8))}
  %is.metadata = icmp eq i32 %type, 1
  br i1 %is.metadata, label %version, label %call
version:                                          ; store the version of the API
{load_fields("extension", metadata=("ptr", 24))}
  %major = getelementptr i8, ptr %metadata, i64 24
  store i32 0, ptr %major
  %minor = getelementptr i8, ptr %metadata, i64 28
  store i32 1, ptr %minor
  %traits = getelementptr i8, ptr %metadata, i64 32
  store i32 0, ptr %traits
  ret ptr null
call:
{load_fields("frame", **FRAME_FIELDS)}
  %scalar = load ptr, ptr %attrs
{load_fields("scalar", value=("ptr", 8))}
  %block = load ptr, ptr %value
  %n.buffers = add i64 %n.args, %n.rets
  %pointers = alloca ptr, i64 %n.buffers
  br label %test
test:
  %i = phi i64 [ 0, %call ], [ %i.next, %body ]
  %more = icmp slt i64 %i, %n.buffers
  br i1 %more, label %body, label %run
body:
  %is.arg = icmp slt i64 %i, %n.args
  %j = sub i64 %i, %n.args
  %arg.at = getelementptr ptr, ptr %args, i64 %i
  %ret.at = getelementptr ptr, ptr %rets, i64 %j
  %at = select i1 %is.arg, ptr %arg.at, ptr %ret.at
  %buffer = load ptr, ptr %at
{load_fields("buffer", data=("ptr", 24))}
  %place = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %data, ptr %place
  %i.next = add i64 %i, 1
  br label %test
run:
"""

LOOP = f"""
{load_fields("block", loop=("ptr", 0), dims=("ptr", 8), steps=("ptr", 16))}
  call void %loop(ptr %pointers, ptr %dims, ptr %steps, ptr null)
  ret ptr null
}}
"""

PROBE = f"""
define void @probe(ptr %args, ptr %dims, ptr %steps, ptr %data) nounwind {{
{load_fields("args", **{"from": ("ptr", 0), "to": ("ptr", 8)})}
  %x = load float, ptr %from
  store float %x, ptr %to
  ret void
}}
"""


@lru_cache(maxsize=1)
def library() -> jit.Library:
    """The compiled handler."""
    return jit.load_object(jit.compile_ir(GATHER + LOOP + PROBE), ["handler", "probe"])


def handler() -> Any:
    """The handler on the CPU, for `jax.ffi.register_ffi_target`."""
    return capsule(library().address("handler"))


def probe() -> int:
    """The address of a block that copies one float: a test whether the handler can read the call
    frame of this version of XLA."""
    return pin_words([library().address("probe"), 0, 0])


def pin_words(words: Sequence[int], *owners: object) -> int:
    """The address of a copy of these words. It is never freed; nor are the `owners` of the memory
    to which the words point."""
    pinned = np.array(words, dtype=np.int64)
    _pinned.append((pinned, owners))
    return pinned.ctypes.data


def block(function: Function, char: str, leads: Sequence[tuple[int, ...]], n: int) -> int:
    """The address of the block of a call with n states. `leads` are the batch shapes of the
    arguments; an argument with one row is shared by all states."""
    loop = function.source.compile(char, n == 1)
    args = [*function.inputs, *function.outputs]
    shared = [math.prod(lead) == 1 for lead in leads] + [False] * len(function.outputs)
    outer = [0 if one else arg.size * SIZE[char] for arg, one in zip(args, shared, strict=True)]
    inner = [
        SIZE[char] * math.prod(arg.shape[i + 1 :]) for arg in args for i in range(len(arg.shape))
    ]
    return pin_words(  # dims are n only: the loop has its core dims
        [loop, pin_words([n]), pin_words([*outer, *inner])], function.source.first[char]
    )
