"""Between NumPy's arrays and the frame: `pack` brings a block's elements side by side, `unpack` puts them back.

Elements may lie anywhere (any strides). Where each element's numbers are contiguous, which is the common case, tiles of
lanes x lanes numbers are transposed in registers; what is left behind the last whole tile has a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from psiphi.backends.llvm.llvm_emitter import Width

ARGUMENTS = "ptr %array, ptr %frame, i64 %rows, i64 %columns, i64 %outer, i64 %row, i64 %column, i64 %count, ptr %rest"
REST = "ptr %t.f, i64 %outer"  # what the function %rest is given besides an array
PIECE = 16  # bytes of a row that are loaded by themselves


Tile = Callable[[int], list[str]]  # the lines that move the first so many cells of a tile
SIDE_BY_SIDE = ["%at = add i64 %cell, 0"]


def grid(
    verb: str,
    w: Width,
    full: list[str],
    part: list[str],
    tile: Tile,
    more: str = "",
    place: list[str] = SIDE_BY_SIDE,
    other: str = "",
    room: Iterable[str] = (),
    given: str = REST,
) -> str:
    """A loop over cells; `full` moves all lanes of one, `part` lane %lane of one, `tile` as many cells as there are lanes; what
    is left behind the last whole tile is moved by %rest, which gets %t.array and what is `given`.

    `more` are further arguments; `place` makes %at, the place of %cell in the frame; `other` is text with a label %stream,
    where contiguous elements go instead if %past is set, and which ends at %done; `room` is memory it needs.
    """
    newline = "\n  "
    fork = f"br i1 %past, label %stream, label %tiles\n{other}" if other else "br label %tiles"
    return f"""define internal void @{verb}.{w.suffix}({ARGUMENTS}{more}) nounwind {{
entry:
  {newline.join([*room, *lane_pointers(w)])}
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
{_tiles(w, tile, given)}
{_cell_by_cell(verb, w, full, part, place)}
done:
  ret void
}}
"""


def _cell_by_cell(verb: str, w: Width, full: list[str], part: list[str], place: list[str]) -> str:
    """The loop over single cells, for elements that lie anywhere, or are fewer than there are lanes."""
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
    """@pack.<suffix>, for arguments of so many numbers."""
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
    return grid("pack", w, full, part, tile) + rests("pack", w, sizes, tile)


def unpack(w: Width, sizes: Iterable[int]) -> str:
    """@unpack.<suffix>, for arguments of so many numbers."""
    tile = partial(_unpack_tile, w)
    return grid("unpack", w, *cells(w), tile) + rests("unpack", w, sizes, tile)


def rests(verb: str, w: Width, sizes: Iterable[int], tile: Tile, given: str = REST) -> str:
    """@<verb><count>.<suffix>, the functions that move what so many numbers leave behind the last whole tile."""
    text, n = "", "\n  "
    for count in sorted({size % w.lanes for size in sizes} - {0}):
        body = n.join([*lane_pointers(w, "ta"), *tile(count), "ret void"])
        text += f"define internal void @{verb}{count}.{w.suffix}(ptr %array, {given}) nounwind {{{n}{body}\n}}\n"
    return text


def behind_tiles(verb: str, w: Width, size: int) -> str:
    """The argument %rest for so many numbers."""
    return f"ptr @{verb}{size % w.lanes}.{w.suffix}" if size % w.lanes else "ptr null"


def cells(w: Width) -> tuple[list[str], list[str]]:
    """What brings a cell of the frame to the arrays: all lanes of it, or one."""
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


def _tiles(w: Width, tile: Tile, given: str) -> str:
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
  call void %rest(ptr %t.array, {given})
  br label %done"""


def runs(count: int, most: int) -> Iterator[tuple[int, int]]:
    """So many cells in runs of powers of two, each as long as can be: (first, length)."""
    first = 0
    while first < count:
        length = min(most, 1 << (count - first).bit_length() - 1)
        yield first, length
        first += length


