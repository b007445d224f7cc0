"""Distributions of a parameter over the motions: a kind (a row of `KINDS`) and its numbers.

uniform = [low, high]      loguniform = [low, high]      normal = [mean, standard deviation]
choice = [a, b, ...]       one of these, with equal probability
grid = [a, b, ...]         every combination of all grids; the first grid changes fastest
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from psiphi._util.errors import StateError
from psiphi._util.text import nearest, shown
from psiphi._util.validate import read_array
from psiphi.apps.scenes.toml_table import Table
from psiphi.model.spatial.branch_free import less
from psiphi.simulation.sensors.philox import normal, uniform


class RandomSource(Protocol):
    """Where a distribution gets its numbers from: arrays, or expressions of a tape."""

    def uniform(self) -> Any: ...
    def normal(self) -> Any: ...
    def index(self, count: int) -> Any: ...


Draw = Callable[[tuple[float, ...], RandomSource], Any]


@dataclass(frozen=True)
class Stream:
    """The random numbers of motions i in the stream `name`. For a grid, `seed` is the stride."""

    seed: int
    name: str
    i: np.ndarray

    def uniform(self) -> np.ndarray:
        return uniform(self.seed, self.name, self.i)

    def normal(self) -> np.ndarray:
        return normal(self.seed, self.name, self.i)

    def index(self, count: int) -> np.ndarray:
        return (np.asarray(self.i) // self.seed) % count


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


def _draw_choice(x: tuple[float, ...], source: RandomSource) -> Any:
    """The sum of all choices, each with a mask: 1 where it is taken."""
    u = len(x) * source.uniform()
    below = [0.0 * u, *(less(u, float(k)) for k in range(1, len(x))), 1.0]
    return sum((after - before) * y for y, before, after in zip(x, below, below[1:], strict=False))


KINDS: dict[str, DistributionKind] = {
    "uniform": DistributionKind(
        2, _interval_fault, lambda x, source: x[0] + (x[1] - x[0]) * source.uniform()
    ),
    "loguniform": DistributionKind(
        2,
        _log_interval_fault,
        lambda x, source: x[0] * np.exp(math.log(x[1] / x[0]) * source.uniform()),
    ),
    "normal": DistributionKind(
        2,
        lambda x: "its standard deviation is negative" * (x[1] < 0.0),
        lambda x, source: x[0] + x[1] * source.normal(),
    ),
    "choice": DistributionKind(None, lambda x: "", _draw_choice),
    "grid": DistributionKind(
        None, lambda x: "", lambda x, source: np.array(x)[source.index(len(x))]
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
        return self.sample(Stream(seed, name, i))

    def sample(self, source: RandomSource) -> Any:
        """A sample, from the numbers of `source`."""
        return KINDS[self.kind].draw(self.numbers, source)

    @property
    def constant(self) -> float | None:
        """The only number that a sample can be; None if there are several."""
        return self.numbers[0] if self.kind == "choice" and len(self.numbers) == 1 else None

    @property
    def is_grid(self) -> bool:
        return self.kind == "grid"


def is_distribution(value: object) -> bool:
    """Whether a TOML value is one distribution, not a table of them by name."""
    return not isinstance(value, dict) or bool({"relative", *KINDS} & set(value))


def as_distribution(what: str, value: object) -> Distribution:
    """A distribution given in Python: a number, the pair (low, high) of a uniform one, or
    {"normal": (mean, deviation)} and other kinds; `what` names it in errors."""
    remedy = 'give a number, (low, high), or {"normal": (mean, deviation)}'
    kind, numbers = "uniform", value
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        kind, numbers = "choice", (value,)
    elif isinstance(value, dict):
        if len(value) != 1 or next(iter(value)) not in KINDS or "grid" in value:
            kinds = [name for name in KINDS if name != "grid"]
            cause = f"{what} is {shown(value)}, expected one distribution"
            raise StateError(cause, f"its kind is one of {', '.join(kinds)}")
        ((kind, numbers),) = value.items()
    array, fault = read_array(numbers, None)
    size = KINDS[kind].size
    if fault or array.ndim != 1 or not array.size or (size is not None and array.size != size):
        raise StateError(f"{what} is {shown(value)}, expected a distribution", remedy)
    if not np.isfinite(array).all():
        raise StateError(f"{what} is {shown(value)}, with a number that is not finite", remedy)
    row = [float(x) for x in array]
    if fault := KINDS[kind].fault(row):
        raise StateError(f"{what} is {shown(value)}: {fault}", remedy)
    return Distribution(kind, tuple(row))


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
