"""A rollout as LLVM IR: the loop over steps inside the loop over groups of lanes, the state in one frame on the stack.

    rollout(ptr call)     call: n, steps, every, then for every array its address and strides (element, row, column) in bytes

Arrays come in the order of the plan: what is packed once, what is packed every step (row: the step), then the samples (row:
the sample). One element runs on plain doubles, more in lanes; padding lanes repeat the last element.
"""

from __future__ import annotations

from psiphi.backends.cpu.gufunc_kernel import Kernel, declarations, frame_memory, side_by_side
from psiphi.backends.cpu.input_pack import behind_tiles, pack, unpack
from psiphi.backends.cpu.loop_kernel import rolled_text, tables
from psiphi.backends.cpu.straight_kernel import angles
from psiphi.backends.llvm.llvm_emitter import Width, function
from psiphi.backends.llvm.register_spills import segment_function
from psiphi.backends.llvm.sincos import sincos, sincos_loop
from psiphi.compiler.ir.block_frame import (
    BlockFrame,
    BlockSequence,
    FrameCopy,
    LoopBlock,
    Named,
    PlacedBlock,
)
from psiphi.compiler.ir.loop_nodes import Repeat, Rollout, SingleStep
from psiphi.compiler.sweeps.stage_loops import StagedCode

WORDS = 4  # of an array in `call`
COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


def rollout_module(rollout: Rollout, lanes: int, fma: bool, registers: int = 0) -> str:
    """The IR of one rollout for single elements and for `lanes` at a time."""
    widths = [Width("double", count, registers) for count in sorted({1, lanes})]
    blocks = rollout.frame.blocks.values()
    loops = [block for block in blocks if isinstance(block, LoopBlock) and block.text == block.name]
    parts = [
        declarations(widths),
        COPY,
        *(tables(block.rolled, block.name, "double") for block in loops),
    ]
    for w in widths:
        inward, outward = (
            [rollout.frame.sizes[name] for name in names]
            for names in (rollout.once + rollout.each, rollout.sample)
        )
        parts += [sincos(w), sincos_loop(w), pack(w, inward), unpack(w, outward)]
        parts += [_text(block, w, fma) for block in blocks]
        parts += [_repeat(repeat, rollout.frame, w) for repeat in rollout.repeats]
        parts += [
            _rarely(name, rollout.frame.places[when], w) for name, when in rollout.where.items()
        ]
        parts.append(_range(rollout, w))
    return "\n".join([*parts, _door(widths)])


def staged_kernel(staged: StagedCode, fma: bool) -> Kernel:
    """The gufunc loop of stages, loops over links among them."""
    named: Named = {name: (code, at) for name, code, at in staged.blocks}
    program = staged.program
    return single_kernel(
        SingleStep(BlockFrame(named), tuple(named), program.inputs, program.outputs), fma
    )


def single_kernel(single: SingleStep, fma: bool) -> Kernel:
    """Its gufunc loop."""
    blocks = single.frame.blocks.values()
    loops = [block for block in blocks if isinstance(block, LoopBlock) and block.text == block.name]

    def text(w: Width) -> str:
        shared = (
            [COPY, *(tables(block.rolled, block.name, w.fp) for block in loops)]
            if loops and w.lanes == 1
            else []
        )
        calls = [f"call void @{name}.{w.suffix}(ptr %frame)" for name in single.order]
        own = (_text(block, w, fma) for block in blocks)
        return "\n".join([*shared, *own, function(f"block.{w.suffix}", ["frame", "data"], calls)])

    inputs, outputs = (
        side_by_side(group, [single.frame.places[arg.name] for arg in group])
        for group in (single.inputs, single.outputs)
    )
    return Kernel(inputs, outputs, single.frame.size, text)


def _text(block: PlacedBlock | BlockSequence | LoopBlock, w: Width, fma: bool) -> str:
    """@<block>.<suffix>(ptr frame)."""
    if isinstance(block, LoopBlock):
        return _loops(block, w, fma)
    if isinstance(block, PlacedBlock):
        return _straight(block, w, fma, ["frame"])
    each = [
        part
        for tape in block.parts
        for part in (_straight(tape, w, fma, ["frame", "q", "v"]), _over_joints(tape, w))
    ]
    calls = [f"call void @{tape.name}.joints.{w.suffix}(ptr %frame)" for tape in block.parts]
    return "\n".join([*each, function(f"{block.name}.{w.suffix}", ["frame"], calls)])


def _straight(block: PlacedBlock, w: Width, fma: bool, bases: list[str]) -> str:
    """The arguments of sines and cosines, these in a loop, then the rest."""
    passed = ", ".join(f"ptr %{base}" for base in bases)
    text = [segment_function(f"{s.name}.{w.suffix}", bases, s, w, fma=fma) for s in block.segments]
    front, *segments = block.segments
    call = lambda s: f"call void @{s.name}.{w.suffix}({passed})"  # noqa: E731
    calls = [call(front), *angles(block, w, "first")] if block.angles else []
    text = text if block.angles else text[1:]
    for n, s in enumerate(segments):
        calls += [*(angles(s, w, f"first{n}") if s.angles else ()), call(s)]
    return "\n".join([*text, function(f"{block.name}.{w.suffix}", bases, calls)])


