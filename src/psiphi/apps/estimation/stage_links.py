"""Stages as the links of a tree, for the sweeps: of any size, with matrices that are inputs.

The input `q` of a joint has its counterpart in the matrices of a stage: `path(q)` is the transition
phi, `H(q)` the outputs. Code therefore depends only on the shape of a tree (parents, numbers of
states and outputs), and serves all models of that shape, in batches. A stage without measurements
measures zero with noise 1, which has no effect; so every stage has an output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np

from psiphi._util.array_types import AnyScalar
from psiphi.model.spatial.screws import dot
from psiphi.model.spatial.small_matrices import apply, transpose

ListOrArray = TypeVar("ListOrArray", list, np.ndarray)


@dataclass(frozen=True)
class Symmetric:
    """A symmetric matrix of any size, with the interface of a spatial inertia."""

    rows: list

    @property
    def size(self) -> int:
        return len(self.rows)

    @staticmethod
    def from_entries(entry: Mapping[tuple[int, int], AnyScalar]) -> Symmetric:
        n = 1 + max(r for r, _ in entry)
        return Symmetric([[entry[r, c] for c in range(n)] for r in range(n)])

    @staticmethod
    def of(n: int, entry: Callable[[int, int], AnyScalar]) -> Symmetric:
        """The matrix with entries (r, c); each with r <= c is computed once."""
        rows: list = [[None] * n for _ in range(n)]
        for r in range(n):
            for c in range(r, n):
                rows[r][c] = rows[c][r] = entry(r, c)
        return Symmetric(rows)

    @staticmethod
    def from_rows(n: int, numbers: list) -> Symmetric:
        """The matrix of n x n numbers, by rows."""
        return Symmetric.of(n, lambda r, c: numbers[r * n + c])

    @property
    def diagonal(self) -> list:
        return [self.rows[i][i] for i in range(self.size)]

    @property
    def flat(self) -> list:
        return [x for row in self.rows for x in row]

    def entry(self, r: int, c: int) -> AnyScalar:
        return self.rows[r][c]

    def plus_diagonal(self, d: list) -> Symmetric:
        return Symmetric.of(
            self.size, lambda r, c: self.rows[r][c] + d[r] if r == c else self.rows[r][c]
        )

    def __add__(self, other: Symmetric) -> Symmetric:
        return Symmetric.of(self.size, lambda r, c: self.rows[r][c] + other.rows[r][c])

    def __matmul__(self, x: list) -> list:
        return [dot(row, x) for row in self.rows]

    def congruence(self, T: list) -> Symmetric:
        """T P T*."""
        PT = [self @ row for row in T]  # P T*, by columns
        return Symmetric.of(len(T), lambda r, c: dot(T[r], PT[c]))


@dataclass(frozen=True)
class Transition:
    """phi(p, k) of a linear model, as a displacement: force phi f, motion phi* V."""

    phi: list

    def force(self, f: list) -> list:
        return apply(self.phi, f)

    def motion(self, V: list) -> list:
        return apply(transpose(self.phi), V)


@dataclass(frozen=True)
class FixedGround:
    """The displacement of a root, which has no parent: no force arrives, motion is zero."""

    size: int

    def force(self, f: list) -> list:
        return []

    def motion(self, V: list) -> list:
        return [0.0] * self.size


@dataclass(frozen=True)
class StageLink:
    """A stage: `size` states, `width` outputs (at least one), `above` states of its parent or 0."""

    size: int
    width: int
    above: int
    axes = ()

    @property
    def kind(self) -> tuple[int, int, int]:
        """All that its code depends on."""
        return self.size, self.width, self.above

    def numbers(self) -> list:
        """Constants of the link: none, all numbers are inputs."""
        return []

    def with_numbers(self, numbers: list) -> StageLink:
        return self

    def path(self, q: list) -> list:
        n = self.size
        if not self.above:
            return [FixedGround(n)]
        return [Transition([list(q[r * n : r * n + n]) for r in range(self.above)])]

    def H(self, q: list) -> list:
        n, start = self.size, self.size * self.above
        return [list(q[start + i * n : start + i * n + n]) for i in range(self.width)]


# the numbers of a stage with n states and m outputs, whose parent has p states
PLACES: dict[str, Callable[[int, int, int], int]] = {
    "q": lambda n, m, p: n * p + m * n,  # phi, H
    "v": lambda n, m, p: m,
    "x": lambda n, m, p: n,
    "covariances": lambda n, m, p: n * n + m * m,  # M, R
    "gains": lambda n, m, p: n * m + m * m + m + n * n,  # G; L, 1/d of D = L d L*; P+
    # P-, Lam+, D, c, variances of the innovations, their scales
    "statistics": lambda n, m, p: 2 * n * n + 2 * m * m + 2 * m,
}


@dataclass(frozen=True)
class TreeShape:
    """Parents and sizes of a tree, with the interface that sweeps and compiler read of a model."""

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
        """For each place, where the part of each stage begins, and the total."""
        ends = {}
        for place, count in PLACES.items():
            total, starts = 0, [0]
            for link in self.links:
                total += count(*link.kind)
                starts.append(total)
            ends[place] = starts
        return ends

    def total(self, place: str) -> int:
        return self.ends[place][-1]

    @property
    def nv(self) -> int:
        return self.total("v")

    def slices(self, k: int) -> dict[str, slice]:
        return {place: slice(starts[k], starts[k + 1]) for place, starts in self.ends.items()}

    def parts(self, array: np.ndarray, place: str) -> list[np.ndarray]:
        """An array (..., total), cut by stage."""
        return [array[..., a:b] for a, b in pairwise(self.ends[place])]


def cut(numbers: ListOrArray, *counts: int) -> Iterator[ListOrArray]:
    """Consecutive pieces of a list, or of the last axis of an array, with these lengths."""
    start = 0
    for count in counts:
        end = start + count
        yield numbers[start:end] if isinstance(numbers, list) else numbers[..., start:end]
        start = end
