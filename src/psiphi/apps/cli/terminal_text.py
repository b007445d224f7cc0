"""Text for the terminal: escaping, suggestions, wrapping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from psiphi._util.errors import Error
from psiphi._util.escape import terminal


class EscapedStream:
    """A text stream that escapes control characters, so that a name cannot command the terminal."""

    def __init__(self, stream: TextIO):
        self.unescaped = stream

    def write(self, text: str) -> int:
        self.unescaped.write(terminal(text))
        return len(text)

    def flush(self) -> None:
        self.unescaped.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unescaped, name)


def nearest(word: str, known: Iterable[str]) -> str:
    """A suggestion for an unknown word: close names, or all known names.

    >>> nearest("pand", ["panda", "ur5"])
    "Did you mean 'panda'?"
    >>> nearest("xyz", ["panda", "ur5"])
    'Known are panda, ur5.'
    """
    from psiphi._util.text import close_names

    known = list(known)
    close = close_names(word, known, cutoff=0.5)
    if close:
        return "Did you mean " + " or ".join(map(repr, close)) + "?"
    return "Known are " + ", ".join(known[:12]) + (", ..." if len(known) > 12 else ".")


def wrapped(title: str, text: str) -> Iterator[str]:
    """A title, then the text below it in lines of 100 columns."""
    from textwrap import wrap

    yield title
    yield from wrap(
        text or "none",
        width=100,
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens=False,
    )


def sentence(error: Error) -> str:
    """The cause of an error on one line, without its remedy."""
    return " ".join(str(error).removesuffix(f". Remedy: {error.remedy}").split())
