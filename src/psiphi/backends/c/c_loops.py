"""C of what is too long for one straight-line function: several functions over one frame, an array on the stack.

A long tape is cut into pieces (`segments.py`), which run one after the other. A large robot is loops (`compiler/sweeps/link_loops.py`): one
function for each class of links, one loop a sweep, and tables of numbers. Arguments are copied into the frame before anything
else and results out of it at the end, so that an output may be one of the inputs' arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from psiphi.backends.c.c_lines import Dialect, alive, segment_lines
from psiphi.compiler.ir.loop_tables import LoopTables, places
from psiphi.compiler.ir.segments import FrameLayout, Pieces, Segment, Store, cut
from psiphi.compiler.sweeps.link_loops import LinkClass, LinkLoops
from psiphi.compiler.sweeps.sweep_program import Argument
from psiphi.compiler.sweeps.tree_loop import StraightCode
from psiphi.compiler.tape.ops import Op

WIDE = 16  # numbers a line of a table
Lines = Iterator[str]


class CutCode:
    """A long tape in pieces."""

    def __init__(self, straight: StraightCode):
        self.program, self.pieces = straight.program, cut(straight)

    @property
    def layout(self) -> FrameLayout:
        return self.pieces.layout

    @property
    def frame(self) -> int:
        """Numbers in the frame."""
        return self.pieces.frame

    @property
    def alive(self) -> int:
        """Numbers beside the frame, at most."""
        return max(_alive(piece) for piece in (self.pieces.prologue, *self.pieces.segments))

    @property
    def all(self) -> list[Segment]:
        return [self.pieces.prologue, *self.pieces.segments]

    def helpers(self, name: str, dialect: Dialect) -> Lines:
        """The functions of the pieces, and a table of them: called by name a compiler would make one of them again."""
        for i, piece in enumerate(self.all):
            yield from _function(
                f"{name}_part{i}", [f"{dialect.real} *frame"], segment_lines(piece, dialect)
            )
        yield f"static void (*const {name}_parts[{len(self.all)}])({dialect.real} *frame) = {{"
        yield from (f"    {name}_part{i}," for i in range(len(self.all)))
        yield "};"
        yield ""

    def calls(self, name: str, dialect: Dialect) -> Lines:
        """What runs them: as many in a row as need no sines in between."""
        rounds = [
            0,
            1,
            *(i for i, piece in enumerate(self.all) if i > 1 and piece.angles),
            len(self.all),
        ]
        for first, last in pairwise(dict.fromkeys(rounds)):
            yield from _angles(self.pieces if first == 1 else self.all[first], dialect)
            yield f"for (int i = {first}; i < {last}; ++i) {{"
            yield f"    {name}_parts[i](frame);"
            yield "}"


class LoopedCode:
    """Loops over the links of a large robot."""

    def __init__(self, rolled: LinkLoops):
        self.program, self.rolled = rolled.program, rolled
        self.layout = FrameLayout.of(rolled.program.inputs, rolled.program.outputs)
        self.bodies = len(rolled.tree.links)
        self.inboxes = self.layout.size + (self.bodies + 1) * rolled.record

    @property
    def frame(self) -> int:
        return self.inboxes + (self.bodies + 1) * self.rolled.inbox

    @property
    def alive(self) -> int:
        return max(_alive(_segment(c)) for c in self._classes())

    def _classes(self) -> Iterable[LinkClass]:
        finish = [] if self.rolled.finish is None else [self.rolled.finish]
        return [*(c for stage in self.rolled.stages for c in stage.classes), *finish]

    def helpers(self, name: str, dialect: Dialect) -> Lines:
        """Tables, then a function for each class and each sweep."""
        own, n = LoopTables(self.rolled, "d" if dialect.real == "double" else "f"), self.bodies
        words = ["parent", "first", *(f"of_{place}" for place in places(self.rolled))]
        for i, word in enumerate(words):
            yield from _table(
                f"{name}_{word}", "int", map(str, own.integers[n * i : n * (i + 1)].tolist())
            )
        numbers = map(dialect.constant, own.params.tolist() or [0.0])
        yield from _table(f"{name}_numbers", dialect.real, numbers)
        for s, stage in enumerate(self.rolled.stages):
            for c, each in enumerate(stage.classes):
                yield from _class(f"{name}_step{s}_{c}", each, dialect)
            yield from _table(f"{name}_order{s}", "int", map(str, stage.order))
            yield from _table(f"{name}_class{s}", "int", map(str, stage.ids))
            yield from _function(
                f"{name}_sweep{s}", [f"{dialect.real} *frame"], self._loop(name, s, dialect)
            )
        if self.rolled.finish is not None:
            yield from _class(f"{name}_finish", self.rolled.finish, dialect)

    def _loop(self, name: str, s: int, dialect: Dialect) -> Lines:
        """One sweep: at every body the function of its class, with pointers to what it reads and writes."""
        stage = self.rolled.stages[s]
        used = {base: written for c in stage.classes for base, written in _bases(c).items()}
        written = {base for c in stage.classes for base, own in _bases(c).items() if own}
        yield f"for (int i = 0; i < {len(stage.order)}; ++i) {{"
        yield f"    const int k = {name}_order{s}[i];"
        if used.keys() & {"parent", "up"}:
            yield f"    const int p = {name}_parent[k];"
        for base in used:
            if base != "frame":
                constant = "" if base in written else "const "
                yield f"    {constant}{dialect.real} *const {base} = {self._address(name, base)};"
        yield f"    switch ({name}_class{s}[i]) {{"
        for c, each in enumerate(stage.classes):
            last = "default" if c == len(stage.classes) - 1 else f"case {c}"
            yield f"    {last}:"
            yield f"        {name}_step{s}_{c}({', '.join(_bases(each))});"
            yield "        break;"
        yield "    }"
        yield "}"

    def _address(self, name: str, base: str) -> str:
        r, n = self.rolled, self.layout.size
        known = {
            "here": f"&frame[{n} + ({r.record} * k)]",
            "parent": f"&frame[{n} + ({r.record} * p)]",
            "inbox": f"&frame[{self.inboxes} + ({r.inbox} * k)]",
            "up": f"&frame[{self.inboxes} + ({r.inbox} * p)]",
            "param": f"&{name}_numbers[{name}_first[k]]",
        }
        if base in known:
            return known[base]
        inward = base.startswith("in")
        number = int(base.removeprefix("in" if inward else "out"))
        arg = (self.program.inputs if inward else self.program.outputs)[number]
        at = (self.layout.inputs if inward else self.layout.outputs)[number]
        return f"&frame[{f'{at} + ' if at else ''}{name}_of_{arg.per_joint}[k]]"

    def calls(self, name: str, dialect: Dialect) -> Lines:
        first = self.layout.outputs[0]
        yield f"for (int i = {first}; i < {self.layout.size}; ++i) {{"  # what no step writes
        yield f"    frame[i] = 0.0{dialect.suffix};"
        yield "}"
        yield from (f"{name}_sweep{s}(frame);" for s in range(len(self.rolled.stages)))
        if self.rolled.finish is not None:
            world = f"&frame[{self.inboxes + self.bodies * self.rolled.inbox}]"
            given = ["frame" if base == "frame" else world for base in _bases(self.rolled.finish)]
            yield f"{name}_finish({', '.join(given)});"


def framed_function(made: CutCode | LoopedCode, head: str, name: str, dialect: Dialect) -> Lines:
    """The helpers, and the function: arguments in, all of it, results out."""
    yield from made.helpers(name, dialect)
    yield head
    yield "{"
    yield f"    {dialect.real} frame[{made.frame}];"
    for arg, at in zip(made.program.inputs, made.layout.inputs, strict=True):
        yield from _copy(arg, f"frame[{f'{at} + ' if at else ''}i]", f"{arg.name}[i]")
    yield from (f"    {line}" for line in made.calls(name, dialect))
    for arg, at in zip(made.program.outputs, made.layout.outputs, strict=True):
        yield from _copy(arg, f"{arg.name}[i]", f"frame[{at} + i]")
    yield "}"


def _copy(arg: Argument, target: str, source: str) -> Lines:
    yield f"    for (int i = 0; i < {arg.size}; ++i) {{"
    yield f"        {target} = {source};"
    yield "    }"


def _angles(of: Pieces | Segment, dialect: Dialect) -> Lines:
    """Sine and cosine behind every angle of the frame."""
    if of.angles:
        yield f"for (int i = {of.angle_base}; i < {of.angle_base + 3 * of.angles}; i += 3) {{"
        yield f"    frame[i + 1] = {dialect.called[Op.SIN]}(frame[i]);"
        yield f"    frame[i + 2] = {dialect.called[Op.COS]}(frame[i]);"
        yield "}"


def _class(name: str, each: LinkClass, dialect: Dialect) -> Lines:
    given = [
        f"{'' if written else 'const '}{dialect.real} *{base}"
        for base, written in _bases(each).items()
    ]
    yield from _function(name, given, segment_lines(_segment(each), dialect))


def _segment(c: LinkClass) -> Segment:
    live = c.tape.live(c.outputs, c.given)
    nodes = [i for i in live if i not in c.given and c.tape.nodes[i][0] is not Op.CONST]
    return Segment("", c.tape, nodes, [Store(*store) for store in c.stores], c.given)


def _bases(c: LinkClass) -> dict[str, bool]:
    """{pointer that a class takes: whether it writes there}."""
    live = c.tape.live(c.outputs, c.given)
    read = {c.given[node][0]: False for node in live if node in c.given}
    return dict(sorted((read | {base: True for base, *_ in c.stores}).items()))


def _alive(segment: Segment) -> int:
    return alive(segment.tape, segment.nodes, [store.node for store in segment.stores])


def _function(name: str, given: Iterable[str], body: Lines) -> Lines:
    yield f"static void {name}({', '.join(given)})"
    yield "{"
    yield from (f"    {line}" for line in body)
    yield "}"
    yield ""


def _table(name: str, kind: str, numbers: Iterable[str]) -> Lines:
    all_of_them = list(numbers)
    yield f"static const {kind} {name}[{len(all_of_them)}] = {{"
    for i in range(0, len(all_of_them), WIDE):
        yield f"    {', '.join(all_of_them[i : i + WIDE])},"
    yield "};"
    yield ""
