"""A function as XLA calls it on a graphics card: its kernel goes on the stream of the call, without Python.

The attribute `block` of a call is the address of

    launch, stream's context, push, pop   functions of the driver
    cards, their table                    a context and a kernel for each
    blocks, threads                       of the launch
    numbers, their row                    what the kernel takes besides the addresses of the arrays

XLA says which stream the call is on, the stream which context it belongs to, and so which card's kernel it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from psiphi.foreign.xla_handlers import GATHER, SIZE, capsule, kept
from psiphi.runtime import driver, jit

TARGET = "psiphi_card"
FUNCTIONS = ("cuLaunchKernel", "cuStreamGetCtx", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2")
WORDS = {  # of a block, in order
    **{"launch": "ptr", "owner": "ptr", "push": "ptr", "pop": "ptr", "cards": "i64", "table": "ptr"},
    **{"blocks": "i32", "threads": "i32", "count": "i64", "numbers": "ptr"},
}
LOADED = "\n".join(
    f"  %{name}.p = getelementptr i64, ptr %block, i64 {i}\n  %{name} = load {kind}, ptr %{name}.p"
    for i, (name, kind) in enumerate(WORDS.items())
)
REFUSED = "psiphi: the driver of the graphics card refused a kernel (psiphi info --gpu)"

SEND = f"""
  %api.p = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.p
  %context.p = getelementptr i8, ptr %frame, i64 24
  %context = load ptr, ptr %context.p
  %wanted = alloca [4 x i64]                         ; XLA_FFI_Stream_Get_Args: size, extension, context, stream
  store i64 32, ptr %wanted
  %wanted.more = getelementptr i8, ptr %wanted, i64 8
  store ptr null, ptr %wanted.more
  %wanted.context = getelementptr i8, ptr %wanted, i64 16
  store ptr %context, ptr %wanted.context
  %wanted.stream = getelementptr i8, ptr %wanted, i64 24
  store ptr null, ptr %wanted.stream
  %get.p = getelementptr i8, ptr %api, i64 80
  %get = load ptr, ptr %get.p
  %no.stream = call ptr %get(ptr %wanted)
  %has.none = icmp ne ptr %no.stream, null
  br i1 %has.none, label %give, label %go
give:
  ret ptr %no.stream
go:
  %stream = load ptr, ptr %wanted.stream
  %status = call i32 @send(ptr %block, ptr %pointers, i64 %all, ptr %stream)
  %well = icmp eq i32 %status, 0
  br i1 %well, label %done, label %refused
done:
  ret ptr null
refused:                                          ; XLA_FFI_Error_Create_Args: size, extension, words, "internal"
  %say = alloca [4 x i64]
  store i64 28, ptr %say
  %say.more = getelementptr i8, ptr %say, i64 8
  store ptr null, ptr %say.more
  %say.words = getelementptr i8, ptr %say, i64 16
  store ptr @words, ptr %say.words
  %say.code = getelementptr i8, ptr %say, i64 24
  store i32 13, ptr %say.code
  %make.p = getelementptr i8, ptr %api, i64 48
  %make = load ptr, ptr %make.p
  %error = call ptr %make(ptr %say)
  ret ptr %error
}}

@words = private constant [{len(REFUSED) + 1} x i8] c"{REFUSED}\\00"

define i32 @send(ptr %block, ptr %pointers, i64 %all, ptr %stream) nounwind {{
{LOADED}
  %context.p = alloca ptr
  store ptr null, ptr %context.p
  %words = add i64 %all, %count
  %taken = alloca ptr, i64 %words                 ; the kernel's parameters, by their addresses
  %nothing = icmp eq i32 %blocks, 0
  br i1 %nothing, label %idle, label %ask
idle:
  ret i32 0
ask:
  %asked = call i32 %owner(ptr %stream, ptr %context.p)
  %knows = icmp eq i32 %asked, 0
  br i1 %knows, label %card, label %fail
fail:
  ret i32 %asked
card:
  %context = load ptr, ptr %context.p
  br label %look
look:
  %k = phi i64 [ 0, %card ], [ %k.next, %other ]
  %left = icmp slt i64 %k, %cards
  br i1 %left, label %compare, label %strange
strange:                                          ; CUDA_ERROR_INVALID_CONTEXT
  ret i32 201
compare:
  %twice = mul i64 %k, 2
  %here.p = getelementptr ptr, ptr %table, i64 %twice
  %here = load ptr, ptr %here.p
  %kernel.p = getelementptr ptr, ptr %here.p, i64 1
  %kernel = load ptr, ptr %kernel.p
  %is.it = icmp eq ptr %here, %context
  br i1 %is.it, label %fill, label %other
other:
  %k.next = add i64 %k, 1
  br label %look
fill:
  %i = phi i64 [ 0, %compare ], [ %i.next, %body ]
  %more = icmp slt i64 %i, %words
  br i1 %more, label %body, label %run
body:
  %is.array = icmp slt i64 %i, %all
  %j = sub i64 %i, %all
  %array = getelementptr ptr, ptr %pointers, i64 %i
  %number = getelementptr i64, ptr %numbers, i64 %j
  %at = select i1 %is.array, ptr %array, ptr %number
  %place = getelementptr ptr, ptr %taken, i64 %i
  store ptr %at, ptr %place
  %i.next = add i64 %i, 1
  br label %fill
run:
  %pushed = call i32 %push(ptr %context)
  %status = call i32 %launch(ptr %kernel, i32 %blocks, i32 1, i32 1, i32 %threads, i32 1, i32 1,
                             i32 0, ptr %stream, ptr %taken, ptr null)
  %popped = call i32 %pop(ptr %context.p)
  %worse = or i32 %pushed, %status
  ret i32 %worse
}}
"""


@lru_cache(maxsize=1)
def _library() -> Any:
    return jit.load_object(jit.compile_ir(GATHER + SEND), ["handler"])


def handler() -> Any:
    """The handler of graphics cards."""
    return capsule(_library())


def block(function: Any, char: str, leads: Sequence[tuple[int, ...]], n: int) -> int:
    """The address of what the handler needs for n states; an argument with one row has it for all of them."""
    each = zip(function.inputs, leads, strict=True)
    numbers = [*(arg.size * SIZE[char] if math.prod(lead) > 1 else 0 for arg, lead in each), n]
    empty = not any(arg.size for arg in function.outputs)
    return block_of(lambda card: function.source.kernel(char, card, n), numbers, 0 if empty else n)


def block_of(kernel: Callable[[int], Any], numbers: list[int], n: int) -> int:
    """The same of the kernel of each card, with these numbers behind its arrays."""
    cards = driver.driver()
    kernels = [kernel(card) for card in range(cards.count)]
    table = [word for card, kernel in enumerate(kernels) for word in (cards.context(card), kernel.loaded.handle)]
    blocks = math.ceil(n / kernels[0].grid.states)
    words = [*map(cards.address, FUNCTIONS), len(kernels), kept(table), blocks, kernels[0].grid.threads]
    words += [len(numbers), kept(numbers)]
    assert len(words) == len(WORDS)
    return kept(words, kernels)
