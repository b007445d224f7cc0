"""What a row of the benchmark is, and what it measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """How much to measure."""

    quick: bool = False

    @property
    def states(self) -> int:
        """Random states a comparison."""
        return 10 if self.quick else 100

    @property
    def seconds(self) -> float:
        """Time to spend on one timing."""
        return 0.15 if self.quick else 0.8

    @property
    def starts(self) -> int:
        """Fresh processes a timing of a start."""
        return 1 if self.quick else 3


@dataclass(frozen=True)
class Measured:
    """One line: of what, the figure that the target is about, and what it comes from."""

    subject: str
    figure: float
    ours: str = ""
    theirs: str = ""
    note: str = ""


@dataclass(frozen=True)
class Demand:
    """One demand: `figure` at least or at most `target`, in `unit`; target None: shown for comparison."""

    name: str
    text: str
    target: float | None
    unit: str
    measure: Callable[[Size], Iterator[Measured]]
    at_least: bool = False

    def passed(self, figure: float) -> bool | None:
        """Whether the figure meets the target; a NaN never does."""
        if self.target is None:
            return None
        return figure >= self.target if self.at_least else figure <= self.target

    def shown(self, figure: float) -> str:
        """A figure with its unit.

        >>> Demand("n", "t", 25.0, "x", lambda size: iter(()), at_least=True).shown(38.216)
        '38.2x'
        """
        return f"{spelt(figure)}{'' if self.unit == 'x' else ' '}{self.unit}".rstrip()

    @property
    def demand(self) -> str:
        """The target in words."""
        return (
            ""
            if self.target is None
            else f"{'>=' if self.at_least else '<='} {self.shown(self.target)}"
        )


def spelt(figure: float) -> str:
    """Three digits that matter.

    >>> [spelt(x) for x in (38.216, 1.5e-13, 0.0421, 1234.0, 77.0)]
    ['38.2', '1.5e-13', '0.0421', '1234', '77']
    """
    if figure != figure:
        return "-"
    if figure and abs(figure) < 1e-3:
        return f"{figure:.1e}"
    return f"{figure:.0f}" if figure == round(figure) or abs(figure) >= 1000 else f"{figure:.3g}"


def micro(seconds: float) -> str:
    """Seconds as microseconds.

    >>> micro(4.213e-8)
    '0.0421 us'
    """
    return f"{1e6 * seconds:.3g} us"
