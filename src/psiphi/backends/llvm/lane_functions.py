"""LLVM IR of the blocks of `compiler/ir/lane_blocks.py`: random numbers and selections."""

from __future__ import annotations

from itertools import count

from psiphi.backends.llvm.llvm_emitter import Width, internal_function
from psiphi.compiler.ir.block_frame import LaneBlock
from psiphi.compiler.ir.lane_blocks import (
    COUNTER,
    DRAWS,
    KEY,
    MULTIPLIERS,
    ROUNDS,
    WEYL,
    WORD,
    RandomNumbers,
    Selection,
)

BIG = 2.0**52  # the bits of 2^52 + x are those of 2^52 and the whole number x
BIG_BITS = 0x4330000000000000


def lane_function(block: LaneBlock, w: Width) -> str:
    """@<block>.<suffix>(ptr frame); frames of doubles only."""
    write = _Lines(w)
    if isinstance(block.code, Selection):
        lines = _select(block, block.code, write)
        return internal_function(f"{block.name}.{w.suffix}", ["frame"], lines)
    return _random(block, block.code, write)


class _Lines:
    """Instructions on values of one width, each with a register of its own."""

    def __init__(self, w: Width):
        self.w, self.lines, self.numbers = w, [], count()

    def add(self, text: str) -> str:
        register = f"%r{next(self.numbers)}"
        self.lines.append(f"{register} = {text}")
        return register

    def address(self, cell: int | str, base: str = "%frame") -> str:
        offset = cell if isinstance(cell, str) else f"{cell * self.w.bytes}"
        return self.add(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, cell: int) -> str:
        return self.add(f"load {self.w.type}, ptr {self.address(cell)}, align {self.w.bytes}")

    def store(self, value: str, address: str) -> None:
        self.lines.append(f"store {self.w.type} {value}, ptr {address}, align {self.w.bytes}")

    def integer(self, operation: str, a: str, b: str | int) -> str:
        other = self.w.integer_constant(b) if isinstance(b, int) else b
        return self.add(f"{operation} {self.w.integer} {a}, {other}")

    def word(self, cell: int) -> str:
        """A whole number of the frame, as an integer of 32 bits in 64."""
        big = self.add(f"fadd {self.w.type} {self.load(cell)}, {self.w.constant(BIG)}")
        bits = self.add(f"bitcast {self.w.type} {big} to {self.w.integer}")
        return self.integer("and", bits, WORD)

    def uniform(self, word: str) -> str:
        """(word + 1/2) / 2^32."""
        w, bits = self.w, self.integer("or", word, BIG_BITS)
        big = self.add(f"bitcast {w.integer} {bits} to {w.type}")
        whole = self.add(f"fsub {w.type} {big}, {w.constant(BIG)}")
        middle = self.add(f"fadd {w.type} {whole}, {w.constant(0.5)}")
        return self.add(f"fmul {w.type} {middle}, {w.constant(2.0**-32)}")


def _select(block: LaneBlock, code: Selection, write: _Lines) -> list[str]:
    w, places = write.w, block.places
    flag = write.load(places[code.condition])
    mask = write.add(f"fcmp une {w.type} {flag}, {w.constant(0.0)}")
    bools = f"<{w.lanes} x i1>" if w.lanes > 1 else "i1"
    for place, new in code.values.items():
        for i in range(code.sizes[place]):
            value = write.load(places[new] + i) if new else w.constant(0.0)
            old = write.load(places[place] + i)
            found = write.add(f"select {bools} {mask}, {w.type} {value}, {w.type} {old}")
            write.store(found, write.address(places[place] + i))
    return write.lines


def _random(block: LaneBlock, code: RandomNumbers, write: _Lines) -> str:
    """A loop over the draws; the rounds of Philox are unrolled."""
    w, places = write.w, block.places
    keys = [write.word(places[KEY] + i) for i in range(2)]
    words = [write.word(places[COUNTER] + i) for i in range(3)]
    start = write.address(places["numbers"])
    head = "\n  ".join(write.lines)
    write.lines = []
    draw = write.add(f"add i64 %i, {code.first}")
    if w.lanes > 1:
        one = write.add(f"insertelement {w.integer} poison, i64 {draw}, i64 0")
        shuffle = f"{w.integer} poison, <{w.lanes} x i32> zeroinitializer"
        draw = write.add(f"shufflevector {w.integer} {one}, {shuffle}")
    c0, c1, c2, c3 = *words, draw
    k0, k1 = keys
    for _ in range(ROUNDS):
        a, b = (write.integer("mul", x, m) for x, m in zip((c0, c2), MULTIPLIERS, strict=True))
        high = [write.integer("lshr", x, 32) for x in (b, a)]
        mixed = [
            write.integer("xor", write.integer("xor", x, c), k)
            for x, c, k in zip(high, (c1, c3), (k0, k1), strict=True)
        ]
        low = [write.integer("and", x, WORD) for x in (b, a)]
        (c0, c2), (c1, c3) = mixed, low
        k0, k1 = (
            write.integer("and", write.integer("add", k, step), WORD)
            for k, step in zip((k0, k1), WEYL, strict=True)
        )
    jump = write.add(f"mul i64 %i, {DRAWS * w.bytes}")
    row = write.address(jump, start)
    for i, x in enumerate((c0, c1, c2, c3)):
        write.store(write.uniform(x), write.address(i, row))
    body = "\n  ".join(write.lines)
    return f"""define internal void @{block.name}.{w.suffix}(ptr %frame) noinline nounwind {{
entry:
  {head}
  br label %draw
draw:
  %i = phi i64 [ 0, %entry ], [ %next, %draw ]
  {body}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, {code.size // DRAWS}
  br i1 %more, label %draw, label %done
done:
  ret void
}}
"""
