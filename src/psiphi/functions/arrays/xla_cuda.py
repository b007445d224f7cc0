"""The machine code that XLA calls on the GPU. It launches kernels on the stream of the call; no
Python runs in a call.

The attribute `block` of a call is the address of

    launch, owner, push, pop      functions of the driver; owner: stream -> context
    gpus, contexts                the number of GPUs, and their contexts
    launches, rows, most          the number of launches, in order, their rows, and the most
                                  parameters of a kernel

and a row of

    kernels, blocks, threads      one kernel for each GPU, and the grid
    arrays, places                the number of arrays, and for each its buffer and offset in bytes
    count, numbers                the number of further parameters, and their values

XLA passes the stream, the stream gives the context, and the context tells which GPU it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from psiphi.backends.cuda import driver_bindings
from psiphi.backends.cuda.deferred_arrays import KernelCall
from psiphi.backends.cuda.dlpack import SIZE, capsule
from psiphi.backends.llvm import jit
from psiphi.functions.arrays.xla_cpu import GATHER, load_fields, pin_words
from psiphi.functions.compiled_function import Function

TARGET = "psiphi_gpu"
DRIVER_FUNCTIONS = ("cuLaunchKernel", "cuStreamGetCtx", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2")
BLOCK_FIELDS = {  # in order
    **{"launch": "ptr", "owner": "ptr", "push": "ptr", "pop": "ptr"},
    **{"gpus": "i64", "contexts": "ptr"},
    **{"launches": "i64", "rows": "ptr", "most": "i64"},
}
LAUNCH_FIELDS = {  # of a row, in order
    **{"kernels": "ptr", "blocks": "i32", "threads": "i32"},
    **{"arrays": "i64", "places": "ptr", "count": "i64", "numbers": "ptr"},
}


def _load_words(struct: str, words: dict[str, str]) -> str:
    """LLVM code that loads fields of eight bytes each."""
    return load_fields(
        struct, **{name: (kind, 8 * i) for i, (name, kind) in enumerate(words.items())}
    )


LAUNCH_FAILED = "psiphi: the GPU driver refused to launch a kernel (see psiphi info --gpu)"

LAUNCH_CODE = f"""
{load_fields("frame", api=("ptr", 16), context=("ptr", 24))}
  %query = alloca [4 x i64]  ; XLA_FFI_Stream_Get_Args: size, extension, context, stream
  store i64 32, ptr %query
  %query.extension = getelementptr i8, ptr %query, i64 8
  store ptr null, ptr %query.extension
  %query.context = getelementptr i8, ptr %query, i64 16
  store ptr %context, ptr %query.context
  %query.stream = getelementptr i8, ptr %query, i64 24
  store ptr null, ptr %query.stream
{load_fields("api", get=("ptr", 80))}
  %stream.error = call ptr %get(ptr %query)
  %failed = icmp ne ptr %stream.error, null
  br i1 %failed, label %give.up, label %go
give.up:
  ret ptr %stream.error
go:
  %stream = load ptr, ptr %query.stream
  %status = call i32 @launch(ptr %block, ptr %pointers, ptr %stream)
  %succeeded = icmp eq i32 %status, 0
  br i1 %succeeded, label %done, label %refused
done:
  ret ptr null
refused:                   ; XLA_FFI_Error_Create_Args: size, extension, message, code "internal"
  %report = alloca [4 x i64]
  store i64 28, ptr %report
  %report.extension = getelementptr i8, ptr %report, i64 8
  store ptr null, ptr %report.extension
  %report.message = getelementptr i8, ptr %report, i64 16
  store ptr @message, ptr %report.message
  %report.code = getelementptr i8, ptr %report, i64 24
  store i32 13, ptr %report.code
{load_fields("api", make=("ptr", 48))}
  %error = call ptr %make(ptr %report)
  ret ptr %error
}}

@message = private constant [{len(LAUNCH_FAILED) + 1} x i8] c"{LAUNCH_FAILED}\\00"

