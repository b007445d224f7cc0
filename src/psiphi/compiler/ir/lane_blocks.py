"""Blocks that tapes cannot express: random numbers, a selection that stops NaN, a table.

    RandomNumbers    uniform numbers in (0, 1) that depend on a key and a counter only
    Selection        place <- new place, or 0, in the lanes where a condition is not 0
    GridLookup       numbers of a table at the cells of a grid in which points are

A tape selects by products with masks, and 0 times NaN is NaN. The random numbers are those of
Philox 4x32-10 (Salmon et al. 2011): the counter is three words of the block and the number of the
draw, so that each number is a function of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psiphi.compiler.sweeps.sweep_program import Argument, Program
from psiphi.compiler.tape.tape import Count

ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
WORD = 0xFFFFFFFF
DRAWS = 4  # numbers of one counter
GRID_POINTS, TABLE = "grid_points", "table"  # arguments of a lookup
GRID_LIMIT = 2.0**30  # coordinates of a grid beyond it count as it, and NaN as its negative
REFERENCE = 3  # words of a reference to a table
KEY, COUNTER = "key", "counter"  # arguments: two and three words, as floats that are whole


def philox(counter: Sequence[np.ndarray], key: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Four words of 32 bits for each counter of four words and key of two words.

    >>> [hex(int(x)) for x in philox([np.uint64(0)] * 4, [np.uint64(0)] * 2)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    c0, c1, c2, c3 = (np.asarray(x, np.uint64) for x in counter)
    k0, k1 = (np.asarray(x, np.uint64) for x in key)
    word, half = np.uint64(WORD), np.uint64(32)
    for _ in range(ROUNDS):
        a, b = c0 * np.uint64(MULTIPLIERS[0]), c2 * np.uint64(MULTIPLIERS[1])
        c0, c1, c2, c3 = (b >> half) ^ c1 ^ k0, b & word, (a >> half) ^ c3 ^ k1, a & word
        k0, k1 = (k0 + np.uint64(WEYL[0])) & word, (k1 + np.uint64(WEYL[1])) & word
    return c0, c1, c2, c3


@dataclass(frozen=True)
class RandomNumbers:
    """`size` uniform numbers, a multiple of `DRAWS`, from the draw `first` on: (word + 1/2) / 2^32.

    The result is the argument `numbers`.
    """

    size: int
    first: int = 0

    @cached_property
    def program(self) -> Program:
        inputs = Argument(KEY, (2,)), Argument(COUNTER, (3,))
        return Program("random", inputs, (Argument("numbers", (self.size,)),), ())

    @property
    def count(self) -> Count:
        """Without floating-point operations, apart from the scaling."""
        return Count(add=2 * self.size, mul=self.size)

    @property
    def key(self) -> list:
        return ["random", self.size, self.first]

    def on(self, key: np.ndarray, counter: np.ndarray) -> dict[str, np.ndarray]:
        """The numbers (..., size), for key (..., 2) and counter (..., 3)."""
        words, k = list(np.moveaxis(counter, -1, 0)), list(np.moveaxis(key, -1, 0))
        draws = (np.full_like(words[0], self.first + i) for i in range(self.size // DRAWS))
        found = [x for draw in draws for x in philox([*words, draw], k)]
        return {"numbers": (np.stack(found, axis=-1) + 0.5) * 2.0**-32}


@dataclass(frozen=True)
class Selection:
    """For each place of `values`, the new value where `condition` is not 0; "" is zero.

    `sizes` are the sizes of the places.
    """

    condition: str
    values: Mapping[str, str]  # {place: place of its new value, or ""}
    sizes: Mapping[str, int]

    @cached_property
    def program(self) -> Program:
        new = {x: self.sizes[place] for place, x in self.values.items() if x}
        outputs = tuple(Argument(place, (self.sizes[place],)) for place in self.values)
        first = Argument(self.condition, (1,))
        inputs = first, *(Argument(x, (size,)) for x, size in new.items()), *outputs
        return Program("selection", inputs, outputs, ())

    @property
    def count(self) -> Count:
        return Count()

    @property
    def key(self) -> list:
        return ["selection", self.condition, dict(self.values), dict(self.sizes)]

    def on(self, **places: np.ndarray) -> dict[str, np.ndarray]:
        """The places (..., n) after the selection."""
        mask = places[self.condition] != 0.0
        return {
            place: np.where(mask, places[new] if new else 0.0, places[place])
            for place, new in self.values.items()
        }


@dataclass(frozen=True)
class GridLookup:
    """For each point its cell (i, j) of a grid, and the numbers of a table (n0, n1) about it.

    A point has two coordinates x, y in units of the grid; (i, j) = floor((x, y)). The result has
    for each point i, j, and the numbers of the table at (i, j), (i, j + 1), ... to (i + m, j + m),
    row by row, where m is the point's entry of `cells`. Outside of the table they are those at its
    border.

    The frame has a reference to the table: its address, the bytes from one element to the next, and
    the number of the last element (`REFERENCE` words). The table itself is read where it is.
    """

    shape: tuple[int, int]
    cells: tuple[int, ...]

    @cached_property
    def program(self) -> Program:
        inputs = Argument(GRID_POINTS, (2 * len(self.cells),)), Argument(TABLE, (REFERENCE,))
        return Program("lookup", inputs, (Argument("cells", (self.size,)),), ())

    @property
    def sizes(self) -> list[int]:
        """How many numbers the result has for each point."""
        return [2 + (m + 1) ** 2 for m in self.cells]

    @property
    def size(self) -> int:
        return sum(self.sizes)

    @property
    def count(self) -> Count:
        """Without floating-point operations, apart from rounding."""
        return Count(add=2 * len(self.cells))

    @property
    def key(self) -> list:
        return ["lookup", self.shape, self.cells]

    def on(self, grid_points: np.ndarray, table: np.ndarray) -> dict[str, np.ndarray]:
        """The result (..., size), for points (..., 2n) and tables (..., n0 n1)."""
        lead = np.broadcast_shapes(grid_points.shape[:-1], table.shape[:-1])
        table = np.broadcast_to(table, (*lead, table.shape[-1]))
        found = []
        for k, m in enumerate(self.cells):
            points = np.nan_to_num(grid_points[..., 2 * k : 2 * k + 2], nan=-GRID_LIMIT)
            low = np.moveaxis(np.floor(np.clip(points, -GRID_LIMIT, GRID_LIMIT)), -1, 0)
            rows, columns = (
                np.clip(x[..., None] + np.arange(m + 1), 0, n - 1).astype(int)
                for x, n in zip(low, self.shape, strict=True)
            )
            at = rows[..., :, None] * self.shape[1] + columns[..., None, :]
            at = np.broadcast_to(at.reshape(*at.shape[:-2], -1), (*lead, (m + 1) ** 2))
            origin = [np.broadcast_to(x, lead)[..., None] for x in low]
            found.append(np.concatenate([*origin, np.take_along_axis(table, at, -1)], axis=-1))
        return {"cells": np.concatenate(found, axis=-1)}


LaneCode = RandomNumbers | Selection | GridLookup
