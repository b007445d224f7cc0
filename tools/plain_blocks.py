"""A hook of mkdocs: examples with prompts become code that can be copied and run, answers as
comments.

The pages keep the prompts, so that the tests run and compare each example.
"""

from __future__ import annotations

import doctest
import re
from typing import Any

BLOCK = re.compile(r"(?<=^```python\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def plain(code: str) -> str:
    """A block without prompts; its answers are comments. A block without prompts stays."""
    if not re.search(r"^>>> ", code, re.MULTILINE):
        return code
    lines = []
    for example in doctest.DocTestParser().get_examples(code):
        lines += example.source.splitlines()
        lines += [f"# {line}".rstrip() for line in answer(example.want).splitlines()]
    return "\n".join(lines) + "\n"


def answer(want: str) -> str:
    """What an example prints; of an error the message only."""
    return want.partition("\n")[2] if want.startswith("Traceback") else want


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs with the text of each page."""
    return BLOCK.sub(lambda match: plain(match[1]), markdown)
