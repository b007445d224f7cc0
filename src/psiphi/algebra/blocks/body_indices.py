"""Bodies by letters, and what is known of how they stand: k > j says that k lies on the way from j to the base.

k + 1         the parent of k, as in the papers, which number bodies from the tip; the base of a root
k > j, k >= j     k is an ancestor of j; or j itself
k.meets(j, a)     k and j lie on different branches, and a is the body at which these part
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from psiphi._util.errors import StateError
from psiphi._util.text import shown


@dataclass(frozen=True)
class Index:
    """A body by its letter, or one further in: its parent (`up` 1), the parent of that, ..."""

    name: str
    up: int = 0

    def __add__(self, steps: Any) -> Index:
        if not isinstance(steps, int) or isinstance(steps, bool) or not 0 <= steps <= 100:
            raise StateError(
                f"{self} + {shown(steps)}",
                "k + 1 is the parent of k: add 0 to 100; children have no number",
            )
        return Index(self.name, self.up + steps)

    def __gt__(self, other: Any) -> Ancestor:
        return Ancestor(self, _index(other) + 1)

    def __ge__(self, other: Any) -> Ancestor:
        return Ancestor(self, _index(other))

    def __lt__(self, other: Any) -> Ancestor:
        return _index(other) > self

    def __le__(self, other: Any) -> Ancestor:
        return _index(other) >= self

    def meets(self, other: Any, at: Any) -> Branching:
        """This body and another lie on different branches, which part at a third."""
        return Branching(self, _index(other), _index(at))

    def __str__(self) -> str:
        return f"{self.name}+{self.up}" if self.up else self.name


@dataclass(frozen=True)
class Ancestor:
    """upper is lower, or an ancestor of it."""

    upper: Index
    lower: Index

    def __bool__(self) -> bool:
        raise StateError(
            f"{self} is a statement, neither true nor false", "give several as where=(k > i, i > j)"
        )

    def __str__(self) -> str:
        if self.lower.up == 1:
            return f"{self.upper} > {self.lower.name}"
        return f"{self.upper} ≥ {self.lower}"


@dataclass(frozen=True)
class Branching:
    """first and second lie on different branches; `at` is their nearest common ancestor."""

    first: Index
    second: Index
    at: Index

    def __str__(self) -> str:
        return f"{self.first}, {self.second} on branches that part at {self.at}"


Fact = Ancestor | Branching


def _index(x: Any) -> Index:
    if not isinstance(x, Index):
        raise StateError(
            f"{shown(x)} is no body", "name bodies by letters: i, j, k = s.bodies('i j k')"
        )
    return x


def bodies(names: Any) -> tuple[Index, ...]:
    """Bodies by their letters: i, j, k = bodies("i j k")."""
    words = names.split() if isinstance(names, str) else []
    if not words or len(set(words)) < len(words) or not all(word.isidentifier() for word in words):
        raise StateError(
            f"bodies({shown(names)})", "give different letters with spaces between them: 'i j k'"
        )
    return tuple(Index(word) for word in words)


class Order:
    """What is known of how some bodies stand, and what follows from it."""

    def __init__(self, facts: Iterable[Fact] = (), real: Iterable[Index] = ()):
        self.facts, self.real = tuple(facts), frozenset(real)
        self.meetings = [x for x in self.facts if isinstance(x, Branching)]
        above = [x for x in self.facts if isinstance(x, Ancestor)]
        for x in self.meetings:
            above += [x.at > x.first, x.at > x.second]
        self.steps: dict[
            tuple[str, str], int
        ] = {}  # (n, m): c, n is m + c or further in; the largest c that follows
        for x in above:
            if x.upper.up:
                raise StateError(
                    f"{x}: the body further in is written as a parent",
                    f"write {x.upper.name} for it",
                )
            self.steps[x.upper.name, x.lower.name] = max(
                x.lower.up, self.steps.get((x.upper.name, x.lower.name), 0)
            )
        self._close()

    def _close(self) -> None:
        """n ≥ l + c and l ≥ m + d: n ≥ m + c + d."""
        names = {name for pair in self.steps for name in pair}
        for middle in names:
            for n in names:
                for m in names:
                    if (n, middle) in self.steps and (middle, m) in self.steps:
                        way = self.steps[n, middle] + self.steps[middle, m]
                        self.steps[n, m] = max(way, self.steps.get((n, m), 0))
        if any(n == m and c for (n, m), c in self.steps.items()):
            raise StateError(
                f"{self} cannot be: a body would be its own ancestor",
                "look at the signs in `where`",
            )
        if any(n != m and (m, n) in self.steps for n, m in self.steps):
            raise StateError(f"{self}: two letters for one body", "use one letter")

    def at_least(self, x: Index, y: Index) -> bool:
        """Does it follow that x is y or an ancestor of it?"""
        if x.name == y.name:
            return x.up >= y.up
        steps = self.steps.get((x.name, y.name))
        return steps is not None and steps + x.up >= y.up

    def above(self, x: Index, y: Index) -> bool:
        """... that x is an ancestor of y?"""
        return self.at_least(x, y + 1)

    def apart(self, x: Index, y: Index) -> bool:
        """... that neither is the other's ancestor, nor the other itself?"""
        return any(
            (self.at_least(m.first, x) and self.at_least(m.second, y))
            or (self.at_least(m.first, y) and self.at_least(m.second, x))
            for m in self.meetings
            if not x.up and not y.up
        )

    def out_of_reach(self, x: Index, y: Index) -> bool:
        """... that x is neither y nor an ancestor of it? Were it one, it would be one of all that y carries."""
        return self.above(y, x) or self.apart(x, Index(y.name))

    def exists(self, x: Index) -> bool:
        """Is it a body, not the base or beyond? Letters are; of parents something must be known."""
        return not x.up or any(
            self.at_least(y, x) for y in (*(Index(n) for n, _ in self.steps), *self.real)
        )

    def highest(self, x: Index, y: Index) -> Index | None:
        """The body whose ancestors, and itself, are the common ancestors of two."""
        if self.at_least(x, y):
            return x
        if self.at_least(y, x):
            return y
        return next((m.at for m in self.meetings if self._met(m, x, y)), None)

    def _met(self, m: Branching, x: Index, y: Index) -> bool:
        """x on the way from one of the two to where they meet, y on that from the other."""
        return any(
            self.at_least(x, a)
            and self.at_least(m.at, x)
            and self.at_least(y, b)
            and self.at_least(m.at, y)
            for a, b in ((m.first, m.second), (m.second, m.first))
        )

    def __or__(self, facts: Iterable[Fact]) -> Order:
        return Order((*self.facts, *facts), self.real)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.facts)

    def __str__(self) -> str:
        return ", ".join(map(str, self.facts))
