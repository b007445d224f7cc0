"""Registers by hand: of more numbers than a thread has registers, those that are needed last wait in memory (Belady).

For straight-line code that is the best there is: the number whose next reader is farthest goes. It is written once, since a
number does not change, and read again before it is needed. An assembler that has to find this by itself writes and reads four
times as much for a humanoid in float64 on a card. On a processor LLVM's own choice makes derivatives 10 % slower, and it takes
half as long again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from psiphi.backends.llvm.llvm_emitter import Emitter, Width, function
from psiphi.compiler.ir.segments import APART, Segment, Store
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import operands

BASE = "park"  # the pointer to a thread's parking places
FRAME = "frame"
LINE = 64  # bytes of the widest registers: their instructions say in one byte, not in four,
REACH = 128  # how many lines it is from a pointer, if it is less than this
POINTERS = 5  # besides %frame, that are passed in registers


class SpillEmitter(Emitter):
    """At most `registers` numbers are held at a time; others stand in `places` cells at %park, or where they came from.

    Results go out as soon as they are known: what waits costs a register. `fused`: products of which it is settled that they
    ride in their sums; `ends`: numbers that are wanted after the last line; `known`: numbers that are there before the first.
    """

    steadfast = (BASE,)

    def __init__(
        self,
        segment: Segment,
        width: Width,
        registers: int,
        fused: frozenset[int] | None = None,
        ends: Iterable[int] = (),
        known: Mapping[int, str] | None = None,
        **how: Any,
    ):
        own = Segment(
            segment.name, segment.tape, segment.nodes, segment.stores, dict(segment.given)
        )  # parked numbers join it
        super().__init__(own, width, at_once=True, **how)
        self.registers, self.places = registers, 0
        self.most = 0  # numbers held at once
        self.idle: list[int] = []  # places
        self.names.update(known or {})
        self.held: set[int] = set(self.names)
        self.settled, self.ends = fused, dict.fromkeys(ends)
        self.readers: dict[int, list[int]] = {}  # when a number is read, last first
        self.reads: dict[int, list[int]] = {}  # what the instruction of a node reads

    def riding(self) -> set[int]:
        return super().riding() if self.settled is None else set(self.settled)

    def _begin(self, order: list[int]) -> None:
        self.reads = {node: self._read_by(node) for node in order}
        for node in self.ends:
            self.readers[node] = [len(order)]
        for now in reversed(range(len(order))):
            for read in self.reads[order[now]]:
                self.readers.setdefault(read, []).append(now)

    def _computed(self, node: int) -> None:
        its = self.reads.pop(node)
        for read in its:
            self.readers[read].pop()
            self._keep(read)
        self._keep(node)
        self.most = max(self.most, min(len(self.held), self.registers))
        while len(self.held) > self.registers:
            self._park(max(self.held, key=lambda number: self.readers[number][-1]))

    def _read_by(self, node: int) -> list[int]:
        """The numbers that the instruction of a node reads; through the product that rides in it. Constants are none."""
        found: list[int] = []
        for operand in operands(self.tape, node):
            found += operands(self.tape, operand) if operand in self.fused else [operand]
        return list(dict.fromkeys(x for x in found if self.tape.nodes[x][0] is not Op.CONST))

    def _keep(self, number: int) -> None:
        """Hold a number that somebody will read; forget one that nobody will."""
        if self.readers.get(number):
            self.held.add(number)
            return
        self.held.discard(number)
        self.names.pop(number, None)
        base, place = self.segment.given.get(number, ("", 0))
        if base == BASE:
            self.idle.append(place)

    def _park(self, number: int) -> None:
        self.held.remove(number)
        if number not in self.segment.given:
            if not self.idle:
                self.idle.append(self.places)
                self.places += 1
            place = self.idle.pop()
            self._store(Store(BASE, place, number))
            self.segment.given[number] = BASE, place
        self.names.pop(number)


class InFrame(SpillEmitter):
    """On a processor what stands in the frame is as near as a parking place: a result that has been stored needs none."""

    steadfast = (BASE, FRAME, APART)

    def __init__(self, segment: Segment, width: Width, **how: Any):
        super().__init__(segment, width, width.registers, **how)
        self.addressed: dict[
            int, int
        ] = {}  # {line: the place in the frame of which it makes an address}

    def _store(self, store: Store) -> None:
        super()._store(store)
        if store.base == FRAME and not store.accumulate:
            self.segment.given.setdefault(store.node, (FRAME, store.offset))

    def address(self, base: str, offset: int) -> str:
        if base == FRAME:
            self.addressed[len(self.lines)] = offset
        return super().address(base, offset)

    def go_near(self) -> list[int]:
        """The places to which pointers %near0 ... shall point: lines say how far it is from them, no longer from %frame."""
        pointed = _near(Counter(self.addressed.values()))
        for line, place in self.addressed.items():
            n = next((n for n, at in enumerate(pointed) if -REACH <= place - at < REACH), None)
            if n is not None:
                way = f"i64 {(place - pointed[n]) * self.width.bytes}"
                self.lines[line] = (
                    f"{self.lines[line].split(' = ')[0]} = getelementptr i8, ptr %near{n}, {way}"
                )
        return pointed


def _near(asked: Counter[int]) -> list[int]:
    """Up to POINTERS places, each within reach of as many of those asked for as can be; %frame reaches the first ones."""
    left, found = sorted(place for place in asked if place >= REACH), []
    while left and len(found) < POINTERS:
        before = [0, *accumulate(asked[place] for place in left)]
        reach = [(bisect_left(left, first + 2 * REACH), i) for i, first in enumerate(left)]
        end, start = max(reach, key=lambda run: before[run[0]] - before[run[1]])
        found.append(left[start] + REACH)
        del left[start:end]
    return found


def segment_function(
    name: str, bases: list[str], segment: Segment, width: Width, **how: Any
) -> str:
    """A segment as a function of pointers; its parking places are its own. Where results go to where others are read, they have
    to wait for the end, and LLVM keeps them."""
    if not (width.registers and segment.keeps_what_it_reads):
        return function(name, bases, Emitter(segment, width, **how).body())
    parking = InFrame(segment, width, **how)
    parking.body()
    room = (
        [f"%{BASE} = alloca [{parking.places * width.bytes} x i8], align {width.bytes}"]
        if parking.places
        else []
    )
    near = parking.go_near() if width.bytes == LINE else []
    own = function(
        f"{name}.near" if near else name,
        [*bases, *(f"near{n}" for n in range(len(near)))],
        [*room, *parking.lines],
    )
    if not near:
        return own
    lines = [
        f"%near{n} = getelementptr i8, ptr %{FRAME}, i64 {place * width.bytes}"
        for n, place in enumerate(near)
    ]
    passed = ", ".join(f"ptr %{base}" for base in (*bases, *(f"near{n}" for n in range(len(near)))))
    return own + function(name, bases, [*lines, f"call void @{name}.near({passed})"])
