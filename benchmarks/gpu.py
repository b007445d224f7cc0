"""Run time of psiphi on the GPU of this machine, as a table.

    python benchmarks/gpu.py [--write FILE.md] [--quick]

Needs a GPU, its driver and torch. Arrays are row-major and stay on the GPU. Times are medians of
CUDA events around a graph that replays the call on several sets of arrays, so that they do not fit
the cache of the GPU. The bandwidth is that of a large copy in the same run. The results of each row
are compared with the CPU kernels: `bits` if they are bitwise equal, else the largest difference
relative to the largest value.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import psiphi as pp

MILLION = 1 << 20
BIG = [("ur5", "fixed"), ("panda", "fixed"), ("iiwa14", "fixed"), ("g1", "free")]
TYPES = {"f": torch.float32, "d": torch.float64}
SHOWN = {"f": "float32", "d": "float64"}
COLD = """
import time, torch, psiphi as pp
robot = pp.load({name!r}, base={base!r})
q = torch.tensor(robot.neutral(), device="cuda")
v = torch.zeros(robot.nv, device="cuda", dtype=torch.float64)
torch.cuda.synchronize()
start = time.perf_counter()
robot.forward_dynamics(q, v, v)
torch.cuda.synchronize()
print(time.perf_counter() - start)
"""


def random_inputs(
    robot: pp.Robot, function: Any, n: int, char: str, seed: int = 0
) -> list[np.ndarray]:
    """Random arguments of a function: at most 4096 states, repeated."""
    rng, few = np.random.default_rng(seed), min(n, 4096)
    rows = [
        robot.random(rng, few) if arg.name == "q" else rng.standard_normal((few, *arg.shape))
        for arg in function.inputs
    ]
    return [np.tile(x, (n // few, *(1,) * (x.ndim - 1))).astype(char) for x in rows]


def replay_seconds(calls: list[Callable[[], Any]], least: float = 0.1) -> float:
    """Seconds per call of a graph of all calls, replayed for at least `least` seconds."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    times: list[float] = []
    while len(times) < 5 or sum(times) < least:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return statistics.median(times) / len(calls)


def bandwidth() -> float:
    """Bytes read and written per second by a large copy.

    The copy is a kernel, since a graph runs plain copies on the copy engine.
    """
    x = torch.rand(1 << 28, device="cuda")
    y = torch.empty_like(x)
    return 2 * x.numel() * 4 / replay_seconds([lambda: torch.neg(x, out=y)])


def agreement(robot: pp.Robot, function: Any, char: str) -> str:
    """ "bits" if GPU and CPU results are bitwise equal, else the largest relative difference."""
    arrays = random_inputs(robot, function, 4096, char, seed=1)
    found = function(*(torch.from_numpy(x).cuda() for x in arrays))
    found, host = (x if isinstance(x, tuple) else (x,) for x in (found, function(*arrays)))
    worst = 0.0
    for x, y in zip(found, host, strict=True):
        z = x.cpu().numpy()
        worst = max(worst, float(np.abs(z - y).max() / np.abs(y).max()), float(np.isnan(z).any()))
    return "bits" if worst == 0.0 else f"{worst:.1e}"


def row(
    name: str, base: str, what: str, n: int, char: str, ceiling: float, small: bool
) -> tuple[str, ...]:
    robot = pp.load(name, base=base)
    function = robot.function("forward_dynamics")
    function = function.jacobian("q", "v") if what.startswith("∂") else robot.function(what)
    sets = 10 if small else 3
    calls = []
    for i in range(sets):
        arrays = [torch.from_numpy(x).cuda() for x in random_inputs(robot, function, n, char, i)]
        results = function(*arrays)
        out = results if isinstance(results, tuple) else (results,)
        calls.append(lambda arrays=arrays, out=out: function(*arrays, out=out))
    seconds = replay_seconds(calls)
    bytes_per_second = (
        sum(arg.size for arg in (*function.inputs, *function.outputs))
        * np.dtype(char).itemsize
        * n
        / seconds
    )
    kernel = function.source.kernel(char, 0, n).kernel
    return (
        f"{name} {what}",
        SHOWN[char],
        f"{n}",
        f"{seconds * 1e6:.1f}",
        f"{n / seconds:.2e}",
        f"{100 * bytes_per_second / ceiling:.0f}",
        f"{function.count.flops * n / seconds / 1e12:.1f}",
        f"{kernel.registers}",
        f"{kernel.local}",
        agreement(robot, function, char),
    )


