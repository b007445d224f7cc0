"""Imports of optional packages, with an error that names what to install."""

from __future__ import annotations

import importlib
import re
from types import ModuleType

from psiphi._util.errors import Error

EXTRA = re.compile(r"psiphi\[([\w,-]+)\]")


def installed_version(package: str, default: str) -> str:
    """The installed version of a package, or `default` if it is not installed."""
    from importlib import metadata  # takes ten milliseconds

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return default


def install_command(requirement: str) -> str:
    """The command that installs a package, or the packages of an extra of psiphi. It works whether
    or not psiphi itself is on a package index.

    >>> install_command("pandas"), install_command("psiphi[plot]")
    ("pip install 'pandas'", "pip install 'matplotlib>=...'")
    """
    names = required_packages(requirement)
    return f"pip install {' '.join(map(repr, names or [requirement]))}"


def required_packages(requirement: str) -> list[str]:
    """What psiphi, or its extras, "psiphi[plot]", need; other requirements as they are."""
    if requirement.partition("[")[0] != "psiphi":
        return [requirement]
    from importlib import metadata

    try:
        rows = metadata.requires("psiphi") or []
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return []
    found = EXTRA.fullmatch(requirement)
    extras = found[1].split(",") if found else [""]
    return [
        name
        for row in rows
        if _extra_of(row) in extras
        for name in required_packages(row.partition(";")[0].strip())
    ]


def _extra_of(row: str) -> str:
    """The extra that a row of the metadata belongs to; "" for one that is always needed."""
    found = re.search(r"extra\s*==\s*['\"]([\w-]+)", row)
    return found[1] if found else ""


def import_optional(name: str, what: str, install: str) -> ModuleType:
    """The module `name`, or an error that says what needs it and how to install it.

    >>> import_optional("no_such", "a plot", "psiphi[plot]")
    Traceback (most recent call last):
    psiphi.Error: a plot needs no_such, which is not installed. Remedy: pip install 'matplotlib...'
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise Error(
            f"{what} needs {package}, which is not installed", install_command(install)
        ) from error
