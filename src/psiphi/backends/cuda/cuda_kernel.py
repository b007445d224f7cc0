"""A tape as the kernel of a graphics card: one thread a state, the numbers in its registers.

    kernel(arrays..., steps..., n)     `steps`: bytes from one state of an input to the next, 0 where all share one row

A warp of 32 threads takes 32 states that follow each other (`shared_memory.py`: how it finds them). Where one thread has too few
registers for a robot with limbs, several warps take the same 32 states, a limb each (`warp_team.py`); where that does not help,
numbers wait in memory (`register_spills.py`).

The arithmetic is that of the host's kernels, instruction by instruction: same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Protocol

from psiphi.backends.cuda.constant_memory import banked
from psiphi.backends.cuda.shared_memory import (
    SHARED,
    STAGE,
    ArrayRow,
    Block,
    SharedRows,
    brought_out,
    fetched,
    moved,
    own_row,
    places,
)
from psiphi.backends.cuda.warp_team import (
    CELLS,
    LANES,
    TeamSpills,
    WarpPartition,
    WarpTask,
    WarpTeam,
)
from psiphi.backends.llvm.angle_reduction import fewer_turns, sincos_of_any
from psiphi.backends.llvm.llvm_emitter import Emitter, Width
from psiphi.backends.llvm.register_spills import BASE, SpillEmitter
from psiphi.backends.llvm.sincos import tame_sincos
from psiphi.compiler.ir.segments import Places, Segment, Store, angles_first, riders
from psiphi.compiler.ir.tape_fusion import FusedTape
from psiphi.compiler.sweeps.limbs import limbs_of
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import BINARY, Op
from psiphi.compiler.tape.tape import Tape

NAME = "psiphi_kernel"
ROOM = {
    "double": 120,
    "float": 240,
}  # numbers that fit into the registers of a thread, 255 of 32 bits,
REGISTERS = {
    "double": 100,
    "float": 230,
}  # and, where they do not, how many we hold: the assembler wants some to look ahead
TEAMS = 3  # blocks of teams at a time: while one waits for its trunk, others go on
HELD = {
    "double": 74,
    "float": 150,
}  # numbers that a thread of a team holds, since so many share the registers


class KernelWrapper(Protocol):
    """What is around a kernel: on a card, or, where kernels are tested, on this processor."""

    sync: str  # the line at which the threads of a warp wait for each other
    sync_all: str  # those of a block
    processors: str  # the line that says how many multiprocessors there are, as %processors (i64)

    def fetch(self, pointer: str) -> str:
        """The line that asks for the memory at a pointer, without waiting for it."""
        ...

    def kernel(self, pointers: list[str], numbers: list[str], body: list[str], block: Block) -> str:
        """The function of pointers (%<name>.array; those called in... are only read) and whole numbers (%<name>, i64), in which
        the body finds %lane (i32), %warp (i64, which 32 states), %role (i32) and %stage (ptr). Its first block is %entry."""
        ...


def device_module(code: StraightCode, fp: str, shell: KernelWrapper, few: bool = False) -> str:
    """The IR of one kernel; its first line says what a block is. For `few` states, which leave multiprocessors idle, a team
    shares each where the robot has limbs: it is done sooner."""
    w, tape = Width(fp, 1), _CutTape.of(code)
    kernel = _Kernel(code, tape, w, shell)
    if (
        (few or kernel.parks > ROOM[fp])
        and not kernel.staging.kept
        and (team := tape.team(code, w))
    ):
        kernel = _Kernel(code, tape, w, shell, team)
    staging = kernel.staging
    pointers = [row.name for row in (*staging.inputs, *staging.outputs)]
    numbers = [*(f"{row.name}.step" for row in staging.inputs), "n"]
    text = shell.kernel(pointers, numbers, kernel.body(), kernel.block)
    has_trig = any(code.tape.nodes[i][0] in (Op.SIN, Op.COS) for i in code.live)
    trig = (
        []
        if not has_trig
        else [sincos_of_any(w)]
        if isinstance(code, FusedTape)
        else [fewer_turns(w), tame_sincos(w)]
    )
    return banked("\n".join([f"; {kernel.block.text}", arithmetic(w), *trig, text]), w)


def arithmetic(w: Width) -> str:
    """What tapes call."""
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
    """The lines of a kernel: of one thread a state, or of a team."""

    def __init__(
        self,
        code: StraightCode,
        tape: _CutTape,
        w: Width,
        shell: KernelWrapper,
        team: WarpTeam | None = None,
    ):
        self.tape, self.w, self.shell, self.team = tape, w, shell, team
        cells = team.cells * LANES * w.bytes if team else 0
        room = min(STAGE, SHARED - cells)
        self.staging = SharedRows.of(
            code.program.inputs, code.program.outputs, w, room, team is not None
        )
        self.parts: list[tuple[_Angles, SpillEmitter]] = []
        for role in team.roles if team else (None,):
            self.parts.append(self._part(role, self.parts[-1][1].count if self.parts else 0))
        words = max(parking.most for _, parking in self.parts) * w.bytes // 4
        roles, stage = len(self.parts), self.staging.stage + cells
        self.block = (
            Block(roles, stage, roles, TEAMS) if team else self.staging.block.holding(words)
        )

    @property
    def parks(self) -> int:
        """How many numbers wait in memory at once."""
        return max(parking.places for _, parking in self.parts)

    def _part(self, role: WarpTask | None, count: int) -> tuple[_Angles, SpillEmitter]:
        """One warp's lines: its angles, and the rest."""
        tape = self.tape
        angles = [
            (leaf, s)
            for leaf, s in zip(tape.angles, tape.first.stores, strict=True)
            if not role or leaf in role.phase
        ]
        before = _Angles(
            _only(tape.first, [store for _, store in angles]), self.w, f".{len(self.parts)}"
        )
        before.count = count
        before.body()
        known = {leaf: before.names[store.node] for leaf, store in angles}
        for table in (HELD,) if role else (ROOM, REGISTERS):
            held = table[self.w.fp]
            parking = (
                TeamSpills(tape.rest, self.w, role, self.shell.sync_all, held, tape.fused, known)
                if role
                else SpillEmitter(tape.rest, self.w, held, tape.fused, known=known)
            )
            parking.count = before.count
            parking.body()
            if not parking.places:
                break
        return before, parking

    def body(self) -> list[str]:
        rows, w, last = (*self.staging.inputs, *self.staging.outputs), self.w, len(self.parts) - 1
        lines = (
            [f"%{BASE} = alloca [{self.parks * w.bytes} x i8], align {w.bytes}"]
            if self.parks
            else []
        )
        lines += [*places(), *(line for row in rows for line in own_row(row, w))]
        if self.team:
            cases = " ".join(f"i32 {r}, label %role{r}" for r in range(last))
            lines += [
                f"%{CELLS}.way = mul i32 %lane, {w.bytes}",
                f"%{CELLS}.lane = add i32 %{CELLS}.way, {self.staging.stage}",
                f"%{CELLS}.at = zext i32 %{CELLS}.lane to i64",
                f"%{CELLS} = getelementptr i8, ptr %stage, i64 %{CELLS}.at",
                f"switch i32 %role, label %role{last} [ {cases} ]",
            ]
        for r, (angles, parking) in enumerate(self.parts):
            lines += [f"role{r}:"] if self.team else []
            lines += self._moved(r, inwards=True)
            lines += [*angles.lines, *parking.lines]
            lines += self._moved(r, inwards=False)
            lines += [
                line for row in self.staging.kept for line in brought_out(row, w, self.shell.sync)
            ]
            lines += ["br label %done"] if self.team else []
        return [*lines, *(["done:"] if self.team else [])]

    def _moved(self, r: int, inwards: bool) -> list[str]:
        """This warp's share of the staged rows; none is read before all are there."""
        rows = [
            row
            for row in (self.staging.inputs if inwards else self.staging.outputs)
            if row.offset is not None
        ]
        sync = [self.shell.sync_all if self.team else self.shell.sync] if rows else []
        lines = (
            moved(rows, self.w, inwards, r, len(self.parts), self._ahead(rows, inwards))
            if rows
            else []
        )
        return [*lines, *sync] if inwards else [*sync, *lines]

    def _ahead(self, rows: list[ArrayRow], inwards: bool) -> list[str]:
        """What will be read half a turn of the card's warps from now; teams are busy with each other."""
        if self.team or not inwards:
            return []
        busy = self.block.least * self.block.warps
        turn = [self.shell.processors, f"%turn = mul i64 %processors, {busy // 2}"]
        return [*turn, *fetched(rows, self.w, "turn", self.shell.fetch)]


