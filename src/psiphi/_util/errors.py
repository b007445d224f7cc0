"""The exception classes. Every error states what was passed, what is expected, and a remedy."""

from __future__ import annotations

from psiphi._util.escape import terminal


class Error(ValueError):
    """The base class of all errors of psiphi.

    `cause` says what was passed and what is expected, `remedy` what to do; `file`, `line` and
    `element` say where the error is in the robot's description. An error about several faults of a
    description has one error for each in `faults`; `report` is what a reader accepted and reported.

    >>> place = {"file": "arm.urdf", "line": 7, "element": "link 'hand'"}
    >>> str(Error("mass is -1.0 kg, expected 0 or more", "correct <mass>", **place))
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
        self.cause, self.remedy = cause, remedy
        self.file, self.line, self.element = file, line, element
        self.parts: tuple[Error, ...] = ()
        self.report: tuple[str, ...] = ()
        super().__init__(str(self))

    @property
    def faults(self) -> tuple[Error, ...]:
        """One error for each fault: this one, unless it stands for several."""
        return self.parts or (self,)

    def __str__(self) -> str:
        line, element = (None, None) if self.parts else (self.line, self.element)
        place = ":".join(str(part) for part in (self.file, line) if part is not None)
        where = ": ".join(part for part in (place, element) if part)
        text = f"{where}: {self.cause}" if where else self.cause
        return terminal(f"{text}. Remedy: {self.remedy}" if self.remedy else text)


class ModelError(Error):
    """The robot's description is invalid. The message names the file, line and element."""

    __module__ = "psiphi"


class ModelWarning(UserWarning):
    """A robot's description was repaired or looks wrong. See `robot.report`."""

    __module__ = "psiphi"


class StateError(Error):
    """An argument of a call has the wrong shape, type or value."""

    __module__ = "psiphi"


class UnknownNameError(StateError, KeyError):
    """A name that a robot does not have; also a `KeyError`, as of a dict."""


class SingularError(Error):
    """The mechanism has no solution: some D(k) is not positive definite."""

    __module__ = "psiphi"


class CacheError(Error):
    """The kernel cache refused an operation."""

    __module__ = "psiphi"
