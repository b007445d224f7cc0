"""Rows of arrays on a graphics card, (n, size): how the 32 threads of a warp find theirs.

Narrow rows are read and written by the threads they belong to. Wide ones go through memory that the warp shares, so that
neighbours read neighbours: all threads bring all rows in, then each takes its own; results the other way. Rows stand there an
odd number of words apart: 32 threads then find 32 different banks. Threads beyond n do the last state once more, and write the
same numbers once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from psiphi.emitters.llvm import Width
from psiphi.sweeps.program import Argument

WARP = 32  # threads that run in step
WARPS = 4  # of a block, at most
NARROW = 8  # numbers a row, up to which a thread reads and writes its own
SHARED = 48 * 1024  # bytes a block may share without being asked for
STAGE = 24 * 1024  # of them a warp: what is shared is missing in the cache, where parked numbers stand
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

    @property
    def states(self) -> int:
        return WARP * self.groups

    @property
    def text(self) -> str:
        """How it is launched, in a line that stands first in the text of a kernel."""
        return f"{WARP * self.warps} threads a block, which do {self.states} states"


@dataclass(frozen=True)
class Grid:
    """How a kernel is launched."""

    threads: int
    states: int

    @staticmethod
    def of(text: str) -> Grid:
        """As the kernel's text says."""
        threads, states = re.findall(r"\d+", text[: text.index("\n")])
        return Grid(int(threads), int(states))


@dataclass(frozen=True)
class ArrayRow:
    """One array of the kernel; `offset` is where its rows stand in the shared memory, None where they do not. Results that are
    `kept` are too wide for it: a thread keeps its row in memory of its own till the end."""

    arg: Argument
    name: str
    offset: int | None
    kept: bool = False

    @property
    def stride(self) -> int:
        """Numbers from row to row in shared memory: odd."""
        return self.arg.size | 1


@dataclass(frozen=True)
class Staging:
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
        inputs: Iterable[Argument], outputs: Iterable[Argument], width: Width, room: int = STAGE, team: bool = False
    ) -> Staging:
        """Wide rows are staged while they fit: results first, since a thread writes them one by one. A team reads its inputs
        where they are: who needs the numbers of one limb does not wait for all."""
        named = [(arg, f"out{i}") for i, arg in enumerate(outputs)]
        named += [(arg, f"in{i}") for i, arg in enumerate(inputs)]
        square, wide = WARP * (WARP + 1) * width.bytes, []
        while True:  # a second time where something is too wide: the square through which it goes takes its place, too
            rows, stage, found = {}, square * bool(wide), []
            for arg, name in named:
                size, out = WARP * (arg.size | 1) * width.bytes, name.startswith("out")
                staged = arg.size > NARROW and stage + size <= room and (out or not team)
                if out and not team and not staged and arg.size >= WARP:
                    found.append(name)
                rows[name] = ArrayRow(arg, name, stage if staged else None, name in found)
                stage += size if staged else 0
            if bool(found) == bool(wide):
                ins, outs = (tuple(row for row in rows.values() if row.name.startswith(kind)) for kind in ("in", "out"))
                return Staging(ins, outs, stage)
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
        *_moved_by(f"{n}", f"{n}.rows", f"%{n}.lane", str(row.stride * w.bytes)),
    ]


def _moved_by(name: str, base: str, times: str, step: str) -> list[str]:
    """%<name> = base + times step."""
    return [f"%{name}.at = mul i64 {times}, {step}", f"%{name} = getelementptr i8, ptr %{base}, i64 %{name}.at"]


def moved(rows: list[ArrayRow], w: Width, inwards: bool, first: int = 0, step: int = 1) -> list[str]:
    """All rows of 32 states between their arrays and shared memory; of several warps each does its share. 32 rows that follow
    each other are one run of numbers, of which the warp takes 32 at a time; others each thread moves by itself."""
    mark = f"{'in' if inwards else 'out'}.{first}"
    lines, whole = [], "%full"
    for row in (row for row in rows if inwards):
        size, both = row.arg.size * w.bytes, f"%{row.name}.whole.{first}"
        lines += [f"{both}.row = icmp eq i64 {_step(row, w)}, {size}", f"{both} = and i1 {whole}, {both}.row"]
        whole = both
    run, own = [], []
    for row in rows:
        turns, mine, line = range(first, row.arg.size, step), f"{row.name}.far.{first}", f"{row.name}.line.{first}"
        run += _moved_by(f"{line}.first", f"{row.name}.array", "%first", str(row.arg.size * w.bytes))
        run += [f"%{line}.lane = zext i32 %lane to i64", *_moved_by(line, f"{line}.first", f"%{line}.lane", str(w.bytes))]
        run += _copied(f"{row.name}.r", turns, [_in_run(row, w, k, line) for k in turns], w, inwards)
        own += _moved_by(mine, f"{row.name}.array", "%state", _step(row, w))
        own += _copied(f"{row.name}.o", turns, [_in_row(row, w, k, mine) for k in turns], w, inwards)
    return [
        *lines,
        f"br i1 {whole}, label %run.{mark}, label %own.{mark}",
        f"run.{mark}:",
        *run,
        f"br label %moved.{mark}",
        f"own.{mark}:",
        *own,
        f"br label %moved.{mark}",
        f"moved.{mark}:",
    ]


Place = tuple[list[str], str, str]  # lines, after which these are a number's addresses in the array and in shared memory


def _in_run(row: ArrayRow, w: Width, k: int, line: str) -> Place:
    """Number 32 k + lane of all rows."""
    n, far, e = row.name, f"%{row.name}.run{k}", f"%{row.name}.e{k}"
    lines = [f"{far} = getelementptr i8, ptr %{line}, i64 {WARP * k * w.bytes}"]
    lines += [f"{e} = add i32 %lane, {WARP * k}"]
    if row.stride > row.arg.size:
        lines += [f"{e}.row = udiv i32 {e}, {row.arg.size}", f"{e}.cell = add i32 {e}, {e}.row"]
        e = f"{e}.cell"
    lines += [
        f"{e}.way = mul i32 {e}, {w.bytes}",
        f"{e}.long = zext i32 {e}.way to i64",
        f"{e}.near = getelementptr i8, ptr %{n}.rows, i64 {e}.long",
    ]
    return lines, far, f"{e}.near"


def _in_row(row: ArrayRow, w: Width, k: int, mine: str) -> Place:
    """Number k of this thread's row."""
    n = row.name
    at = [f"%{n}.own{k} = getelementptr i8, ptr %{mine}, i64 {k * w.bytes}"]
    at += [f"%{n}.cell{k} = getelementptr i8, ptr %{n}, i64 {k * w.bytes}"]
    return at, f"%{n}.own{k}", f"%{n}.cell{k}"


def _copied(name: str, turns: range, cells: list[Place], w: Width, inwards: bool) -> list[str]:
    """One way or the other; some loads are under way before the first is stored."""
    lines = []
    for start in range(0, len(turns), AT_ONCE):
        stores = []
        for k, (at, far, near) in zip(turns[start : start + AT_ONCE], cells[start : start + AT_ONCE], strict=True):
            here, there = (far, near) if inwards else (near, far)
            lines += [*at, f"%{name}.value{k} = load {w.fp}, ptr {here}, align {w.bytes}"]
            stores.append(f"store {w.fp} %{name}.value{k}, ptr {there}, align {w.bytes}")
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
