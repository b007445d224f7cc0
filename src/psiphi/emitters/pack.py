"""Between NumPy's arrays and the frame: `pack` brings a block's elements side by side, `unpack` puts them back.

Elements may lie anywhere (any strides). Where each element's numbers are contiguous, which is the common case, tiles of
lanes x lanes numbers are transposed in registers, the last tile under a mask.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial

from psiphi.emitters.llvm import Width

ARGUMENTS = "ptr %array, ptr %frame, i64 %rows, i64 %columns, i64 %outer, i64 %row, i64 %column, i64 %count"


Tile = Callable[[str], list[str]]  # the lines of a tile: of all its cells (""), or of those that a mask names
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
) -> str:
    """A loop over cells; `full` moves all lanes of one, `part` lane %lane of one, `tile` as many cells as there are lanes.

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
{_tiles(w, tile)}
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


def lane_pointers(w: Width) -> list[str]:
    lines = []
    for lane in range(w.lanes):
        lines.append(f"%o{lane} = mul i64 %outer, {lane}")
        lines.append(f"%l{lane} = getelementptr i8, ptr %array, i64 %o{lane}")
    return lines


def pack(w: Width) -> str:
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
    return grid("pack", w, full, part, partial(_pack_tile, w))


def unpack(w: Width) -> str:
    return grid("unpack", w, *cells(w), partial(_unpack_tile, w))


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


def _tiles(w: Width, tile: Tile) -> str:
    """The loop over tiles of `lanes` cells, for contiguous elements: whole ones, and the last one under a mask."""
    if w.lanes == 1:
        return "tile:\n  br label %done"
    newline = "\n  "
    steps = ", ".join(f"i64 {i}" for i in range(w.lanes))
    place = [
        f"%t.bytes = mul i64 %t, {w.scalar_bytes}",
        f"%t.slot = mul i64 %t, {w.bytes}",
        "%t.f = getelementptr i8, ptr %frame, i64 %t.slot",
    ]
    last = _renamed([*place, *tile("%t.mask")], "last.")
    return f"""tile:
  %t = phi i64 [ 0, %tiles ], [ %t.next, %tile.body ]
  %t.next = add i64 %t, {w.lanes}
  %t.more = icmp sle i64 %t.next, %cells
  br i1 %t.more, label %tile.body, label %tile.rest
tile.body:
  {newline.join([*place, *tile("")])}
  br label %tile
tile.rest:
  %t.left = sub i64 %cells, %t
  %t.some = icmp sgt i64 %t.left, 0
  br i1 %t.some, label %tile.last, label %done
tile.last:
  %t.left.1 = insertelement <{w.lanes} x i64> poison, i64 %t.left, i32 0
  %t.left.n = shufflevector <{w.lanes} x i64> %t.left.1, <{w.lanes} x i64> poison, <{w.lanes} x i32> zeroinitializer
  %t.mask = icmp slt <{w.lanes} x i64> <{steps}>, %t.left.n
  {newline.join(last)}
  br label %done"""


def _renamed(lines: list[str], prefix: str) -> list[str]:
    """The same lines with names of their own."""
    names = {line.split(" = ")[0][1:] for line in lines if " = " in line}
    other = lambda found: f"%{prefix}{found[1]}" if found[1] in names else found[0]  # noqa: E731
    return [re.sub(r"%([\w.]+)", other, line) for line in lines]


def pack_declarations(w: Width) -> list[str]:
    if w.lanes == 1:
        return []
    half, T = f"<{w.lanes // 2} x i1>", f"<{w.lanes // 2} x {w.fp}>"
    return [
        f"declare {T} @llvm.masked.load.{_half_suffix(w)}.p0(ptr, i32, {half}, {T})",
        f"declare void @llvm.masked.store.{w.suffix}.p0({w.type}, ptr, i32, <{w.lanes} x i1>)",
    ]


