"""Correctness: all robots against Pinocchio, many against MuJoCo, random trees against both."""

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
from psiphi_bench.row import Measurement, Size
from psiphi_bench.rows_of.gradients import deviations

DYNAMICS = FUNCTIONS[0], FUNCTIONS[3]
QUICK = ("ur5_robot", "panda", "solo12", "g1_29dof_rev_1_0", "double_pendulum_continuous", "pr2")
MAX_COMPILED_NV = 20  # robots with more are compiled for forward and inverse dynamics only


class RobotCheck(NamedTuple):
    """A robot to compare in another process."""

    file: str
    base: str
    states: int
    peer: str
    quick: bool


def with_pinocchio(size: Size) -> Iterator[Measurement]:
    """All functions of all robots that load, fixed and free."""
    return _compared("Pinocchio", size)


def with_mujoco(size: Size) -> Iterator[Measurement]:
    """All functions of all robots that MuJoCo accepts (it rejects light and infeasible bodies)."""
    return _compared("MuJoCo", size)


def derivatives_with_pinocchio(size: Size) -> Iterator[Measurement]:
    """Derivatives of forward and inverse dynamics of all robots of up to 64 bodies, fixed and free.

    Except iCub: with its light links, Pinocchio's derivatives have an error of 2e-9 and psiphi's of
    3e-13, relative to the same sums in extended precision.
    """
    tasks = [
        RobotCheck(str(file), base, 3, "Pinocchio", size.quick)
        for file, base, robot in example_robots.loadable()
        if robot.nv
        and not is_large(robot)
        and file.stem != "icub"
        and (not size.quick or file.stem in QUICK)
    ]
    errors = [x for group in in_parallel(_derivative_errors, tasks) for x in group]
    yield _worst(f"{len({x.robot for x in errors})} robots", errors)


def _derivative_errors(task: RobotCheck) -> list[CheckedError]:
    robot = pp.load(task.file, base=task.base)
    peer = Pin.from_urdf(task.file, task.base, robot)
    return [CheckedError("", _name(task), error) for error in deviations(robot, peer, task.states)]


def _name(task: RobotCheck) -> str:
    file = Path(task.file)
    return f"{file.parent.parent.name.removesuffix('_description')}/{file.stem} {task.base}"


def _compared(peer: str, size: Size) -> Iterator[Measurement]:
    tasks = [
        RobotCheck(str(file), base, size.states if peer == "Pinocchio" else 10, peer, size.quick)
        for file, base, _ in example_robots.loadable()
        if not size.quick or file.stem in QUICK
    ]
    for kind, errors_of in _by_kind(in_parallel(_compare, tasks)).items():
        yield _worst(f"{len({found.robot for found in errors_of})} robots, {kind}", errors_of)


class CheckedError(NamedTuple):
    """An error with its robot and the kind of evaluation."""

    kind: str
    robot: str
    error: Deviation


def _compare(task: RobotCheck) -> list[CheckedError]:
    pp.set_threads(1)
    robot = pp.load(task.file, base=task.base)
    try:
        peer = Pin.from_urdf(task.file, task.base, robot) if task.peer == "Pinocchio" else Mj(robot)
    except Unsupported:
        return []
    found = []
    for kind, call, functions in _kinds(robot, task):
        found += [
            CheckedError(kind, _name(task), error)
            for error in errors(robot, peer, task.states, call, functions)
        ]
    return found


def _kinds(robot: Robot, task: RobotCheck) -> list[tuple[str, Callable, Sequence]]:
    """Which functions are compiled, and which are interpreted to save time."""
    if task.peer == "MuJoCo" or task.quick:
        return [("interpreted", interpreted, FUNCTIONS), ("compiled fd and id", compiled, DYNAMICS)]
    if robot.nv <= MAX_COMPILED_NV:
        return [("compiled", compiled, FUNCTIONS)]
    return [("compiled", compiled, DYNAMICS), ("interpreted", interpreted, FUNCTIONS)]


def _by_kind(found: list[list[CheckedError]]) -> dict[str, list[CheckedError]]:
    kinds: dict[str, list[CheckedError]] = {}
    for error in (x for group in found for x in group):
        kinds.setdefault(error.kind, []).append(error)
    return kinds


def _worst(subject: str, found: list[CheckedError]) -> Measurement:
    worst = max(found, key=lambda one: one.error.value)
    raw = max(found, key=lambda one: one.error.raw)
    typical = float(np.median([one.error.raw for one in found]))
    note = f"worst: {worst.error.label} of {worst.robot}; median {typical:.0e}"
    if raw.error.raw > worst.error.value:
        note += f"; ill-conditioned: {raw.error.raw:.0e}, {raw.error.label} of {raw.robot}"
    return Measurement(subject, worst.error.value, note=note)


def in_parallel(function: Callable, tasks: Sequence[Any]) -> list[Any]:
    """function(task) for each task, on all cores, since these rows measure no time."""
    with ProcessPoolExecutor(
        min(len(tasks), cpu_count()), mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        return list(pool.map(function, tasks))


def trees_with_pinocchio(size: Size) -> Iterator[Measurement]:
    """Random trees with every kind of joint, rebuilt in Pinocchio."""
    return _trees(Pin, {}, size)


def trees_with_mujoco(size: Size) -> Iterator[Measurement]:
    """The same in MuJoCo, which has no helical joint."""
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


def _trees(peer: type[Pin] | type[Mj], options: dict, size: Size) -> Iterator[Measurement]:
    found = []
    for seed in range(10 if size.quick else 50):
        robot = pp.robots.random_tree(1 + seed % 10, seed=seed, **options)
        calls = (interpreted, compiled) if seed % 10 == 9 else (interpreted,)
        for call in calls:
            found += [
                CheckedError("", f"tree {seed}", error)
                for error in errors(robot, peer(robot), 10, call)
            ]
    yield _worst(f"{len({one.robot for one in found})} trees", found)


def urdf_files(size: Size) -> Iterator[Measurement]:
    """Files that agree with Pinocchio, or are rejected where Pinocchio has no finite result."""
    results = [(file.stem, _urdf_result(str(file))) for file in example_robots.urdf_files()]
    good, rejected, wrong = (
        [name for name, result in results if result == x] for x in ("agrees", "rejected", "wrong")
    )
    notes = [
        f"{len(good)} agree",
        f"{len(rejected)} are rejected where Pinocchio has no finite result",
        *wrong,
    ]
    yield Measurement("example-robot-data", len(good + rejected), note=", ".join(notes))


def _urdf_result(file: str) -> str:
    try:
        robot = pp.load(file)
    except pp.Error:
        return "wrong" if _pinocchio_answers(file) else "rejected"
    found = errors(robot, Pin.from_urdf(file, "fixed", robot), 3, interpreted, DYNAMICS)
    return "agrees" if max(error.value for error in found) <= TOLERANCE else "wrong"


def _pinocchio_answers(file: str) -> bool:
    """Whether Pinocchio reads the file and its forward dynamics is finite."""
    try:
        with silent_stderr():
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
def silent_stderr() -> Iterator[None]:
    """Discard stderr, also that of C++ code."""
    sys.stderr.flush()
    stderr, devnull = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(devnull)
