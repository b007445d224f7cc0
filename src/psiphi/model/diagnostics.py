"""Messages of readers, with the file, line and element that they are about."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from typing import NoReturn, Protocol

from psiphi._util.errors import Error, ModelError, ModelWarning

MAX_WARNINGS = 3  # lines of the report that a ModelWarning quotes
PACKAGE = os.path.dirname(os.path.dirname(__file__))


class SourceLocation(Protocol):
    """An element of a robot's description that a message can name."""

    @property
    def label(self) -> str: ...

    @property
    def line(self) -> int | None: ...


class ReaderReport:
    """Raises errors and collects report lines, with the file, line and element they are about."""

    def __init__(self, file: str | None = None, notes: Iterable[str] = ()):
        self.file = file
        self.notes = list(notes)

    def fail(
        self, where: SourceLocation, cause: str, remedy: str, kind: type[Error] = ModelError
    ) -> NoReturn:
        """Raise an error about an element."""
        raise kind(cause, remedy, file=self.file, line=where.line, element=where.label)

    def note(self, where: SourceLocation, text: str) -> None:
        """Add a line to the report."""
        self.notes.append(str(Error(text, file=self.file, line=where.line, element=where.label)))

    def warn(self, where: SourceLocation, text: str) -> None:
        """Add a line to the report that `emit_warning` quotes."""
        self.note(where, text)
        self.notes[-1] = ReaderWarning(self.notes[-1])


class ReaderWarning(str):
    """A line of a report about something that was repaired or looks wrong."""


def emit_warning(report: Iterable[str]) -> None:
    """Issue one ModelWarning about all warnings in a report, at the line that called psiphi."""
    lines = [line for line in report if isinstance(line, ReaderWarning)]
    if lines:
        more = f"; and {len(lines) - MAX_WARNINGS} more" if len(lines) > MAX_WARNINGS else ""
        warnings.warn(
            ModelWarning("; ".join(lines[:MAX_WARNINGS]) + f"{more} (robot.report)"),
            stacklevel=caller_stacklevel(),
        )


def caller_stacklevel() -> int:
    """The `stacklevel` of a warning that points at the caller's line outside psiphi."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
