"""Registers by hand: of more numbers than a thread has registers, those that are needed last wait in memory (Belady).

For straight-line code that is the best there is: the number whose next reader is farthest goes. It is written once, since a
number does not change, and read again before it is needed. An assembler that has to find this by itself writes and reads four
times as much for a humanoid in float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from psiphi.emitters.llvm import Emitter, Width
from psiphi.emitters.segments import Segment, Store
from psiphi.tape.ops import Op
from psiphi.tape.tape import operands

BASE = "park"  # the pointer to a thread's parking places


class Parking(Emitter):
    """At most `registers` numbers are held at a time; others stand in `places` cells at %park, or where they came from.

    Results go out as soon as they are known: what waits costs a register. `fused`: products of which it is settled that they
    ride in their sums; `ends`: numbers that are wanted after the last line; `known`: numbers that are there before the first.
    """

    def __init__(
        self,
        segment: Segment,
        width: Width,
        registers: int,
        fused: frozenset[int] | None = None,
        ends: Iterable[int] = (),
        known: Mapping[int, str] | None = None,
    ):
        own = Segment(segment.name, segment.tape, segment.nodes, segment.stores, dict(segment.given))  # parked numbers join it
        super().__init__(own, width)
        self.registers, self.places = registers, 0
        self.most = 0  # numbers held at once
        self.idle: list[int] = []  # places
        self.names.update(known or {})
        self.held: set[int] = set(self.names)
        self.settled, self.ends = fused, dict.fromkeys(ends)
        self.readers: dict[int, list[int]] = {}  # when a number is read, last first

    def body(self) -> list[str]:
        waiting = self.segment.stores_by_node()
        self.fused = self.riding() if self.settled is None else set(self.settled)
        order = [node for node in self.segment.nodes if node not in self.fused]
        reads = [self._reads(node) for node in order]
        for node in self.ends:
            self.readers[node] = [len(order)]
        for now in reversed(range(len(order))):
            for read in reads[now]:
                self.readers.setdefault(read, []).append(now)
        for node, its in zip(order, reads, strict=True):
            self.names[node] = self._emit(node)
            for store in waiting.pop(node, ()):
                self._store(store)
            for read in its:
                self.readers[read].pop()
            for number in (*its, node):
                self._keep(number)
            self.most = max(self.most, min(len(self.held), self.registers))
            while len(self.held) > self.registers:
                self._park(max(self.held, key=lambda number: self.readers[number][-1]))
        for stores in waiting.values():
            for store in stores:
                self._store(store)
        return self.lines

    def _reads(self, node: int) -> list[int]:
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

    def _load(self, base: str, offset: int) -> str:
        return self._steadfast(super()._load, base, offset)

    def _store(self, store: Store) -> None:
        self._steadfast(super()._store, store)

    def _steadfast(self, emit, *what):
        """What goes to a parking place stays there: an optimiser would undo it."""
        answer = emit(*what)
        if (what[0] if isinstance(what[0], str) else what[0].base) == BASE:
            for word in ("store ", "load "):
                self.lines[-1] = self.lines[-1].replace(word, f"{word}volatile ")
        return answer
