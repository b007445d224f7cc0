"""Forces and motions: on which side of duality every value over links stands, and how long every frame vector is.

A link's axes are a choice, and sweeps choose them as they like; forces change with φ, motions with φ*⁻¹. So a sum of a force
and a motion, or φ applied to a motion, has no meaning, and is refused when it is written. Joint and frame spaces have axes
of their own: there torques may meet rates (J J*, J* J).

    a product   what the left factor takes is what the right one gives
    a sum       all terms give alike and take alike; I and ω̃ take what they give
    A*          gives the dual of what A takes;     A⁻¹ gives what A takes

Each end of a term is an unknown; these laws make unknowns equal, or dual to each other, until letters settle them. The same
unknowns count frames: a vector of frame space has six numbers for each frame of the B it meets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from psiphi.algebra.expressions.letters import (
    DUAL,
    FORCE,
    MOTION,
    SIDES,
    FormLetter,
    Letter,
    SymbolLetter,
    VectorLetter,
    vector_letter,
)
from psiphi.algebra.expressions.terms import Term

SideValue = (
    str | int | None
)  # FORCE or MOTION; a number of frames, 0 when it is open; or nothing known yet


class End(NamedTuple):
    """One end of a term: unknown number `unknown` of its ends, or the dual of it."""

    unknown: int
    dual: bool = False

    def turned(self) -> End:
        return End(self.unknown, not self.dual)


class DualityConflict(Exception):
    """Two ends that cannot be one: what stands at each."""

    def __init__(self, left: SideValue, right: SideValue):
        self.left, self.right = left, right


class NameClash(Exception):
    """One name for two vectors of different spaces."""

    def __init__(self, name: str, left: str, right: str):
        self.name, self.left, self.right = name, left, right


@dataclass
class Unknowns:
    """Ends known to be equal or dual, as a forest: each unknown's `above` and whether it is its dual; roots have values."""

    above: list[End] = field(default_factory=list)
    values: list[SideValue] = field(default_factory=list)

    def new(self, value: SideValue = None) -> End:
        self.above.append(End(len(self.above)))
        self.values.append(value)
        return self.above[-1]

    def root(self, end: End) -> End:
        dual = end.dual
        while (up := self.above[end.unknown]).unknown != end.unknown:
            dual, end = dual != up.dual, up
        return End(end.unknown, dual)

    def value(self, end: End) -> SideValue:
        root = self.root(end)
        value = self.values[root.unknown]
        return DUAL[value] if root.dual and isinstance(value, str) else value

    def join(self, a: End, b: End) -> None:
        """a = b."""
        left, right = self.value(a) or None, self.value(b) or None
        if left is not None and right is not None and left != right:
            raise DualityConflict(left, right)
        x, y = self.root(a), self.root(b)
        if x.unknown == y.unknown:
            if (
                x.dual != y.dual and self.values[x.unknown] is None
            ):  # its own dual: a force that is a motion
                raise DualityConflict(FORCE, MOTION)
            return
        x, y = (
            (x, y) if left is None and self.values[x.unknown] != 0 else (y, x)
        )  # the root that knows less moves
        self.above[x.unknown] = End(y.unknown, x.dual != y.dual)
        self.values[y.unknown] = self.values[y.unknown] or self.values[x.unknown]


@dataclass(frozen=True)
class Ends:
    """What is known of a term: what it `gives` and `takes` (None: a space without sides), and its vectors by name: their
    space, and the end that says their side or their frames."""

    unknowns: tuple[SideValue, ...]
    gives: End | None
    takes: End | None
    vectors: tuple[tuple[str, str, End | None], ...]

    def value(self, end: End | None) -> SideValue:
        if end is None:
            return None
        value = self.unknowns[end.unknown]
        return DUAL[value] if end.dual and isinstance(value, str) else value

    def side(self, end: End) -> str:
        """Force or motion; what is open is decided for forces, and for motions where it is dual to that."""
        return str(self.value(end) or (MOTION if end.dual else FORCE))

    @property
    def given(self) -> dict[str, SideValue]:
        """The side or the frames of every vector, by name."""
        return {name: self.value(end) for name, _, end in self.vectors}


