"""Markdown pages: their fenced blocks of Python, and what else can be checked of a page."""

from __future__ import annotations

import doctest
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def blocks(page: Path) -> list[tuple[int, str]]:
    """(line, code) of every Python block."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, match.start(1)), match[1]) for match in FENCE.finditer(text)]


def run_examples(page: Path) -> int:
    """Run the `>>>` examples of a page from top to bottom, in one namespace; returns how many there
    were."""
    examples = []
    for line, code in blocks(page):
        found = doctest.DocTestParser().get_examples(code, page.name)
        for example in found:
            example.lineno += line
        examples += found
    test = doctest.DocTest(examples, {"__name__": "__main__"}, page.name, str(page), 0, None)
    runner, report = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False), []
    runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)
    return len(examples)


def broken_links(page: Path) -> list[str]:
    """Relative links that lead nowhere."""
    return [
        link
        for link in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """A folder that one worker makes for all workers of a run; the others wait for it."""
    folder = Path(os.environ["PSIPHI_TESTS_OBJECTS"], name)
    with open(folder.with_suffix(".lock"), "wb") as lock:
        with suppress(ImportError):  # elsewhere than on POSIX, two may make it
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            part = folder.with_suffix(f".{os.getpid()}")
            part.mkdir()
            make(part)
            part.rename(folder)
    return folder
