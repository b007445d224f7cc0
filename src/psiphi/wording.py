"""Words for messages: clipped values, nearest names, spelling mistakes, and where a message stands."""

from __future__ import annotations

import difflib
import os
import reprlib
import sys
import warnings
from collections.abc import Collection, Iterable
from itertools import islice
from typing import NoReturn, Protocol

from psiphi.errors import Error, ModelError, ModelWarning

FEW = 3  # doubts that a warning spells out
MANY = 2000  # names searched for a near one: enough to help, few enough to be instant


class Placed(Protocol):
    """Anything a message can point at."""

    @property
    def label(self) -> str: ...

    @property
    def line(self) -> int | None: ...


class Log:
    """Errors and report lines with the file, line and element they are about."""

    def __init__(self, file: str | None = None, notes: Iterable[str] = ()):
        self.file = file
        self.notes = list(notes)

    def fail(self, at: Placed, cause: str, remedy: str, kind: type[Error] = ModelError) -> NoReturn:
        raise kind(cause, remedy, file=self.file, line=at.line, element=at.label)

    def note(self, at: Placed, text: str) -> None:
        """A line of the report."""
        self.notes.append(str(Error(text, file=self.file, line=at.line, element=at.label)))

    def doubt(self, at: Placed, text: str) -> None:
        """A line of the report that is worth a warning."""
        self.note(at, text)
        self.notes[-1] = Doubt(self.notes[-1])


class Doubt(str):
    """A line of a report about something that was repaired, or that may not be what was meant."""


def warn(report: Iterable[str]) -> None:
    """One ModelWarning of all doubts in a report, at the line of the caller's own that led here."""
    doubts = [line for line in report if isinstance(line, Doubt)]
    if doubts:
        more = f"; and {len(doubts) - FEW} more" if len(doubts) > FEW else ""
        warnings.warn(ModelWarning("; ".join(doubts[:FEW]) + f"{more} (robot.report)"), stacklevel=_outside())


def _outside() -> int:
    """How many calls up psiphi was entered: `stacklevel` of a warning that should point there."""
    frame, level = sys._getframe(1), 1
    while frame is not None and os.path.dirname(__file__) in frame.f_code.co_filename:
        frame, level = frame.f_back, level + 1
    return level


def shown(value: object) -> str:
    """repr(value), clipped to what fits a message."""
    try:
        text = repr(value[:200] if isinstance(value, str | bytes) else value) if _small(value) else reprlib.repr(value)
    except Exception:  # an object's own __repr__ may raise anything
        text = f"<a {type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


def _small(value: object) -> bool:
    return not isinstance(value, list | tuple | dict | set | frozenset) or (len(value) < 60 and all(map(_flat, value)))


def _flat(value: object) -> bool:
    return not isinstance(value, list | tuple | dict | set | frozenset) or len(value) < 60


def listed(names: Collection[str]) -> str:
    """The first few names."""
    some = ", ".join(shown(name) for name in islice(names, 8))
    return some + (f", ... ({len(names)} in all)" if len(names) > 8 else "")


def counted(n: int, one: str, many: str = "") -> str:
    """So many of something, in words.

    >>> counted(1, "body", "bodies"), counted(2, "row")
    ('1 body', '2 rows')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"


def close_to(name: object, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Up to three known names that are like this one, large and small letters alike.

    >>> close_to("UR5", ["panda", "ur5"])
    ['ur5']
    """
    words, text = list(islice(known, MANY)), str(name)[:100]
    close = difflib.get_close_matches(text, words, n=3, cutoff=cutoff)
    if close:
        return close
    by_small = {word.lower(): word for word in reversed(words)}
    return [by_small[word] for word in difflib.get_close_matches(text.lower(), by_small, n=3, cutoff=cutoff)]


def nearest(name: object, known: Collection[str]) -> str:
    """A remedy for an unknown name."""
    close = close_to(name, known)
    if close:
        return "did you mean " + " or ".join(shown(x) for x in close) + "?"
    return f"use one of {listed(known)}" if known else "there are none to choose from"


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` misspells: one slip in a short name, two in a long one; None when it is just foreign."""
    for word in sorted(known):
        if name.lower() == word.lower() or _slips(name, word) <= (1 if len(word) < 6 else 2):
            return word
    return None


def _slips(a: str, b: str) -> int:
    """Letters dropped, added, changed or swapped with their neighbour between a and b (3 stands for many)."""
    if abs(len(a) - len(b)) > 2:
        return 3
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (x != y))
            if i > 1 and j > 1 and (x, y) == (b[j - 2], a[i - 2]):
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]
