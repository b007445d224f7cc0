"""NumPy arrays to the frame of a block (`pack`: elements become lanes) and back (`unpack`).

Arrays may have any strides. If the numbers of each element are contiguous, which is the common
case, tiles of lanes x lanes numbers are transposed in registers; a function of its own moves the
numbers after the last whole tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from psiphi.backends.llvm.llvm_emitter import Width

ARGUMENTS = (
    "ptr %array, ptr %frame, i64 %rows, i64 %columns, i64 %outer, i64 %row, i64 %column, "
    "i64 %count, ptr %rest"
)
TAIL_ARGUMENTS = "ptr %t.f, i64 %outer"  # arguments of the function %rest, after the array
PIECE_BYTES = 16  # of a row are loaded at a time


Tile = Callable[[int], list[str]]  # number of cells -> lines that move the first cells of a tile
CONTIGUOUS_CELL = ["%at = add i64 %cell, 0"]


def cell_loop(
    verb: str,
    w: Width,
    full: list[str],
    part: list[str],
    tile: Tile,
    extra_parameters: str = "",
    cell_place: list[str] = CONTIGUOUS_CELL,
    streaming: str = "",
    stack: Iterable[str] = (),
    tail_arguments: str = TAIL_ARGUMENTS,
) -> str:
    """The function @<verb>.<suffix>: a loop over cells (a cell is one number of all elements).

    `full` moves all lanes of a cell, `part` the lane %lane of a cell, `tile` as many cells as there
    are lanes. %rest moves the cells after the last whole tile; its arguments are %t.array and
    `tail_arguments`.

    `extra_parameters` are appended to the function's parameters; `cell_place` computes %at, the
    place of %cell in the frame; `streaming` is text from the label %stream to %done, which runs for
    contiguous elements if %past is set; `stack` allocates the memory it needs.
    """
    newline = "\n  "
    fork = (
        f"br i1 %past, label %stream, label %tiles\n{streaming}" if streaming else "br label %tiles"
    )
    return f"""define internal void @{verb}.{w.suffix}({ARGUMENTS}{extra_parameters}) nounwind {{
entry:
  {newline.join([*stack, *lane_pointers(w)])}
  %whole = icmp eq i64 %count, {w.lanes}
  %cells = mul i64 %rows, %columns
  %dense = mul i64 %columns, {w.scalar_bytes}
  %one.row = icmp eq i64 %rows, 1
  %rows.join = icmp eq i64 %row, %dense
  %columns.join = icmp eq i64 %column, {w.scalar_bytes}
  %join = or i1 %one.row, %rows.join
  %flat = and i1 %join, %columns.join
  %easy = and i1 %flat, %whole
  br i1 {"%easy" if w.lanes > 1 else "false"}, label %fork, label %test
fork:
  {fork}
tiles:
  br label %tile
{_tile_loop(w, tile, tail_arguments)}
{_cell_by_cell(verb, w, full, part, cell_place)}
done:
  ret void
}}
"""


def _cell_by_cell(verb: str, w: Width, full: list[str], part: list[str], place: list[str]) -> str:
    """The loop over single cells, for arrays of any strides and blocks with idle lanes."""
    newline = "\n  "
    return f"""test:
  %cell = phi i64 [ 0, %entry ], [ %cell.next, %step ]
  %r = phi i64 [ 0, %entry ], [ %r.next, %step ]
  %c = phi i64 [ 0, %entry ], [ %c.next, %step ]
  %more = icmp slt i64 %cell, %cells
  br i1 %more, label %body, label %done
body:
  %down = mul i64 %r, %row
  %across = mul i64 %c, %column
  %inside = add i64 %down, %across
  {newline.join(place)}
  %slot = mul i64 %at, {w.bytes}
  %f = getelementptr i8, ptr %frame, i64 %slot
  br i1 %whole, label %all, label %some
all:
  {newline.join(full)}
  br label %step
some:
  %lane = phi i64 [ 0, %body ], [ %lane.next, %some ]
  {newline.join(part)}
  %lane.next = add i64 %lane, 1
  %again = icmp slt i64 %lane.next, {w.lanes if verb == "pack" else "%count"}
  br i1 %again, label %some, label %step
