"""Matrix-valued expressions: columns climb the tree, rows read them on the way, compliances join them where paths meet."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from psiphi.algebra.expressions.letters import ARTICULATED, BODIES, FrameLetter, Letter
from psiphi.algebra.expressions.terms import Poly, Word, starred
from psiphi.compiler.axes.link_axes import Tree
from psiphi.compiler.lower import frame_sweeps, world_body
from psiphi.compiler.lower.word_shapes import (
    ColumnFamily,
    ColumnSweep,
    Compliance,
    Composite,
    Diagonal,
    Grounded,
    WholeMatrix,
    shape_of,
)
from psiphi.compiler.recursions.body_step import LOCAL, articulate, origin
from psiphi.compiler.recursions.newton_euler import Rigid
from psiphi.compiler.sweeps.sweep_program import (
    BASE_TO_TIP,
    TIP_TO_BASE,
    Argument,
    BodyView,
    ColumnMessage,
    Program,
    Sweep,
)
from psiphi.model.spatial.body_stacks import DenseSquare
from psiphi.model.spatial.screw_paths import coinertia, force
from psiphi.model.spatial.screws import Inertia, dot


@dataclass(frozen=True)
class Column:
    """A spatial vector on its way in, and the child it came through (None: it starts here)."""

    value: list
    origin: int | None


class LoweredMatrix:
    """Words with their shapes: `program` fills a rows x columns matrix in at most three sweeps."""

    def __init__(self, polys: dict[str, Poly], spaces: tuple[str, str]):
        self.spaces = spaces
        self.words = [
            (name, c, word, shape_of(word))
            for name, poly in polys.items()
            for word, c in poly.items()
            if c
        ]
        self.complete = all(shape is not None for *_, shape in self.words)
        shapes = [shape for *_, shape in self.words]
        self.families = list(dict.fromkeys(f for shape in shapes for f in _families(shape)))
        self.levers = list(
            dict.fromkeys(shape.family.letters[0] for shape in shapes if is_lever(shape))
        )
        self.arriving = list(dict.fromkeys(shape.family for shape in shapes if is_place(shape)))
        letters = {x for _, _, word, _ in self.words for x in word}
        self.frames = sorted({x.of for x in letters if isinstance(x, FrameLetter)})
        # what must be known before columns climb: places for world axes and levers, P for psi, r for phi M phi*
        self.placed = bool(self.levers or self.arriving) or any(
            x.axes == "world" for x in self.frames
        )
        self.articulated = any(ARTICULATED in x.made for x in letters)
        self.weighed = any(x.bare == world_body.AT_CENTER for x in letters)
        self.composite = (
            self.weighed
            or any(f.composite for f in self.families)
            or any(isinstance(x, WholeMatrix) for x in shapes)
        )
        self.grounded = bool(letters & {*world_body.GROUND, *world_body.SPREAD})
        # Om of each middle letter and kind of path is made once, whatever words have it
        self.middles = list(
            dict.fromkeys((s.middle, s.right.kind) for s in shapes if isinstance(s, Compliance))
        )

    @property
    def rods(self) -> bool:
        """Inertia may change sides where M shows only inside H phi M phi* H*."""
        alone = [x for _, _, word, shape in self.words for x in word if not _is_mass(shape)]
        return not any(BODIES in x.made for x in alone)

    @property
    def sweeps(self) -> list:
        if self.only_places:
            return [BASE_TO_TIP]
        return (
            ([BASE_TO_TIP] if self.placed else [])
            + [TIP_TO_BASE]
            + ([BASE_TO_TIP] if self.middles else [])
        )

    @property
    def only_levers(self) -> bool:
        """A Jacobian: every entry is written once, by one body, and the sweeps can run as loops."""
        return self._once and all(is_lever(s) and s.transposed for *_, s in self.words)

    @property
    def only_places(self) -> bool:
        """Where frames are, and no more: the body that has one writes it, and the sweep can run as a loop."""
        return self._once and all(
            is_place(s) and s.letter == world_body.AT_ORIGIN for *_, s in self.words
        )

    @property
    def _once(self) -> bool:
        """Whether a result is one word."""
        return bool(self.words) and len({name for name, *_ in self.words}) == len(self.words)

    @property
    def is_whole(self) -> bool:
        """The robot as one rigid body: columns are more and more on their way in, this has the same size everywhere."""
        return all(isinstance(shape, WholeMatrix) for *_, shape in self.words)

    def _levers(
        self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]
    ) -> Program:
        def step(site: BodyView) -> None:
            for letter in self.levers:
                frame_sweeps.send_places(site, letter)
            start = site.slices["v"].start
            for result, c, _, shape in self.words:
                for i, j, value in frame_sweeps.levers(site, shape.family.letters[0], shape.left):
                    site.write_joint(result, [float(c) * value], j * site.nv + i - start)

        # outward where bodies are, inward each joint's own columns: H(k) phi(k, frame) B in closed form
        sweeps = (Sweep(BASE_TO_TIP, frame_sweeps.locate), Sweep(TIP_TO_BASE, step))
        return Program(
            name, inputs, outputs, sweeps, origin, marks=frame_sweeps.marks(tree, self.frames)
        )

    def _places(
        self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]
    ) -> Program:
        widths = {arg.name: arg.shape[-1] for arg in outputs}

        def step(site: BodyView) -> None:
            frame_sweeps.locate(site)
            for result, c, _, shape in self.words:
                for j, column in frame_sweeps.arrivals(site, shape.family.letters[0]):
                    for i, value in enumerate(column):
                        row, own = (j, i) if shape.transposed else (i, j)
                        site.write(result, row * widths[result] + own, [float(c) * value])

        # outward alone: φ(0, k) B is known where the body is
        marks = frame_sweeps.marks(tree, self.frames)
        return Program(
            name,
            inputs,
            outputs,
            (Sweep(BASE_TO_TIP, step),),
            origin,
            bodies=sorted(marks),
            marks=marks,
        )

    def program(
        self, name: str, tree: Tree, inputs: tuple[Argument, ...], outputs: tuple[Argument, ...]
    ) -> Program:
        if self.only_levers:
            return self._levers(name, tree, inputs, outputs)
        if self.only_places:
            return self._places(name, tree, inputs, outputs)
        run = _Fill(self, {arg.name: arg.shape[-1] for arg in outputs})
        # out to the frames, where axes are needed; in, columns climb; out, compliances meet them
        sweeps = []
        if self.placed:
            sweeps.append(Sweep(BASE_TO_TIP, frame_sweeps.locate))
        sweeps.append(Sweep(TIP_TO_BASE, run.inward))
        if self.middles:
            sweeps.append(Sweep(BASE_TO_TIP, run.outward))
        marks = frame_sweeps.marks(tree, self.frames)
        return Program(
            name,
            inputs,
            outputs,
            tuple(sweeps),
            run.start,
            run.finish,
            marks=marks,
            local=self.is_whole,
        )


def _is_mass(shape) -> bool:
    return (
        isinstance(shape, Composite)
        and shape.left[-1:] == ("H",)
        and shape.right.letters[:1] == ("H*",)
    )


def _families(shape) -> list[ColumnFamily]:
    """The columns that climb for a shape."""
    if isinstance(shape, ColumnSweep):
        return [] if is_lever(shape) else [shape.family]
    if isinstance(shape, Composite):
        return [shape.right, shape.mirror]
    if isinstance(shape, Grounded):
        return [] if is_place(shape) else [shape.family]
    return [shape.left, shape.right] if isinstance(shape, Compliance) else []


class _Fill:
    """One run of the program: entries add up in `total` until `finish` writes them."""

    def __init__(self, lowered: LoweredMatrix, widths: dict[str, int]):
        self.lowered, self.widths = lowered, widths
        self.total: dict[tuple[str, int, int], Any] = {}
        self.sent: dict[ColumnFamily, ColumnMessage] = {}  # what the roots sent to the world

    def start(self, site: BodyView) -> None:
        self.total.clear()
        self.sent.clear()
        origin(site)

    def put(self, name: str, row: int, column: int, c: Fraction, value) -> None:
        scaled = value if c == 1 else -value if c == -1 else float(c) * value
        key = (name, row, column)
        self.total[key] = scaled if key not in self.total else self.total[key] + scaled

    def finish(self, site: BodyView) -> None:
        for name, c, word, _ in self.lowered.words if self.lowered.spaces[1] == "frame" else ():
            for i in (
                range(self.widths[name]) if not word else ()
            ):  # c I over frames, which need no body
                self.put(name, i, i, c, 1.0)
        for name, c, _, shape in self.lowered.words:
            if isinstance(shape, Grounded):
                self._grounded(name, c, shape, world_body.whole(site))
            elif isinstance(shape, WholeMatrix):
                self._whole(name, c, shape, world_body.whole(site))
        for (name, row, column), value in self.total.items():
            site.write(name, row * self.widths[name] + column, [value])

    def _grounded(self, name: str, c: Fraction, shape: Grounded, body: Rigid | None) -> None:
        # E_0 c R e_j = sum over roots of φ(0, k) x_j(k): column j, as the world received it
        for j, column in self.sent.get(shape.family, {}).items():
            for i, value in enumerate(_at(shape.letter, column.value, body)):
                self.put(name, *((j, i) if shape.transposed else (i, j)), c, value)

    def _whole(self, name: str, c: Fraction, shape: WholeMatrix, body: Rigid | None) -> None:
        if body is None:
            return
        inertia = body.inertia
        # E φ M φ* E*: columns first, then rows, each moved to where the letter gathers
        # (the inertia itself is symmetric, but E_c may stand on one side alone)
        rows = [
            _at(shape.left, [inertia.entry(i, j) for i in range(6)], body) for j in range(6)
        ]  # by columns
        for i, row in enumerate(zip(*rows, strict=True)):
            for j, value in enumerate(_at(shape.right, list(row), body)):
                self.put(name, i, j, c, value)

    def inward(self, site: BodyView) -> None:
        """Tip to base: P, composite inertias, columns; diagonal, climb and composite entries."""
        # places of frames go inward as numbers, not as columns: each joint's lever to them is a difference
        for letter in self.lowered.levers:
            frame_sweeps.send_places(site, letter)
        # P and r of this body first: the columns that start or pass here need them.
        if self.lowered.articulated:
            articulate(site)
        if self.lowered.composite:
            world_body.weigh(site)
        for f in self.lowered.families:
            self._climb(site, f)
        # E_0 phi B: the world has these columns at once, from where the frame is
        for f in self.lowered.arriving:
            found = {j: Column(x, None) for j, x in frame_sweeps.arrivals(site, f.letters[0])}
            self.sent[f] = self.sent.get(f, ColumnMessage()) + ColumnMessage(found)
        if site.at_root:
            self._arrive(site)
        # rows read what climbs: entry (i, j) stands where the row's body is the column's or an ancestor of it
        for name, c, _, shape in self.lowered.words:
            if isinstance(shape, Diagonal) and (shape.letters or self.lowered.spaces[1] == "joint"):
                for j, e in _units(site, shape.letters):
                    for i, value in _rows(site, apply(site, shape.letters, e)):
                        self.put(name, i, j, c, value)
            elif isinstance(shape, ColumnSweep) and is_lever(shape):
                for i, j, value in frame_sweeps.levers(site, shape.family.letters[0], shape.left):
                    self.put(name, *((j, i) if shape.transposed else (i, j)), c, value)
            elif isinstance(shape, ColumnSweep):
                for j, column in site.kept[shape.family].items():
                    for i, value in _rows(site, apply(site, shape.left, column.value)):
                        self.put(name, *((j, i) if shape.transposed else (i, j)), c, value)
            elif isinstance(shape, Composite):
                self._composite(site, name, c, shape)

    def _arrive(self, site: BodyView) -> None:
        """At a root: the columns that have come so far, carried to the world by φ alone, whatever they climbed with."""
        for f in self.lowered.families if self.lowered.grounded else ():
            carried = {
                j: Column(force(site.path, x.value), site.link.index)
                for j, x in site.kept[f].items()
            }
            self.sent[f] = self.sent.get(f, ColumnMessage()) + ColumnMessage(carried)

    def _climb(self, site: BodyView, f: ColumnFamily) -> None:
        here = ColumnMessage(site.children.get(f, {}))
        sent = {}
        units = list(_units(site, f.letters))
        # A column starts where its joint or frame is, the letters behind phi or psi on a unit vector (r on it for ℳ),
        if not f.shifted:
            for j, e in units:
                start = apply(site, f.letters, e)
                here[j] = Column(site.kept["r"] @ start if f.composite else start, None)
        site.kept[f] = here
        # and goes on inward, x(p) = phi(p, k) tau_bar x(k) for psi, phi(p, k) x(k) for phi
        for j, column in here.items():
            passed = (
                site.kept["gain"].through(site.H, column.value) if f.kind == "psi" else column.value
            )
            sent[j] = Column(force(site.path, passed), site.link.index)
        # K = E_phi G starts at the parent: this body sends it, and does not have it.
        if f.shifted:
            for j, e in units:
                sent[j] = Column(
                    force(site.path, LOCAL["G"](site, apply(site, f.letters[1:], e))), None
                )
        site.sent[f] = ColumnMessage(sent)

    def _composite(self, site: BodyView, name: str, c: Fraction, shape: Composite) -> None:
        """Rows of this body against columns from here and below; the mirror image from the left's columns."""
        right = site.kept[shape.right]
        for j, column in right.items():
            for i, value in _rows(site, apply(site, shape.left, column.value)):
                # The matrix is symmetric: entries of bodies below, seen from here, are those of this body seen from there; of
                # this body's own, one of a pair is enough.
                own = column.origin is None and shape.mirror == shape.right
                if own and i > j:
                    continue
                self.put(name, i, j, c, value)
                if shape.mirror == shape.right and i != j:
                    self.put(name, j, i, c, value)
        if shape.mirror != shape.right:
            for i, column in site.kept[shape.mirror].items():
                for j, value in _rows(
                    site, apply(site, starred(shape.right.letters), column.value)
                ):
                    if column.origin is not None:
                        self.put(name, i, j, c, value)

    def outward(self, site: BodyView) -> None:
        """Base to tip: Om(k) = X(k) + c(p,k)* Om(p) c(p,k), and the entries whose paths meet at this body."""
        # Om of the parent first: what it yields, its children feel
        for middle, kind in self.lowered.middles:
            key = (middle, kind)
            site.kept[key] = compliance(site, site.parent.get(key), middle, kind)
        for name, c, _, shape in self.lowered.words:
            if isinstance(shape, Compliance):
                self._meet(site, name, c, shape)

    def _meet(self, site: BodyView, name: str, c: Fraction, shape: Compliance) -> None:
        """y_i* Om x_j for all pairs that did not come through one child; Om is applied to as few columns as possible."""
        # y_i* c*(a, i) X c(a, j) x_j summed over all ancestors a of both: Om(k) has the sum up to the nearest one, k
        Om = site.kept[shape.middle, shape.right.kind]
        left, right = site.kept[shape.left], site.kept[shape.right]
        if shape.left != shape.right:
            if len(right) <= len(left):
                self._pairs(name, c, Om, right, left, False)
            else:
                self._pairs(name, c, Om, left, right, True)
            return
        # The pairs of a symmetric matrix, once each. Columns of one child have met further out; of the child with most of them,
        # none needs Om @ x here, since each of its pairs has a partner from elsewhere.
        crowd = Counter(x.origin for x in right.values() if x.origin is not None)
        largest = max(crowd, key=crowd.__getitem__) if crowd else None
        done: set[int] = set()
        for j, x in right.items():
            if x.origin is not None and x.origin == largest:
                continue
            z = Om @ x.value
            for i, y in right.items():
                if i not in done and _apart(x, y):
                    value = dot(y.value, z)
                    self.put(name, i, j, c, value)
                    if i != j:
                        self.put(name, j, i, c, value)
            done.add(j)

    def _pairs(
        self,
        name: str,
        c: Fraction,
        Om: Inertia,
        near: ColumnMessage,
        far: ColumnMessage,
        transposed: bool,
    ) -> None:
        # Om acts on the side with fewer columns
        for j, x in near.items():
            partners = [(i, y) for i, y in far.items() if _apart(x, y)]
            z = Om @ x.value if partners else []
            for i, y in partners:
                self.put(name, *((j, i) if transposed else (i, j)), c, dot(y.value, z))