def motions(name: str, char: str, n: int, steps: int) -> tuple[str, ...]:
    """A rollout with RK4 and PD control with gravity compensation; the rate is steps per second."""
    robot = pp.load(name)
    hold = pp.PD(robot, robot.neutral(), kp=400.0, kd=40.0, gravity=True)
    q = torch.from_numpy(random_inputs(robot, robot.function("gravity"), n, char)[0]).cuda()
    call = lambda: pp.rollout(robot, q, tau=hold, steps=steps, every=steps)  # noqa: E731
    call()
    times = []
    for _ in range(3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        found, _ = call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    host, _ = pp.rollout(robot, q[:64].cpu().numpy(), tau=hold, steps=steps, every=steps)
    error = float(np.abs(found[:64].cpu().numpy() - host).max())
    seconds = statistics.median(times)
    rate, agrees = f"{n * steps / seconds:.2e} steps", "bits" if error == 0.0 else f"{error:.1e}"
    return (
        f"{name} rollout, {steps} steps",
        SHOWN[char],
        f"{n}",
        f"{seconds * 1e6:.0f}",
        rate,
        "",
        "",
        "",
        "",
        agrees,
    )


HEAD = (
    "function",
    "type",
    "batch",
    "µs",
    "per s",
    "% of copy",
    "TFLOP/s",
    "registers",
    "spilled bytes",
    "agrees",
)


def table(quick: bool) -> Iterator[tuple[str, ...]]:
    ceiling = bandwidth()
    print(f"copy: {ceiling / 1e12:.2f} TB/s", flush=True)
    for name, base in BIG:
        for char in "fd":
            yield row(name, base, "forward_dynamics", MILLION, char, ceiling, False)
    for char in "fd":
        yield row("iiwa14", "fixed", "mass_matrix_inverse", MILLION, char, ceiling, False)
    for what, n in (("inverse_dynamics", MILLION), ("mass_matrix", MILLION // 4)):
        for char in "fd":
            yield row("g1", "free", what, n, char, ceiling, False)
    for name, base in (BIG[0], BIG[-1]):
        for n in (256, 1024, 16384):
            yield row(name, base, "forward_dynamics", n, "f", ceiling, True)
    yield row("ur5", "fixed", "∂FD/∂(q, v)", 16384, "f", ceiling, True)
    for char in "fd":
        yield motions("ur5", char, MILLION if not quick else MILLION // 8, 1000)
    if not quick:
        yield row("g1", "free", "∂FD/∂(q, v)", 16384, "f", ceiling, True)


def cold(name: str, base: str) -> float:
    """Seconds of the first call in a fresh process without a cache."""
    command = [sys.executable, "-c", COLD.format(name=name, base=base)]
    environment = {**os.environ, "PSIPHI_CACHE": "off", "CUDA_CACHE_DISABLE": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", metavar="FILE", help="also write the table to this file")
    parser.add_argument(
        "--quick", action="store_true", help="skip rows that take minutes to compile"
    )
    args = parser.parse_args()
    gpu = torch.cuda.get_device_name()
    lines = [
        f"{gpu}, {time.strftime('%Y-%m-%d')}",
        "",
        f"| {' | '.join(HEAD)} |",
        "|" + "---|" * len(HEAD),
    ]
    print("\n".join(lines), flush=True)
    for cells in table(args.quick):
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    firsts = ", ".join(f"{name} {cold(name, base):.2f} s" for name, base in (BIG[0], BIG[-1]))
    lines += ["", f"First call in a fresh process without a cache, float64: {firsts}"]
    print(lines[-1])
    if args.write:
        with open(args.write, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
