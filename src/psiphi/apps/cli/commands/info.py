"""`psiphi info`."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from psiphi._util.errors import Error
from psiphi._util.text import columns, count_of
from psiphi.apps.cli.model_advice import advice
from psiphi.apps.cli.robot_argument import (
    load,
    reader_arguments,
    reader_options,
    robot_argument,
)
from psiphi.apps.cli.terminal_text import sentence, wrapped

if TYPE_CHECKING:  # imported when a command runs: `psiphi --help` needs no NumPy
    from psiphi.model.model import Joint
    from psiphi.robot.robot import Robot

COUNTED = (  # functions whose operations are counted
    "forward_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "mass_matrix_inverse",
    "bias",
    "gravity",
)

HEAD = ("", "body", "joint", "kind", "parent", "mass", "q", "v", "limits", "effort", "speed")

EXAMPLES = """\
examples:
  psiphi info puma560
  psiphi info arm.urdf --base free
  psiphi info --gpu             GPUs, driver and compiler

The table lists bodies base to tip; a branch is indented. `q` and `v` are the indices of a joint's
coordinates in the configuration and velocity vectors; effort and speed are limits.
Units: kg, m, rad, s, N, N m.
"""


class GpuAction(argparse.Action):
    """--gpu: print the GPUs and exit; ROBOT is not needed."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        for line in gpu_lines():
            print(line)
        parser.exit()


def arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    reader_arguments(parser)
    parser.add_argument(
        "--gpu", action=GpuAction, nargs=0, help="list the GPUs that psiphi can use, and exit"
    )


def gpu_lines() -> Iterator[str]:
    """The lines of `psiphi info --gpu`: compiler and driver, then one line per GPU."""
    from psiphi.backends.cuda import driver_bindings, nvptx

    try:
        yield f"compiler  {nvptx.TRIPLE} of LLVM {nvptx.check_available()}"
    except Error as error:
        yield f"compiler  none: {error}"
    try:
        driver = driver_bindings.driver()
        yield f"driver    CUDA {driver.version // 1000}.{driver.version % 1000 // 10}"
        gpus = [driver.gpu_info(number) for number in range(driver.count)]
    except Error as error:
        yield f"driver    none: {error}"
        return
    for gpu in gpus:
        major, minor = gpu.capability
        yield (
            f"GPU {gpu.number}     {gpu.name}: compute capability {major}.{minor}, "
            f"{gpu.memory / 2**30:.0f} GiB, {gpu.processors} multiprocessors"
        )


def run(args: argparse.Namespace) -> int:
    """Print tree, coordinates, checks, advice and operation counts of a robot."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report lists them
        robot = load(args.robot, args.base, args.flexible, **reader_options(args))
    for line in describe(robot):
        print(line)
    return 0


def describe(robot: Robot) -> Iterator[str]:
    """The lines of `psiphi info`: one row per body, then frames, checks and operation counts."""
    mass = sum(body.mass for body in robot.bodies)
    bodies = count_of(robot.body_count, "body", "bodies")
    yield f"{robot.name}: {bodies}, nq={robot.nq}, nv={robot.nv}, {mass:.4g} kg"
    yield ""
    yield from columns([HEAD, *_body_rows(robot)])
    yield ""
    yield from wrapped(f"frames ({len(robot.frames)})", ", ".join(robot.frames))
    yield ""
    yield "checks"
    yield from (f"  {line}" for line in robot.report or ("passed, nothing to report",))
    yield ""
    yield "good to know"
    yield from (f"  {line}" for line in advice(robot) or ("nothing to report",))
    yield ""
    yield "operations per call"
    yield from (f"  {line}" for line in columns((name, _flops(robot, name)) for name in COUNTED))


def _body_rows(robot: Robot) -> Iterator[tuple[str, ...]]:
    for k, depth in tree_order([joint.parent for joint in robot.joints]):
        body, joint = robot.bodies[k], robot.joints[k]
        parent = "world" if joint.parent < 0 else robot.bodies[joint.parent].name
        indices = _slice_text(joint.q_slice), _slice_text(joint.v_slice)
        limits = _limits(joint), _limit_text(joint.effort), _limit_text(joint.velocity)
        yield (
            str(k),
            "  " * depth + body.name,
            joint.name,
            joint.kind,
            parent,
            f"{body.mass:.4g}",
            *indices,
            *limits,
        )


def tree_order(parents: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Bodies depth first, each with its indentation: the number of branchings before it.

    >>> list(tree_order([-1, 0, 1, 1, 3]))  # a trunk 0-1 that splits into 2 and 3-4
    [(0, 0), (1, 0), (2, 1), (3, 1), (4, 1)]
    """
    # the last entry, -1, is the world
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for k, parent in enumerate(parents):
        children[parent].append(k)
    stack = [(k, 0) for k in reversed(children[-1])]
    while stack:
        k, depth = stack.pop()
        yield k, depth
        depth += len(children[k]) > 1
        stack += [(child, depth) for child in reversed(children[k])]


def _slice_text(indices: slice) -> str:
    start, stop = indices.start, indices.stop
    return "-" if stop == start else str(start) if stop == start + 1 else f"{start}:{stop}"


def _limits(joint: Joint) -> str:
    pairs = list(zip(joint.lower, joint.upper, strict=True))
    if all(low == -high and abs(high) == float("inf") for low, high in pairs):
        return "-"
    return ", ".join(f"{low:.4g} .. {high:.4g}" for low, high in pairs)


def _limit_text(values: Iterable[float]) -> str:
    """Limits of effort or speed: one number if all are equal, a dash if there is no limit."""
    limits = dict.fromkeys(f"{x:.4g}" for x in values)
    return "-" if set(limits) <= {"inf"} else ", ".join(limits)


def _flops(robot: Robot, name: str) -> str:
    try:
        return str(robot.flops(name))
    except Error as error:
        return f"none: {sentence(error)}"