class _Angles(Emitter):
    """The angles of a tape. Where one is beyond the reach of the quick way, those that are get smaller by whole turns, aside of
    the straight road; no other line of the kernel asks. `mark` tells its labels from those of others."""

    def __init__(self, segment: Segment, width: Width, mark: str):
        super().__init__(segment, width)
        self.mark = mark

    def body(self) -> list[str]:
        """The lines; `names` has the angles then."""
        super().body()
        w = self.width
        angles, beyond = [self.value(store.node) for store in self.segment.stores], "false"
        for x in angles:
            one, both = self.fresh(), self.fresh()
            self.lines.append(f"{one} = call i1 @psiphi.beyond.{w.suffix}({w.type} {x})")
            self.lines.append(f"{both} = or i1 {beyond}, {one}")
            beyond = both
        if not angles:
            return self.lines
        less, m = [self.fresh() for _ in angles], self.mark
        self.lines += [
            f"br label %angles{m}",
            f"angles{m}:",
            f"br i1 {beyond}, label %far{m}, label %near{m}",
            f"far{m}:",
        ]
        self.lines += [
            f"{y} = call {w.type} @psiphi.less.{w.suffix}({w.type} {x})"
            for x, y in zip(angles, less, strict=True)
        ]
        self.lines += [f"br label %near{m}", f"near{m}:"]
        for store, x, y in zip(self.segment.stores, angles, less, strict=True):
            self.names[store.node] = self.fresh()
            self.lines.append(
                f"{self.names[store.node]} = phi {w.type} [ {x}, %angles{m} ], [ {y}, %far{m} ]"
            )
        return self.lines

    def _store(self, store: Store) -> None:
        self.value(store.node)


