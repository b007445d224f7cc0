"""Imports of optional packages, with an error that names the extra to install."""

from __future__ import annotations

import importlib
from types import ModuleType

from psiphi._util.errors import Error


def installed_version(package: str, default: str) -> str:
    """The installed version of a package, or `default` if it is not installed."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return default


def install_command(requirement: str) -> str:
    """The command that installs a package or an extra of psiphi.

    >>> install_command("psiphi[plot]")
    "pip install 'psiphi[plot]'"
    """
    return f"pip install '{requirement}'"


def import_optional(name: str, what: str, install: str) -> ModuleType:
    """The module `name`, or an error that says what needs it and how to install it.

    >>> import_optional("no_such", "a plot", "psiphi[plot]")
    Traceback (most recent call last):
    psiphi.Error: a plot needs no_such, which is not installed. Remedy: pip install 'psiphi[plot]'
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
