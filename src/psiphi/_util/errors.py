"""One exception tree. Every error says what came, what was expected, and what to do next."""

from __future__ import annotations

from psiphi._util.escape import terminal


class Error(ValueError):
    """Anything psiphi refuses: `cause` (what came, what was expected), `remedy` (what to do), and where it stands.

    >>> str(Error("mass is -1.0 kg, expected 0 or more", "correct <mass>", file="arm.urdf", line=7, element="link 'hand'"))
    "arm.urdf:7: link 'hand': mass is -1.0 kg, expected 0 or more. Remedy: correct <mass>"
    """

    __module__ = "psiphi"

    def __init__(
        self,
        cause: str,
        remedy: str = "",
        *,
        file: str | None = None,
        line: int | None = None,
        element: str | None = None,
    ):
        self.cause, self.remedy, self.file, self.line, self.element = (
            cause,
            remedy,
            file,
            line,
            element,
        )
        super().__init__(str(self))

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        where = ": ".join(part for part in (place, self.element) if part)
        text = f"{where}: {self.cause}" if where else self.cause
        return terminal(f"{text}. Remedy: {self.remedy}" if self.remedy else text)


class ModelError(Error):
    """The robot's description is broken: file, line and element are named."""

    __module__ = "psiphi"


class ModelWarning(UserWarning):
    """A robot's description was repaired, or is doubtful: it was read, and may not be what was meant. See `robot.report`."""

    __module__ = "psiphi"


class StateError(Error):
    """An argument of a call has the wrong shape, type or value."""

    __module__ = "psiphi"


class SingularError(Error):
    """The mechanism cannot answer: some D(k) is not positive definite."""

    __module__ = "psiphi"


class CacheError(Error):
    """The kernel cache was asked for something it refuses to do."""

    __module__ = "psiphi"
