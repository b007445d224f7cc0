"""Measurements in fresh processes: first calls with an empty and a warm cache, import, CLI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psiphi
from psiphi_bench import example_robots
from psiphi_bench.row import Measurement, Size

ROOT = Path(psiphi.__file__).parents[1]  # child processes use the same package


@contextmanager
def empty_cache() -> Iterator[str]:
    """Use a new, empty kernel cache in this process and its children."""
    before = os.environ.get("PSIPHI_CACHE")
    with tempfile.TemporaryDirectory(prefix="psiphi-bench-") as folder:
        os.environ["PSIPHI_CACHE"] = folder
        try:
            yield folder
        finally:
            if before is None:
                del os.environ["PSIPHI_CACHE"]
            else:
                os.environ["PSIPHI_CACHE"] = before


def seconds(*arguments: str) -> float:
    """Wall-clock time of `python ...`, interpreter included."""
    start = time.perf_counter()
    _run(arguments)
    return time.perf_counter() - start


def json_result(script: str, *arguments: str) -> dict[str, float]:
    """The last line that a script prints, parsed as JSON."""
    return json.loads(_run(("-c", script, *arguments)).splitlines()[-1])


def _run(arguments: Sequence[str]) -> str:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    threads = {"PSIPHI_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment = os.environ | threads | {"PYTHONPATH": path}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, timeout=600
    )
    if done.returncode:
        raise RuntimeError(f"the measurement process failed:\n{done.stderr[-2000:]}")
    return done.stdout


# One call of forward dynamics in a fresh process; `robot` is an expression over `pp`. ru_maxrss is
# the peak memory in kB, or bytes on macOS. On Linux it includes the parent, hence VmHWM there.
FIRST_CALL = """
import json, resource, sys, time
start = time.perf_counter()
import psiphi as pp
robot = eval(sys.argv[1])
loaded = time.perf_counter()
q, zero = robot.neutral(), robot.neutral()[:0].copy()
zero.resize(robot.nv)
ready = time.perf_counter()
robot.forward_dynamics(q, zero, zero)
end = time.perf_counter()
unit = 1 if sys.platform == "darwin" else 1024
peak = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if sys.platform == "linux":
    with open("/proc/self/status", encoding="ascii") as status:
        sizes = (line.split()[1] for line in status if line.startswith("VmHWM:"))
        peak = next((1024 * int(size) for size in sizes), peak)
times = {"load": loaded - start, "call": end - ready, "total": end - start}
print(json.dumps(times | {"memory": peak}))
"""


def first_call(robot: str) -> dict[str, float]:
    """load, call and total time in s and memory in bytes of one forward dynamics of `robot`."""
    return json_result(FIRST_CALL, robot)


def compile_time(name: str, base: str) -> Callable[[Size], Iterator[Measurement]]:
    """The first call of forward dynamics in a fresh process with an empty cache."""

    def measure(size: Size) -> Iterator[Measurement]:
        runs = []
        for _ in range(size.starts):
            with empty_cache():
                runs.append(first_call(_load(name, base)))
        yield _least(name, runs)

    return measure


def warm_start(size: Size) -> Iterator[Measurement]:
    """The same call in a second process."""
    for name, base in (("UR5", "fixed"), ("G1", "free")):
        with empty_cache():
            first_call(_load(name, base))
            yield _least(name, [first_call(_load(name, base)) for _ in range(size.starts + 2)])


def _load(name: str, base: str) -> str:
    return f"pp.load({str(example_robots.urdf(name))!r}, base={base!r})"


def _least(name: str, runs: list[dict[str, float]]) -> Measurement:
    load = min(run["load"] for run in runs)
    return Measurement(
        name, min(run["call"] for run in runs), note=f"import and load before it: {load:.2g} s"
    )


def imports(size: Size) -> Iterator[Measurement]:
    """`import psiphi`, including the start of the interpreter."""
    yield _start("python -c 'import psiphi'", "-c", "import psiphi", size=size)


def command_line(size: Size) -> Iterator[Measurement]:
    """`psiphi --help`, including the start of the interpreter."""
    yield _start("psiphi --help", "-m", "psiphi", "--help", size=size)


def _start(subject: str, *arguments: str, size: Size) -> Measurement:
    bare = min(seconds("-c", "pass") for _ in range(size.starts + 2))
    figure = min(seconds(*arguments) for _ in range(size.starts + 2))
    return Measurement(subject, figure, note=f"the interpreter alone: {bare:.2g} s")
