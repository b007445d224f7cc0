"""LLVM IR of the blocks of `compiler/ir/lane_blocks.py`: random numbers, selections, lookups."""

from __future__ import annotations

from itertools import count

from psiphi.backends.llvm.llvm_emitter import Width, internal_function
from psiphi.compiler.ir.block_frame import LaneBlock
from psiphi.compiler.ir.lane_blocks import (
    COUNTER,
    DRAWS,
    GRID_LIMIT,
    GRID_POINTS,
    KEY,
    MULTIPLIERS,
    ROUNDS,
    TABLE,
    WEYL,
    WORD,
    GridLookup,
    RandomNumbers,
    Selection,
)

BIG = 2.0**52  # the bits of 2^52 + x are those of 2^52 and the whole number x
BIG_BITS = 0x4330000000000000


def lane_function(block: LaneBlock, w: Width) -> str:
    """@<block>.<suffix>(ptr frame); frames of doubles only."""
    write = _Lines(w)
    if isinstance(block.code, GridLookup):
        return _lookup(block, block.code, w)
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


# -- lookups ---------------------------------------------------------------------------------------


def _lookup(block: LaneBlock, code: GridLookup, w: Width) -> str:
    """A loop over the lanes; the points are unrolled."""
    name, table = f"{block.name}.{w.suffix}", block.places[TABLE]
    points, cells, calls = block.places[GRID_POINTS], block.places["cells"], []
    for k, (m, size) in enumerate(zip(code.cells, code.sizes, strict=True)):
        calls += [
            f"%from{k} = getelementptr i8, ptr %lane.frame, i64 {(points + 2 * k) * w.bytes}",
            f"%to{k} = getelementptr i8, ptr %lane.frame, i64 {cells * w.bytes}",
            f"call void @{name}.cell{m}(ptr %from{k}, ptr %to{k}, ptr %table)",
        ]
        cells += size
    parts = [
        lookup_function(f"{name}.cell{m}", m, code.shape, w.fp, w.bytes)
        for m in dict.fromkeys(code.cells)
    ]
    body = "\n  ".join(calls)
    loop = f"""define internal void @{name}(ptr %frame) noinline nounwind {{
entry:
  %address.p = getelementptr i8, ptr %frame, i64 {table * w.bytes}
  %stride.p = getelementptr i8, ptr %frame, i64 {(table + 1) * w.bytes}
  %last.p = getelementptr i8, ptr %frame, i64 {(table + 2) * w.bytes}
  %address = load ptr, ptr %address.p
  %stride = load i64, ptr %stride.p
  %last = load i64, ptr %last.p
  br label %lane
lane:
  %i = phi i64 [ 0, %entry ], [ %next, %lane ]
  %beyond = icmp sgt i64 %i, %last
  %element = select i1 %beyond, i64 %last, i64 %i
  %jump = mul i64 %element, %stride
  %table = getelementptr i8, ptr %address, i64 %jump
  %way = mul i64 %i, {w.scalar_bytes}
  %lane.frame = getelementptr i8, ptr %frame, i64 %way
  {body}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, {w.lanes}
  br i1 %more, label %lane, label %done
done:
  ret void
}}
"""
    return "\n".join([*parts, loop])


def lookup_function(
    name: str, m: int, shape: tuple[int, int], fp: str, step: int, table_fp: str = ""
) -> str:
    """@<name>(ptr point, ptr cells, ptr table): the cell of one point, and the numbers about it.

    `step` are the bytes from number to number of the point and the result; the table has numbers
    of `table_fp`, one after the other.
    """
    lines: list[str] = []
    numbers = count()

    def add(text: str) -> str:
        register = f"%r{next(numbers)}"
        lines.append(f"{register} = {text}")
        return register

    def store(value: str, index: int) -> None:
        address = add(f"getelementptr i8, ptr %cells, i64 {index * step}")
        lines.append(f"store {fp} {value}, ptr {address}")

    def bound(x: str, least: float, most: float) -> str:
        """x within two numbers; `least` for NaN."""
        low, high = Width(fp, 1).constant(least), Width(fp, 1).constant(most)
        above = add(f"fcmp ogt {fp} {x}, {low}")
        lifted = add(f"select i1 {above}, {fp} {x}, {fp} {low}")
        below = add(f"fcmp olt {fp} {lifted}, {high}")
        return add(f"select i1 {below}, {fp} {lifted}, {fp} {high}")

    nodes: list[list[str]] = []
    for axis, size in enumerate(shape):
        address = add(f"getelementptr i8, ptr %point, i64 {axis * step}")
        x = add(f"load {fp}, ptr {address}")
        bounded = bound(x, -GRID_LIMIT, GRID_LIMIT)
        whole = add(f"fptosi {fp} {bounded} to i64")
        back = add(f"sitofp i64 {whole} to {fp}")
        above = add(f"fcmp ogt {fp} {back}, {bounded}")
        less = add(f"fsub {fp} {back}, {Width(fp, 1).constant(1.0)}")
        low = add(f"select i1 {above}, {fp} {less}, {fp} {back}")
        store(low, axis)
        own = []
        for k in range(m + 1):
            shifted = add(f"fadd {fp} {low}, {Width(fp, 1).constant(float(k))}")
            own.append(add(f"fptosi {fp} {bound(shifted, 0.0, size - 1.0)} to i64"))
        nodes.append(own)
    stored = table_fp or fp
    for i, row in enumerate(nodes[0]):
        start = add(f"mul i64 {row}, {shape[1]}")
        for j, column in enumerate(nodes[1]):
            index = add(f"add i64 {start}, {column}")
            address = add(f"getelementptr {stored}, ptr %table, i64 {index}")
            value = add(f"load {stored}, ptr {address}")
            if stored != fp:
                value = add(f"fpext {stored} {value} to {fp}")
            store(value, 2 + i * (m + 1) + j)
    body = "\n  ".join(lines)
    return f"""define internal void @{name}(ptr %point, ptr %cells, ptr %table) noinline nounwind {{
  {body}
  ret void
}}
"""
