"""C of a loop over steps (`compiler/ir/loop_nodes.Rollout`) of straight blocks.

    static void NAME(int steps, const double *x, const double *y, ptrdiff_t y_row, double *z,
                     ptrdiff_t z_row)

Arguments that are packed once are pointers; those of each step, and the samples, are pointers with
the distance between two rows, which may be 0 or negative. There is one sample a step. All values
are in one frame on the stack; nothing is allocated.
"""

from __future__ import annotations

from collections.abc import Iterator

from psiphi._util.errors import StateError
from psiphi.backends.c.c_lines import Dialect, max_live_values, segment_lines
from psiphi.backends.c.c_loops import angle_loop, plain_function
from psiphi.compiler.ir.block_frame import PlacedBlock
from psiphi.compiler.ir.loop_nodes import Rollout
from psiphi.compiler.ir.segments import Segment

Lines = Iterator[str]


class RolloutCode:
    """The C of a rollout, and the size of its frame."""

    def __init__(self, rollout: Rollout):
        blocks = rollout.frame.blocks
        names = (*rollout.prologue, *rollout.order)
        if rollout.repeats or not all(isinstance(blocks[name], PlacedBlock) for name in names):
            raise StateError(
                "C is written for loops over straight blocks, and this one has others",
                "use a robot of up to 64 bodies",
            )
        self.rollout = rollout
        self.placed = {
            name: block for name in names if isinstance(block := blocks[name], PlacedBlock)
        }

    @property
    def frame_size(self) -> int:
        """Numbers in the frame."""
        return self.rollout.frame.size

    @property
    def max_live(self) -> int:
        """Numbers live at a time besides the frame, at most."""
        segments = [s for block in self.placed.values() for s in block.segments]
        return max(
            max_live_values(s.tape, s.nodes, [store.node for store in s.stores]) for s in segments
        )

    @property
    def parameters(self) -> list[tuple[str, bool, bool]]:
        """(place, whether it has a row for each step, whether it is a result)."""
        rollout = self.rollout
        return [
            *((name, False, False) for name in rollout.packed_once),
            *((name, True, False) for name in rollout.packed_per_step),
            *((name, True, True) for name in rollout.sampled),
        ]

    def declaration(self, name: str, dialect: Dialect) -> str:
        """The head of the function."""
        words = ["int steps"]
        for place, has_rows, is_result in self.parameters:
            words.append(
                f"{'' if is_result else 'const '}{dialect.real} *{_word(place, is_result)}"
            )
            if has_rows:
                words.append(f"ptrdiff_t {_word(place, is_result)}_row")
        return f"static void {name}({', '.join(words)})"

    def lines(self, name: str, dialect: Dialect) -> Lines:
        """The functions of the blocks, and the loop."""
        for block in self.placed.values():
            yield from _block(f"{name}_{block.name}", block, dialect)
        sizes, places = self.rollout.frame.sizes, self.rollout.frame.places
        yield self.declaration(name, dialect)
        yield "{"
        yield f"    {dialect.real} frame[{self.frame_size}];"
        for place in self.rollout.packed_once:
            yield from _copy(f"frame[{places[place]} + i]", f"{_word(place)}[i]", sizes[place], 4)
        yield from (f"    {name}_{block}(frame);" for block in self.rollout.prologue)
        yield "    for (int step = 0; step < steps; ++step) {"
        for place in self.rollout.packed_per_step:
            source = f"{_word(place)}[(step * {_word(place)}_row) + i]"
            yield from _copy(f"frame[{places[place]} + i]", source, sizes[place], 8)
        for block in self.rollout.order:
            when = self.rollout.conditions.get(block)
            test = "" if when is None else f"if (frame[{places[when]}] != 0.0{dialect.suffix}) "
            yield f"        {test}{name}_{block}(frame);"
        for place in self.rollout.sampled:
            word = _word(place, True)
            target = f"{word}[(step * {word}_row) + i]"
            yield from _copy(target, f"frame[{places[place]} + i]", sizes[place], 8)
        yield "    }"
        yield "}"
        yield ""


def _word(place: str, is_result: bool = False) -> str:
    """The name of a parameter: no name of a local variable, and none twice."""
    return f"{'to' if is_result else 'of'}_{place}"


def _block(name: str, block: PlacedBlock, dialect: Dialect) -> Lines:
    """NAME(frame): the segments of a block, one after the other.

    Several segments are called through a table: otherwise a compiler would inline them into one
    function again.
    """
    parameter = [f"{dialect.real} *frame"]
    front, *others = block.segments
    segments: list[Segment] = [front, *others] if block.angles else others
    segments = [segment for segment in segments if segment.stores or segment is front]
    if len(segments) == 1 and not block.angles and not segments[0].angles:
        yield from plain_function(name, parameter, segment_lines(segments[0], dialect))
        return
    for i, segment in enumerate(segments):
        yield from plain_function(f"{name}_part{i}", parameter, segment_lines(segment, dialect))
    count = len(segments)
    yield f"static void (*const {name}_parts[{count}])({dialect.real} *frame) = {{"
    yield from (f"    {name}_part{i}," for i in range(count))
    yield "};"
    yield ""
    yield f"static void {name}({dialect.real} *frame)"
    yield "{"
    for i, segment in enumerate(segments):
        if segment.angles:
            yield from (f"    {line}" for line in angle_loop(segment, dialect))
        yield f"    {name}_parts[{i}](frame);"
        if segment is front and block.angles:
            yield from (f"    {line}" for line in angle_loop(block, dialect))
    yield "}"
    yield ""


def _copy(target: str, source: str, size: int, indent: int) -> Lines:
    space = " " * indent
    yield f"{space}for (int i = 0; i < {size}; ++i) {{"
    yield f"{space}    {target} = {source};"
    yield f"{space}}}"
