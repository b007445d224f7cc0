"""Words on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from psiphi._util.errors import Error
from psiphi._util.escape import terminal


class Plain:
    """A stream whose text only ever is text: a name cannot move the cursor, colour, or name the window."""

    def __init__(self, stream: Any):
        self.unescaped = stream

    def write(self, text: str) -> int:
        self.unescaped.write(terminal(text))
        return len(text)

    def flush(self) -> None:
        self.unescaped.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unescaped, name)


def nearest(word: str, known: Iterable[str]) -> str:
    """What was probably meant.

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
    """A title, and text in lines under it."""
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
    """What an error says, on one line and without its remedy."""
    return " ".join(str(error).removesuffix(f". Remedy: {error.remedy}").split())
