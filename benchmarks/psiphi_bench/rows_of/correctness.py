"""The rows about being right: all robots against Pinocchio, many against MuJoCo, random trees against both."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import psiphi as pp
from psiphi.backends.cpu.threads import cpu_count
from psiphi.compiler.passes import is_large
from psiphi.robot.robot import Robot
from psiphi_bench import example_robots
from psiphi_bench.agreement import FUNCTIONS, TOLERANCE, Deviation, compiled, errors, interpreted
from psiphi_bench.peers.lazy_import import pinocchio
from psiphi_bench.peers.mujoco_peer import Mj
from psiphi_bench.peers.peer import Unsupported
from psiphi_bench.peers.pinocchio_peer import Pin
from psiphi_bench.row import Measured, Size
from psiphi_bench.rows_of.gradients import deviations

DYNAMICS = FUNCTIONS[0], FUNCTIONS[3]
QUICK = ("ur5_robot", "panda", "solo12", "g1_29dof_rev_1_0", "double_pendulum_continuous", "pr2")
LARGE = 20  # coordinates: of larger robots, all but forward and inverse dynamics is interpreted here, to save minutes


class RobotCheck(NamedTuple):
    """A robot to compare, in a process that loads it itself."""

    file: str
    base: str
    states: int
    peer: str
    quick: bool


def with_pinocchio(size: Size) -> Iterator[Measured]:
    """Every function, every robot that loads, fixed and free."""
    return _compared("Pinocchio", size)


def with_mujoco(size: Size) -> Iterator[Measured]:
    """Every function, every robot that MuJoCo takes (it has no light or impossible bodies)."""
    return _compared("MuJoCo", size)


def slopes_with_pinocchio(size: Size) -> Iterator[Measured]:
    """Derivatives of forward and inverse dynamics, every robot of up to 64 bodies that loads, fixed and free.

    All but iCub, whose light links cost Pinocchio's derivatives seven digits: beside the same sums in extended precision
    theirs are off by 2e-9, ours by 3e-13.
    """
    tasks = [
        RobotCheck(str(file), base, 3, "Pinocchio", size.quick)
        for file, base, robot in example_robots.loadable()
        if robot.nv
        and not is_large(robot)
        and file.stem != "icub"
        and (not size.quick or file.stem in QUICK)
    ]
    found = [one for several in in_parallel(_sloped, tasks) for one in several]
    yield _worst(f"{len({one.robot for one in found})} robots", found)


def _sloped(task: RobotCheck) -> list[CheckFound]:
    robot = pp.load(task.file, base=task.base)
    peer = Pin.from_urdf(task.file, task.base, robot)
    return [CheckFound("", _name(task), error) for error in deviations(robot, peer, task.states)]


def _name(task: RobotCheck) -> str:
    return f"{Path(task.file).parent.parent.name.removesuffix('_description')}/{Path(task.file).stem} {task.base}"


def _compared(peer: str, size: Size) -> Iterator[Measured]:
    tasks = [
        RobotCheck(str(file), base, size.states if peer == "Pinocchio" else 10, peer, size.quick)
        for file, base, _ in example_robots.loadable()
        if not size.quick or file.stem in QUICK
    ]
    for kind, errors_of in _by_kind(in_parallel(_compare, tasks)).items():
        yield _worst(f"{len({found.robot for found in errors_of})} robots, {kind}", errors_of)


class CheckFound(NamedTuple):
    """An error and where it was found."""

    kind: str
    robot: str
    error: Deviation


def _compare(task: RobotCheck) -> list[CheckFound]:
    pp.set_threads(1)
    robot = pp.load(task.file, base=task.base)
    try:
        peer = Pin.from_urdf(task.file, task.base, robot) if task.peer == "Pinocchio" else Mj(robot)
    except Unsupported:
        return []
    found = []
    for kind, call, functions in _kinds(robot, task):
        found += [
            CheckFound(kind, _name(task), error)
            for error in errors(robot, peer, task.states, call, functions)
        ]
    return found


def _kinds(robot: Robot, task: RobotCheck) -> list[tuple[str, Callable, Sequence]]:
    """What is compiled, and what only interpreted to save time."""
    if task.peer == "MuJoCo" or task.quick:
        return [("interpreted", interpreted, FUNCTIONS), ("compiled fd and id", compiled, DYNAMICS)]
    if robot.nv <= LARGE:
        return [("compiled", compiled, FUNCTIONS)]
    return [("compiled", compiled, DYNAMICS), ("interpreted", interpreted, FUNCTIONS)]


def _by_kind(found: list[list[CheckFound]]) -> dict[str, list[CheckFound]]:
    kinds: dict[str, list[CheckFound]] = {}
    for one in (one for several in found for one in several):
        kinds.setdefault(one.kind, []).append(one)
    return kinds


def _worst(subject: str, found: list[CheckFound]) -> Measured:
    worst = max(found, key=lambda one: one.error.value)
    raw = max(found, key=lambda one: one.error.raw)
    typical = float(np.median([one.error.raw for one in found]))
    note = f"worst: {worst.error.label} of {worst.robot}; median {typical:.0e}"
    if raw.error.raw > worst.error.value:
        note += f"; ill-conditioned: {raw.error.raw:.0e}, {raw.error.label} of {raw.robot}"
    return Measured(subject, worst.error.value, note=note)


def in_parallel(function: Callable, tasks: Sequence[Any]) -> list[Any]:
    """function(task) of each, on all cores; these rows time nothing."""
    with ProcessPoolExecutor(
        min(len(tasks), cpu_count()), mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        return list(pool.map(function, tasks))


def trees_with_pinocchio(size: Size) -> Iterator[Measured]:
    """Random trees with every kind of joint, rebuilt in Pinocchio."""
    return _trees(Pin, {}, size)


def trees_with_mujoco(size: Size) -> Iterator[Measured]:
    """The same in MuJoCo, which has no screw joint."""
    kinds = (
        "revolute",
        "continuous",
        "prismatic",
        "cylindrical",
        "universal",
        "spherical",
        "planar",
        "free",
    )
    return _trees(Mj, {"kinds": kinds}, size)


def _trees(peer: type[Pin] | type[Mj], options: dict, size: Size) -> Iterator[Measured]:
    found = []
    for seed in range(10 if size.quick else 50):
        robot = pp.robots.random_tree(1 + seed % 10, seed=seed, **options)
        calls = (interpreted, compiled) if seed % 10 == 9 else (interpreted,)
        for call in calls:
            found += [
                CheckFound("", f"tree {seed}", error)
                for error in errors(robot, peer(robot), 10, call)
            ]
    yield _worst(f"{len({one.robot for one in found})} trees", found)


def urdf_files(size: Size) -> Iterator[Measured]:
    """Files that load and agree with Pinocchio's reading of them, or are refused where it has no finite answer."""
    verdicts = [(file.stem, _verdict(str(file))) for file in example_robots.urdf_files()]
    good, refused, wrong = (
        [name for name, verdict in verdicts if verdict == v] for v in ("agrees", "refused", "wrong")
    )
    notes = [
        f"{len(good)} agree",
        f"{len(refused)} are refused where Pinocchio has no finite answer",
        *wrong,
    ]
    yield Measured("example-robot-data", len(good + refused), note=", ".join(notes))


def _verdict(file: str) -> str:
    try:
        robot = pp.load(file)
    except pp.Error:
        return "wrong" if _pinocchio_answers(file) else "refused"
    found = errors(robot, Pin.from_urdf(file, "fixed", robot), 3, interpreted, DYNAMICS)
    return "agrees" if max(error.value for error in found) <= TOLERANCE else "wrong"


def _pinocchio_answers(file: str) -> bool:
    """Whether Pinocchio reads the file and its forward dynamics is finite."""
    try:
        with quiet():
            model = pinocchio.buildModelFromUrdf(file)
    except ValueError:
        return False
    one = np.ones(model.nv)
    return bool(
        np.isfinite(
            pinocchio.aba(model, model.createData(), pinocchio.neutral(model), one, one)
        ).all()
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing on stderr, not even from C++."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
