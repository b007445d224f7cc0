"""Compiles every function of every bundled robot as C with sanitizers, and compares its results.

    python tools/c_everything.py [--jobs 2] [--robots ur5 g1] [--functions gravity]
                                 [--limit 600] [--record FILE]

    cc -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror
       -fsanitize=address,undefined -fno-sanitize-recover=all

Prints one line per function, then a summary: the number that passed, and the largest errors
relative to the largest number of a result. 1e-14 is allowed, or eps kappa if that is larger, for
functions that solve with M or J M^-1 J*; kappa is the condition number after scaling to a unit
diagonal. `--record` stores the lines with a hash of the compiled text; functions with the same hash
are not compiled again, so that a run can be resumed. `tests/backends/c/test_c_files.py` runs a
sample.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import psiphi as pp
from psiphi._util.errors import Error
from psiphi.backends.c.c_files import c_files
from psiphi.robot.catalogue.catalogue import ALL_QUANTITIES
from psiphi.robot.matrix_by_columns import evaluate, exported_code

STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
STRICT += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
NAME = "emitted"
WITHIN = 1e-14


class Outcome(NamedTuple):
    """The result of one function."""

    robot: str
    function: str
    error: float  # relative to the largest number of a result; NaN if it did not run
    seconds: float  # of the C compiler
    size: int  # bytes of the C file
    text: str  # hash of the compiled text
    failure: str  # the error message, or ""
    allowed: float = WITHIN

    @property
    def good(self) -> bool:
        return not self.failure and self.error <= self.allowed

    def __str__(self) -> str:
        allowed = f" (allowed: {self.allowed:.1e})" if self.allowed > WITHIN else ""
        result = self.failure.strip().replace("\n", " | ") or f"{self.error:.1e}{allowed}"
        cost = f"{self.size:>9} bytes {self.seconds:7.1f} s"
        return f"{self.robot:<13}{self.function:<32}{cost}  {result}"


def function_and_states(robot_name: str, name: str) -> tuple[Any, Any, list[list[np.ndarray]]]:
    """A robot, its function (at its last frame, if it needs one), and three states."""
    robot, rng, states = pp.load(robot_name), np.random.default_rng(0), []
    try:
        function = robot.function(name)
    except Error:
        function = robot.function(name, (list(robot.frames)[-1],))
    for _ in range(3):
        inputs = [
            robot.random(rng) if arg.per_joint == "q" else rng.standard_normal(arg.shape)
            for arg in function.inputs
        ]
        states.append(
            [
                np.abs(x) if arg.name == "added" else x  # added inertia is positive
                for x, arg in zip(inputs, function.inputs, strict=True)
            ]
        )
    return robot, function, states


def files_of(robot_name: str, name: str) -> dict[str, str]:
    """The files of `psiphi emit`: header, source, and a test program with reference values."""
    robot, function, states = function_and_states(robot_name, name)
    cases = [(inputs, evaluate(robot, function, inputs)) for inputs in states]
    return c_files(exported_code(robot, function), NAME, name, cases)


def allowed(robot_name: str, name: str) -> float:
    """The allowed error: 1e-14, or eps kappa for functions that solve with a matrix."""
    robot, function, states = function_and_states(robot_name, name)
    if not function.source.code.count.div:
        return WITHIN
    solved = [robot.mass_matrix(q) for q, *_ in states]
    if name == "operational_space_inertia":  # also the condition of J M^-1 J*
        solved += [evaluate(robot, function, inputs)[0] for inputs in states]
    scales = [np.sqrt(np.diagonal(M)) for M in solved]
    kappa = max(np.linalg.cond(M / np.outer(x, x)) for M, x in zip(solved, scales, strict=True))
    return max(WITHIN, float(np.finfo(float).eps * kappa))


def check_function(robot_name: str, name: str, limit: float, known: Iterable[Outcome]) -> Outcome:
    """Compile and run one function, unless `known` has the result."""
    try:
        files = files_of(robot_name, name)
    except Error as error:
        return Outcome(robot_name, name, np.nan, 0.0, 0, "", f"not generated: {error.cause}")
    text = hashlib.sha256("".join(map(str, [*STRICT, *files.values()])).encode()).hexdigest()[:16]
    for earlier in known:
        if earlier.text == text:
            return earlier
    size, begin = len(files[f"{NAME}.c"]), time.perf_counter()

    def outcome(failure: str, error: float = np.nan) -> Outcome:
        limit = allowed(robot_name, name) if error > WITHIN else WITHIN
        seconds = time.perf_counter() - begin
        return Outcome(robot_name, name, error, seconds, size, text, failure, limit)

    with tempfile.TemporaryDirectory() as folder:
        for file, lines in files.items():
            Path(folder, file).write_text(lines, encoding="utf-8")
        try:
            command = ["cc", *STRICT, "-o", "test", f"{NAME}.c", f"{NAME}_test.c", "-lm"]
            compiled = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=limit
            )
            if compiled.returncode:
                return outcome(compiled.stderr[:400])
            done = subprocess.run(
                ["./test"], cwd=folder, capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired as error:
            return outcome(f"took more than {error.timeout} s")
    found = re.findall(r"largest error (\S+) of (\S+)", done.stdout)
    error = max((float(a) / float(b) for a, b in found), default=np.nan)
    failure = "" if done.returncode == 0 and found else (done.stdout + done.stderr)[:400]
    return outcome(failure, error)


def read_record(record: Path | None) -> dict[tuple[str, str], list[Outcome]]:
    """The good outcomes of earlier runs."""
    known: dict[tuple[str, str], list[Outcome]] = {}
    for line in (
        record.read_text(encoding="utf-8").splitlines() if record and record.exists() else ()
    ):
        outcome = Outcome(**json.loads(line))
        if outcome.good:
            known.setdefault(outcome[:2], []).append(outcome)
    return known


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--robots", nargs="*", default=pp.robots.bundled())
    parser.add_argument("--functions", nargs="*", default=list(ALL_QUANTITIES))
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one compilation")
    parser.add_argument("--record", type=Path, help="file of outcomes, to resume a run")
    args = parser.parse_args()
    known, outcomes = read_record(args.record), []
    pairs = [
        (robot, name)
        for robot in sorted(args.robots, key=lambda name: pp.load(name).nv)
        for name in args.functions
    ]
    with ProcessPoolExecutor(args.jobs) as pool:
        for task in as_completed(
            [pool.submit(check_function, *pair, args.limit, known.get(pair, ())) for pair in pairs]
        ):
            outcome = task.result()
            outcomes.append(outcome)
            print(f"{len(outcomes):>4} of {len(pairs)}  {outcome}", flush=True)
            if args.record and outcome not in known.get(outcome[:2], ()):
                with args.record.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(outcome._asdict()) + "\n")
    ran = [x for x in outcomes if not x.failure]
    for what in ("error", "size", "seconds"):
        for x in sorted(ran, key=lambda x, what=what: -getattr(x, what))[:5]:
            print(f"largest {what}: {x.robot} {x.function}: {getattr(x, what):.3g}")
    within = sum(x.error <= WITHIN for x in ran)
    print(
        f"{len(ran)} of {len(outcomes)} compiled and ran without a warning or sanitizer error,"
        f" {within} of them within {WITHIN},"
    )
    print(
        f"{sum(x.good for x in ran)} within that, or within eps kappa if they solve with a matrix"
    )
    return 0 if all(x.good for x in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
