"""Force-motion duality: which link vectors are forces, which are motions; sizes of frame vectors.

The compiler may choose the axes of a link. A change of axes acts on forces by φ and on motions by
φ*⁻¹. A sum of a force and a motion, or φ applied to a motion, therefore depends on the choice, and
raises an error. The axes of joint and frame spaces are fixed: torques and rates may mix there
(J J*, J* J).

    product   the left factor takes the side that the right one gives
    sum       all terms give the same side and take the same side
    A*        gives the dual of what A takes, and takes the dual of what A gives
    A⁻¹       gives what A takes, and takes what A gives
    I, ω̃      give the side that they take

Each end of a term is an unknown. These rules make unknowns equal or dual to each other; letters
determine their values. The number of frames of a frame space is found in the same way.
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

SideValue = str | int | None  # FORCE or MOTION; a number of frames (0: any); None: unknown


class End(NamedTuple):
    """One end of a term: an unknown, by number, or its dual."""

    unknown: int
    dual: bool = False

    def opposite(self) -> End:
        return End(self.unknown, not self.dual)


class DualityConflict(Exception):
    """Two ends with different values."""

    def __init__(self, left: SideValue, right: SideValue):
        self.left, self.right = left, right


class NameClash(Exception):
    """One name is used for two vectors of different spaces."""

    def __init__(self, name: str, left: str, right: str):
        self.name, self.left, self.right = name, left, right


@dataclass
class Unknowns:
    """Union-find over ends: each unknown equals its parent or the dual of it; roots have values."""

    parents: list[End] = field(default_factory=list)
    values: list[SideValue] = field(default_factory=list)

    def new(self, value: SideValue = None) -> End:
        self.parents.append(End(len(self.parents)))
        self.values.append(value)
        return self.parents[-1]

    def root(self, end: End) -> End:
        dual = end.dual
        while (up := self.parents[end.unknown]).unknown != end.unknown:
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
            if x.dual != y.dual and self.values[x.unknown] is None:
                raise DualityConflict(FORCE, MOTION)  # an end would be its own dual
            return
        if left is not None or self.values[x.unknown] == 0:
            x, y = y, x  # the root with the less definite value becomes the child
        self.parents[x.unknown] = End(y.unknown, x.dual != y.dual)
        self.values[y.unknown] = self.values[y.unknown] or self.values[x.unknown]


@dataclass(frozen=True)
class Ends:
    """The ends of a term and of its vectors.

    gives, takes    the ends of its output and input; None for a space without sides
    vectors         (name, space, the end with its side or number of frames) of each vector
    """

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
        """FORCE or MOTION; an undetermined unknown is a force, and its dual a motion."""
        return str(self.value(end) or (MOTION if end.dual else FORCE))

    @property
    def vector_values(self) -> dict[str, SideValue]:
        """The side, or the number of frames, of each vector by name."""
        return {name: self.value(end) for name, _, end in self.vectors}


class _EndsBuilder:
    """Combines the ends of several terms."""

    def __init__(self):
        self.unknowns = Unknowns()
        self.vectors: dict[str, tuple[str, End | None]] = {}

    def add(self, ends: Ends) -> tuple[End | None, End | None]:
        """Copy the ends of a term; vectors of one name are one vector."""
        new = [self.unknowns.new(value) for value in ends.unknowns]

        def copy(end: End | None) -> End | None:
            return None if end is None else End(new[end.unknown].unknown, end.dual)

        for name, space, end in ends.vectors:
            self.add_vector(name, space, copy(end))
        return copy(ends.gives), copy(ends.takes)

    def add_vector(self, name: str, space: str, end: End | None) -> None:
        if name not in self.vectors:
            self.vectors[name] = space, end
            return
        known, other = self.vectors[name]
        if known != space:
            raise NameClash(name, known, space)
        self.join(end, other)

    def join(self, a: End | None, b: End | None) -> End | None:
        """a = b; an end that is None is ignored."""
        if a is not None and b is not None:
            self.unknowns.join(a, b)
        return b if a is None else a

    def build(self, gives: End | None, takes: End | None) -> Ends:
        """The combined ends, with unknowns numbered by first use."""
        values: list[SideValue] = []
        numbers: dict[int, int] = {}

        def numbered(end: End | None) -> End | None:
            if end is None:
                return None
            root = self.unknowns.root(end)
            if root.unknown not in numbers:
                numbers[root.unknown] = len(values)
                values.append(self.unknowns.values[root.unknown])
            return End(numbers[root.unknown], root.dual)

        gives, takes = numbered(gives), numbered(takes)
        vectors = tuple((name, space, numbered(end)) for name, (space, end) in self.vectors.items())
        return Ends(tuple(values), gives, takes, vectors)


@lru_cache(maxsize=8192)
def ends(term: Term) -> Ends:
    """The ends of a term; raises `DualityConflict` or `NameClash` if the term is illegal."""
    if term.op == "letter":
        return _letter_ends(term.args[0])
    if term.op == "scale":
        return ends(term.args[1])
    inner = ends(term.args[0])
    if term.op == "inverse":
        return Ends(inner.unknowns, inner.takes, inner.gives, inner.vectors)
    if term.op == "adjoint":
        return _adjoint_ends(inner)
    return product_ends(term.args) if term.op == "product" else sum_ends(term.args)


def product_ends(factors: Iterable[Term]) -> Ends:
    """t u ...: u gives what t takes."""
    builder, rest = _EndsBuilder(), iter(factors)
    gives, takes = builder.add(ends(next(rest)))
    for factor in rest:
        left, right = builder.add(ends(factor))
        builder.join(takes, left)
        takes = right
    return builder.build(gives, takes)


def sum_ends(parts: Iterable[Term]) -> Ends:
    """t + u + ...: all give the same, and take the same."""
    builder = _EndsBuilder()
    gives = takes = None
    for part in parts:
        left, right = builder.add(ends(part))
        gives, takes = builder.join(gives, left), builder.join(takes, right)
    return builder.build(gives, takes)


def _adjoint_ends(inner: Ends) -> Ends:
    def dual(end: End | None) -> End | None:
        return end.opposite() if end is not None and not isinstance(inner.value(end), int) else end

    return Ends(inner.unknowns, dual(inner.takes), dual(inner.gives), inner.vectors)


def _letter_ends(x: Letter) -> Ends:
    if x.starred and not x.either_side:
        return _adjoint_ends(_letter_ends(x.T))
    builder = _EndsBuilder()
    if isinstance(x, FormLetter):
        return _form_ends(x, builder)
    if x.needs_velocity:
        builder.add_vector("v", "joint", None)
    if x.either_side:
        end = builder.unknowns.new()
        return builder.build(end, end)
    gives, takes = (
        {
            "link": builder.unknowns.new(side or None),
            "frame": builder.unknowns.new(space.frames or 0),
        }.get(space.name)
        for space, side in ((x.rows, x.gives), (x.cols, x.takes))
    )
    if isinstance(x, SymbolLetter):
        builder.add_vector(x.word, f"symbol over {x.space}s", None)
    if isinstance(x, VectorLetter) and x.is_input:
        builder.add_vector(x.word, "link" if x.space in SIDES else x.space, gives)
    return builder.build(gives, takes)


def _form_ends(x: FormLetter, builder: _EndsBuilder) -> Ends:
    """The vector in a slot has the side of the slot; all frame slots have the same frames."""
    slots, frames = x.form.slots, builder.unknowns.new(0)
    end = {
        slot: {"link": builder.unknowns.new(row.side or None), "frame": frames}.get(row.space.name)
        for slot, row in slots.items()
    }
    for slot, inner in x.filled:
        builder.join(builder.add(ends(inner))[0], end[slot])
    gives = end[x.out]
    return builder.build(
        gives.opposite() if gives is not None and gives is not frames else gives, end[x.inp]
    )


def resolve_sides(term: Term) -> Term:
    """The term with each link vector declared a force or a motion; undetermined ones are forces."""
    found = ends(term)
    known = {
        name: found.side(end)
        for name, space, end in found.vectors
        if space == "link" and end is not None
    }
    return _resolve_sides(term, known) if known else term


def _resolve_sides(term: Term, known: dict[str, str]) -> Term:
    if term.op != "letter":
        return Term(
            term.op,
            tuple(_resolve_sides(x, known) if isinstance(x, Term) else x for x in term.args),
        )
    x = term.args[0]
    if isinstance(x, FormLetter):
        letter = x.form.letter(
            x.inp, x.out, {slot: _resolve_sides(inner, known) for slot, inner in x.filled}
        )
        return Term("letter", (letter.T if x.starred else letter,))
    if not isinstance(x, VectorLetter) or not x.is_input or x.space != "link":
        return term
    vector = vector_letter(x.word, known[x.word])
    return Term("letter", (vector.T if x.starred else vector,))
