"""Rolled kernels: one function a class of links, one loop a sweep, tables for the rest.

The frame holds the arguments, then a record a body (and one for the world), then an inbox a body. `tables` points to two
arrays: integers (parent, first parameter, where the body's part of each kind of argument begins: "q", "v", ...; then each
sweep's order and classes) and parameters.
"""

from __future__ import annotations

from psiphi.backends.cpu.gufunc_kernel import Kernel, side_by_side
from psiphi.backends.llvm.llvm_emitter import Width, function
from psiphi.backends.llvm.register_spills import segment_function
from psiphi.compiler.ir.loop_tables import LoopTables, loop_frame, places
from psiphi.compiler.ir.segments import FrameLayout, Segment, Store
from psiphi.compiler.sweeps.link_loops import LinkClass, LinkLoops
from psiphi.compiler.tape.ops import Op


def rolled_kernel(rolled: LinkLoops, fma: bool = True) -> Kernel:
    """The kernel of a program in loops; give it `LoopTables(rolled, dtype).address` as its tables."""
    program, (layout, size) = rolled.program, loop_frame(rolled)
    inputs, outputs = (
        side_by_side(program.inputs, layout.inputs),
        side_by_side(program.outputs, layout.outputs),
    )
    return Kernel(inputs, outputs, size, lambda width: rolled_text(rolled, width, fma))


def rolled_text(rolled: LinkLoops, width: Width, fma: bool, prefix: str = "") -> str:
    """Text that defines @<prefix>block.<suffix>(ptr frame, ptr data)."""
    layout = FrameLayout.of(rolled.program.inputs, rolled.program.outputs)
    return _Block(rolled, layout, width, fma, prefix).text()


def tables(rolled: LinkLoops, name: str, fp: str) -> str:
    """Text that defines @<name>.tables, the tables as constants: such code needs nothing from outside."""
    own = LoopTables(rolled, "d" if fp == "double" else "f")
    integers = ", ".join(f"i32 {x}" for x in own.integers.tolist())
    params = ", ".join(f"{fp} {Width(fp, 1).constant(x)}" for x in own.params.tolist())
    return f"""@{name}.integers = internal constant [{len(own.integers)} x i32] [{integers}]
@{name}.params = internal constant [{len(own.params)} x {fp}] [{params}]
@{name}.tables = internal constant [2 x ptr] [ptr @{name}.integers, ptr @{name}.params]
"""