step:
  %cell.next = add i64 %cell, 1
  %c.up = add i64 %c, 1
  %wrap = icmp eq i64 %c.up, %columns
  %c.next = select i1 %wrap, i64 0, i64 %c.up
  %r.up = add i64 %r, 1
  %r.next = select i1 %wrap, i64 %r.up, i64 %r
  br label %test"""


def lane_pointers(w: Width, name: str = "l") -> list[str]:
    lines = []
    for lane in range(w.lanes):
        lines.append(f"%o{lane} = mul i64 %outer, {lane}")
        lines.append(f"%{name}{lane} = getelementptr i8, ptr %array, i64 %o{lane}")
    return lines


def pack(w: Width, sizes: Iterable[int]) -> str:
    """@pack.<suffix>, for arguments of these sizes."""
    full = []
    value = "poison"
    for lane in range(w.lanes):
        full.append(f"%a{lane} = getelementptr i8, ptr %l{lane}, i64 %inside")
        full.append(f"%x{lane} = load {w.fp}, ptr %a{lane}, align 1")
        if w.lanes > 1:
            full.append(f"%v{lane} = insertelement {w.type} {value}, {w.fp} %x{lane}, i32 {lane}")
            value = f"%v{lane}"
    full.append(f"store {w.type} {value if w.lanes > 1 else '%x0'}, ptr %f, align {w.bytes}")
    part = [
        "%last = sub i64 %count, 1",
        "%beyond = icmp sgt i64 %lane, %last",
        "%from = select i1 %beyond, i64 %last, i64 %lane",
        "%jump = mul i64 %from, %outer",
        "%to = add i64 %jump, %inside",
        "%p = getelementptr i8, ptr %array, i64 %to",
        f"%x = load {w.fp}, ptr %p, align 1",
        f"%fl = getelementptr {w.fp}, ptr %f, i64 %lane",
        f"store {w.fp} %x, ptr %fl",
    ]
    tile = partial(_pack_tile, w)
    return cell_loop("pack", w, full, part, tile) + tail_functions("pack", w, sizes, tile)


def unpack(w: Width, sizes: Iterable[int]) -> str:
    """@unpack.<suffix>, for arguments of these sizes."""
    tile = partial(_unpack_tile, w)
    return cell_loop("unpack", w, *cell_stores(w), tile) + tail_functions("unpack", w, sizes, tile)


def tail_functions(
    verb: str, w: Width, sizes: Iterable[int], tile: Tile, tail_arguments: str = TAIL_ARGUMENTS
) -> str:
    """@<verb><count>.<suffix>: functions that move the cells after the last whole tile."""
    text, n = "", "\n  "
    for count in sorted({size % w.lanes for size in sizes} - {0}):
        body = n.join([*lane_pointers(w, "ta"), *tile(count), "ret void"])
        head = f"define internal void @{verb}{count}.{w.suffix}(ptr %array, {tail_arguments})"
        text += f"{head} nounwind {{{n}{body}\n}}\n"
    return text


def tail_argument(verb: str, w: Width, size: int) -> str:
    """The argument %rest for an argument of `size` numbers."""
    return f"ptr @{verb}{size % w.lanes}.{w.suffix}" if size % w.lanes else "ptr null"


def cell_stores(w: Width) -> tuple[list[str], list[str]]:
    """Lines that store a cell of the frame to the arrays: all lanes, and one lane."""
    full = [f"%v = load {w.type}, ptr %f, align {w.bytes}"]
    for lane in range(w.lanes):
        full.append(f"%a{lane} = getelementptr i8, ptr %l{lane}, i64 %inside")
        value = "%v"
        if w.lanes > 1:
            full.append(f"%x{lane} = extractelement {w.type} %v, i32 {lane}")
            value = f"%x{lane}"
        full.append(f"store {w.fp} {value}, ptr %a{lane}, align 1")
    part = [
        "%jump = mul i64 %lane, %outer",
        "%to = add i64 %jump, %inside",
        "%p = getelementptr i8, ptr %array, i64 %to",
        f"%fl = getelementptr {w.fp}, ptr %f, i64 %lane",
        f"%x = load {w.fp}, ptr %fl",
        f"store {w.fp} %x, ptr %p, align 1",
    ]
    return full, part


def _tile_loop(w: Width, tile: Tile, tail_arguments: str) -> str:
    """The loop over tiles of `lanes` cells, for contiguous elements."""
    if w.lanes == 1:
        return "tile:\n  br label %done"
    newline = "\n  "
    place = [f"%ta{lane} = getelementptr i8, ptr %l{lane}, i64 %t.bytes" for lane in range(w.lanes)]
    return f"""tile:
  %t = phi i64 [ 0, %tiles ], [ %t.next, %tile.body ]
  %t.bytes = mul i64 %t, {w.scalar_bytes}
  %t.slot = mul i64 %t, {w.bytes}
  %t.f = getelementptr i8, ptr %frame, i64 %t.slot
  %t.next = add i64 %t, {w.lanes}
  %t.more = icmp sle i64 %t.next, %cells
  br i1 %t.more, label %tile.body, label %tile.rest
tile.body:
  {newline.join([*place, *tile(w.lanes)])}
  br label %tile
tile.rest:
  %t.some = icmp slt i64 %t, %cells
  br i1 %t.some, label %tile.last, label %done
