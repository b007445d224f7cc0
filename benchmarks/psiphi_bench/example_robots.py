"""The robots of the benchmark: the URDF files of the example-robot-data package."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import psiphi as pp
from psiphi.robot.robot import Robot
from psiphi_bench.peers.lazy_import import MissingPeer
from psiphi_bench.peers.pinocchio_peer import Pin

FILE_NAMES = {
    "UR5": "ur5_robot",
    "Panda": "panda",
    "G1": "g1_29dof_rev_1_0",
    "Talos": "talos_full_v2",
    "ANYmal": "anymal",
}


@cache
def urdf_files() -> tuple[Path, ...]:
    """All URDF files of the package, sorted."""
    try:
        files = metadata.distribution("example-robot-data").files or []
    except metadata.PackageNotFoundError as error:
        raise MissingPeer("example-robot-data") from error
    return tuple(
        sorted(Path(str(file.locate())).resolve() for file in files if file.suffix == ".urdf")
    )


def urdf(name: str) -> Path:
    """The file of a robot, by its usual name or by its file name."""
    stem = FILE_NAMES.get(name, name)
    return next(file for file in urdf_files() if file.stem == stem)


def load_with_pinocchio(name: str, base: str = "fixed") -> tuple[Robot, Pin]:
    """A robot, and the same file loaded by Pinocchio."""
    file = urdf(name)
    robot = pp.load(file, base=base)
    return robot, Pin.from_urdf(file, base, robot)


@cache
def loadable() -> tuple[tuple[Path, str, Robot], ...]:
    """File, base and robot of each file that loads, without duplicates."""
    return tuple(_loadable())


def _loadable() -> Iterator[tuple[Path, str, Robot]]:
    seen: set[str] = set()
    for file in urdf_files():
        for base in ("fixed", "free"):
            try:
                robot = pp.load(file, base=base)
            except pp.Error:
                continue
            if robot.digest not in seen:
                seen.add(robot.digest)
                yield file, base, robot
