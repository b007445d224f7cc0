"""Exact operation counts of general arms of revolute joints, as formulas in N links."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from psiphi_bench.counts.count_formulas import Formula
from psiphi_bench.counts.count_tables import flops as formula
from psiphi_bench.row import Measurement, Size

LENGTHS = range(3, 25)


def flops(function: str, slope: int, constant: int) -> Callable[[Size], Iterator[Measurement]]:
    """The count of psiphi relative to slope N + constant."""

    def measure(size: Size) -> Iterator[Measurement]:
        ours = formula(function, lengths=None if size.quick else LENGTHS)
        yield compare_counts("general serial arm", ours, Formula(constant, slope))

    return measure


def compare_counts(subject: str, ours: Formula, target: Formula, suffix: str = "") -> Measurement:
    """The largest ratio of two counts over all lengths and in the limit. `suffix` ends the note."""
    ratio = max(
        float(ours.coefficients[1] / target.coefficients[1]),
        *(float(ours(n) / target(n)) for n in LENGTHS),
    )
    return Measurement(
        subject, ratio, str(ours), str(target), f"{ours(6)} at N = 6, {ours(12)} at N = 12{suffix}"
    )
