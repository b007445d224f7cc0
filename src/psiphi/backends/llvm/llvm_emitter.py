"""LLVM IR from segments: the same text for one robot at a time (plain doubles) or one robot a SIMD lane.

FMA is formed here, by rule (a product used once, in a sum), not by the optimiser: scalar and vector code then round
alike, and results do not depend on the width, the batch size or the position in the batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from psiphi.compiler.ir.segments import APART, Segment, riders
from psiphi.compiler.tape.ops import Op

INSTRUCTION = {Op.ADD: "fadd", Op.SUB: "fsub", Op.MUL: "fmul", Op.DIV: "fdiv"}


@dataclass(frozen=True)
class Width:
    """The value type of a kernel: `lanes` of `float` or `double`."""

    fp: str  # "double" or "float"
    lanes: int
    registers: int = 0  # how many numbers are held in registers at a time (`register_spills.py`); 0: LLVM finds out by itself

    @property
    def type(self) -> str:
        return f"<{self.lanes} x {self.fp}>" if self.lanes > 1 else self.fp

    @property
    def suffix(self) -> str:
        """The intrinsics' name of the type."""
        scalar = "f64" if self.fp == "double" else "f32"
        return f"v{self.lanes}{scalar}" if self.lanes > 1 else scalar

    @property
    def scalar_bytes(self) -> int:
        return 8 if self.fp == "double" else 4

    @property
    def bytes(self) -> int:
        return self.lanes * self.scalar_bytes

    @property
    def integer(self) -> str:
        bits = f"i{8 * self.scalar_bytes}"
        return f"<{self.lanes} x {bits}>" if self.lanes > 1 else bits

    def constant(self, value: float) -> str:
        """A splat of the value, exact bits."""
        if self.fp == "float":
            value = struct.unpack("f", struct.pack("f", value))[0]
        bits = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
        return f"splat ({self.fp} {bits})" if self.lanes > 1 else bits

    def whole(self, value: int) -> str:
        """A splat of an integer."""
        return f"splat (i{8 * self.scalar_bytes} {value})" if self.lanes > 1 else str(value)


