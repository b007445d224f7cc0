"""Stages as the sweeps see them: links of any size, whose numbers are data.

What `q` is to a joint, the numbers of its model are to a stage: `path(q)` is the transition phi, `H(q)` the outputs. So code is
made for the shape of a tree (who is whose parent, how many states and outputs each has), and every model of that shape, one or
many at once, runs through it. A stage that measures nothing measures zero with noise 1: no gain comes of it, and every stage
has a map.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from psiphi.model.spatial.screws import dot
from psiphi.model.spatial.small_matrices import apply, transpose


@dataclass(frozen=True)
class Symmetric:
    """A symmetric matrix of any size, with the manners of a spatial inertia."""

    rows: list

    @property
    def size(self) -> int:
        return len(self.rows)

    @staticmethod
    def from_entries(entry) -> Symmetric:
        n = 1 + max(r for r, _ in entry)
        return Symmetric([[entry[r, c] for c in range(n)] for r in range(n)])

    @staticmethod
    def of(n: int, entry) -> Symmetric:
        """Each entry (r, c) with r <= c, once."""
        rows: list = [[None] * n for _ in range(n)]
        for r in range(n):
            for c in range(r, n):
                rows[r][c] = rows[c][r] = entry(r, c)
        return Symmetric(rows)

    @staticmethod
    def read(n: int, numbers) -> Symmetric:
        """From n x n numbers by rows."""
        return Symmetric.of(n, lambda r, c: numbers[r * n + c])

    @property
    def diagonal(self) -> list:
        return [self.rows[i][i] for i in range(self.size)]

    @property
    def flat(self) -> list:
        return [x for row in self.rows for x in row]

    def entry(self, r: int, c: int):
        return self.rows[r][c]

    def plus_diagonal(self, d) -> Symmetric:
        return Symmetric.of(
            self.size, lambda r, c: self.rows[r][c] + d[r] if r == c else self.rows[r][c]
        )

    def __add__(self, other: Symmetric) -> Symmetric:
        return Symmetric.of(self.size, lambda r, c: self.rows[r][c] + other.rows[r][c])

    def __matmul__(self, x) -> list:
        return [dot(row, x) for row in self.rows]

    def seen_by(self, T) -> Symmetric:
        """T P T*."""
        right = [self @ row for row in T]  # P T*, by columns
        return Symmetric.of(len(T), lambda r, c: dot(T[r], right[c]))


@dataclass(frozen=True)
class Transition:
    """phi(p, k) of a linear model, as a displacement: force phi f, motion phi* V."""

    phi: list

    def force(self, f) -> list:
        return apply(self.phi, f)

    def motion(self, V) -> list:
        return apply(transpose(self.phi), V)


@dataclass(frozen=True)
class Ground:
    """The way from a root to nowhere: nothing gets there, nothing comes back."""

    size: int

    def force(self, f) -> list:
        return []

    def motion(self, V) -> list:
        return [0.0] * self.size


@dataclass(frozen=True)
class StageLink:
    """One stage: `size` states, `width` outputs (one at least), `above` states of its parent, 0 at a root."""

    size: int
    width: int
    above: int
    axes = ()

    @property
    def kind(self) -> tuple[int, int, int]:
        """What its code depends on."""
        return self.size, self.width, self.above

    def numbers(self) -> list:
        """None that is known before there are data."""
        return []

    def with_numbers(self, numbers: list) -> StageLink:
        return self

    def path(self, q) -> list:
        n = self.size
        return [
            Transition([list(q[r * n : r * n + n]) for r in range(self.above)])
            if self.above
            else Ground(n)
        ]

    def H(self, q) -> list:
        n, start = self.size, self.size * self.above
        return [list(q[start + i * n : start + i * n + n]) for i in range(self.width)]


PLACES = {  # what belongs to a stage of n states and m outputs below p states, and how many numbers that is
    "q": lambda n, m, p: n * p + m * n,  # phi, H
    "v": lambda n, m, p: m,
    "x": lambda n, m, p: n,
    "own": lambda n, m, p: n * n + m,  # M, R
    "gains": lambda n, m, p: n * m + m * m + m + n * n,  # G, L and 1/d of D = L d L*, P+
    "more": lambda n, m, p: (
        2 * n * n + 2 * m * m + 2 * m
    ),  # P-, Lam+, D, C, variances of innovations, their origins
}


@dataclass(frozen=True)
class TreeShape:
    """A tree with what `psiphi.compiler.sweeps` asks of any tree: links, parents, where each one's numbers are. It stands where models
    of robots do when code is made of it."""

    parent: tuple[int, ...]
    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    name = "estimation"
    gravity = (0.0, 0.0, 0.0)
    embedding = None

    @cached_property
    def links(self) -> tuple[StageLink, ...]:
        above = (self.sizes[p] if p >= 0 else 0 for p in self.parent)
        return tuple(
            StageLink(n, max(m, 1), p)
            for n, m, p in zip(self.sizes, self.widths, above, strict=True)
        )

    @property
    def joints(self) -> tuple[StageLink, ...]:
        return self.links

    @property
    def gauge(self) -> tuple[None, ...]:
        return (None,) * len(self.links)

    @property
    def digest(self) -> str:
        return repr((self.parent, self.sizes, self.widths))

    @cached_property
    def ends(self) -> dict[str, list[int]]:
        """For each place, where the stages' parts begin; the last number is their sum."""
        found = {}
        for place, count in PLACES.items():
            total, starts = 0, [0]
            for link in self.links:
                total += count(*link.kind)
                starts.append(total)
            found[place] = starts
        return found

    def total(self, place: str) -> int:
        return self.ends[place][-1]

    @property
    def nv(self) -> int:
        return self.total("v")

    def slices(self, k: int) -> dict[str, slice]:
        return {place: slice(starts[k], starts[k + 1]) for place, starts in self.ends.items()}

    def parts(self, array: Any, place: str) -> list:
        """The stages' parts of an array (..., total)."""
        starts = self.ends[place]
        return [array[..., a:b] for a, b in pairwise(starts)]


def cut(numbers: Any, *counts: int) -> Iterator[Any]:
    """Consecutive pieces of a list, or of an array's last axis, of these lengths."""
    at = 0
    for count in counts:
        yield (
            numbers[at : at + count] if isinstance(numbers, list) else numbers[..., at : at + count]
        )
        at += count
