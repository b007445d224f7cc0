"""A tape as a CUDA kernel: one thread per state, with the numbers in its registers.

    kernel(arrays..., steps..., n)

`steps` are the bytes from one state of an input to the next, 0 if all states share one row. A warp
of 32 threads computes 32 consecutive states (`shared_memory.py` loads them). If one thread has too
few registers for a robot with limbs, several warps compute the same 32 states, one limb each
(`warp_team.py`); otherwise numbers are spilled to memory (`register_spills.py`).

The arithmetic is that of the CPU kernels, instruction by instruction, so the results have the same
bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Protocol

from psiphi.backends.cuda.constant_memory import with_constant_memory
from psiphi.backends.cuda.shared_memory import (
    SHARED_BYTES,
    STAGE_BYTES,
    ArrayRow,
    Block,
    SharedRows,
    copy_rows,
    prefetch_rows,
    row_pointer,
    state_indices,
    store_rows,
)
from psiphi.backends.cuda.warp_team import (
    CELLS,
    LANES,
    TeamSpills,
    WarpPartition,
    WarpTask,
    WarpTeam,
)
from psiphi.backends.llvm.angle_reduction import reduce_angle, sincos_any_angle
from psiphi.backends.llvm.llvm_emitter import Emitter, Width
from psiphi.backends.llvm.register_spills import SPILL_BASE, SpillEmitter
from psiphi.backends.llvm.sincos import bounded_sincos
from psiphi.compiler.ir.segments import Places, Segment, Store, angle_prologue, fused_products
from psiphi.compiler.ir.tape_fusion import FusedTape
from psiphi.compiler.sweeps.limbs import limbs_of
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import BINARY, Op
from psiphi.compiler.tape.tape import Tape

NAME = "psiphi_kernel"
CAPACITY = {"double": 120, "float": 240}  # numbers that fit into a thread's 255 registers
# numbers in registers if not all fit; the assembler needs some registers for its own schedule
SPILL_CAPACITY = {"double": 100, "float": 230}
TEAM_BLOCKS = 3  # per multiprocessor: while one waits for its trunk, the others run
TEAM_CAPACITY = {"double": 74, "float": 150}  # the same for a thread of a team


class KernelWrapper(Protocol):
    """The code around a kernel: on a GPU, or in tests on the CPU."""

    sync: str  # the line that synchronises the threads of a warp
    sync_all: str  # the line that synchronises the threads of a block
    processors: str  # the line that sets %processors (i64), the number of multiprocessors

    def prefetch(self, pointer: str) -> str:
        """The line that prefetches the memory at a pointer."""
        ...

    def kernel(self, pointers: list[str], numbers: list[str], body: list[str], block: Block) -> str:
        """The text of the kernel function.

        Its parameters are pointers (%<name>.array; those named in... are read only) and integers
        (%<name>, i64). The body uses %lane (i32), %warp (i64: which 32 states), %role (i32: which
        warp of a team) and %stage (ptr: shared memory). The first block is %entry.
        """
        ...


def kernel_module(
    code: StraightCode, fp: str, wrapper: KernelWrapper, small_batch: bool = False
) -> str:
    """The IR of one kernel; its first line describes the block.

    `small_batch`: for few states, which leave multiprocessors idle, several warps share each state
    of a robot with limbs, which takes less time.
    """
    w, tape = Width(fp, 1), _CutTape.of(code)
    kernel = _Kernel(code, tape, w, wrapper)
    if (
        (small_batch or kernel.spill_slots > CAPACITY[fp])
        and not kernel.staging.local_rows
        and (team := tape.team(code, w))
    ):
        kernel = _Kernel(code, tape, w, wrapper, team)
    rows = kernel.staging
    pointers = [row.name for row in (*rows.inputs, *rows.outputs)]
    numbers = [*(f"{row.name}.step" for row in rows.inputs), "n"]
    text = wrapper.kernel(pointers, numbers, kernel.body(), kernel.block)
    has_trig = any(code.tape.nodes[i][0] in (Op.SIN, Op.COS) for i in code.live)
    trig = (
        []
        if not has_trig
        else [sincos_any_angle(w)]
        if isinstance(code, FusedTape)
        else [reduce_angle(w), bounded_sincos(w)]
    )
    return with_constant_memory(
        "\n".join([f"; {kernel.block.header}", arithmetic_declarations(w), *trig, text]), w
    )


def arithmetic_declarations(w: Width) -> str:
    """Declarations of what tapes call."""
    kinds = [
        ("fma", w, 3),
        ("sqrt", w, 1),
        *([("fma", Width("double", 1), 3)] if w.fp == "float" else []),
    ]
    return "\n".join(
        f"declare {x.type} @llvm.{name}.{x.suffix}({', '.join([x.type] * n)})"
        for name, x, n in kinds
    )


class _Kernel:
    """The lines of a kernel, with one thread or with a team of warps per state."""

    def __init__(
        self,
        code: StraightCode,
        tape: _CutTape,
        w: Width,
        wrapper: KernelWrapper,
        team: WarpTeam | None = None,
    ):
        self.tape, self.w, self.wrapper, self.team = tape, w, wrapper, team
        cells = team.cells * LANES * w.bytes if team else 0
        stage_capacity = min(STAGE_BYTES, SHARED_BYTES - cells)
        self.staging = SharedRows.of(
            code.program.inputs, code.program.outputs, w, stage_capacity, team is not None
        )
        self.parts: list[tuple[_AngleEmitter, SpillEmitter]] = []
        for task in team.tasks if team else (None,):
            self.parts.append(self._part(task, self.parts[-1][1].count if self.parts else 0))
        words = max(spills.peak for _, spills in self.parts) * w.bytes // 4
        team_size, stage = len(self.parts), self.staging.stage_bytes + cells
        self.block = (
            Block(team_size, stage, team_size, TEAM_BLOCKS)
            if team
            else self.staging.block.with_registers(words)
        )

    @property
    def spill_slots(self) -> int:
        """How many spill slots a thread needs."""
        return max(spills.slot_count for _, spills in self.parts)

    def _part(self, task: WarpTask | None, count: int) -> tuple[_AngleEmitter, SpillEmitter]:
        """The lines of one warp: its angles, and the rest."""
        tape = self.tape
        angles = [
            (leaf, s)
            for leaf, s in zip(tape.angles, tape.first.stores, strict=True)
            if not task or leaf in task.phase
        ]
        emitter = _AngleEmitter(
            _restrict_segment(tape.first, [store for _, store in angles]),
            self.w,
            f".{len(self.parts)}",
        )
        emitter.count = count
        emitter.body()
        known = {leaf: emitter.names[store.node] for leaf, store in angles}
        spills: TeamSpills | SpillEmitter | None = None
        for table in (TEAM_CAPACITY,) if task else (CAPACITY, SPILL_CAPACITY):
            capacity = table[self.w.fp]
            spills = (
                TeamSpills(
                    tape.rest, self.w, task, self.wrapper.sync_all, capacity, tape.fused, known
                )
                if task
                else SpillEmitter(tape.rest, self.w, capacity, tape.fused, known=known)
            )
            spills.count = emitter.count
            spills.body()
            if not spills.slot_count:
                break
        assert spills is not None
        return emitter, spills

    def body(self) -> list[str]:
        rows, w, last = (*self.staging.inputs, *self.staging.outputs), self.w, len(self.parts) - 1
        lines = (
            [f"%{SPILL_BASE} = alloca [{self.spill_slots * w.bytes} x i8], align {w.bytes}"]
            if self.spill_slots
            else []
        )
        lines += [*state_indices(), *(line for row in rows for line in row_pointer(row, w))]
        if self.team:
            cases = " ".join(f"i32 {index}, label %role{index}" for index in range(last))
            lines += [
                f"%{CELLS}.way = mul i32 %lane, {w.bytes}",
                f"%{CELLS}.lane = add i32 %{CELLS}.way, {self.staging.stage_bytes}",
                f"%{CELLS}.at = zext i32 %{CELLS}.lane to i64",
                f"%{CELLS} = getelementptr i8, ptr %stage, i64 %{CELLS}.at",
                f"switch i32 %role, label %role{last} [ {cases} ]",
            ]
        for index, (angles, spills) in enumerate(self.parts):
            lines += [f"role{index}:"] if self.team else []
            lines += self._copy_rows(index, is_input=True)
            lines += [*angles.lines, *spills.lines]
            lines += self._copy_rows(index, is_input=False)
            lines += [
                line
                for row in self.staging.local_rows
                for line in store_rows(row, w, self.wrapper.sync)
            ]
            lines += ["br label %done"] if self.team else []
        return [*lines, *(["done:"] if self.team else [])]

    def _copy_rows(self, index: int, is_input: bool) -> list[str]:
        """Copy this warp's share of the staged rows, and synchronise before any row is read."""
        rows = [
            row
            for row in (self.staging.inputs if is_input else self.staging.outputs)
            if row.offset is not None
        ]
        sync = [self.wrapper.sync_all if self.team else self.wrapper.sync] if rows else []
        lines = (
            copy_rows(
                rows, self.w, is_input, index, len(self.parts), self._prefetches(rows, is_input)
            )
            if rows
            else []
        )
        return [*lines, *sync] if is_input else [*sync, *lines]

    def _prefetches(self, rows: list[ArrayRow], is_input: bool) -> list[str]:
        """Prefetch the rows that come half a round of all warps later; not for teams."""
        if self.team or not is_input:
            return []
        busy = self.block.min_blocks * self.block.warps
        turn = [self.wrapper.processors, f"%turn = mul i64 %processors, {busy // 2}"]
        return [*turn, *prefetch_rows(rows, self.w, "turn", self.wrapper.prefetch)]


