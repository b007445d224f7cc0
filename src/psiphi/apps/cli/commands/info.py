"""`psiphi info`."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence

from psiphi._util.errors import Error
from psiphi._util.text import columns, count_of
from psiphi.apps.cli.model_advice import advice
from psiphi.apps.cli.robot_argument import load, robot_argument
from psiphi.apps.cli.terminal_text import sentence, wrapped

COUNTED = (  # the functions whose operations are counted
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
  psiphi info --gpu             graphics cards, their driver and compiler

The table lists bodies base to tip; a body that branches off is indented. `q` and `v` are the places of a joint's
coordinates in the configuration and velocity vectors; effort and speed are limits. Units: kg, m, rad, s, N, N m.
"""


class Cards(argparse.Action):
    """--gpu: no robot is needed."""

    def __call__(self, parser, namespace, values, option=None) -> None:
        for line in cards():
            print(line)
        parser.exit()


def arguments(parser: argparse.ArgumentParser) -> None:
    robot_argument(parser)
    parser.add_argument(
        "--gpu", action=Cards, nargs=0, help="tell which graphics cards psiphi can use, and end"
    )


def cards() -> Iterator[str]:
    """The lines of `psiphi info --gpu`: driver and compiler, then a row a card."""
    from psiphi.backends.cuda import cuda_driver, nvptx

    try:
        yield f"compiler  {nvptx.TRIPLE} of LLVM {nvptx.check_available()}"
    except Error as error:
        yield f"compiler  none: {error}"
    try:
        found = cuda_driver.driver()
        yield f"driver    CUDA {found.version // 1000}.{found.version % 1000 // 10}"
        rows = [found.gpu_info(number) for number in range(found.count)]
    except Error as error:
        yield f"driver    none: {error}"
        return
    for card in rows:
        size = f"{card.memory / 2**30:.0f} GiB, {card.processors} multiprocessors"
        yield f"card {card.number}    {card.name}: compute capability {card.capability[0]}.{card.capability[1]}, {size}"


def run(args: argparse.Namespace) -> int:
    """Print what a robot is: tree, coordinates, checks, what would be slow or wrong, operation counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report says it below
        robot = load(args.robot, args.base, args.flexible)
    for line in describe(robot):
        print(line)
    return 0


def describe(robot) -> Iterator[str]:
    """The lines of `psiphi info`: one row a body, then frames, checks and operation counts."""
    mass = sum(body.mass for body in robot.bodies)
    yield f"{robot.name}: {count_of(robot.body_count, 'body', 'bodies')}, nq={robot.nq}, nv={robot.nv}, {mass:.4g} kg"
    yield ""
    yield from columns([HEAD, *_body_rows(robot)])
    yield ""
    yield from wrapped(f"frames ({len(robot.frames)})", ", ".join(robot.frames))
    yield ""
    yield "checks"
    yield from (f"  {line}" for line in robot.report or ("passed, nothing to report",))
    yield ""
    yield "good to know"
    yield from (
        f"  {line}" for line in advice(robot) or ("nothing that would be slow or surprising",)
    )
    yield ""
    yield "operations per call"
    yield from (f"  {line}" for line in columns((name, _flops(robot, name)) for name in COUNTED))


def _body_rows(robot) -> Iterator[tuple[str, ...]]:
    for k, depth in tree_order([joint.parent for joint in robot.joints]):
        body, joint = robot.bodies[k], robot.joints[k]
        parent = "world" if joint.parent < 0 else robot.bodies[joint.parent].name
        places = _places(joint.q_slice), _places(joint.v_slice)
        limits = _limits(joint), _most(joint.effort), _most(joint.velocity)
        yield (
            str(k),
            "  " * depth + body.name,
            joint.name,
            joint.kind,
            parent,
            f"{body.mass:.4g}",
            *places,
            *limits,
        )


def tree_order(parents: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Bodies depth first, each with its indentation: the number of branchings above it.

    >>> list(tree_order([-1, 0, 1, 1, 3]))  # a trunk 0-1 that splits into 2 and 3-4
    [(0, 0), (1, 0), (2, 1), (3, 1), (4, 1)]
    """
    children: list[list[int]] = [
        [] for _ in range(len(parents) + 1)
    ]  # the last entry, -1, is the world
    for k, parent in enumerate(parents):
        children[parent].append(k)
    stack = [(k, 0) for k in reversed(children[-1])]
    while stack:
        k, depth = stack.pop()
        yield k, depth
        depth += len(children[k]) > 1
        stack += [(child, depth) for child in reversed(children[k])]


def _places(where: slice) -> str:
    size = where.stop - where.start
    return "-" if size == 0 else str(where.start) if size == 1 else f"{where.start}:{where.stop}"


def _limits(joint) -> str:
    pairs = list(zip(joint.lower, joint.upper, strict=True))
    if all(low == -high and abs(high) == float("inf") for low, high in pairs):
        return "-"
    return ", ".join(f"{low:.4g} .. {high:.4g}" for low, high in pairs)


def _most(values) -> str:
    """Limits of effort or speed: one where all are equal, a dash where there is none."""
    several = dict.fromkeys(f"{x:.4g}" for x in values)
    return "-" if set(several) <= {"inf"} else ", ".join(several)


def _flops(robot, name: str) -> str:
    try:
        return str(robot.flops(name))
    except Error as error:
        return f"none: {sentence(error)}"
