"""Where a mesh may lie: inside the description's own folder or package, a package named by the caller, or an installed one.

The package of a file is the nearest folder above it with a package.xml, else the folder above it when that has a folder
called meshes (the usual pkg/urdf, pkg/meshes). Everything else - `..`, absolute paths, file:, http:, ~, links that lead
out - is outside. Nothing is opened here and nothing needs to exist.
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
PACKAGES_REMEDY = "give a dict of folders by package name, or a list of folders that hold packages"
Packages = Mapping[str, str | os.PathLike] | Iterable[str | os.PathLike] | None


class PathOutsideError(Exception):
    """A path leaves the folders it may use; the text says how, `path` is where it would lead."""

    def __init__(self, reason: str, path: str | None = None):
        super().__init__(reason)
        self.path = path


class AllowedFolders:
    """The folders that a description may name files in."""

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
        """The file that `name` means, None when its package is not known here, or Outside."""
        name = _decoded(name)
        scheme = SCHEME.fullmatch(name)
        if name.startswith(("~", "$")):
            raise PathOutsideError("it would have to be expanded")
        if scheme and scheme[1] in ("package", "model"):
            package, _, rest = scheme[2].lstrip("/").partition("/")
            if package in ("", ".", ".."):
                raise PathOutsideError(f"{package!r} is no package name")
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
        """The folder of a package: as named by the caller, a folder of that name above the description, or an installed one."""
        if package in self.packages:
            return self.packages[package]
        for shelf in self.package_roots:
            if os.path.isdir(os.path.join(shelf, package)):
                return os.path.join(shelf, package)
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


def _check_folder(given: object) -> str:
    if not isinstance(given, str | os.PathLike):
        raise ModelError(
            f"packages holds {shown(given)}, expected a folder", PACKAGES_REMEDY, element="packages"
        )
    return os.fsdecode(given)


def _decoded(name: str) -> str:
    """With %2e decoded as often as it takes, and backslashes turned: what any program down the line may make of it."""
    for _ in range(8):
        plain = unquote(name)
        if plain == name:
            break
        name = plain
    if "\0" in name:
        raise PathOutsideError("it holds a NUL")
    return _file_system_name(name.strip().replace("\\", "/"))


def _file_system_name(name: str) -> str:
    """As the file system spells it: in a locale that lacks its letters, by their bytes in UTF-8."""
    try:
        os.fsencode(name)
        return name
    except UnicodeEncodeError:
        return os.fsdecode(name.encode("utf-8", "surrogateescape"))


def _join_inside(root: str | None, rest: str) -> str | None:
    """root/rest, when it stays in root, with and without following links."""
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
        raise PathOutsideError("a link on its way leaves the package", path)
    return path


def _package_folder(home: str) -> str:
    for folder in _ancestors(home):
        if os.path.isfile(os.path.join(folder, "package.xml")):
            return folder
    parent = os.path.dirname(home)
    return (
        parent
        if os.path.isdir(os.path.join(parent, "meshes")) and parent != os.path.dirname(parent)
        else home
    )


def _ancestors(folder: str) -> Iterable[str]:
    while True:
        yield folder
        if folder == os.path.dirname(folder):
            return
        folder = os.path.dirname(folder)
