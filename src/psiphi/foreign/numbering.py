"""Functions by number: what graphs of other libraries know them by, as long as they live."""

from __future__ import annotations

from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from psiphi.errors import StateError

FUNCTIONS: WeakValueDictionary[int, Any] = WeakValueDictionary()
NUMBERS = count()


def numbered(function: Any) -> int:
    """A number for a function that is being made."""
    number = next(NUMBERS)
    FUNCTIONS[number] = function
    return number


def named(number: int) -> Any:
    """The function of a number."""
    try:
        return FUNCTIONS[number]
    except KeyError:
        raise StateError(
            f"function {number} of psiphi is gone with its robot", "keep the robot as long as its graphs"
        ) from None
