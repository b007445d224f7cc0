"""Several blocks in one frame of values: the memory of a compiled step.

The frame has a place for each argument of each block, then scratch memory that the blocks share.

A straight block reads and writes the places directly, as do random numbers, selections and lookups
(`lane_blocks.py`). A block over the joints of a large robot has
one tape for each joint type, which reads the coordinates of a joint at %q and %v. Loops over links
have their own layout in the scratch memory: their arguments are copied in, and their results out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from psiphi.compiler.ir.lane_blocks import TABLE, GridLookup, LaneCode
from psiphi.compiler.ir.loop_tables import frame_layout
from psiphi.compiler.ir.segments import UNSPLIT, Segment, Store, split_segments
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.sweep_program import Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Count, operands

FrameCopy = tuple[int, int, int]  # source, target, number of values


@dataclass(frozen=True)
class PerJointBlock:
    """A block of a large robot that runs once per joint: for each joint type a tape, and the
    offsets of its joints in q and v."""

    program: Program
    kinds: tuple[tuple[StraightCode, tuple[tuple[int, int], ...]], ...]

    @property
    def count(self) -> Count:
        return sum((tape.count * len(places) for tape, places in self.kinds), Count())


# loops over links or joints are for robots of more than 64 bodies
Code = StraightCode | LinkLoops | PerJointBlock | LaneCode
# {block: (code, {argument: place})}; the place of other arguments has the name of the argument
NamedBlocks = dict[str, tuple[Code, dict[str, str]]]


@dataclass(frozen=True)
class PlacedBlock:
    """A straight block with its values in the common frame.

    `joints`: the offsets in q and v at which it runs, one after the other; () to run once.
    """

    name: str
    segments: tuple[Segment, ...]
    angles: int
    angle_base: int
    scratch: int
    joints: tuple[tuple[int, int], ...] = ()

    @property
    def inputs_are_intact(self) -> bool:
        """Whether no segment reads an input that an earlier segment has overwritten."""
        written: set[int] = set()
        for segment in self.segments:
            wanted = {o for node in segment.nodes for o in operands(segment.tape, node)} | {
                s.node for s in segment.stores
            }
            inputs = {node for node in wanted if segment.tape.nodes[node][0] is Op.LEAF}
            if any(segment.loads[node][1] in written for node in inputs):
                return False
            written |= {store.offset for store in segment.stores}
        return True


@dataclass(frozen=True)
class BlockSequence:
    """Straight blocks that run one after the other."""

    name: str
    parts: tuple[PlacedBlock, ...]

    @property
    def scratch(self) -> int:
        return max(part.scratch for part in self.parts)


@dataclass(frozen=True)
class LoopBlock:
    """A block in loops over links: the start of its own frame, and the copies before and after it.

    Blocks with the same loops share the code of the first one, `code_name`.
    """

    name: str
    code_name: str
    rolled: LinkLoops
    start: int
    before: tuple[FrameCopy, ...]
    after: tuple[FrameCopy, ...]
    scratch: int


@dataclass(frozen=True)
class LaneBlock:
    """Code of `lane_blocks.py`, and the offset of each argument in the common frame."""

    name: str
    code: LaneCode
    places: dict[str, int]
    scratch: int = 0


AnyBlock = PlacedBlock | BlockSequence | LoopBlock | LaneBlock


class BlockFrame:
    """The common frame of some blocks."""

    def __init__(self, named: NamedBlocks):
        self.named = named

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The number of values in each place, by name."""
        out: dict[str, int] = {}
        for code, place in self.named.values():
            out |= {
                place.get(arg.name, arg.name): arg.size
                for arg in (*code.program.inputs, *code.program.outputs)
            }
        return out

    @cached_property
    def places(self) -> dict[str, int]:
        """The offset of each place, by name; "" is the start of the scratch memory."""
        out, offset = {}, 0
        for name, size in self.sizes.items():
            out[name] = offset
            offset += size
        return out | {"": offset}

    @cached_property
    def tables(self) -> frozenset[str]:
        """The places of references to tables, which are not copied to the frame."""
        lookups = (at for code, at in self.named.values() if isinstance(code, GridLookup))
        return frozenset(at.get(TABLE, TABLE) for at in lookups)

    @property
    def size(self) -> int:
        """The number of values in the frame."""
        return self.places[""] + max(block.scratch for block in self.blocks.values())

    @cached_property
    def blocks(self) -> dict[str, AnyBlock]:
        return {name: self._block(name, *pair) for name, pair in self.named.items()}

    def _block(self, name: str, code: Code, place: dict[str, str]) -> AnyBlock:
        if isinstance(code, LaneCode):
            arguments = (*code.program.inputs, *code.program.outputs)
            found = {x.name: self.places[place.get(x.name, x.name)] for x in arguments}
            return LaneBlock(name, code, found)
        if isinstance(code, LinkLoops):
            return self._loop_block(name, code, place)
        if isinstance(code, PerJointBlock):
            return BlockSequence(
                name,
                tuple(
                    self._placed_block(f"{name}.{i}", tape, place, UNSPLIT, joints)
                    for i, (tape, joints) in enumerate(code.kinds)
                ),
            )
        block = self._placed_block(name, code, place, 0)
        if not block.inputs_are_intact:
            block = self._placed_block(name, code, place, UNSPLIT)
        assert block.inputs_are_intact, f"{name} overwrites an input before it reads it"
        return block

    def _placed_block(
        self,
        name: str,
        straight: StraightCode,
        place: dict[str, str],
        size: int,
        joints: tuple[tuple[int, int], ...] = (),
    ) -> PlacedBlock:
        """The block with its arguments moved to their places, and all other values to scratch."""
        pieces, program, moves = split_segments(straight, size), straight.program, {}
        for args, offsets in (
            (program.inputs, pieces.layout.inputs),
            (program.outputs, pieces.layout.outputs),
        ):
            for arg, offset in zip(args, offsets, strict=True):
                target = self.places[place.get(arg.name, arg.name)]
                # the part of one joint is addressed from %q or %v
                base = (arg.per_joint or "frame") if joints else "frame"
                moves.update({offset + i: (base, target + i) for i in range(arg.size)})
        arguments = pieces.layout.size

        def moved(offset: int) -> tuple[str, int]:
            if offset in moves:
                return moves[offset]
            return "frame", self.places[""] + offset - arguments

        def rebuilt(segment: Segment) -> Segment:
            stores = [Store(*moved(store.offset), store.node) for store in segment.stores]
            loads = {node: moved(offset) for node, (_, offset) in segment.loads.items()}
            base = moved(segment.angle_base)[1] if segment.angles else 0
            return Segment(
                f"{name}.{segment.name}",
                segment.tape,
                segment.nodes,
                stores,
                loads,
                segment.angles,
                base,
            )

        segments = tuple(rebuilt(s) for s in (pieces.prologue, *pieces.segments))
        angles = moved(pieces.angle_base)[1] if pieces.angles else 0
        return PlacedBlock(name, segments, pieces.angles, angles, pieces.frame - arguments, joints)

    def _loop_block(self, name: str, rolled: LinkLoops, place: dict[str, str]) -> LoopBlock:
        (layout, size), start = frame_layout(rolled), self.places[""]
        inputs, outputs = (
            [
                (self.places[place.get(arg.name, arg.name)], start + offset, arg.size)
                for arg, offset in zip(group, offsets, strict=True)
            ]
            for group, offsets in (
                (rolled.program.inputs, layout.inputs),
                (rolled.program.outputs, layout.outputs),
            )
        )
        first = next(other for other, (code, _) in self.named.items() if code is rolled)
        return LoopBlock(
            name, first, rolled, start, tuple(inputs), tuple((b, a, n) for a, b, n in outputs), size
        )
