"""A function as XLA calls it on a graphics card: its kernel goes on the stream of the call, without Python.

The attribute `block` of a call is the address of

    launch, stream's context, push, pop   functions of the driver
    cards, their contexts
    launches, their rows                  in order; the most parameters that one has

and a row of

    kernels, blocks, threads              one kernel for each card
    arrays, their places                  which of XLA's arrays, and how many bytes inside
    numbers, their row                    what the kernel takes besides

XLA says which stream the call is on, the stream which context it belongs to, and so which card's kernel it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from psiphi.backends.cuda import cuda_driver
from psiphi.backends.cuda.deferred_arrays import KernelCall
from psiphi.backends.cuda.dlpack import SIZE, capsule
from psiphi.backends.llvm import jit
from psiphi.functions.arrays.xla_cpu import GATHER, load_fields, pin_words

TARGET = "psiphi_card"
DRIVER_FUNCTIONS = ("cuLaunchKernel", "cuStreamGetCtx", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2")
BLOCK_FIELDS = {  # of a block, in order
    **{
        "launch": "ptr",
        "owner": "ptr",
        "push": "ptr",
        "pop": "ptr",
        "cards": "i64",
        "contexts": "ptr",
    },
    **{"sends": "i64", "rows": "ptr", "most": "i64"},
}
LAUNCH_FIELDS = {  # of a row
    **{"kernels": "ptr", "blocks": "i32", "threads": "i32"},
    **{"arrays": "i64", "places": "ptr", "count": "i64", "numbers": "ptr"},
}


def _load_words(where: str, words: dict[str, str]) -> str:
    return load_fields(
        where, **{name: (kind, 8 * i) for i, (name, kind) in enumerate(words.items())}
    )


LAUNCH_FAILED = "psiphi: the driver of the graphics card refused a kernel (psiphi info --gpu)"

LAUNCH_CODE = f"""
{load_fields("frame", api=("ptr", 16), context=("ptr", 24))}
  %wanted = alloca [4 x i64]                         ; XLA_FFI_Stream_Get_Args: size, extension, context, stream
  store i64 32, ptr %wanted
  %wanted.more = getelementptr i8, ptr %wanted, i64 8
  store ptr null, ptr %wanted.more
  %wanted.context = getelementptr i8, ptr %wanted, i64 16
  store ptr %context, ptr %wanted.context
  %wanted.stream = getelementptr i8, ptr %wanted, i64 24
  store ptr null, ptr %wanted.stream
{load_fields("api", get=("ptr", 80))}
  %no.stream = call ptr %get(ptr %wanted)
  %has.none = icmp ne ptr %no.stream, null
  br i1 %has.none, label %give, label %go
give:
  ret ptr %no.stream
go:
  %stream = load ptr, ptr %wanted.stream
  %status = call i32 @send(ptr %block, ptr %pointers, ptr %stream)
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
{load_fields("api", make=("ptr", 48))}
  %error = call ptr %make(ptr %say)
  ret ptr %error
}}

@words = private constant [{len(LAUNCH_FAILED) + 1} x i8] c"{LAUNCH_FAILED}\\00"

