"""Values of several bodies as one: vectors end to end, inertias as diagonal blocks; what a cluster of bodies keeps and sends.

A stack of r bodies' 6-vectors has 6 r numbers. `taken` is what a body that hangs on one of them sees of a stacked value,
`put` what it hands in: its own, and nothing from the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from psiphi.model.spatial.screws import Inertia, add, dot
from psiphi.model.spatial.small_matrices import part

NOTHING = Inertia(*([[0.0] * 3 for _ in range(3)] for _ in range(3)))


def by_body(rule: Callable[..., list], *stacks: list) -> list:
    """A rule on 6-vectors, body by body."""
    return [y for at in range(len(stacks[0]) // 6) for y in rule(*(part(x, at) for x in stacks))]


def taken(value: Any, at: int, count: int) -> Any:
    """Body `at`'s part of a value of `count` bodies: a share of a list, of each list in a tuple."""
    if isinstance(value, tuple):
        return tuple(taken(x, at, count) for x in value)
    if isinstance(value, list):
        return part(value, at, len(value) // count)
    return value.taken(at, count) if hasattr(value, "taken") else value


def put(value: Any, at: int, count: int) -> Any:
    """A value of body `at` as one of all `count`."""
    if hasattr(value, "put"):
        return value.put(at, count)
    if isinstance(value, Inertia):
        return StackedInertia([value if i == at else NOTHING for i in range(count)])
    if isinstance(value, dict):
        return type(value)({key: put(x, at, count) for key, x in value.items()})
    if isinstance(value, list) and all(not isinstance(x, list) for x in value):
        return [x if i == at else 0.0 for i in range(count) for x in value]
    if (
        is_dataclass(value)
        and not isinstance(value, type)
        and "value" in {f.name for f in fields(value)}
    ):
        return replace(value, value=put(value.value, at, count))  # type: ignore[type-var]
    raise TypeError(f"no stack of {type(value).__name__}")


@dataclass(frozen=True)
class StackedInertia:
    """diag(P₁, P₂, ..): bodies side by side."""

    blocks: list

    @property
    def size(self) -> int:
        return 6 * len(self.blocks)

    def __add__(self, other: StackedInertia) -> StackedInertia:
        return StackedInertia([a + b for a, b in zip(self.blocks, other.blocks, strict=True)])

    def __matmul__(self, x: list) -> list:
        return [y for at, block in enumerate(self.blocks) for y in block @ part(x, at)]

    def entry(self, r: int, c: int) -> Any:
        return self.blocks[r // 6].entry(r % 6, c % 6) if r // 6 == c // 6 else 0.0

    def less(self, G: list, U: list, closed: tuple[int, ...]) -> ReducedInertia:
        """P - G U*, G by rows, U by columns; not written out."""
        return ReducedInertia(self, [list(column) for column in zip(*G, strict=True)], U)


@dataclass(frozen=True)
class ReducedInertia:
    """P - Σ g u*: a stack less what its joint takes up."""

    P: StackedInertia
    G: list  # by columns
    U: list

    @property
    def size(self) -> int:
        return self.P.size

    def __matmul__(self, x: list) -> list:
        out = self.P @ x
        for g, u in zip(self.G, self.U, strict=True):
            by = dot(u, x)
            out = [y - z * by for y, z in zip(out, g, strict=True)]
        return out

    def entry(self, r: int, c: int) -> Any:
        value = self.P.entry(r, c)
        for g, u in zip(self.G, self.U, strict=True):
            value = value - g[r] * u[c]
        return value


@dataclass(frozen=True)
class DenseSquare:
    """A symmetric matrix of any size, by columns."""

    columns: list

    @property
    def size(self) -> int:
        return len(self.columns)

    def __matmul__(self, x: list) -> list:
        return [dot([column[r] for column in self.columns], x) for r in range(self.size)]

    def __add__(self, other: DenseSquare) -> DenseSquare:
        return DenseSquare([add(a, b) for a, b in zip(self.columns, other.columns, strict=True)])

    def entry(self, r: int, c: int) -> Any:
        return self.columns[max(r, c)][min(r, c)]

    def taken(self, at: int, count: int) -> Inertia:
        """The 6 x 6 block of one body."""
        return Inertia.from_entries(
            {(r, c): self.entry(6 * at + r, 6 * at + c) for r in range(6) for c in range(6)}
        )
