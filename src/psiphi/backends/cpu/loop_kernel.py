"""Kernels in loops: one function per class of links, one loop per sweep, tables for the rest.

The frame holds the arguments, then a record per body (and one for the world), then an inbox per
body. `tables` points to two arrays, integers and parameters. The integers are, per body: the
parent, the first parameter, and the offset of the body's part in each kind of argument ("q", "v",
...); then the order and the classes of each sweep.
"""

from __future__ import annotations

from psiphi.backends.cpu.gufunc_kernel import Kernel, contiguous_arguments
from psiphi.backends.llvm.llvm_emitter import Width, internal_function
from psiphi.backends.llvm.register_spills import segment_function
from psiphi.compiler.ir.loop_tables import LoopTables, frame_layout, joint_parts
from psiphi.compiler.ir.segments import FrameLayout, Segment, Store
from psiphi.compiler.sweeps.link_loops import LinkClass, LinkLoops
from psiphi.compiler.tape.ops import Op


def loop_kernel(loops: LinkLoops, fma: bool = True) -> Kernel:
    """The kernel of a program in loops; set its @tables to `LoopTables(loops, dtype).address`."""
    program, (layout, size) = loops.program, frame_layout(loops)
    inputs, outputs = (
        contiguous_arguments(program.inputs, layout.inputs),
        contiguous_arguments(program.outputs, layout.outputs),
    )
    return Kernel(inputs, outputs, size, lambda width: loop_text(loops, width, fma))


def loop_text(loops: LinkLoops, width: Width, fma: bool, prefix: str = "") -> str:
    """The text of @<prefix>block.<suffix>(ptr frame, ptr data)."""
    layout = FrameLayout.of(loops.program.inputs, loops.program.outputs)
    return _Block(loops, layout, width, fma, prefix).text()


def tables(loops: LinkLoops, name: str, fp: str) -> str:
    """The text of @<name>.tables: the tables as constants, for code that is not given any."""
    data = LoopTables(loops, "d" if fp == "double" else "f")
    integers = ", ".join(f"i32 {x}" for x in data.integers.tolist())
    params = ", ".join(f"{fp} {Width(fp, 1).constant(x)}" for x in data.params.tolist())
    return f"""@{name}.integers = internal constant [{len(data.integers)} x i32] [{integers}]
@{name}.params = internal constant [{len(data.params)} x {fp}] [{params}]
@{name}.tables = internal constant [2 x ptr] [ptr @{name}.integers, ptr @{name}.params]
"""


class _Block:
    def __init__(self, loops: LinkLoops, layout: FrameLayout, width: Width, fma: bool, prefix: str):
        self.loops, self.layout, self.width, self.fma, self.prefix = (
            loops,
            layout,
            width,
            fma,
            prefix,
        )
        program = loops.program
        self.inputs = [(i, arg) for i, arg in enumerate(program.inputs) if arg.per_joint]
        self.outputs = [(i, arg) for i, arg in enumerate(program.outputs) if arg.per_joint]
        self.parts = joint_parts(loops)
        self.bases = ["frame", "here", "parent", "inbox", "up", "param"]
        self.bases += [f"in{i}" for i, _ in self.inputs] + [f"out{i}" for i, _ in self.outputs]

    def text(self) -> str:
        w, n = self.width, len(self.loops.tree.links)
        parts, calls = [], []
        start = (2 + len(self.parts)) * n
        for s, stage in enumerate(self.loops.sweeps):
            for c, cls in enumerate(stage.classes):
                parts.append(self._class(f"{self.prefix}step{s}.{c}.{w.suffix}", cls))
            parts.append(self._stage(s, start, len(stage.order), len(stage.classes)))
            calls.append(f"call void @{self.prefix}sweep{s}.{w.suffix}(ptr %frame, ptr %data)")
            start += 2 * len(stage.order)
        calls = [*self._clear_outputs(), *calls]
        if self.loops.finish is not None:
            parts.append(self._class(f"{self.prefix}finish.{w.suffix}", self.loops.finish))
            inbox = self._offset(self._inboxes() + n * self.loops.inbox_size)
            calls.append(f"%world = getelementptr i8, ptr %frame, i64 {inbox}")
            passed = ["ptr %world" if b == "inbox" else "ptr %frame" for b in self.bases]
            calls.append(f"call void @{self.prefix}finish.{w.suffix}({', '.join(passed)})")
        parts.append(internal_function(f"{self.prefix}block.{w.suffix}", ["frame", "data"], calls))
        return "\n".join(parts)

    def _clear_outputs(self) -> list[str]:
        """Set all outputs to zero, since no step may write some of them."""
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

    def _inboxes(self) -> int:
        return self.layout.size + (len(self.loops.tree.links) + 1) * self.loops.record_size

    def _class(self, name: str, cls: LinkClass) -> str:
        live = cls.tape.live(cls.outputs, cls.loads)
        nodes = [i for i in live if i not in cls.loads and cls.tape.nodes[i][0] is not Op.CONST]
        segment = Segment(name, cls.tape, nodes, [Store(*store) for store in cls.stores], cls.loads)
        return segment_function(name, self.bases, segment, self.width, fma=self.fma)

    def _stage(self, s: int, start: int, count: int, classes: int) -> str:
        w, n, r = self.width, len(self.loops.tree.links), self.loops
        table = [self._load_table("k", start, "%i"), self._load_table("class", start + count, "%i")]
        table += [
            self._load_table(name, column * n, "%k")
            for column, name in enumerate(("p", "first", *(f"of.{x}" for x in self.parts)))
        ]
        starts = [
            self._address("here", "%k", r.record_size, self.layout.size),
            self._address("parent", "%p", r.record_size, self.layout.size),
            self._address("inbox", "%k", r.inbox_size, self._inboxes()),
            self._address("up", "%p", r.inbox_size, self._inboxes()),
            f"%param = getelementptr {w.fp}, ptr %params, i64 %first",
        ]
        for name, group, offsets in (
            ("in", self.inputs, self.layout.inputs),
            ("out", self.outputs, self.layout.outputs),
        ):
            for i, arg in group:
                starts.append(self._address(f"{name}{i}", f"%of.{arg.per_joint}", 1, offsets[i]))
        passed = ", ".join(f"ptr %{base}" for base in self.bases)
        cases = " ".join(f"i64 {c}, label %c{c}" for c in range(classes))
        steps = "\n".join(
            f"c{c}:\n  call void @{self.prefix}step{s}.{c}.{w.suffix}({passed})\n  br label %next"
            for c in range(classes)
        )
        body = "\n  ".join([*(line for lines in table for line in lines), *starts])
        head = f"void @{self.prefix}sweep{s}.{w.suffix}(ptr %frame, ptr %data)"
        return f"""define internal {head} noinline nounwind {{
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
    def _load_table(name: str, start: int, index: str) -> list[str]:
        return [
            f"%{name}.i = add i64 {index}, {start}",
            f"%{name}.p = getelementptr i32, ptr %integers, i64 %{name}.i",
            f"%{name}.n = load i32, ptr %{name}.p",
            f"%{name} = sext i32 %{name}.n to i64",
        ]

    def _address(self, name: str, index: str, size: int, start: int) -> str:
        return (
            f"%{name}.j = mul i64 {index}, {self._offset(size)}\n"
            f"  %{name}.b = getelementptr i8, ptr %frame, i64 {self._offset(start)}\n"
            f"  %{name} = getelementptr i8, ptr %{name}.b, i64 %{name}.j"
        )
