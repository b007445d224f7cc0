"""Results at any places of the frame to NumPy arrays: a table has the place of every cell.

All zeros of a matrix share one place, and so do the two halves of a symmetric matrix. Outputs that
are larger than the caches bypass them (streaming stores), which saves reading the memory that is
overwritten. Streaming stores write whole cache lines, so the rows of each lane are shifted to line
boundaries.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import partial

from psiphi.backends.cpu.input_pack import (
    cell_loop,
    cell_stores,
    store_rows,
    tail_functions,
    transpose,
)
from psiphi.backends.llvm.llvm_emitter import Width

LINE_BYTES = 64  # of a cache line
TAIL_ARGUMENTS = "ptr %frame, i64 %outer, ptr %places, i64 %t"  # of what moves a part of a tile


def place_tables(number: int, places: Sequence[int], zeros: Container[int], lanes: int) -> str:
    """Tables of the places of an output's cells and of the tiles that contain zeros only.

    The last place is repeated, for a tile that reaches beyond it. Tiles of zeros need no transpose.
    """
    padded = [*places, *[places[-1] if places else 0] * (lanes - 1)]
    all_zero = [
        all(x in zeros for x in places[i : i + lanes]) for i in range(0, len(places), lanes)
    ]
    tables = (
        (f"places{number}", "i32", padded),
        (f"blank{number}", "i8", [int(x) for x in all_zero]),
    )
    lines = []
    for name, type_, entries in tables:
        constants = ", ".join(f"{type_} {x}" for x in entries)
        lines.append(f"@{name} = internal constant [{len(entries)} x {type_}] [{constants}]")
    return "\n".join(lines)


def scattered_stores(w: Width, sizes: Iterable[int], streams: bool) -> str:
    """@deliver.<suffix>, for outputs of these sizes; %past: bypass the caches, if possible."""
    place = [
        "%where = getelementptr i32, ptr %places, i64 %cell",
        "%found = load i32, ptr %where",
        "%at = zext i32 %found to i64",
    ]
    streaming = _StreamingStores(w).text() if streams and w.bytes == LINE_BYTES else ""
    seams = (
        [f"%seams = alloca [{4 * w.lanes * LINE_BYTES} x i8], align {LINE_BYTES}"]
        if streaming
        else []
    )
    tile, parameters = partial(_store_tile, w), ", ptr %places, ptr %blank, i1 %past"
    text = cell_loop(
        "deliver", w, *cell_stores(w), tile, parameters, place, streaming, seams, TAIL_ARGUMENTS
    ) + tail_functions("deliver", w, sizes, tile, TAIL_ARGUMENTS)
    if not streaming:
        return text
    masked_store = (
        f"declare void @llvm.masked.store.{w.suffix}.p0({w.type}, ptr, i32, <{w.lanes} x i1>)"
    )
    return f"{masked_store}\ndeclare {_permute(w)}({w.type}, {w.integer}, {w.type})\n{text}"


def _store_tile(w: Width, count: int) -> list[str]:
    """Store the first cells of the tile at %t to the arrays."""
    return [*_load_tile(w, "t", count), *store_rows(w, [f"%t.x{i}" for i in range(count)])]


def _load_tile(w: Width, tile: str, count: int) -> list[str]:
    """Load the cells from %<tile> on as %<tile>.x0, ..."""
    lines = [f"%{tile}.p = getelementptr i32, ptr %places, i64 %{tile}"]
    for i in range(count):
        lines += [
            f"%{tile}.p{i} = getelementptr i32, ptr %{tile}.p, i64 {i}",
            f"%{tile}.i{i} = load i32, ptr %{tile}.p{i}",
            f"%{tile}.c{i} = zext i32 %{tile}.i{i} to i64",
            f"%{tile}.b{i} = mul i64 %{tile}.c{i}, {w.bytes}",
            f"%{tile}.f{i} = getelementptr i8, ptr %frame, i64 %{tile}.b{i}",
            f"%{tile}.x{i} = load {w.type}, ptr %{tile}.f{i}, align {w.bytes}",
        ]
    return lines


def _permute(w: Width) -> str:
    """The intrinsic that picks numbers of two registers by indices: the line that two rows fill."""
    return f"{w.type} @llvm.x86.avx512.vpermi2var.{'pd' if w.fp == 'double' else 'ps'}.512"


def _transposed_tile(w: Width, tile: str) -> tuple[list[str], list[str]]:
    """The rows of the tile at %<tile>, one per lane."""
    swaps, rows = transpose(w, [f"%{tile}.x{i}" for i in range(w.lanes)], f"%{tile}.s")
    return [*_load_tile(w, tile, w.lanes), *swaps], rows


class _StreamingStores:
    """Streaming stores of elements that are contiguous in memory, one per lane.

    The first whole line of lane k begins at its cell h(k). Row t-1 from h(k) on and row t up to
    h(k) fill line t-1. The line in which one lane ends and the next begins is assembled at %seam.
    """

    def __init__(self, w: Width):
        L, self.w, self.scalar = w.lanes, w, w.scalar_bytes
        self.bits = f"i{8 * w.scalar_bytes}"
        self.mask, self.wide = f"<{L} x i1>", f"<{L} x {self.bits}>"
        self.steps = f"<{', '.join(f'{self.bits} {i}' for i in range(L))}>"
        self.first, self.first_rows = _transposed_tile(w, "first")
        self.next, self.next_rows = _transposed_tile(w, "next")
        self.last, self.last_rows = _transposed_tile(w, "last")

    def splat(self, name: str, value: str) -> list[str]:
        """A number in every lane."""
        narrow = (
            f"trunc i64 {value} to {self.bits}" if self.bits != "i64" else f"add i64 0, {value}"
        )
        return [
            f"{name}.n = {narrow}",
            f"{name}.1 = insertelement {self.wide} poison, {self.bits} {name}.n, i32 0",
            f"{name} = shufflevector {self.wide} {name}.1, {self.wide} poison, "
            f"<{self.w.lanes} x i32> zeroinitializer",
        ]

    def store(self, row: str, address: str, mask: str = "") -> str:
        """Store a row, or the cells of it that a mask selects."""
        T, S = self.w.type, self.scalar
        if not mask:
            return f"store {T} {row}, ptr {address}, align {S}"
        arguments = f"{T} {row}, ptr {address}, i32 {S}, {self.mask} {mask}"
        return f"call void @llvm.masked.store.{self.w.suffix}.p0({arguments})"

    def stream(self, value: str, address: str) -> str:
        """Store a whole line, bypassing the caches."""
        flags = f"align {LINE_BYTES}, !nontemporal !{{i32 1}}"
        return f"store {self.w.type} {value}, ptr {address}, {flags}"

    def head(self, k: int) -> list[str]:
        """Where the whole lines of lane k begin; the cells before go to the seam with lane k-1."""
        own = f"%h.own = icmp ult {self.wide} {self.steps}, %h.v0"
        return [
            f"%h.a{k} = ptrtoint ptr %l{k} to i64",
            f"%h.m{k} = sub i64 0, %h.a{k}",
            f"%h.b{k} = and i64 %h.m{k}, {LINE_BYTES - 1}",  # bytes before its first whole line,
            f"%h.n{k} = udiv i64 %h.b{k}, {self.scalar}",  # and cells
            *self.splat(f"%h.v{k}", f"%h.n{k}"),
            f"%h.i{k} = add {self.wide} {self.steps}, %h.v{k}",
            f"%h.p{k} = getelementptr i8, ptr %l{k}, i64 %h.b{k}",
            f"%h.r{k} = sub i64 %behind, %h.b{k}",  # bytes after its last line but the seam's
            f"%seam{k} = getelementptr i8, ptr %seams, i64 {(4 * k + 1) * LINE_BYTES}",
            f"%seam.end{k} = getelementptr i8, ptr %seam{k}, i64 %h.r{k}",
            self.store(self.first_rows[k], f"%seam.end{k - 1}") if k else own,
        ]

    def line(self, k: int) -> list[str]:
        """The line of lane k that the previous row and this row fill."""
        T = self.w.type
        arguments = f"{T} %before{k}, {self.w.integer} %h.i{k}, {T} %row{k}"
        return [
            f"%s.x{k} = call {_permute(self.w)}({arguments})",
            f"%s.a{k} = getelementptr i8, ptr %h.p{k}, i64 %s.bytes",
            self.stream(f"%s.x{k}", f"%s.a{k}"),
        ]

    def seam(self, k: int) -> list[str]:
        """The one or two lines in which lane k ends and lane k+1 begins."""
        T = self.w.type
        return [
            f"%e.back{k} = sub i64 0, %h.b{k}",
            f"%e.a{k} = getelementptr i8, ptr %seam{k}, i64 %e.back{k}",
            self.store(f"%before{k}", f"%e.a{k}"),
            f"%e.b{k} = getelementptr i8, ptr %e.a{k}, i64 {LINE_BYTES}",
            self.store(self.last_rows[k], f"%e.b{k}", "%e.mask"),
            f"%e.to{k} = getelementptr i8, ptr %h.p{k}, i64 %e.bytes",
            f"%e.x{k} = load {T}, ptr %seam{k}, align {LINE_BYTES}",
            self.stream(f"%e.x{k}", f"%e.to{k}"),
            f"%e.two{k} = icmp ugt i64 %h.r{k}, {LINE_BYTES}",
            f"br i1 %e.two{k}, label %seam.two{k}, label %seam.done{k}",
            f"seam.two{k}:",
            f"%e.c{k} = getelementptr i8, ptr %seam{k}, i64 {LINE_BYTES}",
            f"%e.y{k} = load {T}, ptr %e.c{k}, align {LINE_BYTES}",
            f"%e.d{k} = getelementptr i8, ptr %e.to{k}, i64 {LINE_BYTES}",
            self.stream(f"%e.y{k}", f"%e.d{k}"),
            f"br label %seam.done{k}",
            f"seam.done{k}:",
        ]

    def end(self) -> list[str]:
        """The cells of the last lane after its whole lines."""
        k = self.w.lanes - 1
        return [
            f"%e.to = getelementptr i8, ptr %l{k}, i64 %e.bytes",
            f"%e.own = icmp uge {self.wide} {self.steps}, %h.v{k}",
            self.store(f"%before{k}", "%e.to", "%e.own"),
            f"%e.last = getelementptr i8, ptr %e.to, i64 {LINE_BYTES}",
            self.store(self.last_rows[k], "%e.last", "%e.mask"),
        ]

    def text(self) -> str:
        L, T, S, lanes, n = self.w.lanes, self.w.type, self.scalar, range(self.w.lanes), "\n  "
        first, next_rows = self.first_rows, self.next_rows
        heads = [
            *self.first,
            *(x for k in lanes for x in self.head(k)),
            self.store(first[0], "%l0", "%h.own"),
        ]
        before = (
            f"%before{k} = phi {T} [ {first[k]}, %stream.first ], [ %row{k}, %stream.write ]"
            for k in lanes
        )
        rows = (
            f"%row{k} = phi {T} [ zeroinitializer, %stream.body ], [ {next_rows[k]}, %stream.turn ]"
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
