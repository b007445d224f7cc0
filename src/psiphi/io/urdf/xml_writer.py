"""Elements of XML as text: attributes quoted, numbers with all their digits."""

from __future__ import annotations

from collections.abc import Iterable

from psiphi._util.escape import xml


def tag(name: str, words: dict[str, str], end: str = "/>") -> str:
    """One element; what stands before its name is its indentation.

    >>> tag("  link", {"name": "a<b"})
    '  <link name="a&lt;b"/>'
    """
    bare = name.lstrip()
    said = " ".join(f'{key}="{xml(value)}"' for key, value in words.items())
    return f"{name[: len(name) - len(bare)]}<{bare} {said}{end}"


def numbers(values: Iterable[float]) -> str:
    """Numbers with spaces between."""
    return " ".join(repr(float(x) + 0.0) for x in values)
