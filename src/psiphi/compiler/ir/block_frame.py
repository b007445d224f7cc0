"""Many blocks joined in one frame: where the values of a compiled step stand.

One frame, a place for every argument of every block, and scratch for all in turn.

Straight blocks work on the places themselves; a block spread over the joints of a large robot has one tape for each kind of
joint, which finds the joint's coordinates at %q and %v. Sweeps in loops have a layout of their own in the scratch: arguments
are copied there and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from psiphi.compiler.ir.loop_tables import loop_frame
from psiphi.compiler.ir.segments import Segment, Store, cut
from psiphi.compiler.sweeps.link_loops import LinkLoops
from psiphi.compiler.sweeps.sweep_program import Program
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op
from psiphi.compiler.tape.tape import Count, operands

WHOLE = 1 << 60  # never cut
FrameCopy = tuple[int, int, int]  # from, to, how many values


@dataclass(frozen=True)
class PerJointBlock:
    """One block of a large robot, joint by joint: a tape for each kind of joint, and where its joints stand in q and v."""

    program: Program
    kinds: tuple[tuple[StraightCode, tuple[tuple[int, int], ...]], ...]

    @property
    def count(self) -> Count:
        return sum((tape.count * len(places) for tape, places in self.kinds), Count())


Code = StraightCode | LinkLoops | PerJointBlock  # robots of more than 64 bodies are loops
Named = dict[
    str, tuple[Code, dict[str, str]]
]  # {block: (tape, {its argument: place})}, others keep their names


@dataclass(frozen=True)
class PlacedBlock:
    """A straight block whose values stand in the common frame."""

    name: str
    segments: tuple[Segment, ...]
    angles: int
    angle_base: int
    scratch: int
    joints: tuple[
        tuple[int, int], ...
    ] = ()  # where it runs, one after the other, in q and v; none: once

    @property
    def is_sound(self) -> bool:
        """Whether no segment reads an input where one before it wrote."""
        written: set[int] = set()
        for segment in self.segments:
            wanted = {o for node in segment.nodes for o in operands(segment.tape, node)} | {
                s.node for s in segment.stores
            }
            inputs = {node for node in wanted if segment.tape.nodes[node][0] is Op.LEAF}
            if any(segment.given[node][1] in written for node in inputs):
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
    """A block in loops: where its own frame begins, and what is copied before and after. `text` is the first of the blocks that
    are the same loops, which has their code."""

    name: str
    text: str
    rolled: LinkLoops
    start: int
    before: tuple[FrameCopy, ...]
    after: tuple[FrameCopy, ...]
    scratch: int


class BlockFrame:
    """The frame of some blocks."""

    def __init__(self, named: Named):
        self.named = named

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Numbers in each place, by name."""
        out: dict[str, int] = {}
        for code, at in self.named.values():
            out |= {
                at.get(arg.name, arg.name): arg.size
                for arg in (*code.program.inputs, *code.program.outputs)
            }
        return out

    @cached_property
    def places(self) -> dict[str, int]:
        """Offsets by name; "" is where scratch begins."""
        out, at = {}, 0
        for name, size in self.sizes.items():
            out[name] = at
            at += size
        return out | {"": at}

    @property
    def size(self) -> int:
        """Values in the whole frame."""
        return self.places[""] + max(block.scratch for block in self.blocks.values())

    @cached_property
    def blocks(self) -> dict[str, PlacedBlock | BlockSequence | LoopBlock]:
        return {name: self._block(name, *pair) for name, pair in self.named.items()}

    def _block(
        self, name: str, code: Code, at: dict[str, str]
    ) -> PlacedBlock | BlockSequence | LoopBlock:
        if isinstance(code, LinkLoops):
            return self._looped(name, code, at)
        if isinstance(code, PerJointBlock):
            each = ((f"{name}.{i}", tape, joints) for i, (tape, joints) in enumerate(code.kinds))
            return BlockSequence(
                name,
                tuple(self._placed(own, tape, at, WHOLE, joints) for own, tape, joints in each),
            )
        pieces = self._placed(name, code, at, 0)
        return pieces if pieces.is_sound else self._placed(name, code, at, WHOLE)

    def _placed(
        self, name: str, straight: StraightCode, at: dict[str, str], size: int, joints=()
    ) -> PlacedBlock:
        """The block's own layout moved: arguments to their places, everything else to the scratch."""
        pieces, program, move = cut(straight, size), straight.program, {}
        for args, offsets in (
            (program.inputs, pieces.layout.inputs),
            (program.outputs, pieces.layout.outputs),
        ):
            for arg, offset in zip(args, offsets, strict=True):
                home = self.places[at.get(arg.name, arg.name)]
                base = (
                    (arg.per_joint or "frame") if joints else "frame"
                )  # what an argument of one joint is found from
                move.update({offset + i: (base, home + i) for i in range(arg.size)})
        own = pieces.layout.size

        def moved(offset: int) -> tuple[str, int]:
            return move[offset] if offset in move else ("frame", self.places[""] + offset - own)

        def rebuilt(segment: Segment) -> Segment:
            stores = [Store(*moved(store.offset), store.node) for store in segment.stores]
            given = {node: moved(offset) for node, (_, offset) in segment.given.items()}
            base = moved(segment.angle_base)[1] if segment.angles else 0
            return Segment(
                f"{name}.{segment.name}",
                segment.tape,
                segment.nodes,
                stores,
                given,
                segment.angles,
                base,
            )

        segments = tuple(rebuilt(s) for s in (pieces.prologue, *pieces.segments))
        angles = moved(pieces.angle_base)[1] if pieces.angles else 0
        return PlacedBlock(name, segments, pieces.angles, angles, pieces.frame - own, joints)

    def _looped(self, name: str, rolled: LinkLoops, at: dict[str, str]) -> LoopBlock:
        (layout, size), start = loop_frame(rolled), self.places[""]
        inputs, outputs = (
            [
                (self.places[at.get(arg.name, arg.name)], start + place, arg.size)
                for arg, place in zip(group, offsets, strict=True)
            ]
            for group, offsets in (
                (rolled.program.inputs, layout.inputs),
                (rolled.program.outputs, layout.outputs),
            )
        )
        text = next(other for other, (code, _) in self.named.items() if code is rolled)
        return LoopBlock(
            name, text, rolled, start, tuple(inputs), tuple((b, a, n) for a, b, n in outputs), size
        )
