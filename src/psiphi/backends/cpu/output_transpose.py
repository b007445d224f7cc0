"""From the frame to NumPy's arrays, wherever numbers stand in it: a table has the place of every cell.

Zeros of a matrix all stand in one place, and so do the two halves of a symmetric one. Outputs that are larger than the caches
are written past them (streaming stores), which saves reading what is overwritten: whole lines of memory, to which the rows of
every lane are shifted.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import partial

from psiphi.backends.cpu.input_pack import cells, grid, rests, rows_out, transpose
from psiphi.backends.llvm.llvm_emitter import Width

LINE = 64  # bytes that memory takes at a time
REST = "ptr %frame, i64 %outer, ptr %places, i64 %t"  # what moves a part of a tile is given


def place_tables(number: int, places: Sequence[int], zeros: Container[int], lanes: int) -> str:
    """The places of an output's cells (the last is repeated, for tiles that reach beyond it), and which tiles are zeros alone:
    they need not be turned."""
    padded = [*places, *[places[-1] if places else 0] * (lanes - 1)]
    blank = [all(x in zeros for x in places[i : i + lanes]) for i in range(0, len(places), lanes)]
    tables = (f"places{number}", "i32", padded), (f"blank{number}", "i8", [int(x) for x in blank])
    lines = []
    for name, kind, row in tables:
        lines.append(
            f"@{name} = internal constant [{len(row)} x {kind}] [{', '.join(f'{kind} {x}' for x in row)}]"
        )
    return "\n".join(lines)


def deliver(w: Width, sizes: Iterable[int], streams: bool) -> str:
    """@deliver.<suffix>, for outputs of so many numbers; `%past`: past the caches, where the width allows."""
    place = [
        "%where = getelementptr i32, ptr %places, i64 %cell",
        "%found = load i32, ptr %where",
        "%at = zext i32 %found to i64",
    ]
    other = _Stream(w).text() if streams and w.bytes == LINE else ""
    seams = [f"%seams = alloca [{4 * w.lanes * LINE} x i8], align {LINE}"] if other else []
    tile, more = partial(_tile_out, w), ", ptr %places, ptr %blank, i1 %past"
    text = grid("deliver", w, *cells(w), tile, more, place, other, seams, REST) + rests(
        "deliver", w, sizes, tile, REST
    )
    if not other:
        return text
    masked = f"declare void @llvm.masked.store.{w.suffix}.p0({w.type}, ptr, i32, <{w.lanes} x i1>)"
    return f"{masked}\ndeclare {_shift(w)}({w.type}, {w.integer}, {w.type})\n{text}"


def _tile_out(w: Width, count: int) -> list[str]:
    """The first so many cells of the tile at %t, to the arrays."""
    return [*_tile(w, "t", count), *rows_out(w, [f"%t.x{i}" for i in range(count)])]


def _tile(w: Width, at: str, count: int) -> list[str]:
    """The cells from %<at> on, as %<at>.x0 ..."""
    lines = [f"%{at}.p = getelementptr i32, ptr %places, i64 %{at}"]
    for i in range(count):
        lines += [
            f"%{at}.p{i} = getelementptr i32, ptr %{at}.p, i64 {i}",
            f"%{at}.i{i} = load i32, ptr %{at}.p{i}",
            f"%{at}.c{i} = zext i32 %{at}.i{i} to i64",
            f"%{at}.b{i} = mul i64 %{at}.c{i}, {w.bytes}",
            f"%{at}.f{i} = getelementptr i8, ptr %frame, i64 %{at}.b{i}",
            f"%{at}.x{i} = load {w.type}, ptr %{at}.f{i}, align {w.bytes}",
        ]
    return lines


def _shift(w: Width) -> str:
    """Numbers from one register and the next, by their indices: of a pair of rows, the part that fills a line."""
    return f"{w.type} @llvm.x86.avx512.vpermi2var.{'pd' if w.fp == 'double' else 'ps'}.512"


def _rows(w: Width, at: str) -> tuple[list[str], list[str]]:
    """The rows of the tile at %<at>, one a lane."""
    swaps, rows = transpose(w, [f"%{at}.x{i}" for i in range(w.lanes)], f"%{at}.s")
    return [*_tile(w, at, w.lanes), *swaps], rows


class _Stream:
    """Elements one after the other in memory. Lane k's first whole line begins at its cell h(k); row t-1 from there on, and row
    t up to there, fill line t-1. The line in which one lane ends and the next begins is put together at %seam."""

    def __init__(self, w: Width):
        L, self.w, self.scalar = w.lanes, w, w.scalar_bytes
        self.bits = f"i{8 * w.scalar_bytes}"
        self.mask, self.wide = f"<{L} x i1>", f"<{L} x {self.bits}>"
        self.steps = f"<{', '.join(f'{self.bits} {i}' for i in range(L))}>"
        self.first, self.first_rows = _rows(w, "first")
        self.next, self.next_rows = _rows(w, "next")
        self.last, self.last_rows = _rows(w, "last")

    def splat(self, name: str, value: str) -> list[str]:
        """A number in every lane."""
        narrow = (
            f"trunc i64 {value} to {self.bits}" if self.bits != "i64" else f"add i64 0, {value}"
        )
        return [
            f"{name}.n = {narrow}",
            f"{name}.1 = insertelement {self.wide} poison, {self.bits} {name}.n, i32 0",
            f"{name} = shufflevector {self.wide} {name}.1, {self.wide} poison, <{self.w.lanes} x i32> zeroinitializer",
        ]

    def put(self, row: str, to: str, which: str = "") -> str:
        """A row into memory, or those of its cells that a mask names."""
        T, S = self.w.type, self.scalar
        if not which:
            return f"store {T} {row}, ptr {to}, align {S}"
        return f"call void @llvm.masked.store.{self.w.suffix}.p0({T} {row}, ptr {to}, i32 {S}, {self.mask} {which})"

    def past(self, value: str, to: str) -> str:
        """A whole line past the caches."""
        return f"store {self.w.type} {value}, ptr {to}, align {LINE}, !nontemporal !{{i32 1}}"

    def head(self, k: int) -> list[str]:
        """Where lane k's whole lines begin; what stands before them goes to the seam with the lane before."""
        own = f"%h.own = icmp ult {self.wide} {self.steps}, %h.v0"
        return [
            f"%h.a{k} = ptrtoint ptr %l{k} to i64",
            f"%h.m{k} = sub i64 0, %h.a{k}",
            f"%h.b{k} = and i64 %h.m{k}, {LINE - 1}",  # bytes before its first whole line,
            f"%h.n{k} = udiv i64 %h.b{k}, {self.scalar}",  # and cells
            *self.splat(f"%h.v{k}", f"%h.n{k}"),
            f"%h.i{k} = add {self.wide} {self.steps}, %h.v{k}",
            f"%h.p{k} = getelementptr i8, ptr %l{k}, i64 %h.b{k}",
            f"%h.r{k} = sub i64 %behind, %h.b{k}",  # bytes after its last line but the seam's
            f"%seam{k} = getelementptr i8, ptr %seams, i64 {(4 * k + 1) * LINE}",
            f"%seam.end{k} = getelementptr i8, ptr %seam{k}, i64 %h.r{k}",
            self.put(self.first_rows[k], f"%seam.end{k - 1}") if k else own,
        ]

    def line(self, k: int) -> list[str]:
        """Of the row before and the next one, the line of lane k that they fill."""
        T = self.w.type
        return [
            f"%s.x{k} = call {_shift(self.w)}({T} %before{k}, {self.w.integer} %h.i{k}, {T} %row{k})",
            f"%s.a{k} = getelementptr i8, ptr %h.p{k}, i64 %s.bytes",
            self.past(f"%s.x{k}", f"%s.a{k}"),
        ]

    def seam(self, k: int) -> list[str]:
        """The line, or the two, in which lane k ends and the next one begins."""
        T = self.w.type
        return [
            f"%e.back{k} = sub i64 0, %h.b{k}",
            f"%e.a{k} = getelementptr i8, ptr %seam{k}, i64 %e.back{k}",
            self.put(f"%before{k}", f"%e.a{k}"),
            f"%e.b{k} = getelementptr i8, ptr %e.a{k}, i64 {LINE}",
            self.put(self.last_rows[k], f"%e.b{k}", "%e.mask"),
            f"%e.to{k} = getelementptr i8, ptr %h.p{k}, i64 %e.bytes",
            f"%e.x{k} = load {T}, ptr %seam{k}, align {LINE}",
            self.past(f"%e.x{k}", f"%e.to{k}"),
            f"%e.two{k} = icmp ugt i64 %h.r{k}, {LINE}",
            f"br i1 %e.two{k}, label %seam.two{k}, label %seam.done{k}",
            f"seam.two{k}:",
            f"%e.c{k} = getelementptr i8, ptr %seam{k}, i64 {LINE}",
            f"%e.y{k} = load {T}, ptr %e.c{k}, align {LINE}",
            f"%e.d{k} = getelementptr i8, ptr %e.to{k}, i64 {LINE}",
            self.past(f"%e.y{k}", f"%e.d{k}"),
            f"br label %seam.done{k}",
            f"seam.done{k}:",
        ]

    def end(self) -> list[str]:
        """What the last lane has behind its whole lines."""
        k = self.w.lanes - 1
        return [
            f"%e.to = getelementptr i8, ptr %l{k}, i64 %e.bytes",
            f"%e.own = icmp uge {self.wide} {self.steps}, %h.v{k}",
            self.put(f"%before{k}", "%e.to", "%e.own"),
            f"%e.last = getelementptr i8, ptr %e.to, i64 {LINE}",
            self.put(self.last_rows[k], "%e.last", "%e.mask"),
        ]

    def text(self) -> str:
        L, T, S, lanes, n = self.w.lanes, self.w.type, self.scalar, range(self.w.lanes), "\n  "
        first, turned = self.first_rows, self.next_rows
        heads = [
            *self.first,
            *(x for k in lanes for x in self.head(k)),
            self.put(first[0], "%l0", "%h.own"),
        ]
        before = (
            f"%before{k} = phi {T} [ {first[k]}, %stream.first ], [ %row{k}, %stream.write ]"
            for k in lanes
        )
        rows = (
            f"%row{k} = phi {T} [ zeroinitializer, %stream.body ], [ {turned[k]}, %stream.turn ]"
            for k in lanes
        )
        body = [x for k in lanes for x in self.line(k)]
        ends = [*(x for k in lanes[:-1] for x in self.seam(k)), *self.end()]
        return f"""stream:
  %array.at = ptrtoint ptr %array to i64
  %array.odd = and i64 %array.at, {S - 1}
  %even = icmp eq i64 %array.odd, 0
  %size = mul i64 %cells, {S}
  %follow = icmp eq i64 %size, %outer
  %long = icmp uge i64 %cells, {3 * L}
  %fit.1 = and i1 %even, %long
  %fit = and i1 %fit.1, %follow
  br i1 %fit, label %stream.first, label %tiles
stream.first:
  %cells.less = sub i64 %cells, 1
  %last.tile = udiv i64 %cells.less, {L}
  %last = mul i64 %last.tile, {L}
  %e.less = sub i64 %last, {L}
  %e.bytes = mul i64 %e.less, {S}
  %behind = sub i64 %size, %e.bytes
  %first = add i64 0, 0
  {n.join(heads)}
  br label %stream.test
stream.test:
  %next = phi i64 [ {L}, %stream.first ], [ %next.up, %stream.write ]
  {n.join(before)}
  %s.more = icmp ult i64 %next, %last
  br i1 %s.more, label %stream.body, label %stream.last
stream.body:
  %s.less = sub i64 %next, {L}
  %s.bytes = mul i64 %s.less, {S}
  %s.tile = udiv i64 %next, {L}
  %s.blank = getelementptr i8, ptr %blank, i64 %s.tile
  %s.zeros = load i8, ptr %s.blank
  %s.is = icmp ne i8 %s.zeros, 0
  br i1 %s.is, label %stream.write, label %stream.turn
stream.turn:
  {n.join(self.next)}
  br label %stream.write
stream.write:
  {n.join(rows)}
  {n.join(body)}
  %next.up = add i64 %next, {L}
  br label %stream.test
stream.last:
  {n.join(self.last)}
  %e.left = sub i64 %cells, %last
  {n.join(self.splat("%e.v", "%e.left"))}
  %e.mask = icmp ult {self.wide} {self.steps}, %e.v
  {n.join(ends)}
  br label %done"""
