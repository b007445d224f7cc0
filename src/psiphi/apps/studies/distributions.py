"""Distributions of a parameter over the motions: a kind (a row of `KINDS`) and its numbers.

uniform = [low, high]      loguniform = [low, high]      normal = [mean, standard deviation]
choice = [a, b, ...]       one of these, with equal probability
grid = [a, b, ...]         every combination of all grids; the first grid changes fastest
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from psiphi._util.text import nearest, shown
from psiphi.apps.scenes.toml_table import Table
from psiphi.apps.studies.philox import normal, uniform

Draw = Callable[[tuple[float, ...], int, str, np.ndarray], np.ndarray]


class DistributionKind(NamedTuple):
    """A kind of distribution.

    `size` is its count of numbers (None: one or more), `fault` says what is wrong with them ("" if
    nothing), `draw` samples it.
    """

    size: int | None
    fault: Callable[[list[float]], str]
    draw: Draw


def _interval_fault(x: list[float]) -> str:
    if not math.isfinite(x[1] - x[0]):
        return "the difference of its numbers overflows"
    return "" if x[0] < x[1] else "its second number is not above its first"


def _log_interval_fault(x: list[float]) -> str:
    return _interval_fault(x) or ("" if x[0] > 0.0 else "its numbers must be positive")


def _draw_choice(x: tuple[float, ...], seed: int, name: str, i: np.ndarray) -> np.ndarray:
    return np.array(x)[np.minimum((uniform(seed, name, i) * len(x)).astype(int), len(x) - 1)]


KINDS: dict[str, DistributionKind] = {
    "uniform": DistributionKind(
        2, _interval_fault, lambda x, *stream: x[0] + (x[1] - x[0]) * uniform(*stream)
    ),
    "loguniform": DistributionKind(
        2,
        _log_interval_fault,
        lambda x, *stream: x[0] * np.exp(math.log(x[1] / x[0]) * uniform(*stream)),
    ),
    "normal": DistributionKind(
        2,
        lambda x: "its standard deviation is negative" * (x[1] < 0.0),
        lambda x, *stream: x[0] + x[1] * normal(*stream),
    ),
    "choice": DistributionKind(None, lambda x: "", _draw_choice),
    "grid": DistributionKind(
        None, lambda x: "", lambda x, stride, _, i: np.array(x)[(np.asarray(i) // stride) % len(x)]
    ),
}


@dataclass(frozen=True)
class Distribution:
    """A kind with its numbers. `relative`: samples are factors of the nominal value."""

    kind: str
    numbers: tuple[float, ...]
    relative: bool = False

    def draw(self, seed: int, name: str, i: np.ndarray) -> np.ndarray:
        """Samples for motions i from the stream `name`. For a grid, `seed` is the stride."""
        return KINDS[self.kind].draw(self.numbers, seed, name, i)

    @property
    def is_grid(self) -> bool:
        return self.kind == "grid"


def is_distribution(value: object) -> bool:
    """Whether a TOML value is one distribution, not a table of them by name."""
    return not isinstance(value, dict) or bool({"relative", *KINDS} & set(value))


def read_distribution(table: Table, key: str) -> Distribution:
    """Read `key = { uniform = [0.8, 1.2], relative = true }`; a number is a choice of one."""
    if not isinstance(table.get(key), dict):
        return Distribution("choice", (table.number(key),))
    row = table.table(key)
    kinds = [kind for kind in KINDS if kind in row]
    if len(kinds) != 1:
        unknown = [name for name in row.values if name not in (*KINDS, "relative")]
        hint = nearest(unknown[0], list(KINDS)) if unknown else f"one of {', '.join(KINDS)}"
        table.fail(key, f"is {shown(row.values)}, expected one distribution", hint)
    kind = KINDS[kinds[0]]
    numbers = row.numbers(kinds[0], kind.size)
    if not numbers:
        row.fail(kinds[0], "is empty", "write at least one number")
    if fault := kind.fault(numbers):
        row.fail(
            kinds[0], f"is {numbers}: {fault}", "docs/studies.md lists the numbers of each kind"
        )
    relative = row.flag("relative", False)
    row.reject_unknown()
    return Distribution(kinds[0], tuple(numbers), relative)