class _AngleEmitter(Emitter):
    """The angles of a tape. If one exceeds 1e4, a separate branch subtracts whole turns from it.

    The sines and cosines of the kernel therefore need no branch. `mark` makes the labels unique.
    """

    def __init__(self, segment: Segment, width: Width, mark: str):
        super().__init__(segment, width)
        self.mark = mark

    def body(self) -> list[str]:
        """The lines; afterwards `names` has the reduced angles."""
        super().body()
        w = self.width
        angles, beyond = [self.value(store.node) for store in self.segment.stores], "false"
        for x in angles:
            is_large, any_large = self.new_register(), self.new_register()
            self.lines.append(f"{is_large} = call i1 @psiphi.beyond.{w.suffix}({w.type} {x})")
            self.lines.append(f"{any_large} = or i1 {beyond}, {is_large}")
            beyond = any_large
        if not angles:
            return self.lines
        reduced, m = [self.new_register() for _ in angles], self.mark
        self.lines += [
            f"br label %angles{m}",
            f"angles{m}:",
            f"br i1 {beyond}, label %far{m}, label %near{m}",
            f"far{m}:",
        ]
        self.lines += [
            f"{y} = call {w.type} @psiphi.less.{w.suffix}({w.type} {x})"
            for x, y in zip(angles, reduced, strict=True)
        ]
        self.lines += [f"br label %near{m}", f"near{m}:"]
        for store, x, y in zip(self.segment.stores, angles, reduced, strict=True):
            self.names[store.node] = self.new_register()
            self.lines.append(
                f"{self.names[store.node]} = phi {w.type} [ {x}, %angles{m} ], [ {y}, %far{m} ]"
            )
        return self.lines

    def _store(self, store: Store) -> None:
        self.value(store.node)


