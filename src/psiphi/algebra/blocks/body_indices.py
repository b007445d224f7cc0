"""Bodies named by letters, and facts about their positions in the tree.

k + 1             the parent of k, or the base; the papers number bodies from the tip
k > j, k >= j     k is an ancestor of j; an ancestor of j or j itself
k.meets(j, a)     k and j are on different branches, and a is their nearest common ancestor
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from psiphi._util.errors import StateError
from psiphi._util.text import shown


@dataclass(frozen=True)
class Index:
    """A body by its letter: the body itself, its parent (`up` 1), its grandparent, ..."""

    name: str
    up: int = 0

    def __add__(self, steps: int) -> Index:
        if not isinstance(steps, int) or isinstance(steps, bool) or not 0 <= steps <= 100:
            raise StateError(
                f"{self} + {shown(steps)}",
                "k + 1 is the parent of k: add an integer from 0 to 100",
            )
        return Index(self.name, self.up + steps)

    def __gt__(self, other: Index) -> Ancestor:
        return Ancestor(self, _check_index(other) + 1)

    def __ge__(self, other: Index) -> Ancestor:
        return Ancestor(self, _check_index(other))

    def __lt__(self, other: Index) -> Ancestor:
        return _check_index(other) > self

    def __le__(self, other: Index) -> Ancestor:
        return _check_index(other) >= self

    def meets(self, other: Index, at: Index) -> Branching:
        """The fact that this body and `other` are on different branches that part at `at`."""
        return Branching(self, _check_index(other), _check_index(at))

    def __str__(self) -> str:
        return f"{self.name}+{self.up}" if self.up else self.name


@dataclass(frozen=True)
class Ancestor:
    """The fact that `upper` is `lower` or an ancestor of it."""

    upper: Index
    lower: Index

    def __bool__(self) -> bool:
        raise StateError(
            f"{self} is a fact without a truth value", "pass several as where=(k > i, i > j)"
        )

    def __str__(self) -> str:
        if self.lower.up == 1:
            return f"{self.upper} > {self.lower.name}"
        return f"{self.upper} ≥ {self.lower}"


@dataclass(frozen=True)
class Branching:
    """The fact that two bodies are on different branches with this nearest common ancestor."""

    first: Index
    second: Index
    ancestor: Index

    def __str__(self) -> str:
        return f"{self.first}, {self.second} on branches that part at {self.ancestor}"


Fact = Ancestor | Branching


def _check_index(x: object) -> Index:
    if not isinstance(x, Index):
        raise StateError(
            f"{shown(x)} is not a body", "name bodies by letters: i, j, k = s.bodies('i j k')"
        )
    return x


def bodies(names: str) -> tuple[Index, ...]:
    """Bodies named by letters: i, j, k = bodies("i j k")."""
    words = names.split() if isinstance(names, str) else []
    if not words or len(set(words)) < len(words) or not all(word.isidentifier() for word in words):
        raise StateError(
            f"bodies({shown(names)})", "pass different letters, separated by spaces: 'i j k'"
        )
    return tuple(Index(word) for word in words)


class Order:
    """Facts about the positions of bodies, and what follows from them.

    `existing`: parents that are known to be bodies, not the base.
    """

    def __init__(self, facts: Iterable[Fact] = (), existing: Iterable[Index] = ()):
        self.facts, self.existing = tuple(facts), frozenset(existing)
        self.branchings = [x for x in self.facts if isinstance(x, Branching)]
        above = [x for x in self.facts if isinstance(x, Ancestor)]
        for x in self.branchings:
            above += [x.ancestor > x.first, x.ancestor > x.second]
        # (n, m): the largest c with n ≥ m + c
        self.steps: dict[tuple[str, str], int] = {}
        for x in above:
            if x.upper.up:
                raise StateError(
                    f"{x}: the upper body of a fact is written as a parent",
                    f"write {x.upper.name} in place of {x.upper}",
                )
            self.steps[x.upper.name, x.lower.name] = max(
                x.lower.up, self.steps.get((x.upper.name, x.lower.name), 0)
            )
        self._close()

    def _close(self) -> None:
        """Transitive closure: n ≥ l + c and l ≥ m + d imply n ≥ m + c + d."""
        names = {name for pair in self.steps for name in pair}
        for middle in names:
            for n in names:
                for m in names:
                    if (n, middle) in self.steps and (middle, m) in self.steps:
                        c = self.steps[n, middle] + self.steps[middle, m]
                        self.steps[n, m] = max(c, self.steps.get((n, m), 0))
        if any(n == m and c for (n, m), c in self.steps.items()):
            raise StateError(
                f"{self}: a body would be its own ancestor",
                "check the signs in `where`",
            )
        if any(n != m and (m, n) in self.steps for n, m in self.steps):
            raise StateError(f"{self}: two letters for one body", "use one letter")

    def at_least(self, x: Index, y: Index) -> bool:
        """True if the facts imply x ≥ y: x is y or an ancestor of y."""
        if x.name == y.name:
            return x.up >= y.up
        steps = self.steps.get((x.name, y.name))
        return steps is not None and steps + x.up >= y.up

    def is_above(self, x: Index, y: Index) -> bool:
        """True if the facts imply that x is an ancestor of y."""
        return self.at_least(x, y + 1)

    def on_different_branches(self, x: Index, y: Index) -> bool:
        """True if the facts imply that x and y are on different branches."""
        return any(
            (self.at_least(m.first, x) and self.at_least(m.second, y))
            or (self.at_least(m.first, y) and self.at_least(m.second, x))
            for m in self.branchings
            if not x.up and not y.up
        )

    def never_at_least(self, x: Index, y: Index) -> bool:
        """True if the facts imply that x is neither y nor an ancestor of y."""
        return self.is_above(y, x) or self.on_different_branches(x, Index(y.name))

    def exists(self, x: Index) -> bool:
        """True if the facts imply that x is a body, not the base. Letters without + always are."""
        return not x.up or any(
            self.at_least(y, x) for y in (*(Index(n) for n, _ in self.steps), *self.existing)
        )

    def nearest_common_ancestor(self, x: Index, y: Index) -> Index | None:
        """The nearest common ancestor, if it follows from the facts."""
        if self.at_least(x, y):
            return x
        if self.at_least(y, x):
            return y
        return next((m.ancestor for m in self.branchings if self._on_branches(m, x, y)), None)

    def _on_branches(self, m: Branching, x: Index, y: Index) -> bool:
        """True if x and y are on the two paths from a branching to its two bodies."""
        return any(
            self.at_least(x, a)
            and self.at_least(m.ancestor, x)
            and self.at_least(y, b)
            and self.at_least(m.ancestor, y)
            for a, b in ((m.first, m.second), (m.second, m.first))
        )

    def __or__(self, facts: Iterable[Fact]) -> Order:
        return Order((*self.facts, *facts), self.existing)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.facts)

    def __str__(self) -> str:
        return ", ".join(map(str, self.facts))