def _at(letter: Letter, f: list, body: Rigid | None) -> list:
    """A force at the world's origin, for E_c about the centre of mass."""
    return (
        f
        if letter.bare == world_body.AT_ORIGIN
        else world_body.at_center(f, world_body.center(body))
    )


def is_lever(shape) -> bool:
    """H phi B: phi(k, frame) is known in closed form, by the places of body and frame; no column needs to climb."""
    return isinstance(shape, ColumnSweep) and _is_of_frames(shape.family)


def is_place(shape) -> bool:
    """E_0 phi B: phi(world, frame) is where the frame is, [R, p~ R; 0, R]; no column needs to climb."""
    return (
        isinstance(shape, Grounded) and not shape.family.composite and _is_of_frames(shape.family)
    )


def _is_of_frames(f: ColumnFamily) -> bool:
    """phi B: wrenches on frames, and nothing between them and the path."""
    return f.kind == "phi" and len(f.letters) == 1 and isinstance(f.letters[0], FrameLetter)


def _apart(x: Column, y: Column) -> bool:
    """Whether this body is where two columns meet: they start here, or came through different children."""
    return x.origin is None or y.origin is None or x.origin != y.origin


def apply(site: BodyView, letters: Word, x) -> Any:
    """A word of local letters on a value at this body."""
    # the last letter acts first
    for letter in reversed(letters):
        x = (
            frame_sweeps.act(site, letter, x)
            if isinstance(letter, FrameLetter)
            else LOCAL[letter](site, x)
        )
    return x


