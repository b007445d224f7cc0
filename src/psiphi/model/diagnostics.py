"""Where a message of a reader stands: the file, line and element it is about."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from typing import NoReturn, Protocol

from psiphi._util.errors import Error, ModelError, ModelWarning

FEW = 3  # doubts that a warning spells out
PACKAGE = os.path.dirname(os.path.dirname(__file__))


class SourceLocation(Protocol):
    """Anything a message can point at."""

    @property
    def label(self) -> str: ...

    @property
    def line(self) -> int | None: ...


class ReaderReport:
    """Errors and report lines with the file, line and element they are about."""

    def __init__(self, file: str | None = None, notes: Iterable[str] = ()):
        self.file = file
        self.notes = list(notes)

    def fail(
        self, at: SourceLocation, cause: str, remedy: str, kind: type[Error] = ModelError
    ) -> NoReturn:
        raise kind(cause, remedy, file=self.file, line=at.line, element=at.label)

    def note(self, at: SourceLocation, text: str) -> None:
        """A line of the report."""
        self.notes.append(str(Error(text, file=self.file, line=at.line, element=at.label)))

    def doubt(self, at: SourceLocation, text: str) -> None:
        """A line of the report that is worth a warning."""
        self.note(at, text)
        self.notes[-1] = ReaderWarning(self.notes[-1])


class ReaderWarning(str):
    """A line of a report about something that was repaired, or that may not be what was meant."""


def warn(report: Iterable[str]) -> None:
    """One ModelWarning of all doubts in a report, at the line of the caller's own that led here."""
    doubts = [line for line in report if isinstance(line, ReaderWarning)]
    if doubts:
        more = f"; and {len(doubts) - FEW} more" if len(doubts) > FEW else ""
        warnings.warn(
            ModelWarning("; ".join(doubts[:FEW]) + f"{more} (robot.report)"), stacklevel=outside()
        )


def outside() -> int:
    """How many calls up psiphi was entered: `stacklevel` of a warning that should point there."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