class Emitter:
    """One segment as the lines of a function body; bases are pointer arguments of that function."""

    steadfast: tuple[
        str, ...
    ] = ()  # bases at which what is written or read stays so, where an optimiser would undo it

    def __init__(
        self,
        segment: Segment,
        width: Width,
        fma: bool = True,
        ahead: Iterator[tuple[int, int]] | None = None,
        every: int = 1,
        apart: int = 0,
        at_once: bool | None = None,
    ):
        """`ahead`: numbers of the next block to fetch, one after every `every` nodes: (cell, number). A cell of the frame has
        the address of an input's first number and, behind it, the bytes from one to the next; `apart` is that of APART.
        `at_once`: results go out as soon as they are known, since what waits costs a register; as a rule, where they may."""
        self.segment, self.width, self.fma = segment, width, fma
        self.ahead, self.every, self.apart = ahead or iter(()), max(1, every), apart
        self.at_once = segment.keeps_what_it_reads if at_once is None else at_once
        self.known: dict[int, tuple[str, str]] = {}  # what stands in cells
        self.tape = segment.tape
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.fused: set[int] = set()
        self.pairs: dict[int, str] = {}  # (sin, cos) registers by angle
        self.count = 0  # of registers

    def fresh(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def body(self) -> list[str]:
        self.fused = self.riding() if self.fma else set()
        waiting = self.segment.stores_by_node()
        self._begin([node for node in self.segment.nodes if node not in self.fused])
        for n, node in enumerate(self.segment.nodes):
            if n % self.every == 0:
                self._fetch()
            if node not in self.fused:
                self.names[node] = self._emit(node)
                for store in waiting.pop(node, ()) if self.at_once else ():
                    self._store(store)
                self._computed(node)
        for store in chain.from_iterable(waiting.values()):
            self._store(store)
        return self.lines

    def _begin(self, order: list[int]) -> None:
        """The nodes will be computed in this order."""

    def _computed(self, node: int) -> None:
        """The node has just been computed, and stored where it goes."""

    def _fetch(self) -> None:
        """One line of memory, into the second cache: the first is full of the frame."""
        cell, number = next(self.ahead, (-1, 0))
        if cell >= 0:
            self.lines.append(
                f"call void @llvm.prefetch.p0(ptr {self._lying(cell, number)}, i32 0, i32 2, i32 1)"
            )

    def _lying(self, cell: int, number: int) -> str:
        """The address of a number of an input that lies anywhere."""
        if cell not in self.known:
            place, behind, base, stride = (self.fresh() for _ in range(4))
            self.lines.append(f"{place} = getelementptr i8, ptr %frame, i64 {cell}")
            self.lines.append(f"{behind} = getelementptr i8, ptr %frame, i64 {cell + 8}")
            self.lines.append(f"{base} = load ptr, ptr {place}")
            self.lines.append(f"{stride} = load i64, ptr {behind}")
            self.known[cell] = base, stride
        (base, stride), way, address = self.known[cell], self.fresh(), self.fresh()
        self.lines.append(f"{way} = mul i64 {stride}, {number}")
        self.lines.append(f"{address} = getelementptr i8, ptr {base}, i64 {way}")
        return address

    def riding(self) -> set[int]:
        """Products that are computed in the sums they ride in."""
        return set(
            riders(
                self.tape, self.segment.nodes, (store.node for store in self.segment.stores)
            ).values()
        )

    def value(self, node: int) -> str:
        """The text that stands for a node: a register, or a constant."""
        if node in self.names:
            return self.names[node]
        op, a, _ = self.tape.nodes[node]
        if op is Op.CONST:
            return self.width.constant(a)
        base, offset = self.segment.given[node]
        self.names[node] = (
            self._load_scalar(offset) if base == "param" else self._load(base, offset)
        )
        return self.names[node]

    def address(self, base: str, offset: int) -> str:
        name = self.fresh()
        self.lines.append(
            f"{name} = getelementptr i8, ptr %{base}, i64 {offset * self.width.bytes}"
        )
        return name

    def _load(self, base: str, offset: int) -> str:
        apart = base == APART
        address, name = (
            self._lying(self.apart, offset) if apart else self.address(base, offset),
            self.fresh(),
        )
        align, volatile = (
            1 if apart else self.width.bytes,
            "volatile " if base in self.steadfast else "",
        )
        self.lines.append(
            f"{name} = load {volatile}{self.width.type}, ptr {address}, align {align}"
        )
        return name

    def _load_scalar(self, offset: int) -> str:
        """A body's parameter: one number for all lanes."""
        w, address, name = self.width, self.fresh(), self.fresh()
        self.lines.append(f"{address} = getelementptr {w.fp}, ptr %param, i64 {offset}")
        self.lines.append(f"{name} = load {w.fp}, ptr {address}")
        if w.lanes == 1:
            return name
        one, all_lanes = self.fresh(), self.fresh()
        self.lines.append(f"{one} = insertelement {w.type} poison, {w.fp} {name}, i32 0")
        self.lines.append(
            f"{all_lanes} = shufflevector {w.type} {one}, {w.type} poison, <{w.lanes} x i32> zeroinitializer"
        )
        return all_lanes

    def _store(self, store) -> None:
        value = self.value(store.node)
        if store.accumulate:
            before, total = self._load(store.base, store.offset), self.fresh()
            self.lines.append(f"{total} = fadd {self.width.type} {before}, {value}")
            value = total
        address, volatile = (
            self.address(store.base, store.offset),
            "volatile " if store.base in self.steadfast else "",
        )
        self.lines.append(
            f"store {volatile}{self.width.type} {value}, ptr {address}, align {self.width.bytes}"
        )

    def _emit(self, node: int) -> str:
        op, a, b = self.tape.nodes[node]
        T = self.width.type
        if op in (Op.ADD, Op.SUB) and (a in self.fused or b in self.fused):
            return self._emit_fma(op, a, b)
        if op in INSTRUCTION:
            x, y, name = self.value(a), self.value(b), self.fresh()
            self.lines.append(f"{name} = {INSTRUCTION[op]} {T} {x}, {y}")
        elif op is Op.NEG:
            name = self._negated(self.value(a))
        elif op is Op.LESS:
            name = self._comparison(self.value(a), self.value(b))
        elif op is Op.SQRT:
            x, name = self.value(a), self.fresh()
            self.lines.append(f"{name} = call {T} @llvm.sqrt.{self.width.suffix}({T} {x})")
        else:
            name = self._sine_or_cosine(op, a)
        return name

    def _emit_fma(self, op: Op, a: int, b: int) -> str:
        """a + x y, a - x y or x y - b in one rounding."""
        if b in self.fused:
            _, x, y = self.tape.nodes[b]
            left, right, rest = self.value(x), self.value(y), self.value(a)
            if op is Op.SUB:
                left = self._negated(left)
        else:
            _, x, y = self.tape.nodes[a]
            left, right, rest = self.value(x), self.value(y), self.value(b)
            if op is Op.SUB:
                rest = self._negated(rest)
        T, name = self.width.type, self.fresh()
        self.lines.append(
            f"{name} = call {T} @llvm.fma.{self.width.suffix}({T} {left}, {T} {right}, {T} {rest})"
        )
        return name

    def _negated(self, value: str) -> str:
        name = self.fresh()
        self.lines.append(f"{name} = fneg {self.width.type} {value}")
        return name

    def _comparison(self, x: str, y: str) -> str:
        """1 where x < y, else 0 (so where one is no number)."""
        w, mask, name = self.width, self.fresh(), self.fresh()
        bools = f"<{w.lanes} x i1>" if w.lanes > 1 else "i1"
        self.lines.append(f"{mask} = fcmp olt {w.type} {x}, {y}")
        self.lines.append(
            f"{name} = select {bools} {mask}, {w.type} {w.constant(1.0)}, {w.type} {w.constant(0.0)}"
        )
        return name

    def _sine_or_cosine(self, op: Op, angle: int) -> str:
        T, pair = self.width.type, f"{{ {self.width.type}, {self.width.type} }}"
        if angle not in self.pairs:
            x, self.pairs[angle] = self.value(angle), self.fresh()
            self.lines.append(
                f"{self.pairs[angle]} = call {pair} @psiphi.sincos.{self.width.suffix}({T} {x})"
            )
        name = self.fresh()
        self.lines.append(
            f"{name} = extractvalue {pair} {self.pairs[angle]}, {0 if op is Op.SIN else 1}"
        )
        return name


def function(name: str, bases: list[str], lines: list[str]) -> str:
    """An internal function over pointer arguments."""
    arguments = ", ".join(f"ptr %{base}" for base in bases)
    text = "\n  ".join(lines)
    return f"define internal void @{name}({arguments}) noinline nounwind {{\n  {text}\n  ret void\n}}\n"
