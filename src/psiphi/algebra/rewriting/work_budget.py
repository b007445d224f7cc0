"""A limit on the work of rewriting: a result, or the error `TooLarge`, in bounded time.

Work is counted, not timed, so that results do not depend on the load of the machine. A unit is
about a microsecond on a typical processor. Rules that are computed once and cached do not count
(`unlimited`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from math import inf, isfinite

from psiphi._util.errors import StateError

DEFAULT_SECONDS = 5.0  # default of `budget=`
UNITS_PER_SECOND = 400_000.0  # with a margin


class TooLarge(StateError):
    """Rewriting needs more work than its budget allows."""


class _Budget:
    def __init__(self, seconds: float):
        self.seconds, self.left = seconds, seconds * UNITS_PER_SECOND


current_budget: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def _use_budget(budget: _Budget | None) -> Iterator[None]:
    """Charge the work of the block to this budget."""
    token = current_budget.set(budget)
    try:
        yield
    finally:
        current_budget.reset(token)


@contextmanager
def limit_work(seconds: float) -> Iterator[None]:
    """Limit the work of the block to about this many seconds; within another limit, no effect."""
    if current_budget.get() is not None or not isfinite(seconds):
        yield
        return
    with _use_budget(_Budget(seconds)):
        yield


@contextmanager
def share(part: float, seconds: float = inf) -> Iterator[None]:
    """Limit the work of the block to a part of what is left of the budget, and to `seconds`."""
    budget = current_budget.get()
    if budget is None:
        yield
        return
    inner = _Budget(budget.seconds)
    inner.left = start = min(part * budget.left, seconds * UNITS_PER_SECOND)
    try:
        with _use_budget(inner):
            yield
    finally:
        budget.left -= min(start, start - inner.left)


def unlimited() -> AbstractContextManager[None]:
    """Do not charge the work of the block: it is done once for all robots."""
    return _use_budget(None)


def spend(units: float) -> None:
    """Charge work to the current budget; raises `TooLarge` if it is used up."""
    budget = current_budget.get()
    if budget is None:
        return
    budget.left -= units
    if budget.left < 0.0:
        raise TooLarge(
            f"rewriting exceeds the budget of {budget.seconds:g} s",
            "simplify the expression, or pass a larger budget: budget=60",
        )
