"""From the frame to NumPy's arrays, wherever numbers stand in it: a table has the place of every cell.

Zeros of a matrix all stand in one place, and so do the two halves of a symmetric one. Outputs that are larger than the caches
are written past them (streaming stores), which saves reading what is overwritten: whole lines of memory, to which the rows of
every lane are shifted.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from psiphi.emitters.llvm import Width
from psiphi.emitters.pack import cells, grid, rows_out, transpose

LINE = 64  # bytes that memory takes at a time


def place_tables(number: int, places: Sequence[int], zeros: Container[int], lanes: int) -> str:
    """The places of an output's cells (the last is repeated, for tiles that reach beyond it), and which tiles are zeros alone:
    they need not be turned."""
    padded = [*places, *[places[-1] if places else 0] * (lanes - 1)]
    blank = [all(x in zeros for x in places[i : i + lanes]) for i in range(0, len(places), lanes)]
    tables = (f"places{number}", "i32", padded), (f"blank{number}", "i8", [int(x) for x in blank])
    lines = []
    for name, kind, row in tables:
        lines.append(f"@{name} = internal constant [{len(row)} x {kind}] [{', '.join(f'{kind} {x}' for x in row)}]")
    return "\n".join(lines)


def deliver(w: Width, streams: bool) -> str:
    """@deliver.<suffix>; `%past`: past the caches, where the width allows."""
    place = [
        "%where = getelementptr i32, ptr %places, i64 %cell",
        "%found = load i32, ptr %where",
        "%at = zext i32 %found to i64",
    ]
    tile = [*_tile(w, "t"), *rows_out(w, [f"%t.x{i}" for i in range(w.lanes)])] if w.lanes > 1 else []
    other = _streaming(w) if streams and w.bytes == LINE else ""
    seams = [f"%seams = alloca [{4 * w.lanes * LINE} x i8], align {LINE}"] if other else []
    text = grid("deliver", w, *cells(w), tile, ", ptr %places, ptr %blank, i1 %past", place, other, seams)
    return text if not other else f"declare {_shift(w)}({w.type}, {w.integer}, {w.type})\n{text}"


def _tile(w: Width, at: str) -> list[str]:
    """The cells from %<at> on, as %<at>.x0 ..."""
    lines = [f"%{at}.p = getelementptr i32, ptr %places, i64 %{at}"]
    for i in range(w.lanes):
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
    swaps, rows = transpose(w, [f"%{at}.x{i}" for i in range(w.lanes)])
    return [*_tile(w, at), *(line.replace("%x", f"%{at}.s") for line in swaps)], [row.replace("%x", f"%{at}.s") for row in rows]


def _streaming(w: Width) -> str:
    """Elements one after the other in memory. Lane k's first whole line begins at its cell h(k); row t-1 from there on, and row
    t up to there, fill line t-1. The line in which one lane ends and the next begins is put together at %seam."""
    L, T, S, lanes = w.lanes, w.type, w.scalar_bytes, range(w.lanes)
    bits, n = f"i{8 * S}", "\n  "
    mask, wide, steps = f"<{L} x i1>", f"<{L} x {bits}>", f"<{', '.join(f'{bits} {i}' for i in lanes)}>"
    first, first_rows = _rows(w, "first")
    next_, next_rows = _rows(w, "next")
    last, last_rows = _rows(w, "last")

    def splat(name: str, value: str) -> list[str]:
        return [
            f"{name}.n = {'add i64 0,' if bits == 'i64' else 'trunc i64'} {value}{'' if bits == 'i64' else f' to {bits}'}",
            f"{name}.1 = insertelement {wide} poison, {bits} {name}.n, i32 0",
            f"{name} = shufflevector {wide} {name}.1, {wide} poison, <{L} x i32> zeroinitializer",
        ]

    def put(row: str, to: str, which: str = "") -> str:
        if not which:
            return f"store {T} {row}, ptr {to}, align {S}"
        return f"call void @llvm.masked.store.{w.suffix}.p0({T} {row}, ptr {to}, i32 {S}, {mask} {which})"

    def past(value: str, to: str) -> str:
        return f"store {T} {value}, ptr {to}, align {LINE}, !nontemporal !{{i32 1}}"

    heads, body, tails = [], [], []
    for k in lanes:
        heads += [
            f"%h.a{k} = ptrtoint ptr %l{k} to i64",
            f"%h.m{k} = sub i64 0, %h.a{k}",
            f"%h.b{k} = and i64 %h.m{k}, {LINE - 1}",  # bytes before its first whole line,
            f"%h.n{k} = udiv i64 %h.b{k}, {S}",  # and cells
            *splat(f"%h.v{k}", f"%h.n{k}"),
            f"%h.i{k} = add {wide} {steps}, %h.v{k}",
            f"%h.p{k} = getelementptr i8, ptr %l{k}, i64 %h.b{k}",
            f"%h.r{k} = sub i64 %rest, %h.b{k}",  # bytes after its last line but the seam's
            f"%seam{k} = getelementptr i8, ptr %seams, i64 {(4 * k + 1) * LINE}",
            f"%seam.end{k} = getelementptr i8, ptr %seam{k}, i64 %h.r{k}",
            put(first_rows[k], f"%seam.end{k - 1}") if k else f"%h.own = icmp ult {wide} {steps}, %h.v0",
        ]
        body += [
            f"%s.x{k} = call {_shift(w)}({T} %before{k}, {w.integer} %h.i{k}, {T} %row{k})",
            f"%s.a{k} = getelementptr i8, ptr %h.p{k}, i64 %s.bytes",
            past(f"%s.x{k}", f"%s.a{k}"),
        ]
        if k == L - 1:
            break
        tails += [
            f"%e.back{k} = sub i64 0, %h.b{k}",
            f"%e.a{k} = getelementptr i8, ptr %seam{k}, i64 %e.back{k}",
            put(f"%before{k}", f"%e.a{k}"),
            f"%e.b{k} = getelementptr i8, ptr %e.a{k}, i64 {LINE}",
            put(last_rows[k], f"%e.b{k}", "%e.mask"),
            f"%e.to{k} = getelementptr i8, ptr %h.p{k}, i64 %e.bytes",
            f"%e.x{k} = load {T}, ptr %seam{k}, align {LINE}",
            past(f"%e.x{k}", f"%e.to{k}"),
            f"%e.two{k} = icmp ugt i64 %h.r{k}, {LINE}",
            f"br i1 %e.two{k}, label %seam.two{k}, label %seam.done{k}",
            f"seam.two{k}:",
            f"%e.c{k} = getelementptr i8, ptr %seam{k}, i64 {LINE}",
            f"%e.y{k} = load {T}, ptr %e.c{k}, align {LINE}",
            f"%e.d{k} = getelementptr i8, ptr %e.to{k}, i64 {LINE}",
            past(f"%e.y{k}", f"%e.d{k}"),
            f"br label %seam.done{k}",
            f"seam.done{k}:",
        ]
    end = [
        f"%e.to = getelementptr i8, ptr %l{L - 1}, i64 %e.bytes",
        f"%e.own = icmp uge {wide} {steps}, %h.v{L - 1}",
        put(f"%before{L - 1}", "%e.to", "%e.own"),
        f"%e.last = getelementptr i8, ptr %e.to, i64 {LINE}",
        put(last_rows[L - 1], "%e.last", "%e.mask"),
    ]
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
  %rest = sub i64 %size, %e.bytes
  %first = add i64 0, 0
  {n.join([*first, *heads, put(first_rows[0], "%l0", "%h.own")])}
  br label %stream.test
stream.test:
  %next = phi i64 [ {L}, %stream.first ], [ %next.up, %stream.write ]
  {n.join(f"%before{k} = phi {T} [ {first_rows[k]}, %stream.first ], [ %row{k}, %stream.write ]" for k in lanes)}
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
  {n.join(next_)}
  br label %stream.write
stream.write:
  {n.join(f"%row{k} = phi {T} [ zeroinitializer, %stream.body ], [ {next_rows[k]}, %stream.turn ]" for k in lanes)}
  {n.join(body)}
  %next.up = add i64 %next, {L}
  br label %stream.test
stream.last:
  {n.join(last)}
  %e.left = sub i64 %cells, %last
  {n.join(splat("%e.v", "%e.left"))}
  %e.mask = icmp ult {wide} {steps}, %e.v
  {n.join(tails + end)}
  br label %done"""
