"""TOML tables, read key by key. Every error names the file, the key, the value and a remedy."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from psiphi._util.errors import ModelError
from psiphi._util.text import nearest, shown
from psiphi.model.model import Pose
from psiphi.model.spatial.transforms import from_rpy

REQUIRED: Any = object()  # marks a key without a default
MAX_BYTES = 1 << 20
# a dotted key of 64 or more parts; the time of tomllib is quadratic in the number of parts
DEEP_KEY = re.compile(r"(?:\.[^.,\n=\[\]{}#]{0,60}){64}")


class Table:
    """A table of a TOML file. `reject_unknown()` raises for keys that no method has read."""

    def __init__(self, file: str, path: str, values: dict[str, Any]):
        self.file, self.path, self.values = file, path, values
        self.known_keys: list[str] = []

    def fail(self, key: str, cause: str, remedy: str) -> NoReturn:
        element = ".".join(part for part in (self.path, key) if part)
        raise ModelError(cause, remedy, file=self.file, element=element or None)

    def __contains__(self, key: str) -> bool:
        self.known_keys.append(key)
        return key in self.values

    def get(self, key: str, default: object = REQUIRED) -> Any:
        """The value as TOML has it. Without a default, a missing key is an error."""
        self.known_keys.append(key)
        if key not in self.values and default is REQUIRED:
            self.fail(
                key,
                "is missing",
                f"add {key} = ... to {f'[{self.path}]' if self.path else 'the file'}",
            )
        return self.values.get(key, default)

    def text(self, key: str, default: str | None = REQUIRED, among: Sequence[str] = ()) -> Any:
        """A string; one of `among` if there are any."""
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

    def number(self, key: str, default: float | None = REQUIRED, above: float = -math.inf) -> Any:
        """A finite number greater than `above`."""
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

    def numbers(self, key: str, size: int | None, default: list[float] | None = REQUIRED) -> Any:
        """A list of `size` finite numbers; of any length if `size` is None."""
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

    def table(self, key: str, default: dict[str, object] | None = REQUIRED) -> Table:
        """The table [key]."""
        value = self.get(key, default)
        if not isinstance(value, dict):
            self.fail(key, f"is {shown(value)}, expected a table", f"write [{key}], then its keys")
        return Table(self.file, f"{self.path}.{key}" if self.path else key, value)

    def tables(self, key: str) -> list[Table]:
        """The tables [[key]], possibly none."""
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
        """All keys, each with its table."""
        for key in self.values:
            yield key, self.table(key)

    def reject_unknown(self) -> None:
        """Raise for a key that has not been read; usually it is misspelled."""
        for key in self.values:
            if key not in self.known_keys:
                known = sorted(set(self.known_keys))
                cause = f"no such key; there are {', '.join(known)}"
                self.fail(key, cause, nearest(key, known))


def pose(row: Table) -> Pose:
    """The pose of the keys `at` = x y z and `rpy` = roll pitch yaw, in radians.

    R = Rz(yaw) Ry(pitch) Rx(roll)
    """
    position = np.array(row.numbers("at", 3, [0.0, 0.0, 0.0]))
    roll, pitch, yaw = row.numbers("rpy", 3, [0.0, 0.0, 0.0])
    return Pose(np.reshape(from_rpy(roll, pitch, yaw), (3, 3)), position)


def read_toml(path: str | os.PathLike[str], what: str = "scene") -> Table:
    """The top table of a file. Errors call the file a `what` file."""
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
    except (OSError, ValueError) as error:  # ValueError: a path with NUL or a lone surrogate
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
        if DEEP_KEY.search(text):
            raise RecursionError
        return Table(file, "", tomllib.loads(text))
    except UnicodeDecodeError:
        raise ModelError("the file is not UTF-8 text", f"is it a {what}?", file=file) from None
    except RecursionError:
        raise ModelError(
            "its tables or lists are nested too deeply",
            f"use two or three levels in a {what}",
            file=file,
        ) from None
    except ValueError as error:  # invalid TOML, or a number with thousands of digits
        raise ModelError(
            f"it is not TOML: {error}",
            "see toml.io for the syntax; text needs quotes",
            file=file,
        ) from error