define i32 @send(ptr %block, ptr %pointers, ptr %stream) nounwind {{
{_load_words("block", BLOCK_FIELDS)}
  %context.p = alloca ptr
  store ptr null, ptr %context.p
  %addresses = alloca i64, i64 %most
  %taken = alloca ptr, i64 %most                  ; a kernel's parameters, by their addresses
  %nothing = icmp eq i64 %sends, 0
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
  %here.p = getelementptr ptr, ptr %contexts, i64 %k
  %here = load ptr, ptr %here.p
  %is.it = icmp eq ptr %here, %context
  br i1 %is.it, label %begin, label %other
other:
  %k.next = add i64 %k, 1
  br label %look
begin:
  %pushed = call i32 %push(ptr %context)
  br label %each
each:                                             ; the launches, in order
  %s = phi i64 [ 0, %begin ], [ %s.next, %sent ]
  %ready = icmp slt i64 %s, %sends
  br i1 %ready, label %one, label %over
one:
  %row.at = mul i64 %s, {len(LAUNCH_FIELDS)}
  %row = getelementptr i64, ptr %rows, i64 %row.at
{_load_words("row", LAUNCH_FIELDS)}
  %kernel.p = getelementptr ptr, ptr %kernels, i64 %k
  %kernel = load ptr, ptr %kernel.p
  br label %arrays.next
arrays.next:
  %i = phi i64 [ 0, %one ], [ %i.next, %array ]
  %more = icmp slt i64 %i, %arrays
  br i1 %more, label %array, label %numbers.next
array:                                            ; which buffer, and how many bytes inside
  %pair = mul i64 %i, 2
  %which.p = getelementptr i64, ptr %places, i64 %pair
  %which = load i64, ptr %which.p
  %inside.p = getelementptr i64, ptr %which.p, i64 1
  %inside = load i64, ptr %inside.p
  %buffer.p = getelementptr i64, ptr %pointers, i64 %which
  %buffer = load i64, ptr %buffer.p
  %address = add i64 %buffer, %inside
  %address.p = getelementptr i64, ptr %addresses, i64 %i
  store i64 %address, ptr %address.p
  %array.p = getelementptr ptr, ptr %taken, i64 %i
  store ptr %address.p, ptr %array.p
  %i.next = add i64 %i, 1
  br label %arrays.next
numbers.next:
  %j = phi i64 [ 0, %arrays.next ], [ %j.next, %number ]
  %others = icmp slt i64 %j, %count
  br i1 %others, label %number, label %go
number:
  %number.p = getelementptr i64, ptr %numbers, i64 %j
  %behind = add i64 %arrays, %j
  %place.p = getelementptr ptr, ptr %taken, i64 %behind
  store ptr %number.p, ptr %place.p
  %j.next = add i64 %j, 1
  br label %numbers.next
go:
  %status = call i32 %launch(ptr %kernel, i32 %blocks, i32 1, i32 1, i32 %threads, i32 1, i32 1,
                             i32 0, ptr %stream, ptr %taken, ptr null)
  %well = icmp eq i32 %status, 0
  br i1 %well, label %sent, label %over
sent:
  %s.next = add i64 %s, 1
  br label %each
over:
  %last = phi i32 [ 0, %each ], [ %status, %go ]
  %popped = call i32 %pop(ptr %context.p)
  %worse = or i32 %pushed, %last
  ret i32 %worse
}}
"""


@lru_cache(maxsize=1)
def _library() -> Any:
    return jit.load_object(jit.compile_ir(GATHER + LAUNCH_CODE), ["handler"])


def handler() -> Any:
    """The handler of graphics cards."""
    return capsule(_library().address("handler"))


def block(function: Any, char: str, leads: Sequence[tuple[int, ...]], n: int) -> int:
    """The address of what the handler needs for n states; an argument with one row has it for all of them."""
    each = zip(function.inputs, leads, strict=True)
    numbers = [*(arg.size * SIZE[char] if math.prod(lead) > 1 else 0 for arg, lead in each), n]
    places = [(i, 0) for i in range(len(function.inputs) + len(function.outputs))]
    empty = not n or not any(arg.size for arg in function.outputs)
    return launch_block(
        []
        if empty
        else [KernelCall(lambda card: function.source.kernel(char, card, n), places, numbers, n)]
    )


def launch_block(sends: Sequence[KernelCall]) -> int:
    """The same of kernels that are sent one after the other; their arrays are XLA's, by number."""
    cards = cuda_driver.driver()
    rows, alive = list[int](), list[Any]()
    for kernel, places, numbers, n in sends:
        kernels = [kernel(card) for card in range(cards.count)]
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
        alive += kernels
    most = max((len(places) + len(numbers) for _, places, numbers, _ in sends), default=0)
    words = [
        *map(cards.address, DRIVER_FUNCTIONS),
        cards.count,
        pin_words([cards.context(card) for card in range(cards.count)]),
    ]
    words += [len(sends), pin_words(rows), most]
    assert len(words) == len(BLOCK_FIELDS) and len(rows) == len(LAUNCH_FIELDS) * len(sends)
    return pin_words(words, alive)
