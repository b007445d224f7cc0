"""Rows of arrays (n, size) to the 32 threads of a warp through shared memory.

All threads of a warp copy all 32 rows to shared memory, 16 bytes at a time, so that neighbouring
threads read neighbouring addresses; then each thread reads its own row. Results are written the
other way. All loads are issued before the first number is needed, and results are written together.

In shared memory, rows have the layout of their array if their distance is an odd number of units,
where a unit is the one, two or four numbers that a thread moves at a time: the 32 threads then
access 32 different banks. Otherwise rows are padded by one number and moved number by number.
Threads beyond n compute the last state again and write the same numbers again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from psiphi.backends.llvm.llvm_emitter import Width
from psiphi.compiler.sweeps.sweep_program import Argument

WARP = 32  # threads of a warp
MAX_WARPS = 2  # per block; small blocks use all multiprocessors also at the end of a launch
MAX_BLOCKS = 16  # per multiprocessor, on every GPU
SCHEDULERS = 4  # of a multiprocessor
REGISTER_FILE = 512  # registers of a scheduler, for each of 32 threads
EXTRA_REGISTERS = 16  # of a thread for addresses and loads in flight
MIN_REGISTERS = 80  # of a thread; more than six warps per scheduler hide no more latency
VECTOR_BYTES = 16  # that a thread moves at a time
LINE_BYTES = 128  # of a cache line
SHARED_BYTES = 48 * 1024  # that a block may use by default
STAGE_BYTES = 24 * 1024  # of a warp; the rest is left to the L1 cache, which holds spilled numbers
LOADS_IN_FLIGHT = 16  # loads issued before the first store


@dataclass(frozen=True)
class Block:
    """A thread block: `warps` warps, of which `team_size` compute the same 32 states."""

    warps: int
    stage_bytes: int  # shared memory per 32 states
    team_size: int = 1
    min_blocks: int = 1  # blocks per multiprocessor; limits the registers of a thread

    @property
    def groups(self) -> int:
        """Groups of 32 states."""
        return self.warps // self.team_size

    def with_registers(self, words: int) -> Block:
        """The block with as many blocks per multiprocessor as `words` registers a thread permit.

        Without this limit the assembler uses more registers than it needs, and fewer threads are
        left to hide latency.
        """
        registers = min(
            max(MIN_REGISTERS, -(-(words + EXTRA_REGISTERS) // 8) * 8), REGISTER_FILE // 2
        )
        return replace(
            self, min_blocks=min(MAX_BLOCKS, REGISTER_FILE // registers * SCHEDULERS // self.warps)
        )

    @property
    def states(self) -> int:
        return WARP * self.groups

    @property
    def header(self) -> str:
        """How the kernel is launched: the first line of its text, read by `CudaGrid.of`."""
        return f"{WARP * self.warps} threads a block, which do {self.states} states"


@dataclass(frozen=True)
class CudaGrid:
    """How a kernel is launched: threads and states per block."""

    threads: int
    states: int

    @staticmethod
    def of(text: str) -> CudaGrid:
        """From the first line of the kernel's text."""
        threads, states = re.findall(r"\d+", text[: text.index("\n")])
        return CudaGrid(int(threads), int(states))


@dataclass(frozen=True)
class ArrayRow:
    """One array of the kernel; `offset` is the place of its rows in shared memory, or None.

    Results that are too wide for shared memory are `is_local`: a thread keeps its row in local
    memory until the end.
    """

    arg: Argument
    name: str
    offset: int | None
    is_local: bool = False

    def is_dense(self, w: Width) -> bool:
        """Whether rows are an odd number of units long, so that they need no padding."""
        return any(
            self.arg.size % (2 * unit) == unit and unit * w.bytes <= VECTOR_BYTES
            for unit in (1, 2, 4)
        )

    def stride(self, w: Width) -> int:
        """Numbers from row to row in shared memory."""
        return self.arg.size + (not self.is_dense(w))


