"""Rows of arrays on a graphics card, (n, size): how the 32 threads of a warp find theirs.

Rows go through memory that the warp shares, so that neighbours read neighbours: all threads bring all rows in, 16 bytes at a
time, then each takes its own; results the other way. All loads are on their way before the first number is needed, and results
leave together. Rows stand there as in their array where this is an odd number of units apart, of one, two or four numbers that
a thread takes at once: 32 threads then find 32 different banks. Others are a number farther apart, and move one by one. Threads
beyond n do the last state once more, and write the same numbers once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.compiler.sweeps.sweep_program import Argument

WARP = 32  # threads that run in step
WARPS = 2  # of a block, at most: small ones fill the last corner of a card
BLOCKS = 16  # that every card's multiprocessor has room for
SCHEDULERS = 4  # of a multiprocessor
FILE = 512  # registers of a scheduler, for each of 32 threads
AHEAD = 16  # registers of a thread beside the numbers that it holds: addresses, and numbers on their way
FEWEST = 80  # registers that a thread may have: beyond six warps a scheduler, more of them hide no more waiting
VECTOR = 16  # bytes that a thread moves at once,
LINE = 128  # and that memory does
SHARED = 48 * 1024  # bytes a block may share without being asked for
STAGE = (
    24 * 1024
)  # of them a warp: what is shared is missing in the cache, where parked numbers stand
AT_ONCE = 16  # loads under way before the first is stored


@dataclass(frozen=True)
class Block:
    """Warps that run together: `roles` of them do the same 32 states."""

    warps: int
    stage: int  # bytes that those share
    roles: int = 1
    least: int = 1  # blocks that a multiprocessor must have room for: how many registers a thread may have follows

    @property
    def groups(self) -> int:
        """Of 32 states."""
        return self.warps // self.roles

    def holding(self, words: int) -> Block:
        """The same, with as many blocks at a time as have room for that many words a thread: an assembler that is not told
        takes more registers than it needs, and fewer threads hide each other's waiting."""
        registers = min(max(FEWEST, -(-(words + AHEAD) // 8) * 8), FILE // 2)
        return replace(self, least=min(BLOCKS, FILE // registers * SCHEDULERS // self.warps))

    @property
    def states(self) -> int:
        return WARP * self.groups

    @property
    def text(self) -> str:
        """How it is launched, in a line that stands first in the text of a kernel."""
        return f"{WARP * self.warps} threads a block, which do {self.states} states"


@dataclass(frozen=True)
class CudaGrid:
    """How a kernel is launched."""

    threads: int
    states: int

    @staticmethod
    def of(text: str) -> CudaGrid:
        """As the kernel's text says."""
        threads, states = re.findall(r"\d+", text[: text.index("\n")])
        return CudaGrid(int(threads), int(states))


@dataclass(frozen=True)
class ArrayRow:
    """One array of the kernel; `offset` is where its rows stand in the shared memory, None where they do not. Results that are
    `kept` are too wide for it: a thread keeps its row in memory of its own till the end."""

    arg: Argument
    name: str
    offset: int | None
    kept: bool = False

    def dense(self, w: Width) -> bool:
        """Whether rows stand in shared memory as in their array: an odd number of units, which a thread takes at once."""
        return any(
            self.arg.size % (2 * unit) == unit and unit * w.bytes <= VECTOR for unit in (1, 2, 4)
        )

    def stride(self, w: Width) -> int:
        """Numbers from row to row in shared memory."""
        return self.arg.size + (not self.dense(w))


@dataclass(frozen=True)
class SharedRows:
    """Which arrays are staged, and where."""

    inputs: tuple[ArrayRow, ...]
    outputs: tuple[ArrayRow, ...]
    stage: int  # bytes a warp; the first of them are the square through which kept rows go

    @property
    def block(self) -> Block:
        """As many warps as share its memory."""
        return Block(max(1, min(WARPS, SHARED // self.stage)) if self.stage else WARPS, self.stage)

    @staticmethod
    def of(
        inputs: Iterable[Argument],
        outputs: Iterable[Argument],
        width: Width,
        room: int = STAGE,
        team: bool = False,
    ) -> SharedRows:
        """Rows are staged while they fit: results first, since a thread writes them one by one. A team reads its inputs
        where they are: who needs the numbers of one limb does not wait for all."""
        named = [(arg, f"out{i}") for i, arg in enumerate(outputs)]
        named += [(arg, f"in{i}") for i, arg in enumerate(inputs)]
        square, wide = WARP * (WARP + 1) * width.bytes, []
        while True:  # a second time where something is too wide: the square through which it goes takes its place, too
            rows, stage, found = {}, square * bool(wide), []
            for arg, name in named:
                size, out = WARP * (arg.size | 1) * width.bytes, name.startswith("out")
                staged = arg.size > 0 and stage + size <= room and (out or not team)
                if out and not team and not staged and arg.size >= WARP:
                    found.append(name)
                rows[name] = ArrayRow(arg, name, stage if staged else None, name in found)
                stage += size if staged else 0
            if bool(found) == bool(wide):
                ins, outs = (
                    tuple(row for row in rows.values() if row.name.startswith(kind))
                    for kind in ("in", "out")
                )
                return SharedRows(ins, outs, stage)
            wide = found

    @property
    def kept(self) -> list[ArrayRow]:
        return [row for row in self.outputs if row.kept]


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
        f"%full = icmp eq i32 %most, {WARP - 1}",
    ]


def _step(row: ArrayRow, w: Width) -> str:
    """Bytes from state to state: given for inputs, those of the row for results."""
    return f"%{row.name}.step" if row.name.startswith("in") else str(row.arg.size * w.bytes)


def own_row(row: ArrayRow, w: Width) -> list[str]:
    """%<name>: this thread's row, in the array, in shared memory or in its own."""
    n = row.name
    if row.kept:
        return [f"%{n} = alloca [{row.arg.size * w.bytes} x i8], align {w.bytes}"]
    if row.offset is None:
        return _moved_by(f"{n}", f"{n}.array", "%state", _step(row, w))
    return [
        f"%{n}.rows = getelementptr i8, ptr %stage, i64 {row.offset}",
        f"%{n}.lane = zext i32 %lane to i64",
        *_moved_by(f"{n}", f"{n}.rows", f"%{n}.lane", str(row.stride(w) * w.bytes)),
    ]


def _moved_by(name: str, base: str, times: str, step: str) -> list[str]:
    """%<name> = base + times step."""
    return [
        f"%{name}.at = mul i64 {times}, {step}",
        f"%{name} = getelementptr i8, ptr %{base}, i64 %{name}.at",
    ]


def moved(
    rows: list[ArrayRow],
    w: Width,
    inwards: bool,
    first: int = 0,
    step: int = 1,
    ahead: Sequence[str] = (),
) -> list[str]:
    """All rows of 32 states between their arrays and shared memory; of several warps each does its share. 32 rows that follow
    each other are one run, of which the warp takes 32 numbers or vectors at a time; others each thread moves by itself. Where
    rows are runs, the lines `ahead` come first."""
    mark = f"{'in' if inwards else 'out'}.{first}"
    lines, whole = [], "%full"
    for row in rows:
        both, asked = f"%{row.name}.whole.{first}", []
        if inwards:
            asked.append([f"icmp eq i64 {_step(row, w)}, {row.arg.size * w.bytes}"])
        if row.dense(w):
            address = [
                f"ptrtoint ptr %{row.name}.array to i64",
                f"and i64 {both}.0, {VECTOR - 1}",
                f"icmp eq i64 {both}.1, 0",
            ]
            asked.append(address)
        for i, words in enumerate(asked):
            lines += [f"{both}.{k} = {word}" for k, word in enumerate(words[:-1])]
            lines += [
                f"{both}.yes{i} = {words[-1]}",
                f"{both}.all{i} = and i1 {whole}, {both}.yes{i}",
            ]
            whole = f"{both}.all{i}"
    run, own = [], []
    for row in rows:
        mine, line = f"{row.name}.far.{first}", f"{row.name}.line.{first}"
        begin = _moved_by(line, f"{row.name}.array", "%first", str(row.arg.size * w.bytes))
        many, taken = (VECTOR // w.bytes, _in_vectors) if row.dense(w) else (1, _in_run)
        run.append(
            (begin, [taken(row, w, k, line) for k in range(first, -(-row.arg.size // many), step)])
        )
        begin = _moved_by(mine, f"{row.name}.array", "%state", _step(row, w))
        own.append((begin, [_in_row(row, w, k, mine) for k in range(first, row.arg.size, step)]))
    return [
        *lines,
        f"br i1 {whole}, label %run.{mark}, label %own.{mark}",
        f"run.{mark}:",
        *ahead,
        *_copied(run, inwards),
        f"br label %moved.{mark}",
        f"own.{mark}:",
        *_copied(own, inwards),
        f"br label %moved.{mark}",
        f"moved.{mark}:",
    ]


def fetched(
    rows: Sequence[ArrayRow], w: Width, warps: str, fetch: Callable[[str], str]
) -> list[str]:
    """The runs of the states that many warps (%<warps>) later, asked for now: they are near when their turn comes."""
    lines = [
        f"%fetch.way = mul i64 %{warps}, {WARP}",
        "%fetch.first = add i64 %first, %fetch.way",
        f"%fetch.end = add i64 %fetch.first, {WARP}",
        "%fetch.there = icmp sle i64 %fetch.end, %n",
        "br i1 %fetch.there, label %fetch, label %fetched",
        "fetch:",
    ]
    for row in rows:
        name, size = f"{row.name}.fetch", row.arg.size * w.bytes
        last = (WARP * size - 1) // LINE
        lines += _moved_by(f"{name}.run", f"{row.name}.array", "%fetch.first", str(size))
        for k in range(0, last + 1, WARP):
            line = f"{name}{k}"
            lines += [
                f"%{line}.own = add i32 %lane, {k}",
                f"%{line}.over = icmp sgt i32 %{line}.own, {last}",
                f"%{line}.in = select i1 %{line}.over, i32 {last}, i32 %{line}.own",
                f"%{line}.long = zext i32 %{line}.in to i64",
                *_moved_by(line, f"{name}.run", f"%{line}.long", str(LINE)),
                fetch(f"%{line}"),
            ]
    return [*lines, "br label %fetched", "fetched:"]


@dataclass(frozen=True)
class CellMove:
    """What one thread moves at once: after these lines, the addresses in the array and in shared memory, and its type."""

    lines: list[str]
    far: str
    near: str
    kind: str
    align: int


def _at(
    row: ArrayRow, name: str, base: str, number: str, cell: str, w: Width, kind: str = ""
) -> CellMove:
    """From `number` of the run at %<base> to `cell` of the rows in shared memory (i32, of numbers)."""
    lines = []
    for what, index, start in (("far", number, base), ("near", cell, f"{row.name}.rows")):
        lines += [
            f"{name}.{what}.way = mul i32 {index}, {w.bytes}",
            f"{name}.{what}.long = zext i32 {name}.{what}.way to i64",
            f"{name}.{what} = getelementptr i8, ptr %{start}, i64 {name}.{what}.long",
        ]
    return CellMove(lines, f"{name}.far", f"{name}.near", kind or w.fp, VECTOR if kind else w.bytes)


def _in_vectors(row: ArrayRow, w: Width, k: int, line: str) -> CellMove:
    """Vector 32 k + lane of all rows; threads beyond the last take it once more."""
    name, many = f"%{row.name}.v{k}", VECTOR // w.bytes
    last = WARP * row.arg.size // many - 1
    index = [
        f"{name}.own = add i32 %lane, {WARP * k}",
        f"{name}.over = icmp sgt i32 {name}.own, {last}",
        f"{name}.in = select i1 {name}.over, i32 {last}, i32 {name}.own",
        f"{name}.cell = mul i32 {name}.in, {many}",
    ]
    at = _at(row, name, line, f"{name}.cell", f"{name}.cell", w, f"<{many} x {w.fp}>")
    return replace(at, lines=[*index, *at.lines])


def _in_run(row: ArrayRow, w: Width, k: int, line: str) -> CellMove:
    """Number 32 k + lane of all rows, which stand a number farther apart in shared memory."""
    name = f"%{row.name}.e{k}"
    index = [
        f"{name}.own = add i32 %lane, {WARP * k}",
        f"{name}.row = udiv i32 {name}.own, {row.arg.size}",
        f"{name}.cell = add i32 {name}.own, {name}.row",
    ]
    at = _at(row, name, line, f"{name}.own", f"{name}.cell", w)
    return replace(at, lines=[*index, *at.lines])


def _in_row(row: ArrayRow, w: Width, k: int, mine: str) -> CellMove:
    """Number k of this thread's row."""
    n = row.name
    lines = [f"%{n}.own{k} = getelementptr i8, ptr %{mine}, i64 {k * w.bytes}"]
    lines += [f"%{n}.cell{k} = getelementptr i8, ptr %{n}, i64 {k * w.bytes}"]
    return CellMove(lines, f"%{n}.own{k}", f"%{n}.cell{k}", w.fp, w.bytes)


def _copied(rows: list[tuple[list[str], list[CellMove]]], inwards: bool) -> list[str]:
    """One way or the other; some loads are under way before the first is stored."""
    lines = [line for begin, _ in rows for line in begin]
    moves = [move for _, row in rows for move in row]
    for start in range(0, len(moves), AT_ONCE):
        stores = []
        for move in moves[start : start + AT_ONCE]:
            here, there = (move.far, move.near) if inwards else (move.near, move.far)
            lines += [
                *move.lines,
                f"{move.far}.value = load {move.kind}, ptr {here}, align {move.align}",
            ]
            stores.append(f"store {move.kind} {move.far}.value, ptr {there}, align {move.align}")
        lines += stores
    return lines


def brought_out(row: ArrayRow, w: Width, sync: str) -> list[str]:
    """The kept rows of 32 states into their array, a square of 32 numbers of each at a time: every thread puts its own into
    shared memory, as a row; then the warp writes row by row. The last square may repeat some of the one before."""
    n, size = row.name, row.arg.size
    first, put, written = [], [], []
    for j in range(WARP):
        put += [
            f"%{n}.mine{j} = getelementptr i8, ptr %{n}.own, i64 {j * w.bytes}",
            f"%{n}.put{j} = load {w.fp}, ptr %{n}.mine{j}, align {w.bytes}",
            f"%{n}.to{j} = getelementptr i8, ptr %{n}.row, i64 {j * w.bytes}",
            f"store {w.fp} %{n}.put{j}, ptr %{n}.to{j}, align {w.bytes}",
        ]
        first += [
            f"%{n}.idle{j} = icmp slt i32 %most, {j}",
            f"%{n}.state{j} = select i1 %{n}.idle{j}, i32 %most, i32 {j}",
            f"%{n}.down{j} = mul i32 %{n}.state{j}, {size * w.bytes}",
        ]
        written += [
            f"%{n}.from{j} = getelementptr i8, ptr %{n}.column, i64 {j * (WARP + 1) * w.bytes}",
            f"%{n}.got{j} = load {w.fp}, ptr %{n}.from{j}, align {w.bytes}",
            f"%{n}.way{j} = zext i32 %{n}.down{j} to i64",
            f"%{n}.cell{j} = getelementptr i8, ptr %{n}.far, i64 %{n}.way{j}",
            f"store {w.fp} %{n}.got{j}, ptr %{n}.cell{j}, align {w.bytes}",
        ]
    return [
        *_moved_by(f"{n}.first", f"{n}.array", "%first", str(size * w.bytes)),
        f"%{n}.lane = zext i32 %lane to i64",
        *_moved_by(f"{n}.column", "stage", f"%{n}.lane", str(w.bytes)),
        *_moved_by(f"{n}.row", "stage", f"%{n}.lane", str((WARP + 1) * w.bytes)),
        *first,
        f"br label %{n}.before",
        f"{n}.before:",
        f"br label %{n}.square",
        f"{n}.square:",
        f"%{n}.next = phi i64 [ 0, %{n}.before ], [ %{n}.after, %{n}.square ]",
        f"%{n}.over = icmp sgt i64 %{n}.next, {size - WARP}",
        f"%{n}.begin = select i1 %{n}.over, i64 {size - WARP}, i64 %{n}.next",
        f"%{n}.bytes = mul i64 %{n}.begin, {w.bytes}",
        f"%{n}.own = getelementptr i8, ptr %{n}, i64 %{n}.bytes",
        f"%{n}.across = add i64 %{n}.bytes, %{n}.column.at",
        f"%{n}.far = getelementptr i8, ptr %{n}.first, i64 %{n}.across",
        *put,
        sync,
        *written,
        sync,
        f"%{n}.after = add i64 %{n}.next, {WARP}",
        f"%{n}.more = icmp slt i64 %{n}.after, {size}",
        f"br i1 %{n}.more, label %{n}.square, label %{n}.done",
        f"{n}.done:",
    ]
