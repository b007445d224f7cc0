"""How a number varies from motion to motion: a kind, a row of `KINDS`, and its numbers.

uniform = [low, high]      loguniform = [low, high]      normal = [mean, deviation]
choice = [a, b, ...]       one of these, each as likely
grid = [a, b, ...]         all of these, with all of every other grid, the first grid fastest
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
    """A kind: how many numbers it takes (None: one or more), what is wrong with them ('' when nothing is), and how it draws."""

    size: int | None
    fault: Callable[[list[float]], str]
    draw: Draw


def _ordered(x: list[float]) -> str:
    if not math.isfinite(x[1] - x[0]):
        return "its numbers are further apart than can be counted"
    return "" if x[0] < x[1] else "its second number is not above its first"


def _positive(x: list[float]) -> str:
    return _ordered(x) or ("" if x[0] > 0.0 else "its numbers have logarithms only above 0")


def _choice(x: tuple[float, ...], seed: int, name: str, i: np.ndarray) -> np.ndarray:
    return np.array(x)[np.minimum((uniform(seed, name, i) * len(x)).astype(int), len(x) - 1)]


KINDS: dict[str, DistributionKind] = {
    "uniform": DistributionKind(2, _ordered, lambda x, *at: x[0] + (x[1] - x[0]) * uniform(*at)),
    "loguniform": DistributionKind(
        2, _positive, lambda x, *at: x[0] * np.exp(math.log(x[1] / x[0]) * uniform(*at))
    ),
    "normal": DistributionKind(
        2,
        lambda x: "its deviation is negative" * (x[1] < 0.0),
        lambda x, *at: x[0] + x[1] * normal(*at),
    ),
    "choice": DistributionKind(None, lambda x: "", _choice),
    "grid": DistributionKind(
        None, lambda x: "", lambda x, stride, _, i: np.array(x)[(np.asarray(i) // stride) % len(x)]
    ),
}


@dataclass(frozen=True)
class Distribution:
    """One kind with its numbers; `relative`: of the number that would be there otherwise."""

    kind: str
    numbers: tuple[float, ...]
    relative: bool = False

    def draw(self, seed: int, name: str, i: np.ndarray) -> np.ndarray:
        """The numbers of motions i, in the stream `name`; of a grid `seed` is how many motions share a number."""
        return KINDS[self.kind].draw(self.numbers, seed, name, i)

    @property
    def is_grid(self) -> bool:
        return self.kind == "grid"


def is_distribution(value: object) -> bool:
    """Whether a table of TOML is a distribution, or one of several by name."""
    return not isinstance(value, dict) or bool({"relative", *KINDS} & set(value))


def read_distribution(table: Table, key: str) -> Distribution:
    """`key = { uniform = [0.8, 1.2], relative = true }`; a plain number is a choice of one."""
    if not isinstance(table.get(key), dict):
        return Distribution("choice", (table.number(key),))
    row = table.table(key)
    kinds = [kind for kind in KINDS if kind in row]
    if len(kinds) != 1:
        strange = [name for name in row.values if name not in (*KINDS, "relative")]
        hint = nearest(strange[0], list(KINDS)) if strange else f"one of {', '.join(KINDS)}"
        table.fail(key, f"is {shown(row.values)}, expected one distribution", hint)
    kind = KINDS[kinds[0]]
    numbers = row.numbers(kinds[0], kind.size)
    if not numbers:
        row.fail(kinds[0], "is empty", "give at least one number")
    if fault := kind.fault(numbers):
        row.fail(kinds[0], f"is {numbers}: {fault}", "see docs/studies.md for what each kind takes")
    relative = row.flag("relative", False)
    row.done()
    return Distribution(kinds[0], tuple(numbers), relative)