def transpose(w: Width, rows: list[str], name: str = "%x") -> tuple[list[str], list[str]]:
    """Instructions that transpose blocks of as many numbers each way as there are registers, and the names of the results:
    log2 rounds of swaps."""
    lines: list[str] = []
    step = 1
    while step < len(rows):
        new = list(rows)
        low = [lane if not lane & step else w.lanes + (lane ^ step) for lane in range(w.lanes)]
        high = [lane | step if not lane & step else w.lanes + lane for lane in range(w.lanes)]
        for i in (i for i in range(len(rows)) if not i & step):
            j = i | step  # element (i, l | step) changes places with (j, l & ~step)
            for target, picks in ((i, low), (j, high)):
                new[target] = f"{name}{step}.{target}"
                lines.append(f"{new[target]} = {_picked(w, rows[i], rows[j], picks)}")
        rows, step = new, 2 * step
    return lines, rows


def _picked(w: Width, a: str, b: str, picks: Iterable[int], of: str = "") -> str:
    """Numbers of two registers, by their positions."""
    kind, mask = of or w.type, ", ".join(f"i32 {p}" for p in picks)
    return f"shufflevector {kind} {a}, {kind} {b}, <{mask.count(',') + 1} x i32> <{mask}>"


def _pack_tile(w: Width, count: int) -> list[str]:
    """Lane k of a register is a number of row k. Rows are loaded in pieces, each to where it goes: a run of n cells makes n
    registers of pieces, in which blocks of n x n numbers are left to transpose."""
    lines = []
    for first, n in runs(count, max(1, min(w.lanes, PIECE // w.scalar_bytes))):
        for row in range(w.lanes):
            lines.append(
                f"%tp{first}.{row} = getelementptr i8, ptr %ta{row}, i64 {first * w.scalar_bytes}"
            )
            lines.append(
                f"%tq{first}.{row} = load {_several(w, n)}, ptr %tp{first}.{row}, align {w.scalar_bytes}"
            )
        made = []
        for i in range(n):
            joins, whole = _joined(
                w, [f"%tq{first}.{row}" for row in range(i, w.lanes, n)], n, f"%tj{first}.{i}."
            )
            lines, made = lines + joins, [*made, whole]
        swaps, columns = transpose(w, made, f"%tx{first}.")
        lines += swaps
        for i, column in enumerate(columns):
            lines.append(
                f"%tf{first + i} = getelementptr i8, ptr %t.f, i64 {(first + i) * w.bytes}"
            )
            lines.append(f"store {w.type} {column}, ptr %tf{first + i}, align {w.bytes}")
    return lines


def _several(w: Width, n: int) -> str:
    """The type of n numbers."""
    return f"<{n} x {w.fp}>" if n > 1 else w.fp


def _joined(w: Width, pieces: list[str], n: int, name: str) -> tuple[list[str], str]:
    """Instructions that put pieces of n numbers side by side, and the whole."""
    lines = []
    if n == 1:
        whole = "poison"
        for i, piece in enumerate(pieces):
            lines.append(f"{name}{i} = insertelement {w.type} {whole}, {w.fp} {piece}, i32 {i}")
            whole = f"{name}{i}"
        return lines, whole
    while len(pieces) > 1:
        pairs = zip(pieces[::2], pieces[1::2], strict=True)
        lines += [
            f"{name}{n}.{k} = {_picked(w, a, b, range(2 * n), _several(w, n))}"
            for k, (a, b) in enumerate(pairs)
        ]
        pieces, n = [f"{name}{n}.{k}" for k in range(len(pieces) // 2)], 2 * n
    return lines, pieces[0]


def _unpack_tile(w: Width, count: int) -> list[str]:
    lines = []
    for i in range(count):
        lines.append(f"%tf{i} = getelementptr i8, ptr %t.f, i64 {i * w.bytes}")
        lines.append(f"%tr{i} = load {w.type}, ptr %tf{i}, align {w.bytes}")
    return [*lines, *rows_out(w, [f"%tr{i}" for i in range(count)])]


def rows_out(w: Width, cells: list[str]) -> list[str]:
    """The first cells of a tile, to each lane's array: a run of n of them makes n registers of pieces, one a lane."""
    lines = []
    for first, n in runs(len(cells), w.lanes):
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
                    f"{piece} = {_picked(w, rows[lane % n], 'poison', range(start, start + n))}"
                )
            lines.append(
                f"%tw{first}.{lane} = getelementptr i8, ptr %ta{lane}, i64 {first * w.scalar_bytes}"
            )
            lines.append(
                f"store {_several(w, n)} {piece}, ptr %tw{first}.{lane}, align {w.scalar_bytes}"
            )
    return lines