@dataclass(frozen=True)
class _CutTape:
    """A tape in two segments: its angles, with a store each, and the rest.

    In the rest each angle is a leaf, listed in `angles`. Leaves are in the rows of the inputs. In a
    fused tape angles may depend on other angles, so it stays one segment, without angles.
    """

    first: Segment
    rest: Segment
    angles: list[int]
    fused: frozenset[int]

    @staticmethod
    def of(code: StraightCode) -> _CutTape:
        tape, live, split = code.tape, code.live, Tape()
        place: Places = {
            i: (f"in{int(a)}", b) for i in live for op, a, b in [tape.nodes[i]] if op is Op.LEAF
        }
        if isinstance(code, FusedTape):
            stores = [Store(f"out{number}", index, node) for number, index, node in code.stores]
            whole = Segment("tape", tape, tape.operations(code.output_nodes), stores, place)
            return _CutTape(Segment("angles", tape, [], [], place), whole, [], code.fused)
        first, _ = angle_prologue(tape, live, place, "", 0)
        angles = {
            store.node: split.node(Op.LEAF, "angle", n) for n, store in enumerate(first.stores)
        }
        node_of: dict[int, int] = {}
        for i in live:
            op, a, b = tape.nodes[i]
            if op in (Op.SIN, Op.COS):
                node_of[i] = split.node(op, angles[a])
            elif op in (Op.LEAF, Op.CONST):
                node_of[i] = split.node(op, a, b)
            else:
                node_of[i] = split.node(op, node_of[a], node_of[b] if op in BINARY else None)
        stores = [
            Store(f"out{number}", index, node_of[node]) for number, index, node in code.stores
        ]
        loads = {node_of[i]: at for i, at in place.items()}
        nodes = split.operations(store.node for store in stores)
        fused = fused_products(split, nodes, (store.node for store in stores))
        return _CutTape(
            first,
            Segment("tape", split, nodes, stores, loads),
            list(angles.values()),
            frozenset(fused.values()),
        )

    def team(self, code: StraightCode, w: Width) -> WarpTeam | None:
        """The tape divided among warps by the limbs of the robot; None if it has none."""
        if code.tree is None:
            return None
        limb_of = limbs_of(code.tree)
        joints = {
            f"in{i}": limb_of.get(arg.per_joint, {}) for i, arg in enumerate(code.program.inputs)
        }
        columns = {
            f"out{i}": (arg.shape[-1] if arg.shape else 1, limb_of.get(arg.per_joint or "v", {}))
            for i, arg in enumerate(code.program.outputs)
        }

        def limbs(segment: Segment) -> dict[int, int]:
            return {
                leaf: 1 << joints[base][at]
                for leaf, (base, at) in segment.loads.items()
                if at in joints[base]
            }

        leaf_limbs, angle_limbs = limbs(self.rest), limbs(self.first)
        for leaf, store in zip(self.angles, self.first.stores, strict=True):
            leaf_limbs[leaf] = reduce(
                or_, (angle_limbs.get(x, 0) for x in self.first.tape.live([store.node])), 0
            )
        store_limbs = {}
        for store in self.rest.stores:
            size, limb = columns[store.base]
            if store.offset % size in limb:
                store_limbs[store] = 1 << limb[store.offset % size]
        return WarpPartition(self.rest, w, leaf_limbs, store_limbs, self.fused).team()


def _restrict_segment(segment: Segment, stores: list[Store]) -> Segment:
    """The part of a segment that these stores need."""
    live = set(segment.tape.live(store.node for store in stores))
    return replace(segment, nodes=[node for node in segment.nodes if node in live], stores=stores)
