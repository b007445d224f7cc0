"""TOML tables that are read key by key: every error names the file, the key, what came and what to do."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterator
from typing import Any, NoReturn

from psiphi._util.errors import ModelError
from psiphi._util.text import nearest, shown

NEEDED: Any = object()  # stands for: there is no default
MAX_BYTES = 1 << 20
DEEP = re.compile(
    r"(?:\.[^.,\n=\[\]{}#]{0,60}){64}"
)  # a key of so many parts: tomllib takes their square


class Table:
    """A table of a TOML file; `done()` refuses keys that nobody asked for."""

    def __init__(self, file: str, path: str, values: dict[str, Any]):
        self.file, self.path, self.values = file, path, values
        self.asked: list[str] = []

    def fail(self, key: str, cause: str, remedy: str) -> NoReturn:
        element = ".".join(part for part in (self.path, key) if part)
        raise ModelError(cause, remedy, file=self.file, element=element or None)

    def __contains__(self, key: str) -> bool:
        self.asked.append(key)
        return key in self.values

    def get(self, key: str, default: Any = NEEDED) -> Any:
        """The raw value."""
        self.asked.append(key)
        if key not in self.values and default is NEEDED:
            self.fail(
                key,
                "is missing",
                f"add {key} = ... to {f'[{self.path}]' if self.path else 'the file'}",
            )
        return self.values.get(key, default)

    def text(self, key: str, default: Any = NEEDED, among: tuple[str, ...] = ()) -> Any:
        value = self.get(key, default)
        if value is default:
            return value
        if not isinstance(value, str):
            self.fail(key, f"is {shown(value)}, expected text", f'write {key} = "..."')
        if among and value not in among:
            self.fail(
                key, f"is {shown(value)}, expected one of {', '.join(among)}", nearest(value, among)
            )
        return value

    def number(self, key: str, default: Any = NEEDED, above: float = -math.inf) -> Any:
        value = self.get(key, default)
        if value is default:
            return value
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            self.fail(
                key,
                f"is {shown(value)}, expected a finite number",
                f"write {key} = 1.0, without quotes",
            )
        if value <= above:
            self.fail(key, f"is {value}, expected more than {above:g}", "give a larger number")
        return float(value)

    def numbers(self, key: str, size: int | None, default: Any = NEEDED) -> Any:
        """A list of `size` numbers (any when None)."""
        value = self.get(key, default)
        if value is default:
            return value
        good = isinstance(value, list) and all(
            isinstance(x, int | float) and not isinstance(x, bool) for x in value
        )
        if (
            not good
            or (size is not None and len(value) != size)
            or not all(math.isfinite(x) for x in value)
        ):
            many = "numbers" if size is None else f"{size} numbers"
            self.fail(
                key,
                f"is {shown(value)}, expected a list of {many}",
                f"write {key} = [..., ...] with {many}",
            )
        return [float(x) for x in value]

    def flag(self, key: str, default: bool) -> bool:
        value = self.get(key, default)
        if not isinstance(value, bool):
            self.fail(key, f"is {shown(value)}, expected true or false", f"write {key} = true")
        return value

    def table(self, key: str, default: Any = NEEDED) -> Table:
        value = self.get(key, default)
        if not isinstance(value, dict):
            self.fail(
                key, f"is {shown(value)}, expected a table", f"write [{key}] and its keys below"
            )
        return Table(self.file, f"{self.path}.{key}" if self.path else key, value)

    def tables(self, key: str) -> list[Table]:
        """[[key]], any number of times."""
        value = self.get(key, [])
        if not isinstance(value, list) or not all(isinstance(x, dict) for x in value):
            self.fail(
                key,
                f"is {shown(value)}, expected tables",
                f"write [[{key}]], with two brackets, for each one",
            )
        inside = f"{self.path}.{key}" if self.path else key
        return [Table(self.file, f"{inside}[{i}]", x) for i, x in enumerate(value)]

    def items(self) -> Iterator[tuple[str, Table]]:
        """Every key as a table."""
        for key in self.values:
            yield key, self.table(key)

    def done(self) -> None:
        """Refuse what was not asked for: mostly a misspelt key."""
        for key in self.values:
            if key not in self.asked:
                known = sorted(set(self.asked))
                self.fail(key, f"no such key; there are {', '.join(known)}", nearest(key, known))


def read(path: str | os.PathLike[str], what: str = "scene") -> Table:
    """The whole file; `what` it should be, in words."""
    file = os.fspath(path)
    try:
        with open(file, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise ModelError(
            f"it is a folder, expected a {what} file", "name the .toml file in it", file=file
        ) from None
    except FileNotFoundError:
        raise ModelError(f"there is no such {what} file", "check the path", file=file) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL, or half a character
        why = getattr(error, "strerror", None) or str(error)
        raise ModelError(
            f"cannot be read: {why}", "check the path and its permissions", file=shown(file)[1:-1]
        ) from None
    if len(data) > MAX_BYTES:
        raise ModelError(
            "the file has more than 1 MiB, expected a small TOML file",
            f"is it a {what}?",
            file=file,
        )
    try:
        text = data.decode("utf-8")
        if DEEP.search(text):
            raise RecursionError
        return Table(file, "", tomllib.loads(text))
    except UnicodeDecodeError:
        raise ModelError("the file is no UTF-8 text", f"is it a {what}?", file=file) from None
    except RecursionError:
        raise ModelError(
            "its tables or lists lie too deep in each other",
            f"a {what} has two or three levels",
            file=file,
        ) from None
    except ValueError as error:  # TOML's own, or a number of thousands of digits
        raise ModelError(
            f"it is not TOML: {error}",
            "see toml.io for its few rules; text needs quotes",
            file=file,
        ) from error