def _over_joints(block: PlacedBlock, w: Width) -> str:
    """@<block>.joints: the tape at one joint after the other."""
    n = len(block.joints)
    offsets = ", ".join(f"i64 {x * w.bytes}" for joint in block.joints for x in joint)
    return f"""@{block.name}.places.{w.suffix} = internal constant [{2 * n} x i64] [{offsets}]
define internal void @{block.name}.joints.{w.suffix}(ptr %frame) noinline nounwind {{
entry:
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %i.next, %body ]
  %more = icmp slt i64 %i, {2 * n}
  br i1 %more, label %body, label %done
body:
  %i.v = add i64 %i, 1
  %q.p = getelementptr i64, ptr @{block.name}.places.{w.suffix}, i64 %i
  %v.p = getelementptr i64, ptr @{block.name}.places.{w.suffix}, i64 %i.v
  %q.at = load i64, ptr %q.p
  %v.at = load i64, ptr %v.p
  %q = getelementptr i8, ptr %frame, i64 %q.at
  %v = getelementptr i8, ptr %frame, i64 %v.at
  call void @{block.name}.{w.suffix}(ptr %frame, ptr %q, ptr %v)
  %i.next = add i64 %i, 2
  br label %test
done:
  ret void
}}
"""


def _loops(block: LoopBlock, w: Width, fma: bool) -> str:
    """@<block> in loops: its arguments copied to a frame of its own, and back."""

    def copy(move: FrameCopy, number: int) -> list[str]:
        source, target, count = (x * w.bytes for x in move)
        return [
            f"%from{number} = getelementptr i8, ptr %frame, i64 {source}",
            f"%to{number} = getelementptr i8, ptr %frame, i64 {target}",
            f"call void @llvm.memcpy.p0.p0.i64(ptr %to{number}, ptr %from{number}, i64 {count}, i1 false)",
        ]

    copies = [copy(move, i) for i, move in enumerate((*block.before, *block.after))]
    inside = [
        f"%own = getelementptr i8, ptr %frame, i64 {block.start * w.bytes}",
        f"call void @{block.text}.block.{w.suffix}(ptr %own, ptr @{block.text}.tables)",
    ]
    before, after = copies[: len(block.before)], copies[len(block.before) :]
    lines = [
        *(x for lines in before for x in lines),
        *inside,
        *(x for lines in after for x in lines),
    ]
    text = [rolled_text(block.rolled, w, fma, f"{block.name}.")] if block.text == block.name else []
    return "\n".join([*text, function(f"{block.name}.{w.suffix}", ["frame"], lines)])


def _repeat(repeat: Repeat, frame: BlockFrame, w: Width) -> str:
    """@<name>(ptr frame)."""
    call = {name: f"call void @{name}.{w.suffix}(ptr %frame)" for name in repeat.blocks}
    before = "\n  ".join(call[name] for name in repeat.before)
    return f"""define internal void @{repeat.name}.{w.suffix}(ptr %frame) noinline nounwind {{
  {call[repeat.look]}
  {_any(w, "hit", frame.places[repeat.when], "one", 0.0)}
  br i1 %hit.any, label %begin, label %done
begin:
  {before}
  br label %again
again:
  %k = phi i64 [ 0, %begin ], [ %k.next, %again ]
  {call[repeat.again]}
  {_any(w, "moving", frame.places[repeat.done], "olt", 1.0)}
  %k.next = add i64 %k, 1
  %early = icmp slt i64 %k.next, {repeat.most}
  %more = and i1 %moving.any, %early
  br i1 %more, label %again, label %end
end:
  {call.get(repeat.after, "")}
  br label %done
done:
  ret void
}}
"""


def _rarely(name: str, place: int, w: Width) -> str:
    """@<name>.where(ptr frame): the block, if the place is not 0 in some lane; in the others it changes nothing."""
    return f"""define internal void @{name}.where.{w.suffix}(ptr %frame) noinline nounwind {{
  {_any(w, "need", place, "une", 0.0)}
  br i1 %need.any, label %do, label %done
do:
  call void @{name}.{w.suffix}(ptr %frame)
  br label %done
done:
  ret void
}}
"""


def _any(w: Width, name: str, place: int, test: str, value: float) -> str:
    """%<name>.any: whether the place passes the test in any lane."""
    bools = f"<{w.lanes} x i1>"
    lines = [
        f"%{name}.at = getelementptr i8, ptr %frame, i64 {place * w.bytes}",
        f"%{name}.value = load {w.type}, ptr %{name}.at, align {w.bytes}",
        f"%{name}.each = fcmp {test} {w.type} %{name}.value, {w.constant(value)}",
    ]
    if w.lanes == 1:
        lines.append(f"%{name}.any = and i1 %{name}.each, true")
    else:
        lines.append(f"%{name}.bits = bitcast {bools} %{name}.each to i{w.lanes}")
        lines.append(f"%{name}.any = icmp ne i{w.lanes} %{name}.bits, 0")
    return "\n  ".join(lines)


