"""Exact operation counts of general serial arms of revolute joints, as formulas in the number of links."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psiphi as pp
from psiphi.bench.row import Measured, Size

LENGTHS = range(3, 25)


def formula(function: str, lengths=LENGTHS, seed: int = 0) -> tuple[int, int]:
    """(s, c) with flops = s N + c, exactly, at every one of these lengths.

    >>> s, c = formula("inverse_dynamics", range(3, 6))
    >>> pp.robots.chain(4).flops("inverse_dynamics") == 4 * s + c
    True
    """
    flops = {n: pp.robots.chain(n, seed=seed).flops(function) for n in lengths}
    first, second, *_ = lengths
    slope = (flops[second] - flops[first]) // (second - first)
    constant = flops[first] - slope * first
    off = {n: count for n, count in flops.items() if count != slope * n + constant}
    if off:
        raise ValueError(f"{function} takes no formula {spelt(slope, constant)}: {off}")
    return slope, constant


def spelt(slope: int, constant: int) -> str:
    """
    >>> spelt(379, -587)
    '379N - 587'
    """
    return f"{slope}N {'-' if constant < 0 else '+'} {abs(constant)}"


def flops(function: str, slope: int, constant: int) -> Callable[[Size], Iterator[Measured]]:
    """The largest ratio of our count to slope N + constant, over all lengths and in the limit."""

    def measure(size: Size) -> Iterator[Measured]:
        s, c = formula(function, range(3, 9) if size.quick else LENGTHS)
        ratio = max(s / slope, *((s * n + c) / (slope * n + constant) for n in LENGTHS))
        note = f"{6 * s + c} at N = 6, {12 * s + c} at N = 12"
        yield Measured("general serial arm", ratio, spelt(s, c), spelt(slope, constant), note)

    return measure