def _units(site: BodyView, letters: Word):
    """(column number, unit vector) of the columns that start at this body: its joint's, or its frames'."""
    last = letters[-1] if letters else None
    if isinstance(last, FrameLetter):
        for number, *_ in frame_sweeps.here(site, last):
            for i in range(6):
                unit = [1.0 if i == j else 0.0 for j in range(6)]
                yield (
                    6 * number + i,
                    {
                        n: unit if n == number else [0.0] * 6
                        for n, *_ in frame_sweeps.here(site, last)
                    },
                )
        return
    # a joint of n coordinates starts n columns, numbered as v is
    own = site.slices["v"]
    for i in range(own.start, own.stop):
        yield i, [1.0 if own.start + j == i else 0.0 for j in range(own.stop - own.start)]


def _rows(site: BodyView, value) -> list[tuple[int, Any]]:
    """(row number, scalar) of a value in joint or frame space at this body."""
    if isinstance(value, dict):
        return [(6 * number + i, x) for number, part in value.items() for i, x in enumerate(part)]
    start = site.slices["v"].start
    return [(start + i, x) for i, x in enumerate(value)]


def compliance(site: BodyView, above: Any, middle: Word, kind: str) -> Any:
    """X + c* Om(p) c: with psi, tau_bar* LamP tau_bar = LamP - H* (LamP G)* - (LamP G) H + H* (G* LamP G) H."""
    size = site.link.size
    # what the joint itself yields, H* D^-1 H; its transpose is read below the diagonal
    X = [apply(site, middle, [1.0 if i == j else 0.0 for j in range(size)]) for i in range(size)]
    entry = {(r, c): X[min(r, c)][max(r, c)] for r in range(size) for c in range(size)}
    if above is None:
        return _square(entry, size)
    # LamP = phi* Om(p) phi, the compliance of the parent as this body feels it with its joint locked
    lam, H = coinertia(site.path, above), site.H
    n = len(H) if kind == "psi" else 0
    g = [list(column) for column in zip(*site.kept["gain"].G, strict=True)] if n else []
    LG = [lam @ x for x in g]
    c = [[dot(g[i], LG[j]) for j in range(n)] for i in range(n)]
    # the upper half of X + tau_bar* LamP tau_bar, entry by entry: both terms are symmetric
    for r in range(size):
        for s in range(r, size):
            value = lam.entry(r, s)
            for i in range(n):
                value = value - LG[i][r] * H[i][s] - H[i][r] * LG[i][s]
                value = value + H[i][r] * dot(c[i], [H[m][s] for m in range(n)])
            entry[r, s] = entry[s, r] = value + entry[r, s]
    return _square(entry, size)


def _square(entry: dict, size: int) -> Any:
    if size == 6:
        return Inertia.from_entries(entry)
    return DenseSquare([[entry[r, c] for r in range(size)] for c in range(size)])