def transpose(w: Width, rows: list[str], rounds: int | None = None) -> tuple[list[str], list[str]]:
    """Instructions that transpose lanes x lanes registers, and the names of the results: log2(lanes) rounds of swaps, of which
    the first so many, where the others have been made."""
    lines: list[str] = []
    step = 1
    while step < (w.lanes if rounds is None else 1 << rounds):
        new = list(rows)
        for i in range(w.lanes):
            if i & step:
                continue
            j = i | step  # element (i, l | step) changes places with (j, l & ~step)
            low = [lane if not lane & step else w.lanes + (lane ^ step) for lane in range(w.lanes)]
            high = [lane | step if not lane & step else w.lanes + lane for lane in range(w.lanes)]
            for target, picks in ((i, low), (j, high)):
                name = f"%x{step}.{target}"
                mask = ", ".join(f"i32 {p}" for p in picks)
                lines.append(f"{name} = shufflevector {w.type} {rows[i]}, {w.type} {rows[j]}, <{w.lanes} x i32> <{mask}>")
                new[target] = name
        rows, step = new, 2 * step
    return lines, rows


def _pack_tile(w: Width, mask: str) -> list[str]:
    lines = [f"%ta{lane} = getelementptr i8, ptr %l{lane}, i64 %t.bytes" for lane in range(w.lanes)]
    lines += _halves(w, mask)
    swaps, columns = transpose(w, [f"%tr{lane}" for lane in range(w.lanes)], w.lanes.bit_length() - 2)
    lines += swaps
    for i, column in enumerate(columns):
        lines.append(f"%tf{i} = getelementptr i8, ptr %t.f, i64 {i * w.bytes}")
        lines.append(f"store {w.type} {column}, ptr %tf{i}, align {w.bytes}")
    return lines


def _halves(w: Width, mask: str) -> list[str]:
    """The rows of a tile after the last of its rounds: halves of rows are swapped as they are loaded, by where they go. Of a
    tile that ends with the arrays, those columns that the mask names."""
    half, T, bools = w.lanes // 2, f"<{w.lanes // 2} x {w.fp}>", f"<{w.lanes} x i1>"
    lines, both = [], ", ".join(f"i32 {i}" for i in range(w.lanes))
    for side, first in (("l", 0), ("h", half)):
        picks = ", ".join(f"i32 {first + i}" for i in range(half))
        lines += [f"%tm{side} = shufflevector {bools} {mask}, {bools} poison, <{half} x i32> <{picks}>"] if mask else []
        for k in range(w.lanes):
            at = f"%t{side}p{k}"
            some = f"ptr {at}, i32 {w.scalar_bytes}, <{half} x i1> %tm{side}, {T} zeroinitializer"
            all_of_them = f"load {T}, ptr {at}, align {w.scalar_bytes}"
            lines.append(f"{at} = getelementptr i8, ptr %ta{k}, i64 {first * w.scalar_bytes}")
            lines.append(f"%t{side}{k} = {f'call {T} @llvm.masked.load.{_half_suffix(w)}.p0({some})' if mask else all_of_them}")
        for k in range(half):
            given = f"{T} %t{side}{k}, {T} %t{side}{k + half}"
            lines.append(f"%tr{first + k} = shufflevector {given}, <{w.lanes} x i32> <{both}>")
    return lines


def _half_suffix(w: Width) -> str:
    """The intrinsics' name of half a register."""
    return f"v{w.lanes // 2}{Width(w.fp, 1).suffix}"


def _unpack_tile(w: Width, mask: str) -> list[str]:
    lines = []
    for i in range(w.lanes):
        lines.append(f"%tf{i} = getelementptr i8, ptr %t.f, i64 {i * w.bytes}")
        lines.append(f"%tr{i} = load {w.type}, ptr %tf{i}, align {w.bytes}")
    return [*lines, *rows_out(w, [f"%tr{i}" for i in range(w.lanes)], mask)]


def rows_out(w: Width, cells: list[str], mask: str) -> list[str]:
    """A tile's cells, to each lane's array; those that a mask names, if one is given."""
    T = w.type
    lines, rows = transpose(w, cells)
    for lane, row in enumerate(rows):
        lines.append(f"%ta{lane} = getelementptr i8, ptr %l{lane}, i64 %t.bytes")
        if mask:
            given = f"{T} {row}, ptr %ta{lane}, i32 {w.scalar_bytes}, <{w.lanes} x i1> {mask}"
            lines.append(f"call void @llvm.masked.store.{w.suffix}.p0({given})")
        else:
            lines.append(f"store {T} {row}, ptr %ta{lane}, align {w.scalar_bytes}")
    return lines
