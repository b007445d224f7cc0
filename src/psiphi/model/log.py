"""Where a message of a reader stands: the file, line and element it is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, Protocol

from psiphi.errors import Error, ModelError


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
        self.notes.append(str(Error(text, file=self.file, line=at.line, element=at.label)))
