"""LLVM IR from segments, for one batch element (plain doubles) or one element per SIMD lane.

FMA is formed here, by a rule (a product used once, in a sum), not by the optimiser. Scalar and
vector code then round alike: results do not depend on the width, the batch size or the position in
the batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypedDict

from psiphi.compiler.ir.segments import SEPARATE, Segment, Store, fused_products
from psiphi.compiler.tape.ops import ADD, CONST, DIV, LESS, MUL, NEG, SIN, SQRT, SUB, Op

INSTRUCTION = {ADD: "fadd", SUB: "fsub", MUL: "fmul", DIV: "fdiv"}


@dataclass(frozen=True)
class Width:
    """The value type of a kernel: `lanes` of `float` or `double`."""

    fp: str  # "double" or "float"
    lanes: int
    registers: int = (
        0  # numbers kept in registers at a time (`register_spills.py`); 0: LLVM decides
    )

    @cached_property
    def type(self) -> str:
        return f"<{self.lanes} x {self.fp}>" if self.lanes > 1 else self.fp

    @cached_property
    def suffix(self) -> str:
        """The type as it appears in names of intrinsics."""
        scalar = "f64" if self.fp == "double" else "f32"
        return f"v{self.lanes}{scalar}" if self.lanes > 1 else scalar

    @cached_property
    def scalar_bytes(self) -> int:
        return 8 if self.fp == "double" else 4

    @cached_property
    def bytes(self) -> int:
        return self.lanes * self.scalar_bytes

    @cached_property
    def integer(self) -> str:
        bits = f"i{8 * self.scalar_bytes}"
        return f"<{self.lanes} x {bits}>" if self.lanes > 1 else bits

    def constant(self, value: float) -> str:
        """A splat of the value, with exact bits."""
        if self.fp == "float":
            value = struct.unpack("f", struct.pack("f", value))[0]
        bits = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        return f"splat ({self.fp} {bits})" if self.lanes > 1 else bits

    def integer_constant(self, value: int) -> str:
        """A splat of an integer."""
        return f"splat (i{8 * self.scalar_bytes} {value})" if self.lanes > 1 else str(value)


class EmitterOptions(TypedDict, total=False):
    """Keyword arguments of an `Emitter`."""

    fma: bool
    prefetches: Iterator[tuple[int, int]]
    prefetch_period: int
    separate_cell: int


class Emitter:
    """Writes one segment as a function body; its bases are pointer arguments of that function."""

    # loads and stores at these bases are volatile, so that the optimiser does not remove them
    volatile_bases: tuple[str, ...] = ()

    def __init__(
        self,
        segment: Segment,
        width: Width,
        fma: bool = True,
        prefetches: Iterator[tuple[int, int]] | None = None,
        prefetch_period: int = 1,
        separate_cell: int = 0,
        stores_early: bool | None = None,
    ):
        """Settings of the emitter.

        `prefetches`: numbers of the next block to prefetch, as (cell, number), one every
        `prefetch_period` nodes. A cell of the frame holds the address of an input's first number
        and its stride in bytes; `separate_cell` is that of the input outside of the frame.
        `stores_early`: store a result as soon as it is computed, which frees its register; by
        default wherever the segment permits it.
        """
        self.segment, self.width, self.fma = segment, width, fma
        self.prefetches, self.prefetch_period, self.separate_cell = (
            prefetches or iter(()),
            max(1, prefetch_period),
            separate_cell,
        )
        self.stores_early = segment.may_store_early if stores_early is None else stores_early
        self.cell_contents: dict[int, tuple[str, str]] = {}  # {cell: registers (address, stride)}
        self.tape = segment.tape
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.fused: set[int] = set()
        self.pairs: dict[int, str] = {}  # (sin, cos) registers by angle
        self.count = 0  # of registers

    def new_register(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def body(self) -> list[str]:
        self.fused = self.fused_products() if self.fma else set()
        pending = self.segment.stores_by_node()
        self._before_nodes([node for node in self.segment.nodes if node not in self.fused])
        for n, node in enumerate(self.segment.nodes):
            if n % self.prefetch_period == 0:
                self._prefetch()
            if node not in self.fused:
                self.names[node] = self._emit(node)
                for store in pending.pop(node, ()) if self.stores_early else ():
                    self._store(store)
                self._after_node(node)
        late = [*chain.from_iterable(pending.values())]
        self._load_overwritten(late)
        for store in late:
            self._store(store)
        return self.lines

    def _load_overwritten(self, stores: list[Store]) -> None:
        """Load the inputs that are copied to results, where another result overwrites them."""
        written = {(store.base, store.offset) for store in stores}
        for node in dict.fromkeys(store.node for store in stores):
            if self.segment.loads.get(node) in written:
                self.value(node)

    def _before_nodes(self, order: list[int]) -> None:
        """Hook: called with the order in which nodes are computed."""

    def _after_node(self, node: int) -> None:
        """Hook: called after a node was computed and stored."""

    def _prefetch(self) -> None:
        """Prefetch one cache line into the L2 cache; the frame fills the L1 cache."""
        cell, number = next(self.prefetches, (-1, 0))
        if cell >= 0:
            address = self._strided_address(cell, number)
            self.lines.append(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 2, i32 1)")

    def _strided_address(self, cell: int, number: int) -> str:
        """The address of a number of an input that is described by a cell."""
        if cell not in self.cell_contents:
            address_field, stride_field, base, stride = (self.new_register() for _ in range(4))
            self.lines.append(f"{address_field} = getelementptr i8, ptr %frame, i64 {cell}")
            self.lines.append(f"{stride_field} = getelementptr i8, ptr %frame, i64 {cell + 8}")
            self.lines.append(f"{base} = load ptr, ptr {address_field}")
            self.lines.append(f"{stride} = load i64, ptr {stride_field}")
            self.cell_contents[cell] = base, stride
        (base, stride), offset, address = (
            self.cell_contents[cell],
            self.new_register(),
            self.new_register(),
        )
        self.lines.append(f"{offset} = mul i64 {stride}, {number}")
        self.lines.append(f"{address} = getelementptr i8, ptr {base}, i64 {offset}")
        return address

    def fused_products(self) -> set[int]:
        """Products that are fused into the sums that use them."""
        return set(
            fused_products(
                self.tape, self.segment.nodes, (store.node for store in self.segment.stores)
            ).values()
        )

    def value(self, node: int) -> str:
        """The operand text of a node: a register or a constant."""
        if node in self.names:
            return self.names[node]
        op, a, _ = self.tape.nodes[node]
        if op is CONST:
            return self.width.constant(a)
        base, offset = self.segment.loads[node]
        self.names[node] = (
            self._load_scalar(offset) if base == "param" else self._load(base, offset)
        )
        return self.names[node]

    def address(self, base: str, offset: int) -> str:
        name = self.new_register()
        self.lines.append(
            f"{name} = getelementptr i8, ptr %{base}, i64 {offset * self.width.bytes}"
        )
        return name

    def _load(self, base: str, offset: int) -> str:
        separate = base == SEPARATE
        address, name = (
            self._strided_address(self.separate_cell, offset)
            if separate
            else self.address(base, offset),
            self.new_register(),
        )
        align, volatile = (
            1 if separate else self.width.bytes,
            "volatile " if base in self.volatile_bases else "",
        )
        self.lines.append(
            f"{name} = load {volatile}{self.width.type}, ptr {address}, align {align}"
        )
        return name

    def _load_scalar(self, offset: int) -> str:
        """A parameter of a body: one number, broadcast to all lanes."""
        w, address, name = self.width, self.new_register(), self.new_register()
        self.lines.append(f"{address} = getelementptr {w.fp}, ptr %param, i64 {offset}")
        self.lines.append(f"{name} = load {w.fp}, ptr {address}")
        if w.lanes == 1:
            return name
        first, all_lanes = self.new_register(), self.new_register()
        self.lines.append(f"{first} = insertelement {w.type} poison, {w.fp} {name}, i32 0")
        self.lines.append(
            f"{all_lanes} = shufflevector {w.type} {first}, {w.type} poison, "
            f"<{w.lanes} x i32> zeroinitializer"
        )
        return all_lanes

    def _store(self, store) -> None:
        value = self.value(store.node)
        if store.accumulate:
            old, total = self._load(store.base, store.offset), self.new_register()
            self.lines.append(f"{total} = fadd {self.width.type} {old}, {value}")
            value = total
        address, volatile = (
            self.address(store.base, store.offset),
            "volatile " if store.base in self.volatile_bases else "",
        )
        self.lines.append(
            f"store {volatile}{self.width.type} {value}, ptr {address}, align {self.width.bytes}"
        )

    def _emit(self, node: int) -> str:
        op, a, b = self.tape.nodes[node]
        T = self.width.type
        if op in (ADD, SUB) and (a in self.fused or b in self.fused):
            return self._emit_fma(op, a, b)
        if op in INSTRUCTION:
            x, y, name = self.value(a), self.value(b), self.new_register()
            self.lines.append(f"{name} = {INSTRUCTION[op]} {T} {x}, {y}")
        elif op is NEG:
            name = self._negate(self.value(a))
        elif op is LESS:
            name = self._compare(self.value(a), self.value(b))
        elif op is SQRT:
            x, name = self.value(a), self.new_register()
            self.lines.append(f"{name} = call {T} @llvm.sqrt.{self.width.suffix}({T} {x})")
        else:
            name = self._sine_or_cosine(op, a)
        return name

    def _emit_fma(self, op: Op, a: int, b: int) -> str:
        """a + x y, a - x y or x y - b with one rounding."""
        if b in self.fused:
            _, x, y = self.tape.nodes[b]
            left, right, addend = self.value(x), self.value(y), self.value(a)
            if op is SUB:
                left = self._negate(left)
        else:
            _, x, y = self.tape.nodes[a]
            left, right, addend = self.value(x), self.value(y), self.value(b)
            if op is SUB:
                addend = self._negate(addend)
        T, name = self.width.type, self.new_register()
        arguments = f"{T} {left}, {T} {right}, {T} {addend}"
        self.lines.append(f"{name} = call {T} @llvm.fma.{self.width.suffix}({arguments})")
        return name

    def _negate(self, value: str) -> str:
        name = self.new_register()
        self.lines.append(f"{name} = fneg {self.width.type} {value}")
        return name

    def _compare(self, x: str, y: str) -> str:
        """1 where x < y, else 0 (also where one of them is NaN)."""
        w, mask, name = self.width, self.new_register(), self.new_register()
        bools = f"<{w.lanes} x i1>" if w.lanes > 1 else "i1"
        self.lines.append(f"{mask} = fcmp olt {w.type} {x}, {y}")
        self.lines.append(
            f"{name} = select {bools} {mask}, "
            f"{w.type} {w.constant(1.0)}, {w.type} {w.constant(0.0)}"
        )
        return name

    def _sine_or_cosine(self, op: Op, angle: int) -> str:
        T, pair = self.width.type, f"{{ {self.width.type}, {self.width.type} }}"
        if angle not in self.pairs:
            x, self.pairs[angle] = self.value(angle), self.new_register()
            self.lines.append(
                f"{self.pairs[angle]} = call {pair} @psiphi.sincos.{self.width.suffix}({T} {x})"
            )
        name = self.new_register()
        self.lines.append(
            f"{name} = extractvalue {pair} {self.pairs[angle]}, {0 if op is SIN else 1}"
        )
        return name


def internal_function(name: str, bases: list[str], lines: list[str]) -> str:
    """The text of an internal function of pointer arguments."""
    arguments = ", ".join(f"ptr %{base}" for base in bases)
    head = f"define internal void @{name}({arguments}) noinline nounwind"
    text = "\n  ".join(lines)
    return f"{head} {{\n  {text}\n  ret void\n}}\n"
