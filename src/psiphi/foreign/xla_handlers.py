"""A function as XLA calls it: machine code that reads XLA's call frame, made by LLVM; no compiler, no Python in a call.

    XLA_FFI_Error* handler(XLA_FFI_CallFrame*)

One handler serves all functions. It gathers the addresses of the buffers, takes the address `block` from the attributes of the
call, and goes on with both: here, block is the address of three others, of a gufunc's loop, of its dims and of its steps, and
the loop is called; on graphics cards a kernel is sent (`xla_cards.py`). Offsets are those of the C API of XLA's FFI, version 0
(jaxlib's include/xla/ffi/api/c_api.h).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from psiphi.runtime import jit
from psiphi.runtime.dlpack import SIZE, capsule

TARGET = "psiphi_call"
_alive: list[Any] = []  # what compiled programs of JAX point to: they do not say when they are gone

GATHER = """
define ptr @handler(ptr %frame) nounwind {
  %extension.p = getelementptr i8, ptr %frame, i64 8
  %extension = load ptr, ptr %extension.p
  %none = icmp eq ptr %extension, null
  br i1 %none, label %call, label %ask
ask:
  %type.p = getelementptr i8, ptr %extension, i64 8
  %type = load i32, ptr %type.p
  %is.metadata = icmp eq i32 %type, 1
  br i1 %is.metadata, label %tell, label %call
tell:                                             ; which version of the API this is
  %metadata.p = getelementptr i8, ptr %extension, i64 24
  %metadata = load ptr, ptr %metadata.p
  %major = getelementptr i8, ptr %metadata, i64 24
  store i32 0, ptr %major
  %minor = getelementptr i8, ptr %metadata, i64 28
  store i32 1, ptr %minor
  %traits = getelementptr i8, ptr %metadata, i64 32
  store i32 0, ptr %traits
  ret ptr null
call:
  %taken.p = getelementptr i8, ptr %frame, i64 56
  %taken = load i64, ptr %taken.p
  %args.p = getelementptr i8, ptr %frame, i64 72
  %args = load ptr, ptr %args.p
  %given.p = getelementptr i8, ptr %frame, i64 96
  %given = load i64, ptr %given.p
  %rets.p = getelementptr i8, ptr %frame, i64 112
  %rets = load ptr, ptr %rets.p
  %attrs.p = getelementptr i8, ptr %frame, i64 160
  %attrs = load ptr, ptr %attrs.p
  %scalar = load ptr, ptr %attrs
  %value.p = getelementptr i8, ptr %scalar, i64 8
  %value = load ptr, ptr %value.p
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
  %data.p = getelementptr i8, ptr %buffer, i64 24
  %data = load ptr, ptr %data.p
  %place = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %data, ptr %place
  %i.next = add i64 %i, 1
  br label %test
run:
"""

LOOP = """
  %loop = load ptr, ptr %block
  %dims.p = getelementptr i8, ptr %block, i64 8
  %dims = load ptr, ptr %dims.p
  %steps.p = getelementptr i8, ptr %block, i64 16
  %steps = load ptr, ptr %steps.p
  call void %loop(ptr %pointers, ptr %dims, ptr %steps, ptr null)
  ret ptr null
}
"""

PROBE = """
define void @probe(ptr %args, ptr %dims, ptr %steps, ptr %data) nounwind {
  %from = load ptr, ptr %args
  %to.p = getelementptr ptr, ptr %args, i64 1
  %to = load ptr, ptr %to.p
  %x = load float, ptr %from
  store float %x, ptr %to
  ret void
}
"""


@lru_cache(maxsize=1)
def _library() -> Any:
    return jit.load_object(jit.compile_ir(GATHER + LOOP + PROBE), ["handler", "probe"])


def handler() -> Any:
    """The handler of this processor, for `jax.ffi.register_ffi_target`."""
    return capsule(_library().address("handler"))


def probe() -> int:
    """The address of a call that copies one float: whether the handler reads this version of the frame."""
    return kept([_library().address("probe"), 0, 0])


def kept(words: Sequence[int], *alive: Any) -> int:
    """The address of these words, which stay where they are, and keep what they point to."""
    made = np.array(words, dtype=np.int64)
    _alive.append((made, alive))
    return made.ctypes.data


def block(function: Any, char: str, leads: Sequence[tuple[int, ...]], n: int) -> int:
    """The address of what the handler needs for n elements; an argument with one row has it for all of them."""
    loop = function.source.compile(char)
    args = [*function.inputs, *function.outputs]
    shared = [math.prod(lead) == 1 for lead in leads] + [False] * len(function.outputs)
    outer = [0 if one else arg.size * SIZE[char] for arg, one in zip(args, shared, strict=True)]
    inner = [SIZE[char] * math.prod(arg.shape[i + 1 :]) for arg in args for i in range(len(arg.shape))]
    return kept([loop, kept([n]), kept([*outer, *inner])], function.source.libraries[char])  # the loop knows its core dims