class _Block:
    def __init__(
        self, rolled: LinkLoops, layout: FrameLayout, width: Width, fma: bool, prefix: str
    ):
        self.rolled, self.layout, self.width, self.fma, self.prefix = (
            rolled,
            layout,
            width,
            fma,
            prefix,
        )
        program = rolled.program
        self.ins = [(i, arg) for i, arg in enumerate(program.inputs) if arg.per_joint]
        self.outs = [(i, arg) for i, arg in enumerate(program.outputs) if arg.per_joint]
        self.places = places(rolled)
        self.bases = ["frame", "here", "parent", "inbox", "up", "param"]
        self.bases += [f"in{i}" for i, _ in self.ins] + [f"out{i}" for i, _ in self.outs]

    def text(self) -> str:
        w, n = self.width, len(self.rolled.tree.links)
        parts, calls = [], []
        start = (2 + len(self.places)) * n
        for s, stage in enumerate(self.rolled.stages):
            for c, cls in enumerate(stage.classes):
                parts.append(self._class(f"{self.prefix}step{s}.{c}.{w.suffix}", cls))
            parts.append(self._stage(s, start, len(stage.order), len(stage.classes)))
            calls.append(f"call void @{self.prefix}sweep{s}.{w.suffix}(ptr %frame, ptr %data)")
            start += 2 * len(stage.order)
        calls = [*self._clear_outputs(), *calls]
        if self.rolled.finish is not None:
            parts.append(self._class(f"{self.prefix}finish.{w.suffix}", self.rolled.finish))
            inbox = self._offset(self._inbox_start() + n * self.rolled.inbox)
            calls.append(f"%world = getelementptr i8, ptr %frame, i64 {inbox}")
            passed = ["ptr %world" if b == "inbox" else "ptr %frame" for b in self.bases]
            calls.append(f"call void @{self.prefix}finish.{w.suffix}({', '.join(passed)})")
        parts.append(function(f"{self.prefix}block.{w.suffix}", ["frame", "data"], calls))
        return "\n".join(parts)

    def _clear_outputs(self) -> list[str]:
        """Outputs no step writes are zero."""
        size = self.layout.size - (self.layout.outputs[0] if self.layout.outputs else 0)
        lines = [
            f"%outputs = getelementptr i8, ptr %frame, i64 {self._offset(self.layout.outputs[0])}"
        ]
        lines.append(
            f"call void @llvm.memset.p0.i64(ptr %outputs, i8 0, i64 {self._offset(size)}, i1 false)"
        )
        return lines

    def _offset(self, values: int) -> int:
        return values * self.width.bytes

    def _inbox_start(self) -> int:
        return self.layout.size + (len(self.rolled.tree.links) + 1) * self.rolled.record

    def _class(self, name: str, cls: LinkClass) -> str:
        live = cls.tape.live(cls.outputs, cls.given)
        nodes = [i for i in live if i not in cls.given and cls.tape.nodes[i][0] is not Op.CONST]
        segment = Segment(name, cls.tape, nodes, [Store(*store) for store in cls.stores], cls.given)
        return segment_function(name, self.bases, segment, self.width, fma=self.fma)

    def _stage(self, s: int, start: int, count: int, classes: int) -> str:
        w, n, r = self.width, len(self.rolled.tree.links), self.rolled
        table = [self._entry("k", start, "%i"), self._entry("class", start + count, "%i")]
        table += [
            self._entry(name, column * n, "%k")
            for column, name in enumerate(("p", "first", *(f"of.{x}" for x in self.places)))
        ]
        starts = [
            self._place("here", "%k", r.record, self.layout.size),
            self._place("parent", "%p", r.record, self.layout.size),
            self._place("inbox", "%k", r.inbox, self._inbox_start()),
            self._place("up", "%p", r.inbox, self._inbox_start()),
            f"%param = getelementptr {w.fp}, ptr %params, i64 %first",
        ]
        for name, group, offsets in (
            ("in", self.ins, self.layout.inputs),
            ("out", self.outs, self.layout.outputs),
        ):
            for i, arg in group:
                starts.append(self._place(f"{name}{i}", f"%of.{arg.per_joint}", 1, offsets[i]))
        passed = ", ".join(f"ptr %{base}" for base in self.bases)
        cases = " ".join(f"i64 {c}, label %c{c}" for c in range(classes))
        steps = "\n".join(
            f"c{c}:\n  call void @{self.prefix}step{s}.{c}.{w.suffix}({passed})\n  br label %next"
            for c in range(classes)
        )
        body = "\n  ".join([*(line for lines in table for line in lines), *starts])
        return f"""define internal void @{self.prefix}sweep{s}.{w.suffix}(ptr %frame, ptr %data) noinline nounwind {{
entry:
  %integers = load ptr, ptr %data
  %params.p = getelementptr ptr, ptr %data, i64 1
  %params = load ptr, ptr %params.p
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp slt i64 %i, {count}
  br i1 %more, label %body, label %done
body:
  {body}
  switch i64 %class, label %next [ {cases} ]
{steps}
next:
  %i.next = add i64 %i, 1
  br label %test
done:
  ret void
}}
"""

    @staticmethod
    def _entry(name: str, start: int, index: str) -> list[str]:
        return [
            f"%{name}.i = add i64 {index}, {start}",
            f"%{name}.p = getelementptr i32, ptr %integers, i64 %{name}.i",
            f"%{name}.n = load i32, ptr %{name}.p",
            f"%{name} = sext i32 %{name}.n to i64",
        ]

    def _place(self, name: str, index: str, size: int, start: int) -> str:
        return (
            f"%{name}.j = mul i64 {index}, {self._offset(size)}\n"
            f"  %{name}.b = getelementptr i8, ptr %frame, i64 {self._offset(start)}\n"
            f"  %{name} = getelementptr i8, ptr %{name}.b, i64 %{name}.j"
        )
