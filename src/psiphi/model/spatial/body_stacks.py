"""Values of several bodies as one: vectors end to end, inertias as diagonal blocks.

The sweeps use them for clusters. The stacked 6-vectors of r bodies have 6 r entries. `extract_body`
returns the part of one body; `insert_body` stacks the value of one body with zeros for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from psiphi._util.array_types import AnyScalar
from psiphi.model.spatial.screws import Inertia, add, dot
from psiphi.model.spatial.small_matrices import body_part

ZERO_INERTIA = Inertia(*([[0.0] * 3 for _ in range(3)] for _ in range(3)))


def by_body(rule: Callable[..., list], *stacks: list) -> list:
    """Apply a rule on 6-vectors to each body of stacked vectors."""
    return [y for k in range(len(stacks[0]) // 6) for y in rule(*(body_part(x, k) for x in stacks))]


def extract_body(value: object, index: int, count: int) -> Any:
    """The part of body `index` in a value of `count` bodies; tuples are taken entry by entry."""
    if isinstance(value, tuple):
        return tuple(extract_body(x, index, count) for x in value)
    if isinstance(value, list):
        return body_part(value, index, len(value) // count)
    method = getattr(value, "extract_body", None)
    return method(index, count) if method else value


def insert_body(value: object, index: int, count: int) -> Any:
    """A value of `count` bodies that is `value` at body `index` and zero at the others."""
    method = getattr(value, "insert_body", None)
    if method:
        return method(index, count)
    if isinstance(value, Inertia):
        return StackedInertia([value if i == index else ZERO_INERTIA for i in range(count)])
    if isinstance(value, dict):
        return type(value)({key: insert_body(x, index, count) for key, x in value.items()})
    if isinstance(value, list) and all(not isinstance(x, list) for x in value):
        return [x if i == index else 0.0 for i in range(count) for x in value]
    if (
        is_dataclass(value)
        and not isinstance(value, type)
        and "value" in {f.name for f in fields(value)}
    ):
        return replace(value, value=insert_body(value.value, index, count))  # type: ignore
    raise TypeError(f"cannot stack values of type {type(value).__name__}")


@dataclass(frozen=True)
class StackedInertia:
    """diag(P₁, P₂, ...) of several bodies."""

    blocks: list

    @property
    def size(self) -> int:
        return 6 * len(self.blocks)

    def __add__(self, other: StackedInertia) -> StackedInertia:
        return StackedInertia([a + b for a, b in zip(self.blocks, other.blocks, strict=True)])

    def __matmul__(self, x: list) -> list:
        return [y for k, block in enumerate(self.blocks) for y in block @ body_part(x, k)]

    def entry(self, r: int, c: int) -> AnyScalar:
        return self.blocks[r // 6].entry(r % 6, c % 6) if r // 6 == c // 6 else 0.0

    def minus_product(self, G: list, U: list, closed: tuple[int, ...]) -> ReducedInertia:
        """P - G U* in factored form; G is given by rows, U by columns."""
        return ReducedInertia(self, [list(column) for column in zip(*G, strict=True)], U)


@dataclass(frozen=True)
class ReducedInertia:
    """P - Σ g u*: the stack P of a cluster after its joint is eliminated."""

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
    """A symmetric matrix of any size, stored by columns."""

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

    def extract_body(self, index: int, count: int) -> Inertia:
        """The 6 x 6 diagonal block of body `index`."""
        return Inertia.from_entries(
            {(r, c): self.entry(6 * index + r, 6 * index + c) for r in range(6) for c in range(6)}
        )
