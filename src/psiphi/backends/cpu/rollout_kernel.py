"""A rollout as LLVM IR: a loop over steps inside a loop over groups of lanes; one frame per group.

    rollout(ptr call)

`call` is n, steps, every, then for each array its address and its strides (element, row, column) in
bytes. The arrays are in the order of the `Rollout`: those packed once, those packed every step (one
row per step), then the samples (one row per sample). One element runs on plain doubles, more in
lanes; idle lanes of the last group repeat the last element. A module with one width runs all on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from psiphi.backends.cpu.gufunc_kernel import (
    Kernel,
    contiguous_arguments,
    declarations,
    frame_memory,
)
from psiphi.backends.cpu.input_pack import pack, tail_argument, unpack
from psiphi.backends.cpu.loop_kernel import loop_text, tables
from psiphi.backends.cpu.straight_kernel import angle_loop
from psiphi.backends.llvm.lane_functions import lane_function
from psiphi.backends.llvm.llvm_emitter import Width, internal_function
from psiphi.backends.llvm.register_spills import segment_function
from psiphi.backends.llvm.sincos import sincos, sincos_loop
from psiphi.compiler.ir.block_frame import (
    AnyBlock,
    BlockFrame,
    FrameCopy,
    LaneBlock,
    LoopBlock,
    NamedBlocks,
    PlacedBlock,
)
from psiphi.compiler.ir.loop_nodes import Repeat, Rollout, SingleStep
from psiphi.compiler.sweeps.stage_loops import StagedCode

WORDS_PER_ARRAY = 4  # of an array in `call`
MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


def rollout_module(rollout: Rollout, lanes: Sequence[int], fma: bool, registers: int = 0) -> str:
    """The IR of one rollout, for each of `lanes` elements at a time."""
    widths = [Width("double", count, registers) for count in lanes]
    blocks = rollout.frame.blocks.values()
    loops = [
        block for block in blocks if isinstance(block, LoopBlock) and block.code_name == block.name
    ]
    parts = [
        declarations(widths),
        MEMCPY,
        *(tables(block.rolled, block.name, "double") for block in loops),
    ]
    for w in widths:
        input_sizes, output_sizes = (
            [rollout.frame.sizes[name] for name in names if name not in rollout.frame.tables]
            for names in (rollout.packed_once + rollout.packed_per_step, rollout.sampled)
        )
        parts += [sincos(w), sincos_loop(w), *(_block_text(block, w, fma) for block in blocks)]
        parts += [pack(w, input_sizes), unpack(w, output_sizes)]
        parts += [_repeat(repeat, rollout, w) for repeat in rollout.repeats]
        parts += [
            _conditional_block(name, rollout.frame.places[when], w)
            for name, when in rollout.conditions.items()
        ]
        parts.append(_range_function(rollout, w))
    return "\n".join([*parts, _entry_function(widths)])


def staged_kernel(staged: StagedCode, fma: bool) -> Kernel:
    """The gufunc loop of several stages, some of which are loops over links."""
    named: NamedBlocks = {name: (code, at) for name, code, at in staged.blocks}
    program = staged.program
    return single_step_kernel(
        SingleStep(BlockFrame(named), tuple(named), program.inputs, program.outputs), fma
    )


def single_step_kernel(step: SingleStep, fma: bool) -> Kernel:
    """The gufunc loop of a single step."""
    blocks = step.frame.blocks.values()
    loops = [
        block for block in blocks if isinstance(block, LoopBlock) and block.code_name == block.name
    ]

    def shared(fp: str) -> list[str]:
        each = [tables(block.rolled, block.name, fp) for block in loops]
        return [MEMCPY, *each] if loops else []

    def text(w: Width) -> str:
        calls = [f"call void @{name}.{w.suffix}(ptr %frame)" for name in step.order]
        texts = (_block_text(block, w, fma) for block in blocks)
        return "\n".join([*texts, internal_function(f"block.{w.suffix}", ["frame", "data"], calls)])

    inputs, outputs = (
        contiguous_arguments(group, [step.frame.places[arg.name] for arg in group])
        for group in (step.inputs, step.outputs)
    )
    return Kernel(inputs, outputs, step.frame.size, text, shared)


def _block_text(block: AnyBlock, w: Width, fma: bool) -> str:
    """@<block>.<suffix>(ptr frame)."""
    if isinstance(block, LaneBlock):
        return lane_function(block, w)
    if isinstance(block, LoopBlock):
        return _loop_block(block, w, fma)
    if isinstance(block, PlacedBlock):
        return _straight_function(block, w, fma, ["frame"])
    each = [
        part
        for tape in block.parts
        for part in (_straight_function(tape, w, fma, ["frame", "q", "v"]), _joint_loop(tape, w))
    ]
    calls = [f"call void @{tape.name}.joints.{w.suffix}(ptr %frame)" for tape in block.parts]
    return "\n".join([*each, internal_function(f"{block.name}.{w.suffix}", ["frame"], calls)])


def _straight_function(block: PlacedBlock, w: Width, fma: bool, bases: list[str]) -> str:
    """Angles first, then a loop of sines and cosines, then the rest."""
    passed = ", ".join(f"ptr %{base}" for base in bases)
    text = [segment_function(f"{s.name}.{w.suffix}", bases, s, w, fma=fma) for s in block.segments]
    front, *segments = block.segments
    call = lambda s: f"call void @{s.name}.{w.suffix}({passed})"  # noqa: E731
    calls = [call(front), *angle_loop(block, w, "first")] if block.angles else []
    text = text if block.angles else text[1:]
    for n, s in enumerate(segments):
        calls += [*(angle_loop(s, w, f"first{n}") if s.angles else ()), call(s)]
    return "\n".join([*text, internal_function(f"{block.name}.{w.suffix}", bases, calls)])


def _joint_loop(block: PlacedBlock, w: Width) -> str:
    """@<block>.joints: runs the tape for one joint after the other."""
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


def _loop_block(block: LoopBlock, w: Width, fma: bool) -> str:
    """@<block> of loops over links, with copies of its arguments to its own frame and back."""

    def copy(move: FrameCopy, number: int) -> list[str]:
        source, target, count = (x * w.bytes for x in move)
        return [
            f"%from{number} = getelementptr i8, ptr %frame, i64 {source}",
            f"%to{number} = getelementptr i8, ptr %frame, i64 {target}",
            f"call void @llvm.memcpy.p0.p0.i64(ptr %to{number}, ptr %from{number}, "
            f"i64 {count}, i1 false)",
        ]

    copies = [copy(move, i) for i, move in enumerate((*block.before, *block.after))]
    inside = [
        f"%own = getelementptr i8, ptr %frame, i64 {block.start * w.bytes}",
        f"call void @{block.code_name}.block.{w.suffix}(ptr %own, ptr @{block.code_name}.tables)",
    ]
    before, after = copies[: len(block.before)], copies[len(block.before) :]
    lines = [
        *(x for lines in before for x in lines),
        *inside,
        *(x for lines in after for x in lines),
    ]
    text = (
        [loop_text(block.rolled, w, fma, f"{block.name}.")] if block.code_name == block.name else []
    )
    return "\n".join([*text, internal_function(f"{block.name}.{w.suffix}", ["frame"], lines)])


def _repeat(repeat: Repeat, rollout: Rollout, w: Width) -> str:
    """@<name>(ptr frame): look; if any lane needs it: before, `again` until done, after."""
    call, places = {name: _call(name, rollout, w) for name in repeat.blocks}, rollout.frame.places
    before, body = ("\n  ".join(call[x] for x in names) for names in (repeat.before, repeat.body))
    return f"""define internal void @{repeat.name}.{w.suffix}(ptr %frame) noinline nounwind {{
  {call[repeat.test]}
  {_any_lane(w, "hit", places[repeat.when], "one", 0.0)}
  br i1 %hit.any, label %begin, label %done
begin:
  {before}
  br label %again
again:
  %k = phi i64 [ 0, %begin ], [ %k.next, %again ]
  {body}
  {_any_lane(w, "moving", places[repeat.done], "olt", 1.0)}
  %k.next = add i64 %k, 1
  %early = icmp slt i64 %k.next, {repeat.limit}
  %more = and i1 %moving.any, %early
  br i1 %more, label %again, label %end
end:
  {call.get(repeat.after, "")}
  br label %done
done:
  ret void
}}
"""


def _call(block: str, rollout: Rollout, w: Width) -> str:
    """A call of a block, or of its conditional version."""
    name = f"{block}.where" if block in rollout.conditions else block
    return f"call void @{name}.{w.suffix}(ptr %frame)"


def _conditional_block(name: str, condition: int, w: Width) -> str:
    """@<name>.where(ptr frame): runs the block if `condition` is not 0 in any lane.

    The block changes nothing in lanes where the condition is 0.
    """
    return f"""define internal void @{name}.where.{w.suffix}(ptr %frame) noinline nounwind {{
  {_any_lane(w, "need", condition, "une", 0.0)}
  br i1 %need.any, label %do, label %done
do:
  call void @{name}.{w.suffix}(ptr %frame)
  br label %done
done:
  ret void
}}
"""


def _any_lane(w: Width, name: str, place: int, test: str, value: float) -> str:
    """%<name>.any: whether the number at `place` passes the test in any lane."""
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


def _entry_function(widths: list[Width]) -> str:
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
    """One array of the call: its registers and the lines that move one of its rows."""

    def __init__(self, frame: BlockFrame, w: Width, index: int, name: str):
        self.index, self.w, self.is_table = index, w, name in frame.tables
        self.cells, self.offset = frame.sizes[name], frame.places[name] * w.bytes

    def load(self) -> list[str]:
        i, lines = self.index, []
        for word, (what, kind) in enumerate(
            (("base", "ptr"), ("outer", "i64"), ("row", "i64"), ("column", "i64"))
        ):
            lines.append(
                f"%{what}p{i} = getelementptr i64, ptr %call, i64 {3 + WORDS_PER_ARRAY * i + word}"
            )
            lines.append(f"%{what}{i} = load {kind}, ptr %{what}p{i}")
        return lines

    def move(self, verb: str, row: str) -> list[str]:
        """Pack or unpack row `row` of the elements from %i on; of a table, store the reference."""
        i, tail = self.index, tail_argument(verb, self.w, self.cells)
        at = [
            f"%jump{i} = mul i64 %i, %outer{i}",
            f"%down{i} = mul i64 {row}, %row{i}",
            f"%way{i} = add i64 %jump{i}, %down{i}",
            f"%at{i} = getelementptr i8, ptr %base{i}, i64 %way{i}",
            f"%place{i} = getelementptr i8, ptr %frame, i64 {self.offset}",
        ]
        if self.is_table:
            return [
                *at,
                f"%stride.p{i} = getelementptr i8, ptr %place{i}, i64 {self.w.bytes}",
                f"%last.p{i} = getelementptr i8, ptr %place{i}, i64 {2 * self.w.bytes}",
                f"%last{i} = sub i64 %count, 1",
                f"store ptr %at{i}, ptr %place{i}",
                f"store i64 %outer{i}, ptr %stride.p{i}",
                f"store i64 %last{i}, ptr %last.p{i}",
            ]
        return [
            *at,
            f"call void @{verb}.{self.w.suffix}(ptr %at{i}, ptr %place{i}, i64 1, "
            f"i64 {self.cells}, i64 %outer{i}, i64 0, i64 %column{i}, i64 %count, {tail})",
        ]


def _range_function(rollout: Rollout, w: Width) -> str:
    names = [*rollout.packed_once, *rollout.packed_per_step, *rollout.sampled]
    arrays = [_Array(rollout.frame, w, i, name) for i, name in enumerate(names)]
    first, last = len(rollout.packed_once), len(names) - len(rollout.sampled)
    once, each, out = arrays[:first], arrays[first:last], arrays[last:]
    allocate, free = frame_memory(rollout.frame.size * w.bytes)
    n = "\n  "
    lines = {
        "load": n.join([line for array in arrays for line in array.load()] + allocate),
        "once": n.join(line for array in once for line in array.move("pack", "0")),
        "each": n.join(line for array in each for line in array.move("pack", "%s")),
        "out": n.join(line for array in out for line in array.move("unpack", "%sample")),
        "first": n.join(f"call void @{name}.{w.suffix}(ptr %frame)" for name in rollout.prologue),
        "step": n.join(_call(name, rollout, w) for name in rollout.order),
    }
    return LOOP.format(suffix=w.suffix, lanes=w.lanes, give=n.join(free), **lines)


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
