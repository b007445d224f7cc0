"""A tape as the kernel of a graphics card: one thread a state, the numbers in its registers.

    kernel(arrays..., steps..., n)     `steps`: bytes from one state of an input to the next, 0 where all share one row

Arrays are row-major, (n, size). A warp of 32 threads takes 32 states that follow each other. Narrow rows are read and written
by the threads they belong to. Wide ones go through memory that the warp shares, so that neighbours read neighbours: all threads
bring all rows in, then each takes its own; results the other way. Rows stand there an odd number of words apart: 32 threads
then find 32 different banks. Threads beyond n do the last state once more, and write the same numbers once more.

The arithmetic is that of the host's kernels, instruction by instruction: same bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from psiphi.emitters.llvm import Emitter, Width
from psiphi.emitters.one_tape import JoinedTape
from psiphi.emitters.parking import BASE, Parking
from psiphi.emitters.reduction import fewer_turns, sincos_of_any
from psiphi.emitters.segments import Places, Segment, Store, angles_first
from psiphi.emitters.trig import tame_sincos
from psiphi.sweeps.drive import Straight
from psiphi.sweeps.program import Argument
from psiphi.tape.ops import BINARY, Op
from psiphi.tape.tape import Tape

NAME = "psiphi_kernel"
WARP = 32  # threads that run in step
WARPS = 4  # of a block, at most
NARROW = 8  # numbers a row, up to which a thread reads and writes its own
SHARED = 48 * 1024  # bytes a block may share without being asked for
STAGE = 20 * 1024  # of them a warp: what is shared is missing in the cache, where parked numbers stand
ROOM = {"double": 120, "float": 240}  # numbers that fit into the registers of a thread, 255 of 32 bits,
REGISTERS = {
    "double": 100,
    "float": 200,
}  # and, where they do not, how many we hold: the assembler wants the rest to look ahead
AT_ONCE = 16  # loads under way before the first is stored


class Shell(Protocol):
    """What is around a kernel: on a card, or, where kernels are tested, on this processor."""

    sync: str  # the line at which the threads of a warp wait for each other

    def kernel(self, pointers: list[str], numbers: list[str], body: list[str], warps: int, stage: int) -> str:
        """The function of pointers (%<name>.array; those called in... are only read) and whole numbers (%<name>, i64), in which
        the body finds %lane (i32), %warp (i64, of all) and %stage (ptr, `stage` bytes a warp). Its first block is %entry."""
        ...


@dataclass(frozen=True)
class ArrayRow:
    """One array of the kernel; `offset` is where its rows stand in the shared memory, None where they do not."""

    arg: Argument
    name: str
    offset: int | None

    @property
    def stride(self) -> int:
        """Numbers from row to row in shared memory: odd."""
        return self.arg.size | 1


@dataclass(frozen=True)
class Staging:
    """Which arrays are staged, and where."""

    inputs: tuple[ArrayRow, ...]
    outputs: tuple[ArrayRow, ...]
    stage: int  # bytes a warp

    @property
    def warps(self) -> int:
        """Of one block: as many as share its memory."""
        return max(1, min(WARPS, SHARED // self.stage)) if self.stage else WARPS

    @staticmethod
    def of(inputs: Iterable[Argument], outputs: Iterable[Argument], width: Width) -> Staging:
        """Wide rows are staged while they fit: results first, since a thread writes them one by one."""
        named = [(arg, f"out{i}") for i, arg in enumerate(outputs)]
        named += [(arg, f"in{i}") for i, arg in enumerate(inputs)]
        rows, stage = {}, 0
        for arg, name in named:
            size = WARP * (arg.size | 1) * width.bytes
            staged = arg.size > NARROW and stage + size <= STAGE
            rows[name] = ArrayRow(arg, name, stage if staged else None)
            stage += size if staged else 0
        ins, outs = (tuple(row for row in rows.values() if row.name.startswith(kind)) for kind in ("in", "out"))
        return Staging(ins, outs, stage)


def device_module(code: Straight, fp: str, shell: Shell) -> str:
    """The IR of one kernel."""
    w = Width(fp, 1)
    staging = staging_of(code, w)
    pointers = [row.name for row in (*staging.inputs, *staging.outputs)]
    numbers = [*(f"{row.name}.step" for row in staging.inputs), "n"]
    has_trig = any(code.tape.nodes[i][0] in (Op.SIN, Op.COS) for i in _live(code))
    kernel = shell.kernel(pointers, numbers, _body(code, staging, w, shell.sync), staging.warps, staging.stage)
    trig = [] if not has_trig else [sincos_of_any(w)] if isinstance(code, JoinedTape) else [fewer_turns(w), tame_sincos(w)]
    return "\n".join([arithmetic(w), *trig, kernel])


def arithmetic(w: Width) -> str:
    """What tapes call."""
    kinds = [("fma", w, 3), ("sqrt", w, 1), *([("fma", Width("double", 1), 3)] if w.fp == "float" else [])]
    return "\n".join(f"declare {x.type} @llvm.{name}.{x.suffix}({', '.join([x.type] * n)})" for name, x, n in kinds)


def staging_of(code: Straight, width: Width) -> Staging:
    return Staging.of(code.program.inputs, code.program.outputs, width)


def _body(code: Straight, staging: Staging, w: Width, sync: str) -> list[str]:
    staged_in = [row for row in staging.inputs if row.offset is not None]
    staged_out = [row for row in staging.outputs if row.offset is not None]
    lines = [*places(), *(line for row in (*staging.inputs, *staging.outputs) for line in _own(row, w))]
    for row in staged_in:
        lines += _move(row, w, inwards=True)
    lines += [sync] if staged_in else []
    settled = code.fused if isinstance(code, JoinedTape) else None
    first, segment, angles = _segments(code)
    before = _Angles(first, w)
    lines += before.body()
    known = {leaf: before.names[store.node] for leaf, store in zip(angles, first.stores, strict=True)}
    for table in (ROOM, REGISTERS):
        parking = Parking(segment, w, table[w.fp], settled, known=known)
        parking.count = before.count
        parking.body()
        if not parking.places:
            break
    lines += parking.lines
    if parking.places:
        lines.insert(0, f"%{BASE} = alloca [{parking.places * w.bytes} x i8], align {w.bytes}")
    lines += [sync] if staged_out else []
    for row in staged_out:
        lines += _move(row, w, inwards=False)
    return lines


def places() -> list[str]:
    """The first state of this warp, how many follow it, and the one of this thread."""
    return [
        "%last = sub i64 %n, 1",
        f"%begin = mul i64 %warp, {WARP}",
        "%beyond = icmp sgt i64 %begin, %last",
        "%first = select i1 %beyond, i64 %last, i64 %begin",
        "%left = sub i64 %last, %first",
        f"%many = icmp sgt i64 %left, {WARP - 1}",
        f"%rest = select i1 %many, i64 {WARP - 1}, i64 %left",
        "%most = trunc i64 %rest to i32",
        "%idle = icmp sgt i32 %lane, %most",
        "%mine = select i1 %idle, i32 %most, i32 %lane",
        "%mine.long = zext i32 %mine to i64",
        "%state = add i64 %first, %mine.long",
    ]


def _step(row: ArrayRow, w: Width) -> str:
    """Bytes from state to state: given for inputs, those of the row for results."""
    return f"%{row.name}.step" if row.name.startswith("in") else str(row.arg.size * w.bytes)


def _own(row: ArrayRow, w: Width) -> list[str]:
    """%<name>: this thread's row, in the array or in shared memory."""
    if row.offset is None:
        return [
            f"%{row.name}.at = mul i64 %state, {_step(row, w)}",
            f"%{row.name} = getelementptr i8, ptr %{row.name}.array, i64 %{row.name}.at",
        ]
    return [
        f"%{row.name}.at = mul i64 %first, {_step(row, w)}",
        f"%{row.name}.first = getelementptr i8, ptr %{row.name}.array, i64 %{row.name}.at",
        f"%{row.name}.step.short = trunc i64 {_step(row, w)} to i32",
        f"%{row.name}.rows = getelementptr i8, ptr %stage, i64 {row.offset}",
        f"%{row.name}.to = mul i32 %lane, {row.stride * w.bytes}",
        f"%{row.name}.to.long = zext i32 %{row.name}.to to i64",
        f"%{row.name} = getelementptr i8, ptr %{row.name}.rows, i64 %{row.name}.to.long",
    ]


