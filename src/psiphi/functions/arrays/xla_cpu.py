"""A function as XLA calls it: machine code that reads XLA's call frame, made by LLVM; no compiler, no Python in a call.

    XLA_FFI_Error* handler(XLA_FFI_CallFrame*)

One handler serves all functions. It gathers the addresses of the buffers, takes the address `block` from the attributes of the
call, and goes on with both: here, block is the address of three others, of a gufunc's loop, of its dims and of its steps, and
the loop is called; on graphics cards a kernel is sent (`xla_cuda.py`). Offsets are those of the C API of XLA's FFI, version 0
(jaxlib's include/xla/ffi/api/c_api.h).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from psiphi.backends.cuda.dlpack import SIZE, capsule
from psiphi.backends.llvm import jit

TARGET = "psiphi_call"
_pinned: list[
    Any
] = []  # what compiled programs of JAX point to: they do not say when they are gone


def load_fields(where: str, **fields: tuple[str, int]) -> str:
    """What stands there, by name: its type, and behind how many bytes."""
    return "\n".join(
        f"  %{name}.p = getelementptr i8, ptr %{where}, i64 {at}\n  %{name} = load {kind}, ptr %{name}.p"
        for name, (kind, at) in fields.items()
    )


GATHER = f"""
define ptr @handler(ptr %frame) nounwind {{
{load_fields("frame", extension=("ptr", 8))}
  %none = icmp eq ptr %extension, null
  br i1 %none, label %call, label %ask
ask:
{load_fields("extension", type=("i32", 8))}
  %is.metadata = icmp eq i32 %type, 1
  br i1 %is.metadata, label %tell, label %call
tell:                                             ; which version of the API this is
{load_fields("extension", metadata=("ptr", 24))}
  %major = getelementptr i8, ptr %metadata, i64 24
  store i32 0, ptr %major
  %minor = getelementptr i8, ptr %metadata, i64 28
  store i32 1, ptr %minor
  %traits = getelementptr i8, ptr %metadata, i64 32
  store i32 0, ptr %traits
  ret ptr null
call:
{load_fields("frame", taken=("i64", 56), args=("ptr", 72), given=("i64", 96), rets=("ptr", 112), attrs=("ptr", 160))}
  %scalar = load ptr, ptr %attrs
{load_fields("scalar", value=("ptr", 8))}
  %block = load ptr, ptr %value
  %all = add i64 %taken, %given
  %pointers = alloca ptr, i64 %all
  br label %test
test:
  %i = phi i64 [ 0, %call ], [ %i.next, %body ]
  %more = icmp slt i64 %i, %all
  br i1 %more, label %body, label %run
body:
  %is.arg = icmp slt i64 %i, %taken
  %j = sub i64 %i, %taken
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
def _library() -> Any:
    return jit.load_object(jit.compile_ir(GATHER + LOOP + PROBE), ["handler", "probe"])


def handler() -> Any:
    """The handler of this processor, for `jax.ffi.register_ffi_target`."""
    return capsule(_library().address("handler"))


def probe() -> int:
    """The address of a call that copies one float: whether the handler reads this version of the frame."""
    return pin_words([_library().address("probe"), 0, 0])


def pin_words(words: Sequence[int], *alive: Any) -> int:
    """The address of these words, which stay where they are, and keep what they point to."""
    made = np.array(words, dtype=np.int64)
    _pinned.append((made, alive))
    return made.ctypes.data


def block(function: Any, char: str, leads: Sequence[tuple[int, ...]], n: int) -> int:
    """The address of what the handler needs for n elements; an argument with one row has it for all of them."""
    loop = function.source.compile(char)
    args = [*function.inputs, *function.outputs]
    shared = [math.prod(lead) == 1 for lead in leads] + [False] * len(function.outputs)
    outer = [0 if one else arg.size * SIZE[char] for arg, one in zip(args, shared, strict=True)]
    inner = [
        SIZE[char] * math.prod(arg.shape[i + 1 :]) for arg in args for i in range(len(arg.shape))
    ]
    return pin_words(
        [loop, pin_words([n]), pin_words([*outer, *inner])], function.source.libraries[char]
    )  # the loop knows its core dims
