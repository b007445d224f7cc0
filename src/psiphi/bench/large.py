"""Long chains: run time a link, compile time, and one of 10 000 links."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np

import psiphi as pp
from psiphi.bench import fresh
from psiphi.bench.agreement import states
from psiphi.bench.row import Measured, Size, micro
from psiphi.bench.timing import best
from psiphi.model.model import Model

BATCH, LINKS = 1024, 10_000
EQUAL = {True: "equal links", False: "unequal links"}


def run_time(size: Size) -> Iterator[Measured]:
    """Time a link of forward dynamics in a batch, as a multiple of that of the chain of ten."""
    pp.set_threads(1)
    for equal in (True, False):
        short = _per_link(10, equal, size)
        for n in (100, 1000):
            ours = _per_link(n, equal, size)
            yield Measured(f"N = {n}, {EQUAL[equal]}", ours / short, f"{micro(ours)} a link", f"{micro(short)} at N = 10")


def _per_link(n: int, equal: bool, size: Size) -> float:
    robot = pp.robots.chain(n, equal=equal)
    state = states(robot, BATCH)
    out = np.empty_like(state["v"])
    call = partial(robot.forward_dynamics, state["q"], state["v"], state["tau"], out=out)
    return best(call, seconds=size.seconds)[0] / (BATCH * n)


def compile_time(size: Size) -> Iterator[Measured]:
    """First call of forward dynamics in a fresh process with an empty cache."""
    for equal in (True, False):
        for n in (1000,) if size.quick else (10, 100, 1000):
            with fresh.empty_cache():
                run = fresh.first_call(f"pp.robots.chain({n}, equal={equal})")
            yield Measured(f"N = {n}, {EQUAL[equal]}", run["call"], note=f"import and load before it: {run['load']:.2g} s")


def ten_thousand_seconds(size: Size) -> Iterator[Measured]:
    """Import, load and one forward dynamics of a chain of 10 000 links: seconds in all."""
    for subject, run in _ten_thousand(size).items():
        yield Measured(subject, run["total"], note=f"load {run['load']:.2g} s, first call {run['call']:.2g} s")


def ten_thousand_memory(size: Size) -> Iterator[Measured]:
    """The same: peak memory of the process."""
    for subject, run in _ten_thousand(size).items():
        yield Measured(subject, run["memory"] / 1e6)


@cache
def _ten_thousand(size: Size) -> dict[str, dict[str, float]]:
    with fresh.empty_cache():
        runs = {"built in Python": fresh.first_call(f"pp.robots.chain({LINKS})")}
    if size.quick:
        return runs
    with tempfile.TemporaryDirectory() as folder, fresh.empty_cache():
        file = Path(folder) / "chain.urdf"
        file.write_text(urdf_text(pp.robots.chain(LINKS)), encoding="utf-8")
        return runs | {"from a URDF file": fresh.first_call(f"pp.load({str(file)!r})")}


def urdf_text(model: Model) -> str:
    """A chain of revolute joints as URDF.

    >>> pp.load(urdf_text(pp.robots.chain(2))).nv
    2
    """
    return "\n".join([f'<robot name="{model.name}"><link name="base"/>', *_elements(model), "</robot>"])


def _elements(model: Model) -> Iterator[str]:
    for body, joint in zip(model.bodies, model.joints, strict=True):
        parent = "base" if joint.parent < 0 else model.bodies[joint.parent].name
        R, I = joint.pose.rotation, body.inertia
        rpy = (float(np.arctan2(R[2, 1], R[2, 2])), float(-np.arcsin(R[2, 0])), float(np.arctan2(R[1, 0], R[0, 0])))
        tensor = " ".join(f'{name}="{float(I[i, j])!r}"' for name, i, j in TENSOR)
        yield (
            f'<link name="{body.name}"><inertial><origin xyz="{_numbers(body.com)}"/><mass value="{body.mass!r}"/>'
            f"<inertia {tensor}/></inertial></link>"
        )
        place = f'<origin xyz="{_numbers(joint.pose.translation)}" rpy="{_numbers(rpy)}"/><axis xyz="{_numbers(joint.axis)}"/>'
        ends = f'<parent link="{parent}"/><child link="{body.name}"/>'
        yield f'<joint name="{joint.name}" type="continuous">{ends}{place}</joint>'


TENSOR = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))


def _numbers(values) -> str:
    return " ".join(repr(float(x)) for x in values)