@dataclass(frozen=True)
class _CutTape:
    """The tape in two runs of nodes: its angles (a store each), and the rest, in which each is a leaf of its own, `angles`.
    Leaves stand in the rows of the inputs. Of several blocks that became one tape angles follow from other angles: none is
    known before, and all is one run."""

    first: Segment
    rest: Segment
    angles: list[int]
    fused: frozenset[int]

    @staticmethod
    def of(code: StraightCode) -> _CutTape:
        tape, live, own = code.tape, code.live, Tape()
        place: Places = {
            i: (f"in{int(a)}", b) for i in live for op, a, b in [tape.nodes[i]] if op is Op.LEAF
        }
        if isinstance(code, FusedTape):
            stores = [Store(f"out{number}", index, node) for number, index, node in code.stores]
            whole = Segment("tape", tape, tape.computed(code.ends), stores, place)
            return _CutTape(Segment("angles", tape, [], [], place), whole, [], code.fused)
        first, _ = angles_first(tape, live, place, "", 0)
        angles = {store.node: own.node(Op.LEAF, "angle", n) for n, store in enumerate(first.stores)}
        here: dict[int, int] = {}
        for i in live:
            op, a, b = tape.nodes[i]
            if op in (Op.SIN, Op.COS):
                here[i] = own.node(op, angles[a])
            elif op in (Op.LEAF, Op.CONST):
                here[i] = own.node(op, a, b)
            else:
                here[i] = own.node(op, here[a], here[b] if op in BINARY else None)
        stores = [Store(f"out{number}", index, here[node]) for number, index, node in code.stores]
        given = {here[i]: at for i, at in place.items()}
        nodes = own.computed(store.node for store in stores)
        riding = riders(own, nodes, (store.node for store in stores))
        return _CutTape(
            first,
            Segment("tape", own, nodes, stores, given),
            list(angles.values()),
            frozenset(riding.values()),
        )

    def team(self, code: StraightCode, w: Width) -> WarpTeam | None:
        """The tape shared among warps by the robot's limbs, where it has some."""
        if code.tree is None:
            return None
        known = limbs_of(code.tree)
        joints = {
            f"in{i}": known.get(arg.per_joint, {}) for i, arg in enumerate(code.program.inputs)
        }
        columns = {
            f"out{i}": (arg.shape[-1] if arg.shape else 1, known.get(arg.per_joint or "v", {}))
            for i, arg in enumerate(code.program.outputs)
        }

        def limbs(segment: Segment) -> dict[int, int]:
            return {
                leaf: 1 << joints[base][at]
                for leaf, (base, at) in segment.given.items()
                if at in joints[base]
            }

        follows, before = limbs(self.rest), limbs(self.first)
        for leaf, store in zip(self.angles, self.first.stores, strict=True):
            follows[leaf] = reduce(
                or_, (before.get(x, 0) for x in self.first.tape.live([store.node])), 0
            )
        serves = {}
        for store in self.rest.stores:
            size, limb = columns[store.base]
            if store.offset % size in limb:
                serves[store] = 1 << limb[store.offset % size]
        return WarpPartition(self.rest, w, follows, serves, self.fused).team()


def _only(segment: Segment, stores: list[Store]) -> Segment:
    """What these stores need of a segment."""
    live = set(segment.tape.live(store.node for store in stores))
    return replace(segment, nodes=[node for node in segment.nodes if node in live], stores=stores)
