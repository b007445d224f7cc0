"""C of code that is too long for one function: several functions over a frame, an array on the
stack.

A long tape is cut into segments (`segments.py`), which run one after the other. A large robot is
loops (`compiler/sweeps/link_loops.py`): one function per class of links, one loop per sweep, and
tables of numbers. Arguments are copied into the frame first and results out of it last, so that an
output may be the array of an input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from psiphi.backends.c.c_lines import Dialect, max_live_values, segment_lines
from psiphi.compiler.ir.block_frame import PlacedBlock
from psiphi.compiler.ir.loop_tables import LoopTables, joint_parts
from psiphi.compiler.ir.segments import FrameLayout, Segment, SegmentedCode, Store, split_segments
from psiphi.compiler.sweeps.link_loops import LinkClass, LinkLoops
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op

TABLE_COLUMNS = 16  # numbers per line of a table
Lines = Iterator[str]


class CutCode:
    """A long tape in several functions."""

    def __init__(self, straight: StraightCode):
        self.program, self.pieces = straight.program, split_segments(straight)

    @property
    def layout(self) -> FrameLayout:
        return self.pieces.layout

    @property
    def frame_size(self) -> int:
        """Numbers in the frame."""
        return self.pieces.frame

    @property
    def max_live(self) -> int:
        """Numbers live at a time besides the frame, at most."""
        return max(_max_live(piece) for piece in (self.pieces.prologue, *self.pieces.segments))

    @property
    def segments(self) -> list[Segment]:
        return [self.pieces.prologue, *self.pieces.segments]

    def helpers(self, name: str, dialect: Dialect) -> Lines:
        """The functions of the segments, and a table of them.

        If they were called by name, a compiler would inline them into one function again.
        """
        for i, piece in enumerate(self.segments):
            yield from plain_function(
                f"{name}_part{i}", [f"{dialect.real} *frame"], segment_lines(piece, dialect)
            )
        yield f"static void (*const {name}_parts[{len(self.segments)}])({dialect.real} *frame) = {{"
        yield from (f"    {name}_part{i}," for i in range(len(self.segments)))
        yield "};"
        yield ""

    def calls(self, name: str, dialect: Dialect) -> Lines:
        """The calls: loops over segments, with loops of sines and cosines between them."""
        rounds = [
            0,
            1,
            *(i for i, piece in enumerate(self.segments) if i > 1 and piece.angles),
            len(self.segments),
        ]
        for first, last in pairwise(dict.fromkeys(rounds)):
            yield from angle_loop(self.pieces if first == 1 else self.segments[first], dialect)
            yield f"for (int i = {first}; i < {last}; ++i) {{"
            yield f"    {name}_parts[i](frame);"
            yield "}"


class LoopedCode:
    """Loops over the links of a large robot."""

    def __init__(self, loops: LinkLoops):
        self.program, self.loops = loops.program, loops
        self.layout = FrameLayout.of(loops.program.inputs, loops.program.outputs)
        self.bodies = len(loops.tree.links)
        self.inboxes = self.layout.size + (self.bodies + 1) * loops.record_size

    @property
    def frame_size(self) -> int:
        return self.inboxes + (self.bodies + 1) * self.loops.inbox_size

    @property
    def max_live(self) -> int:
        return max(_max_live(_segment(c)) for c in self._classes())

    def _classes(self) -> Iterable[LinkClass]:
        finish = [] if self.loops.finish is None else [self.loops.finish]
        return [*(c for sweep in self.loops.sweeps for c in sweep.classes), *finish]

    def helpers(self, name: str, dialect: Dialect) -> Lines:
        """Tables, then a function for each class and each sweep."""
        tables, n = LoopTables(self.loops, "d" if dialect.real == "double" else "f"), self.bodies
        columns = ["parent", "first", *(f"of_{place}" for place in joint_parts(self.loops))]
        for i, column in enumerate(columns):
            yield from _table(
                f"{name}_{column}", "int", map(str, tables.integers[n * i : n * (i + 1)].tolist())
            )
        numbers = map(dialect.constant, tables.params.tolist() or [0.0])
        yield from _table(f"{name}_numbers", dialect.real, numbers)
        for s, sweep in enumerate(self.loops.sweeps):
            for c, cls in enumerate(sweep.classes):
                yield from _class_function(f"{name}_step{s}_{c}", cls, dialect)
            yield from _table(f"{name}_order{s}", "int", map(str, sweep.order))
            yield from _table(f"{name}_class{s}", "int", map(str, sweep.class_ids))
            yield from plain_function(
                f"{name}_sweep{s}", [f"{dialect.real} *frame"], self._loop(name, s, dialect)
            )
        if self.loops.finish is not None:
            yield from _class_function(f"{name}_finish", self.loops.finish, dialect)

    def _loop(self, name: str, s: int, dialect: Dialect) -> Lines:
        """One sweep: calls the function of each body's class with pointers to its operands."""
        sweep = self.loops.sweeps[s]
        bases = dict.fromkeys(base for c in sweep.classes for base in _bases(c))
        written = {base for c in sweep.classes for base, writes in _bases(c).items() if writes}
        yield f"for (int i = 0; i < {len(sweep.order)}; ++i) {{"
        yield f"    const int k = {name}_order{s}[i];"
        if bases.keys() & {"parent", "up"}:
            yield f"    const int p = {name}_parent[k];"
        for base in bases:
            if base != "frame":
                constant = "" if base in written else "const "
                yield f"    {constant}{dialect.real} *const {base} = {self._address(name, base)};"
        yield f"    switch ({name}_class{s}[i]) {{"
        for c, cls in enumerate(sweep.classes):
            last = "default" if c == len(sweep.classes) - 1 else f"case {c}"
            yield f"    {last}:"
            yield f"        {name}_step{s}_{c}({', '.join(_bases(cls))});"
            yield "        break;"
        yield "    }"
        yield "}"

    def _address(self, name: str, base: str) -> str:
        r, n = self.loops, self.layout.size
        addresses = {
            "here": f"&frame[{n} + ({r.record_size} * k)]",
            "parent": f"&frame[{n} + ({r.record_size} * p)]",
            "inbox": f"&frame[{self.inboxes} + ({r.inbox_size} * k)]",
            "up": f"&frame[{self.inboxes} + ({r.inbox_size} * p)]",
            "param": f"&{name}_numbers[{name}_first[k]]",
        }
        if base in addresses:
            return addresses[base]
        is_input = base.startswith("in")
        number = int(base.removeprefix("in" if is_input else "out"))
        arg = (self.program.inputs if is_input else self.program.outputs)[number]
        at = (self.layout.inputs if is_input else self.layout.outputs)[number]
        return f"&frame[{f'{at} + ' if at else ''}{name}_of_{arg.per_joint}[k]]"

    def calls(self, name: str, dialect: Dialect) -> Lines:
        first = self.layout.outputs[0]
        # no step may write some of the outputs
        yield f"for (int i = {first}; i < {self.layout.size}; ++i) {{"
        yield f"    frame[i] = 0.0{dialect.suffix};"
        yield "}"
        yield from (f"{name}_sweep{s}(frame);" for s in range(len(self.loops.sweeps)))
        if self.loops.finish is not None:
            world = f"&frame[{self.inboxes + self.bodies * self.loops.inbox_size}]"
            arguments = [
                "frame" if base == "frame" else world for base in _bases(self.loops.finish)
            ]
            yield f"{name}_finish({', '.join(arguments)});"


