"""Messages of readers, with the file, line and element that they are about."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, Protocol

from psiphi._util.errors import Error, ModelError, ModelWarning

MAX_FAULTS = 10  # that the message of one error lists
MAX_COLLECTED = 1000  # faults after which reading stops
MAX_WARNINGS = 3  # lines of the report that a ModelWarning quotes
PACKAGE = os.path.dirname(os.path.dirname(__file__))


class SourceLocation(Protocol):
    """An element of a robot's description that a message can name."""

    @property
    def label(self) -> str: ...

    @property
    def line(self) -> int | None: ...


class ReaderReport:
    """Raises errors and collects report lines, with the file, line and element they are about.

    Errors inside `with report.collect():` are stored, and `raise_collected` raises them together.
    """

    def __init__(
        self, file: str | None = None, notes: Iterable[str] = (), faults: Iterable[Error] = ()
    ):
        self.file = file
        self.notes = list(notes)
        self.faults = list(faults)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Store an invalid element as a fault, so that the next ones are read, too."""
        try:
            yield
        except ModelError as error:
            self.add_fault(error)

    def add_fault(self, error: Error) -> None:
        """Store an error; of a file with very many, raise them."""
        self.faults.extend(error.faults)
        if len(self.faults) > MAX_COLLECTED:
            self.raise_collected()

    def raise_collected(self) -> None:
        """Raise the faults, if there are any, as one error."""
        if self.faults:
            error = one_error(self.faults)
            error.report = tuple(self.notes)
            raise error

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


def one_error(faults: Sequence[Error]) -> Error:
    """One error for all faults, in the order of their lines; a single fault is itself."""
    ordered = sorted(faults, key=lambda fault: fault.line or 0)
    if len(ordered) == 1:
        return ordered[0]
    first, lines = ordered[0], []
    for fault in ordered[:MAX_FAULTS]:
        line = "" if fault.line is None else f"line {fault.line}"
        place = ", ".join(part for part in (line, fault.element) if part)
        lines.append(f"{place}: {fault.cause} (remedy: {fault.remedy})")
    more = len(ordered) - MAX_FAULTS
    lines += [f"and {more} more, in error.faults"] if more > 0 else []
    error = ModelError(
        f"{len(ordered)} faults: {'; '.join(lines)}",
        "correct all of them; psiphi check FILE lists them",
        file=first.file,
        line=first.line,
        element=first.element,
    )
    error.parts = tuple(ordered)
    error.args = (str(error),)  # without the line of the first fault
    return error


class ReaderWarning(str):
    """A line of a report about something that was repaired or looks wrong."""


def emit_warning(report: Iterable[str]) -> None:
    """Issue one ModelWarning about all warnings in a report, at the line that called psiphi."""
    lines = [line for line in report if isinstance(line, ReaderWarning)]
    if lines:
        more = f"; and {len(lines) - MAX_WARNINGS} more" if len(lines) > MAX_WARNINGS else ""
        warnings.warn(
            ModelWarning("; ".join(_file_once(lines[:MAX_WARNINGS])) + f"{more} (robot.report)"),
            stacklevel=caller_stacklevel(),
        )


def _file_once(lines: Sequence[str]) -> list[str]:
    """The lines of a report, with the name of their file in the first one only."""
    found = re.match(r"(.+?:)\d+: ", lines[0])
    file = found[1] if found else ""
    rest = [f"line {x.removeprefix(file)}" if file and x.startswith(file) else x for x in lines[1:]]
    return [lines[0], *rest]


def caller_stacklevel() -> int:
    """The `stacklevel` of a warning that points at the caller's line outside psiphi."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