class _Work:
    """Ends of several terms brought together."""

    def __init__(self):
        self.unknowns = Unknowns()
        self.vectors: dict[str, tuple[str, End | None]] = {}

    def take(self, ends: Ends) -> tuple[End | None, End | None]:
        """Copy a term's ends in; vectors of one name are one vector."""
        new = [self.unknowns.new(value) for value in ends.unknowns]
        here = lambda end: None if end is None else End(new[end.unknown].unknown, end.dual)  # noqa: E731
        for name, space, end in ends.vectors:
            self.vector(name, space, here(end))
        return here(ends.gives), here(ends.takes)

    def vector(self, name: str, space: str, end: End | None) -> None:
        if name not in self.vectors:
            self.vectors[name] = space, end
            return
        known, other = self.vectors[name]
        if known != space:
            raise NameClash(name, known, space)
        self.join(end, other)

    def join(self, a: End | None, b: End | None) -> End | None:
        """Make two ends one; a missing one says nothing."""
        if a is not None and b is not None:
            self.unknowns.join(a, b)
        return b if a is None else a

    def close(self, gives: End | None, takes: End | None) -> Ends:
        """The ends, with unknowns numbered by first use."""
        values: list[SideValue] = []
        numbers: dict[int, int] = {}

        def named(end: End | None) -> End | None:
            if end is None:
                return None
            root = self.unknowns.root(end)
            if root.unknown not in numbers:
                numbers[root.unknown] = len(values)
                values.append(self.unknowns.values[root.unknown])
            return End(numbers[root.unknown], root.dual)

        gives, takes = named(gives), named(takes)
        vectors = tuple((name, space, named(end)) for name, (space, end) in self.vectors.items())
        return Ends(tuple(values), gives, takes, vectors)


@lru_cache(maxsize=8192)
def ends(term: Term) -> Ends:
    """The ends of a legal term; a `DualityConflict` says what cannot meet."""
    if term.op == "letter":
        return _letter(term.args[0])
    if term.op == "scale":
        return ends(term.args[1])
    inner = ends(term.args[0])
    if term.op == "inverse":
        return Ends(inner.unknowns, inner.takes, inner.gives, inner.vectors)
    if term.op == "adjoint":
        return _turned(inner)
    return product_ends(term.args) if term.op == "product" else sum_ends(term.args)


def product_ends(factors: Iterable[Term]) -> Ends:
    """t u ...: what t takes, u gives."""
    work, ends_of = _Work(), iter(factors)
    gives, takes = work.take(ends(next(ends_of)))
    for factor in ends_of:
        left, right = work.take(ends(factor))
        work.join(takes, left)
        takes = right
    return work.close(gives, takes)


def sum_ends(parts: Iterable[Term]) -> Ends:
    """t + u + ...: all give and take alike."""
    work = _Work()
    gives = takes = None
    for part in parts:
        left, right = work.take(ends(part))
        gives, takes = work.join(gives, left), work.join(takes, right)
    return work.close(gives, takes)


def _turned(inner: Ends) -> Ends:
    def dual(end: End | None) -> End | None:
        return end.turned() if end is not None and not isinstance(inner.value(end), int) else end

    return Ends(inner.unknowns, dual(inner.takes), dual(inner.gives), inner.vectors)


def _letter(x: Letter) -> Ends:
    if x.starred and not x.adapts:
        return _turned(_letter(x.T))
    work = _Work()
    if isinstance(x, FormLetter):
        return _form(x, work)
    if x.moves:
        work.vector("v", "joint", None)
    if x.adapts:
        end = work.unknowns.new()
        return work.close(end, end)
    gives, takes = (
        {
            "link": work.unknowns.new(side or None),
            "frame": work.unknowns.new(space.frames or 0),
        }.get(space.name)
        for space, side in ((x.rows, x.gives), (x.cols, x.takes))
    )
    if isinstance(x, SymbolLetter):
        work.vector(x.word, f"symbol over {x.space}s", None)
    if isinstance(x, VectorLetter) and x.given:
        work.vector(x.word, "link" if x.space in SIDES else x.space, gives)
    return work.close(gives, takes)


def _form(x: FormLetter, work: _Work) -> Ends:
    """What stands in a slot is of the slot's side; slots over frames all have the same frames."""
    slots, frames = x.form.slots, work.unknowns.new(0)
    end = {
        slot: {"link": work.unknowns.new(row.side or None), "frame": frames}.get(row.space.name)
        for slot, row in slots.items()
    }
    for slot, inner in x.filled:
        work.join(work.take(ends(inner))[0], end[slot])
    gives = end[x.out]
    return work.close(
        gives.turned() if gives is not None and gives is not frames else gives, end[x.inp]
    )


def settled(term: Term) -> Term:
    """The term with every vector over links written as the force or motion the expression makes it (undecided: forces)."""
    found = ends(term)
    known = {
        name: found.side(end)
        for name, space, end in found.vectors
        if space == "link" and end is not None
    }
    return _settled(term, known) if known else term


def _settled(term: Term, known: dict[str, str]) -> Term:
    if term.op != "letter":
        return Term(
            term.op, tuple(_settled(x, known) if isinstance(x, Term) else x for x in term.args)
        )
    x = term.args[0]
    if isinstance(x, FormLetter):
        made = x.form.letter(
            x.inp, x.out, {slot: _settled(inner, known) for slot, inner in x.filled}
        )
        return Term("letter", (made.T if x.starred else made,))
    if not isinstance(x, VectorLetter) or not x.given or x.space != "link":
        return term
    said = vector_letter(x.word, known[x.word])
    return Term("letter", (said.T if x.starred else said,))
