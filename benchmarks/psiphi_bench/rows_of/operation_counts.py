"""Exact operation counts of general serial arms of revolute joints, as formulas in the number of links."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from psiphi_bench.counts.count_formulas import Formula
from psiphi_bench.counts.count_tables import flops as formula
from psiphi_bench.row import Measured, Size

LENGTHS = range(3, 25)


def flops(function: str, slope: int, constant: int) -> Callable[[Size], Iterator[Measured]]:
    """Our count beside slope N + constant."""

    def measure(size: Size) -> Iterator[Measured]:
        ours = formula(function, lengths=None if size.quick else LENGTHS)
        yield beside("general serial arm", ours, Formula(constant, slope))

    return measure


def beside(subject: str, ours: Formula, target: Formula, also: str = "") -> Measured:
    """The largest ratio of two counts, over all lengths and in the limit; `also` ends the note."""
    ratio = max(
        float(ours.coefficients[1] / target.coefficients[1]),
        *(float(ours(n) / target(n)) for n in LENGTHS),
    )
    return Measured(
        subject, ratio, str(ours), str(target), f"{ours(6)} at N = 6, {ours(12)} at N = 12{also}"
    )
