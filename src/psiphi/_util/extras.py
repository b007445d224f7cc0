"""Packages that are needed only when asked for, imported then, with the extra that brings them."""

from __future__ import annotations

import importlib
from types import ModuleType

from psiphi._util.errors import Error


def version(package: str, otherwise: str) -> str:
    """The version that is installed of a package; otherwise, a word for that."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return otherwise


def need(name: str, what: str, install: str) -> ModuleType:
    """The module `name`, or an error that says what needs it and how to install it.

    >>> need("no_such_package", "a picture", "psiphi[plot]")
    Traceback (most recent call last):
    psiphi.Error: a picture needs no_such_package, which is not installed. Remedy: pip install 'psiphi[plot]'
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise Error(
            f"{what} needs {package}, which is not installed", f"pip install '{install}'"
        ) from error
