"""Every function of every bundled robot as C: compiled strictly with sanitizers, run, compared with the library.

    python tools/c_everything.py [--jobs 2] [--robots ur5 g1] [--functions gravity] [--limit 600]

    cc -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -fsanitize=address,undefined -fno-sanitize-recover=all

One line for each function that fails, then a summary: how many passed, and the largest error beside the largest number of a
result. `tests/emitters/test_c_files.py` runs a sample.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import numpy as np

import psiphi as pp
from psiphi.catalogue.dynamics import EVERY
from psiphi.emitters.c_files import c_files
from psiphi.errors import Error

STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
STRICT += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
NAME = "emitted"


class Outcome(NamedTuple):
    robot: str
    function: str
    error: float  # of the largest number of a result; NaN where it did not run
    seconds: float
    size: int  # bytes of the C file
    words: str  # what went wrong


def tried(robot_name: str, name: str, limit: float) -> Outcome:
    """One function, from its equation to its numbers."""
    begin, size = time.perf_counter(), 0
    try:
        robot, rng, cases = pp.load(robot_name), np.random.default_rng(0), []
        try:
            function = robot.function(name)
        except Error:
            function = robot.function(name, (list(robot.frames)[-1],))
        for _ in range(3):
            given = [robot.random(rng) if arg.per_joint == "q" else rng.standard_normal(arg.shape) for arg in function.inputs]
            answers = function.ufunc(*given)
            cases.append((given, answers if isinstance(answers, tuple) else (answers,)))
        with tempfile.TemporaryDirectory() as folder:
            for file, text in c_files(function.source.code, NAME, name, cases).items():
                Path(folder, file).write_text(text, encoding="utf-8")
            size = Path(folder, f"{NAME}.c").stat().st_size
            words = ["cc", *STRICT, "-o", "test", f"{NAME}.c", f"{NAME}_test.c", "-lm"]
            made = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=limit)
            if made.returncode:
                return Outcome(robot_name, name, np.nan, time.perf_counter() - begin, size, made.stderr[:400])
            done = subprocess.run(["./test"], cwd=folder, capture_output=True, text=True, timeout=limit)
        found = re.findall(r"largest error (\S+) of (\S+)", done.stdout)
        error = max((float(a) / float(b) for a, b in found), default=np.nan)
        words = "" if done.returncode == 0 and found else (done.stdout + done.stderr)[:400]
        return Outcome(robot_name, name, error, time.perf_counter() - begin, size, words)
    except subprocess.TimeoutExpired as error:
        return Outcome(robot_name, name, np.nan, time.perf_counter() - begin, size, f"took more than {error.timeout} s")
    except Error as error:
        return Outcome(robot_name, name, np.nan, time.perf_counter() - begin, size, f"refused: {error.cause}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--robots", nargs="*", default=pp.robots.bundled())
    parser.add_argument("--functions", nargs="*", default=list(EVERY))
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one compilation")
    args = parser.parse_args()
    heavy = sorted(args.robots, key=lambda name: -pp.load(name).nv)
    asked = [(robot, name) for robot in heavy for name in args.functions]
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(args.jobs) as pool:
        for task in as_completed([pool.submit(tried, *pair, args.limit) for pair in asked]):
            outcomes.append(task.result())
            if outcomes[-1].words:
                print(*outcomes[-1][:2], outcomes[-1].words.strip().replace("\n", " | "), flush=True)
    ran = [x for x in outcomes if not x.words]
    for what in ("error", "size", "seconds"):
        for x in sorted(ran, key=lambda x, what=what: -getattr(x, what))[:5]:
            print(f"largest {what}: {x.robot} {x.function}: {getattr(x, what):.3g}")
    within = sum(x.error <= 1e-14 for x in ran)
    print(f"{len(ran)} of {len(outcomes)} compiled and ran without warning or finding, {within} of them within 1e-14")
    return 0 if len(ran) == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