define i32 @launch(ptr %block, ptr %pointers, ptr %stream) nounwind {{
{_load_words("block", BLOCK_FIELDS)}
  %context.p = alloca ptr
  store ptr null, ptr %context.p
  %addresses = alloca i64, i64 %most
  %parameters = alloca ptr, i64 %most               ; addresses of a kernel's parameters
  %empty = icmp eq i64 %launches, 0
  br i1 %empty, label %idle, label %query
idle:
  ret i32 0
query:
  %query.status = call i32 %owner(ptr %stream, ptr %context.p)
  %known = icmp eq i32 %query.status, 0
  br i1 %known, label %find, label %fail
fail:
  ret i32 %query.status
find:
  %context = load ptr, ptr %context.p
  br label %look
look:
  %k = phi i64 [ 0, %find ], [ %k.next, %other ]
  %left = icmp slt i64 %k, %gpus
  br i1 %left, label %compare, label %unknown
unknown:                                          ; CUDA_ERROR_INVALID_CONTEXT
  ret i32 201
compare:
  %candidate.p = getelementptr ptr, ptr %contexts, i64 %k
  %candidate = load ptr, ptr %candidate.p
  %equal = icmp eq ptr %candidate, %context
  br i1 %equal, label %begin, label %other
other:
  %k.next = add i64 %k, 1
  br label %look
begin:
  %pushed = call i32 %push(ptr %context)
  br label %next
next:                                             ; the launches, in order
  %s = phi i64 [ 0, %begin ], [ %s.next, %launched ]
  %is.left = icmp slt i64 %s, %launches
  br i1 %is.left, label %row.begin, label %finish
row.begin:
  %row.index = mul i64 %s, {len(LAUNCH_FIELDS)}
  %row = getelementptr i64, ptr %rows, i64 %row.index
{_load_words("row", LAUNCH_FIELDS)}
  %kernel.p = getelementptr ptr, ptr %kernels, i64 %k
  %kernel = load ptr, ptr %kernel.p
  br label %arrays.next
arrays.next:
  %i = phi i64 [ 0, %row.begin ], [ %i.next, %array ]
  %more = icmp slt i64 %i, %arrays
  br i1 %more, label %array, label %numbers.next
array:                                            ; its buffer, and the offset in bytes
  %pair = mul i64 %i, 2
  %index.p = getelementptr i64, ptr %places, i64 %pair
  %index = load i64, ptr %index.p
  %offset.p = getelementptr i64, ptr %index.p, i64 1
  %offset = load i64, ptr %offset.p
  %buffer.p = getelementptr i64, ptr %pointers, i64 %index
  %buffer = load i64, ptr %buffer.p
  %address = add i64 %buffer, %offset
  %address.p = getelementptr i64, ptr %addresses, i64 %i
  store i64 %address, ptr %address.p
  %array.p = getelementptr ptr, ptr %parameters, i64 %i
  store ptr %address.p, ptr %array.p
  %i.next = add i64 %i, 1
  br label %arrays.next
numbers.next:
  %j = phi i64 [ 0, %arrays.next ], [ %j.next, %number ]
  %others = icmp slt i64 %j, %count
  br i1 %others, label %number, label %go
number:
  %number.p = getelementptr i64, ptr %numbers, i64 %j
  %position = add i64 %arrays, %j
  %place.p = getelementptr ptr, ptr %parameters, i64 %position
  store ptr %number.p, ptr %place.p
  %j.next = add i64 %j, 1
  br label %numbers.next
go:
  %status = call i32 %launch(ptr %kernel, i32 %blocks, i32 1, i32 1, i32 %threads, i32 1, i32 1,
                             i32 0, ptr %stream, ptr %parameters, ptr null)
  %succeeded = icmp eq i32 %status, 0
  br i1 %succeeded, label %launched, label %finish
launched:
  %s.next = add i64 %s, 1
  br label %next
finish:
  %last = phi i32 [ 0, %next ], [ %status, %go ]
  %popped = call i32 %pop(ptr %context.p)
  %result = or i32 %pushed, %last
  ret i32 %result
}}
"""


@lru_cache(maxsize=1)
def library() -> jit.Library:
    """The compiled handler."""
    return jit.load_object(jit.compile_ir(GATHER + LAUNCH_CODE), ["handler"])


def handler() -> Any:
    """The handler on the GPU, for `jax.ffi.register_ffi_target`."""
    return capsule(library().address("handler"))


def block(function: Function, char: str, leads: Sequence[tuple[int, ...]], n: int) -> int:
    """The address of the block of a call with n states. `leads` are the batch shapes of the
    arguments; an argument with one row is shared by all states."""
    pairs = zip(function.inputs, leads, strict=True)
    numbers = [*(arg.size * SIZE[char] if math.prod(lead) > 1 else 0 for arg, lead in pairs), n]
    places = [(i, 0) for i in range(len(function.inputs) + len(function.outputs))]
    empty = not n or not any(arg.size for arg in function.outputs)
    return launch_block(
        []
        if empty
        else [KernelCall(lambda gpu: function.source.kernel(char, gpu, n), places, numbers, n)]
    )


def launch_block(launches: Sequence[KernelCall]) -> int:
    """The address of the block of some launches, which run in order. Their arrays are XLA's
    buffers, by number."""
    driver = driver_bindings.driver()
    rows, owners = list[int](), list[Any]()
    for kernel, places, numbers, n in launches:
        kernels = [kernel(gpu) for gpu in range(driver.count)]
        grid = kernels[0].grid
        rows += [
            pin_words([each.kernel.handle for each in kernels]),
            math.ceil(n / grid.states),
            grid.threads,
        ]
        rows += [
            len(places),
            pin_words([x for place in places for x in place]),
            len(numbers),
            pin_words(numbers),
        ]
        owners += kernels
    most = max((len(places) + len(numbers) for _, places, numbers, _ in launches), default=0)
    words = [
        *map(driver.address, DRIVER_FUNCTIONS),
        driver.count,
        pin_words([driver.context(gpu) for gpu in range(driver.count)]),
    ]
    words += [len(launches), pin_words(rows), most]
    assert len(words) == len(BLOCK_FIELDS) and len(rows) == len(LAUNCH_FIELDS) * len(launches)
    return pin_words(words, owners)