def framed_function(code: CutCode | LoopedCode, head: str, name: str, dialect: Dialect) -> Lines:
    """The helper functions, and the function: copy arguments in, run, copy results out."""
    yield from code.helpers(name, dialect)
    yield head
    yield "{"
    yield f"    {dialect.real} frame[{code.frame_size}];"
    for arg, at in zip(code.program.inputs, code.layout.inputs, strict=True):
        yield from _copy(arg, f"frame[{f'{at} + ' if at else ''}i]", f"{arg.name}[i]")
    yield from (f"    {line}" for line in code.calls(name, dialect))
    for arg, at in zip(code.program.outputs, code.layout.outputs, strict=True):
        yield from _copy(arg, f"{arg.name}[i]", f"frame[{at} + i]")
    yield "}"


def _copy(arg: Argument, target: str, source: str) -> Lines:
    yield f"    for (int i = 0; i < {arg.size}; ++i) {{"
    yield f"        {target} = {source};"
    yield "    }"


def angle_loop(block: SegmentedCode | Segment | PlacedBlock, dialect: Dialect) -> Lines:
    """A loop that writes sine and cosine after each angle of the frame."""
    if block.angles:
        first, end = block.angle_base, block.angle_base + 3 * block.angles
        yield f"for (int i = {first}; i < {end}; i += 3) {{"
        yield f"    frame[i + 1] = {dialect.functions[Op.SIN]}(frame[i]);"
        yield f"    frame[i + 2] = {dialect.functions[Op.COS]}(frame[i]);"
        yield "}"


def _class_function(name: str, cls: LinkClass, dialect: Dialect) -> Lines:
    parameters = [
        f"{'' if written else 'const '}{dialect.real} *{base}"
        for base, written in _bases(cls).items()
    ]
    yield from plain_function(name, parameters, segment_lines(_segment(cls), dialect))


def _segment(cls: LinkClass) -> Segment:
    live = cls.tape.live(cls.outputs, cls.loads)
    nodes = [i for i in live if i not in cls.loads and cls.tape.nodes[i][0] is not Op.CONST]
    return Segment("", cls.tape, nodes, [Store(*store) for store in cls.stores], cls.loads)


def _bases(cls: LinkClass) -> dict[str, bool]:
    """{pointer parameter of a class: whether it writes there}."""
    live = cls.tape.live(cls.outputs, cls.loads)
    read = {cls.loads[node][0]: False for node in live if node in cls.loads}
    return dict(sorted((read | {base: True for base, *_ in cls.stores}).items()))


def _max_live(segment: Segment) -> int:
    return max_live_values(segment.tape, segment.nodes, [store.node for store in segment.stores])


def plain_function(name: str, parameters: Iterable[str], body: Lines) -> Lines:
    """static void NAME(parameters) with these lines."""
    yield f"static void {name}({', '.join(parameters)})"
    yield "{"
    yield from (f"    {line}" for line in body)
    yield "}"
    yield ""


def _table(name: str, kind: str, numbers: Iterable[str]) -> Lines:
    texts = list(numbers)
    yield f"static const {kind} {name}[{len(texts)}] = {{"
    for i in range(0, len(texts), TABLE_COLUMNS):
        yield f"    {', '.join(texts[i : i + TABLE_COLUMNS])},"
    yield "};"
    yield ""