tile.last:
  %t.array = getelementptr i8, ptr %array, i64 %t.bytes
  call void %rest(ptr %t.array, {tail_arguments})
  br label %done"""


def power_of_two_runs(count: int, longest: int) -> Iterator[tuple[int, int]]:
    """`count` cells in runs of powers of two, each as long as possible: (first, length)."""
    first = 0
    while first < count:
        length = min(longest, 1 << (count - first).bit_length() - 1)
        yield first, length
        first += length


def transpose(w: Width, rows: list[str], name: str = "%x") -> tuple[list[str], list[str]]:
    """Instructions that transpose square blocks, and the names of the results.

    A block has as many rows and columns as there are registers; log2 rounds of swaps transpose it.
    """
    lines: list[str] = []
    step = 1
    while step < len(rows):
        new = list(rows)
        low = [lane if not lane & step else w.lanes + (lane ^ step) for lane in range(w.lanes)]
        high = [lane | step if not lane & step else w.lanes + lane for lane in range(w.lanes)]
        for i in (i for i in range(len(rows)) if not i & step):
            j = i | step  # element (i, l | step) changes places with (j, l & ~step)
            for target, positions in ((i, low), (j, high)):
                new[target] = f"{name}{step}.{target}"
                lines.append(f"{new[target]} = {_shuffle(w, rows[i], rows[j], positions)}")
        rows, step = new, 2 * step
    return lines, rows


def _shuffle(w: Width, a: str, b: str, positions: Iterable[int], vector: str = "") -> str:
    """A shuffle of two registers; `positions` count through both."""
    type_, mask = vector or w.type, ", ".join(f"i32 {p}" for p in positions)
    return f"shufflevector {type_} {a}, {type_} {b}, <{mask.count(',') + 1} x i32> <{mask}>"


def _pack_tile(w: Width, count: int) -> list[str]:
    """Rows of arrays to lanes: lane k of each stored register is a number of row k.

    A run of n cells loads pieces of n numbers from each row and joins them into n registers;
    blocks of n x n numbers in them are then transposed.
    """
    lines = []
    for first, n in power_of_two_runs(count, max(1, min(w.lanes, PIECE_BYTES // w.scalar_bytes))):
        for row in range(w.lanes):
            lines.append(
                f"%tp{first}.{row} = getelementptr i8, ptr %ta{row}, i64 {first * w.scalar_bytes}"
            )
            lines.append(
                f"%tq{first}.{row} = load {_vector_type(w, n)}, ptr %tp{first}.{row}, "
                f"align {w.scalar_bytes}"
            )
        vectors = []
        for i in range(n):
            joins, vector = _concatenate(
                w, [f"%tq{first}.{row}" for row in range(i, w.lanes, n)], n, f"%tj{first}.{i}."
            )
            lines, vectors = lines + joins, [*vectors, vector]
        swaps, columns = transpose(w, vectors, f"%tx{first}.")
        lines += swaps
        for i, column in enumerate(columns):
            lines.append(
                f"%tf{first + i} = getelementptr i8, ptr %t.f, i64 {(first + i) * w.bytes}"
            )
            lines.append(f"store {w.type} {column}, ptr %tf{first + i}, align {w.bytes}")
    return lines


def _vector_type(w: Width, n: int) -> str:
    """The type of a vector of n numbers."""
    return f"<{n} x {w.fp}>" if n > 1 else w.fp


def _concatenate(w: Width, pieces: list[str], n: int, name: str) -> tuple[list[str], str]:
    """Instructions that concatenate pieces of n numbers, and the name of the result."""
    lines = []
    if n == 1:
        vector = "poison"
        for i, piece in enumerate(pieces):
            lines.append(f"{name}{i} = insertelement {w.type} {vector}, {w.fp} {piece}, i32 {i}")
            vector = f"{name}{i}"
        return lines, vector
    while len(pieces) > 1:
        pairs = zip(pieces[::2], pieces[1::2], strict=True)
        lines += [
            f"{name}{n}.{k} = {_shuffle(w, a, b, range(2 * n), _vector_type(w, n))}"
            for k, (a, b) in enumerate(pairs)
        ]
        pieces, n = [f"{name}{n}.{k}" for k in range(len(pieces) // 2)], 2 * n
    return lines, pieces[0]


def _unpack_tile(w: Width, count: int) -> list[str]:
    lines = []
    for i in range(count):
        lines.append(f"%tf{i} = getelementptr i8, ptr %t.f, i64 {i * w.bytes}")
        lines.append(f"%tr{i} = load {w.type}, ptr %tf{i}, align {w.bytes}")
    return [*lines, *store_rows(w, [f"%tr{i}" for i in range(count)])]


def store_rows(w: Width, cells: list[str]) -> list[str]:
    """Store the first cells of a tile to the array of each lane: the inverse of `_pack_tile`."""
    lines = []
    for first, n in power_of_two_runs(len(cells), w.lanes):
        swaps, rows = transpose(w, cells[first : first + n], f"%ts{first}.")
        lines += swaps
        for lane in range(w.lanes):
            piece, start = f"%tu{first}.{lane}", lane // n * n
            if n == w.lanes:
                piece = rows[lane]
            elif n == 1:
                lines.append(f"{piece} = extractelement {w.type} {rows[0]}, i32 {lane}")
            else:
                lines.append(
                    f"{piece} = {_shuffle(w, rows[lane % n], 'poison', range(start, start + n))}"
                )
            lines.append(
                f"%tw{first}.{lane} = getelementptr i8, ptr %ta{lane}, i64 {first * w.scalar_bytes}"
            )
            lines.append(
                f"store {_vector_type(w, n)} {piece}, ptr %tw{first}.{lane}, align {w.scalar_bytes}"
            )
    return lines
