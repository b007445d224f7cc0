"""Timing by the minimum of many samples, since noise only adds time."""

from __future__ import annotations

import time
from collections.abc import Callable

SAMPLE = 0.005  # seconds; shorter calls are repeated within a sample


def best(*calls: Callable[[], object], seconds: float) -> list[float]:
    """Seconds per call of each function.

    They are sampled in turn under the same conditions, each after a call that warms its caches.

    >>> quick, slow = best(lambda: sum(range(10)), lambda: sum(range(100_000)), seconds=0.01)
    >>> quick < slow
    True
    """
    repeats = [_repeats(call) for call in calls]
    least = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end:
        for i, (call, repeat) in enumerate(zip(calls, repeats, strict=True)):
            least[i] = min(least[i], _sample(call, repeat))
    return [
        least[i] if least[i] < float("inf") else _sample(call, repeats[i])
        for i, call in enumerate(calls)
    ]


def _repeats(call: Callable[[], object]) -> int:
    call()  # the first call may compile
    return max(1, int(SAMPLE / max(_sample(call, 1), 1e-7)))


def _sample(call: Callable[[], object], repeat: int) -> float:
    call()
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - start) / repeat
