"""A budget for rewriting: whatever is written, an answer or "too large" comes in bounded time.

Work is counted, not timed, so that the same expression has the same answer on a busy machine: a unit is about a microsecond
of an ordinary processor. Rules that are made once and kept cost nothing (`unlimited`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from math import isfinite

from psiphi._util.errors import StateError

DEFAULT_SECONDS = 5.0  # what `budget=` is when it is not given
UNITS_PER_SECOND = 400_000.0  # of work in a second, with a margin


class TooLarge(StateError):
    """Rewriting asked for more work than its budget allows."""


class _Budget:
    def __init__(self, seconds: float):
        self.seconds, self.left = seconds, seconds * UNITS_PER_SECOND


current_budget: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def _use_budget(purse: _Budget | None) -> Iterator[None]:
    """What is done inside is paid from this purse."""
    token = current_budget.set(purse)
    try:
        yield
    finally:
        current_budget.reset(token)


@contextmanager
def limit_work(seconds: float) -> Iterator[None]:
    """Rewriting inside may cost so many seconds; an inner budget is part of the outer one."""
    if current_budget.get() is not None or not isfinite(seconds):
        yield
        return
    with _use_budget(_Budget(seconds)):
        yield


@contextmanager
def share(part: float) -> Iterator[None]:
    """Work worth trying with a part of what is left: a `TooLarge` inside costs no more than that."""
    purse = current_budget.get()
    if purse is None:
        yield
        return
    inner = _Budget(purse.seconds)
    inner.left = start = part * purse.left
    try:
        with _use_budget(inner):
            yield
    finally:
        purse.left -= min(start, start - inner.left)


def unlimited() -> AbstractContextManager[None]:
    """Work that is done once for all robots."""
    return _use_budget(None)


def spend(units: float) -> None:
    """So much work was done."""
    purse = current_budget.get()
    if purse is None:
        return
    purse.left -= units
    if purse.left < 0.0:
        raise TooLarge(
            f"rewriting it takes more than the budget of {purse.seconds:g} s",
            "write it shorter, or give more: budget=60",
        )
