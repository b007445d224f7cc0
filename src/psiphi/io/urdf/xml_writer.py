"""XML elements as text: attributes escaped, numbers with all digits."""

from __future__ import annotations

from collections.abc import Iterable

from psiphi._util.escape import xml


def tag(name: str, attributes: dict[str, str], end: str = "/>") -> str:
    """One element; white space before its name is its indentation.

    >>> tag("  link", {"name": "a<b"})
    '  <link name="a&lt;b"/>'
    """
    bare = name.lstrip()
    text = " ".join(f'{key}="{xml(value)}"' for key, value in attributes.items())
    return f"{name[: len(name) - len(bare)]}<{bare} {text}{end}"


def numbers(values: Iterable[float]) -> str:
    """The numbers separated by spaces."""
    return " ".join(repr(float(x) + 0.0) for x in values)