def _move(row: ArrayRow, w: Width, inwards: bool) -> list[str]:
    """All rows of the warp between the array and shared memory; number k 32 + lane of them by this thread, k = 0, 1, ..."""
    lines, n = [], row.name
    for start in range(0, row.arg.size, AT_ONCE):
        loads, stores = [], []
        for k in range(start, min(start + AT_ONCE, row.arg.size)):
            loads += _cell(row, w, k)
            here, there = (f"%{n}.far{k}", f"%{n}.near{k}") if inwards else (f"%{n}.near{k}", f"%{n}.far{k}")
            loads.append(f"%{n}.value{k} = load {w.fp}, ptr {here}, align {w.bytes}")
            stores.append(f"store {w.fp} %{n}.value{k}, ptr {there}, align {w.bytes}")
        lines += [*loads, *stores]
    return lines


def _cell(row: ArrayRow, w: Width, k: int) -> list[str]:
    """%<name>.far<k> in the array, %<name>.near<k> in shared memory."""
    n = row.name
    return [
        f"%{n}.e{k} = add i32 %lane, {WARP * k}",
        f"%{n}.r{k} = udiv i32 %{n}.e{k}, {row.arg.size}",
        f"%{n}.c{k} = urem i32 %{n}.e{k}, {row.arg.size}",
        f"%{n}.idle{k} = icmp sgt i32 %{n}.r{k}, %most",
        f"%{n}.row{k} = select i1 %{n}.idle{k}, i32 %most, i32 %{n}.r{k}",
        f"%{n}.down{k} = mul i32 %{n}.row{k}, %{n}.step.short",
        f"%{n}.across{k} = mul i32 %{n}.c{k}, {w.bytes}",
        f"%{n}.way{k} = add i32 %{n}.down{k}, %{n}.across{k}",
        f"%{n}.long{k} = zext i32 %{n}.way{k} to i64",
        f"%{n}.far{k} = getelementptr i8, ptr %{n}.first, i64 %{n}.long{k}",
        f"%{n}.jump{k} = mul i32 %{n}.r{k}, {row.stride * w.bytes}",
        f"%{n}.slot{k} = add i32 %{n}.jump{k}, %{n}.across{k}",
        f"%{n}.slot.long{k} = zext i32 %{n}.slot{k} to i64",
        f"%{n}.near{k} = getelementptr i8, ptr %{n}.rows, i64 %{n}.slot.long{k}",
    ]


