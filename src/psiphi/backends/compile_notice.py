"""A line on a terminal or in a notebook about a compilation that takes more than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from psiphi._util.escape import in_notebook, line

DELAY = 1.0  # seconds, after which a user wonders


@contextmanager
def notice(what: str) -> Iterator[None]:
    """While the body runs, say once that `what` is being compiled, if that takes long."""
    stream = getattr(sys.stderr, "unescaped", sys.stderr)
    if not what or not is_interactive(stream):
        yield
        return
    timer = threading.Timer(DELAY, _write, (stream, what))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def is_interactive(stream: TextIO | None) -> bool:
    """Whether somebody watches a stream: a terminal, or a notebook."""
    return in_notebook() or bool(getattr(stream, "isatty", lambda: False)())


def _write(stream: TextIO, what: str) -> None:
    with suppress(OSError, ValueError):  # the stream was closed
        stream.write(f"psiphi: compiling {line(what)}; it is kept for later calls and processes\n")
        stream.flush()
