"""Which folders a mesh may be in: the package of the description, given or installed packages.

The package of a file is the nearest parent folder with a package.xml, else the parent folder if it
has a folder "meshes" (the usual pkg/urdf, pkg/meshes), else the folder of the file. All other
paths are outside and rejected: `..`, absolute paths, file:, http:, ~, and links that leave the
package. No file is opened here, and none needs to exist.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from psiphi._util.errors import ModelError
from psiphi._util.text import shown
from psiphi.io.urdf.ros_packages import find_package

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(?://)?(.*)", re.DOTALL)
PACKAGES_REMEDY = (
    "give a dict of folders by package name, or a list of folders that contain packages"
)
Packages = Mapping[str, str | os.PathLike] | Iterable[str | os.PathLike] | None


class PathOutsideError(Exception):
    """A path leads outside the allowed folders. The text says how; `path` is where it leads."""

    def __init__(self, reason: str, path: str | None = None):
        super().__init__(reason)
        self.path = path


class AllowedFolders:
    """The folders in which a description may name files."""

    def __init__(self, file: str | None, packages: Packages = None):
        self.folder = None if file is None else os.path.dirname(os.path.abspath(file))
        self.package = None if self.folder is None else _package_folder(self.folder)
        self.packages = (
            {str(k): _check_folder(v) for k, v in packages.items()}
            if isinstance(packages, Mapping)
            else {}
        )
        self.package_roots = (
            []
            if packages is None or isinstance(packages, Mapping)
            else [_check_folder(p) for p in _check_folders(packages)]
        )

    def resolve(self, name: str) -> str | None:
        """The path of `name`, or None if its package is not known.

        Raises PathOutsideError if it is outside the allowed folders.
        """
        name = _decoded(name)
        scheme = SCHEME.fullmatch(name)
        if name.startswith(("~", "$")):
            raise PathOutsideError("it has ~ or a variable")
        if scheme and scheme[1] in ("package", "model"):
            package, _, rest = scheme[2].lstrip("/").partition("/")
            if package in ("", ".", ".."):
                raise PathOutsideError(f"{package!r} is not a package name")
            return _join_inside(self._find(package), rest)
        if scheme and scheme[1] != "file":
            raise PathOutsideError(f"{scheme[1]}: is not a file in the package")
        if scheme or name.startswith("/"):
            return self._absolute("/" + (scheme[2] if scheme else name).lstrip("/"))
        return self._relative(name)

    def _relative(self, name: str) -> str | None:
        if self.folder is None or self.package is None:
            return _join_inside(None, name)
        return _join_inside(
            self.package, os.path.relpath(os.path.join(self.folder, name), self.package)
        )

    def _absolute(self, path: str) -> str:
        for root in (self.package, *self.packages.values(), *self.package_roots):
            if root is not None:
                try:
                    return _join_inside(root, os.path.relpath(path, os.path.abspath(root))) or path
                except (PathOutsideError, ValueError):  # ValueError: on another drive
                    continue
        raise PathOutsideError("an absolute path", path)

    def _find(self, package: str) -> str | None:
        """The folder of a package: from the caller, a parent folder of that name, or installed."""
        if package in self.packages:
            return self.packages[package]
        for root in self.package_roots:
            if os.path.isdir(os.path.join(root, package)):
                return os.path.join(root, package)
        for folder in _ancestors(self.folder) if self.folder else ():
            if os.path.basename(folder) == package:
                return folder
        return find_package(package)


def _check_folders(packages: object) -> Iterable:
    if (
        isinstance(packages, str | bytes | os.PathLike)
        or not isinstance(packages, Iterable)
        or hasattr(packages, "shape")
    ):
        raise ModelError(
            f"packages is {shown(packages)}, expected folders", PACKAGES_REMEDY, element="packages"
        )
    return packages


def _check_folder(value: object) -> str:
    if not isinstance(value, str | os.PathLike):
        raise ModelError(
            f"packages has {shown(value)}, expected a folder", PACKAGES_REMEDY, element="packages"
        )
    return os.fsdecode(value)


def _decoded(name: str) -> str:
    """The name with percent escapes decoded repeatedly and backslashes replaced by slashes.

    This is the most that a program which opens the file may decode.
    """
    for _ in range(8):
        plain = unquote(name)
        if plain == name:
            break
        name = plain
    if "\0" in name:
        raise PathOutsideError("it contains a NUL character")
    return _file_system_name(name.strip().replace("\\", "/"))


def _file_system_name(name: str) -> str:
    """The name as the file system encodes it: UTF-8 bytes if the locale lacks its letters."""
    try:
        os.fsencode(name)
        return name
    except UnicodeEncodeError:
        return os.fsdecode(name.encode("utf-8", "surrogateescape"))


def _join_inside(root: str | None, rest: str) -> str | None:
    """root/rest; a PathOutsideError if it leaves root, with or without following links."""
    plain = os.path.normpath(rest)
    if plain.replace(os.sep, "/").split("/")[0] in ("..", "") or os.path.splitdrive(plain)[0]:
        raise PathOutsideError(
            "it leaves the package",
            None if root is None else os.path.normpath(os.path.join(root, plain)),
        )
    if root is None:
        return None
    path, real = os.path.join(os.path.abspath(root), plain), os.path.realpath(root)
    try:
        stays = os.path.commonpath([real, os.path.realpath(path)]) == os.path.normpath(real)
    except ValueError:  # another drive
        stays = False
    if not stays:
        raise PathOutsideError("a link in it leaves the package", path)
    return path


def _package_folder(start: str) -> str:
    """The package folder of a description in folder `start`."""
    for folder in _ancestors(start):
        if os.path.isfile(os.path.join(folder, "package.xml")):
            return folder
    parent = os.path.dirname(start)
    return (
        parent
        if os.path.isdir(os.path.join(parent, "meshes")) and parent != os.path.dirname(parent)
        else start
    )


def _ancestors(folder: str) -> Iterable[str]:
    """The folder and its parents."""
    while True:
        yield folder
        if folder == os.path.dirname(folder):
            return
        folder = os.path.dirname(folder)