@dataclass(frozen=True)
class SharedRows:
    """Which arrays go through shared memory, and where they are in it."""

    inputs: tuple[ArrayRow, ...]
    outputs: tuple[ArrayRow, ...]
    stage_bytes: int  # per warp; they begin with the square through which local rows are written

    @property
    def block(self) -> Block:
        """A block of as many warps as fit into shared memory."""
        stage = self.stage_bytes
        return Block(max(1, min(MAX_WARPS, SHARED_BYTES // stage)) if stage else MAX_WARPS, stage)

    @staticmethod
    def of(
        inputs: Iterable[Argument],
        outputs: Iterable[Argument],
        width: Width,
        capacity: int = STAGE_BYTES,
        team: bool = False,
    ) -> SharedRows:
        """Put rows into shared memory while they fit into `capacity` bytes.

        Results come first, since a thread writes them one by one. A team does not stage its inputs,
        so that the warp of one limb need not wait for the others.
        """
        named = [(arg, f"out{i}") for i, arg in enumerate(outputs)]
        named += [(arg, f"in{i}") for i, arg in enumerate(inputs)]
        square, previous = WARP * (WARP + 1) * width.bytes, []
        while True:  # repeated once if a result is too wide, since its square needs space as well
            rows, stage, wide_names = {}, square * bool(previous), []
            for arg, name in named:
                size, is_output = WARP * (arg.size | 1) * width.bytes, name.startswith("out")
                staged = arg.size > 0 and stage + size <= capacity and (is_output or not team)
                if is_output and not team and not staged and arg.size >= WARP:
                    wide_names.append(name)
                rows[name] = ArrayRow(arg, name, stage if staged else None, name in wide_names)
                stage += size if staged else 0
            if bool(wide_names) == bool(previous):
                ins, outs = (
                    tuple(row for row in rows.values() if row.name.startswith(prefix))
                    for prefix in ("in", "out")
                )
                return SharedRows(ins, outs, stage)
            previous = wide_names

    @property
    def local_rows(self) -> list[ArrayRow]:
        return [row for row in self.outputs if row.is_local]


def state_indices() -> list[str]:
    """The first state of this warp, how many states follow it, and this thread's state."""
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


def _state_stride(row: ArrayRow, w: Width) -> str:
    """Bytes from state to state: an argument of the kernel for inputs, the row for results."""
    return f"%{row.name}.step" if row.name.startswith("in") else str(row.arg.size * w.bytes)


def row_pointer(row: ArrayRow, w: Width) -> list[str]:
    """%<name>: this thread's row, in the array, in shared memory or in local memory."""
    n = row.name
    if row.is_local:
        return [f"%{n} = alloca [{row.arg.size * w.bytes} x i8], align {w.bytes}"]
    if row.offset is None:
        return _offset_pointer(f"{n}", f"{n}.array", "%state", _state_stride(row, w))
    return [
        f"%{n}.rows = getelementptr i8, ptr %stage, i64 {row.offset}",
        f"%{n}.lane = zext i32 %lane to i64",
        *_offset_pointer(f"{n}", f"{n}.rows", f"%{n}.lane", str(row.stride(w) * w.bytes)),
    ]


def _offset_pointer(name: str, base: str, index: str, stride: str) -> list[str]:
    """%<name> = base + index stride."""
    return [
        f"%{name}.at = mul i64 {index}, {stride}",
        f"%{name} = getelementptr i8, ptr %{base}, i64 %{name}.at",
    ]


def copy_rows(
    rows: list[ArrayRow],
    w: Width,
    is_input: bool,
    first: int = 0,
    step: int = 1,
    prefetches: Sequence[str] = (),
) -> list[str]:
    """Copy the rows of 32 states between their arrays and shared memory.

    Warp `first` of `step` warps does its share. If the 32 rows are contiguous, the warp moves 32
    numbers or vectors at a time, after the lines `prefetches`; otherwise each thread moves its own
    row.
    """
    mark = f"{'in' if is_input else 'out'}.{first}"
    lines, contiguous = [], "%full"
    for row in rows:
        name, conditions = f"%{row.name}.whole.{first}", []
        if is_input:
            conditions.append([f"icmp eq i64 {_state_stride(row, w)}, {row.arg.size * w.bytes}"])
        if row.is_dense(w):
            address = [
                f"ptrtoint ptr %{row.name}.array to i64",
                f"and i64 {name}.0, {VECTOR_BYTES - 1}",
                f"icmp eq i64 {name}.1, 0",
            ]
            conditions.append(address)
        for i, condition in enumerate(conditions):
            lines += [f"{name}.{k} = {part}" for k, part in enumerate(condition[:-1])]
            lines += [
                f"{name}.yes{i} = {condition[-1]}",
                f"{name}.all{i} = and i1 {contiguous}, {name}.yes{i}",
            ]
            contiguous = f"{name}.all{i}"
    run_moves, row_moves = [], []
    for row in rows:
        thread_row, line = f"{row.name}.far.{first}", f"{row.name}.line.{first}"
        begin = _offset_pointer(line, f"{row.name}.array", "%first", str(row.arg.size * w.bytes))
        unit, move = (
            (VECTOR_BYTES // w.bytes, _vector_move) if row.is_dense(w) else (1, _number_move)
        )
        run_moves.append(
            (begin, [move(row, w, k, line) for k in range(first, -(-row.arg.size // unit), step)])
        )
        begin = _offset_pointer(thread_row, f"{row.name}.array", "%state", _state_stride(row, w))
        row_moves.append(
            (
                begin,
                [_thread_row_move(row, w, k, thread_row) for k in range(first, row.arg.size, step)],
            )
        )
    return [
        *lines,
        f"br i1 {contiguous}, label %run.{mark}, label %own.{mark}",
        f"run.{mark}:",
        *prefetches,
        *_load_and_store(run_moves, is_input),
        f"br label %moved.{mark}",
        f"own.{mark}:",
        *_load_and_store(row_moves, is_input),
        f"br label %moved.{mark}",
        f"moved.{mark}:",
    ]


def prefetch_rows(
    rows: Sequence[ArrayRow], w: Width, warps: str, prefetch: Callable[[str], str]
) -> list[str]:
    """Prefetch the rows of the states that come %<warps> warps later."""
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
        last = (WARP * size - 1) // LINE_BYTES
        lines += _offset_pointer(f"{name}.run", f"{row.name}.array", "%fetch.first", str(size))
        for k in range(0, last + 1, WARP):
            line = f"{name}{k}"
            lines += [
                f"%{line}.own = add i32 %lane, {k}",
                f"%{line}.over = icmp sgt i32 %{line}.own, {last}",
                f"%{line}.in = select i1 %{line}.over, i32 {last}, i32 %{line}.own",
                f"%{line}.long = zext i32 %{line}.in to i64",
                *_offset_pointer(line, f"{name}.run", f"%{line}.long", str(LINE_BYTES)),
                prefetch(f"%{line}"),
            ]
    return [*lines, "br label %fetched", "fetched:"]


@dataclass(frozen=True)
class CellMove:
    """What one thread moves at a time: its type and its addresses, which `lines` compute."""

    lines: list[str]
    array_address: str
    shared_address: str
    type: str
    align: int


def _cell_move(
    row: ArrayRow, name: str, base: str, number: str, cell: str, w: Width, vector_type: str = ""
) -> CellMove:
    """From `number` of the rows at %<base> to `cell` in shared memory (both i32, in numbers)."""
    lines = []
    for what, index, start in (("far", number, base), ("near", cell, f"{row.name}.rows")):
        lines += [
            f"{name}.{what}.way = mul i32 {index}, {w.bytes}",
            f"{name}.{what}.long = zext i32 {name}.{what}.way to i64",
            f"{name}.{what} = getelementptr i8, ptr %{start}, i64 {name}.{what}.long",
        ]
    return CellMove(
        lines,
        f"{name}.far",
        f"{name}.near",
        vector_type or w.fp,
        VECTOR_BYTES if vector_type else w.bytes,
    )


def _vector_move(row: ArrayRow, w: Width, k: int, line: str) -> CellMove:
    """Vector 32 k + lane of all rows; threads beyond the last one move that again."""
    name, numbers = f"%{row.name}.v{k}", VECTOR_BYTES // w.bytes
    last = WARP * row.arg.size // numbers - 1
    index = [
        f"{name}.own = add i32 %lane, {WARP * k}",
        f"{name}.over = icmp sgt i32 {name}.own, {last}",
        f"{name}.in = select i1 {name}.over, i32 {last}, i32 {name}.own",
        f"{name}.cell = mul i32 {name}.in, {numbers}",
    ]
    at = _cell_move(row, name, line, f"{name}.cell", f"{name}.cell", w, f"<{numbers} x {w.fp}>")
    return replace(at, lines=[*index, *at.lines])


def _number_move(row: ArrayRow, w: Width, k: int, line: str) -> CellMove:
    """Number 32 k + lane of all rows, which are padded by one number in shared memory."""
    name = f"%{row.name}.e{k}"
    index = [
        f"{name}.own = add i32 %lane, {WARP * k}",
        f"{name}.row = udiv i32 {name}.own, {row.arg.size}",
        f"{name}.cell = add i32 {name}.own, {name}.row",
    ]
    at = _cell_move(row, name, line, f"{name}.own", f"{name}.cell", w)
    return replace(at, lines=[*index, *at.lines])


def _thread_row_move(row: ArrayRow, w: Width, k: int, base: str) -> CellMove:
    """Number k of this thread's row."""
    n = row.name
    lines = [f"%{n}.own{k} = getelementptr i8, ptr %{base}, i64 {k * w.bytes}"]
    lines += [f"%{n}.cell{k} = getelementptr i8, ptr %{n}, i64 {k * w.bytes}"]
    return CellMove(lines, f"%{n}.own{k}", f"%{n}.cell{k}", w.fp, w.bytes)


def _load_and_store(rows: list[tuple[list[str], list[CellMove]]], is_input: bool) -> list[str]:
    """Load and store, in either direction, with LOADS_IN_FLIGHT loads before their stores."""
    lines = [line for begin, _ in rows for line in begin]
    moves = [move for _, row in rows for move in row]
    for start in range(0, len(moves), LOADS_IN_FLIGHT):
        stores = []
        for move in moves[start : start + LOADS_IN_FLIGHT]:
            source, target = (
                (move.array_address, move.shared_address)
                if is_input
                else (move.shared_address, move.array_address)
            )
            lines += [
                *move.lines,
                f"{move.array_address}.value = load {move.type}, ptr {source}, align {move.align}",
            ]
            stores.append(
                f"store {move.type} {move.array_address}.value, ptr {target}, align {move.align}"
            )
        lines += stores
    return lines


def store_rows(row: ArrayRow, w: Width, sync: str) -> list[str]:
    """Write the local rows of 32 states to their array, in squares of 32 numbers of each state.

    Each thread puts its numbers into shared memory as a row; then the warp writes row by row. The
    last square may overlap the one before.
    """
    n, size = row.name, row.arg.size
    states, stores, copies = [], [], []
    for j in range(WARP):
        stores += [
            f"%{n}.mine{j} = getelementptr i8, ptr %{n}.own, i64 {j * w.bytes}",
            f"%{n}.put{j} = load {w.fp}, ptr %{n}.mine{j}, align {w.bytes}",
            f"%{n}.to{j} = getelementptr i8, ptr %{n}.row, i64 {j * w.bytes}",
            f"store {w.fp} %{n}.put{j}, ptr %{n}.to{j}, align {w.bytes}",
        ]
        states += [
            f"%{n}.idle{j} = icmp slt i32 %most, {j}",
            f"%{n}.state{j} = select i1 %{n}.idle{j}, i32 %most, i32 {j}",
            f"%{n}.down{j} = mul i32 %{n}.state{j}, {size * w.bytes}",
        ]
        copies += [
            f"%{n}.from{j} = getelementptr i8, ptr %{n}.column, i64 {j * (WARP + 1) * w.bytes}",
            f"%{n}.got{j} = load {w.fp}, ptr %{n}.from{j}, align {w.bytes}",
            f"%{n}.way{j} = zext i32 %{n}.down{j} to i64",
            f"%{n}.cell{j} = getelementptr i8, ptr %{n}.far, i64 %{n}.way{j}",
            f"store {w.fp} %{n}.got{j}, ptr %{n}.cell{j}, align {w.bytes}",
        ]
    return [
        *_offset_pointer(f"{n}.first", f"{n}.array", "%first", str(size * w.bytes)),
        f"%{n}.lane = zext i32 %lane to i64",
        *_offset_pointer(f"{n}.column", "stage", f"%{n}.lane", str(w.bytes)),
        *_offset_pointer(f"{n}.row", "stage", f"%{n}.lane", str((WARP + 1) * w.bytes)),
        *states,
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
        *stores,
        sync,
        *copies,
        sync,
        f"%{n}.after = add i64 %{n}.next, {WARP}",
        f"%{n}.more = icmp slt i64 %{n}.after, {size}",
        f"br i1 %{n}.more, label %{n}.square, label %{n}.done",
        f"{n}.done:",
    ]