def _door(widths: list[Width]) -> str:
    scalar, wide = widths[0].suffix, widths[-1].suffix
    return f"""define void @rollout(ptr %call) nounwind {{
  %n = load i64, ptr %call
  %single = icmp eq i64 %n, 1
  br i1 %single, label %one, label %many
one:
  call void @range.{scalar}(ptr %call)
  ret void
many:
  call void @range.{wide}(ptr %call)
  ret void
}}
"""


class _Array:
    """One array of the call: its registers, and the lines that move one row of it."""

    def __init__(self, frame: BlockFrame, w: Width, index: int, name: str):
        self.index, self.w = index, w
        self.cells, self.offset = frame.sizes[name], frame.places[name] * w.bytes

    def load(self) -> list[str]:
        i, lines = self.index, []
        for word, (what, kind) in enumerate(
            (("base", "ptr"), ("outer", "i64"), ("row", "i64"), ("column", "i64"))
        ):
            lines.append(f"%{what}p{i} = getelementptr i64, ptr %call, i64 {3 + WORDS * i + word}")
            lines.append(f"%{what}{i} = load {kind}, ptr %{what}p{i}")
        return lines

    def move(self, verb: str, row: str) -> list[str]:
        """Pack or unpack row %row of the elements from %i on."""
        i = self.index
        return [
            f"%jump{i} = mul i64 %i, %outer{i}",
            f"%down{i} = mul i64 {row}, %row{i}",
            f"%way{i} = add i64 %jump{i}, %down{i}",
            f"%at{i} = getelementptr i8, ptr %base{i}, i64 %way{i}",
            f"%place{i} = getelementptr i8, ptr %frame, i64 {self.offset}",
            f"call void @{verb}.{self.w.suffix}(ptr %at{i}, ptr %place{i}, i64 1, i64 {self.cells}, "
            f"i64 %outer{i}, i64 0, i64 %column{i}, i64 %count, {behind_tiles(verb, self.w, self.cells)})",
        ]


def _range(rollout: Rollout, w: Width) -> str:
    names = [*rollout.once, *rollout.each, *rollout.sample]
    arrays = [_Array(rollout.frame, w, i, name) for i, name in enumerate(names)]
    first, last = len(rollout.once), len(names) - len(rollout.sample)
    once, each, out = arrays[:first], arrays[first:last], arrays[last:]
    take, give = frame_memory(rollout.frame.size * w.bytes)
    n = "\n  "
    lines = {
        "load": n.join([line for array in arrays for line in array.load()] + take),
        "once": n.join(line for array in once for line in array.move("pack", "0")),
        "each": n.join(line for array in each for line in array.move("pack", "%s")),
        "out": n.join(line for array in out for line in array.move("unpack", "%sample")),
        "first": n.join(f"call void @{name}.{w.suffix}(ptr %frame)" for name in rollout.first),
        "step": n.join(
            f"call void @{name}{'.where' * (name in rollout.where)}.{w.suffix}(ptr %frame)"
            for name in rollout.order
        ),
    }
    return LOOP.format(suffix=w.suffix, lanes=w.lanes, give=n.join(give), **lines)


LOOP = """define internal void @range.{suffix}(ptr %call) nounwind {{
entry:
  %n = load i64, ptr %call
  %stepsp = getelementptr i64, ptr %call, i64 1
  %steps = load i64, ptr %stepsp
  %everyp = getelementptr i64, ptr %call, i64 2
  %every = load i64, ptr %everyp
  {load}
  br label %groups
groups:
  %i = phi i64 [ 0, %entry ], [ %i.next, %group.done ]
  %left = sub i64 %n, %i
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %group, label %done
group:
  %full = icmp sge i64 %left, {lanes}
  %count = select i1 %full, i64 {lanes}, i64 %left
  {once}
  {first}
  br label %steps.test
steps.test:
  %s = phi i64 [ 0, %group ], [ %s.next, %step.done ]
  %due = phi i64 [ %every, %group ], [ %due.next, %step.done ]
  %sample = phi i64 [ 0, %group ], [ %sample.next, %step.done ]
  %running = icmp slt i64 %s, %steps
  br i1 %running, label %step, label %group.done
step:
  {each}
  {step}
  %due.less = sub i64 %due, 1
  %now = icmp eq i64 %due.less, 0
  br i1 %now, label %store, label %step.done
store:
  {out}
  %sample.up = add i64 %sample, 1
  br label %step.done
step.done:
  %due.next = phi i64 [ %due.less, %step ], [ %every, %store ]
  %sample.next = phi i64 [ %sample, %step ], [ %sample.up, %store ]
  %s.next = add i64 %s, 1
  br label %steps.test
group.done:
  %i.next = add i64 %i, {lanes}
  br label %groups
done:
  {give}
  ret void
}}
"""