class _Angles(Emitter):
    """The angles of a tape. Where one is beyond the reach of the quick way, those that are get smaller by whole turns, aside of
    the straight road; no other line of the kernel asks."""

    def body(self) -> list[str]:
        """The lines; `names` has the angles then."""
        super().body()
        w = self.width
        angles, beyond = [self.value(store.node) for store in self.segment.stores], "false"
        for x in angles:
            one, both = self.fresh(), self.fresh()
            self.lines.append(f"{one} = call i1 @psiphi.beyond.{w.suffix}({w.type} {x})")
            self.lines.append(f"{both} = or i1 {beyond}, {one}")
            beyond = both
        if not angles:
            return self.lines
        less = [self.fresh() for _ in angles]
        self.lines += ["br label %angles", "angles:", f"br i1 {beyond}, label %far, label %near", "far:"]
        self.lines += [f"{y} = call {w.type} @psiphi.less.{w.suffix}({w.type} {x})" for x, y in zip(angles, less, strict=True)]
        self.lines += ["br label %near", "near:"]
        for store, x, y in zip(self.segment.stores, angles, less, strict=True):
            self.names[store.node] = self.fresh()
            self.lines.append(f"{self.names[store.node]} = phi {w.type} [ {x}, %angles ], [ {y}, %far ]")
        return self.lines

    def _store(self, store: Store) -> None:
        self.value(store.node)


def _live(code: Straight) -> list[int]:
    return code.tape.live(node for *_, node in code.stores)


def _segments(code: Straight) -> tuple[Segment, Segment, list[int]]:
    """The tape in two runs of nodes: its angles (a store each), and the rest, in which each is a leaf of its own, listed.
    Leaves stand in the rows of the inputs. Of several blocks that became one tape angles follow from other angles: none is
    known before, and all is one run."""
    tape, live, own = code.tape, _live(code), Tape()
    place: Places = {i: (f"in{int(a)}", b) for i in live for op, a, b in [tape.nodes[i]] if op is Op.LEAF}
    if isinstance(code, JoinedTape):
        stores = [Store(f"out{number}", index, node) for number, index, node in code.stores]
        nodes = [i for i in live if tape.nodes[i][0] not in (Op.LEAF, Op.CONST)]
        return Segment("angles", tape, [], [], place), Segment("tape", tape, nodes, stores, place), []
    first, _ = angles_first(tape, live, place, "", 0)
    angles = {store.node: own.node(Op.LEAF, "angle", n) for n, store in enumerate(first.stores)}
    here: dict[int, int] = {}
    for i in live:
        op, a, b = tape.nodes[i]
        if op in (Op.SIN, Op.COS):
            here[i] = own.node(op, angles[a])
        elif op in (Op.LEAF, Op.CONST):
            here[i] = own.node(op, a, b)
        else:
            here[i] = own.node(op, here[a], here[b] if op in BINARY else None)
    stores = [Store(f"out{number}", index, here[node]) for number, index, node in code.stores]
    given = {here[i]: at for i, at in place.items()}
    nodes = [i for i in own.live(store.node for store in stores) if own.nodes[i][0] not in (Op.LEAF, Op.CONST)]
    return first, Segment("tape", own, nodes, stores, given), list(angles.values())
