"""A row of the benchmark and its measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """The amount of measurement: full or quick."""

    quick: bool = False

    @property
    def states(self) -> int:
        """Random states per comparison."""
        return 10 if self.quick else 100

    @property
    def seconds(self) -> float:
        """Duration of one timing."""
        return 0.15 if self.quick else 0.8

    @property
    def starts(self) -> int:
        """Fresh processes per timing of a start."""
        return 1 if self.quick else 3


@dataclass(frozen=True)
class Measurement:
    """One line: the subject, the figure to compare with the target, and its sources."""

    subject: str
    figure: float
    ours: str = ""
    theirs: str = ""
    note: str = ""


@dataclass(frozen=True)
class BenchmarkRow:
    """One row: its figures must be at most (or at least) `target`, in `unit`.

    Without a target the figures are printed for comparison only.
    """

    name: str
    text: str
    target: float | None
    unit: str
    measure: Callable[[Size], Iterator[Measurement]]
    at_least: bool = False

    def passed(self, figure: float) -> bool | None:
        """Whether the figure meets the target; NaN does not."""
        if self.target is None:
            return None
        return figure >= self.target if self.at_least else figure <= self.target

    def shown(self, figure: float) -> str:
        """A figure with its unit.

        >>> BenchmarkRow("n", "t", 25.0, "x", lambda size: iter(()), at_least=True).shown(38.216)
        '38.2x'
        """
        return f"{format_figure(figure)}{'' if self.unit == 'x' else ' '}{self.unit}".rstrip()

    @property
    def target_text(self) -> str:
        """The target as text: ">= 25x"."""
        return (
            ""
            if self.target is None
            else f"{'>=' if self.at_least else '<='} {self.shown(self.target)}"
        )


def format_figure(figure: float) -> str:
    """A number with three significant digits.

    >>> [format_figure(x) for x in (38.216, 1.5e-13, 0.0421, 1234.0, 77.0)]
    ['38.2', '1.5e-13', '0.0421', '1234', '77']
    """
    if figure != figure:
        return "-"
    if figure and abs(figure) < 1e-3:
        return f"{figure:.1e}"
    return f"{figure:.0f}" if figure == round(figure) or abs(figure) >= 1000 else f"{figure:.3g}"


def microseconds(seconds: float) -> str:
    """Seconds as microseconds.

    >>> microseconds(4.213e-8)
    '0.0421 us'
    """
    return f"{1e6 * seconds:.3g} us"
