"""Where a message of a reader stands: the file, line and element it is about."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from typing import NoReturn, Protocol

from psiphi.errors import Error, ModelError, ModelWarning

FEW = 3  # doubts that a warning tells
HERE = os.path.dirname(os.path.dirname(__file__))  # the package


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
        self.doubts: list[str] = []

    def fail(self, at: Placed, cause: str, remedy: str, kind: type[Error] = ModelError) -> NoReturn:
        raise kind(cause, remedy, file=self.file, line=at.line, element=at.label)

    def note(self, at: Placed, text: str) -> None:
        """A line of the report."""
        self.notes.append(str(Error(text, file=self.file, line=at.line, element=at.label)))

    def doubt(self, at: Placed, text: str) -> None:
        """A line of the report that is worth a warning: something was repaired, or may not be what was meant."""
        self.note(at, text)
        self.doubts.append(self.notes[-1])

    def warn(self) -> None:
        """One ModelWarning of all doubts, at the line of the caller's own that led here."""
        if self.doubts:
            more = f"; and {len(self.doubts) - FEW} more" if len(self.doubts) > FEW else ""
            warnings.warn(ModelWarning("; ".join(self.doubts[:FEW]) + f"{more} (robot.report)"), stacklevel=_outside())


def _outside() -> int:
    """How many calls up psiphi was entered: `stacklevel` of a warning that should point there."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame, level = frame.f_back, level + 1
    return level
