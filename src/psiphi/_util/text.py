"""Parts of messages: short reprs, lists of names, tables, names that are close to a wrong one."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

MAX_CANDIDATES = 2000  # names compared with a wrong one; more would take too long


def shown(value: object) -> str:
    """repr(value), shortened to at most 60 characters."""
    try:
        text = (
            repr(value[:200] if isinstance(value, str | bytes) else value)
            if _small(value)
            else reprlib.repr(value)
        )
    except Exception:  # an object's own __repr__ may raise anything
        text = f"<a {type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


def name_of(function: object) -> str:
    """The name of a function, of the function inside a `partial`, or of an object's class.

    >>> name_of(len), name_of(partial(print, 1)), name_of(2.0)
    ('len', 'print', 'float')
    """
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def shown_path(path: object) -> str:
    """A path for a message; a long one is shortened at the start."""
    text = str(path)
    return repr(text if len(text) <= 240 else f"...{text[-240:]}")


def _small(value: object) -> bool:
    return not isinstance(value, list | tuple | dict | set | frozenset) or (
        len(value) < 60 and all(map(_flat, value))
    )


def _flat(value: object) -> bool:
    return not isinstance(value, list | tuple | dict | set | frozenset) or len(value) < 60


def listed(names: Collection[str]) -> str:
    """The first eight names, quoted, and the number of names if there are more."""
    first = ", ".join(shown(name) for name in islice(names, 8))
    return first + (f", ... ({len(names)} in all)" if len(names) > 8 else "")


def first_names(names: Sequence[str], most: int = 4) -> str:
    """The first `most` names, and the number of the others.

    >>> first_names(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def count_of(n: int, one: str, many: str = "") -> str:
    """A number with its noun in the singular or plural.

    >>> count_of(1, "body", "bodies"), count_of(2, "row")
    ('1 body', '2 rows')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"


def columns(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows as lines of aligned columns.

    >>> print(*columns([("a", "b"), ("long", "c")]), sep="\\n")
    a     b
    long  c
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def close_names(name: object, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Up to three known names that are close to `name`; upper and lower case count as equal.

    >>> close_names("UR5", ["panda", "ur5"])
    ['ur5']
    """
    words, text = list(islice(known, MAX_CANDIDATES)), str(name)[:100]
    same = [word for word in words if word.lower() == text.lower()]
    close = same or difflib.get_close_matches(text, words, n=3, cutoff=cutoff)
    if close:
        return close
    original = {word.lower(): word for word in reversed(words)}
    matches = difflib.get_close_matches(text.lower(), original, n=3, cutoff=cutoff)
    return [original[word] for word in matches]


def nearest(name: object, known: Collection[str]) -> str:
    """The remedy for an unknown name: the known names that are close to it, or all of them."""
    close = close_names(name, known)
    if close:
        return "did you mean " + " or ".join(shown(x) for x in close) + "?"
    return f"use one of {listed(known)}" if known else "no names are defined"


def misspelled(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` misspells, or None.

    A name of fewer than six letters may have one typing error, a longer one two.
    """
    for word in sorted(known):
        if name.lower() == word.lower() or _distance(name, word) <= (1 if len(word) < 6 else 2):
            return word
    return None


def _distance(a: str, b: str) -> int:
    """Damerau-Levenshtein distance of a and b; 3 if their lengths differ by more than 2."""
    if abs(len(a) - len(b)) > 2:
        return 3
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (x != y))
            if i > 1 and j > 1 and (x, y) == (b[j - 2], a[i - 2]):
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]
