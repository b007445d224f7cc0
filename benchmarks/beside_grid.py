"""psiphi beside GRiD (grid-rbd, https://github.com/A2R-Lab/GRiD) on the graphics card of this machine, as a table.

    python benchmarks/beside_grid.py [--write FILE.md] [--robots ur5 g1]

Needs a card, its driver, torch, `pip install grid-rbd` and CUDA's nvcc, with which GRiD compiles (minutes a robot). Both take
torch's tensors, float32; ten calls, each on arrays of its own, are captured in a graph that is replayed; times are medians of
CUDA events. Of GRiD's two ways to forward dynamics the faster one counts. On robots with a fixed base the results are compared.
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
from gpu import given, replayed

BATCHES = (256, 1024, 16384)
SETS = 10
BASES = {"ur5": "fixed", "g1": "free"}
HEAD = ("robot", "what", "batch", "psiphi", "GRiD", "times faster", "largest difference")


def loaded(robot: pp.Robot, base: str, folder: Path) -> Any:
    """The robot as GRiD has it, from the URDF that psiphi writes."""
    path = folder / f"{robot.name}.urdf"
    robot.save(path)
    start = time.perf_counter()
    words = {
        "algorithm_list": ["forward_dynamics", "aba", "forward_dynamics_gradient"],
        "max_batch_size": max(BATCHES),
    }
    made = grid_rbd.load_robot(str(path), backend="torch", floating_base=base == "free", **words)
    print(f"{robot.name}: GRiD built in {time.perf_counter() - start:.0f} s", flush=True)
    return made


def rows(name: str, folder: Path) -> Iterator[tuple[str, ...]]:
    base = BASES.get(name, "fixed")
    robot = pp.load(name, base=base)
    peer = loaded(pp.load(name), base, folder)
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
                    for x in given(robot, ours["forward dynamics"], n, "f", i)
                ]
                for i in range(SETS)
            ]
            mine = replayed([lambda x=x, f=function: f(*x) for x in states])
            others = [
                [lambda x=x, f=f: f(*x) for x in fitted(states, peer.nq)] for f in theirs[what]
            ]
            other = min(map(replayed, others))
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


def fitted(states: list[list[Any]], nq: int) -> list[list[Any]]:
    """The states with as many coordinates as the peer has: a free base may be told otherwise there."""
    return [
        [torch.nn.functional.pad(q, (0, nq - q.shape[1])).contiguous(), *rest]
        for q, *rest in states
    ]


def difference(function: Any, peer: Any, q: Any, v: Any, tau: Any) -> float:
    a, b = function(q, v, tau), peer.forward_dynamics(q, v, tau)
    return float(((a - b).abs().max() / a.abs().max()).item())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--robots", nargs="+", default=list(BASES))
    asked = parser.parse_args()
    lines = [f"{torch.cuda.get_device_name()}, torch {torch.__version__}, grid-rbd {version()}", ""]
    lines += ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.robots:
            for row in rows(name, Path(folder)):
                lines.append("| " + " | ".join(row) + " |")
                print(lines[-1], flush=True)
                if asked.write:
                    asked.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


def version() -> str:
    from importlib.metadata import version as of

    return of("grid-rbd")


if __name__ == "__main__":
    main()
