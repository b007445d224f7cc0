"""psiphi and GRiD (grid-rbd, https://github.com/A2R-Lab/GRiD) on a GPU, as a table.

    python benchmarks/beside_grid.py [--write FILE.md] [--robots ur5 g1]

Needs a GPU, its driver, torch, `pip install grid-rbd` and CUDA's nvcc, with which GRiD compiles
(minutes per robot). Both take float32 tensors of torch. Ten calls, each on its own arrays, are
captured in a graph and replayed; times are medians of CUDA events. The table has the faster of
GRiD's two forward dynamics. The results are compared for robots with a fixed base.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grid_rbd
import torch

import psiphi as pp
from gpu import random_inputs, replay_seconds

BATCHES = (256, 1024, 16384)
SETS = 10
BASES = {"ur5": "fixed", "g1": "free"}
HEAD = ("robot", "what", "batch", "psiphi", "GRiD", "times faster", "largest difference")


def load_in_grid(robot: pp.Robot, base: str, folder: Path) -> Any:
    """The robot in GRiD, from the URDF that psiphi writes."""
    path = folder / f"{robot.name}.urdf"
    robot.save(path)
    start = time.perf_counter()
    options = {
        "algorithm_list": ["forward_dynamics", "aba", "forward_dynamics_gradient"],
        "max_batch_size": max(BATCHES),
    }
    peer = grid_rbd.load_robot(str(path), backend="torch", floating_base=base == "free", **options)
    print(f"{robot.name}: GRiD built in {time.perf_counter() - start:.0f} s", flush=True)
    return peer


def rows(name: str, folder: Path) -> Iterator[tuple[str, ...]]:
    base = BASES.get(name, "fixed")
    robot = pp.load(name, base=base)
    peer = load_in_grid(pp.load(name), base, folder)
    ours = {"forward dynamics": robot.function("forward_dynamics")}
    ours["its derivatives by q and v"] = ours["forward dynamics"].jacobian("q", "v")
    theirs = {
        "forward dynamics": [peer.forward_dynamics, peer.aba],
        "its derivatives by q and v": [peer.forward_dynamics_gradient],
    }
    for what, function in ours.items():
        for n in BATCHES:
            states = [
                [
                    torch.from_numpy(x).cuda()
                    for x in random_inputs(robot, ours["forward dynamics"], n, "f", i)
                ]
                for i in range(SETS)
            ]
            mine = replay_seconds([lambda x=x, f=function: f(*x) for x in states])
            others = [
                [lambda x=x, f=f: f(*x) for x in padded(states, peer.nq)] for f in theirs[what]
            ]
            other = min(map(replay_seconds, others))
            apart = (
                ""
                if base == "free" or what != "forward dynamics"
                else f"{difference(function, peer, *states[0]):.1e}"
            )
            yield (
                name,
                what,
                str(n),
                f"{mine * 1e6:.1f} us",
                f"{other * 1e6:.1f} us",
                f"{other / mine:.1f}",
                apart,
            )


def padded(states: list[list[Any]], nq: int) -> list[list[Any]]:
    """The states with q padded to nq entries, since GRiD may represent a free base differently."""
    return [
        [torch.nn.functional.pad(q, (0, nq - q.shape[1])).contiguous(), *rest]
        for q, *rest in states
    ]


def difference(
    function: Any, peer: Any, q: torch.Tensor, v: torch.Tensor, tau: torch.Tensor
) -> float:
    """The largest difference of the accelerations, relative to the largest one."""
    a, b = function(q, v, tau), peer.forward_dynamics(q, v, tau)
    return float(((a - b).abs().max() / a.abs().max()).item())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--robots", nargs="+", default=list(BASES))
    args = parser.parse_args()
    lines = [f"{torch.cuda.get_device_name()}, torch {torch.__version__}, grid-rbd {version()}", ""]
    lines += ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    with tempfile.TemporaryDirectory() as folder:
        for name in args.robots:
            for row in rows(name, Path(folder)):
                lines.append("| " + " | ".join(row) + " |")
                print(lines[-1], flush=True)
                if args.write:
                    args.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


def version() -> str:
    from importlib.metadata import version as of

    return of("grid-rbd")


if __name__ == "__main__":
    main()
